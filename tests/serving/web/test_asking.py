import base64
import io

import numpy as np
import pytest
from PIL import Image

from counterpoint.corrupt import corrupt
from counterpoint.errors import InputError
from counterpoint.images import decode
from counterpoint.metrics import reliability_bins
from counterpoint.serving.formats import as_json
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.asking import Asked, look, parse, predicted, shown
from counterpoint.serving.web.facts import BINS, bin_of
from counterpoint.serving.web.limits import MOST_PIXELS
from tests.images.pictures import bomb
from tests.serving.web.conftest import picture


def test_what_may_be_asked() -> None:
    assert parse({}) == Asked()
    assert parse({"name": "a.png", "severity": "0"}) == Asked("a.png")
    assert parse({"corruption": "fog", "severity": "3"}) == Asked(None, "fog", 3)
    assert parse({"corruption": "spatter", "severity": "0"}) == Asked(None, "spatter", 0)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"corruptoin": "fog"}, "unknown parameter 'corruptoin'; did you mean 'corruption'?"),
        ({"path": "/etc/passwd"}, "unknown parameter 'path'"),
        ({"corruption": "fogg", "severity": "3"}, "unknown corruption 'fogg'; did you mean 'fog'?"),
        ({"corruption": "fogg", "severity": "0"}, "unknown corruption 'fogg'"),
        ({"corruption": "fog"}, "the corruption fog has no severity; add one, such as severity=3"),
        ({"severity": "3"}, "severity is 3, and no corruption is named"),
        (
            {"corruption": "fog", "severity": "6"},
            r"severity is '6'; it must be a whole number from 0 \(as it is\) to 5",
        ),
        ({"corruption": "fog", "severity": "1.5"}, "severity is '1.5'"),
        ({"corruption": "fog", "severity": "٣"}, "severity is '٣'"),
        ({"corruption": "fog", "severity": ""}, "severity is ''"),
    ],
)
def test_what_may_not_be_asked(parameters: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(parameters)


@pytest.mark.parametrize(("corruption", "severity"), [(None, 0), ("fog", 0), ("fog", 3), ("jpeg_compression", 5)])
def test_the_picture_is_decoded_then_corrupted_then_predicted(
    whole_predictor: Predictor, corruption: str | None, severity: int
) -> None:
    content = picture(50)
    expected_CHW = decode(content, whole_predictor.decoding)
    if corruption and severity:
        expected_CHW = corrupt(expected_CHW[None].transpose(0, 2, 3, 1), corruption, severity)[0].transpose(2, 0, 1)
    prediction, picture_CHW = look(whole_predictor, content, Asked("x.png", corruption, severity))
    assert np.array_equal(picture_CHW, expected_CHW)
    assert prediction == whole_predictor.answer(expected_CHW, "x.png")


def test_what_is_shown_has_the_same_prediction_the_pixels_and_the_bin(whole_predictor: Predictor) -> None:
    content, asked = picture(50), Asked(None, "snow", 2)
    answer = shown(whole_predictor, content, asked)
    prediction, picture_CHW = look(whole_predictor, content, asked)
    assert answer["prediction"] == predicted(whole_predictor, content, asked)
    assert answer["prediction"] == as_json(prediction, whole_predictor.correction.name)
    assert answer["bin"] == bin_of(prediction.ensemble.confidence)
    kind, _, encoded = answer["picture"].partition(",")
    assert kind == "data:image/png;base64"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))[None], picture_CHW)


@pytest.mark.parametrize("confidence", [0.0, 1 / 15, 0.066666, 0.5, 8 / 15, np.nextafter(8 / 15, 1), 14 / 15, 1.0])
def test_bins_are_those_of_the_diagram(confidence: float) -> None:
    (low,) = reliability_bins([confidence], [True], BINS, "width").low
    assert bin_of(confidence) == round(low * BINS)


def test_fewer_pixels_are_allowed_than_in_a_data_set(whole_predictor: Predictor) -> None:
    with pytest.raises(InputError, match=rf"claims 8,193 × 8,193 pixels; at most {MOST_PIXELS:,} are decoded"):
        look(whole_predictor, bomb(8193, 8193), Asked())
