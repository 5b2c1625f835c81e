"""lra-image: CIFAR-10 in grayscale, pixel by pixel."""

from typing import final

from torch import Tensor

from tasks.data.splits import TensorSplits
from tasks.lra.lra_presets import IMAGE
from tasks.lra.task import LongRangeTask, splits_of
from tasks.vision.cifar10 import read_cifar10


@final
class LRAImage(LongRangeTask):
    """Classification of 45,000 / 5,000 / 10,000 CIFAR-10 images as sequences of 1,024 gray pixels.

    A pixel's id is its brightness, and black pixels are padding, as in Nyströmformer's pipeline. The validation images
    are those of cifar10-vit; the official ones are the last tenth in TFDS.
    """

    name = "lra-image"
    version = 1
    context = 1024
    classes = 10
    presets = IMAGE

    def load(self) -> TensorSplits:
        """Read the published batches. Raises UserError if they are missing."""
        parts = read_cifar10(self.name, self.data)
        return splits_of(*((_grey(images).flatten(1), labels) for images, labels in parts))


def _grey(images: Tensor) -> Tensor:
    """Convert bytes [E, 3, H, W] to gray [E, H, W], weighted and rounded down as in TensorFlow's rgb_to_grayscale."""
    red, green, blue = (images[:, channel].float() / 255 for channel in range(3))
    return ((0.2989 * red + 0.587 * green + 0.114 * blue) * 255.5).byte()
