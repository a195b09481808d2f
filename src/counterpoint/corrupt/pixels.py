"""What all corruptions share: 8-bit images, their values in [0, 1], lengths that scale with the image.

Shape suffixes in this package: N images, H rows, W columns, C channels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Images = NDArray[np.uint8]
Floats = NDArray[np.floating]


def to_unit(images_NHWC: Images) -> Floats:
    """The values in [0, 1]."""
    return images_NHWC / 255.0


def to_bytes(x: Floats) -> Images:
    """Clipped to [0, 1] and truncated, not rounded, to 8 bits: what the official files hold.

    `x` is overwritten. One more array of a large image would cost as much time as the arithmetic.
    """
    np.clip(x, 0, 1, out=x)
    x *= 255
    return x.astype(np.uint8)


@dataclass(frozen=True)
class Scale:
    """The size of the images beside the side that the constants are for (32 or 224 pixels)."""

    height: int
    width: int
    reference_side: int

    @property
    def factor(self) -> float:
        """How many pixels of these images correspond to one of the constants' pixels; the shorter side counts."""
        return min(self.height, self.width) / self.reference_side

    @property
    def reference_shape(self) -> tuple[int, int]:
        """The rows and columns of these images if their shorter side were the reference side."""
        return round(self.height / self.factor), round(self.width / self.factor)


def resized(layer_NHW: Floats, scale: Scale) -> Floats:
    """A layer that was made in the reference shape, resized bilinearly to the size of the images."""
    if layer_NHW.shape[1:] == (scale.height, scale.width):
        return layer_NHW
    pictures = [
        Image.fromarray(layer).resize((scale.width, scale.height), Image.Resampling.BILINEAR)
        for layer in layer_NHW.astype(np.float32)
    ]
    return np.stack([np.asarray(picture, dtype=np.float64) for picture in pictures])


def luminance(x_C: Floats) -> Floats:
    """One grey channel; the channel axis is kept. A grey image is returned as it is."""
    if x_C.shape[-1] == 1:
        return x_C
    return 0.299 * x_C[..., :1] + 0.587 * x_C[..., 1:2] + 0.114 * x_C[..., 2:]


def largest_channel(images_C: Images) -> Images:
    """HSV's value; the channel axis is kept. Much quicker than a maximum over so short an axis."""
    if images_C.shape[-1] == 1:
        return images_C
    return np.maximum(np.maximum(images_C[..., :1], images_C[..., 1:2]), images_C[..., 2:])


def as_channels(rgb_C: Floats, channels: int) -> Floats:
    """Red, green and blue for a colour image, their luminance for a grey one."""
    return rgb_C if channels == 3 else luminance(rgb_C)
