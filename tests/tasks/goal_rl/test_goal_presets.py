"""ANCRe's networks, against its table of temperatures."""

from dataclasses import replace

from results.records.published import lines_of
from tasks.load import load_task

NAMES = {
    "Humanoid": "goal-humanoid",
    "Ant Big Maze": "goal-ant-maze",
    "Arm Push Hard": "goal-arm-push-hard",
    "Arm Binpick Hard": "goal-arm-pick-place-hard",
}


def test_presets_have_the_temperatures_of_table_8() -> None:
    lines = [row for row in lines_of("ancre") if row["table"] == "8"]
    temperatures, expected = {}, {}
    for name, depth, temperature in ((NAMES[row["data"]], row["depth"], row["temperature"]) for row in lines):
        task = load_task(name)
        base = task.bases[f"ancre-{depth}"]
        temperatures[name, depth] = base.depth * 4, base.topology  # a block is four layers
        expected[name, depth] = int(depth), replace(base, topology=f"ancre(temperature={temperature})").topology
        assert task.presets[f"ancre-{depth}"] == task.presets["paper"], name
    assert temperatures == expected
    assert len(temperatures) == 8
