"""muP on stdlib-lm: the learning rate that suits a narrow network suits one that is four times as wide."""

import pytest

import nas

RATES = (2e-3, 8e-3, 3.2e-2)
NARROW, WIDE = "width=32,heads=1,hidden=64", "width=128,heads=4,hidden=256"


def losses(arch: str, parametrization: str, storage: str) -> dict[float, float]:
    found = {}
    for rate in RATES:
        settings = {"steps": 400, "reports": 1, "measured": 512, "lr": rate, "parametrization": parametrization}
        found[rate] = nas.evaluate("stdlib-lm", arch=arch, settings=settings, storage=storage).metrics["loss"]
    return found


@pytest.mark.slow
def test_the_best_rate_transfers_to_four_times_the_width(tmp_path: object) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    narrow = losses(NARROW, "standard", storage)
    best = min(narrow, key=narrow.__getitem__)
    lost = {}
    for parametrization in ("standard", "mup(base=32)"):
        wide = losses(WIDE, parametrization, storage)
        lost[parametrization] = wide[best] - min(wide.values())
    assert lost["mup(base=32)"] < 0.05 < lost["standard"], lost
