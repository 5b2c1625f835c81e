"""imagenet-dit: generate pictures of ImageNet, or of any classes, as latents of an autoencoder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.dit import ImageSpec
from search_spaces.support.errors import UserError
from tasks.base import Metric
from tasks.data.batches import Inputs, call
from tasks.data.splits import Part, Splits, derived_seed
from tasks.diffusion.autoencoder import autoencoder, decode_latents
from tasks.diffusion.grid import check, save
from tasks.diffusion.inception import ReferenceStatistics, extract_features, fid_scores, inception, real_pictures
from tasks.diffusion.latents import LatentSplits, latent_splits
from tasks.diffusion.recipe import DiffusionRecipe
from tasks.diffusion.sampling import balanced_classes, draw, scheduler_for
from tasks.diffusion.task import LOSS, DiffusionTask, with_noise
from tasks.recipes.settings import NonNegativeInt

VAE, INCEPTION, REFERENCE = "vae", "inception.pth", "reference.npz"
"""Names in the data's folder, beside the latents."""

_IMAGENET = ImageSpec((4, 32, 32), 2, 1000)
_COLUMNS, _ROWS = 8, 4
"""Size of a rendered grid."""
_CHUNK = 256
"""Pictures that are decoded and embedded at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentRecipe(DiffusionRecipe):
    """A diffusion recipe for latents that are read from files.

    Attributes:
        loaders: Processes that read latents; results do not depend on their number.
    """

    loaders: NonNegativeInt = 8


_PAPER = LatentRecipe(
    steps=400_000, batch=256, lr=1e-4, weight_decay=0.0, warmup=0.0, floor=1.0, clip=0.0, ema=0.9999, guidance=1.0,
    guided=3, sampler="ddpm", sample_steps=250, samples=50_000, measured=10_000, reports=1, loaders=16,
)  # fmt: skip


class ImageNetDiT(DiffusionTask):
    """Generation of pictures by a DiT on the latents of an autoencoder.

    `--data` is a folder of latents in fast-DiT's format; `nas encode` creates it from images. The evaluation decodes
    samples with the autoencoder in the folder's vae/. As in ADM's evaluation, it compares their Inception features with
    those of the pictures in reference.npz. Inception's weights are in inception.pth, or where torch-fidelity stores
    them. With --set samples=0 none of these is needed, and the loss is the only metric.

    The base is DiT-S/2 and "paper" is DiT's recipe (Peebles and Xie, 2023), 50,000 pictures of 250 steps. "dit-b" is
    the same for DiT-B/2. With --set guidance=1.5 both are the other half of ANCRe's table 3. "proxy" takes minutes
    on a GPU.
    """

    name = "imagenet-dit"
    version = 1
    metrics = (
        Metric("fid", "squared distance", "min"),
        Metric("sfid", "squared distance", "min"),
        Metric("inception_score", "classes", "max"),
        Metric("precision", "share", "max"),
        Metric("recall", "share", "max"),
        LOSS,
    )
    base = Architecture(depth=12, width=384, heads=6, head_dim=64, hidden=1536)
    bases = {"dit-b": Architecture(depth=12, width=768, heads=12, head_dim=64, hidden=3072)}  # noqa: RUF012
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": LatentRecipe(
            steps=2, batch=2, lr=1e-3, weight_decay=0.0, measured=4, reports=1, guidance=1.0, sample_steps=2,
            samples=10, loaders=0,
        ),
        "proxy": LatentRecipe(
            steps=2000, batch=256, lr=4e-4, weight_decay=0.0, ema=0.999, precision="bf16-mixed", measured=10_000,
            reports=1, samples=5000,
        ),
        **dict.fromkeys(("paper", "dit-b"), _PAPER),
    }  # fmt: skip

    @property
    def pictures(self) -> ImageSpec:  # type: ignore[override]
        """Shape and classes of the data's latents; without data those of ImageNet at 256 x 256."""
        if self.data is None:
            return _IMAGENET
        splits = self.splits
        assert isinstance(splits, LatentSplits)
        pictures = ImageSpec(splits.shape, _IMAGENET.patch, splits.classes)
        if any(side % pictures.patch for side in pictures.shape[1:]):
            raise UserError(
                "bad-data",
                f"sides of latents must be multiples of {pictures.patch}, got {pictures.shape} in {str(self.data)!r}.",
                path=str(self.data),
                value=pictures.shape,
                step=pictures.patch,
            )
        return pictures

    def load(self) -> LatentSplits:
        """Find the latents; they are read on demand.

        Raises:
            UserError: No data was given, or it has no latents.
        """
        if self.data is None:
            remedy = "Give --data FOLDER with latents; create them with nas encode."
            message = f"task {self.name!r} has no built-in data. {remedy}"
            raise UserError("missing-data", message, option="--data", task=self.name)
        files = (self.data / VAE / "config.json", self.data / INCEPTION, self.data / REFERENCE)
        return latent_splits(self.data, with_noise, filter(Path.exists, files))

    def splits_for(self, recipe: LatentRecipe) -> Splits:
        """Return the data, after checking that everything for the evaluation of samples is available."""
        if recipe.samples:
            scheduler_for(recipe, clip=False)
            _ = self._data_file(REFERENCE), self._autoencoder, self._inception
        return self.splits

    def measure_network(
        self, network: Callable[[Inputs], Any], part: Part, recipe: LatentRecipe, device: torch.device
    ) -> Mapping[str, float]:
        """Return FID and related metrics of samples, balanced over classes, against the reference.

        Without samples in the recipe there are none.
        """
        if not recipe.samples:
            return {}
        classes = balanced_classes(self.pictures.classes, recipe.samples).to(device)
        latents = draw(network, self.pictures, classes, recipe, derived_seed(0, "samples", part), clip=False)
        samples = (self._decode(chunk) for chunk in latents.split(_CHUNK))
        return fid_scores(extract_features(self._inception, samples, device), self._real(device))

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write a grid of samples, of evenly spread classes, as a PNG."""
        check(file)
        if network is None:
            self.prepare()
            _ = self._autoencoder
            return
        recipe = DiffusionRecipe(steps=1, batch=1, lr=1.0, guidance=4.0)
        classes = balanced_classes(self.pictures.classes, _COLUMNS * _ROWS).to(next(network.parameters()).device)
        with torch.no_grad():
            latents = draw(lambda inputs: call(network, inputs), self.pictures, classes, recipe, 0, clip=False)
        save(self._decode(latents) / 255, _COLUMNS, file)

    @cached_property
    def _autoencoder(self) -> Any:
        return autoencoder(self._data_file(VAE))

    @cached_property
    def _inception(self) -> nn.Module:
        weights = self._data_file(INCEPTION, must_exist=False)
        return inception(weights if weights.exists() else None)

    def _real(self, device: torch.device) -> ReferenceStatistics:
        return real_pictures(self._data_file(REFERENCE), self._inception, device)

    def _decode(self, latents: Tensor) -> Tensor:
        return decode_latents(self._autoencoder.to(latents.device), latents)

    def _data_file(self, name: str, *, must_exist: bool = True) -> Path:
        assert self.data is not None
        if must_exist and not (self.data / name).exists():
            raise UserError(
                "missing-data",
                f"evaluating samples needs {name} next to the latents, and {str(self.data)!r} has none. Create it with "
                f"nas encode, or draw no samples: --set samples=0.",
                path=str(self.data),
                value=name,
            )
        return self.data / name
