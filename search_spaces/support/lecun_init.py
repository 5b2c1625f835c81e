"""LeCun initialization of linear maps."""

from collections.abc import Iterable

from torch import nn


def init_lecun(modules: Iterable[nn.Module]) -> None:
    """Draw the weights of all linear maps from N(0, 1 / fan-in) and set their biases to 0.

    Source: LeCun et al., "Efficient BackProp" (1998), section 4.6.
    """
    for module in modules:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
