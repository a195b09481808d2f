"""`counterpoint report` says what it left out, and the verdict."""

from pathlib import Path

from typer.testing import CliRunner

from counterpoint.cli.app import app
from counterpoint.records.files import COMPARED, RESULTS, write_record
from counterpoint.report import load_runs, verdict
from tests.report.made import changed, evaluated


def test_what_was_left_out_is_a_line(tmp_path: Path) -> None:
    run = changed(evaluated(members=1, more=True), "compared.made_from.precision", "bf16")
    write_record(tmp_path / RESULTS, run.results)
    write_record(tmp_path / COMPARED, run.compared)
    out = tmp_path / "report.md"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    left_out, *said, last = done.output.splitlines()
    assert left_out == (
        f"left out: {tmp_path / COMPARED} was made from other logits than results.json; "
        f"`counterpoint compare {tmp_path} OTHER` makes it again"
    )
    assert said == verdict(load_runs([tmp_path]))
    assert last == f"report: {out}"
    assert "digits/single" not in out.read_text(encoding="utf-8")
