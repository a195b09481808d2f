"""All files of records: written and read back, damaged field by field, and out of date."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.files import (
    SCHEMA,
    Evaluated,
    check_no_record,
    read_evaluated,
    read_record,
    read_results,
    stale_notes,
    write_record,
)
from counterpoint.records.images import Source
from counterpoint.records.outside import ByConfidence, Outside
from counterpoint.records.results import Imported, Results
from tests.made_results import make_compared, make_recalibrated, make_results, make_thresholded

MAKERS: dict[str, Callable[[], Any]] = {
    "results.json": make_results,
    "recalibrated.json": make_recalibrated,
    "compared.json": make_compared,
    "threshold.json": make_thresholded,
}
HUGE = 10**400
Place = tuple[str | int, ...]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder with all files."""
    (tmp_path / "run.json").write_text("{}")
    for name, make in MAKERS.items():
        write_record(tmp_path / name, make())
    return tmp_path


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every field and object in `value`, and of each list the first item, because all of its items are of one kind.

    Nothing in the configuration, which is not checked here.
    """
    if place and place[0] == "config":
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key)
            yield from places(inner, (*place, key))
    elif isinstance(value, list) and value:
        yield (*place, 0)
        yield from places(value[0], (*place, 0))


def name_of(place: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def at(values: Any, place: Place) -> Any:
    for part in place:
        values = values[part]
    return values


def problem_of(folder: Path) -> str:
    """What reading the files complains of; empty if nothing."""
    try:
        read_evaluated(folder)
    except InputError as error:
        return str(error)
    return ""


def test_all_files_come_back(folder: Path) -> None:
    everything = Evaluated(make_results(), make_recalibrated(), make_compared(), make_thresholded())
    assert read_evaluated(folder) == everything
    assert read_evaluated(folder / "results.json") == read_evaluated(folder)


def test_the_schema_number_is_in_every_file(folder: Path) -> None:
    assert [json.loads((folder / name).read_text())["schema"] for name in MAKERS] == [SCHEMA] * len(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("damage", ["a word", float("nan"), 1e999, HUGE, {}, []], ids=lambda value: repr(value)[:12])
def test_a_damaged_field_is_named(name: str, damage: Any) -> None:
    record = MAKERS[name]()
    values = encode(record)
    tried = 0
    for place in list(places(values)):
        holder = at(values, place[:-1])
        before = holder[place[-1]]
        # A list, an object or a text of another content can be right, and a text can be where there is none.
        if type(before) is type(damage) or before is None:
            continue
        holder[place[-1]] = damage
        with pytest.raises(FieldError) as error:
            decode(type(record), values)
        assert str(error.value).startswith(f"{name_of(place)} is "), str(error.value)
        holder[place[-1]] = before
        tried += 1
    assert tried > 40


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("damage", ["NaN", "1e999", "1" + 400 * "0", '"a word"', "{}"], ids=lambda value: value[:8])
def test_the_error_is_one_line_with_the_file_and_what_to_do(folder: Path, name: str, damage: str) -> None:
    text = (folder / name).read_text()
    fields = {"results.json": "nll", "recalibrated.json": "nll", "compared.json": "low", "threshold.json": "threshold"}
    field = fields[name]
    (folder / name).write_text(re.sub(rf'"{field}": [^,]+', f'"{field}": {damage}', text, count=1))
    message = problem_of(folder)
    assert re.match(
        rf"{re.escape(str(folder / name))} is damaged or incomplete: [\w.\[\]-]+\.{field} is .*; `counterpoint ",
        message,
    )
    assert "\n" not in message


EARLIER_OOD = {"dataset": "cifar100", "images": 9, "auroc": {"ensemble": 0.9, "members": [0.8, 0.85]}}
"""What a results.json had before there could be several sets of outside images."""

MAY_BE_MISSING = {
    # What earlier results, single networks or other evaluations have not,
    *("classes", "taken_for", "taken", "predicted_confidence"),
    *("aurc", "pairwise_kl", "intervals", "segments", "weights", "severities", "outside", "constants"),
    *("collapse", "health", "corrupted", "shifts", "r", "s", "spread_r", "spread_s"),
    # recalibrations without a choice, without a slope or of clean images alone,
    *("choice", "refused", "slopes", "standard_error", "moves"),
    *("differences", "calibration_differences"),
    # what a result that is kept small has not,
    *("members", "honest", "reliability", "risk_coverage", "member_reliability", "member_bins"),
    # what an estimate can refuse to give,
    *(f"ece_{kind}15_floor" for kind in ("width", "rms_width", "mass", "rms_mass")),
    *(f"ece_{kind}15_debiased" for kind in ("width", "rms_width", "mass", "rms_mass")),
    # and names that are not fields.
    *("validation-extra", "torch", "fog", "snow", "spatter", "letters"),
    *("per-member", "by both", "by entropy"),
}


MAY_BE_MISSING_OF_OUTSIDE = {"key", "signals", "auroc_low", "auroc_high", "fpr95", "mean_confidence"}


@pytest.mark.parametrize("name", MAKERS)
def test_a_missing_field_is_named_unless_it_may_be_missing(name: str) -> None:
    record = MAKERS[name]()
    values = encode(record)
    named = 0
    for place in [place for place in places(values) if isinstance(place[-1], str)]:
        holder = at(values, place[:-1])
        before = dict(holder)
        del holder[place[-1]]
        try:
            decode(type(record), values)
            problem = ""
        except FieldError as error:
            problem = str(error)
        named += problem == f"{name_of(place)} is missing"
        may_be_missing = MAY_BE_MISSING | (MAY_BE_MISSING_OF_OUTSIDE if place[0] == "outside" else set())
        assert problem == f"{name_of(place)} is missing" or place[-1] in may_be_missing, name_of(place)
        holder.clear()
        holder.update(before)
    assert named > 30


def test_the_one_set_of_outside_images_in_earlier_files_is_one_of_several_now(folder: Path) -> None:
    values = json.loads((folder / "results.json").read_text())
    letters = values.pop("outside")
    (folder / "results.json").write_text(json.dumps({**values, "ood": EARLIER_OOD}))
    results = read_results(folder / "results.json")
    assert results.outside == {
        "cifar100": Outside(
            images=9,
            ensemble=ByConfidence(auroc=0.9),
            members=(ByConfidence(auroc=0.8), ByConfidence(auroc=0.85)),
        )
    }
    assert "ood" not in encode(results)
    assert decode(Results, encode(results)) == results
    (folder / "results.json").write_text(json.dumps({**values, "ood": EARLIER_OOD, "outside": letters}))
    assert list(read_results(folder / "results.json").outside) == ["cifar100", "letters"]


COMMITTED = Path(__file__).parents[2] / "results"
EARLIER = sorted(path for path in COMMITTED.rglob("*.json") if '"ood": {' in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", EARLIER, ids=lambda path: path.relative_to(COMMITTED).as_posix())
def test_the_committed_results_of_earlier_versions_have_their_outside_images(file: Path) -> None:
    (name, found), earlier = *read_record(file, Results, "").outside.items(), json.loads(file.read_text())["ood"]
    assert (name, found.images) == (earlier["dataset"], earlier["images"])
    assert [found.ensemble.auroc, *(member.auroc for member in found.members)] == [
        earlier["auroc"]["ensemble"],
        *earlier["auroc"]["members"],
    ]


def test_what_a_threshold_keeps_of_other_outside_images_is_left_out(folder: Path) -> None:
    values = json.loads((folder / "results.json").read_text())
    assert not stale_notes(folder, read_results(folder / "results.json"))
    for change in ({"key": "another"}, {"images": 6}):
        changed = {"letters": {**values["outside"]["letters"], **change}}
        (folder / "results.json").write_text(json.dumps({**values, "outside": changed}))
        evaluated = read_evaluated(folder)
        assert evaluated.thresholded is not None
        assert evaluated.thresholded.outside == {}
        assert [note for note in evaluated.notes if "threshold.json does not cover letters" in note]
    (folder / "results.json").write_text(json.dumps({**values, "outside": {}, "ood": EARLIER_OOD}))
    assert not [note for note in read_evaluated(folder).notes if "threshold.json" in note], "nobody named these images"


def test_corruptions_from_before_there_were_two_kinds_of_constants_have_cifar_c_s() -> None:
    earlier = {"kind": "regenerated", "seed": 0, "version": "1", "frost": "texture"}
    assert encode(decode(Source, earlier)) == {**earlier, "constants": "cifar-c"}
    assert encode(decode(Source, {"kind": "official"})) == {"kind": "official", "constants": "cifar-c"}
    assert encode(decode(Source, {"kind": "given"})) == {"kind": "given"}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("clean", "ensemble", "error"), 7.0, "clean.ensemble.error is 7.0, and must be between 0 and 1"),
        (("evaluated_on", "images"), -1, "evaluated_on.images is -1, and must be between 0 and"),
        (("clean", "members"), [], "clean.members is [], and must be a list that is not empty"),
        (("corrupted", "cells"), {}, "corrupted.cells.fog is missing"),
        (("corrupted", "corruptions"), [], "corrupted.corruptions is an empty list, and must have at least one"),
        (("corrupted", "corruptions"), ["fog"], "corrupted.cells.snow is not one of the corruptions"),
        (("corrupted", "source"), {"kind": "regenerated", "seed": 1}, "corrupted.source.version is missing"),
        (("corrupted", "severities"), [1], "corrupted.cells.fog has 2 values, and there are 1 severities"),
        (("corrupted", "risk_coverage"), [], None),
        (("corrupted", "source", "kind"), "stolen", "corrupted.source.kind is 'stolen', and must be one of 'official'"),
        (("clean", "risk_coverage", "risk"), [0.1], "clean.risk_coverage.risk has 1 values, and coverage has 2"),
        (("clean", "risk_coverage"), {"coverage": [], "risk": []}, "clean.risk_coverage.risk is an empty list"),
        (("collapse", "severities"), [], None),
        (("health", "epochs"), [], "health.epochs is an empty list"),
        (("outside", "letters", "members"), [], "outside.letters.members is [], and must be a list that is not empty"),
        (
            ("outside", "letters", "ensemble", "auroc"),
            1.2,
            "outside.letters.ensemble.auroc is 1.2, and must be between",
        ),
        (
            ("outside", "letters", "signals", "entropy_of_mean"),
            7,
            "outside.letters.signals.entropy_of_mean is 7, and must",
        ),
        (
            ("ood",),
            {**EARLIER_OOD, "auroc": {"ensemble": 0.9, "members": [0.5]}},
            "ood.auroc.members has 1 values, and",
        ),
        (("ood",), {**EARLIER_OOD, "dataset": 3}, "ood.dataset is 3, and must be a text"),
        (("ood",), [EARLIER_OOD], "ood is [{'dataset'"),
    ],
)
def test_what_does_not_fit_together_is_named(folder: Path, place: Place, value: Any, message: str | None) -> None:
    values = json.loads((folder / "results.json").read_text())
    at(values, place[:-1])[place[-1]] = value
    (folder / "results.json").write_text(json.dumps(values))
    if message is None:
        assert isinstance(read_results(folder / "results.json"), Results)
        return
    with pytest.raises(InputError) as error:
        read_results(folder / "results.json")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"results\.json is damaged or is not JSON .*; `counterpoint evaluate .*` makes it again"),
        ("[" * 100_000, r"results\.json is damaged or is not JSON"),
        ("[]", r"names no schema"),
        ('{"schema": true}', r"names no schema"),
        ('{"schema": 1}', r"has schema 1, of an earlier .* reads 2; `counterpoint evaluate .*` makes it again"),
        ('{"schema": 3}', r"has schema 3, and this counterpoint reads 2; upgrade counterpoint"),
    ],
    ids=["cut", "deep", "list", "no number", "earlier", "later"],
)
def test_a_file_that_cannot_be_read_says_why(folder: Path, content: str, message: str) -> None:
    (folder / "results.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_evaluated(folder)


def test_a_folder_without_results_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run folder"):
        read_evaluated(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{}")
    with pytest.raises(InputError, match=rf"is not a run folder, but holds some: {tmp_path}/a$"):
        read_evaluated(tmp_path)
    with pytest.raises(InputError, match=r"has no results\.json; `counterpoint evaluate .*a` makes it"):
        read_evaluated(tmp_path / "a")
    with pytest.raises(InputError, match="does not exist"):
        read_evaluated(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "verb"),
    [("recalibrated.json", "recalibrate"), ("compared.json", "compare"), ("threshold.json", "threshold")],
)
@pytest.mark.parametrize("field", ["weights", "precision"])
def test_what_was_made_from_other_logits_is_left_out(folder: Path, name: str, verb: str, field: str) -> None:
    record = MAKERS[name]()
    write_record(folder / name, replace(record, made_from=replace(record.made_from, **{field: "another"})))
    evaluated = read_evaluated(folder)
    left = {
        "recalibrated.json": evaluated.recalibrated,
        "compared.json": evaluated.compared,
        "threshold.json": evaluated.thresholded,
    }
    assert [other for other, value in left.items() if value is None] == [name]
    (note,) = evaluated.notes
    assert note.startswith(f"left out: {folder / name} was made from other logits than results.json; ")
    assert f"`counterpoint {verb} {folder}" in note


def test_a_damaged_neighbour_is_a_note_for_whoever_writes_results(folder: Path) -> None:
    (folder / "compared.json").write_text("{")
    (note,) = stale_notes(folder, make_results())
    assert "compared.json is damaged or is not JSON" in note
    with pytest.raises(InputError, match=r"compared\.json is damaged or is not JSON"):
        read_evaluated(folder)


def test_a_results_file_of_another_name_stands_alone(folder: Path) -> None:
    (folder / "results.json").rename(folder / "figures.json")
    assert read_evaluated(folder / "figures.json") == Evaluated(make_results())


def test_what_is_known_of_a_run_is_told_from_other_files(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "results.json").rename(tmp_path / "elsewhere" / "paper-0.json")
    for file in (folder / "run.json", folder / "threshold.json", tmp_path / "elsewhere" / "paper-0.json"):
        with pytest.raises(InputError, match=rf"{file.name} holds what is known of a run, and it is never replaced"):
            check_no_record(file)
    (folder / "report.json").write_text('{"runs": []}')
    (tmp_path / "elsewhere" / "run.txt").write_text("{")
    for file in (folder / "compared.json", folder / "report.json", folder / "new.json", tmp_path / "elsewhere/run.txt"):
        check_no_record(file)


def test_what_is_written_is_what_encode_gives(folder: Path) -> None:
    assert json.loads((folder / "results.json").read_text()) == {"schema": SCHEMA, **encode(make_results())}


def test_a_model_was_trained_here_or_elsewhere() -> None:
    results = make_results()
    given = Imported(
        file="p.npz", sha256="abc", classes=("cat", "dog"), command="counterpoint evaluate", finished="now"
    )
    elsewhere = replace(results, run=None, imported=given, config={})
    assert decode(Results, encode(elsewhere)) == elsewhere
    assert (elsewhere.seed, elsewhere.made_from.given, results.made_from.given) == (None, "abc", None)
    wrong = {"run is missing": replace(results, run=None), "imported is there beside": replace(results, imported=given)}
    for message, both_or_neither in wrong.items():
        with pytest.raises(FieldError, match=message):
            decode(Results, encode(both_or_neither))
