"""The rows that a claim uses."""

from nas.papers.claims import Claim
from nas.papers.claims.row_experiments import BetterClaim, paired_differences
from toy_rows import LITTLE, a_row

CLAIM = Claim(name="a", source="table 1", statement="deeper is better", quantity="accuracy more")


def test_only_complete_pairs_of_rows_count() -> None:
    deep = LITTLE.with_fields({"depth": 2})
    rows = [
        a_row(seed=0, metrics={"accuracy": 0.25}),
        a_row(seed=0, architecture=deep, metrics={"accuracy": 0.75}),
        a_row(seed=1),
        a_row(seed=1, architecture=deep, status="pruned", metrics={"accuracy": 1.0}),
        a_row(seed=2, architecture=deep),
    ]
    assert paired_differences(
        rows, BetterClaim(claim=CLAIM, first={"depth": 1}, second={"depth": 2}, metric="accuracy")
    ) == [0.5]
