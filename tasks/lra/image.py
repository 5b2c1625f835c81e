"""lra-image: CIFAR-10 in grey, pixel by pixel."""

from typing import final

from torch import Tensor

from tasks.data.splits import TensorSplits
from tasks.lra.lra_presets import IMAGE
from tasks.lra.task import LongRangeTask, splits_of
from tasks.vision.cifar10 import read_cifar10


@final
class LRAImage(LongRangeTask):
    """The images of CIFAR-10 as 1,024 grey pixels, 45,000 / 5,000 / 10,000 of them.

    A pixel's id is its brightness, and black ones are padding, as in Nyströmformer's pipeline. Which images validate is
    told by cifar10-vit's split; the official one is TFDS's last tenth.
    """

    name = "lra-image"
    version = 1
    context = 1024
    classes = 10
    presets = IMAGE

    def load(self) -> TensorSplits:
        """Read the published batches. Raises UserError where they are not there."""
        parts = read_cifar10(self.name, self.data)
        return splits_of(*((_grey(images).flatten(1), labels) for images, labels in parts))


def _grey(images: Tensor) -> Tensor:
    """Bytes [E, 3, H, W] to bytes [E, H, W], weighted and rounded down as TensorFlow's rgb_to_grayscale does."""
    red, green, blue = (images[:, channel].float() / 255 for channel in range(3))
    return ((0.2989 * red + 0.587 * green + 0.114 * blue) * 255.5).byte()
