"""The DiT with topology resnet equals its authors'."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.dit import DiT, ImageSpec, build_dit, count_dit, grid_positions
from search_spaces.support.count import Count
from search_spaces.testing.small_networks import perturb
from search_spaces.topologies.registry import TOPOLOGIES

Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]
PICTURES = ImageSpec((3, 8, 8), 2, 10)
SMALL = Architecture(depth=2, width=20, heads=5, head_dim=4, hidden=80)


def inputs(pictures: ImageSpec = PICTURES) -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    return torch.randn(2, *pictures.shape), torch.tensor([7, 900]), torch.tensor([3, 10])


def perturbed_dit(architecture: Architecture = SMALL) -> DiT:
    """A network with nonzero modulation and outputs."""
    torch.manual_seed(0)
    return perturb(build_dit(architecture, PICTURES)).eval()


def test_the_resnet_dit_has_the_outputs_of_diffusers() -> None:
    transformer = pytest.importorskip("diffusers.models.transformers.dit_transformer_2d")
    ours = perturbed_dit()
    theirs = transformer.DiTTransformer2DModel(
        num_attention_heads=5, attention_head_dim=4, in_channels=3, out_channels=6, num_layers=2, sample_size=8,
        patch_size=2, num_embeds_ada_norm=10,
    ).eval()  # fmt: skip
    weights, state = dict(ours.named_parameters()), theirs.state_dict()
    names = {
        "pos_embed.proj": "embedding.project",
        "proj_out_1": "head.modulation.map",
        "proj_out_2": "head.out",
    }
    for block in range(2):
        attention, feed_forward = f"stack.layers.{2 * block}", f"stack.layers.{2 * block + 1}"
        name = f"transformer_blocks.{block}"
        embedder = f"{name}.norm1.emb"
        names |= {
            f"{embedder}.timestep_embedder.linear_1": "condition.first",
            f"{embedder}.timestep_embedder.linear_2": "condition.second",
            f"{name}.attn1.to_out.0": f"{attention}.layer.out",
            f"{name}.ff.net.0.proj": f"{feed_forward}.layer.up",
            f"{name}.ff.net.2": f"{feed_forward}.layer.down",
        }
        state[f"{embedder}.class_embedder.embedding_table.weight"] = weights["condition.classes.weight"]
        for kind in ("weight", "bias"):
            for port, part in zip("qkv", weights[f"{attention}.layer.project.qkv.{kind}"].chunk(3), strict=True):
                state[f"{name}.attn1.to_{port}.{kind}"] = part
            state[f"{name}.norm1.linear.{kind}"] = torch.cat(
                [
                    weights[f"{layer}.{part}.map.{kind}"]
                    for layer in (attention, feed_forward)
                    for part in ("modulation", "gate")
                ]
            )
    for their, our in names.items():
        for kind in ("weight", "bias"):
            state[f"{their}.{kind}"] = weights[f"{our}.{kind}"].view_as(state[f"{their}.{kind}"])
    theirs.load_state_dict(state)
    for block in theirs.transformer_blocks:
        # diffusers scales its frequencies differently from DiT's authors.
        block.norm1.emb.time_proj.downscale_freq_shift = 0
    pictures, times, classes = inputs()
    pictures = pictures.double()
    with torch.no_grad():
        expected = theirs.double()(pictures, timestep=times, class_labels=classes).sample
        torch.testing.assert_close(ours.double()(pictures, times, classes), expected, rtol=1e-6, atol=1e-6)


def naive(net: DiT, picture: Tensor, time: int, label: int) -> Tensor:
    """One picture [C, H, W] by the paper's figure 3, patch by patch, head by head."""
    width, (channels, side, _), p = 20, PICTURES.shape, PICTURES.patch
    angle = [time * 10000 ** (-i / 128) for i in range(128)]
    waves = torch.tensor([math.cos(a) for a in angle] + [math.sin(a) for a in angle]).double()
    c = net.condition.second(F.silu(net.condition.first(waves))) + net.condition.classes.weight[label]
    places = [(row, column) for row in range(side // p) for column in range(side // p)]
    tokens = []
    for row, column in places:
        patch = picture[:, p * row : p * row + p, p * column : p * column + p].reshape(-1)
        position = [
            wave(place / 10000 ** (i / 5)) for place in (column, row) for wave in (math.sin, math.cos) for i in range(5)
        ]
        tokens.append(net.embedding.project(patch) + torch.tensor(position).double())
    for layer in net.stack.layers:
        shift, scale = layer.modulation.map(F.silu(c)).split(width)
        inputs = [(x - x.mean()) / (x.var(correction=0) + 1e-6).sqrt() * (1 + scale) + shift for x in tokens]
        if layer.site.attends:
            updates = []
            qkv = [layer.layer.project.qkv(x).split(width) for x in inputs]
            for q, _, _ in qkv:
                heads = []
                for h in range(5):
                    head = slice(4 * h, 4 * h + 4)
                    scores = torch.stack([q[head] @ k[head] / 2 for _, k, _ in qkv]).softmax(dim=0)
                    heads.append(sum(score * v[head] for score, (_, _, v) in zip(scores, qkv, strict=True)))
                updates.append(layer.layer.out(torch.cat(heads)))
        else:
            updates = [layer.layer.down(F.gelu(layer.layer.up(x), approximate="tanh")) for x in inputs]
        gate = layer.gate.map(F.silu(c))
        tokens = [x + gate * y for x, y in zip(tokens, updates, strict=True)]
    shift, scale = net.head.modulation.map(F.silu(c)).split(width)
    outputs = torch.empty(2 * channels, side, side).double()
    for (row, column), x in zip(places, tokens, strict=True):
        z = (x - x.mean()) / (x.var(correction=0) + 1e-6).sqrt()
        patch = net.head.out(z * (1 + scale) + shift).view(p, p, 2 * channels)
        outputs[:, p * row : p * row + p, p * column : p * column + p] = patch.permute(2, 0, 1)
    return outputs


def test_the_resnet_dit_equals_the_equations_of_the_paper() -> None:
    network = perturbed_dit().double()
    pictures, _, classes = inputs()
    # 32-bit angles, as in the authors' code
    pictures, times = pictures.double(), torch.tensor([7, 12])
    with torch.no_grad():
        expected = [naive(network, *each) for each in zip(pictures, times.tolist(), classes.tolist(), strict=True)]
        torch.testing.assert_close(network(pictures, times, classes), torch.stack(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "params", "gigaflops"), [(12, 384, 6, 32.87, 6.06), (12, 768, 12, 130.32, 23.01)]
)
def test_parameters_and_macs_are_those_of_the_paper(
    depth: int, width: int, heads: int, params: float, gigaflops: float
) -> None:
    count = count_dit(
        Architecture(depth=depth, width=width, heads=heads, head_dim=64, hidden=4 * width),
        ImageSpec((4, 32, 32), 2, 1000),
    )
    assert round(count.params / 1e6, 2) == params
    assert round(count.macs / 1e9, 2) == gigaflops  # the paper's Gflops are multiply-accumulates


def test_modulations_and_outputs_start_at_0() -> None:
    for topology in ("resnet", "hyper", "attnres", "ancre"):
        network = build_dit(replace(SMALL, topology=topology), PICTURES)
        assert not network(*inputs()).any(), topology
        for layer in network.stack.layers:
            assert not layer.gate.map.weight.any()
            assert not layer.modulation.map.weight.any()


def test_weights_start_as_the_authors_draw_them() -> None:
    torch.manual_seed(0)
    network = build_dit(
        Architecture(depth=1, width=384, heads=6, head_dim=64, hidden=1536), ImageSpec((4, 32, 32), 2, 1000)
    )
    attention, feed_forward = network.stack.layers
    for weight, out, into in (
        (network.embedding.project.weight, 384, 16),
        (attention.layer.project.qkv.weight, 1152, 384),
        (attention.layer.out.weight, 384, 384),
        (feed_forward.layer.up.weight, 1536, 384),
    ):
        assert weight.std().item() == pytest.approx((2 / (out + into)) ** 0.5, rel=0.02)
        assert weight.abs().max() <= (6 / (out + into)) ** 0.5
    for table in (network.condition.first, network.condition.second, network.condition.classes):
        assert table.weight.std().item() == pytest.approx(0.02, rel=0.02)
    biases = [p for name, p in network.named_parameters() if name.endswith("bias")]
    assert len(biases) == 13
    assert not any(bias.any() for bias in biases)


def test_positions_of_a_width_that_4_does_not_divide_end_in_zeros() -> None:
    positions = grid_positions(2, 3, 7)
    assert positions.shape == (6, 7)
    assert not positions[:, 4:].any()
    torch.testing.assert_close(
        positions[5], torch.tensor([math.sin(2), math.cos(2), math.sin(1), math.cos(1), 0, 0, 0])
    )
    assert grid_positions(2, 2, 3).tolist() == [[0, 0, 0]] * 4


OBLONG = Architecture(depth=3, width=24, heads=5, head_dim=8, hidden=20)
EVERY = [*TOPOLOGIES.names(), "rezero(norms=false)"]


def test_a_dit_of_every_topology_depends_on_the_condition() -> None:
    pictures, times, classes = inputs()
    with grouped() as case:
        for topology in EVERY:
            with case(topology):
                network = perturbed_dit(replace(OBLONG, topology=topology))
                outputs = network(pictures, times, classes)
                assert outputs.shape == (2, 6, 8, 8)
                other = network(pictures, times, torch.tensor([4, 10]))
                assert not torch.allclose(other[0], outputs[0])
                torch.testing.assert_close(other[1], outputs[1])
                outputs.square().mean().backward()
                still = [name for name, p in network.named_parameters() if p.grad is None]
                assert [name for name in still if not name.startswith("stack.topology")] == []


def check_counts(topologies: Iterable[str], shape: Architecture, agree: Agree) -> None:
    """Assert that counters and closed form agree on DiTs with these topologies."""
    with grouped() as case:
        for topology in topologies:
            with case(f"{topology}, depth {shape.depth}"):
                architecture = replace(shape, topology=topology)
                with meta_device():
                    model = build_dit(architecture, PICTURES)
                    ids = torch.zeros(1, dtype=torch.long)
                    example = torch.zeros(1, *PICTURES.shape), ids, ids.clone()
                agree(model, example, count_dit(architecture, PICTURES))


def test_closed_form_and_both_counters_agree_on_a_dit(agree: Agree) -> None:
    check_counts(("deepnorm", "rezero(norms=false)", "depth-lstm", "svformer"), OBLONG, agree)
    check_counts(("resnet", "dca", "rmt"), SMALL, agree)


@pytest.mark.slow
def test_closed_form_and_both_counters_agree_on_every_dit(agree: Agree) -> None:
    for shape in (SMALL, OBLONG):
        check_counts(EVERY, shape, agree)


def test_a_dit_without_heads_is_refused() -> None:
    with raises("out-of-range", option="heads", value=0, least=1):
        build_dit(Architecture(depth=2, width=24, hidden=20), PICTURES)
