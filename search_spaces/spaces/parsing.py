"""Parse architectures and axes: "depth=7,heads=16", "recipe.lr=1e-4,1e-3"."""

from collections.abc import Iterable
from dataclasses import fields

from search_spaces.architecture.architecture import PER_BLOCK_FIELDS, Architecture, read_segments
from search_spaces.architecture.block_segments import normalize_topologies
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.spec import Scalar, parse_scalar, split_top_level


def parse_architecture(text: str, base: Architecture) -> Architecture:
    """Parse "depth=7,heads=16,topology=dca(k=2)"; other fields come from `base`, or from the model if one is given.

    "heads=8/4" sets each half of the blocks. "topology=dca/resnet" sets the topology of each half,
    "topology=dca[:2]+resnet[2:]" that of the first two blocks and of the rest.

    Raises:
        UserError: An unknown field, a duplicate field, or an invalid value.
    """
    names = [field.name for field in fields(Architecture) if field.name != "blocks"]
    changes: dict[str, int | str | tuple[int, ...]] = {}
    for part in split_top_level(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            message = f"expected FIELD=VALUE, got {part.strip()!r}. Fields: {', '.join(names)}."
            raise UserError("bad-syntax", message, option="field", value=part.strip(), choices=tuple(names))
        if name not in names:
            raise unknown_name_error("architecture field", name, names, option="field")
        if name in changes:
            message = f"field {name!r} is given twice in {text!r}."
            raise UserError("duplicate", message, option="field", value=name, text=text)
        changes[name] = _field_value(name, value)
    model = changes.get("model")
    if model and model != base.model:
        from search_spaces.models.families import base_of  # importing timm takes three seconds

        base = base_of(str(model))
    return base.with_fields(changes)


def parse_axis(text: str) -> tuple[str, tuple[Scalar, ...]]:
    """Parse "NAME=VALUE,VALUE,...": an axis and its values, numbers in increasing order.

    `SearchSpace.with_axes` checks whether the axis exists.

    Raises:
        UserError: The text is no axis, or a value is invalid or a duplicate.
    """
    name, equals, values_text = (piece.strip() for piece in text.partition("="))
    texts = [part.strip() for part in split_top_level(values_text)]
    if not name or not equals or not texts:
        message = f"an axis must be NAME=VALUE,VALUE,... such as depth=2,4,8 or recipe.lr=1e-4,1e-3, got {text!r}."
        raise UserError("bad-syntax", message, option="axis", value=text)
    values = [_axis_value(name, part) for part in texts]
    for index, value in enumerate(values):
        if value in values[:index]:
            message = f"value {texts[index]} is given twice in axis {text!r}. Remove one."
            raise UserError("duplicate", message, option=name, value=texts[index])
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        values = sorted(values, key=float)
    return name, tuple(values)


def parse_axes(texts: Iterable[str]) -> dict[str, tuple[Scalar, ...]]:
    """Parse several axes. Raises UserError as `parse_axis` does, and for duplicate axes."""
    axes: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        name, values = parse_axis(text)
        if name in axes:
            message = f"axis {name!r} is given twice. Give all its values at once: {name}=VALUE,VALUE,..."
            raise UserError("duplicate", message, option="axis", value=name)
        axes[name] = values
    return axes


def _axis_value(name: str, text: str) -> Scalar:
    if name.partition(":")[0] == "topology":
        return normalize_topologies(text)
    if name == "model":
        return text
    try:
        return parse_scalar(text)
    except UserError:
        if not name.startswith("recipe."):
            raise
        return text  # "0.9:0.95", "32-true": validated by the recipe's field


def _field_value(name: str, text: str) -> int | str | tuple[int, ...]:
    if name in ("topology", "model"):
        return text
    return read_segments(name, text) if name in PER_BLOCK_FIELDS and "/" in text else _integer(name, text)


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"{name} must be an integer, got {text!r}."
        raise UserError("bad-syntax", message, option=name, value=text) from None
