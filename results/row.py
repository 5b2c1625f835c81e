"""What one evaluation found: a flat record that outlives the code that made it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from search_spaces.architecture import Architecture

Direction = Literal["max", "min"]
Status = Literal["complete", "pruned", "over-budget", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What an architecture costs. None where it was not measured, never a silent zero.

    Attributes:
        params: All parameters.
        topology_params: Those of the residual wiring.
        embedding_params: Those of the embedding.
        non_embedding_params: All others; the map to the vocabulary is among them, unless it is the embedding's own.
        macs: Multiply-accumulates of matrix work (linear maps, convolutions, attention), forward, one example. Maps to
            a vocabulary and the half of attention that a causal mask throws away are counted in full.
        flops: 2 * macs.
        train_flops: 3 * flops, the convention for a training step: its backward pass takes two forward passes.
        elementwise_flops: Multiplications and additions by which the residual wiring mixes, in no other count; forward,
            one example. By closed form; None for a network without one.
        counter: Name and version of what counted the MACs.
        uncounted: Operators in the network that do no matrix work and are therefore not in `macs`.
    """

    params: int | None = None
    topology_params: int | None = None
    embedding_params: int | None = None
    non_embedding_params: int | None = None
    macs: int | None = None
    flops: int | None = None
    train_flops: int | None = None
    elementwise_flops: int | None = None
    counter: str | None = None
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One architecture on one task.

    Attributes:
        task: Name of the task.
        task_version: Version of the task; rows of different versions are not comparable.
        space: Name of the search space, or None where an architecture was evaluated by itself.
        architecture: What was evaluated.
        seed: What initialisation, data order and augmentation were drawn with.
        preset: The task's preset, its fidelity.
        steps: Optimiser steps taken.
        start: Fingerprint of the weights that training began with; None where they were drawn.
        data: Fingerprint of the data; rows of different data are not comparable.
        validation: Metric -> value on the validation split; `<metric>_se` is its standard error.
        test: The same on the test split, which is reported and never searched on.
        curve: Validation metrics on the way, each with its `step`.
        costs: What the architecture costs by counting.
        profile: What it costs on a device, by column; empty where it was not measured.
        status: How the evaluation ended.
        error: Why it failed, in one line; None where it did not.
        wall_s: Seconds from start to end.
        versions: Package -> version.
    """

    task: str
    task_version: int
    architecture: Architecture
    seed: int
    preset: str
    status: Status
    space: str | None = None
    steps: int = 0
    start: str | None = None
    data: str | None = None
    validation: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    curve: tuple[Mapping[str, float], ...] = ()
    costs: Costs = field(default_factory=Costs)
    profile: Mapping[str, float | int | str] = field(default_factory=dict)
    error: str | None = None
    wall_s: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Strict JSON: a metric that is not finite is refused with a ValueError."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Row":
        """Read what `to_json` wrote; fields that a newer version added are passed over."""
        record = json.loads(text)
        record["architecture"] = Architecture(**_known(Architecture, record["architecture"]))
        costs = _known(Costs, record.get("costs", {}))
        record["costs"] = Costs(**costs | {"uncounted": tuple(costs.get("uncounted", ()))})
        record["curve"] = tuple(record.get("curve", ()))
        return cls(**_known(cls, record))

    def points(self) -> list[dict[str, Any]]:
        """The curve as records: what was trained, the step, and the validation metrics there, the last at the end."""
        end = {"step": self.steps, **self.validation} if self.status == "complete" else {}
        return [
            {"task": self.task, "key": self.architecture.key, "topology": self.architecture.topology, "seed": self.seed}
            | dict(point)
            for point in (*self.curve, end)
            if point
        ]

    def columns(self) -> dict[str, Any]:
        """The row of a flat table: one scalar a column, test metrics as `test_<metric>`."""
        plain = {name: getattr(self, name) for name in ("task", "task_version", "space", "preset", "seed", "status")}
        return {
            **plain,
            "key": self.architecture.key,
            **{name: getattr(self.architecture, name) for name in _SHAPE},
            **{name: getattr(self.costs, name) for name in _COSTS},
            **self.profile,
            **self.validation,
            **{f"test_{name}": value for name, value in self.test.items()},
            "steps": self.steps,
            "start": self.start,
            "wall_s": self.wall_s,
            "error": self.error,
            "data": self.data,
        }


_SHAPE = tuple(field.name for field in fields(Architecture))
_COSTS = tuple(field.name for field in fields(Costs) if field.name != "uncounted")


def _known(record: type, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(record)}
    return {name: value for name, value in values.items() if name in names}
