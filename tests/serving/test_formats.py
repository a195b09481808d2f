import csv
import io
import json

from counterpoint.serving.formats import csv_lines, json_lines
from counterpoint.serving.predict import Opinion, Prediction, Unread

ANSWERS: list[Prediction | Unread] = [
    Prediction("a, b.png", Opinion("猫", 0.75), (Opinion("猫", 0.5), Opinion("dog", 1.0)), sure=None),
    Unread("c.png", 'is "bad", really'),
    Prediction("d.png", Opinion("dog", 1.0), (Opinion("dog", 1.0), Opinion("dog", 1.0)), sure=False),
]


def test_lines_of_json() -> None:
    first, second, third = map(json.loads, json_lines(ANSWERS, "by entropy"))
    assert first == {
        "path": "a, b.png",
        "class": "猫",
        "confidence": 0.75,
        "members": [{"class": "猫", "confidence": 0.5}, {"class": "dog", "confidence": 1.0}],
        "agree": False,
        "recalibration": "by entropy",
    }
    assert second == {"path": "c.png", "error": 'is "bad", really'}
    assert (third["agree"], third["sure"]) == (True, False)


def test_lines_of_csv() -> None:
    first, second, third = csv.DictReader(io.StringIO("\n".join(csv_lines(ANSWERS, "none", members=2))))
    assert first["path"] == "a, b.png"
    assert (first["class"], first["confidence"], first["agree"], first["sure"]) == ("猫", "0.75", "false", "")
    assert (first["member_2_class"], first["member_2_confidence"], first["error"]) == ("dog", "1.0", "")
    assert (second["class"], second["member_1_class"], second["error"]) == ("", "", 'is "bad", really')
    assert (third["agree"], third["sure"], third["recalibration"]) == ("true", "false", "none")


def test_the_likeliest_classes_are_there_where_they_were_asked_for() -> None:
    likeliest = (Opinion("cat", 0.6), Opinion("dog", 0.3))
    answers: list[Prediction | Unread] = [
        Prediction("a.png", likeliest[0], (Opinion("cat", 0.6),), None, likeliest),
        Unread("b.png", "is bad"),
    ]
    (found, _) = map(json.loads, json_lines(answers, "none"))
    assert found["top"] == [{"class": "cat", "confidence": 0.6}, {"class": "dog", "confidence": 0.3}]
    first, second = csv.DictReader(io.StringIO("\n".join(csv_lines(answers, "none", members=1, top=2))))
    assert (first["top_1_class"], first["top_1_confidence"]) == ("cat", "0.6")
    assert (first["top_2_class"], first["top_2_confidence"], first["error"]) == ("dog", "0.3", "")
    assert (second["top_2_class"], second["error"]) == ("", "is bad")
