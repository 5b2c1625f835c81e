"""`nas.encode`: images to the latents that imagenet-dit learns from."""

from pathlib import Path

from tasks.diffusion import encoding
from tasks.diffusion.encoding import LatentSummary


def encode(images: str | Path, folder: str | Path, *, vae: str, size: int = 256) -> LatentSummary:
    """Write the training images of IMAGES as an autoencoder's latents into FOLDER, for imagenet-dit.

    IMAGES is what imagenet-vit takes as --data. Each picture is cropped as for DiT, and encoded with its mirror image.
    FOLDER has the autoencoder and pictures to hold drawn ones against as well. What is there is not made again.

    Raises:
        UserError: No images, no such autoencoder, a size it does not take, or a folder with other latents.
    """

    return encoding.encode(Path(images), Path(folder), vae, size)
