"""Table 2's variances, compared with the closed forms of table 1."""

import pytest

from nas.papers.claims.variance import Variance

WIDTH, HIDDEN, RANK, KEYS = 1024, 4096, 16, 64


def xavier(inputs: int, outputs: int) -> tuple[float, float]:
    """The factors by which a map multiplies variance forward and backward: fans times 2 / (fan-in + fan-out)."""
    return 2 * inputs / (inputs + outputs), 2 * outputs / (inputs + outputs)


STORE, LOAD = xavier(RANK, KEYS), xavier(KEYS, RANK)
FORMS = {
    "attention stores, RMT": STORE,
    "attention stores, transformer": xavier(WIDTH, WIDTH),
    "attention loads, RMT": xavier(KEYS, 3 * RANK),
    "attention loads, transformer": xavier(WIDTH, 3 * WIDTH),
    "feed-forward stores, RMT": tuple(a * b for a, b in zip(xavier(HIDDEN, WIDTH), STORE, strict=True)),
    "feed-forward stores, transformer": xavier(HIDDEN, WIDTH),
    "feed-forward loads, RMT": tuple(a * b for a, b in zip(xavier(WIDTH, HIDDEN), LOAD, strict=True)),
    "feed-forward loads, transformer": xavier(WIDTH, HIDDEN),
}


def test_variances_agree_with_the_closed_forms_of_table_1() -> None:
    values = Variance(seeds=1).values()
    assert len(values) == 2 * len(FORMS)
    for name, forms in FORMS.items():
        for direction, form in zip(("forward", "backward"), forms, strict=True):
            assert values[f"{name}, {direction}"] == pytest.approx([form], rel=0.02), name


def test_printed_values_are_the_closed_forms_to_two_decimals_but_for_two_rows() -> None:
    for claim in Variance.claims:
        name, direction = claim.name.rsplit(", ", 1)
        form = FORMS[name][direction == "backward"]
        assert claim.high - claim.low == pytest.approx(0.01)
        assert (claim.low <= form <= claim.high) is not name.startswith("feed-forward") or "transformer" in name
