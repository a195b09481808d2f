from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.provenance import facts
from tests.report.made import MakeEvaluated, changed


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model": "resnext29"}, "resnext29"),
        ({"model": "vit", "model_options": {"width": 64, "depth": 2}, "pretrained": False}, "vit (width 64, depth 2)"),
        ({"model": "timm/resnet18", "model_options": {}, "pretrained": True}, "timm/resnet18 (pretrained)"),
    ],
)
def test_the_facts_name_the_network(make_evaluated: MakeEvaluated, config: dict[str, Any], said: str) -> None:
    run = changed(make_evaluated(), "results.config", config)
    assert dict(facts(ReportedRun("mine", run)))["Network"] == said
