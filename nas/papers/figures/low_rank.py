"""DeepCrossAttention, figure 1: networks of low rank that learn the identity, or a random map.

The figure has ten layers; extra panels show the final loss by depth.
"""

import torch

from nas.papers.claims.dilution import best_rate, curve, final_log10_loss
from nas.papers.figures import Curve, Panel

SEEDS, EVERY, LAYERS = 3, 10, (2, 5, 10)
"""Seeds of each network, batches averaged in each point of a curve, and depths."""

TOPOLOGIES = ("resnet", "grn-v1", "grn-v3")
TARGETS = (
    ("a", "the input", False, (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)),
    ("b", "a random map", True, (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)),
)
"""Panel, target, whether it is an affine map, and the rates from which each network gets its best."""


def panels(seeds: int = SEEDS) -> list[Panel]:
    """Return both panels: the loss over batches with ten layers, and the final loss by depth."""
    figure_panels = []
    for panel, target, affine, rates in TARGETS:
        by_batch, by_depth = list[Curve](), list[Curve]()
        for topology in TOPOLOGIES:
            best_rates = {layers: best_rate(topology, affine, rates, [seeds], layers) for layers in LAYERS}
            losses = [
                [final_log10_loss(topology, affine, rate, seed, layers) for seed in range(seeds)]
                for layers, rate in best_rates.items()
            ]
            by_depth.append(Curve(topology, LAYERS, losses))
            by_batch.append(_by_batch(topology, affine, best_rates[LAYERS[-1]], seeds))
        statement = f"with learned weights the residual network learns {target} better"
        figure_panels.append(Panel("dca", f"1 ({panel})", statement, "steps", by_batch))
        figure_panels.append(
            Panel("dca", f"1 ({panel}) by depth", f"the same ({target}) by depth, not in the paper", "layers", by_depth)
        )
    return figure_panels


def _by_batch(topology: str, affine: bool, rate: float, seeds: int) -> Curve:
    """Return the curve with as many layers as the figure; diverged losses are replaced by the first loss."""
    decades = []
    for seed in range(seeds):
        losses = curve(topology, affine, rate, seed, LAYERS[-1])
        finite_losses = losses.where(losses.isfinite() & (losses < 1e3 * losses[0]), losses[0])
        decades.append(finite_losses.reshape(-1, EVERY).mean(1).log10())
    points = torch.stack(decades, dim=1)
    return Curve(f"{topology}, rate {rate:g}", [EVERY * (number + 1) for number in range(len(points))], points.tolist())
