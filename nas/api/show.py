"""`nas.show`: measure how each layer of a network mixes earlier outputs, and activations and gradients over depth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.evaluation.retrofit import origin_of
from nas.report.wiring.measurement import wiring_at_init, wiring_of_checkpoint
from nas.report.wiring.wiring_report import WiringReport
from nas.request.job import reload_task, text_of
from nas.request.resolve import architecture_of, parse_overrides
from nas.request.text_checks import check_call, pairs_of
from search_spaces.support.progress import status_if_slow


def show(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    checkpoint: str | Path | None = None,
    preset: str | None = None,
    settings: str | Mapping[str, Any] = "",
    seed: int = 0,
    data: str | Path | None = None,
) -> WiringReport:
    """Measure how strongly each layer of a network, and its head, reads the output of every earlier layer.

    The network is at initialization or, with `checkpoint`, trained: preset, settings and data then default to those of
    the checkpoint. The measurement takes one batch of the task's data, and includes the sizes of activations and
    gradients.

    Raises:
        UserError: An unknown preset or topology, a checkpoint of another task or architecture, or a network without
            layers that a topology connects.
    """
    check_call(task=task, topology=topology, settings=settings, seed=seed)
    if checkpoint is None:
        task_object, preset = reload_task(task, data), preset or "proxy"
        architecture = architecture_of(task_object, preset, arch, topology)
        with status_if_slow(f"measuring {architecture} ..."):
            return wiring_at_init(
                task_object, architecture, preset, parse_overrides(task_object, preset, settings), seed
            )
    origin = origin_of(Path(checkpoint), task, preset, text_of(data))
    overrides = parse_overrides(origin.task, origin.preset, {**origin.settings, **pairs_of(settings)})
    changes = ",".join(filter(None, (arch, f"topology={topology}" if topology else "")))
    with status_if_slow(f"measuring {origin.folder} ..."):
        return wiring_of_checkpoint(origin.task, origin.folder, origin.preset, overrides, changes, seed)
