"""`nas.export`: export a trained network of a study to a file that other tools read."""

from dataclasses import replace
from pathlib import Path

from nas.api.load import load
from nas.api.load_network import seeds_of
from nas.environment.paths import DEFAULT_STORE, slug
from nas.evaluation.retrofit import origin_of
from nas.exporters.export import ExportReport, export_folder
from nas.request.job import text_of
from nas.store.store import Store
from search_spaces.support.files import atomic_write, unwritable
from search_spaces.support.progress import status_if_slow


def export(
    study: str | None = None,
    key: str | None = None,
    to: str | Path | None = None,
    *,
    raw: bool = False,
    task: str | None = None,
    data: str | Path | None = None,
    card: bool = False,
    storage: str = DEFAULT_STORE,
) -> ExportReport:
    """Export the trained network of architecture KEY in STUDY to a .safetensors, .pt2 or .onnx file, and check it.

    The defaults are the newest search, the knee point of its front, and the file TASK-KEY.pt2. KEY is an architecture's
    key or a row's identity, or the beginning of either; of several seeds, the best on validation is exported. Graphs
    include the task's preprocessing unless `raw`. Name the task if it is a file of yours: a study runs no code. `card`
    also writes a model card, FILE.md.

    Raises:
        UserError: No such row, a network that was not saved, or an export that cannot be exact.
    """
    store, source_study = Store(storage), load(study, storage=storage)
    row, *others = seeds_of(source_study, key, store)
    folder, file = store.network(row.identity()), Path(to or f"{slug(row.task)}-{row.architecture.key}.pt2")
    origin = origin_of(folder, task, None, text_of(data))
    with status_if_slow(f"exporting {file} ..."):
        report = replace(export_folder(folder, file, origin.task, raw=raw), row=row, num_seeds=1 + len(others))
    if card:
        from nas.exporters.card import card_path, model_card  # huggingface_hub's cards take a tenth of a second

        path = card_path(report.file)
        try:
            atomic_write(path, model_card(row, report).encode())
        except OSError as error:
            raise unwritable(path, error, "--card") from error
    return report
