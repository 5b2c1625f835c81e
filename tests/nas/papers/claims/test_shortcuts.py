"""Linear networks with shortcuts as explicit products, and which pairs are compared."""

import pytest
import torch
from torch import Tensor

from nas.papers.claims import shortcuts
from nas.papers.claims.shortcuts import NETS, Shortcuts, losses


def cascade(w: list[Tensor], c: list[Tensor]) -> Tensor:
    unit = torch.eye(10)
    return (w[2] + unit) @ (w[1] + unit) @ (w[0] + unit)


def around_first_two(w: list[Tensor], c: list[Tensor]) -> Tensor:
    return w[2] @ (w[1] @ w[0] + torch.eye(10))


def two_in_a_row(w: list[Tensor], c: list[Tensor]) -> Tensor:
    """Shortcuts 1:2 and 2:3 of four layers."""
    return w[3] @ (w[2] + torch.eye(10)) @ (w[1] + torch.eye(10)) @ w[0]


def softmax_shortcuts(w: list[Tensor], c: list[Tensor]) -> Tensor:
    """All shortcuts, with a softmax over those into a layer."""
    h0 = torch.eye(10, dtype=torch.float64)
    h1 = w[0] + h0
    p = [torch.exp(each / 0.1) / torch.exp(each / 0.1).sum() for each in c]
    h2 = w[1] @ h1 + p[1][0] * h0 + p[1][1] * h1
    return w[2] @ h2 + p[2][0] * h0 + p[2][1] * h1 + p[2][2] * h2


def test_names_say_which_shortcuts_a_network_has() -> None:
    for name, net in NETS.items():
        kind, _, layers = name.partition(" of ")
        number = int(layers or 3)
        pairs = [tuple(map(int, pair.split(":"))) for pair in kind.split("+")] if ":" in kind else []
        skips = [(layer, layer + 1) for layer in range(number)] if kind == "cascaded" else pairs
        temperature = float(kind.removeprefix("ANCRe ")) if kind.startswith("ANCRe ") else None
        assert (net.layers, [*net.skips], net.temperature) == (number, skips, temperature), name
    assert {name for name in NETS if ":" not in name} == {
        "none of 2", "none of 3", "cascaded", "ANCRe 0.1", "ANCRe 0.01",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("cascaded", cascade),
        ("0:2", around_first_two),
        ("1:2+2:3 of 4", two_in_a_row),
        ("ANCRe 0.1", softmax_shortcuts),
    ],
)
def test_network_takes_the_steps_of_its_gradients(name: str, product: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "_STEPS", 30)
    net = NETS[name]
    generator = torch.Generator().manual_seed(0)
    target, *weights = (
        torch.randn(1, 10, 10, generator=generator, dtype=torch.float64)[0] for _ in range(net.layers + 1)
    )
    target, weights = target / 10**0.5, [weight * 0.01 for weight in weights]
    logits = [torch.zeros(j, dtype=torch.float64) for j in (1, 2, 3)]

    def loss() -> Tensor:
        return ((product(weights, logits) - target) ** 2).sum() / 2  # type: ignore[operator]

    for _ in range(30):
        parameters = [each.requires_grad_() for each in (*weights, *logits)]
        steps = torch.autograd.grad(loss(), parameters, allow_unused=True)
        updates = [
            p.detach() if step is None else p.detach() - 0.1 * step for p, step in zip(parameters, steps, strict=True)
        ]
        weights, logits = updates[: net.layers], updates[net.layers :]
    assert losses(net, 1).item() == pytest.approx(loss().item(), rel=1e-9)


def test_network_with_the_lower_loss_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    order = list(NETS.values())
    monkeypatch.setattr(shortcuts, "losses", lambda net, seeds: torch.full((seeds,), 10.0 ** -order.index(net)))
    values = Shortcuts(seeds=2).values()
    ranks = {name: rank for rank, name in enumerate(NETS)}
    for name, differences in values.items():
        fast, slow = name.split(" below ")
        assert differences == pytest.approx([ranks[fast] - ranks[slow]] * 2)
