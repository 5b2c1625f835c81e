"""ANCRe's networks, by the table that prints their temperatures."""

from dataclasses import replace

import pytest

from results.published import Line, lines_of
from tasks.load import load_task

NAMES = {
    "Humanoid": "goal-humanoid",
    "Ant Big Maze": "goal-ant-maze",
    "Arm Push Hard": "goal-arm-push-hard",
    "Arm Binpick Hard": "goal-arm-pick-place-hard",
}


@pytest.mark.parametrize(
    "printed", [row for row in lines_of("ancre") if row["table"] == "8"], ids=lambda row: row["data"]
)
def test_presets_have_the_temperatures_of_table_8(printed: Line) -> None:
    task = load_task(NAMES[printed["data"]])
    base = task.bases[f"ancre-{printed['depth']}"]
    assert base.depth * 4 == int(printed["depth"])  # a block is four layers
    assert base == replace(base, topology=f"ancre(temperature={printed['temperature']})")
    assert task.presets[f"ancre-{printed['depth']}"] == task.presets["paper"]
