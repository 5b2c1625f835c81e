"""muP on stdlib-lm transfers the best learning rate to four times the width."""

import pytest

import nas

RATES = (2e-3, 8e-3, 3.2e-2)
NARROW, WIDE = "width=32,heads=1,hidden=64", "width=128,heads=4,hidden=256"


def losses(arch: str, parametrization: str, storage: str) -> dict[float, float]:
    losses_by_rate = {}
    for rate in RATES:
        settings = {"steps": 400, "reports": 1, "measured": 512, "lr": rate, "parametrization": parametrization}
        losses_by_rate[rate] = nas.evaluate("stdlib-lm", arch=arch, settings=settings, storage=storage).metrics["loss"]
    return losses_by_rate


@pytest.mark.slow
def test_the_best_rate_transfers_to_four_times_the_width(tmp_path: object) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    narrow = losses(NARROW, "standard", storage)
    best = min(narrow, key=narrow.__getitem__)
    loss_ratio = {}
    for parametrization in ("standard", "mup(base=32)"):
        wide = losses(WIDE, parametrization, storage)
        loss_ratio[parametrization] = wide[best] - min(wide.values())
    assert loss_ratio["mup(base=32)"] < 0.05 < loss_ratio["standard"], loss_ratio
