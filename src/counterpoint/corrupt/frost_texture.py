"""Pictures of ice for those without the photographs: needles in many directions over slow clouds.

There are as many pictures as photographs. Each has the mean colour, the contrast and the roughness of one of them.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.pixels import Floats

_SHAPE = (360, 540)
_DIRECTIONS = 9


@dataclass(frozen=True)
class _Ice:
    colour: tuple[float, float, float]
    fine: float
    coarse: float
    clouds: float


_ICES = (
    _Ice((0.30, 0.58, 0.65), fine=0.035, coarse=0.035, clouds=0.060),
    _Ice((0.79, 0.81, 0.84), fine=0.050, coarse=0.045, clouds=0.050),
    _Ice((0.79, 0.81, 0.84), fine=0.050, coarse=0.045, clouds=0.050),
    _Ice((0.54, 0.60, 0.65), fine=0.080, coarse=0.050, clouds=0.060),
    _Ice((0.44, 0.48, 0.53), fine=0.110, coarse=0.080, clouds=0.110),
)


def frost_textures() -> list[Floats]:
    """RGB pictures in [0, 1], the same in every call."""
    return [_texture(ice, Draws(0, "frost texture", 0, start=number, count=1)) for number, ice in enumerate(_ICES)]


def _texture(ice: _Ice, draws: Draws) -> Floats:
    fine = _needles(draws, "fine", length=25, thickness=1.2)
    coarse = _needles(draws, "coarse", length=60, thickness=3.0)
    relief = ice.fine * fine + ice.coarse * coarse + ice.clouds * _clouds(draws)
    return np.clip(np.array(ice.colour) + relief[..., None], 0, 1)


def _needles(draws: Draws, purpose: str, *, length: float, thickness: float) -> Floats:
    """At each pixel the strongest of several fields of noise, each smeared along another direction."""
    down, right = _frequencies()
    strongest = np.full(_SHAPE, -np.inf)
    for direction in range(_DIRECTIONS):
        angle = np.pi * (direction + 0.5) / _DIRECTIONS
        along = right * np.cos(angle) + down * np.sin(angle)
        across = down * np.cos(angle) - right * np.sin(angle)
        response = np.exp(-2 * np.pi**2 * ((along * length) ** 2 + (across * thickness) ** 2))
        strongest = np.maximum(strongest, _filtered_noise(draws, f"{purpose} {direction}", response))
    return (strongest - strongest.mean()) / strongest.std()


def _clouds(draws: Draws) -> Floats:
    radius = np.hypot(*_frequencies())
    return _filtered_noise(draws, "clouds", np.power(radius, -1.5, out=np.zeros_like(radius), where=radius > 0))


def _frequencies() -> tuple[Floats, Floats]:
    return fft.fftfreq(_SHAPE[0])[:, None], fft.rfftfreq(_SHAPE[1])[None, :]


def _filtered_noise(draws: Draws, purpose: str, response: Floats) -> Floats:
    """White noise with this frequency response, its standard deviation 1."""
    field: Floats = fft.irfft2(fft.rfft2(draws.normal(purpose, *_SHAPE)[0]) * response, _SHAPE)
    return field / field.std()
