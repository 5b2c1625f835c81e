"""Checks of a call's text, before PyTorch is loaded."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, get_args

from nas.budget.bounds import parse_budget
from nas.samplers.registry import check_sampler
from search_spaces.architecture.block_segments import topologies_of
from search_spaces.architecture.canonical_text import TOPOLOGIES
from search_spaces.support.errors import Kind, UserError, unknown_name_error, value_fields
from search_spaces.support.spec import MAX_INTEGER, Spec, split_top_level
from tasks.registry import check_reference

LogFormat = Literal["tensorboard"]
"""Loggers of training curves."""

ALL_TOPOLOGIES = "all"
"""Stands for every installed topology in a comparison."""

MATCH_QUANTITIES = ("params", "flops")
"""Costs that `--match` makes equal."""

_POSITIVE = ("trials", "threads", "max_steps", "batch", "examples", "tokens")
LEAST = {"seed": 0, "seeds": 0, "tune_trials": 2, **dict.fromkeys(_POSITIVE, 1)}
"""Minimum of each parameter."""

MOST = {"trials": 10**6, "seeds": 10**4, "tune_trials": 10**4, "threads": 10**4, "batch": 10**6}
"""Maximum of each parameter; others have MAX_INTEGER, the largest integer in a Row."""

WORDS = {
    "save_models": ("front", "all", "none"),
    "by": ("layer", "operator"),
    "log": get_args(LogFormat),
    "match": MATCH_QUANTITIES,
}
"""Allowed words of each parameter."""


def pairs_of(settings: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return field -> value of `--set`. Raises UserError for text without FIELD=VALUE, or a repeated field."""
    return _pairs(settings) if isinstance(settings, str) else dict(settings)


def _pairs(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for part in split_top_level(text) if text.strip() else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            message = f"--set must be FIELD=VALUE,..., got {part.strip()!r}. Fields: `nas list presets`."
            raise UserError("bad-syntax", message, option="--set", value=part.strip())
        if name in settings:
            raise UserError("duplicate", f"--set {text!r} sets {name!r} twice.", option="--set", value=name)
        settings[name] = value
    return settings


def as_list(texts: str | Sequence[str] | None) -> list[str]:
    """Return one text or several as a list."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def parse_topologies(topologies: str | Sequence[str]) -> list[str]:
    """Return the topologies of a comparison, or `ALL_TOPOLOGIES`. Raises UserError if there are none."""
    texts = split_top_level(topologies) if isinstance(topologies, str) else topologies
    names = [text.strip() for text in texts if text.strip()]
    if not names:
        message = f"--topology must name at least one topology, got {topologies!r}."
        raise UserError("missing-value", message, option="--topology", value=topologies)
    return names


def check_call(**options: Any) -> None:
    """Raise UserError for an invalid value of an option; skip options that are None.

    Checks ranges of numbers, words, names of tasks, topologies and samplers, budgets, settings and URLs.
    """
    for name, value in options.items():
        if value is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        if name in _CHECKS:
            _CHECKS[name](value)
        if name in LEAST:
            check_number(name, value)
        if name in WORDS and value not in WORDS[name]:
            raise unknown_name_error(flag, str(value), WORDS[name])


def check_number(name: str, value: object) -> None:
    """Raise UserError where a parameter of LEAST is no whole number in its range."""
    flag, least, most = f"--{name.replace('_', '-')}", LEAST[name], MOST.get(name, MAX_INTEGER)
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or number < least:
        message = f"{flag} must be a whole number of at least {least}, got {value!r:.40}."
        kind: Kind = "wrong-type" if number is None else "out-of-range"
        raise UserError(kind, message, option=flag, value=value, least=least)
    if number > most:
        message = f"{flag} must be at most {most}, got {value!r:.40}."
        raise UserError("out-of-range", message, option=flag, value=value, most=most)


def check_type(name: str, value: object, expected: type) -> None:
    """Raise UserError where an argument is not of the class of `nas` that it must be."""
    if not isinstance(value, expected):
        message = f"{name} must be nas.{expected.__name__}(...), got {value!r:.40}."
        raise UserError("wrong-type", message, option=name, expected=expected.__name__, **value_fields(value))


def _check_url(url: str) -> None:
    from nas.store.database import check_url  # loads SQLAlchemy

    check_url(url)


def _check_topology(text: str) -> None:
    if len(split_top_level(text)) > 1:
        message = f"--topology takes one topology here, got {text!r}. `nas compare` takes several."
        raise UserError("conflict", message, option="--topology", value=text)
    _check_segments(text)


def _check_segments(topology: str) -> None:
    for text in topologies_of(topology):
        TOPOLOGIES.check(Spec.parse(text).name)


def _check_topologies(topologies: str | Sequence[str]) -> None:
    for topology in parse_topologies(topologies):
        if topology != ALL_TOPOLOGIES:
            _check_segments(topology)


_CHECKS: Mapping[str, Callable[[Any], object]] = {
    "task": check_reference,
    "topology": _check_topology,
    "topologies": _check_topologies,
    "budget": lambda budget: parse_budget(as_list(budget)),
    "settings": pairs_of,
    "sampler": check_sampler,
    "storage": _check_url,
}
"""Parameter -> the check of its text, which raises UserError."""
