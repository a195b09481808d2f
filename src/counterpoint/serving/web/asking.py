"""What a request asks about its picture, and what is answered."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from counterpoint.corrupt import SEVERITIES, corrupt
from counterpoint.corrupt.suite import check_cell
from counterpoint.errors import InputError, unknown
from counterpoint.images import decode
from counterpoint.serving.formats import as_json
from counterpoint.serving.predict import Prediction, Predictor
from counterpoint.serving.web.facts import bin_of
from counterpoint.serving.web.limits import MOST_PIXELS

_PARAMETERS = ("name", "corruption", "severity")
_LEVELS = ("0", *map(str, SEVERITIES))


@dataclass(frozen=True)
class Asked:
    """A name to answer with, and what to do to the picture first. Severity 0 is to leave it as it is."""

    name: str | None = None
    corruption: str | None = None
    severity: int = 0


def parse(parameters: Mapping[str, str]) -> Asked:
    """The parameters behind the question mark of an address. None names a file: `name` is only said again."""
    for key in parameters:
        if key not in _PARAMETERS:
            raise unknown("parameter", key, _PARAMETERS)
    name, corruption = parameters.get("name"), parameters.get("corruption")
    severity = parameters.get("severity")
    if severity is not None and severity not in _LEVELS:
        raise InputError(f"severity is {severity!r}; it must be a whole number from 0 (as it is) to {SEVERITIES[-1]}")
    if corruption is None and severity not in (None, "0"):
        raise InputError(f"severity is {severity}, and no corruption is named; add one, such as corruption=fog")
    if corruption is not None and severity is None:
        raise InputError(f"the corruption {corruption} has no severity; add one, such as severity=3")
    level = int(severity or 0)
    if corruption is not None:
        check_cell(corruption, level or 1)
    return Asked(name, corruption, level)


def look(predictor: Predictor, content: bytes, asked: Asked) -> tuple[Prediction, np.ndarray]:
    """The prediction of a picture, and the pixels that it is of: decoded, and corrupted if that was asked for."""
    picture_CHW = decode(content, predictor.decoding, MOST_PIXELS)
    if asked.corruption is not None and asked.severity:
        corrupted_NHWC = corrupt(picture_CHW.transpose(1, 2, 0)[None], asked.corruption, asked.severity)
        picture_CHW = np.ascontiguousarray(corrupted_NHWC[0].transpose(2, 0, 1))
    return predictor.answer(picture_CHW, asked.name), picture_CHW


def predicted(predictor: Predictor, content: bytes, asked: Asked) -> dict[str, Any]:
    """The object that `counterpoint predict --format jsonl` writes for a file."""
    prediction, _ = look(predictor, content, asked)
    return as_json(prediction, predictor.correction.name)


def shown(predictor: Predictor, content: bytes, asked: Asked) -> dict[str, Any]:
    """The same, with the picture as the network saw it and the bin of confidence that it falls into."""
    prediction, picture_CHW = look(predictor, content, asked)
    return {
        "prediction": as_json(prediction, predictor.correction.name),
        "bin": bin_of(prediction.ensemble.confidence),
        "picture": f"data:image/png;base64,{base64.b64encode(_png(picture_CHW)).decode()}",
    }


def _png(picture_CHW: np.ndarray) -> bytes:
    pixels = picture_CHW[0] if len(picture_CHW) == 1 else picture_CHW.transpose(1, 2, 0)
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(content, "PNG")
    return content.getvalue()
