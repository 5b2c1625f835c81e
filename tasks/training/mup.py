"""The maximal update parametrization (muP): initialization and learning rates that transfer between widths.

Tensor Programs V (Yang, Hu et al., 2022, arXiv 2203.03466), table 3, for Adam. Factors are relative to a network of the
base width, for which the hyperparameters were tuned. n is the growth of a map's fan-in over the base network:

                                standard deviation    learning rate
    hidden maps                 1 / sqrt(n)           1 / n
    maps from the width to      1 / n                 1 / n
    fixed outputs (heads)
    all others                  1                     1

A side that grows with the width is found by comparing shapes with the base network, as the authors' package `mup` does.

Choices where the paper leaves room:

* The number of heads grows with the width and their size is fixed, so the paper's attention scale 1 / head_dim stays.
* Weights are initialized as usual, then scaled to the table's factor times the base network's measured deviation.
  Constant weights are only multiplied by the factor.
* Weight decay is divided by the factor of the learning rate, as in `mup`'s AdamW, so that a step decays equally.
* The table is ambiguous for tied embeddings. They count as "all others", and the head's 1 / n moves to the gain of the
  norm before it, which gives the same network.
* A topology's weights outside linear maps are "all others", like gains. For a vector that is contracted with the stream
  (queries of attention residuals) the table would use the head's factors: `nas check-mup` shows the effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from search_spaces.layers.stack import Stack
from search_spaces.support.errors import UserError

LINEAR_MAPS = (nn.Linear, nn.Conv1d, nn.Conv2d)
"""Modules whose weight [O, I, ...] maps I to O."""


@dataclass(frozen=True, slots=True)
class MupFactors:
    """Factors of a parameter's initialization and learning rate, relative to the base network.

    Attributes:
        deviation: Factor of the initialization's standard deviation.
        rate: Factor of the learning rate; weight decay is divided by it.
    """

    deviation: float = 1.0
    rate: float = 1.0


def mup_factors(network: nn.Module, base: nn.Module) -> dict[str, MupFactors]:
    """Return parameter name -> factors, by comparing shapes with the network of the base width.

    Raises:
        UserError: Embeddings are tied to the head, and the norm before the head has no gain.
    """
    shapes = {name: parameter.shape for name, parameter in base.named_parameters()}
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    by_name = dict.fromkeys(shapes, MupFactors())
    for name, module in network.named_modules():
        weight = f"{name}.weight"
        if not isinstance(module, LINEAR_MAPS):
            continue
        if id(module.weight) in tables:
            by_name |= _final_norm_factors(network, module.weight.shape[1] / base.get_parameter(weight).shape[1])
            continue
        grows, growth = (module.weight.shape[side] / shapes[weight][side] for side in (0, 1))
        if growth != 1:
            by_name[weight] = MupFactors(growth**-0.5 if grows != 1 else 1 / growth, 1 / growth)
    return by_name


def _final_norm_factors(network: nn.Module, growth: float) -> dict[str, MupFactors]:
    """Return the factors of the final norm of a network's last stack."""
    stacks = [(name, module) for name, module in network.named_modules() if isinstance(module, Stack)]
    names = [f"{name}.norm.{gain}" for name, stack in stacks[-1:] for gain, _ in stack.norm.named_parameters()]
    if not names:
        message = "muP needs an untied head or a norm before it, got a head tied to the embedding. Use standard."
        raise UserError("unsupported", message, option="parametrization", value="mup", needs="head")
    return dict.fromkeys(names, MupFactors(1 / growth, 1 / growth))


@torch.no_grad()
def rescale_weights(network: nn.Module, base: nn.Module, factors: Mapping[str, MupFactors]) -> None:
    """Rescale initialized weights, in place, to the deviations of their factors."""
    base_parameters = dict(base.named_parameters())
    for name, parameter in network.named_parameters():
        deviation, target = (weights.float().std(correction=0).item() for weights in (parameter, base_parameters[name]))
        parameter.mul_(factors[name].deviation * (target / deviation if deviation > 0 and target > 0 else 1.0))
