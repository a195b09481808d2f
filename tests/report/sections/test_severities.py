from counterpoint.records.files import Evaluated
from counterpoint.report.run import label_runs
from counterpoint.report.sections.severities import Severities, against_severity
from tests.report.made import EXTRA, MakeEvaluated, changed


def content_of(*runs: Evaluated) -> Severities:
    content = against_severity(label_runs(runs))
    assert content is not None
    return content


def test_every_suite_of_every_run(make_evaluated: MakeEvaluated) -> None:
    content = content_of(
        make_evaluated("a", members=1, shifted=True, extra=True), make_evaluated("b", members=1, extra=True)
    )
    assert [run.label for run in content.runs] == ["a", f"a on {EXTRA}", f"b on {EXTRA}"]
    assert [run.severity.caption.partition(":")[0] for run in content.runs if run.severity] == [
        "Mean of the 15 corruptions",
        "Mean of the 4 corruptions",
        "Mean of the 4 corruptions",
    ]
    assert {len(run.reliability) for run in content.runs} == {5}


def test_the_images_are_named(make_evaluated: MakeEvaluated) -> None:
    evaluated = changed(make_evaluated(members=1, shifted=True, extra=True), "results.evaluated_on.images", 40)
    papers, extra = content_of(evaluated).runs
    assert papers.note == "Clean is the same 40 images without corruption."
    assert extra.note == (
        "There is no clean point: the clean figures are of 40 test images, and the corrupted ones of 40 validation "
        "images."
    )


def test_without_a_suite_there_is_nothing(make_evaluated: MakeEvaluated) -> None:
    assert against_severity(label_runs([make_evaluated(members=1)])) is None
