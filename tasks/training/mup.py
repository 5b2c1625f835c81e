"""The maximal update parametrisation: draws and learning rates by which networks of all widths learn alike.

Tensor Programs V (Yang, Hu et al., 2022, arXiv 2203.03466), table 3, for Adam, over a network of a base width whose
hyper-parameters these are; n is by how much a map takes in more than the base network's, as width grows:

                                standard deviation    learning rate
    hidden maps                 1 / sqrt(n)           1 / n
    maps from the width to      1 / n                 1 / n
    what has no width (heads)
    all else                    1                     1

Whatever has a side that grows with width is found by comparing its shape with the base network's, as the authors'
package `mup` does. Readings taken:

* Heads become more with width and keep their size, so that the scale of attention, 1 / head_dim there, stays.
* Draws are made as the network has them, and then scaled to the deviation that the table gives to the base network's,
  measured. What is not drawn is multiplied as it is.
* Weight decay of a rate that is 1 / n is n times as large, as in `mup`'s AdamW: what a step takes away is the same.
* Where tokens are scored by their own embeddings, of which the table says two things, these are "all else", and what
  the head would have of 1 / n is in the gain of the norm before it: the same network by another place of the factor.
* A topology's weights that are no linear maps are "all else", as gains are. Where such a vector is summed over with
  the stream (the queries of attention residuals), the table would have it a head's: `nas check-mup` shows what it does.
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
class Scale:
    """What a parameter's draw and its learning rate are multiplied by, over the base network's.

    Attributes:
        deviation: The draw's.
        rate: The learning rate's, by which weight decay is divided.
    """

    deviation: float = 1.0
    rate: float = 1.0


def scales(network: nn.Module, base: nn.Module) -> dict[str, Scale]:
    """Every parameter's name -> its scale, from its shape and that which it has in the network of the base width.

    Raises:
        UserError: Tokens are scored by their own embeddings, and no norm with a gain stands before that.
    """
    shapes = {name: parameter.shape for name, parameter in base.named_parameters()}
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    by_name = dict.fromkeys(shapes, Scale())
    for name, module in network.named_modules():
        weight = f"{name}.weight"
        if not isinstance(module, LINEAR_MAPS):
            continue
        if id(module.weight) in tables:
            by_name |= _before_the_head(network, module.weight.shape[1] / base.get_parameter(weight).shape[1])
            continue
        grows, growth = (module.weight.shape[side] / shapes[weight][side] for side in (0, 1))
        if growth != 1:
            by_name[weight] = Scale(growth**-0.5 if grows != 1 else 1 / growth, 1 / growth)
    return by_name


def _before_the_head(network: nn.Module, growth: float) -> dict[str, Scale]:
    """The scales of the norm behind a network's stack."""
    stacks = [(name, module) for name, module in network.named_modules() if isinstance(module, Stack)]
    names = [f"{name}.norm.{gain}" for name, stack in stacks[-1:] for gain, _ in stack.norm.named_parameters()]
    if not names:
        message = "muP must have a head of its own or a norm before it, and here it is the embedding. Take standard."
        raise UserError("unsupported", message, option="parametrization", value="mup", needs="head")
    return dict.fromkeys(names, Scale(1 / growth, 1 / growth))


@torch.no_grad()
def redraw(network: nn.Module, base: nn.Module, factors: Mapping[str, Scale]) -> None:
    """Scale what was drawn to the deviation that it is to have."""
    base_parameters = dict(base.named_parameters())
    for name, parameter in network.named_parameters():
        deviation, target = (weights.float().std(correction=0).item() for weights in (parameter, base_parameters[name]))
        parameter.mul_(factors[name].deviation * (target / deviation if deviation > 0 and target > 0 else 1.0))
