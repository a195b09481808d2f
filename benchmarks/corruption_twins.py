"""Every corruption of ImageNet-C once more: one 224-pixel image at a time, in plain NumPy, SciPy and scikit-image.

These are the recipes of the original generator, written plainly and not for speed. Tests compare our corruptions with
them, with the same random draws, and `benchmarks/corrupt.py --size 224` compares the times.
"""

import math
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage.color import hsv2rgb, rgb2hsv

from counterpoint.corrupt import FrostDir
from counterpoint.corrupt.constants import read_table
from counterpoint.corrupt.frost import frost_pictures
from counterpoint.corrupt.pixels import Scale

Picture = NDArray[np.uint8]
Floats = NDArray[np.floating]
Pair = NDArray[np.int64]

SIDE = 224


class Numbers(Protocol):
    """Random numbers for one image, with a first axis of length 1."""

    def uniform(self, purpose: str, *shape: int, low: float = 0.0, high: float = 1.0) -> Floats: ...
    def normal(self, purpose: str, *shape: int, mean: float = 0.0, sd: float = 1.0) -> Floats: ...
    def integers(self, purpose: str, *shape: int, low: int = 0, high: int) -> NDArray[np.int64]: ...
    def shifts(self, purpose: str, inner: int, largest: int) -> Iterator[Pair]: ...
    def poisson(self, purpose: str, expected: Floats) -> Floats: ...


class PlainNumbers:
    """NumPy's own."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def uniform(self, _purpose: str, *shape: int, low: float = 0.0, high: float = 1.0) -> Floats:
        return self._generator.uniform(low, high, (1, *shape))

    def normal(self, _purpose: str, *shape: int, mean: float = 0.0, sd: float = 1.0) -> Floats:
        return self._generator.normal(mean, sd, (1, *shape))

    def integers(self, _purpose: str, *shape: int, low: int = 0, high: int) -> NDArray[np.int64]:
        return self._generator.integers(low, high, (1, *shape))

    def shifts(self, _purpose: str, inner: int, largest: int) -> Iterator[Pair]:
        """Down and right, from the last pixel to the first, each drawn when it is needed, as in the original."""
        return (self._generator.integers(-largest, largest, 2) for _ in range(inner * inner))

    def poisson(self, _purpose: str, expected: Floats) -> Floats:
        return self._generator.poisson(expected)[None].astype(np.float64)


def truncated(x: Floats) -> Picture:
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


def gaussian_noise(image: Picture, numbers: Numbers, *, sigma: float) -> Picture:
    return truncated(image / 255 + numbers.normal("noise", *image.shape, sd=sigma)[0])


def shot_noise(image: Picture, numbers: Numbers, *, photons: int) -> Picture:
    return truncated(numbers.poisson("noise", image / 255 * photons)[0] / photons)


def impulse_noise(image: Picture, numbers: Numbers, *, amount: float) -> Picture:
    number = numbers.uniform("noise", *image.shape)[0]
    noisy = image.copy()
    noisy[number < amount] = 255
    noisy[number < amount / 2] = 0
    return noisy


def speckle_noise(image: Picture, numbers: Numbers, *, sigma: float) -> Picture:
    x = image / 255
    return truncated(x + x * numbers.normal("noise", *image.shape, sd=sigma)[0])


def gaussian_blur(image: Picture, _numbers: Numbers, *, sigma: float) -> Picture:
    return truncated(_blurred(image / 255, sigma))


def _blurred(x_HWC: Floats, sigma: float) -> Floats:
    return ndimage.gaussian_filter(x_HWC, (sigma, sigma, 0), mode="nearest", truncate=4)


def defocus_blur(
    image: Picture, _numbers: Numbers, *, radius: int, grid_radius: int, alias_sigma: float, alias_radius: int
) -> Picture:
    offset = np.arange(-grid_radius, grid_radius + 1)
    disk = (offset[:, None] ** 2 + offset**2 <= radius**2).astype(np.float32)
    disk /= disk.sum()
    soft = np.exp(-(np.arange(-alias_radius, alias_radius + 1) ** 2) / (2 * alias_sigma**2))
    for axis in (0, 1):
        disk = ndimage.correlate1d(disk, soft / soft.sum(), axis, mode="mirror")
    channels = [ndimage.correlate(image[..., c] / 255, disk.astype(np.float64), mode="mirror") for c in range(3)]
    return truncated(np.stack(channels, axis=-1))


def glass_blur(
    image: Picture, numbers: Numbers, *, sigma: float, max_shift: int, iterations: int, in_place: bool
) -> Picture:
    assert in_place
    glass = truncated(_blurred(image / 255, sigma))
    for iteration in range(iterations):
        shifts = numbers.shifts(f"shift {iteration}", SIDE - 2 * max_shift, max_shift)
        for row in range(SIDE - max_shift, max_shift, -1):
            for column in range(SIDE - max_shift, max_shift, -1):
                down, right = next(shifts)
                there = row + down, column + right
                # Only a copy: the second assignment reads what the first has written.
                glass[row, column], glass[there] = glass[there], glass[row, column]
    return truncated(_blurred(glass / 255, sigma))


def motion_blur(image: Picture, numbers: Numbers, *, radius: int, sigma: float) -> Picture:
    return _moved(image, numbers.uniform("angle", low=-45, high=45)[0], radius, sigma)


def _moved(image: Picture, degrees: float, radius: int, sigma: float) -> Picture:
    """ImageMagick's motion blur: shifted copies, the edges repeated."""
    height, width, _ = image.shape
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    total = np.zeros(image.shape)
    for step, weight in enumerate(weights / weights.sum()):
        row = np.clip(np.arange(height) + math.ceil(step * sine - 0.5), 0, height - 1)
        column = np.clip(np.arange(width) + math.ceil(step * cosine - 0.5), 0, width - 1)
        total = total + weight * 257.0 * image[row][:, column]
    return (np.floor(total + 0.5) // 257).astype(np.uint8)


def zoom_blur(image: Picture, _numbers: Numbers, *, end: float, step: float) -> Picture:
    x = (image / 255).astype(np.float32)
    total, factors = np.zeros_like(x), np.arange(1, end, step)
    for factor in factors:
        total += _zoomed(x, factor)
    return truncated((x + total) / (len(factors) + 1))


def _zoomed(x_HWC: Floats, factor: float) -> Floats:
    crop = math.ceil(SIDE / factor)
    first = (SIDE - crop) // 2
    large = ndimage.zoom(x_HWC[first : first + crop, first : first + crop], (factor, factor, 1), order=1)
    trim = (len(large) - SIDE) // 2
    return np.asarray(large[trim : trim + SIDE, trim : trim + SIDE])


def snow(
    image: Picture,
    numbers: Numbers,
    *,
    mean: float,
    sd: float,
    flake_zoom: float,
    threshold: float,
    blur_radius: int,
    blur_sigma: float,
    blend: float,
) -> Picture:
    flakes = _zoomed(numbers.normal("flakes", SIDE, SIDE, 1, mean=mean, sd=sd)[0], flake_zoom)
    flakes[flakes < threshold] = 0
    degrees = numbers.uniform("angle", low=-135, high=-45)[0]
    flakes = _moved(truncated(flakes), degrees, blur_radius, blur_sigma) / 255
    x = image / 255
    grey = (x @ np.array([0.299, 0.587, 0.114]))[..., None]
    whiter = blend * x + (1 - blend) * np.maximum(x, 1.5 * grey + 0.5)
    return truncated(whiter + flakes + np.rot90(flakes, 2))


def frost(
    image: Picture, numbers: Numbers, *, image_weight: float, frost_weight: float, pictures: tuple[Picture, ...]
) -> Picture:
    """In 8-bit units, as the original computes it."""
    picture = pictures[int(numbers.integers("picture", high=len(pictures))[0])]
    place = numbers.uniform("corner", 2)[0] * (np.array(picture.shape[:2]) - SIDE)
    top, left = place.astype(int)
    frozen = image_weight * image + frost_weight * picture[top : top + SIDE, left : left + SIDE]
    return np.clip(frozen, 0, 255).astype(np.uint8)


def fog(image: Picture, numbers: Numbers, *, amplitude: float, wibble_decay: float) -> Picture:
    x = image / 255
    highest = x.max()
    x = x + amplitude * _plasma(numbers, wibble_decay)[:SIDE, :SIDE, None]
    return truncated(x * highest / (highest + amplitude))


def _plasma(numbers: Numbers, wibble_decay: float) -> Floats:
    """Diamond-square on a map of 256 × 256 that wraps around."""
    field = np.zeros((256, 256))
    wibble, step = 100.0, 256
    while step >= 2:
        half = step // 2
        points = 256 // step
        noise = wibble * numbers.uniform(f"wibble {step}", 3, points, points, low=-wibble, high=wibble)[0]
        corner = field[::step, ::step]
        square = corner + np.roll(corner, -1, axis=0)
        square = square + np.roll(square, -1, axis=1)
        field[half::step, half::step] = square / 4 + noise[0]
        middle = field[half::step, half::step]
        across = corner + np.roll(corner, -1, axis=1) + middle + np.roll(middle, 1, axis=0)
        field[::step, half::step] = across / 4 + noise[1]
        along = corner + np.roll(corner, -1, axis=0) + middle + np.roll(middle, 1, axis=1)
        field[half::step, ::step] = along / 4 + noise[2]
        wibble, step = wibble / wibble_decay, half
    field -= field.min()
    return field / field.max()


def brightness(image: Picture, _numbers: Numbers, *, added: float) -> Picture:
    hsv = rgb2hsv(image / 255)
    hsv[..., 2] = np.clip(hsv[..., 2] + added, 0, 1)
    return truncated(hsv2rgb(hsv))


def saturate(image: Picture, _numbers: Numbers, *, factor: float, added: float) -> Picture:
    hsv = rgb2hsv(image / 255)
    hsv[..., 1] = np.clip(hsv[..., 1] * factor + added, 0, 1)
    return truncated(hsv2rgb(hsv))


def contrast(image: Picture, _numbers: Numbers, *, factor: float) -> Picture:
    x = image / 255
    mean = x.mean(axis=(0, 1), keepdims=True)
    return truncated((x - mean) * factor + mean)


def elastic_transform(image: Picture, numbers: Numbers, *, alpha: float, sigma: float, jitter: float) -> Picture:
    middle, arm = SIDE // 2, SIDE // 3
    corner = np.array([[middle + arm, middle + arm], [middle + arm, middle - arm], [middle - arm, middle - arm]])
    moved = corner + numbers.uniform("jitter", 3, 2, low=-jitter, high=jitter)[0]
    forward = np.linalg.solve(np.column_stack([corner, np.ones(3)]), moved)
    backward = np.linalg.inv(np.column_stack([forward, [0, 0, 1]]))
    row, column = np.mgrid[:SIDE, :SIDE]
    source = np.stack([column, row, np.ones_like(row)], axis=-1) @ backward
    warped = _sampled(image / 255, source[..., 1], source[..., 0], "mirror")
    noise = numbers.uniform("displacement", SIDE, SIDE, 2, low=-1, high=1)[0]
    down, right = (
        alpha * ndimage.gaussian_filter(noise[..., axis], sigma, mode="reflect", truncate=3) for axis in (0, 1)
    )
    return truncated(_sampled(warped, row + down, column + right, "reflect"))


def _sampled(x_HWC: Floats, row: Floats, column: Floats, mode: str) -> Floats:
    channels = [ndimage.map_coordinates(x_HWC[..., c], [row, column], order=1, mode=mode) for c in range(3)]
    return np.stack(channels, axis=-1)


def pixelate(image: Picture, _numbers: Numbers, *, fraction: float) -> Picture:
    small = Image.fromarray(image).resize((int(SIDE * fraction),) * 2, Image.Resampling.BOX)
    return np.array(small.resize((SIDE, SIDE), Image.Resampling.BOX))


def jpeg_compression(image: Picture, _numbers: Numbers, *, quality: int) -> Picture:
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.array(Image.open(file))


def spatter(
    image: Picture,
    numbers: Numbers,
    *,
    mean: float,
    sd: float,
    blur_sigma: float,
    threshold: float,
    intensity: float,
    mud: bool,
) -> Picture:
    liquid = _blurred(numbers.normal("liquid", SIDE, SIDE, 1, mean=mean, sd=sd)[0], blur_sigma)
    liquid[liquid < threshold] = 0
    x = image / 255
    if mud:
        cover = _blurred((liquid > threshold).astype(np.float64), intensity)
        cover[cover < 0.8] = 0
        return truncated(x * (1 - cover) + cover * np.array([63, 42, 20]) / 255)
    shine = _shine(truncated(liquid)[..., 0])[..., None]
    return truncated(x + intensity * shine * np.array([175, 238, 238]) / 255)


def _shine(liquid_HW: Picture) -> Floats:
    """The distance to the drops' edges, embossed."""
    distance = np.floor(_box(np.minimum(_chamfer_distance(~_canny(liquid_HW)), 20))).astype(np.uint8)
    share = np.cumsum(np.bincount(distance.ravel(), minlength=256)) - np.sum(distance == distance.min())
    equalized = np.round(share * 255 / max(share[-1], 1))[distance]
    relief = ndimage.correlate(equalized, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]), mode="mirror")
    shine = np.round(_box(np.clip(relief, 0, 255))) * liquid_HW
    return shine / max(shine.max(), 1)


def _box(x_HW: Floats) -> Floats:
    return ndimage.correlate(x_HW, np.ones((3, 3)), mode="mirror") / 9


def _chamfer_distance(free_HW: NDArray[np.bool_]) -> Floats:
    """To the nearest edge, in OpenCV's steps: (1, 0), (1, 1) and (2, 1)."""
    nearest = ndimage.distance_transform_edt(free_HW, return_distances=False, return_indices=True)
    row, column = np.abs(nearest - np.indices(free_HW.shape))
    long, short = np.maximum(row, column), np.minimum(row, column)
    knights = np.minimum(short, long - short)
    return (long - short - knights) + 1.4 * (short - knights) + 2.1969 * knights


def _canny(liquid_HW: Picture) -> NDArray[np.bool_]:
    """Sobel, thinning along the gradient, and of the weak edges those that are joined to a strong one."""
    x = liquid_HW.astype(np.float64)
    dx, dy = ndimage.sobel(x, 1, mode="nearest"), ndimage.sobel(x, 0, mode="nearest")
    strength = np.abs(dx) + np.abs(dy)
    sector = np.round(np.arctan2(dy, dx) / (np.pi / 4)).astype(int) % 4
    padded = np.pad(strength, 1)
    ridge = np.zeros(x.shape, dtype=bool)
    for direction, (down, right) in enumerate([(0, 1), (1, 1), (1, 0), (1, -1)]):
        before = padded[1 - down : 1 - down + SIDE, 1 - right : 1 - right + SIDE]
        after = padded[1 + down : 1 + down + SIDE, 1 + right : 1 + right + SIDE]
        beyond = strength > after if direction % 2 else strength >= after
        ridge |= (sector == direction) & (strength > before) & beyond
    edge = ridge & (strength > 50)
    label, _ = ndimage.label(edge, np.ones((3, 3)))
    return np.isin(label, label[edge & (strength > 150)]) & edge


TWINS: dict[str, Callable[..., Picture]] = {
    function.__name__: function
    for function in (
        gaussian_noise,
        shot_noise,
        impulse_noise,
        defocus_blur,
        glass_blur,
        motion_blur,
        zoom_blur,
        snow,
        frost,
        fog,
        brightness,
        contrast,
        elastic_transform,
        pixelate,
        jpeg_compression,
        speckle_noise,
        gaussian_blur,
        spatter,
        saturate,
    )
}


def twin(image: Picture, name: str, numbers: Numbers, **constants: Any) -> Picture:
    """The image under this corruption."""
    return TWINS[name](image, numbers, **constants)


def twin_arguments(name: str, severity: int, frost_dir: FrostDir | None = None) -> dict[str, Any]:
    """ImageNet-C's constants. The frost is already read, which the original does anew for each image."""
    table = read_table("imagenet-c")
    arguments = table.arguments(name, severity)
    if name == "frost":
        arguments["pictures"] = frost_pictures(frost_dir, Scale(SIDE, SIDE, SIDE), table)
    return arguments
