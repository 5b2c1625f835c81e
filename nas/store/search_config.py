"""The configuration of a search as plain data: stored with its study, compared on resume, read by reports."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from results.records.row import Direction
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The configuration of a search. A study resumes only with an equal one.

    Attributes:
        task: Name, or FILE.py:CLASS.
        task_version: Version of the task.
        space: Name of the search space.
        base: The base architecture of the space, as text.
        axes: Axis of the space -> its values. They change when a topology is installed.
        budget: Canonical text of the budget, "" without one.
        objectives: Objective -> "max" or "min", in order.
        preset: The task's preset.
        settings: Override of the preset's recipe -> its value.
        seed: Seed of the search and of every evaluation.
        sampler: Name of the sampler.
        data: Value of `--data`, or None.
        data_fingerprint: Fingerprint of the data; other data makes another study.
        metrics: Metric of the task -> "max" or "min".
        rungs: Fields of `nas.samplers.rungs.Rungs`; empty without early stopping.
        code: Digest of the task's file and the modules beside it that it imports, None for an installed task; an edit
            makes another study.
        baselines: Simple method -> its columns, for comparison.
    """

    task: str
    task_version: int
    space: str
    base: str
    budget: str
    objectives: Mapping[str, Direction]
    preset: str
    seed: int
    sampler: str
    axes: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    data_fingerprint: str | None = None
    metrics: Mapping[str, Direction] = field(default_factory=dict)
    rungs: Mapping[str, Any] = field(default_factory=dict)
    code: str | None = None
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the configuration as JSON data."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "SearchConfig":
        """Build the configuration from a record. Raises UserError if the record has other fields."""
        names = [field.name for field in fields(cls)]
        if sorted(record) != sorted(names):
            message = f"the record of a search must have the fields {', '.join(names)}. Give another --study."
            raise UserError("mismatch", message, option="--study", expected=tuple(names))
        return cls(**record)
