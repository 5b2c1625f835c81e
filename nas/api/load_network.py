"""`nas.load_network`: a trained network as a module, with its preprocessing."""

from pathlib import Path

from nas.api.load import load
from nas.environment.paths import DEFAULT_STORE
from nas.evaluation.retrofit import origin_of
from nas.evaluation.saved_networks import read_network, rows_with_network
from nas.evaluation.trained_network import TrainedNetwork
from nas.report.study import Study
from nas.request.job import text_of
from nas.store.store import Store
from results.records.row import Row
from search_spaces.architecture.checkpoint import RECORD
from search_spaces.support.errors import UserError


def load_network(
    source: str | Path | None = None,
    key: str | None = None,
    *,
    task: str | None = None,
    data: str | Path | None = None,
    storage: str = DEFAULT_STORE,
) -> TrainedNetwork:
    """Load a trained network in evaluation mode, on the CPU, with its task's preprocessing.

    `source` is a folder of a trained network, or a study; by default the newest search. `key` is an architecture's key
    or a row's identity, or the beginning of either; by default the knee point of the study's front. Of several seeds,
    the best on validation is loaded. Name the task if it is a file of yours: a study runs no code.

    Raises:
        UserError: No such study, row or network, or a network of another task or version.
    """
    folder = None if source is None else Path(source)
    if key is None and folder is not None and (folder / RECORD).exists():
        return network_in(folder, task, data)
    if folder is not None and folder.suffix in (".pt2", ".onnx", ".safetensors"):
        message = (
            f"load_network takes a study or a folder of a trained network, got {source}. Use nas.predict for a graph."
        )
        raise UserError("unsupported", message, option="source", path=str(source))
    if isinstance(source, Path):
        message = f"{source} must be a folder that `nas evaluate --save` wrote, got one without {RECORD}."
        raise UserError("missing-file", message, option="source", path=str(source))
    store = Store(storage)
    best, *_ = seeds_of(load(source, storage=storage), key, store)
    return network_in(store.network(best.identity()), task, data)


def network_in(folder: Path, task: str | None, data: str | Path | None) -> TrainedNetwork:
    """Load the network of a folder; `task` names its task if that is in a file.

    Raises:
        UserError: The folder is no checkpoint, or one of another task or version.
    """
    origin = origin_of(folder, task, None, text_of(data))
    return TrainedNetwork(read_network(folder, origin.task), origin.task)


def seeds_of(study: Study, key: str | None, store: Store) -> list[Row]:
    """Return the rows of an architecture's trained networks, the best first: that of a key, or of the front's knee.

    Raises:
        UserError: There is no such row, or no network was saved.
    """
    if key is None:
        front = study.front()
        if not front:
            raise study.missing_rows_error()
        key = str(front.knees()[0].record["key"])
    return rows_with_network(store, study.name, study.rows(), key)
