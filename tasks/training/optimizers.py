"""Optimizers of a network under its recipe, and their parameter groups."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn, optim
from torch.optim import Optimizer

from search_spaces.layers.attention import SharedProjection
from search_spaces.layers.feed_forward import FeedForward
from search_spaces.layers.stack import Stack
from search_spaces.support.errors import UserError
from search_spaces.topologies.decay import split_by_decay
from tasks.recipes.optimizer_spec import SGD, Adam, AdamW, GaLore, Muon, read_choice
from tasks.recipes.recipe import Recipe
from tasks.training.galore import EPSILON, GaLoreAdamW

Groups = list[dict[str, Any]]
NO_RATES: Mapping[str, float] = {}


def optimizers_for(network: nn.Module, recipe: Recipe, rates: Mapping[str, float] = NO_RATES) -> list[Optimizer]:
    """Return the optimizers of a recipe: one, or one for the hidden maps and AdamW for the rest.

    Args:
        network: The network to train.
        recipe: Its recipe.
        rates: Parameter name -> factor of its learning rate, if not 1. Weight decay is divided by it. A group stores
            the factor as `rate`, for later changes of the learning rate.

    Raises:
        UserError: The optimizer is for hidden linear maps, and the network has none.
    """
    groups = _by_rate(network, _by_decay(network, recipe), recipe, rates) if rates else _by_decay(network, recipe)
    usual: dict[str, Any] = {"lr": recipe.lr, "betas": recipe.betas}
    match read_choice(recipe.optimizer):
        case AdamW():
            return [optim.AdamW(groups, **usual, fused=True)]
        case Adam():
            return [optim.Adam(groups, **usual, fused=True)]
        case SGD(momentum, nesterov):
            fused = recipe.sharing != "fsdp"  # torch has no fused SGD for sharded weights
            return [optim.SGD(groups, lr=recipe.lr, momentum=momentum, nesterov=nesterov, fused=fused)]
        case GaLore(rank, gap, scale):
            hidden, others = _split_hidden(network, groups, recipe)
            galore = GaLoreAdamW(_by_maps(network, hidden), **usual, rank=rank, gap=gap, scale=scale)
            return [galore, optim.AdamW(others, **usual, eps=EPSILON, fused=True)]
        case Muon(momentum, adjust):
            hidden, others = _split_hidden(network, groups, recipe)
            muon = optim.Muon(hidden, lr=recipe.lr, momentum=momentum, adjust_lr_fn=adjust)
            return [muon, optim.AdamW(others, **usual, fused=True)]


def hidden_matrices(network: nn.Module) -> list[nn.Parameter]:
    """Return the weights [O, I] of a network's hidden linear maps, without embeddings and heads.

    These are the linear maps of its stack, including its topology's, as for weight decay. Without a stack, they are the
    linear maps between the first and the last module with a matrix.
    """
    stacks = [module for module in network.modules() if isinstance(module, Stack)]
    among = [module for stack in stacks for module in stack.modules()] or _with_matrices(network)[1:-1]
    ends = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters()
    }
    maps: list[Any] = [module for module in among if isinstance(module, nn.Linear)]
    return [module.weight for module in maps if id(module.weight) not in ends and module.weight.requires_grad]


def _with_matrices(network: nn.Module) -> list[nn.Module]:
    return [
        module
        for module in network.modules()
        if any(parameter.ndim > 1 for parameter in module.parameters(recurse=False))
    ]


def _by_decay(network: nn.Module, recipe: Recipe) -> Groups:
    decay, no_decay = split_by_decay(network, recipe.without_decay)
    return [{"params": decay, "weight_decay": recipe.weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def _by_rate(network: nn.Module, groups: Groups, recipe: Recipe, rates: Mapping[str, float]) -> Groups:
    """Split each group by the learning rate factor of its members."""
    rate_of = {id(parameter): rates.get(name, 1.0) for name, parameter in network.named_parameters()}
    return [
        {**group, "weight_decay": group["weight_decay"] / rate, "lr": recipe.lr * rate, "rate": rate}
        for rate, group in _split(groups, rate_of)
    ]


def _split(groups: Groups, keys: Mapping[int, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each group's parts of equal key, with the key; `keys` maps the ids of parameters."""
    for group in groups:
        for key in sorted({keys[id(parameter)] for parameter in group["params"]}):
            yield key, {**group, "params": [parameter for parameter in group["params"] if keys[id(parameter)] == key]}


def _split_hidden(network: nn.Module, groups: Groups, recipe: Recipe) -> tuple[Groups, Groups]:
    """Split groups into those of hidden maps and those of all other parameters."""
    hidden = {id(weight) for weight in hidden_matrices(network)}
    if not hidden:
        raise UserError(
            "unsupported",
            f"optimizer {recipe.optimizer} needs linear maps of hidden layers, and this network has none. Use adamw.",
            option="optimizer",
            value=recipe.optimizer,
        )
    return [*_select(groups, hidden, True)], [*_select(groups, hidden, False)]


def _select(groups: Groups, ids: set[int], among: bool) -> Iterator[dict[str, Any]]:
    for group in groups:
        members = [weight for weight in group["params"] if (id(weight) in ids) == among]
        if members:
            yield {**group, "params": members}


def _by_maps(network: nn.Module, groups: Groups) -> Groups:
    """Split each group by the number of maps stored in one weight: queries, keys and values, or gates.

    Published models store each in a weight of its own.
    """
    maps = {id(parameter): 1 for parameter in network.parameters()}
    for module in network.modules():
        if isinstance(module, SharedProjection):
            maps[id(module.qkv.weight)] = module.parts
        elif isinstance(module, FeedForward):
            maps[id(module.up.weight)] = module.up.out_features // module.down.in_features
    return [{**group, "maps": number} for number, group in _split(groups, maps)]
