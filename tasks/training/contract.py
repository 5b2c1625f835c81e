"""Checks of a task's contract: `check_task(MyTask())`.

A check that fails raises a ContractError, an AssertionError with the name of the rule.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from results.records.columns import metric_name_problem
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import ContractError, UserError, check_rule
from search_spaces.support.spec import Scalar
from search_spaces.topologies.registry import compatible_topologies
from tasks.base import FitResult, Task
from tasks.data.batches import Batch, call, describe, tensors
from tasks.data.splits import TensorSplits
from tasks.recipes.settings import override, plain_values
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.ignored_axes import ignored_axis
from tasks.training.loop import StepMetrics
from tasks.training.supervised import SupervisedTask

MAX_DUPLICATES = 0.1
"""The largest fraction of validation or test examples that may also be in train: small real data has duplicates."""


def check_task(task: Task, architecture: Architecture | None = None) -> None:
    """Run every contract check on a task, and print each.

    The checks train `architecture`, or the task's base if None. Pass a small one if the base is slow to train.
    """
    message = f"check_task takes an instance of a Task, as in check_task(MyTask()), got {task!r:.80}"
    check_rule(isinstance(task, Task), "task-is-a-task", message)
    shape = architecture or task.base
    for check in CONTRACT:
        print(f"check: {check.__name__.removeprefix('check_').replace('_', ' ')} ...", end=" ", flush=True)
        try:
            check(task, shape)
        except SystemExit as end:
            message = f"a task must not exit the program, got exit code {end.code!r}"
            raise ContractError("program-goes-on", message, code=end.code) from end
        print("ok", flush=True)


def check_metadata(task: Task, architecture: Architecture) -> None:
    """Check the name, version, metrics and presets; metrics must not take another column's name."""
    check_rule(task.name, "name-is-not-empty", "name must not be empty")
    check_rule(
        isinstance(task.version, int), "version-is-an-integer", f"version must be an integer, got {task.version!r}"
    )
    check_rule(task.version >= 1, "version-is-positive", f"version must be at least 1, got {task.version}")
    check_rule(task.metrics, "metrics-are-there", "metrics must have at least one metric")
    problem = metric_name_problem([metric.name for metric in task.metrics])
    check_rule(problem is None, "metric-names-are-free", problem or "")
    directions = {metric.direction for metric in task.metrics}
    check_rule(directions <= {"max", "min"}, "directions-are-max-or-min", "a metric's direction must be max or min")
    presets = set(task.presets)
    message = f"presets must include smoke and proxy, got {sorted(presets)}"
    check_rule({"smoke", "proxy"} <= presets, "presets-are-there", message)
    check_rule(
        set(task.bases) <= presets, "bases-are-presets", f"keys of bases must be presets, got {sorted(task.bases)}"
    )


def check_presets(task: Task, architecture: Architecture) -> None:
    """Check that presets are frozen dataclasses, print as one line, and survive a round trip through JSON."""
    for name, preset in task.presets.items():
        check_rule(
            is_dataclass(preset), "presets-are-dataclasses", f"preset {name!r} must be a dataclass, got {preset!r}"
        )
        check_rule(
            type(preset).__hash__ is not None, "presets-are-frozen", f"preset {name!r} must be a frozen dataclass"
        )
        check_rule("\n" not in str(preset), "presets-are-one-line", f"preset {name!r} must print as one line")
        values: dict[str, Any] = json.loads(json.dumps(plain_values(preset), allow_nan=False))
        again: Any = override(preset, values, f"preset {name!r}")
        message = f"preset {name!r} must equal the preset restored from its settings, got {again!r} and {preset!r}"
        check_rule(again == preset, "presets-are-their-settings", message)


def check_fingerprint(task: Task, architecture: Architecture) -> None:
    """Check that the data's fingerprint is constant, and that computing it draws no random numbers."""
    recipe = task.presets["smoke"]
    first = task.fingerprint(recipe)
    before = torch.get_rng_state()
    again = task.fingerprint(recipe)
    check_rule(first, "fingerprint-is-not-empty", "the data must have a fingerprint")
    check_rule(isinstance(first, str), "fingerprint-is-text", f"a fingerprint must be text, got {first!r}")
    message = f"the fingerprint must be constant, got {first!r} and {again!r}"
    check_rule(first == again, "fingerprint-is-constant", message)
    check_rule(
        _rng_unchanged(before), "fingerprint-draws-nothing", "computing the fingerprint must draw no random numbers"
    )


def check_no_leakage(task: Task, architecture: Architecture) -> None:
    """Check that few validation and test examples are also in train. Only for examples in memory."""
    splits_for = getattr(task, "splits_for", None)
    splits = splits_for(task.presets["smoke"]) if splits_for else None
    if not isinstance(splits, TensorSplits):
        return
    learned = {*_digests(splits.train)}
    for name, part in (("validation", splits.validation), ("test", splits.test)):
        digests = _digests(part)
        twice = sum(digest in learned for digest in digests)
        few = twice <= MAX_DUPLICATES * len(digests)
        message = f"{twice} of {len(digests)} examples of {name} are also in train"
        check_rule(few, "examples-are-held-out", message, split=name, value=twice, examples=len(digests))


def check_meta_build(task: Task, architecture: Architecture) -> None:
    """Check that the network can be built and called on the meta device, where costs are counted."""
    for base in (architecture, *task.bases.values()):
        with torch.device("meta"):
            network, inputs = task.build(base), task.example()
        parts = [*network.parameters(), *network.buffers(), *tensors(inputs)]
        on_meta = all(tensor.is_meta for tensor in parts)
        check_rule(on_meta, "default-device-is-used", "build and example must use the default device")
        with torch.no_grad():
            call(network.eval(), inputs)


def check_input_format(task: Task, architecture: Architecture) -> None:
    """Check that `preprocess` maps the input format to what the network takes."""
    if (input_format := task.input_format()) is None:
        return
    inputs, network_inputs = describe(task.preprocess(input_format.example())), describe(task.example())
    message = f"preprocess must give inputs like those of example(), {network_inputs}, got {inputs}"
    check_rule(inputs == network_inputs, "preprocess-fits-the-network", message)


def check_axes(task: Task, architecture: Architecture) -> None:
    """Check that another depth or number of heads gives another network, and another topology if there is a stack."""
    axes: dict[str, tuple[Scalar, ...]] = {"depth": (architecture.depth, architecture.depth + 1)}
    if architecture.heads:
        axes["heads"] = (architecture.heads, 2 * architecture.heads)
    with torch.device("meta"):
        has_stack = any(isinstance(part, Stack) for part in task.build(architecture).modules())
    if has_stack:
        axes["topology"] = tuple(dict.fromkeys((architecture.topology, *compatible_topologies(architecture))))
    for axis, values in axes.items():
        ignored = ignored_axis(task, SearchSpace("contract", architecture, {axis: values}))
        if ignored is not None:
            same = ignored[1]
            message = f"build() must use architecture.{axis}, got one network for {', '.join(map(str, same[:3]))}"
            raise ContractError(f"{axis}-changes-the-network", message, task=task.name, option=axis, value=same)


def check_recipes(task: Task, architecture: Architecture) -> None:
    """Check that the data allows trainings by `smoke`, and by `proxy` if it has the same data: batches and labels."""
    has_same_data = getattr(type(task), "splits_for", None) is SupervisedTask.splits_for
    for name in ("smoke", "proxy") if has_same_data else ("smoke",):
        try:
            task.check_recipe(task.presets[name])
            task.check_data(task.presets[name])
        except UserError as error:
            raise ContractError("recipes-fit-the-data", f"preset {name!r}: {error}", **error.fields) from error


def check_closed_form(task: Task, architecture: Architecture) -> None:
    """Check the closed form's parameter count, if the task has one, against the network."""
    for base in (architecture, replace(architecture, depth=architecture.depth + 1)):
        count = task.closed_form(base)
        with torch.device("meta"):
            params = sum(parameter.numel() for parameter in task.build(base).parameters())
        agree = count is None or count.params == params
        check_rule(
            agree, "params-are-counted", f"{base}: closed_form gives {count}, the network has {params} parameters"
        )


def check_reproducibility(task: Task, architecture: Architecture) -> None:
    """Check that a run is reproducible under any global state, differs from other runs, and has no side effects."""
    threads = torch.get_num_threads()
    torch.manual_seed(1)
    first, curve = _fit(task, architecture)
    _seed_all(2)
    torch.set_num_threads(threads + 1)
    try:
        before = random.getstate(), torch.get_rng_state()
        second, again = _fit(task, architecture)
        message = "training must restore the number of threads"
        check_rule(torch.get_num_threads() == threads + 1, "threads-are-given-back", message)
    finally:
        torch.set_num_threads(threads)
    message = f"two trainings with the same seed must agree, got {first} and {second}"
    check_rule(first == second, "training-is-repeatable", message)
    check_rule(curve == again, "reports-are-repeatable", "two trainings with the same seed must report the same values")
    message = "training must restore the generator of random"
    check_rule(random.getstate() == before[0], "generator-of-random-is-kept", message)
    message = "training must restore the generator of torch"
    check_rule(_rng_unchanged(before[1]), "generator-of-torch-is-kept", message)
    _check_fit_result(task, task.presets["smoke"], first, curve)
    runs = _run_variants(task, architecture)
    check_rule(
        any(_fit(task, **run) != (first, curve) for run in runs),
        "training-depends-on-its-run",
        "results must depend on seed, architecture or recipe: changing each gave the same metrics and curve",
    )


def check_stop_and_resume(task: Task, architecture: Architecture) -> None:
    """Check that STOP ends a training with the last report, and that it resumes from its folder to the same numbers."""
    with _count_steps() as all_steps:
        full, curve = _fit(task, architecture)
    if not curve:
        print("no reports,", end=" ", flush=True)
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        early, points = _fit(task, architecture, folder=folder, stop=True)
        message = f"a training must report nothing after STOP, got {points} of {curve}"
        check_rule(points == curve[:1], "stop-ends-reports", message)
        end = (early.steps, early.metrics)
        check_rule(
            end == points[0],
            "stop-gives-the-last-report",
            f"a stopped training must return its last report, got {early}",
        )
        message = f"a stopped training must not be tested, got {early.test}"
        check_rule(not early.test, "stop-tests-nothing", message)
        message = "a stopped training must save a checkpoint in run.folder"
        check_rule(any(folder.iterdir()), "stop-leaves-a-checkpoint", message)
        with _count_steps() as later_steps:
            final, again = _fit(task, architecture, folder=folder)
        files = [path.name for path in folder.iterdir()]
    message = f"a resumed training must repeat its earlier reports, got {again} of {curve}"
    check_rule(again == curve, "resumed-reports-are-equal", message)
    message = f"a resumed training must end like an uninterrupted one, got {final} and {full}"
    check_rule(final == full, "resumed-numbers-are-equal", message)
    check_rule(not files, "no-files-are-left", f"a finished training must leave no files, got {files}")
    # Steps in another process, or of an optimizer that is not torch's, are not counted.
    check_rule(
        not all_steps or len(later_steps) < len(all_steps),
        "resumed-training-goes-on",
        f"a resumed training must not start over, got {len(later_steps)} of {len(all_steps)} steps again",
    )


def check_report_exceptions(task: Task, architecture: Architecture) -> None:
    """Check that an exception from `report`, as an interrupted search raises, ends the training."""

    class Enough(Exception):
        pass

    steps: list[int] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        steps.append(step)
        raise Enough

    try:
        task.fit(Run(architecture=architecture, recipe=task.presets["smoke"], seed=0, report=report))
    except Enough:
        return
    check_rule(not steps, "report-may-raise", "an exception from report must end the training and propagate")


CONTRACT: tuple[Callable[[Task, Architecture], None], ...] = (
    check_metadata,
    check_presets,
    check_fingerprint,
    check_no_leakage,
    check_recipes,
    check_meta_build,
    check_input_format,
    check_axes,
    check_closed_form,
    check_reproducibility,
    check_stop_and_resume,
    check_report_exceptions,
)
"""All checks; each takes a task and an architecture to train."""


def _rng_unchanged(state: torch.Tensor) -> bool:
    """Return whether torch's CPU generator still has this state."""
    return torch.equal(torch.get_rng_state(), state)


def _fit(
    task: Task,
    architecture: Architecture,
    *,
    recipe: Any = None,
    seed: int = 0,
    folder: Path | None = None,
    stop: bool = False,
) -> tuple[FitResult, list[StepMetrics]]:
    """Train by the smoke preset, in a temporary folder unless one is given, to the end or to the first report."""
    curve: list[StepMetrics] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        return STOP if stop else CONTINUE

    preset = recipe or task.presets["smoke"]
    with TemporaryDirectory() as scratch:
        run = Run(architecture=architecture, recipe=preset, seed=seed, folder=folder or Path(scratch), report=report)
        fit_result = task.fit(run)
        files = [path.name for path in Path(scratch).iterdir()]
    check_rule(not files, "no-files-are-left", f"a finished training must leave no files, got {files}")
    return fit_result, curve


def _digests(part: Batch) -> list[bytes]:
    """Return a digest of each example's bytes."""
    rows = [tensor.flatten(1) if tensor.dim() > 1 else tensor[:, None] for tensor in tensors(part)]
    rows_as_bytes = torch.cat([tensor.contiguous().view(torch.uint8).flatten(1) for tensor in rows], dim=1).numpy()
    return [hashlib.sha256(line.tobytes()).digest() for line in rows_as_bytes]


def _run_variants(task: Task, architecture: Architecture) -> Iterator[dict[str, Any]]:
    """Yield another seed, a deeper architecture, and the recipe with each number doubled in turn."""
    recipe: Any = task.presets["smoke"]
    yield {"architecture": architecture, "seed": 1}
    yield {"architecture": replace(architecture, depth=architecture.depth + 1)}
    for name, value in plain_values(recipe).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and value:
            with suppress(ValueError):  # twice the value may be out of range
                yield {"architecture": architecture, "recipe": override(recipe, {name: 2 * value}, "the smoke preset")}


@contextmanager
def _count_steps() -> Iterator[list[None]]:
    """Yield a list that grows with each step of any torch optimizer."""
    steps: list[None] = []
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(None))
    try:
        yield steps
    finally:
        hook.remove()


def _seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _check_fit_result(task: Task, recipe: Any, fit_result: FitResult, curve: list[StepMetrics]) -> None:
    names = {metric.name for metric in task.metrics_for(recipe)}
    errors = {f"{name}_se" for name in names}
    check_rule(fit_result.steps >= 1, "steps-are-counted", f"steps must be at least 1, got {fit_result.steps}")
    for part, values in (("metrics", fit_result.metrics), ("test", fit_result.test)):
        complete = part == "test" or names <= set(values)
        check_rule(
            complete, "values-are-complete", f"{part} must have {sorted(names)}, got {sorted(values)}", part=part
        )
        extra = sorted(set(values) - names - errors)
        message = f"{part} must contain only metrics and their _se, got {extra}. Put these into extra_metrics"
        check_rule(not extra, "values-are-of-metrics", message, part=part, value=tuple(extra))
        finite = all(np.isfinite(value) for value in values.values())
        check_rule(finite, "values-are-finite", f"{part} must be finite, got {values}", part=part)
    for step, metrics in curve:
        within = 1 <= step <= fit_result.steps
        check_rule(
            within, "reported-steps-are-within", f"reported steps must be from 1 to {fit_result.steps}, got {step}"
        )
        message = f"a report must have {sorted(names)}, got {sorted(metrics)}"
        check_rule(names <= set(metrics), "reports-are-complete", message)
    steps = [step for step, _ in curve]
    check_rule(steps == sorted({*steps}), "reports-are-in-order", "steps must be reported in order")
