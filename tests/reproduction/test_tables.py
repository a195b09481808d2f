"""Ours beside the paper's: in lines, on the page, and in a terminal."""

import io
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from rich.console import Console

from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.rows import Folders, RowRun, results_of_row, select_rows, write_result
from counterpoint.reproduction.tables import is_written, page, table_lines, terminal_tables, write_page
from tests.made_rows import begin_row, row_results

PAPER, SHORT = find_schedule("paper"), find_schedule("short")
SINGLE = RowRun("cifar10/single", PAPER, 0)


def test_ours_stand_beside_the_papers(folders: Folders) -> None:
    for seed, error in ((0, 0.04), (1, 0.05)):
        run = RowRun(SINGLE.row, PAPER, seed)
        write_result(folders.results, run, row_results(run, error))
    begin_row(folders, RowRun(SINGLE.row, PAPER, 0), 200)
    begin_row(folders, RowRun(SINGLE.row, PAPER, 2), 86)
    begin_row(folders, RowRun("cifar10/be+sd", PAPER, 0), 3)
    single, plain, depth = table_lines(["cifar10/single", "cifar10/batch-ensemble", "cifar10/be+sd"], PAPER, folders)
    assert single.status == "n = 2, 20.0 min; seed 2: epoch 86 of 200"
    assert (single.ours[:2], single.theirs[:2]) == (("4.50 ± 0.71", "2.25 ± 0.35"), ("4.18", "1.25"))
    assert (single.ours[3], single.theirs[3]) == ("22.50 ± 3.54", "26.5")
    assert (plain.status, plain.ours[:2], plain.theirs[:2]) == ("not run", ("–", "–"), ("3.96", "1.57"))
    assert depth.status == "seed 0: epoch 3 of 250"


def test_a_row_says_that_its_seeds_have_other_corrupted_images(folders: Folders) -> None:
    for seed in (0, 1, 2):
        run = RowRun(SINGLE.row, PAPER, seed)
        result = row_results(run)
        assert result.corrupted is not None
        source = replace(result.corrupted.source, frost="photographs" if seed < 2 else "texture")
        write_result(folders.results, run, replace(result, corrupted=replace(result.corrupted, source=source)))
        expected = f"n = {seed + 1}, {seed + 1}0.0 min" + ("; -C is not of the same images" if seed == 2 else "")
        assert table_lines([SINGLE.row], PAPER, folders)[0].status == expected


def test_one_seed_has_no_spread(folders: Folders) -> None:
    write_result(folders.results, SINGLE, row_results(SINGLE))
    assert table_lines([SINGLE.row], PAPER, folders)[0].ours[0] == "4.21"


def test_a_short_result_says_so_and_nothing_about_clean_calibration(folders: Folders) -> None:
    run = RowRun("cifar10/single", SHORT, 0)
    write_result(folders.results, run, row_results(run))
    assert table_lines([run.row], PAPER, folders)[0].status == "not run"
    line = table_lines([run.row], SHORT, folders)[0]
    assert line.ours == ("4.21", "–", "–", "21.05", "10.53", "5.26")
    assert line.theirs == ("4.18", "1.25", "3.20", "26.5", "13.5", "15.4")
    text = page(folders, folders.results.with_name("docs"))
    assert "## Schedule short: a fifth of the paper's epochs" in text
    assert "these figures cannot be compared with the paper's. Clean calibration is left out" in text
    paper_section, short_section = text.split("## Schedule short")
    assert "4.21" not in paper_section
    assert "4.21/4.18" in short_section


def test_a_smoke_result_shows_that_the_row_runs_and_no_figure(folders: Folders) -> None:
    run = RowRun("cifar10/single", find_schedule("smoke"), 0)
    write_result(folders.results, run, row_results(run))
    paper_section, smoke_section = page(folders, folders.results.with_name("docs")).split("## Schedule smoke")
    assert "No row has been run yet." in paper_section
    assert "[cifar10/single/smoke-0](../results/cifar10/single/smoke-0.json) | 10.0 |" in smoke_section
    assert "4.21" not in smoke_section
    assert "/4.18" not in smoke_section


def test_only_a_results_own_file_is_one(folders: Folders) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    for name in ("paper-0.json.bak", "paper-0 (copy).json", "paper-.json"):
        path.with_name(name).write_text(path.read_text())
    assert table_lines([SINGLE.row], PAPER, folders)[0].status == "n = 1, 10.0 min"


def test_the_page_shows_what_is_under_way_before_any_result(folders: Folders) -> None:
    begin_row(folders, SINGLE, 5)
    assert "| `cifar10/single` | seed 0: epoch 5 of 200 |" in page(folders, folders.results.with_name("docs"))


def test_the_page_has_every_row_and_where_results_come_from(folders: Folders) -> None:
    assert (
        page(folders, folders.results.with_name("docs")).count("##") == 1
    )  # with nothing run, only the paper's schedule, without tables
    write_result(folders.results, SINGLE, row_results(SINGLE))
    text = page(folders, folders.results.with_name("docs"))
    for row in select_rows("all"):
        assert text.count(f"`{row}`") == 1
    assert text.count("not run") == 35
    assert (
        "| [cifar10/single/paper-0](../results/cifar10/single/paper-0.json) | 10.0 | a machine | compiled, fast | "
        "0123456, 89abcde | 5,000 validation images | regenerated (seed 0, frost: photographs), "
        "10,000 images per cell |"
    ) in text
    assert "Schedule short" not in text


def test_the_links_of_the_page_lead_somewhere(folders: Folders, tmp_path: Path) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    for place in (tmp_path, tmp_path / "docs", tmp_path / "my pages" / "here"):
        place.mkdir(parents=True, exist_ok=True)
        write_page(place / "page.md", folders)
        links = re.findall(r"\]\((.+?)\)", (place / "page.md").read_text())
        assert [(place / unquote(link)).resolve() for link in links] == [path], "and there are no others"
        assert is_written(place / "page.md", folders)
    (tmp_path / "docs" / "findings.md").touch()
    assert "[Findings](findings.md)" in page(folders, tmp_path / "docs")


def test_the_terminal_shows_each_table_and_data_set(folders: Folders) -> None:
    write_result(folders.results, SINGLE, row_results(SINGLE))
    console = Console(width=80, record=True, file=io.StringIO())
    for table in terminal_tables(select_rows("table2"), PAPER, folders):
        console.print(table)
    shown = console.export_text().splitlines()
    assert [line.strip() for line in shown if line.startswith("Table")] == [
        "Table 2, CIFAR-10, schedule paper (the paper's epochs)",
        "Table 2, CIFAR-100, schedule paper (the paper's epochs)",
    ]
    at = next(number for number, line in enumerate(shown) if line.startswith("single"))
    ours, theirs = (" ".join(line.split()) for line in shown[at : at + 2])
    assert ours == "single n = 1, 10.0 min 4.21 2.10 1.05 21.05 10.53 5.26"
    assert theirs == "the paper 4.18 1.25 3.20 26.5 13.5 15.4"


def test_a_smoke_result_has_no_figure_of_the_paper_beside_it(folders: Folders) -> None:
    run = RowRun(SINGLE.row, find_schedule("smoke"), 0)
    write_result(folders.results, run, row_results(run))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(*terminal_tables([run.row], run.schedule, folders))
    shown = console.export_text()
    assert "4.21" in shown
    assert "4.18" not in shown


def test_a_narrow_terminal_cuts_no_figure_short(folders: Folders) -> None:
    for seed, error in ((0, 0.04), (1, 0.05)):
        run = RowRun(SINGLE.row, PAPER, seed)
        write_result(folders.results, run, row_results(run, error))
    console = Console(width=60, record=True, file=io.StringIO())
    for table in terminal_tables(select_rows("table2"), PAPER, folders):
        console.print(table)
    assert "…" not in console.export_text()


def test_no_result_counts_twice(folders: Folders) -> None:
    write_result(folders.results, SINGLE, row_results(SINGLE))
    place = folders.results / SINGLE.place
    place.mkdir()  # as if runs and results were in one folder
    (place.parent / "paper-00.json").write_bytes(place.with_suffix(".json").read_bytes())
    (place.parent / "paper-0.json.bak").touch()
    assert table_lines([SINGLE.row], PAPER, folders)[0].status.startswith("n = 1, ")


def test_a_damaged_run_does_not_keep_the_results_from_being_shown(folders: Folders) -> None:
    write_result(folders.results, SINGLE, row_results(SINGLE))
    begin_row(folders, RowRun(SINGLE.row, PAPER, 1), 3)
    (folders.runs / SINGLE.row / "paper-1" / "run.json").write_text("{")
    assert table_lines([SINGLE.row], PAPER, folders)[0].status == "n = 1, 10.0 min; seed 1: its files are damaged"


DAMAGED = {
    "cut": b'{"schema": 2, "exp',
    "binary": bytes(range(256)),
    "empty": b"",
    "a list": b"[]",
    "types": b'{"schema": 2}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_result_is_shown_as_such_beside_the_others(folders: Folders, content: bytes) -> None:
    other = RowRun(SINGLE.row, PAPER, 1)
    for run in (SINGLE, other):
        write_result(folders.results, run, row_results(run))
    (folders.results / f"{other.place}.json").write_bytes(content)
    begin_row(folders, other, 3)
    rows = [SINGLE.row, "cifar10/batch-ensemble"]
    ours, theirs = table_lines(rows, PAPER, folders)
    assert ours.status == "n = 1, 10.0 min; seed 1: its result is damaged"
    assert ours.ours[0] == "4.21", "the other seed's figure alone"
    assert theirs.status == "not run"
    assert "Left out, because their files are damaged: cifar10/single/paper-1." in page(
        folders, folders.results.with_name("docs")
    )
    (reason,) = results_of_row(folders.results, SINGLE.row, PAPER).damaged.values()
    assert "paper-1.json" in reason
    assert "restore it, or move it away and run the row again" in reason


@pytest.mark.parametrize("schedule", ["paper", "smoke"])
def test_a_row_of_damaged_results_alone_is_not_called_not_run(folders: Folders, schedule: str) -> None:
    run = RowRun(SINGLE.row, find_schedule(schedule), 0)
    write_result(folders.results, run, row_results(run)).write_text("{")
    (line,) = table_lines([run.row], run.schedule, folders)
    assert (line.status, set(line.ours)) == ("seed 0: its result is damaged", {"–"})
    assert f"their files are damaged: cifar10/single/{schedule}-0." in page(folders, folders.results.with_name("docs"))
