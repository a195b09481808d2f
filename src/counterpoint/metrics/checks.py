"""What the metrics accept: each function returns a checked array, or raises an InputError that says what is wrong.

Shapes: N images, K classes.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROUNDING_ABOVE_ONE = 1e-6
_HINTS = {
    (1, 2): " (max(axis=1) gives it of probabilities)",
    (2, 3): " (mean(axis=0) averages members)",
    (2, 4): " (reshape(-1, K) makes one row of each of the places that have K probabilities)",
    (3, 2): " (the first axis is the members)",
}
"""What to do, by the number of axes that is needed and the one that is given."""
_ROW_SUM_TOLERANCE = 1e-4


def fractions(values: ArrayLike, name: str, ndim: int) -> Floats:
    """`values` in [0, 1] with `ndim` axes; up to 1e-6 above 1 is taken for a rounding error and becomes 1."""
    array = _numbers(values, name).astype(np.float64)
    _check_axes(array.shape, name, ndim)
    low, high = array.min(), array.max()  # NaN if there is one, and NaN compares false
    if not (low >= 0 and high <= 1 + _ROUNDING_ABOVE_ONE):
        outside = ~((array >= 0) & (array <= 1 + _ROUNDING_ABOVE_ONE))
        raise InputError(f"{name} holds {array[outside][0]}; every value must lie between 0 and 1")
    return np.minimum(array, 1.0) if high > 1 else array


def probabilities(values: ArrayLike, name: str, ndim: int) -> Floats:
    """`values` as distributions over the last axis: fractions whose rows sum to 1 within 1e-4."""
    array = fractions(values, name, ndim)
    if array.shape[-1] == 1:
        raise InputError(
            f"{name} has shape {array.shape}, which is one class; the softmax of one logit is always 1, so give the "
            "probabilities of two classes or more: p becomes (1 − p, p)"
        )
    sums = array.sum(axis=-1)
    wrong = np.abs(sums - 1) > _ROW_SUM_TOLERANCE
    if wrong.any():
        raise InputError(
            f"a row of {name} sums to {sums[wrong][0]:.6g}; each must sum to 1, within {_ROW_SUM_TOLERANCE} (apply "
            "softmax to logits, in float32 or float64)"
        )
    return array


def finite(values: ArrayLike, name: str, ndim: int) -> Floats:
    """`values` as finite numbers with `ndim` axes."""
    array = _numbers(values, name).astype(np.float64)
    _check_axes(array.shape, name, ndim)
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}; every value must be finite")
    return array


def zeros_and_ones(values: ArrayLike, name: str, length: int) -> Floats:
    """`values` as `length` numbers that are 0 or 1; booleans are fine."""
    array = _numbers(values, name).astype(np.float64)
    _require_length(array.shape, name, length)
    neither = (array != 0) & (array != 1)
    if neither.any():
        raise InputError(f"{name} holds {array[neither][0]}; every value must be 0 or 1")
    return array


def confidence_and_correct(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """For each image its confidence as a fraction, and whether it is predicted right as 0 or 1."""
    confidence_N = fractions(confidence, "confidence", ndim=1)
    return confidence_N, zeros_and_ones(correct, "correct", len(confidence_N))


def whole_numbers(values: ArrayLike, name: str, length: int, of: str) -> Integers:
    """`values` as `length` whole numbers, each the number `of` something."""
    array = _numbers(values, name)
    _require_length(array.shape, name, length)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {array.dtype}; {of} numbers must be integers (astype(int) makes them)")
    return array.astype(np.int64)


def class_labels(values: ArrayLike, name: str, length: int, num_classes: int) -> Integers:
    """`values` as `length` whole numbers from 0 to `num_classes` − 1."""
    array = whole_numbers(values, name, length, of="class")
    unknown_class = (array < 0) | (array >= num_classes)
    if unknown_class.any():
        raise InputError(
            f"{name} holds {array[unknown_class][0]}; with {num_classes} classes 0 … {num_classes - 1} exist"
        )
    return array


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InputError(f"{name} is a masked array; metrics would count what it hides: give {name}.compressed()")
    try:
        if hasattr(values, "detach"):  # a tensor of a training loop, on any device
            tensor: Any = values.detach().cpu()
            values = tensor.double() if tensor.is_floating_point() else tensor  # NumPy has no bfloat16
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as problem:  # torch's own are of each kind
        hint = "; join batches with torch.cat or np.concatenate first" if isinstance(values, list | tuple) else ""
        raise InputError(f"{name} cannot be read as an array: {problem}{hint}") from problem
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {array.dtype}; it must hold real numbers")
    return array


def _require_length(shape: tuple[int, ...], name: str, length: int) -> None:
    if shape != (length,):
        hint = ""
        if len(shape) == 2 and shape[0] == length:
            hint = " (ravel() drops an axis of 1)" if shape[1] == 1 else " (argmax(axis=1) makes it of one-hot rows)"
        raise InputError(f"{name} has shape {shape}; there are {length} predictions, so it must be ({length},){hint}")


def _check_axes(shape: tuple[int, ...], name: str, ndim: int) -> None:
    if len(shape) == ndim and 0 not in shape:
        return
    hint = _HINTS.get((ndim, len(shape)), "")
    axes = "one axis, with one number per image," if ndim == 1 else f"{ndim} axes"
    raise InputError(f"{name} has shape {shape}; it must have {axes} and at least one value{hint}")
