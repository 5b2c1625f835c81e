"""The configuration of a search: stored with its study, compared on resume, read by reports. Plain data."""

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
        base: The architecture that the space is laid out around, as text.
        axes: The space's axes -> their values: a plug-in's topology makes it another space.
        budget: Canonical text of the budget, "" where there is none.
        objectives: What is searched for -> "max" or "min", in order.
        preset: The task's preset.
        settings: What was changed of the preset's recipe -> its value.
        seed: Seed of the search and of every evaluation.
        sampler: Name of the sampler.
        data: What `--data` said, or None.
        data_fingerprint: Of what was there; a study of other data is another.
        metrics: Every metric of the task -> "max" or "min".
        rungs: Where its trainings are paused: see `nas.samplers.rungs.Rungs`; empty where none is.
        baselines: Simple methods -> their columns, to hold results against.
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
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The configuration as JSON data."""
        record: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "SearchConfig":
        """The configuration of a record. Raises UserError where it has other fields."""
        names = [field.name for field in fields(cls)]
        if sorted(record) != sorted(names):
            message = f"the record of a search must have the fields {', '.join(names)}. Give another --study."
            raise UserError("mismatch", message, option="--study", expected=tuple(names))
        return cls(**record)
