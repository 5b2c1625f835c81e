"""Grids of pictures as PNG files.

Shapes: N = pictures, C = channels, H and W = height and width of a picture.
"""

from pathlib import Path

from torch import Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_folder

_LEAST = 48  # minimum side of a picture in the file, in pixels


def check(file: Path) -> None:
    """Check that a grid can be written. Raises UserError for another suffix or a missing folder."""
    if file.suffix != ".png":
        message = f"the file name of a grid must end in .png, got {str(file)!r}."
        raise UserError("unsupported", message, option="--render", path=str(file), choices=(".png",))
    check_folder(file, "--render")


def save(pictures: Tensor, columns: int, file: Path) -> None:
    """Write pictures [N, C, H, W] from 0 to 1, row by row, enlarged to be visible."""
    from torchvision.utils import make_grid, save_image  # takes a second

    times = -(-_LEAST // pictures.shape[-1])
    large = pictures.repeat_interleave(times, dim=-1).repeat_interleave(times, dim=-2)
    save_image(make_grid(large, nrow=columns, padding=times, pad_value=0.5), file)
