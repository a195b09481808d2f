from dataclasses import replace

import pytest

from counterpoint.errors import InputError
from counterpoint.report.run import ReportedRun, grouped, label_runs, models
from tests.report.made import MakeEvaluated


def test_one_network_has_one_model(make_evaluated: MakeEvaluated) -> None:
    run = ReportedRun("run", make_evaluated(members=1))
    ((name, scores),) = models(run.clean)
    assert name == "network"
    assert scores["disagreement"] is None


def test_models_name_the_ensemble_and_its_members(make_evaluated: MakeEvaluated) -> None:
    clean = make_evaluated(members=3).results.clean
    named = dict(models(clean))
    assert list(named) == ["ensemble", "member 1", "member 2", "member 3"]
    assert named["member 2"]["nll"] == clean.members[1].nll
    assert "disagreement" not in named["member 2"]
    assert clean.honest is not None
    assert named["member 2"]["ece_mass15_debiased"] == clean.honest.members[1]["ece_mass15"].debiased


def test_labels(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("a", members=1, seed=seed) for seed in (0, 1, 1)] + [make_evaluated("b", members=1)]
    assert [run.label for run in label_runs(runs)] == ["a (seed 0)", "a (seed 1, run 2)", "a (seed 1, run 3)", "b"]


def test_no_runs() -> None:
    with pytest.raises(InputError, match="at least one run"):
        label_runs([])


def test_groups_come_in_the_order_of_their_keys() -> None:
    assert grouped([3, 1, 5, 2], lambda number: number % 2) == {1: [3, 1, 5], 0: [2]}


def test_the_commands_are_all_that_was_done_in_order(make_evaluated: MakeEvaluated) -> None:
    whole = make_evaluated(members=2, shifted=True, more=True)
    results, recalibrated, compared, thresholded = whole.results, whole.recalibrated, whole.compared, whole.thresholded
    assert recalibrated is not None
    assert compared is not None
    assert thresholded is not None
    added = (recalibrated.command, compared.command, thresholded.command)
    done = (results.trained.command, results.evaluation.command, *added)
    assert len(set(done)) == 5
    assert ReportedRun("run", whole).commands == done
    assert ReportedRun("run", replace(whole, recalibrated=None)).commands == (*done[:2], *done[3:])
    assert ReportedRun("run", replace(whole, thresholded=None)).commands == done[:4]
