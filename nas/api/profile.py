"""`nas.profile`: measure an architecture on this device."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.costs.breakdown import total_record
from nas.costs.profile.profile import profile_largest_batch, trace_of
from nas.request.job import recipe_of, reload_task
from nas.request.resolve import architecture_of, parse_overrides
from nas.request.text_checks import check_call


def profile(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    batch: int | None = None,
    threads: int = 1,
    data: str | Path | None = None,
) -> dict[str, Any]:
    """Measure time, memory and energy of an architecture on this device, and trace its operators.

    The record also has the counts. `trace` is the file of the trace, which `nas.costs.profile.trace.operators` reads.

    Raises:
        UserError: The architecture cannot be built, or there is no memory for a single example.
    """
    check_call(task=task, topology=topology, settings=settings, batch=batch, threads=threads)
    task_object = reload_task(task, data)
    architecture = architecture_of(task_object, preset, arch, topology)
    recipe = recipe_of(task_object, preset, parse_overrides(task_object, preset, settings))
    counts = total_record(task_object, architecture)
    shape = ("task", "key", "depth", "width", "hidden", "heads", "head_dim", "topology", "model", "params", "flops")
    measurements = profile_largest_batch(
        task_object, architecture, recipe, batch, trace_of(task_object.name, architecture), threads
    )
    return {**{name: counts[name] for name in shape}, **measurements}
