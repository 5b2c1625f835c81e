"""The architecture record: what is searched over, the same network on every task."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields

from search_spaces.errors import UserError
from search_spaces.spec import Spec

_LEAST = {"depth": 1, "width": 1, "heads": 0, "head_dim": 0, "hidden": 1}
_KINDS = {int: "an integer", str: "text"}


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

    @classmethod
    def from_record(cls, values: Mapping[str, object]) -> "Architecture":
        """What was once recorded, unjudged: whether it may be was asked when it was made, by the rules of that day.

        Raises:
            ValueError: A field is missing, unknown or not of its type.
        """
        known = {field.name: field for field in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"an architecture has no field {name!r:.60}")
            kind = str if name in ("topology", "model") else int
            if type(value) is not kind:
                raise ValueError(f"{name!r} of an architecture must be {_KINDS[kind]}, got {value!r:.60}")
        architecture = object.__new__(cls)
        for name, field in known.items():
            if name not in values and field.default is MISSING:
                raise ValueError(f"an architecture needs {name!r}")
            object.__setattr__(architecture, name, values.get(name, field.default))
        return architecture

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
