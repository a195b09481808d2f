from xml.etree import ElementTree

import pytest

from counterpoint.records.figures import Curve
from counterpoint.report.drawing.curves import risk_coverage_chart

CURVE = Curve((0.5, 1.0), (0.1, 0.2))


@pytest.mark.parametrize(
    ("severities", "shades"),
    [(0, []), (1, ["0%"]), (3, ["0%", "50%", "100%"]), (7, ["0%", "16%", "33%", "50%", "66%", "83%", "100%"])],
)
def test_every_severity_has_its_shade(severities: int, shades: list[str]) -> None:
    by_severity = {f"Severity {number}": CURVE for number in range(1, severities + 1)}
    svg = ElementTree.fromstring(risk_coverage_chart(CURVE, by_severity, [0, 10, 20], "x"))
    clean, *others = svg.iter("path")
    assert clean.get("class") == "clean-curve"
    assert {one.get("class") for one in others} <= {"severity-curve"}
    assert [str(one.get("style")).removeprefix("--shade:") for one in others] == shades
