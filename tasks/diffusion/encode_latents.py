"""Encoding of images as a folder of latents, with everything for evaluation except Inception.

Shapes: V = views (a picture and its mirror image), S = side of a picture.
"""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.files import atomic_replace, atomic_write, partial_file
from search_spaces.support.progress import Progress, status_if_slow
from tasks.data.image_sources import ImageSource, image_source
from tasks.data.splits import derived_seed, even_indices
from tasks.diffusion.autoencoder import autoencoder, center_crop, encode_latents
from tasks.diffusion.imagenet_dit import REFERENCE, VAE
from tasks.diffusion.latents import FEATURES, LABELS

_RECORD = "encoded.json"
_CHUNK = 8
_REFERENCES = 10_000
"""Maximum number of reference pictures: that of ADM's reference batch of ImageNet."""


@dataclass(frozen=True, slots=True)
class LatentSummary:
    """The result of `encode`.

    Attributes:
        folder: The folder, for `--data` of imagenet-dit.
        pictures: Number of pictures.
        classes: Number of classes.
        shape: Channels, height and width of the latents.
    """

    folder: str
    pictures: int
    classes: int
    shape: tuple[int, int, int]


def encode(images: Path, folder: Path, vae: str, size: int) -> LatentSummary:
    """Write the latents of a data set's training images and their mirror images. Existing files are kept.

    Raises:
        UserError: There are no images or no such autoencoder, the size does not fit it, or the folder has other
            latents.
    """
    read = image_source(images, "train")
    model = autoencoder(vae)
    _check_size(model, size)
    _record_settings(folder, {"images": _digest(read), "size": size, "vae": _weights(model)})
    if not (folder / VAE).exists():
        with status_if_slow(f"writing {folder / VAE} ..."):
            model.save_pretrained(folder / VAE)
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    numbers = torch.arange(len(read.images)).split(_CHUNK)
    with Progress("pictures encoded", len(read.images)) as progress:
        for batch in numbers:
            _write(model, read.images, batch.tolist(), folder, size)
            progress.set_done(int(batch[-1]) + 1)
    if not (folder / REFERENCE).exists():
        _write_reference(read.images, folder / REFERENCE, size)
    first = np.load(folder / FEATURES / "0.npy")
    return LatentSummary(str(folder), len(read.images), len(read.classes), first.shape[1:])


def _check_size(model: Any, size: int) -> None:
    step = 2 * 2 ** (len(model.config.block_out_channels) - 1)  # even sides of latents, for patches of 2
    message = f"the picture size must be a multiple of {step} for this autoencoder, got {size}."
    if size <= 0:
        raise UserError("out-of-range", message, option="--size", value=size, least=step, step=step)
    if size % step:
        raise UserError("mismatch", message, option="--size", value=size, step=step)


def _record_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Record the settings of a folder's latents, or check that they are the same."""
    record = folder / _RECORD
    if not record.exists():
        if any(folder.glob(f"*{FEATURES}")):
            raise UserError(
                "mismatch",
                f"{str(folder)!r} has latents not written by nas encode. Give another folder.",
                path=str(folder),
            )
        atomic_write(record, json.dumps(settings).encode())
        return
    try:
        record_settings = json.loads(record.read_bytes())
        mismatches = [name for name, value in settings.items() if record_settings[name] != value]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{str(record)!r} cannot be read: {error!r:.80}. Give another folder."
        raise UserError("bad-file", message, path=str(record), cause=type(error).__name__) from error
    if mismatches:
        raise UserError(
            "mismatch",
            f"{str(folder)!r} has latents with different {' and '.join(mismatches)}. Give another folder, "
            f"or remove this one.",
            path=str(folder),
            settings=tuple(mismatches),
        )


def _digest(read: ImageSource) -> str:
    digest = hashlib.sha256(repr(sorted(read.classes.items())).encode())
    for line in read.listing:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()[:12]


def _weights(model: Any) -> str:
    digest = hashlib.sha256()
    for weights in model.state_dict().values():
        digest.update(weights.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


def _write(model: Any, images: Any, numbers: Sequence[int], folder: Path, size: int) -> None:
    """Write the latents of a batch of images, unless all exist; the batch shares its random draws."""
    if all((folder / LABELS / f"{number}.npy").exists() for number in numbers):
        return
    read = [images[number] for number in numbers]
    pictures = torch.stack([_pixels(image, size) for image, _ in read]) / 127.5 - 1
    views = torch.stack((pictures, pictures.flip(-1)), dim=1)  # [images, V, 3, S, S]
    generator = Generator(model.device).manual_seed(derived_seed(0, "latents", numbers[0]))
    latents = encode_latents(model, views.flatten(0, 1), generator).unflatten(0, (len(read), 2))
    for number, latent, (_, label) in zip(numbers, latents, read, strict=True):
        atomic_write(folder / FEATURES / f"{number}.npy", _bytes(latent.float().numpy()))
        atomic_write(folder / LABELS / f"{number}.npy", _bytes(np.array([label])))  # last: a label implies its latents


def _pixels(image: Any, size: int) -> Tensor:
    """Return pixels [3, S, S], from 0 to 255."""
    return torch.from_numpy(np.asarray(center_crop(image, size)).copy()).permute(2, 0, 1)


def _bytes(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _write_reference(images: Any, file: Path, size: int) -> None:
    indices = even_indices(len(images), min(len(images), _REFERENCES)).tolist()
    with Progress("reference pictures", len(indices)) as progress, partial_file(file) as partial:
        pictures = np.empty((len(indices), size, size, 3), dtype=np.uint8)
        for place, number in enumerate(indices):
            pictures[place] = np.asarray(center_crop(images[number][0], size))
            progress.advance()
        with partial.open("wb") as file_object:
            np.savez(file_object, arr_0=pictures)
        atomic_replace(partial, file)
