"""`nas.export`: export a trained network of a study to a file, a folder or a repository that other tools read."""

from dataclasses import replace
from pathlib import Path

from nas.api.load import load
from nas.api.load_network import seeds_of
from nas.environment.paths import DEFAULT_STORE, slug
from nas.evaluation.retrofit import origin_of
from nas.exporters.destination import Destination
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
    """Export the trained network of architecture KEY in STUDY, and check it.

    `to` is FILE.pt2, FILE.onnx, FILE.safetensors, or a new folder: timm:FOLDER for `timm.create_model`,
    transformers:FOLDER for `AutoModelForCausalLM`. hub:USER/NAME writes the folder NAME and uploads it to the Hugging
    Face hub, with a card: for timm or transformers if the network has a counterpart there, else as network.pt2.

    The defaults are the newest search, the knee point of its front, and the file TASK-KEY.pt2. KEY is an architecture's
    key or a row's identity, or the beginning of either; of several seeds, the best on validation is exported. Exports
    include the task's preprocessing unless `raw`. Name the task if it is a file of yours: a study runs no code. `card`
    also writes a model card, FILE.md or FOLDER/README.md.

    Raises:
        UserError: No such row, a network that was not saved, an export that cannot be exact, or a failed upload, which
            leaves the folder.
    """
    store, source_study = Store(storage), load(study, storage=storage)
    row, *others = seeds_of(source_study, key, store)
    destination = Destination.parse(to or f"{slug(row.task)}-{row.architecture.key}.pt2")
    if destination.repository is not None:
        from nas.exporters.hub_upload import check_token, upload  # loads an HTTP client

        check_token()
    folder = store.network(row.identity())
    origin = origin_of(folder, task, None, text_of(data))
    with status_if_slow(f"exporting {destination.path} ..."):
        report = export_folder(folder, destination, origin.task, raw=raw)
    report = replace(report, row=row, num_seeds=1 + len(others))
    if card or destination.repository is not None:
        from nas.exporters.card import card_path, model_card  # huggingface_hub's cards take a tenth of a second

        path = card_path(destination.path)
        try:
            atomic_write(path, model_card(row, report).encode())
        except OSError as error:
            raise unwritable(path, error, "--card") from error
    if destination.repository is not None:
        return replace(report, url=upload(destination.path, destination.repository))
    return report
