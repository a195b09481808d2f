"""AugMix's operations on batches of 8-bit images, each equal to Pillow's result bit for bit.

Every function takes and returns uint8 (N, C, H, W) of any H and W, on a CPU or a GPU. Its parameters are tensors of
shape (N,), with one value per image. An image of 3 channels is Pillow's "RGB", an image of 1 channel its "L".

The results are those of Pillow as built for x86-64. Where a compiler fuses multiply-adds, Pillow itself may differ. The
work is done in `geometry` and `tone`.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from counterpoint.augment import geometry, tone
from counterpoint.augment.standard import check_images, images_per_chunk
from counterpoint.errors import InputError, shown
from counterpoint.seeding import WHOLE


def autocontrast(images_NCHW: Tensor) -> Tensor:
    """Pillow's `ImageOps.autocontrast(image)`: stretch the values to 0 … 255.

    >>> import torch
    >>> from counterpoint.augment.ops import autocontrast
    >>> autocontrast(torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)).flatten().tolist()
    [0, 85, 170, 255]
    """
    return _in_chunks(tone.autocontrast, images_NCHW)


def equalize(images_NCHW: Tensor) -> Tensor:
    """Pillow's `ImageOps.equalize(image)`: spread the values so that all are about equally frequent.

    >>> import torch
    >>> from counterpoint.augment.ops import equalize
    >>> images = (torch.arange(1024) % 4 + 100).to(torch.uint8).view(1, 1, 32, 32)  # the values 100 to 103
    >>> equalize(images).unique().tolist()
    [0, 85, 171, 255]
    """
    return _in_chunks(tone.equalize, images_NCHW)


def posterize(images_NCHW: Tensor, bits_N: Tensor) -> Tensor:
    """Pillow's `ImageOps.posterize(image, bits)`: keep the highest `bits` bits of each value; `bits_N` holds whole
    numbers from 1 to 8.

    >>> import torch
    >>> from counterpoint.augment.ops import posterize
    >>> images = torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)
    >>> posterize(images, torch.tensor([2])).flatten().tolist()
    [0, 64, 128, 192]
    """
    is_whole = isinstance(bits_N, Tensor) and bits_N.dtype in WHOLE
    if not is_whole or bool(((bits_N < 1) | (bits_N > 8)).any()):
        found = bits_N.unique().tolist() if isinstance(bits_N, Tensor) else shown(bits_N)
        raise InputError(f"bits must be whole numbers from 1 to 8 in an integer tensor; they are {found}")
    return _in_chunks(tone.posterize, images_NCHW, bits_N)


def solarize(images_NCHW: Tensor, threshold_N: Tensor) -> Tensor:
    """Pillow's `ImageOps.solarize(image, threshold)`: invert the values from the threshold on.

    >>> import torch
    >>> from counterpoint.augment.ops import solarize
    >>> images = torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)
    >>> solarize(images, torch.tensor([128])).flatten().tolist()
    [50, 100, 105, 55]
    """
    return _in_chunks(tone.solarize, images_NCHW, threshold_N)


def rotate(images_NCHW: Tensor, degrees_N: Tensor) -> Tensor:
    """Pillow's `Image.rotate(degrees, BILINEAR)`, counter-clockwise.

    If the degrees are an integer tensor, the CPU need not wait for a GPU.

    >>> import torch
    >>> from counterpoint.augment.ops import rotate
    >>> images = torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)
    >>> rotate(images, torch.tensor([90])).flatten().tolist()
    [100, 200, 50, 150]
    """
    return _in_chunks(geometry.rotate, images_NCHW, degrees_N)


def shear_x(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `Image.transform(size, AFFINE, (1, factor, 0, 0, 1, 0), BILINEAR)`: shift row y by factor · y pixels.

    >>> import torch
    >>> from counterpoint.augment.ops import shear_x
    >>> images = torch.full((1, 1, 4, 4), 100, dtype=torch.uint8)
    >>> shear_x(images, torch.tensor([0.5]))[0, 0, 3].tolist()  # the last row
    [100, 100, 0, 0]
    """
    return _in_chunks(geometry.shear_x, images_NCHW, factor_N)


def shear_y(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `Image.transform(size, AFFINE, (1, 0, 0, factor, 1, 0), BILINEAR)`: shift column x by factor · x pixels.

    >>> import torch
    >>> from counterpoint.augment.ops import shear_y
    >>> images = torch.full((1, 1, 4, 4), 100, dtype=torch.uint8)
    >>> shear_y(images, torch.tensor([0.5]))[0, 0, :, 3].tolist()  # the last column
    [100, 100, 0, 0]
    """
    return _in_chunks(geometry.shear_y, images_NCHW, factor_N)


def translate_x(images_NCHW: Tensor, pixels_N: Tensor) -> Tensor:
    """Pillow's `Image.transform(size, AFFINE, (1, 0, pixels, 0, 1, 0), BILINEAR)`: move the image to the left.

    >>> import torch
    >>> from counterpoint.augment.ops import translate_x
    >>> images = torch.tensor([[[[50, 100, 150, 200]]]], dtype=torch.uint8)
    >>> translate_x(images, torch.tensor([1])).flatten().tolist()
    [100, 150, 200, 0]
    """
    return _in_chunks(geometry.translate_x, images_NCHW, pixels_N)


def translate_y(images_NCHW: Tensor, pixels_N: Tensor) -> Tensor:
    """Pillow's `Image.transform(size, AFFINE, (1, 0, 0, 0, 1, pixels), BILINEAR)`: move the image upwards.

    >>> import torch
    >>> from counterpoint.augment.ops import translate_y
    >>> images = torch.tensor([[[[50], [100], [150], [200]]]], dtype=torch.uint8)
    >>> translate_y(images, torch.tensor([1])).flatten().tolist()
    [100, 150, 200, 0]
    """
    return _in_chunks(geometry.translate_y, images_NCHW, pixels_N)


def colour(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `ImageEnhance.Color(image).enhance(factor)`, for images of 1 or 3 channels: 0 is grey, 1 leaves them.

    >>> import torch
    >>> from counterpoint.augment.ops import colour
    >>> red = torch.tensor([[[[200]], [[0]], [[0]]]], dtype=torch.uint8)
    >>> colour(red, torch.tensor([0.0])).flatten().tolist()
    [60, 60, 60]
    """
    return _in_chunks(tone.colour, images_NCHW, factor_N)


def contrast(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `ImageEnhance.Contrast(image).enhance(factor)`, for images of 1 or 3 channels: 1 leaves them.

    >>> import torch
    >>> from counterpoint.augment.ops import contrast
    >>> images = torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)
    >>> contrast(images, torch.tensor([0.5])).flatten().tolist()
    [87, 112, 137, 162]
    """
    return _in_chunks(tone.contrast, images_NCHW, factor_N)


def brightness(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `ImageEnhance.Brightness(image).enhance(factor)`: 0 is black, 1 leaves the images.

    >>> import torch
    >>> from counterpoint.augment.ops import brightness
    >>> images = torch.tensor([[[[50, 100], [150, 200]]]], dtype=torch.uint8)
    >>> brightness(images, torch.tensor([0.5])).flatten().tolist()
    [25, 50, 75, 100]
    """
    return _in_chunks(tone.brightness, images_NCHW, factor_N)


def sharpness(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """Pillow's `ImageEnhance.Sharpness(image).enhance(factor)`: 0 is smooth, 1 leaves the images, 2 is sharp.

    >>> import torch
    >>> from counterpoint.augment.ops import sharpness
    >>> images = torch.zeros(1, 1, 3, 3, dtype=torch.uint8)
    >>> images[0, 0, 1, 1] = 130
    >>> sharpness(images, torch.tensor([0.0]))[0, 0, 1, 1].item()
    50
    """
    return _in_chunks(tone.sharpness, images_NCHW, factor_N)


def _in_chunks(operation: Callable[..., Tensor], images_NCHW: Tensor, *parameters: Tensor) -> Tensor:
    check_images(images_NCHW)
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            raise InputError(f"the parameter is {shown(parameter)}; it must be a tensor with one number per image")
        if parameter.shape != images_NCHW.shape[:1]:
            raise InputError(
                f"the parameter has shape {tuple(parameter.shape)}; it must be ({len(images_NCHW)},), one per image"
            )
    on_device = (parameter.to(images_NCHW.device) for parameter in parameters)
    chunks = zip(*(tensor.split(images_per_chunk(images_NCHW)) for tensor in (images_NCHW, *on_device)), strict=True)
    return torch.cat([operation(*chunk) for chunk in chunks])
