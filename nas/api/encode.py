"""`nas.encode`: encode images as the latents that imagenet-dit learns from."""

from pathlib import Path

from tasks.diffusion import encode_latents
from tasks.diffusion.encode_latents import LatentSummary


def encode(images: str | Path, folder: str | Path, *, vae: str, size: int = 256) -> LatentSummary:
    """Encode the training images of IMAGES as latents in FOLDER, for imagenet-dit.

    IMAGES is what imagenet-vit takes as `data`. Each image is cropped as for DiT, and encoded together with its mirror
    image. FOLDER also gets the autoencoder and reference images for the metrics. Existing latents are reused.

    Raises:
        UserError: No images, no such autoencoder, a size it does not take, or a folder with other latents.
    """
    return encode_latents.encode(Path(images), Path(folder), vae, size)
