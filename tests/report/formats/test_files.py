import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.report import render, to_csv, to_json, to_markdown, write_report

MakeResults = Callable[..., dict[str, Any]]


def save(folder: Path, results: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_write_report_makes_the_folder_and_only_the_page(tmp_path: Path, make_results: MakeResults) -> None:
    run, other = (save(tmp_path / name, make_results()) for name in ("run", "other"))
    out = tmp_path / "new" / "report.html"
    write_report([run, other / "results.json"], out)
    assert out.read_text(encoding="utf-8") == render([make_results(), make_results()])
    assert list(out.parent.iterdir()) == [out]


def test_a_failed_write_leaves_the_old_page(
    tmp_path: Path, make_results: MakeResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = save(tmp_path / "run", make_results())
    out = tmp_path / "out" / "report.html"
    out.parent.mkdir()
    out.write_text("old")
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="disk full"):
        write_report([run], out)
    assert [(file.name, file.read_text()) for file in out.parent.iterdir()] == [("report.html", "old")]


def disk_full(_: int) -> None:
    raise OSError("disk full")


def test_out_must_not_be_a_folder(tmp_path: Path, make_results: MakeResults) -> None:
    run = save(tmp_path / "run", make_results())
    with pytest.raises(InputError, match=r"is a folder; give the report's file name, such as .*report.html"):
        write_report([run], tmp_path)


@pytest.mark.parametrize(("format", "name"), [("csv", "r.html"), ("html", "r.CSV"), ("md", "r.json")])
def test_a_name_that_says_another_format_is_refused(
    tmp_path: Path, make_results: MakeResults, format: str, name: str
) -> None:
    run = save(tmp_path / "run", make_results())
    with pytest.raises(
        InputError, match=rf"a {format} report cannot be written as '.*{name}'; .* ends in .{format}, or"
    ):
        write_report([run], tmp_path / name, format)
    assert not (tmp_path / name).exists()


def test_a_run_given_twice_is_refused(tmp_path: Path, make_results: MakeResults) -> None:
    run = save(tmp_path / "run", make_results())
    (tmp_path / "link").symlink_to(run)
    for again in (run, run / "results.json", tmp_path / "link"):
        with pytest.raises(InputError, match=f"{again} is given twice; name each run once"):
            write_report([run, again], tmp_path / "report.html")


@pytest.mark.parametrize(
    ("format", "export"), [("html", render), ("csv", to_csv), ("md", to_markdown), ("json", to_json)]
)
def test_every_format_is_written(
    tmp_path: Path, make_results: MakeResults, format: str, export: Callable[[list[dict[str, Any]]], str]
) -> None:
    results = make_results(members=2, shifted=True)
    out = tmp_path / "report"
    write_report([save(tmp_path / "run", results)], out, format=format)
    assert out.read_bytes() == export([results]).encode()


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown report format 'cvs'; did you mean 'csv'"):
        write_report([], tmp_path / "report", format="cvs")


def test_a_report_needs_no_torch_and_no_numpy(tmp_path: Path, make_results: MakeResults) -> None:
    run = save(tmp_path / "run", make_results("cifar10/single", shifted=True, more=True))
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None; from pathlib import Path\n"
        "from counterpoint.report import write_report\n"
        "for format in ('html', 'csv', 'md', 'json'):\n"
        "    write_report([Path(sys.argv[1])], Path(sys.argv[2]) / f'report.{format}', format)"
    )
    subprocess.run([sys.executable, "-c", code, str(run), str(tmp_path)], check=True)
    assert "<h1>cifar10/single</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {file.suffix for file in tmp_path.glob("report.*")} == {".html", ".csv", ".md", ".json"}
