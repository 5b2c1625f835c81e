"""Access to the Hugging Face Hub, with errors if it is unreachable."""

import socket
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import huggingface_hub  # loads its parts lazily
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from search_spaces.support.errors import UserError
from tasks.language.shards import HubShard, TextShard


@lru_cache(maxsize=1)
def reachable() -> bool:
    """Return whether the Hub's address resolves. The Hub's own client would try for half a minute."""
    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


def go_offline_if_unreachable() -> None:
    """Restrict data sets to the local cache if the Hub is unreachable, to avoid waiting for it."""
    if not reachable():
        import datasets

        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True


def hub_file(name: str, file: str, remedy: str) -> str:
    """Return the path of one file of a model on the Hub, downloaded unless cached.

    Raises:
        UserError: The file cannot be found; the message ends with `remedy`.
    """
    try:
        return huggingface_hub.hf_hub_download(name, file, local_files_only=True)
    except (LocalEntryNotFoundError, HFValidationError):
        if not reachable():
            raise UserError(
                "unavailable",
                f"{file} of {name!r} is not in the hub's cache, and the hub is unreachable. {remedy}",
                value=name,
                file=file,
            ) from None
    try:
        return huggingface_hub.hf_hub_download(name, file)
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        message = f"cannot download {file} of {name!r} from the hub: {short_reason(error)}. {remedy}"
        raise UserError("unavailable", message, value=name, file=file, cause=type(error).__name__) from error


def hub_shards(
    name: str, subset: str | None, revision: str | None, column: str
) -> tuple[dict[str, tuple[TextShard, ...]], str]:
    """Return split -> shards of a streamed Hub data set, and its commit.

    Raises:
        UserError: The Hub is unreachable or has no such data set.
    """
    remedy = "Offline, give a folder of its files with --data."
    if not reachable():
        raise UserError("unavailable", f"data set {name!r} is on the hub, which is unreachable. {remedy}", value=name)
    import datasets  # takes a second

    try:
        commit = str(huggingface_hub.dataset_info(name, revision=revision).sha)
        streams: dict[str, Any] = datasets.load_dataset(name, subset, streaming=True, revision=commit)
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        message = f"cannot load data set {name!r} from the hub: {short_reason(error)}. {remedy}"
        raise UserError("unavailable", message, value=name, cause=type(error).__name__) from error
    return {split: _shards(stream, f"{name}/{split}", column) for split, stream in streams.items()}, commit


def hub_splits(name: str, subset: str, splits: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return column -> values for each of these splits of a small Hub data set.

    Raises:
        UserError: It is neither on the Hub nor in the local cache.
    """
    go_offline_if_unreachable()
    import datasets  # takes a second

    try:
        dataset: Mapping[str, Any] = datasets.load_dataset(name, subset)
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        remedy = "Offline, give a folder of its files with --data."
        message = f"cannot load data set {name!r}: {short_reason(error)}. {remedy}"
        raise UserError("unavailable", message, value=name, cause=type(error).__name__) from error
    return [dataset[split].to_dict() for split in splits]


def _shards(stream: Any, name: str, column: str) -> tuple[TextShard, ...]:
    count = stream.num_shards
    return tuple(HubShard(stream.shard(count, index), column, f"{name}/{index}") for index in range(count))


def short_reason(error: Exception) -> str:
    """Return the first line of an error of the Hub's client, or its class."""
    message_lines = str(error).strip().splitlines()
    return message_lines[0].rstrip(".") if message_lines else type(error).__name__
