import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.records.files import Evaluated
from counterpoint.report import FORMATS, render, to_csv, to_json, to_markdown, to_svg, write_report
from tests.report.made import MakeEvaluated, changed

Save = Callable[..., Path]


def test_one_run_that_is_not_in_a_list(tmp_path: Path) -> None:
    for run in ("runs/mine", Path("runs/mine")):
        with pytest.raises(InputError, match=r"runs is 'runs/mine'; it must be a list, such as \['runs/mine'\]"):
            write_report(run, tmp_path / "report.html")  # type: ignore[arg-type]


def test_write_report_makes_the_folder_and_only_the_page(
    tmp_path: Path, make_evaluated: MakeEvaluated, save: Save
) -> None:
    run, other = (save(make_evaluated(), name) for name in ("run", "other"))
    out = tmp_path / "new" / "report.html"
    assert write_report([run, other / "results.json"], out) == []
    assert out.read_text(encoding="utf-8") == render(
        [replace(make_evaluated(), folder=name) for name in ("run", "other")]
    )
    assert list(out.parent.iterdir()) == [out]


def test_a_failed_write_leaves_the_old_page(
    tmp_path: Path, make_evaluated: MakeEvaluated, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = save(make_evaluated())
    out = tmp_path / "out" / "report.html"
    out.parent.mkdir()
    out.write_text("old")
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="disk full"):
        write_report([run], out)
    assert [(file.name, file.read_text()) for file in out.parent.iterdir()] == [("report.html", "old")]


def disk_full(_: int) -> None:
    raise OSError("disk full")


def test_out_must_not_be_a_folder(tmp_path: Path, make_evaluated: MakeEvaluated, save: Save) -> None:
    run = save(make_evaluated())
    with pytest.raises(InputError, match=r"is a folder; give a file name, such as .*report.html"):
        write_report([run], tmp_path)


def test_a_report_never_replaces_the_results_it_is_made_of(make_evaluated: MakeEvaluated, save: Save) -> None:
    run = save(make_evaluated())
    before = (run / "results.json").read_bytes()
    with pytest.raises(InputError, match=r"results\.json holds what is known of a run, and it is never replaced"):
        write_report([run], run / "results.json", "json")
    assert (run / "results.json").read_bytes() == before


@pytest.mark.parametrize(("format", "name"), [("csv", "r.html"), ("html", "r.CSV"), ("md", "r.json")])
def test_a_name_that_says_another_format_is_refused(
    tmp_path: Path, make_evaluated: MakeEvaluated, save: Save, format: str, name: str
) -> None:
    run = save(make_evaluated())
    with pytest.raises(
        InputError, match=rf"a {format} report cannot be written as '.*{name}'; .* ends in .{format}, or"
    ):
        write_report([run], tmp_path / name, format)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("format", "export"), [("html", render), ("csv", to_csv), ("md", to_markdown), ("json", to_json), ("svg", to_svg)]
)
def test_every_format_is_written(
    tmp_path: Path,
    make_evaluated: MakeEvaluated,
    save: Save,
    format: str,
    export: Callable[[Sequence[Evaluated]], str],
) -> None:
    run = make_evaluated(members=2, shifted=True, more=True, extra=True)
    out = tmp_path / "report"
    write_report([save(run)], out, format=format)
    assert out.read_bytes() == export([run]).encode()


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown report format 'cvs'; did you mean 'csv'"):
        write_report([], tmp_path / "report", format="cvs")


def test_a_report_needs_no_torch_and_no_numpy(tmp_path: Path, make_evaluated: MakeEvaluated, save: Save) -> None:
    run = save(make_evaluated("cifar10/single", shifted=True, more=True, extra=True))
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None; from pathlib import Path\n"
        "from counterpoint.report import write_report\n"
        "for format in ('html', 'csv', 'md', 'json', 'svg'):\n"
        "    write_report([Path(sys.argv[1])], Path(sys.argv[2]) / f'report.{format}', format)"
    )
    subprocess.run([sys.executable, "-c", code, str(run), str(tmp_path)], check=True)
    assert "<h1>cifar10/single</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {file.suffix for file in tmp_path.glob("report.*")} == {".html", ".csv", ".md", ".json", ".svg"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("record", "file", "command"),
    [
        ("recalibrated", "recalibrated.json", "recalibrate {}"),
        ("thresholded", "threshold.json", "threshold {} --error TARGET"),
    ],
)
def test_what_is_stale_is_left_out_and_named(
    tmp_path: Path, make_evaluated: MakeEvaluated, save: Save, format: str, record: str, file: str, command: str
) -> None:
    run = make_evaluated("mine", members=2, shifted=True, more=True)
    folder = save(changed(run, f"{record}.made_from.weights", "other"))
    out = tmp_path / "report"
    notes = write_report([save(make_evaluated("other", members=1), "whole"), folder], out, format)
    assert notes == [
        f"left out: {folder / file} was made from other logits than results.json; "
        f"`counterpoint {command.format(folder)}` makes it again"
    ]
    without = [make_evaluated("other", members=1), changed(run, record, None)]
    assert out.read_text(encoding="utf-8") == FORMATS[format](without)


REMOVED = object()


def spoil(values: Any, path: str, wrong: Any) -> None:
    *parents, last = (int(key) if key.isdigit() else key for key in path.split("."))
    for key in parents:
        values = values[key]
    if wrong is REMOVED:
        del values[last]
    else:
        values[last] = wrong


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("file", "path", "field"),
    [
        ("results.json", "clean.members.1.nll", "clean.members[1].nll"),
        ("results.json", "corrupted.cells.fog.2.ensemble.error", "corrupted.cells.fog[2].ensemble.error"),
        ("recalibrated.json", "ways.after.clean.ensemble.brier", "ways.after.clean.ensemble.brier"),
        ("compared.json", "against.0.corrupted.mean.error.low", "against[0].corrupted.mean.error.low"),
        ("threshold.json", "promise.chosen.upper", "promise.chosen.upper"),
        ("threshold.json", "cells.fog.2.kept", "cells.fog[2].kept"),
    ],
)
@pytest.mark.parametrize("wrong", [REMOVED, "much", float("nan"), 1e300], ids=["missing", "text", "nan", "huge"])
def test_a_damaged_file_is_one_line_that_names_the_field(
    tmp_path: Path, make_evaluated: MakeEvaluated, save: Save, format: str, file: str, path: str, field: str, wrong: Any
) -> None:
    folder = save(make_evaluated(members=2, shifted=True, more=True))
    values = json.loads((folder / file).read_text())
    spoil(values, path, wrong)
    (folder / file).write_text(json.dumps(values))
    with pytest.raises(InputError) as raised:
        write_report([folder], tmp_path / "report", format)
    words = str(raised.value)
    assert "\n" not in words
    assert words.startswith(f"{folder / file} is damaged or incomplete: {field} is ")
    assert not (tmp_path / "report").exists()
