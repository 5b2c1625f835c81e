"""The named spaces. Each is laid out around a task's base architecture, so that it means the same on every task."""

from fractions import Fraction

from search_spaces.architecture import Architecture
from search_spaces.registry import Registry
from search_spaces.space import SearchSpace

SPACES = Registry("nas.spaces", "space")

_DEPTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2))
_HEADS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2))
_HEAD_DIMS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_WIRINGS = ("resnet", "grn-v1", "grn-v2", "grn-v3", "dca", "ancre", "rmt", "hyper", "denseformer")
_OPTIONS = {"dca.k": (1, 2, 4), "ancre.temperature": (0.01, 0.1), "rmt.keys": (16, 32), "hyper.streams": (2, 4)}


def depth_heads(base: Architecture) -> SearchSpace:
    """Depth against heads at a fixed head dim: heads * head_dim is not the width (leaner transformers)."""
    return SearchSpace("depth-heads", base, {"depth": _scaled(base.depth, _DEPTHS), **_heads(base)})


def head_dim(base: Architecture) -> SearchSpace:
    """Head dim against heads at a fixed depth."""
    return SearchSpace("head-dim", base, {**_heads(base), **_head_dims(base)})


def topology(base: Architecture) -> SearchSpace:
    """Every topology and its main option, at one shape; "none" is there to show what skips are worth."""
    return SearchSpace("topology", base, {"topology": ("none", *_WIRINGS), **_OPTIONS})


def joint(base: Architecture) -> SearchSpace:
    """Depth, heads, head dim and topology together."""
    shape = {"depth": _scaled(base.depth, _DEPTHS), **_heads(base), **_head_dims(base)}
    return SearchSpace("joint", base, {**shape, "topology": _WIRINGS, **_OPTIONS})


def space_named(name: str, base: Architecture) -> SearchSpace:
    """An installed space around a base, or "timm:MODEL": depth against heads of a model of timm's.

    Raises:
        UserError: An unknown space or model, or a model whose depth and heads cannot be set.
    """
    source, colon, model = name.partition(":")
    if source == "timm" and colon:
        return _timm(name, model)
    space = SPACES.load(name)(base)
    assert isinstance(space, SearchSpace)
    return space


def _timm(name: str, model: str) -> SearchSpace:
    from search_spaces.models.families import base_of, depths_of, heads_of  # timm takes three seconds

    return SearchSpace(name, base_of(model), {"depth": depths_of(model, _DEPTHS), "heads": heads_of(model)})


def _heads(base: Architecture) -> dict[str, tuple[int, ...]]:
    return {"heads": _scaled(base.heads, _HEADS)} if base.heads else {}


def _head_dims(base: Architecture) -> dict[str, tuple[int, ...]]:
    return {"head_dim": _scaled(base.head_dim, _HEAD_DIMS)} if base.heads else {}


def _scaled(value: int, factors: tuple[Fraction, ...]) -> tuple[int, ...]:
    return tuple(sorted({max(1, round(value * factor)) for factor in factors}))
