"""`nas.export`: export a trained network of a study to a file that other tools read."""

from pathlib import Path

from nas.api.load import load
from nas.environment.paths import DEFAULT_STORE
from nas.evaluation.retrofit import installed_reference
from nas.evaluation.saved_networks import network_folder
from nas.exporters.export import ExportReport, export_folder
from nas.request.job import reload_task
from nas.store.store import Store
from search_spaces.architecture.checkpoint import read_record
from search_spaces.support.progress import status_if_slow


def export(
    study: str,
    key: str,
    to: str | Path,
    *,
    task: str | None = None,
    data: str | Path | None = None,
    storage: str = DEFAULT_STORE,
) -> ExportReport:
    """Export the trained network of architecture KEY in STUDY to a .safetensors, .pt2 or .onnx file, and check it.

    KEY is an architecture's key or, if several seeds were trained, a row's identity; the beginning is enough. Name the
    task if it is a file of yours: a study runs no code.

    Raises:
        UserError: No such row, a network that was not saved, or an export that cannot be exact.
    """
    source_study = load(study, storage=storage)
    folder = network_folder(Store(storage), source_study.name, source_study.rows(), key)
    record = read_record(folder)
    data_source = record.settings.get("data") if data is None else data
    task_object = reload_task(
        task or installed_reference(record, folder), None if data_source is None else str(data_source)
    )
    with status_if_slow(f"exporting {to} ..."):
        return export_folder(folder, Path(to), task_object)
