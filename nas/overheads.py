"""How much longer a training step takes with a topology than with plain residuals, as its paper prints it."""

import csv
from functools import cache
from importlib.resources import files


def printed(topology: str) -> float | None:
    """A step's time over the residual network's; None where the paper of that topology prints none.

    `overheads.csv` has the setting of each: other networks, devices and precisions than those at hand.
    """
    return _overheads().get(topology)


@cache
def _overheads() -> dict[str, float]:
    text = files("nas").joinpath("overheads.csv").read_text(encoding="utf-8")
    return {line["topology"]: float(line["step_over_resnet"]) for line in csv.DictReader(text.splitlines())}
