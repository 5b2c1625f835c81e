"""Several processes that train one network, as torchrun starts them; on CPUs here, on GPUs elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.recipe import Recipe

TASK = f"{Path(__file__).with_name('stories_lm.py')}:StoriesLM"
NAS = [str(Path(sys.executable).with_name("nas")), "evaluate", TASK, "--format", "json"]
TWO = [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node", "2", "--no-python"]


def evaluated(*command: str) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    (row,) = json.loads(done.stdout)
    assert isinstance(row, dict)
    return row


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["smoke", "sharded"], ids=["ddp", "fsdp"])
def test_two_processes_print_one_row_with_the_numbers_of_one(preset: str) -> None:
    alone = evaluated(*NAS, "--preset", "smoke")
    together = evaluated(*TWO, *NAS, "--preset", preset)
    for name in ("loss", "test_loss", "bits_per_byte", "loss_se"):
        assert together[name] == pytest.approx(alone[name], rel=1e-5)
    assert together["steps"] == alone["steps"]
    assert together["data"] == alone["data"]


def test_devices_that_share_a_batch_take_as_much_at_once_as_one_alone() -> None:
    recipe = Recipe(steps=1, batch=512, lr=1.0, accumulate=8)
    assert [recipe.shared_by(devices).accumulate for devices in (1, 2, 8, 16)] == [8, 4, 1, 1]


def test_a_batch_that_cannot_be_dealt_out_evenly_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="3 devices cannot share a batch of 512"):
        Recipe(steps=1, batch=512, lr=1.0).shared_by(3)
