"""Several compiled trainings in one process, as in a worker."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from tasks.load import load_task
from tasks.run import Run

MOONS = load_task(f"{Path(__file__).parents[1]}/moons.py:Moons")
plain = nn.Module.compile


def test_every_training_of_a_process_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Module, "compile", lambda network, **_: plain(network, backend="eager"))
    recipe = replace(MOONS.presets["smoke"], epochs=0, steps=3, compile=True)
    # Torch silently stops compiling beyond this limit.
    limits = {"recompile_limit": 2, "fail_on_recompile_limit_hit": True}
    with torch._dynamo.config.patch(**limits):
        for depth in (1, 2):  # two graphs each, for training and measuring
            run = Run(architecture=replace(MOONS.base, depth=depth), recipe=recipe, seed=0)
            eager = MOONS.fit(replace(run, recipe=replace(recipe, compile=False)))
            assert MOONS.fit(run).metrics == pytest.approx(eager.metrics)
