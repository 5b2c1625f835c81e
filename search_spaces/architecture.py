"""The architecture record: what is searched over, the same network on every task."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace

from search_spaces.errors import UserError, unknown
from search_spaces.spec import Spec, split_top_level

_LEAST = {"depth": 1, "width": 1, "heads": 0, "head_dim": 0, "hidden": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One network, as flat JSON scalars.

    Attributes:
        depth: Blocks.
        width: Features of the residual stream, D.
        heads: Attention heads of a block; 0 where the network has no attention.
        head_dim: Features of one head; heads * head_dim need not be the width. 0 where there are no heads, and for a
            `model`, whose heads share the width.
        hidden: Features inside a feed-forward layer, or between the dense layers of a block.
        topology: How the blocks are wired, a name with options: "resnet", "dca(k=2)".
        model: A model of timm's, "xcit_medium_24_p16_224", of which depth and heads are changed; "" for the network
            that the task has.

    Raises:
        UserError: A number is too small or not an integer, only one of heads and head_dim is 0, a `model` with a
            head_dim or another topology than "resnet", or the topology's text cannot be read. Whether that topology
            exists is not asked here.
    """

    depth: int
    width: int
    hidden: int
    heads: int = 0
    head_dim: int = 0
    topology: str = "resnet"
    model: str = ""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise UserError(f"{name} must be an integer of at least {least}, got {value!r}.")
        if self.model and (self.heads == 0 or self.head_dim or self.topology != "resnet"):
            got = f"heads={self.heads},head_dim={self.head_dim},topology={self.topology}"
            raise UserError(f"{self.model!r} has heads that share its width: head_dim=0, topology=resnet, got {got}.")
        if not self.model and (self.heads == 0) != (self.head_dim == 0):
            raise UserError(f"heads and head_dim are both 0 or neither is, got {self.heads} and {self.head_dim}.")
        object.__setattr__(self, "topology", str(Spec.parse(self.topology)))

    @property
    def key(self) -> str:
        """Ten hex digits, equal for equal architectures on every machine and in every version."""
        text = json.dumps(self._said(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self._said().items())

    def _said(self) -> dict[str, int | str]:
        """All fields, but for a model where there is none: keys are older than models."""
        return {name: value for name, value in asdict(self).items() if name != "model" or value}


def parse_architecture(text: str, base: Architecture) -> Architecture:
    """Read "depth=7,heads=16,topology=dca(k=2)"; what is not named is taken from `base`, or from a `model` that is.

    Raises:
        UserError: An unknown field, a field named twice, or a value that a field cannot have.
    """
    known = [field.name for field in fields(Architecture)]
    changes: dict[str, int | str] = {}
    for part in split_top_level(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UserError(f"expected FIELD=VALUE, got {part.strip()!r}. Fields: {', '.join(known)}.")
        if name not in known:
            raise unknown("architecture field", name, known)
        if name in changes:
            raise UserError(f"field {name!r} stands twice in {text!r}.")
        changes[name] = value if name in ("topology", "model") else _integer(name, value)
    model = changes.get("model")
    if model and model != base.model:
        from search_spaces.models.families import base_of  # timm takes three seconds

        base = base_of(str(model))
    return replace(base, **changes)  # type: ignore[arg-type]  # a mapping of mixed field types


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{name} must be an integer, got {text!r}.") from None
