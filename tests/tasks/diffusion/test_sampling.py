"""Samplers: equations, guidance and determinism."""

import math
import sys
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from expect import raises
from search_spaces.models.dit import ImageSpec
from tasks.diffusion.recipe import DiffusionRecipe
from tasks.diffusion.sampling import balanced_classes, draw, scheduler_for

pytest.importorskip("diffusers")

PICTURES = ImageSpec((2, 4, 4), 2, 3)
RECIPE = DiffusionRecipe(steps=1, batch=1, lr=1.0, guidance=1.0, sample_steps=4)
CLASSES = torch.tensor([0, 1, 2, 1])


def network(inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Noise that depends on all three inputs, and a variance."""
    x, times, classes = inputs
    condition = (classes + 1 + times / 1000)[:, None, None, None]
    return torch.cat((torch.tanh(x * condition), torch.sin(x + condition)), dim=1)


def signal_share(t: int) -> float:
    return math.prod(1 - (1e-4 + (0.02 - 1e-4) * s / 999) for s in range(t + 1))


def draw_by_hand(recipe: DiffusionRecipe, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(4, 2, 4, 4, generator=generator)
    times = [999, 749, 499, 249] if recipe.sampler == "ddim" else [999, 666, 333, 0]
    for t, following in zip(times, [*times[1:], -1], strict=True):
        at = torch.full((4,), t)
        output = network((x, at, CLASSES))
        free = network((x, at, torch.full((4,), PICTURES.classes)))
        noise, v = output[:, :2].clone(), output[:, 2:]
        channels = recipe.guided or 2
        noise[:, :channels] = (free[:, :2] + recipe.guidance * (output[:, :2] - free[:, :2]))[:, :channels]
        a, b = signal_share(t), signal_share(following) if following >= 0 else 1.0
        guess = ((x - math.sqrt(1 - a) * noise) / math.sqrt(a)).clamp(-1, 1)
        if recipe.sampler == "ddim":  # Song et al. (2021), equation 12 with sigma = 0
            x = math.sqrt(b) * guess + math.sqrt(1 - b) * noise
            continue
        beta = 1 - a / b  # of this step and those skipped before it
        x = math.sqrt(b) * beta / (1 - a) * guess + math.sqrt(1 - beta) * (1 - b) / (1 - a) * x
        if t:
            low, high = math.log((1 - b) / (1 - a) * beta), math.log(beta)
            x = x + torch.exp(0.5 * (low + (v + 1) / 2 * (high - low))) * torch.randn(x.shape, generator=generator)
    return x


@pytest.mark.parametrize("sampler", ["ddim", "ddpm"])
def test_samples_match_the_samplers_equations(sampler: str) -> None:
    wrong = {}
    for guidance, guided_channels in product((1.0, 0.0, 2.5), (0, 1)):
        recipe = replace(RECIPE, sampler=sampler, guidance=guidance, guided=guided_channels)
        samples, expected = draw(network, PICTURES, CLASSES, recipe, 3, clip=True), draw_by_hand(recipe, 3)
        if not torch.allclose(samples, expected, rtol=1e-3, atol=1e-4):
            wrong[guidance, guided_channels] = (samples - expected).abs().max()
    assert not wrong


def test_guesses_are_clipped_for_pixels() -> None:
    ends = [draw(network, PICTURES, CLASSES, RECIPE, 0, clip=clip).abs().max() for clip in (True, False)]
    assert ends[0] <= 1 < ends[1]


def test_samples_depend_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = draw(network, PICTURES, CLASSES, RECIPE, 0, clip=True)
    torch.manual_seed(5)
    assert torch.equal(draw(network, PICTURES, CLASSES, RECIPE, 0, clip=True), first)
    assert not torch.equal(draw(network, PICTURES, CLASSES, RECIPE, 1, clip=True), first)
    sizes: list[int] = []

    def counting(inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        sizes.append(len(inputs[0]))
        return network(inputs)

    many = draw(counting, PICTURES, torch.zeros(300, dtype=torch.long), replace(RECIPE, guidance=2.0), 0, clip=True)
    assert len(many) == 300
    assert max(sizes) == 512


def test_without_guidance_the_network_runs_once_a_step() -> None:
    sizes: list[int] = []

    def counting(inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        sizes.append(len(inputs[0]))
        return network(inputs)

    draw(counting, PICTURES, CLASSES, RECIPE, 0, clip=True)
    assert sizes == [4] * 4


def test_steps_go_from_pure_noise_to_the_first_time() -> None:
    assert scheduler_for(replace(RECIPE, sample_steps=50), clip=True).timesteps.tolist() == [*range(999, -1, -20)]
    assert scheduler_for(replace(RECIPE, sample_steps=250, sampler="ddpm"), clip=False).timesteps.tolist() == [
        round(999 * step / 249) for step in range(249, -1, -1)
    ]


def test_classes_are_drawn_evenly() -> None:
    assert torch.bincount(balanced_classes(10, 360)).tolist() == [36] * 10
    assert torch.bincount(balanced_classes(3, 7)).tolist() == [3, 2, 2]
    assert len(balanced_classes(3, 0)) == 0


def test_error_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers.schedulers.scheduling_ddim", None)
    with raises("needs-extra", extra="diffusion"):
        draw(network, PICTURES, CLASSES, RECIPE, 0, clip=True)


def test_refuses_too_few_and_too_many_steps() -> None:
    for steps in (1, 1001):
        with raises("out-of-range", option="sample_steps", value=steps):
            replace(RECIPE, sample_steps=steps)
