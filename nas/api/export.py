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
from search_spaces.support.files import atomic_write, unwritable
from search_spaces.support.progress import status_if_slow


def export(
    study: str,
    key: str,
    to: str | Path,
    *,
    task: str | None = None,
    data: str | Path | None = None,
    card: bool = False,
    storage: str = DEFAULT_STORE,
) -> ExportReport:
    """Export the trained network of architecture KEY in STUDY to a .safetensors, .pt2 or .onnx file, and check it.

    KEY is an architecture's key or, if several seeds were trained, a row's identity; the beginning is enough. Name the
    task if it is a file of yours: a study runs no code. `card` also writes a model card, FILE.md.

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
        report = export_folder(folder, Path(to), task_object)
    if card:
        from nas.exporters.card import card_path, model_card  # huggingface_hub's cards take a tenth of a second

        row = next(row for row in source_study.rows() if row.identity() == record.settings["identity"])
        path = card_path(report.file)
        try:
            atomic_write(path, model_card(row, report).encode())
        except OSError as error:
            raise unwritable(path, error, "--card") from error
    return report
