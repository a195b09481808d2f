from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.provenance import facts
from tests.report.made import MakeEvaluated, changed


@pytest.mark.parametrize(
    ("members", "config", "said"),
    [
        (4, {"ensemble": "deep"}, "deep ensemble: 4 separate networks"),
        (4, {"ensemble": "batch"}, "BatchEnsemble: 4 members with shared weights"),
        (4, {}, "BatchEnsemble: 4 members with shared weights"),  # as before there was a choice
        (1, {"ensemble": "batch"}, None),
    ],
)
def test_the_facts_name_the_kind_of_ensemble(
    make_evaluated: MakeEvaluated, members: int, config: dict[str, Any], said: str | None
) -> None:
    run = changed(make_evaluated(members=members), "results.config", config)
    assert dict(facts(ReportedRun("mine", run))).get("Ensemble") == said
