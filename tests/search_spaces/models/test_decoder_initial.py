"""Initial weights of decoders by recipe, and the official residual matrix transformer."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder, count_decoder
from tasks.load import load_task

SHAPE = Architecture(depth=2, width=256, heads=4, head_dim=64, hidden=512)


def deviations(model: nn.Module) -> dict[str, tuple[float, float]]:
    """Standard deviation of each matrix, and LeCun's."""
    deviation_by_name = {}
    for name, weight in model.named_parameters():
        if weight.ndim == 2:
            deviation_by_name[name] = (float(weight.detach().std()), weight.shape[1] ** -0.5)
    return deviation_by_name


def assert_lecun(model: nn.Module) -> None:
    """Assert LeCun's deviation within four standard errors."""
    sizes = {name: weight.numel() for name, weight in model.named_parameters()}
    deviation_by_name = deviations(model)
    assert len(deviation_by_name) > 8
    for name, (deviation, expected) in deviation_by_name.items():
        assert deviation == pytest.approx(expected, rel=4 / (2 * sizes[name]) ** 0.5), name


@pytest.mark.parametrize("topology", ["resnet", "rmt(keys=32,initial=lecun)"])
def test_lecun_draws_every_matrix_by_its_fan_in(topology: str) -> None:
    torch.manual_seed(0)
    assert_lecun(build_decoder(replace(SHAPE, topology=topology), "rmt", 1000, 64, initial="lecun"))


def test_other_initialization_without_lecun() -> None:
    deviation_by_name = deviations(build_decoder(SHAPE, "rmt", 1000, 64))
    assert deviation_by_name["stack.layers.1.up.weight"][0] == pytest.approx(0.02, rel=0.1)
    keys = deviations(build_decoder(replace(SHAPE, topology="rmt(keys=32)"), "rmt", 1000, 64, initial="lecun"))
    store_keys = keys["stack.topology.stores.0.keys.weight"]
    assert store_keys[0] < 0.7 * store_keys[1]  # Xavier's, and scaled by depth


def test_presets_of_the_comparison_of_variants_use_lecun() -> None:
    """Sizes are those of table 10."""
    task = load_task("openwebtext-lm")
    millions_by_variant = {"transformer": 163, "rmt": 134, "highway": 191, "depth-lstm": 233, "aggregation": 165}
    for variant, millions in millions_by_variant.items():
        name = f"variants-{variant}"
        base, recipe = task.bases[name], task.presets[name]
        assert round(task.closed_form(base).params / 1e6) == millions
        assert (recipe.lr, recipe.steps, recipe.batch, recipe.initial) == (1e-2, 5000, 64, "lecun")
        torch.manual_seed(0)
        narrow = replace(SHAPE, width=64, head_dim=16, hidden=128, topology=base.topology)
        assert_lecun(task.build_for_training(narrow, recipe))


def test_the_official_decoder_has_distances_in_place_of_positions() -> None:
    text = load_task("wikitext-lm")
    assert text.bases["rmt-134m"].topology == "rmt(norm=rms)"
    paper, code = (count_decoder(SHAPE, style, 1000, 64).params for style in ("rmt", "rmt-code"))
    assert paper - code == 64 * 256
    model = build_decoder(SHAPE, "rmt-code", 1000, 64).double().eval()
    ids = torch.randint(1000, (1, 64), generator=torch.Generator().manual_seed(0))
    order = torch.cat((ids[:, :62].flip(1), ids[:, 62:]), dim=1)  # the same words in another order
    with torch.no_grad():
        for block in (0, 1):
            nn.init.eye_(model.stack.layers[2 * block].project.qkv.weight[:256])
        assert not torch.allclose(model(ids)[0, -1], model(order)[0, -1], atol=1e-9)


def by_distance(q: Tensor, k: Tensor, v: Tensor, heads: int, block: int) -> Tensor:
    """Attention of one text [N, H*K], head by head: logits divided by the block number, minus slope times distance."""
    out = []
    for h, (qh, kh, vh) in enumerate(zip(*(x.chunk(heads, dim=-1) for x in (q, k, v)), strict=True), start=1):
        place = torch.arange(len(q)).double()
        distance = place[:, None] - place
        logits = qh @ kh.T / qh.shape[-1] ** 0.5 / block - 2 ** (-8 * h / heads) * distance
        out.append(logits.masked_fill(distance < 0, -torch.inf).softmax(-1) @ vh)
    return torch.cat(out, dim=-1)


def test_the_official_decoder_equals_its_equations() -> None:
    """Pre-norm blocks without biases, with tanh GELU and heads per block."""
    shape = Architecture(depth=2, width=24, heads=2, head_dim=8, hidden=40, blocks="heads=2/3")
    torch.manual_seed(0)
    model = build_decoder(shape, "rmt-code", 50, 16).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.4)  # large enough to show in logits and GELU's tail
    ids = torch.randint(50, (1, 16))
    x = model.embedding.tokens.weight[ids[0]]

    def normalize(x: Tensor, norm: nn.Module) -> Tensor:
        return F.layer_norm(x, (24,), eps=1e-6) * norm.weight

    for block, heads in ((1, 2), (2, 3)):
        attention, feed_forward = model.stack.layers[2 * block - 2 : 2 * block]
        q, k, v = (normalize(x, attention.project.norm) @ attention.project.qkv.weight.T).chunk(3, dim=-1)
        x = x + by_distance(q, k, v, heads, block) @ attention.out.weight.T
        up = normalize(x, feed_forward.norm) @ feed_forward.up.weight.T
        gelu = up / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (up + 0.044715 * up**3)))
        x = x + gelu @ feed_forward.down.weight.T
    expected = normalize(x, model.stack.norm) @ model.head.weight.T
    torch.testing.assert_close(model(ids)[0], expected)


def test_output_maps_of_the_official_decoder_start_smaller() -> None:
    torch.manual_seed(0)
    deviation_by_name = deviations(build_decoder(replace(SHAPE, depth=8), "rmt-code", 1000, 64))
    assert deviation_by_name["stack.layers.15.down.weight"][0] == pytest.approx(0.02 / 4, rel=0.02)
    assert deviation_by_name["stack.layers.15.up.weight"][0] == pytest.approx(0.02, rel=0.02)
