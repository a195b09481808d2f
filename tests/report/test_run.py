from collections.abc import Callable
from typing import Any

import pytest

from counterpoint import corrupt
from counterpoint.report.run import CORRUPTIONS, SEVERITIES, ReportedRun, label_runs, models, source_in_words

MakeResults = Callable[..., dict[str, Any]]


def test_the_grid_is_that_of_the_corruption_suite() -> None:
    assert tuple(CORRUPTIONS) == tuple(corrupt.CORRUPTIONS)
    assert tuple(SEVERITIES) == tuple(corrupt.SEVERITIES)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"kind": "official"}, "the official files"),
        (
            {"kind": "regenerated", "seed": 3, "version": "0.1.0", "frost": "photographs"},
            "regenerated with seed 3 (generator 0.1.0), frost from photographs",
        ),
        (
            {"kind": "regenerated", "seed": 0, "version": "0.2.0", "frost": "texture"},
            "regenerated with seed 0 (generator 0.2.0), frost from a made texture",
        ),
    ],
)
def test_the_source_in_words(source: dict[str, Any], words: str) -> None:
    assert source_in_words(source) == words


@pytest.mark.parametrize(
    ("part", "images", "same"), [("test", 40, True), ("test", 120, False), ("validation", 40, False)]
)
def test_clean_is_severity_0_only_on_the_same_images(
    make_results: MakeResults, part: str, images: int, same: bool
) -> None:
    results = make_results(members=1, shifted=True)
    results["evaluated_on"].update(part=part, images=images)
    assert ReportedRun("run", results).clean_is_severity_0 is same


def test_an_aggregate_has_the_shape_of_a_summary(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    run = ReportedRun("run", results)
    cells = [cell["disagreement"] for row in results["corrupted"]["cells"].values() for cell in row]
    for aggregate in ("by-corruption", "by-cell", "pooled"):
        summary = run.aggregate(aggregate)
        assert summary["ensemble"] == results["corrupted"]["aggregates"]["ensemble"][aggregate]
        assert summary["members"] == [member[aggregate] for member in results["corrupted"]["aggregates"]["members"]]
        assert summary["disagreement"] == pytest.approx(sum(cells) / 75)
        assert summary["pairwise_kl"] == results["corrupted"]["aggregates"]["pairwise_kl"]


def test_one_network_has_no_disagreement(make_results: MakeResults) -> None:
    run = ReportedRun("run", make_results(members=1, shifted=True))
    assert run.aggregate("pooled")["disagreement"] is None
    assert [name for name, _ in models(run.clean)] == ["network"]


def test_models_name_the_ensemble_and_its_members(make_results: MakeResults) -> None:
    clean = make_results(members=3)["clean"]
    named = dict(models(clean))
    assert list(named) == ["ensemble", "member 1", "member 2", "member 3"]
    assert named["member 2"]["nll"] == clean["members"][1]["nll"]
    assert "disagreement" not in named["member 2"]
    assert named["ensemble"]["overconfidence"] == pytest.approx(
        clean["ensemble"]["mean_confidence"] - (1 - clean["ensemble"]["error"])
    )


def test_labels(make_results: MakeResults) -> None:
    results = [make_results("a", members=1, seed=seed) for seed in (0, 1, 1)] + [make_results("b", members=1)]
    assert [run.label for run in label_runs(results)] == ["a, seed 0", "a, seed 1, run 2", "a, seed 1, run 3", "b"]
