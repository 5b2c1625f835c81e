"""Upload an exported folder to a repository of the Hugging Face hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub  # loads its parts lazily
from huggingface_hub.errors import HfHubHTTPError

from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow
from tasks.language.hub import reachable, short_reason

_PATIENCE_S = 30.0
"""Longest wait for an answer; the hub's client alone waits for ever."""

_HTTPError: Any = HfHubHTTPError.__mro__[1]
"""The base class of errors of the client's HTTP library, whose name differs between its versions."""

_REFUSED = (401, 403)
"""Statuses of a request that the token does not allow."""


def check_token() -> None:
    """Raise UserError if there is no token of the hub."""
    if huggingface_hub.get_token() is None:
        message = "--to hub: needs a token of the Hugging Face hub, got none. Run `hf auth login`, or set HF_TOKEN."
        raise UserError("missing-value", message, option="HF_TOKEN")


def upload(folder: Path, repository: str) -> str:
    """Upload a folder's files as one commit, and return the repository's address; a new repository is public.

    Raises:
        UserError: The hub is unreachable, does not answer in time, or refuses the upload. The folder stays.
    """
    if not reachable():
        raise _failed(folder, repository, "the hub is unreachable", problem="unreachable")
    api = huggingface_hub.HfApi()
    try:
        with status_if_slow(f"uploading {folder} to {repository} ..."), _limited_waits():
            url = api.create_repo(repository, exist_ok=True)
            api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload with nas export")
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in _REFUSED:
            reason = f"the hub refuses this token (status {status}), which needs write access to {repository}"
            raise _failed(folder, repository, reason, problem="refused", status=status) from error
        answer = (error.server_message or "no reason").splitlines()[0].rstrip(".")
        reason = f"the hub answered {status} ({answer:.200})"
        raise _failed(folder, repository, reason, problem="status", status=status, answer=answer) from error
    except (OSError, _HTTPError) as error:
        raise _failed_client(folder, repository, error, "unreachable") from error
    except (RuntimeError, ValueError) as error:  # of the client: failed storage; a refused card or name
        raise _failed_client(folder, repository, error, "client") from error
    return str(url)


@contextmanager
def _limited_waits() -> Iterator[None]:
    """Limit the waits of all the client's sessions, of which a lost connection opens another, and hide its bars."""
    bars: Any = huggingface_hub.utils  # it names them only at run time
    factory, hidden = bars._http._GLOBAL_CLIENT_FACTORY, bars.are_progress_bars_disabled()  # no function returns it

    def limited_session() -> Any:
        session = factory()
        session.timeout = _PATIENCE_S
        return session

    huggingface_hub.set_client_factory(limited_session)
    bars.disable_progress_bars()
    try:
        yield
    finally:
        huggingface_hub.set_client_factory(factory)
        if not hidden:
            bars.enable_progress_bars()


def _failed_client(folder: Path, repository: str, error: Exception, problem: str) -> UserError:
    """Return the error of an upload that ended without the hub's answer."""
    cause = type(error).__name__
    return _failed(folder, repository, f"{short_reason(error):.200} ({cause})", problem=problem, cause=cause)


def _failed(folder: Path, repository: str, reason: str, **fields: Any) -> UserError:
    """Return the error of an upload; the message says how to repeat it alone."""
    retry = f"The export stays in {folder}: retry with `hf upload {repository} {folder}`"
    message = f"{repository} cannot be uploaded: {reason}. {retry}."
    return UserError("unavailable", message, option="--to", value=repository, path=str(folder), **fields)
