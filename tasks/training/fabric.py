"""Where a network is trained: Lightning Fabric, for precision and for devices that share the work or the weights."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from lightning_utilities.core import imports
from packaging.version import Version
from torch import nn

from search_spaces.layers.stack import Stack
from search_spaces.support.rank import processes
from tasks.recipes.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from torch.distributed.device_mesh import DeviceMesh


def fabric_for(recipe: Recipe, device: torch.device) -> "Fabric":
    """The device that was lent, or the CPU where the recipe wants that; as many of its kind as torchrun has processes.

    Without torchrun it is one process whatever a cluster's variables say: workers are the search's matter.
    """
    with _versions_by_metadata():  # imported here because it takes seconds, and a network is counted without it
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    make_lightning_quiet()
    kind = device.type if recipe.accelerator == "auto" else "cpu"
    local = int(os.environ["LOCAL_WORLD_SIZE"]) if processes() > 1 else 1
    fabric = Fabric(
        accelerator=kind,
        devices=local if processes() > 1 or kind == "cpu" else [device.index or 0],
        num_nodes=processes() // local,
        strategy=_strategy(recipe) if processes() > 1 else "auto",
        plugins=[TorchElasticEnvironment() if processes() > 1 else LightningEnvironment()],
        precision=recipe.precision,
    )
    fabric.launch()
    return fabric


def make_lightning_quiet() -> None:
    """Have Lightning say what goes wrong and nothing else, and leave NVML alone."""
    # That processes have met, and which precision, is no news.
    for name in ("lightning_fabric", "lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if not torch.cuda.is_available():
        # Lightning makes torch ask NVML whether there is a GPU; without one, each optimiser step looks for NVML again.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"


@contextmanager
def _versions_by_metadata() -> Iterator[None]:
    """Have Fabric ask TorchMetrics' metadata for its version, and not import it, for nobody needs its metrics here.

    That takes two seconds: it loads torchvision and, where they are installed, transformers. `lightning.fabric` would
    load the Trainer, and so TorchMetrics, in any case.
    """
    compare = imports.compare_version

    def by_metadata(package: str, op: Callable[..., bool], minimum: str, use_base_version: bool = False) -> bool:
        if package == "torchmetrics":
            return op(Version(version(package)), Version(minimum))
        return compare(package, op, minimum, use_base_version)

    with patch.object(imports, "compare_version", by_metadata):
        yield


def _strategy(recipe: Recipe) -> Any:
    from lightning_fabric.strategies.ddp import DDPStrategy
    from lightning_fabric.strategies.model_parallel import ModelParallelStrategy

    if recipe.sharing == "fsdp":
        return ModelParallelStrategy(_shard, processes(), 1, save_distributed_checkpoint=False)
    return DDPStrategy()


def _shard(network: nn.Module, mesh: "DeviceMesh") -> nn.Module:
    """Deal out the weights, layer by layer (FSDP2)."""
    from torch.distributed.fsdp import fully_shard  # a second that a network on one device does not need

    data = mesh["data_parallel"]
    for module in network.modules():
        if isinstance(module, Stack):
            for layer in module.layers:
                fully_shard(layer, mesh=data)
    fully_shard(network, mesh=data)
    return network
