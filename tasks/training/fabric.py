"""Lightning Fabric: precision, devices and distributed training."""

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
from search_spaces.support.rank import world_size
from tasks.recipes.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from torch.distributed.device_mesh import DeviceMesh


def fabric_for(recipe: Recipe, device: torch.device) -> "Fabric":
    """Return a Fabric on this device, or on the CPU by the recipe; with torchrun, on one device per process.

    Without torchrun a training is one process, whatever a cluster's environment variables say.
    """
    with _versions_by_metadata():  # takes seconds, and counting a network does not need it
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    make_lightning_quiet()
    kind = device.type if recipe.accelerator == "auto" else "cpu"
    local = int(os.environ["LOCAL_WORLD_SIZE"]) if world_size() > 1 else 1
    fabric = Fabric(
        accelerator=kind,
        devices=local if world_size() > 1 or kind == "cpu" else [device.index or 0],
        num_nodes=world_size() // local,
        strategy=_strategy(recipe) if world_size() > 1 else "auto",
        plugins=[TorchElasticEnvironment() if world_size() > 1 else LightningEnvironment()],
        precision=recipe.precision,
    )
    fabric.launch()
    return fabric


def make_lightning_quiet() -> None:
    """Restrict Lightning's logs to warnings, and keep it from using NVML without a GPU."""
    for name in ("lightning_fabric", "lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if not torch.cuda.is_available():
        # Lightning makes torch ask NVML for a GPU; without a GPU, each optimizer step would search for NVML again.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "0"


@contextmanager
def _versions_by_metadata() -> Iterator[None]:
    """Make Fabric read TorchMetrics' version from its metadata instead of importing it.

    The import takes two seconds: it loads torchvision and, if installed, transformers. `lightning.fabric` would load
    the Trainer, and so TorchMetrics, in any case.
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
        return ModelParallelStrategy(_shard, world_size(), 1, save_distributed_checkpoint=False)
    return DDPStrategy()


def _shard(network: nn.Module, mesh: "DeviceMesh") -> nn.Module:
    """Shard the weights layer by layer (FSDP2)."""
    from torch.distributed.fsdp import fully_shard  # takes a second, and one device does not need it

    data = mesh["data_parallel"]
    for module in network.modules():
        if isinstance(module, Stack):
            for layer in module.layers:
                fully_shard(layer, mesh=data)
    fully_shard(network, mesh=data)
    return network
