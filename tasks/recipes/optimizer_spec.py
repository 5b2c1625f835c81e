"""The optimizer of a recipe: "adamw", "sgd(momentum=0.9)", "galore(rank=64)". Loads no torch.

Options that are not given have torch's defaults; those of GaLore, which torch lacks, have the published code's.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final, Literal

from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.spec import Spec
from tasks.recipes.settings import AtLeastOne, BelowOne, Positive, override


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (Kingma and Ba, 2015); weight decay is added to the gradient."""


@dataclass(frozen=True, slots=True)
class SGD:
    """Stochastic gradient descent; weight decay is added to the gradient.

    Attributes:
        momentum: Momentum factor.
        nesterov: Whether to use Nesterov momentum.
    """

    momentum: BelowOne = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            message = "sgd(nesterov=true) needs a momentum, got 0. Use sgd(momentum=0.9,nesterov=true)."
            raise UserError("missing-value", message, option="momentum", value=self.momentum, needed_by="nesterov")


@dataclass(frozen=True, slots=True)
class GaLore:
    """AdamW on low-rank projections of the gradient (Zhao et al., 2024), for the linear maps of hidden layers.

    Attributes:
        rank: Rank of the projection of a map's smaller side; at most that side.
        gap: Steps between updates of the projection.
        scale: Factor of the projected update, besides the learning rate.
    """

    rank: AtLeastOne = 128
    gap: AtLeastOne = 200
    scale: Positive = 0.25


@dataclass(frozen=True, slots=True)
class Muon:
    """Momentum with orthogonalized matrices (Jordan et al., 2024), for the linear maps of hidden layers.

    Attributes:
        momentum: Momentum factor.
        adjust: How the learning rate depends on a matrix's shape, by torch's name: "match_rms_adamw" matches AdamW's
            update size (Liu et al., 2025), so that both share one rate; "original" is Jordan's.
    """

    momentum: BelowOne = 0.95
    adjust: Literal["match_rms_adamw", "original"] = "match_rms_adamw"


OptimizerSpec = AdamW | Adam | SGD | GaLore | Muon

CHOICES: Final[Mapping[str, OptimizerSpec]] = {
    "adamw": AdamW(),
    "adam": Adam(),
    "sgd": SGD(),
    "galore": GaLore(),
    "muon": Muon(),
}


def read_choice(text: str) -> OptimizerSpec:
    """Parse "name" or "name(option=value,...)".

    Raises:
        UserError: The text is malformed, the optimizer or option does not exist, or a value is invalid.
    """
    spec = Spec.parse(text)
    if spec.name not in CHOICES:
        raise unknown_name_error("optimizer", spec.name, CHOICES)
    if spec.options and not fields(CHOICES[spec.name]):
        message = f"optimizer {spec.name} takes no options, got {text!r}. Remove them."
        raise UserError("unsupported", message, option="optimizer", value=text)
    return override(CHOICES[spec.name], spec.options, f"optimizer {spec.name}")


def canonical(text: str) -> str:
    """Return the canonical text of an optimizer: options in alphabetical order, without those equal to the default.

    Raises:
        UserError: As `read_choice`.
    """
    choice = read_choice(text)
    name = Spec.parse(text).name
    usual = asdict(CHOICES[name])
    return str(Spec(name, {option: value for option, value in asdict(choice).items() if value != usual[option]}))
