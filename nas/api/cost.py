"""`nas.cost`: count an architecture's costs, in total or by parts; nothing is trained."""

from pathlib import Path
from typing import Any, Literal

from nas.costs.breakdown import by_layer, by_operator, total_record
from nas.request.job import reload_task
from nas.request.resolve import architecture_of
from nas.request.text_checks import check_call


def cost(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    preset: str = "proxy",
    data: str | Path | None = None,
    by: Literal["layer", "operator"] | None = None,
) -> list[dict[str, Any]]:
    """Count the parameters, MACs and FLOPs of an architecture: one record, or one for each layer or operator.

    Raises:
        UserError: The architecture cannot be built.
    """
    check_call(task=task, topology=topology, by=by)
    task_object = reload_task(task, data)
    architecture = architecture_of(task_object, preset, arch, topology)
    if by is None:
        return [total_record(task_object, architecture)]
    return by_layer(task_object, architecture) if by == "layer" else by_operator(task_object, architecture)
