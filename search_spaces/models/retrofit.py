"""Retrofit a trained residual network with a topology that computes the same at first and can learn more.

Source: Heddes et al., DeepCrossAttention (2025), table 4. A topology that starts as the residual network does so for
any weights of its layers. Some do so only if all layers norm their inputs, and then up to the norms' epsilon. The
layers' weights are copied, and the topology's own are initialized as in a new network. With an input mode per port,
queries, keys and values each get a copy of the norm and their part of the projection.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import topologies_of
from search_spaces.architecture.checkpoint import Record, load_weights, read_record, read_weights
from search_spaces.layers.attention import PortProjection, split_ports
from search_spaces.layers.stack import Stack, site_of
from search_spaces.support.errors import UserError
from search_spaces.topologies import registry
from search_spaces.topologies.base import Topology
from search_spaces.topologies.registry import resolve_topology

Build = Callable[[Architecture], nn.Module]


def retrofit(weights: Mapping[str, Tensor], architecture: Architecture, topology: str, build: Build) -> nn.Module:
    """Build a network with another topology that computes the same as the residual network with these weights.

    `architecture` is the residual network's; `build` makes the network of an architecture (a task's `build`).

    Raises:
        UserError: `architecture` is no residual network, the topology does not start as one, or the weights do not fit.
    """
    error = refusal(architecture, topology)
    if error is not None:
        raise error
    model = build(replace(architecture, topology=topology))
    if not _starts_as_resnet(topology) and not _layers_norm(model):
        rule = (
            f"{topology!r} starts as the residual network only if all layers declare that they normalize their inputs"
        )
        raise _starts_otherwise(rule, architecture, topology, needs="norms")
    load_weights(model, {**_topology_weights(model), **adapt_weights(weights, model)}, "the checkpoint")
    return model


def retrofit_checkpoint(source: Path, topology: str, build: Build) -> tuple[nn.Module, Record]:
    """Retrofit the network of a checkpoint; return it, and the checkpoint's record with the new topology.

    Raises:
        UserError: As `retrofit`, or the checkpoint cannot be read.
    """
    record = read_record(source)
    model = retrofit(read_weights(source), record.architecture, topology, build)
    return model, replace(record, architecture=replace(record.architecture, topology=topology))


def refusal(architecture: Architecture, topology: str) -> UserError | None:
    """Return why a network cannot be retrofitted, or None. Raises UserError for a topology that does not exist."""
    topologies = [resolve_topology(text) for text in topologies_of(topology)]
    if architecture.topology != "resnet":
        start = architecture.topology
        message = f"only a residual network can be retrofitted, got topology {start!r}. Train one first."
        return UserError("unsupported", message, option="topology", value=start, needs="resnet")
    if any(kind.input_mode_of(options) == "heads" for kind, options in topologies):
        rule = "works in head space: its layers lack the projections that the weights belong to"
        return UserError("unsupported", f"{topology!r} {rule}.", option="topology", value=topology, needs="projections")
    if not all(kind.equals_resnet_with_norms(options) for kind, options in topologies):
        rule = f"{topology!r} does not start as the residual network, for any weights of its layers"
        return _starts_otherwise(rule, architecture, topology)
    return None


def _starts_otherwise(rule: str, architecture: Architecture, topology: str, **fields: str) -> UserError:
    examples = _alternatives(architecture)
    remedy = f" Choose for example {', '.join(examples)}." if examples else ""
    return UserError("unsupported", f"{rule}.{remedy}", option="topology", value=topology, choices=examples, **fields)


def _alternatives(architecture: Architecture) -> tuple[str, ...]:
    """Return for each usable topology its first text, defaults before axes, that starts as the residual network."""
    examples = []
    for texts in registry.compatible_topologies(architecture).values():
        examples += [text for text in texts if text != architecture.topology and _starts_as_resnet(text)][:1]
    return tuple(examples)


def _starts_as_resnet(topology: str) -> bool:
    return all(kind.equals_resnet(options) for kind, options in map(resolve_topology, topologies_of(topology)))


def _layers_norm(model: nn.Module) -> bool:
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    return bool(stacks) and all(site_of(layer).norms_input for stack in stacks for layer in stack.layers)


def _topology_weights(model: nn.Module) -> dict[str, Tensor]:
    return {
        name: tensor
        for prefix, module in model.named_modules()
        if isinstance(module, Topology)
        for name, tensor in module.state_dict(prefix=f"{prefix}.").items()
    }


def adapt_weights(weights: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Rename and split weights for a network whose input mode is per port."""
    state = dict(weights)
    for name, module in model.named_modules():
        if isinstance(module, PortProjection):
            inside = {key: state.pop(key) for key in weights if key.startswith(f"{name}.")}
            split = split_ports({key.removeprefix(f"{name}."): tensor for key, tensor in inside.items()})
            state |= {f"{name}.{key}": tensor for key, tensor in split.items()}
    return state
