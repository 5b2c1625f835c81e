"""The architecture record: what a search varies, the same for every task."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from search_spaces.architecture.block_segments import canonical, check_divides, has_one_topology, segments_of
from search_spaces.support.errors import Kind, UserError, value_fields

_MIN = {"depth": 1, "width": 1, "heads": 0, "head_dim": 0, "hidden": 1}
_MAX = {"depth": 10**4}
_MAX_SIZE = 2**24  # of all other fields; far beyond any network trained
_KINDS = {int: "an integer", str: "text"}
_TEXTS = ("topology", "model", "blocks")
_OMIT_IF_EMPTY = ("model", "blocks")  # omitted from texts if empty
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

PER_BLOCK_FIELDS = ("heads", "head_dim", "hidden")
"""The fields that may differ between blocks."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One network, as flat JSON scalars.

    Attributes:
        depth: Number of blocks.
        width: Features of the residual stream, D.
        heads: Attention heads per block; 0 without attention.
        head_dim: Features of one head; heads * head_dim need not be the width. 0 without heads, and for a `model`,
            whose heads share the width.
        hidden: Hidden features of a feed-forward layer, or between the dense layers of a block.
        topology: The topology with its options: "resnet", "dca(k=2)". "dca(k=2)/resnet" divides the blocks into two
            equal segments, and "resnet[0:4]+dca(k=2)[4:12]" names their ranges. The output of a segment is the input of
            the next. Options with their default are left out, so that equal topologies have equal texts.
        blocks: Fields that differ between blocks, "" if none. "heads=8/4,hidden=64/32" gives the first half of the
            blocks 8 heads and the second half 4, and so on. The field itself is then the first block's value.
        model: A timm model, such as "xcit_medium_24_p16_224", with depth and heads changed; "" for the task's network.

    Raises:
        UserError: A number is too small, too large or no integer; only one of heads and head_dim is 0; a text cannot be
            parsed; segments do not divide the depth; ranges do not cover all blocks once; or a `model` has a head_dim,
            a topology other than "resnet" or blocks that differ. Whether the topology exists is not checked.
    """

    depth: int
    width: int
    hidden: int
    heads: int = 0
    head_dim: int = 0
    topology: str = "resnet"
    model: str = ""
    blocks: str = ""

    def __post_init__(self) -> None:
        for name, least in _MIN.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                kind: Kind = "out-of-range" if type(value) is int else "wrong-type"
                message = f"{name} must be an integer of at least {least}, got {value!r}."
                raise UserError(kind, message, option=name, value=value, least=least)
            if value > (most := _MAX.get(name, _MAX_SIZE)):
                message = f"{name} must be at most {most}, got {value}."
                raise UserError("out-of-range", message, option=name, value=value, most=most)
        if self.model and (self.heads == 0 or self.head_dim or self.topology != "resnet"):
            shape_text = f"heads={self.heads},head_dim={self.head_dim},topology={self.topology}"
            rule = f"timm model {self.model!r} has a fixed topology: heads of at least 1, head_dim=0, topology=resnet"
            message = f"{rule}, got {shape_text}. Leave model= out for other topologies."
            shape = {"heads": self.heads, "head_dim": self.head_dim, "topology": self.topology}
            raise UserError("conflict", message, option="model", value=self.model, **shape)
        if not self.model and (self.heads == 0) != (self.head_dim == 0):
            message = f"heads and head_dim must both be 0, or both be positive, got {self.heads} and {self.head_dim}."
            raise UserError("conflict", message, option="heads", value=self.heads, head_dim=self.head_dim)
        object.__setattr__(self, "topology", canonical(self.topology, self.depth))
        object.__setattr__(self, "blocks", self._canonical_blocks())

    def _canonical_blocks(self) -> str:
        differing = _read_blocks(self.blocks)
        if differing and self.model:
            message = f"blocks of timm's {self.model} must be equal, got {self.blocks}. Give each field one number."
            raise UserError("conflict", message, option="blocks", value=self.blocks, model=self.model)
        parts = []
        for name in (name for name in PER_BLOCK_FIELDS if name in differing):
            values = differing[name]
            if any(value < 1 for value in values):
                message = f"{name} of each block must be at least 1, got {_join(values)}."
                raise UserError("out-of-range", message, option=name, value=values, least=1)
            if values[0] != (value := getattr(self, name)):
                message = f"{name} must equal the first block's value in {_join(values)}, got {value}."
                raise UserError("mismatch", message, option=name, value=value, blocks=values)
            check_divides(name, values, self.depth)
            if len(shortest := _shortest(values)) > 1:
                parts.append(f"{name}={_join(shortest)}")
        return ",".join(parts)

    @classmethod
    def from_record(cls, values: Mapping[str, object]) -> "Architecture":
        """Restore an architecture from `record` without validating its values.

        Raises:
            UserError: A field is missing, unknown or of the wrong type.
        """
        names = [field.name for field in fields(cls)]
        for name, value in values.items():
            if name not in names:
                message = f"an architecture has no field {name!r:.60}"
                raise UserError("unknown-name", message, option="field", value=name, choices=tuple(names))
            kind = str if name in _TEXTS else int
            if type(value) is not kind:
                message = f"{name!r} of an architecture must be {_KINDS[kind]}, got {value!r:.60}"
                raise UserError("wrong-type", message, option=name, **value_fields(value), needs=kind.__name__)
        architecture = object.__new__(cls)
        for name in names:
            if name not in values:
                raise UserError("missing-value", f"an architecture must have {name!r}", option=name)
            object.__setattr__(architecture, name, values[name])
        return architecture

    def record(self) -> dict[str, int | str]:
        """Return all fields as JSON values, for `from_record`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def key(self) -> str:
        """Ten hex digits, equal for equal architectures on every machine where their topologies are installed."""
        text = _ENCODER.encode(self._text_fields())
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def by_block(self, field: str) -> tuple[int, ...]:
        """Return the value of a field of PER_BLOCK_FIELDS in each block."""
        values = _read_blocks(self.blocks).get(field, (getattr(self, field),))
        return tuple(value for value in values for _ in range(self.depth // len(values)))

    @property
    def segments(self) -> tuple["Architecture", ...]:
        """The segments of blocks with one topology each, as architectures of that many blocks."""
        if has_one_topology(self.topology):
            return (self,)
        segments = segments_of(self.topology, self.depth)
        return tuple(self._part(slice(segment.start, segment.stop), len(segment), text) for text, segment in segments)

    def at_block(self, block: int) -> "Architecture":
        """Return the architecture of the same depth whose blocks are all like this one, counted from 0."""
        if not self.blocks and has_one_topology(self.topology):
            return self
        topology = next(text for text, segment in segments_of(self.topology, self.depth) if block in segment)
        return self._part(slice(block, block + 1), self.depth, topology)

    def with_fields(self, changes: Mapping[str, Any]) -> "Architecture":
        """Return the architecture with fields changed; PER_BLOCK_FIELDS may be sequences, one value per equal segment.

        Raises:
            UserError: As for the class.
        """
        differing: dict[str, Sequence[int]] = dict(_read_blocks(self.blocks))
        plain = dict(changes)
        for name in PER_BLOCK_FIELDS:
            if name in plain:
                differing.pop(name, None)
                if isinstance(plain[name], Sequence):
                    differing[name] = plain[name]
                    plain[name] = plain[name][0]
        blocks = ",".join(f"{name}={_join(values)}" for name, values in differing.items())
        return replace(self, **plain, blocks=blocks)

    def __str__(self) -> str:
        differing = _read_blocks(self.blocks)
        texts = {
            name: _join(differing[name]) if name in differing else value for name, value in self._text_fields().items()
        }
        return ",".join(f"{name}={value}" for name, value in texts.items() if name != "blocks")

    def _part(self, blocks: slice, depth: int, topology: str) -> "Architecture":
        changes = {name: self.by_block(name)[blocks] for name in _read_blocks(self.blocks)}
        return self.with_fields({**changes, "depth": depth, "topology": topology})

    def _text_fields(self) -> dict[str, int | str]:
        return {name: value for name, value in self.record().items() if name not in _OMIT_IF_EMPTY or value}


def _read_blocks(text: str) -> dict[str, tuple[int, ...]]:
    """Parse "heads=8/4,hidden=64/32" to numbers."""
    differing: dict[str, tuple[int, ...]] = {}
    for part in text.split(",") if text else ():
        name, _, values = part.partition("=")
        if name not in PER_BLOCK_FIELDS or name in differing:
            kind: Kind = "duplicate" if name in differing else "unknown-name"
            message = f"blocks may set each of these once: {', '.join(PER_BLOCK_FIELDS)}, got {text!r}."
            raise UserError(kind, message, option="blocks", value=name, choices=PER_BLOCK_FIELDS)
        differing[name] = read_segments(name, values)
    return differing


def read_segments(name: str, text: str) -> tuple[int, ...]:
    """Parse one or several integers, "8/4". Raises UserError for anything else."""
    try:
        return tuple(int(value) for value in text.split("/"))
    except ValueError:
        message = f"{name} must be an integer, or several as in 8/4, got {text!r}."
        raise UserError("bad-syntax", message, option=name, value=text) from None


def _shortest(values: Sequence[Value]) -> Sequence[Value]:
    """Return the fewest values of equal segments that give each block the same value."""
    for length in (length for length in range(1, len(values)) if len(values) % length == 0):
        stride = len(values) // length
        if all(value == values[index - index % stride] for index, value in enumerate(values)):
            return values[::stride]
    return values


def _join(values: Sequence[object]) -> str:
    return "/".join(map(str, values))
