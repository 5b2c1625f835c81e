"""Proposers from text: an installed name, or the import path of a proposer or an Optuna sampler."""

import importlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any, final

from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler

from nas.samplers.optuna_samplers import OptunaSampler
from nas.samplers.proposer import Proposer, SearchState
from nas.samplers.registry import SAMPLERS
from search_spaces.support.errors import UserError, cause_fields, reason_of, unknown_name_error, value_fields


def load_proposer(text: str) -> Proposer:
    """Return the proposer of an installed name, or of "package.module:Class".

    An Optuna sampler is constructed anew for each proposal, with `seed` if it takes one. Its proposals are moved to the
    nearest untried candidate, so they are always within the budget.

    Raises:
        UserError: The name is unknown, or the path cannot be imported, is not a sampler or cannot be constructed.
    """
    if ":" in text:
        return CheckedProposer(text, _make_proposer(text, _import(text)))
    proposer = _make_proposer(text, SAMPLERS.load(text))
    return proposer if SAMPLERS.is_builtin(text) else CheckedProposer(text, proposer)


@final
class CheckedProposer(Proposer):
    """A plug-in's proposer: turns its exceptions into UserErrors, and checks its proposals."""

    def __init__(self, text: str, inner: Proposer) -> None:
        self._text = text
        self._inner = inner

    def propose(self, state: SearchState) -> int:
        """Choose as the inner proposer does.

        Raises:
            UserError: It failed (CMA-ES, for one, takes a single objective), or chose an invalid candidate.
        """
        try:
            index = self._inner.propose(state)
        except UserError:
            raise
        except Exception as error:  # a plug-in may raise anything
            message = f"sampler {self._text!r} failed: {reason_of(error).rstrip('.')}. Choose another one."
            raise UserError("bad-plugin", message, **_origin(self._text, error)) from error
        is_candidate = index in state.new or index in state.repeatable
        if not is_candidate and not state.coordinates.is_new(index):
            raise UserError(
                "bad-plugin",
                f"sampler {self._text!r} must propose an untried candidate or one that may get another seed, "
                f"got {index!r}.",
                sampler=self._text,
                **value_fields(index),
            )
        return index


def _make_proposer(text: str, entry: Any) -> Proposer:
    if inspect.isclass(entry) and issubclass(entry, BaseSampler):
        _try(text, lambda: _with_seed(entry, 0))
        return OptunaSampler(lambda seed: _with_seed(entry, seed), infers=True)
    if not callable(entry):
        raise _no_sampler(text, entry)
    proposer = _try(text, entry)
    if not isinstance(proposer, Proposer):
        raise _no_sampler(text, entry)
    return proposer


def _import(text: str) -> Any:
    path, _, name = text.partition(":")
    try:
        module = importlib.import_module(path)
    except UserError as error:
        fields = {**error.fields, "plugin": text, "place": path}
        raise UserError(error.kind, f"sampler {text!r}: {error}", **fields) from error
    except Exception as error:  # a plug-in may raise anything
        remedy = "Give MODULE:CLASS of an installed module; for a module in this folder, set PYTHONPATH=. as well."
        message = f"sampler {text!r} could not be imported: {reason_of(error)}. {remedy}"
        raise UserError("bad-plugin", message, **_origin(text, error)) from error
    if not hasattr(module, name):
        choices = [
            member for member, value in [*vars(module).items()] if member[0] != "_" and _may_be_sampler(value, path)
        ]
        if not choices:
            message = f"module {path} has no samplers, got {name!r}. Optuna's are optuna.samplers:NAME."
            raise UserError("unknown-name", message, option="sampler", value=name, choices=(), module=path)
        raise unknown_name_error("sampler", name, choices, of=path)
    return getattr(module, name)


def _may_be_sampler(value: Any, path: str) -> bool:
    """Return whether a module's value is a sampler class, or its own class or function that may return one."""
    if inspect.isclass(value) and issubclass(value, BaseSampler):
        return not inspect.isabstract(value)
    return callable(value) and (hasattr(value, "propose") or getattr(value, "__module__", None) == path)


def _with_seed(sampler: type[BaseSampler], seed: int) -> BaseSampler:
    takes = inspect.signature(sampler).parameters
    with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):  # chosen by name
        return sampler(seed=seed) if "seed" in takes else sampler()  # type: ignore[call-arg]  # the base class takes none


def _try(text: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except UserError:
        raise
    except Exception as error:
        message = f"sampler {text!r} could not be constructed: {reason_of(error)}"
        raise UserError("bad-plugin", message, **_origin(text, error)) from error


def _origin(text: str, error: BaseException) -> dict[str, Any]:
    """Return the fields of an error in a plug-in's sampler: its name, and the exception with its location."""
    return {**cause_fields(error), "sampler": text}


def _no_sampler(text: str, entry: Any) -> UserError:
    rule = "must be an Optuna sampler class, a nas.samplers.proposer.Proposer or a function that returns a Proposer"
    return UserError("bad-plugin", f"sampler {text!r} {rule}, got {entry!r}.", sampler=text, **value_fields(entry))
