"""The contract suite, walked over the installed tasks: a new one is tested on arrival."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from search_spaces.architecture import Architecture
from tasks.base import Task
from tasks.load import load_task
from tasks.registry import TASKS
from tasks.testing import CONTRACT

FOLDERS = {
    "cifar10-vit": "cifar10_folder",
    "glue": "glue_data",
    "imagenet-dit": "latent_folder",
    "imagenet-vit": "image_folder",
    "lra-image": "cifar10_folder",
    "lra-retrieval": "aan_folder",
    "lra-text": "imdb_folder",
    "pile-mlm": "text_folder",
}
"""Task -> the fixture that makes its data. A task that is not here needs none."""

NAMES = [name for name in TASKS.names() if not name.endswith("-lm") and not name.startswith("goal-")]
"""The others are walked in tests/tasks/language and tests/tasks/goal_rl."""


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_task_keeps_its_contract(
    name: str, check: Callable[[Task, Architecture], None], request: pytest.FixtureRequest
) -> None:
    data: Path | None = request.getfixturevalue(FOLDERS[name]) if name in FOLDERS else None
    task = load_task(name, data)
    tiny = {"depth": 1, "width": 16, "hidden": 16} | ({"heads": 2, "head_dim": 4} if task.base.heads else {})
    check(task, replace(task.base, **tiny))
