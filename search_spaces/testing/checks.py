"""The contract checks of topologies; `search_spaces.testing.contract.check_topology` runs them.

Each raises a ContractError with the rule and what was expected.

Shapes: B = batch, N = tokens, D = width.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.canonical_text import defaults_of
from search_spaces.layers.stack import Stack
from search_spaces.models.retrofit import adapt_weights
from search_spaces.support.errors import UserError, check_rule
from search_spaces.support.source_text import option_defaults
from search_spaces.testing.small_networks import (
    TOKENS,
    WIDTH,
    dense,
    echoes,
    embeddings,
    perturb,
    stray_tensors,
    transformer,
    transformer_spec,
    without_epsilon,
)
from search_spaces.testing.subject import Subject, require_close
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import build_topology, count_topology
from search_spaces.topologies.registry import check_axes
from search_spaces.topologies.single_stream import ResNet

_SHAPES = ((3, 4, 4), (1, 4, 4), (3, 6, 4))
"""Depth, heads and head dim of the test networks; heads * head_dim is not always the width."""


def check_declarations(subject: Subject) -> None:
    """Options are frozen with defaults, `axes` have valid values, `input_mode_of` is correct."""
    kind, options = subject.kind, subject.kind.Options
    check_rule(kind.__doc__, "is-documented", "the docstring must give the equation and its source")
    check_rule(is_dataclass(options), "options-are-a-dataclass", f"Options must be a dataclass, got {options!r}")
    frozen = vars(options)["__dataclass_params__"].frozen
    check_rule(frozen, "options-are-frozen", "Options must be frozen: options are part of an architecture")
    options()  # every option has a default, so the name alone is valid
    declared_defaults, source_defaults = defaults_of(options), option_defaults(kind.__module__, kind.__name__)
    message = f"the source code must show the options' defaults, {declared_defaults}, got {source_defaults}"
    check_rule(source_defaults in (None, declared_defaults), "source-tells-defaults", message, value=source_defaults)
    message = f"axes must be options {sorted(declared_defaults)}, got {sorted(kind.axes)}"
    check_rule(set(kind.axes) <= declared_defaults.keys(), "axes-are-options", message, axes=tuple(kind.axes))
    check_axes(kind, subject.name)
    for operator, handler in kind.handlers.items():
        message = f"handlers must be named after operators such as aten::lstm, got {operator!r}"
        check_rule("::" in operator, "handlers-are-of-operators", message, operator=operator)
        message = f"the handler of {operator} must be a function or None"
        check_rule(handler is None or callable(handler), "handlers-are-functions", message, operator=operator)
    mode = kind.input_mode_of(subject.options)
    input_mode = transformer(*subject.topology, *_SHAPES[0]).topology.input_mode_at(0)
    message = f"the input mode must be that of `input_mode_of`, {mode!r}, got {input_mode!r}"
    check_rule(input_mode == mode, "delivers-what-it-says", message, delivered=mode, input_mode=input_mode)


def check_refusals(subject: Subject) -> None:
    """Refusals are one-line reasons, and everything else can be built."""
    for width, heads, head_dim in ((16, 4, 4), (16, 0, 0), (16, 3, 5), (7, 2, 4)):
        network = Architecture(depth=2, width=width, hidden=8, heads=heads, head_dim=head_dim)
        reason = subject.kind.incompatibility_reason(network, subject.options)
        if reason is None:
            dense_sites = StackSpec((Site(("x",), width, True),) * 2, width, 0, hidden=(8, 8))
            build_topology(
                *subject.topology, transformer_spec(subject.kind, 2, width, heads, head_dim) if heads else dense_sites
            )
            continue
        check_rule(
            isinstance(reason, str),
            "reason-is-text",
            f"incompatibility_reason must return None or text, got {reason!r}",
        )
        check_rule(reason.strip(), "reason-is-not-empty", "a reason must not be empty")
        check_rule("\n" not in reason, "reason-is-one-line", f"a reason must be one line, got {reason!r}")


def check_output_shape(subject: Subject) -> None:
    """Outputs keep the shape [B, N, D] for any depth and heads, and [B, D] unless refused."""
    for shape in _SHAPES:
        features = transformer(*subject.topology, *shape)(*embeddings())
        output_shape, at = tuple(features.shape), _describe(shape)
        check_rule(
            output_shape == (2, TOKENS, WIDTH),
            "shape-is-kept",
            f"{at}: the output shape must be (2, 5, 16), got {output_shape}",
            shape=output_shape,
        )
        check_rule(features.isfinite().all(), "features-are-finite", f"{at}: features must be finite")
    for depth in () if subject.needs_heads else (1, 3):
        features = dense(*subject.topology, depth)(torch.randn(2, WIDTH).double())
        output_shape = tuple(features.shape)
        message = f"without tokens: the output shape must be (2, 16), got {output_shape}"
        check_rule(output_shape == (2, WIDTH), "shape-is-kept-without-tokens", message, shape=output_shape)


def check_every_parameter_learns(subject: Subject) -> None:
    """Three steps of gradient descent change every parameter of the topology and every matrix of the layers."""
    for depth in (1, 3):
        stack = transformer(*subject.topology, depth, 4, 4)
        optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
        topology_parameters = {
            name: parameter for name, parameter in stack.topology.named_parameters() if name not in subject.still
        }
        # The layers' vectors are left out: for example, biases of keys have no effect in attention.
        parameters = topology_parameters | {
            name: parameter for name, parameter in stack.layers.named_parameters() if parameter.ndim > 1
        }
        start = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        inputs = embeddings()
        target = torch.randn_like(inputs[0])
        for _ in range(3):
            optimizer.zero_grad()
            (stack(*inputs) - target).square().mean().backward()
            optimizer.step()
        constant = [name for name, parameter in parameters.items() if torch.equal(parameter, start[name])]
        message = f"at depth {depth} no gradient reaches {', '.join(constant)}"
        check_rule(not constant, "parameters-learn", message, depth=depth, parameters=tuple(constant))


def check_closed_form(subject: Subject) -> None:
    """`count` gives the topology's parameters, and its MACs at one position."""
    for depth, width, heads, head_dim in ((3, 12, 3, 4), (3, 12, 5, 4), (1, 24, 2, 4)):
        with torch.device("meta"):
            stack = echoes(*subject.topology, depth, width=width, heads=heads, head_dim=head_dim)
            inputs = torch.empty(1, 7, width).double(), torch.empty(7, width).double()
        form = count_topology(*subject.topology, transformer_spec(subject.kind, depth, width, heads, head_dim))
        params = sum(parameter.numel() for parameter in stack.parameters())
        macs = subject.count_macs(stack, inputs)
        at = f"{_describe((depth, heads, head_dim))}, width {width}"
        message = f"{at}: count gives {form.params} parameters, the network has {params}"
        check_rule(form.params == params, "params-are-counted", message, closed_form=form.params, counted=params)
        closed_form = 7 * form.macs
        message = f"{at}: count gives {closed_form} MACs at 7 positions, the counter gives {macs}"
        check_rule(closed_form == macs, "macs-are-counted", message, closed_form=closed_form, counted=macs)


def check_forwards_are_independent(subject: Subject) -> None:
    """State is not stored: two interleaved forwards give the same as each alone."""
    stack = perturb(transformer(*subject.topology, 3, 4, 4))
    topology, inputs, other_inputs = stack.topology, embeddings(), tuple(-2 * part for part in embeddings())
    references = stack(*inputs), stack(*other_inputs)
    first, second = topology.open(*inputs), topology.open(*other_inputs)
    for t in range(len(stack.layers)):
        y, first = stack.output(t, first)
        other_y, second = stack.output(t, second)
        first = topology.write(t, first, y)
        second = topology.write(t, second, other_y)
    message = "a forward pass must not change another one that runs at the same time"
    check_rule(torch.equal(topology.close(first), references[0]), "forwards-do-not-meet", message)
    check_rule(torch.equal(topology.close(second), references[1]), "forwards-do-not-meet", message)
    holders = [name or "the topology" for name, module in topology.named_modules() if list(stray_tensors(module))]
    message = f"modules must not keep tensors after a forward pass, got one on {', '.join(holders)}"
    check_rule(not holders, "modules-keep-no-tensor", message, modules=tuple(holders))


def check_mixing_recompute(subject: Subject) -> None:
    """Gradients are the same with `recompute_mixing`."""
    stack, inputs = perturb(transformer(*subject.topology, 3, 4, 4)), embeddings()
    gradients = []
    for recompute in (False, True):
        stack.recompute_mixing = recompute
        stack.zero_grad()
        stack(*inputs).square().mean().backward()
        gradients.append({name: p.grad.clone() for name, p in stack.named_parameters() if p.grad is not None})
    once, twice = gradients
    message = "recompute_mixing must not change which parameters have gradients"
    check_rule(once.keys() == twice.keys(), "recomputed-gradients-exist", message)
    differences = [name for name, gradient in once.items() if not torch.equal(gradient, twice[name])]
    message = f"recompute_mixing must not change gradients, got other gradients of {', '.join(differences)}"
    check_rule(not differences, "recomputed-gradients-are-equal", message, parameters=tuple(differences))


def check_positions_are_independent(subject: Subject) -> None:
    """Positions are independent: changing a token changes no other position. Padding depends on it."""
    stack = perturb(echoes(*subject.topology, 2, width=WIDTH, heads=6, head_dim=4))
    tokens, positions = embeddings()
    other_tokens = tokens.clone()
    other_tokens[:, 2] += 1
    difference = (stack(other_tokens, positions) - stack(tokens, positions)).abs().amax(dim=(0, 2))
    elsewhere = [n for n in range(TOKENS) if n != 2 and difference[n] > 0]
    message = f"positions must be independent, but changing token 2 changed positions {elsewhere}"
    check_rule(not elsewhere, "positions-do-not-meet", message, positions=tuple(elsewhere))


def check_start_equals_resnet(subject: Subject) -> None:
    """An untrained network equals the residual network where the topology claims it, always or behind norms.

    It is checked with the given options, and with each value of each axis.
    """
    for options in (subject.options, *_others(subject)):
        _check_claim(replace(subject, options=options))


def _others(subject: Subject) -> Iterator[Any]:
    """Yield the options with one axis at another value, if that combination is valid."""
    for axis, values in subject.kind.axes.items():
        for value in set(values) - {getattr(subject.options, axis)}:
            with suppress(UserError):
                yield replace(subject.options, **{axis: value})


def _check_claim(subject: Subject) -> None:
    kind, options = subject.topology
    always = kind.equals_resnet(options)
    if not always and not kind.equals_resnet_with_norms(options):
        return
    message = "equals_resnet cannot hold in head space, where layers have no projections"
    check_rule(kind.input_mode_of(options) != "heads", "resnet-has-projections", message)
    residual = ResNet, ResNet.Options()
    networks: list[tuple[Stack, Stack, tuple[Tensor, ...]]]
    networks = [
        (transformer(*residual, *shape), transformer(*subject.topology, *shape), embeddings()) for shape in _SHAPES
    ]
    if always and not subject.needs_heads:
        networks.append((dense(*residual, 3), dense(*subject.topology, 3), embeddings()[:1]))
    for resnet, stack, inputs in networks:
        stack.layers.load_state_dict(adapt_weights(resnet.layers.state_dict(), stack.layers))
        if not always:
            without_epsilon(resnet)
            without_epsilon(stack)
        off = (stack(*inputs) - resnet(*inputs)).abs().max().item()
        claim = "equals_resnet" if always else "equals_resnet_with_norms"
        message = f"{claim} is claimed, but initial outputs differ by {off:.1e} with {options}"
        check_rule(off < 1e-11, "starts-as-claimed", message, claim=claim, difference=off, options=str(options))


def check_bf16(subject: Subject) -> None:
    """Forward and backward under bf16 autocast are finite and close to float32."""
    stack = transformer(*subject.topology, 3, 4, 4).float()
    inputs = tuple(part.float() for part in embeddings())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = stack(*inputs)
    require_close("bf16-is-near-float32", features.float(), stack(*inputs), off=0.05)
    features.float().square().mean().backward()
    parameters = {
        name: p for name, p in stack.named_parameters() if name.removeprefix("topology.") not in subject.still
    }
    bad_gradients = [name for name, p in parameters.items() if p.grad is None or not p.grad.isfinite().all()]
    message = f"the gradient of {', '.join(bad_gradients)} is missing or not finite"
    check_rule(not bad_gradients, "bf16-gradients-are-finite", message, parameters=tuple(bad_gradients))


def check_finite_at_64_blocks(subject: Subject) -> None:
    """Forward and backward under bf16 autocast are finite at 64 blocks before training."""
    stack = transformer(*subject.topology, 64, 4, 4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = stack(*(part.float() for part in embeddings()))
    features.float().square().mean().backward()
    check_rule(features.isfinite().all(), "deep-features-are-finite", "features are not finite")
    bad_gradients = [name for name, p in stack.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    message = f"the gradient of {', '.join(bad_gradients)} is not finite"
    check_rule(not bad_gradients, "deep-gradients-are-finite", message, parameters=tuple(bad_gradients))


def check_compiles_to_one_graph(subject: Subject) -> None:
    """torch.compile gives one graph with the same output, also with `recompute_mixing`."""
    stack = perturb(echoes(*subject.topology, 2, width=WIDTH, heads=6, head_dim=4))
    reference = stack(*embeddings())
    for recompute in (False, True):
        torch.compiler.reset()
        stack.recompute_mixing = recompute
        compiled_stack = torch.compile(stack, fullgraph=True, backend="eager")
        require_close("compiled-is-equal", compiled_stack(*embeddings()), reference)


def check_coefficients(subject: Subject) -> None:
    """`coefficients` are tables of rows or of square matrices, with numbers or NaN."""
    for name, table in transformer(*subject.topology, 3, 4, 4).topology.coefficients().items():
        shape = tuple(table.shape)
        message = f"coefficients {name!r} must be [rows, columns] or [rows, columns, columns], got {shape}"
        has_rows = len(shape) == 2 or (len(shape) == 3 and shape[1] == shape[2])
        check_rule(has_rows, "coefficients-have-rows", message, coefficients=name, shape=shape)
        message = f"coefficients {name!r} must be finite or NaN"
        check_rule(not table.isinf().any(), "coefficients-are-numbers", message, coefficients=name)


CONTRACT: tuple[Callable[[Subject], None], ...] = (
    check_declarations,
    check_refusals,
    check_output_shape,
    check_every_parameter_learns,
    check_closed_form,
    check_forwards_are_independent,
    check_mixing_recompute,
    check_positions_are_independent,
    check_start_equals_resnet,
    check_bf16,
    check_finite_at_64_blocks,
    check_coefficients,
)
"""All checks except that of compilation."""


def _describe(shape: tuple[int, int, int]) -> str:
    return "depth {}, {} heads of {}".format(*shape)
