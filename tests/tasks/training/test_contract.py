"""The contract of installed tasks; new ones are tested automatically."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from tasks.base import Task
from tasks.load import load_task
from tasks.recipes.settings import override
from tasks.registry import TASKS
from tasks.training.contract import (
    CONTRACT,
    check_metadata,
    check_presets,
    check_reproducibility,
    check_task,
)

OF_PRESETS = (check_metadata, check_presets)
"""Checks of the presets themselves."""

TRAININGS = CONTRACT[CONTRACT.index(check_reproducibility) :]
"""Checks that train, which are last."""

TRAINED_BY_ANOTHER = {
    "glue": "stdlib-glue",
    "lra-image": "lra-listops",
    "lra-pathfinder": "lra-listops",
    "lra-text": "lra-listops",
    "pile-mlm": "stdlib-mlm",
}
"""Task -> the task with the same code whose trainings are checked instead."""

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
"""Task -> the fixture of its data; other tasks need none."""

NAMES = [name for name in TASKS.names() if not name.endswith("-lm") and not name.startswith("goal-")]
"""Other tasks are tested in tests/tasks/language and tests/tasks/goal_rl."""

SHORT: Mapping[str, object] = {"epochs": 0, "steps": 3, "reports": 2, "measured": 8}
"""Settings of a training that is stopped, resumed and repeated in no time."""

OWN_SHORT: Mapping[str, Mapping[str, object]] = {
    "digits-dit": {"sample_steps": 2, "samples": 10},
    "imagenet-dit": {"steps": 2, "measured": 4},
    "stdlib-glue": {"steps": 2, "reports": 1},
}
"""Task -> settings in addition to SHORT."""


def short_settings(task: Task) -> dict[str, Any]:
    """A task's presets with a short smoke preset."""
    return {**task.presets, "smoke": override(task.presets["smoke"], {**SHORT, **OWN_SHORT.get(task.name, {})})}


def task_of(name: str, request: pytest.FixtureRequest) -> tuple[Task, Architecture]:
    """A task with its data, and a tiny architecture."""
    data: Path | None = request.getfixturevalue(FOLDERS[name]) if name in FOLDERS else None
    task = load_task(name, data)
    tiny = {"depth": 1, "width": 16, "hidden": 16} | ({"heads": 2, "head_dim": 4} if task.base.heads else {})
    return task, replace(task.base, **tiny)


@pytest.mark.parametrize("name", NAMES)
def test_a_task_keeps_its_contract(name: str, request: pytest.FixtureRequest) -> None:
    task, tiny = task_of(name, request)
    tasks = [task, *filter(None, [getattr(task, "pretraining", None)])]
    checks = [check for check in CONTRACT if name not in TRAINED_BY_ANOTHER or check not in TRAININGS]
    with grouped() as case:
        for check in checks:
            with case(check.__name__), pytest.MonkeyPatch.context() as patch:
                for each in () if check in OF_PRESETS else tasks:
                    patch.setattr(type(each), "presets", short_settings(each))
                check(task, tiny)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_task_keeps_its_contract_with_its_whole_smoke_preset(name: str, request: pytest.FixtureRequest) -> None:
    check_task(*task_of(name, request))
