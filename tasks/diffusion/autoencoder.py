"""The autoencoder between pictures and latents: diffusers' AutoencoderKL.

Shapes: B = batch, H and W = height and width of a picture, h and w = those of its latents.
"""

from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Generator, Tensor

from search_spaces.support.errors import Kind, UserError
from search_spaces.support.progress import status_if_slow

_CHUNK = 8


def autoencoder(name: str | Path) -> Any:
    """Load the autoencoder from a folder, or by its name on the Hub.

    Raises:
        UserError: diffusers is not installed, or there is no such autoencoder.
    """
    try:
        from diffusers.models.autoencoders.autoencoder_kl import AutoencoderKL
    except ImportError as error:
        raise UserError(
            "needs-extra",
            f'latents need diffusers ({error}). Install the extra "diffusion": pip install ".[diffusion]".',
            extra="diffusion",
        ) from error
    try:
        with status_if_slow(f"loading the autoencoder {name} ..."):
            model = AutoencoderKL.from_pretrained(str(name), use_safetensors=True, low_cpu_mem_usage=False)
    except Exception as error:  # errors of the Hub, the network, safetensors or a configuration
        exists, is_path = Path(name).exists(), isinstance(name, Path) or name.startswith((".", "/", "~"))
        kind: Kind = "bad-file" if exists else "missing-file" if is_path else "unavailable"
        raise UserError(
            kind,
            f"cannot load an autoencoder from {str(name)!r}: {str(error).splitlines()[0].rstrip('.'):.200}. Give "
            f"a folder written by diffusers (config.json and diffusion_pytorch_model.safetensors).",
            option="--vae",
            **{"path" if exists or is_path else "value": str(name)},  # else a name on the Hub
            cause=type(error).__name__,
        ) from error
    return model.requires_grad_(False).eval()


@torch.no_grad()
def encode_latents(model: Any, pictures: Tensor, generator: Generator) -> Tensor:
    """Sample latents [B, C, h, w] of pictures [B, 3, H, W] from -1 to 1, scaled to about unit variance."""
    latents: Tensor = model.encode(pictures.to(model.device)).latent_dist.sample(generator)
    scale: float = model.config.scaling_factor
    return latents.cpu() * scale


@torch.no_grad()
def decode_latents(model: Any, latents: Tensor) -> Tensor:
    """Decode latents [B, C, h, w] to pictures in bytes, [B, 3, H, W], on the CPU."""
    parts = [model.decode(part.to(model.device) / model.config.scaling_factor).sample for part in latents.split(_CHUNK)]
    return torch.cat([(127.5 * part.float() + 128).clamp(0, 255).byte().cpu() for part in parts])


def center_crop(image: Image.Image, side: int) -> Image.Image:
    """Return the center of an image, [side, side]: box-halved while twice as large, then resized bicubically.

    ADM (Dhariwal and Nichol, 2021) and DiT crop ImageNet's images in this way.
    """
    image = image.convert("RGB")
    while min(image.size) >= 2 * side:
        image = image.resize((image.width // 2, image.height // 2), resample=Image.Resampling.BOX)
    scale = side / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), resample=Image.Resampling.BICUBIC)
    x, y = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((x, y, x + side, y + side))
