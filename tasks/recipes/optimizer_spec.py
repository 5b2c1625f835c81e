"""Which optimiser a recipe names: "adamw", "sgd(momentum=0.9)", "galore(rank=64)". Loads no torch.

Options that are not named are torch's own defaults; GaLore's are those of its paper's code, which torch has not.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final, Literal

from search_spaces.support.errors import UserError, unknown
from search_spaces.support.spec import Spec
from tasks.recipes.settings import AtLeastOne, BelowOne, Positive, override


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam whose weight decay is apart from the gradient (Loshchilov and Hutter, 2019)."""


@dataclass(frozen=True, slots=True)
class Adam:
    """Kingma and Ba (2015); weight decay is added to the gradient."""


@dataclass(frozen=True, slots=True)
class SGD:
    """Stochastic gradient descent; weight decay is added to the gradient.

    Attributes:
        momentum: Share of the last step's direction that is kept.
        nesterov: Whether the gradient is looked at ahead of it.
    """

    momentum: BelowOne = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            message = "sgd(nesterov=true) must have a momentum, got 0. Take sgd(momentum=0.9,nesterov=true)."
            raise UserError("missing-value", message, option="momentum", value=self.momentum, needed_by="nesterov")


@dataclass(frozen=True, slots=True)
class GaLore:
    """AdamW on gradients that are projected to few dimensions (Zhao et al., 2024), for the maps of hidden layers.

    Attributes:
        rank: Dimensions that are kept of the smaller side of a map; all of a side that has fewer.
        gap: Steps from one projection to the next.
        scale: Of the update that is projected back, beside the learning rate.
    """

    rank: AtLeastOne = 128
    gap: AtLeastOne = 200
    scale: Positive = 0.25


@dataclass(frozen=True, slots=True)
class Muon:
    """Momentum whose matrices are made orthogonal (Jordan et al., 2024), for the maps of hidden layers.

    Attributes:
        momentum: Share of the last steps' direction that is kept.
        adjust: How the learning rate is fitted to a matrix's shape, by torch's name of it: so that entries move as
            AdamW's do (Liu et al., 2025), which lets both have one rate, or as Jordan has it.
    """

    momentum: BelowOne = 0.95
    adjust: Literal["match_rms_adamw", "original"] = "match_rms_adamw"


Choice = AdamW | Adam | SGD | GaLore | Muon

CHOICES: Final[Mapping[str, Choice]] = {
    "adamw": AdamW(),
    "adam": Adam(),
    "sgd": SGD(),
    "galore": GaLore(),
    "muon": Muon(),
}


def read_choice(text: str) -> Choice:
    """Read "name" or "name(option=value,...)".

    Raises:
        UserError: The text is neither, or there is no such optimiser or option, or not with that value.
    """
    spec = Spec.parse(text)
    if spec.name not in CHOICES:
        raise unknown("optimizer", spec.name, CHOICES)
    if spec.options and not fields(CHOICES[spec.name]):
        message = f"optimizer {spec.name} has no options, got {text!r}. Leave them out."
        raise UserError("unsupported", message, option="optimizer", value=text)
    return override(CHOICES[spec.name], spec.options, f"optimizer {spec.name}")


def canonical(text: str) -> str:
    """The one text of an optimiser: options in alphabetical order, those left out that are as they would be anyway.

    Raises:
        UserError: As `read_choice`.
    """
    choice = read_choice(text)
    name = Spec.parse(text).name
    usual = asdict(CHOICES[name])
    return str(Spec(name, {option: value for option, value in asdict(choice).items() if value != usual[option]}))
