"""The figures on the pages are those of the committed results.

A new result changes them: these tests then say which page is behind.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from statistics import mean, stdev
from typing import Any

import pytest
from scipy import stats

from counterpoint.experiments.schedules import SCHEDULES
from counterpoint.reproduction.rows import Folders, select_rows
from counterpoint.reproduction.tables import Line, page, table_lines
from tests.docs.pages import ROOT

RESULTS = ROOT / "results"
FOLDERS = Folders(ROOT / "there-are-no-runs", RESULTS)
ROWS_OF_THE_README = {
    "CIFAR-10": {
        "single network": "single",
        "single network, AugMix": "single-am-bern-0.875",
        "BatchEnsemble": "batch-ensemble",
        "BatchEnsemble, AugMix, diverse": "am-bern-0.875",
    },
    "CIFAR-100": {
        "single network, two seeds": "single",
        "single network, AugMix, two seeds": "single-am-bern-0.875",
        "BatchEnsemble": "batch-ensemble",
        "BatchEnsemble, AugMix, diverse": "am-bern-0.875",
        "BatchEnsemble, stochastic depth, diverse": "be+sd",
        "BatchEnsemble, stochastic depth, not diverse": "be+sd-not-diverse",
    },
}
IN_WORDS = "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen".split()
_NUMBER = r"([+-]?\d+\.\d+)"
INTERVAL = re.compile(
    rf"{_NUMBER}(?: %| points| nats)?(?: less -C ECE)? "
    rf"\((?:95 % interval over images: )?{_NUMBER} to {_NUMBER}(?: %)?\)"
)
NOT_IN_A_RESULT = re.compile(r"^## Does disagreement help an ensemble.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
"""A section on recalibration whose intervals benchmarks/signals.py prints from logits."""


@cache
def lines() -> dict[str, Line]:
    return {line.row: line for line in table_lines(select_rows("all"), SCHEDULES["paper"], FOLDERS)}


def text_of(name: str) -> str:
    """A page in one line, with the hyphen as its minus and without the section that is not checked."""
    text, sections = NOT_IN_A_RESULT.subn("", (ROOT / name).read_text(encoding="utf-8"))
    assert sections == (name == "docs/findings/recalibration.md"), f"{name}: {NOT_IN_A_RESULT.pattern}"
    return re.sub(r"\s+", " ", text.replace("−", "-"))


def intervals_in(record: Any) -> Iterator[tuple[float, float, float]]:
    """A value with its interval, wherever a record has one, and the same difference turned round."""
    if isinstance(record, dict):
        for name in ("difference", "debiased", "value"):
            if {name, "low", "high"} <= record.keys():
                yield record[name], record["low"], record["high"]
                yield -record[name], -record["high"], -record["low"]
    for inner in record.values() if isinstance(record, dict) else record if isinstance(record, list) else ():
        yield from intervals_in(inner)


MANY_SEEDS = {"digits": 0.975, "digits-deep": 0.983}
"""The files that benchmarks/diversity.py wrote, and the level of the intervals that the rule for each asks for."""


def many_seeds(name: str) -> dict[str, dict[str, dict[str, float]]]:
    """Of each kind of network and seed the figures in one of these files."""
    path = RESULTS / "diversity-cpu" / f"{name}.json"
    found: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text())
    return found


def intervals_over_seeds() -> Iterator[tuple[float, float, float]]:
    """The mean difference in -C ECE of two kinds of network over all seeds, with the interval of the rule."""
    for name, level in MANY_SEEDS.items():
        for runs, others in permutations(many_seeds(name).values(), 2):
            differences = [runs[seed]["corrupted_ece"] - others[seed]["corrupted_ece"] for seed in runs]
            centre = mean(differences)
            low, high = stats.t(len(runs) - 1, centre, stdev(differences) / len(runs) ** 0.5).interval(level)
            yield centre, float(low), float(high)


@cache
def known_intervals() -> set[tuple[float, ...]]:
    """Every interval of the committed results as pages round them: in percent, or plain with up to four digits."""
    records = (json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.rglob("*.json"))
    found = {interval for record in records for interval in intervals_in(record)} | set(intervals_over_seeds())
    rounded = ((scale, digits) for scale, digits in ((100, 2), (100, 1), (1, 2), (1, 3), (1, 4)))
    return {
        tuple(round(scale * value, digits) for value in interval) for scale, digits in rounded for interval in found
    }


def test_the_page_of_all_rows_is_what_its_command_writes() -> None:
    written = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert written == page(FOLDERS, ROOT / "docs"), "run `counterpoint reproduce all --page docs/reproduction.md`"


@pytest.mark.parametrize("dataset", ROWS_OF_THE_README)
def test_the_readme_has_the_figures_of_its_rows(dataset: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition(f"| {dataset} | error | ECE | -C error | -C ECE |\n")[2].partition("\n\n")[0]
    shown = dict(re.findall(r"^\| ([^|]*\S) \| (.+) \|$", table, re.MULTILINE))
    expected = {}
    for words, row in ROWS_OF_THE_README[dataset].items():
        line = lines()[f"{dataset.lower().replace('-', '')}/{row}"]
        figures = [f"{line.ours[i].partition(' ')[0]} ({line.theirs[i]})" for i in (0, 1, 3, 4)]
        expected[words] = " | ".join(figures)
        assert ("two seeds" in words) == line.status.startswith("n = 2")
    assert shown == expected


def test_the_page_of_differences_has_the_difference_of_every_figure() -> None:
    table = text_of("docs/differences.md").partition("## Where our figures differ")[2]
    for line in (line for line in lines().values() if line.status.startswith("n = 1")):
        cells = table.partition(f"[`{line.row}`]")[2].split(" | ")[1:7]
        shown = [float(cell.strip("* |")) for cell in cells]
        ours_less_theirs = [float(ours) - float(theirs) for ours, theirs in zip(line.ours, line.theirs, strict=True)]
        assert shown == pytest.approx(ours_less_theirs, abs=0.011), line.row
        assert [cell.strip(" |").startswith("**") for cell in cells] == [abs(one) > 1 for one in shown], line.row


def test_the_pages_say_what_stochastic_depth_adds() -> None:
    names = [f"cifar100/{row}" for row in ("batch-ensemble", "be+sd", "be+sd-not-diverse")]
    ours, theirs = ([float(getattr(lines()[name], whose)[4]) for name in names] for whose in ("ours", "theirs"))
    diverse, same = ours[1] - ours[0], ours[2] - ours[0]
    paper = [f"{one - theirs[0]:.1f}" for one in theirs[1:]]
    said = {
        "README.md": f"it adds {diverse:.1f} points of ECE to the plain ensemble, and {same:.1f} points if it is not "
        f"diverse. In the paper it adds {paper[0]} and {paper[1]} points",
        "docs/findings/ensembles.md": f"{diverse:.2f} points of -C ECE with diverse drop rates (the paper: "
        f"{paper[0]}), and {same:.2f} points with one drop rate ({paper[1]})",
        "docs/differences.md": f"Stochastic depth adds {diverse:.1f} points of -C ECE if it is diverse, and {same:.1f} "
        f"points if it is not. In the paper it adds {paper[0]} and {paper[1]} points",
    }
    assert not {name: words for name, words in said.items() if words not in text_of(name)}


def test_the_pages_say_how_many_rows_and_seeds_there_are() -> None:
    seeds = [int(n[1]) for line in lines().values() if (n := re.match(r"n = (\d+)", line.status))]
    rows, twice, once = (IN_WORDS[count] for count in (len(seeds), seeds.count(2), seeds.count(1)))
    assert max(seeds) == 2, "a row has three seeds: say so on these pages, and here"
    said = {
        "README.md": f"{rows.title()} of its 36 rows are trained, {twice} of them with two seeds.",
        "docs/findings.md": f"{rows.title()} of the paper's 36 rows are trained and evaluated at its schedule. "
        f"{twice.title()} of them have two seeds",
        "docs/trust.md": f"{rows.title()} of the paper's rows are trained at its schedule. {twice.title()} of them "
        f"have two seeds, the other {once} have one.",
    }
    behind = {name: words for name, words in said.items() if words not in text_of(name)}
    assert not behind, f"these pages should say: {behind}"


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("README.md", 1),
        ("docs/findings.md", 44),
        ("docs/findings/augmix.md", 11),
        ("docs/findings/chance.md", 14),
        ("docs/findings/diversity.md", 0),
        ("docs/findings/ensembles.md", 7),
        ("docs/findings/recalibration.md", 0),
        ("docs/findings/small-networks.md", 7),
    ],
)
def test_every_interval_is_that_of_a_result(name: str, least: int) -> None:
    shown = {found.groups(): found[0] for found in INTERVAL.finditer(text_of(name))}
    assert len(shown) >= least, "the page writes its intervals in another way, and they are not checked"
    wrong = [words for values, words in shown.items() if tuple(map(float, values)) not in known_intervals()]
    assert not wrong, f"{name}: no file in results/ has {wrong}"
