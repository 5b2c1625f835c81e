"""The named spaces, each defined relative to a task's base architecture."""

from collections.abc import Mapping
from fractions import Fraction

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import UserError, cause_fields, reason_of
from search_spaces.support.registry import Registry
from search_spaces.support.spec import Axes, Scalar
from search_spaces.topologies.registry import axes_of_topologies, resolve_topology

SPACES = Registry("nas.spaces", "space")

_DEPTHS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2))
_HEADS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2))
_HIDDEN = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(4))
_HEAD_DIMS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


def depth_heads(base: Architecture) -> SearchSpace:
    """Depth and heads at a fixed head dim; heads * head_dim need not be the width (leaner transformers)."""
    return SearchSpace("depth-heads", base, {"depth": _scale(base.depth, _DEPTHS), **_heads(base)})


def head_dim(base: Architecture) -> SearchSpace:
    """Head dim and heads at a fixed depth."""
    return SearchSpace("head-dim", base, {**_heads(base), **_head_dims(base)})


def topology(base: Architecture) -> SearchSpace:
    """Every installed topology and its main options, at one shape; "none" shows the effect of removing skips."""
    return SearchSpace("topology", base, _wirings(axes_of_topologies(base)))


def joint(base: Architecture) -> SearchSpace:
    """Depth, heads, head dim, and the topologies with `in_joint_spaces`."""
    shape = {"depth": _scale(base.depth, _DEPTHS), **_heads(base), **_head_dims(base)}
    return SearchSpace("joint", base, {**shape, **_wirings(_joint_topologies(base))})


def per_block(base: Architecture) -> SearchSpace:
    """Heads, head dim and hidden of each block, and the topology of each group of blocks, at a fixed depth.

    There are at most four groups, with at least two blocks each. Topologies with input mode "heads" need one head dim
    in all their blocks and are left out, except the base's own.
    """
    if base.model:
        message = f"space 'per-block' needs a task's own network, got model={base.model}. Leave model out."
        raise UserError("unsupported", message, option="model", value=base.model, space="per-block")
    blocks = [base.at_block(block) for block in range(base.depth)]
    axes: dict[str, tuple[Scalar, ...]] = {}
    for field, factors in (("heads", _HEADS), ("head_dim", _HEAD_DIMS), ("hidden", _HIDDEN)):
        for number, block in enumerate(blocks if getattr(base, field) else (), 1):
            axes[f"{field}:{number}"] = _scale(getattr(block, field), factors)
    groups = max(n for n in range(1, 5) if base.depth % n == 0 and (n == 1 or base.depth >= 2 * n))
    starts = [block.topology for block in blocks[:: base.depth // groups]]
    topologies = {name: resolve_topology(name) for name in _joint_topologies(base)}
    names = [name for name, (topology, options) in topologies.items() if topology.input_mode_of(options) != "heads"]
    for number, start in enumerate(starts, 1):
        axes[f"topology:{number}"] = tuple(dict.fromkeys((*names, start)))
    return SearchSpace("per-block", base.with_fields({"topology": "/".join(starts)}), axes)


def get_space(name: str, base: Architecture) -> SearchSpace:
    """Return an installed space around a base, or "timm:MODEL": depth and heads of a timm model.

    Raises:
        UserError: An unknown space or model, a model whose depth and heads cannot be set, or a space that fails.
    """
    source, colon, model = name.partition(":")
    if source == "timm" and colon:
        return _timm(name, model)
    make = SPACES.load(name)
    try:
        space = make(base)
    except UserError:
        raise
    except Exception as error:  # plug-ins may fail in any way
        message = f"space {name!r} could not be built around base {base}: {reason_of(error)}"
        raise UserError("bad-plugin", message, option="space", value=name, **cause_fields(error)) from error
    if not isinstance(space, SearchSpace):
        message = f"space {name!r} must be a function from an Architecture to a SearchSpace, got {space!r}."
        raise UserError("bad-plugin", message, option="space", value=name, type=type(space).__name__)
    return space


def _timm(name: str, model: str) -> SearchSpace:
    from search_spaces.models.families import base_of, depths_of, heads_of  # importing timm takes three seconds

    return SearchSpace(name, base_of(model), {"depth": depths_of(model, _DEPTHS), "heads": heads_of(model)})


def _joint_topologies(base: Architecture) -> dict[str, Axes]:
    return {name: axes for name, axes in axes_of_topologies(base).items() if resolve_topology(name)[0].in_joint_spaces}


def _wirings(topologies: Mapping[str, Axes]) -> Axes:
    options = {f"{name}.{option}": values for name, axes in topologies.items() for option, values in axes.items()}
    return {"topology": tuple(topologies), **options}


def _heads(base: Architecture) -> dict[str, tuple[int, ...]]:
    return {"heads": _scale(base.heads, _HEADS)} if base.heads else {}


def _head_dims(base: Architecture) -> dict[str, tuple[int, ...]]:
    return {"head_dim": _scale(base.head_dim, _HEAD_DIMS)} if base.heads else {}


def _scale(value: int, factors: tuple[Fraction, ...]) -> tuple[int, ...]:
    return tuple(sorted({max(1, round(value * factor)) for factor in factors}))
