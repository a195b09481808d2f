"""What the page says of images of none of the classes."""

from dataclasses import replace

from counterpoint.records.files import Evaluated
from counterpoint.records.outside import ByConfidence, Outside
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.outside import OutsideSets, outside, run_table, sets_in_words
from tests.report.made import MakeEvaluated, changed


def content_of(*evaluated: Evaluated) -> OutsideSets:
    content = outside(label_runs(evaluated))
    assert content is not None
    return content


def test_all_rows_of_an_ensemble(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, more=True, shifted=True)
    (one,) = content_of(evaluated).sets
    letters = evaluated.results.outside["letters"]
    assert letters.signals is not None
    assert [(row.label, row.entries[0].text) for row in one.table.rows] == [
        ("quickstart", "confidence"),
        ("", "entropy"),
        ("", "mutual information"),
        ("member 1", "confidence"),
        ("member 2", "confidence"),
    ]
    found = [letters.ensemble, *letters.signals.values(), *letters.members]
    for row, separation in zip(one.table.rows, found, strict=True):
        assert row.entries[1].text == f"{separation.auroc:.3f}"
        assert separation.fpr95 is not None
        assert row.entries[2].text == f"{100 * separation.fpr95:.2f}"
    low, high = letters.ensemble.auroc_low, letters.ensemble.auroc_high
    assert one.table.rows[0].entries[1].below == f"{low:.3f} to {high:.3f}"
    assert one.table.rows[3].entries[1].below == "", "members have no interval"
    assert [row.entries[4].text for row in one.table.rows] == ["35.00", "–", "–", "–", "–"], "kept at the threshold"
    assert "letters: 60 images, named with --outside (key 01234567)" in one.table.caption


def test_the_words_say_what_is_accepted_and_kept(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, more=True, shifted=True)
    found = evaluated.results.outside["letters"].ensemble
    (words,) = content_of(evaluated).sets[0].words
    assert found.fpr95 is not None
    assert f"{100 * found.fpr95:.2f}\N{NO-BREAK SPACE}% of letters are accepted too" in words
    assert words.endswith("Its threshold keeps 35.00\N{NO-BREAK SPACE}% of them.")
    (plain,) = content_of(replace(evaluated, thresholded=None)).sets[0].words
    assert "threshold" not in plain


def test_runs_stand_together_only_if_both_kinds_of_images_are_the_same(make_evaluated: MakeEvaluated) -> None:
    first = make_evaluated("first", members=2, more=True, shifted=True)
    second = make_evaluated("second", members=1, more=True, shifted=True)
    (together,) = content_of(first, second).sets
    assert [row.label for row in together.table.rows if row.kind == "run"] == ["first", "second"]
    assert len(content_of(first, changed(second, "results.evaluated_on.images", 7)).sets) == 2
    others = replace(second.results.outside["letters"], key="another")
    assert len(content_of(first, changed(second, "results.outside", {"letters": others})).sets) == 2
    renamed = changed(second, "results.outside", {"script": second.results.outside["letters"]})
    assert len(content_of(first, renamed).sets) == 1, "a name makes no other images"


def test_results_of_earlier_versions_show_their_auroc_alone(make_evaluated: MakeEvaluated) -> None:
    earlier = Outside(images=9, ensemble=ByConfidence(auroc=0.875), members=(ByConfidence(auroc=0.75),) * 2)
    evaluated = changed(make_evaluated(members=2), "results.outside", {"cifar100": earlier})
    (one,) = content_of(evaluated).sets
    assert one.words == ()
    assert [[entry.in_one_line for entry in row.entries] for row in one.table.rows] == [
        ["confidence", "0.875", "–", "–"],
        *([["confidence", "0.750", "–", "–"]] * 2),
    ]
    assert "cifar100: 9 images of the test set" in one.table.caption


def test_nothing_to_show(make_evaluated: MakeEvaluated) -> None:
    run = ReportedRun("old", changed(make_evaluated(members=2), "results.outside", {}))
    assert outside([run]) is None
    assert run_table(run) is None
    assert sets_in_words(run) == []


def test_the_terminal_shows_the_whole_ensemble_on_each_set(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, more=True, shifted=True)
    letters = evaluated.results.outside["letters"]
    run = ReportedRun("quickstart", changed(evaluated, "results.outside", {"letters": letters, "more": letters}))
    table = run_table(run)
    assert table is not None
    assert [row.label for row in table.rows] == ["letters", "", "", "more", "", ""]
    assert "the known ones (digits, test part, 120 images), which are the positives" in table.caption
    assert sets_in_words(run)[-1] == "Other outside images can give other figures."
