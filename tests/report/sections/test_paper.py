from collections.abc import Callable

import pytest

from counterpoint import config
from counterpoint.experiments import EXPERIMENTS
from counterpoint.experiments.paper import PAPER
from counterpoint.records.files import Evaluated
from counterpoint.records.images import Images
from counterpoint.report.run import label_runs
from counterpoint.report.sections.paper import TableBeside, beside_paper
from tests.report.made import OFFICIAL, MakeEvaluated, changed, changed_all

NAME = "cifar10/single"
MakeRow = Callable[..., Evaluated]


@pytest.fixture
def make_row(make_evaluated: MakeEvaluated) -> MakeRow:
    """A run that stands for a row of the paper, with changes to its configuration."""

    def make(name: str = NAME, seed: int = 0, *changes: str) -> Evaluated:
        return changed_all(
            make_evaluated(name, members=1, seed=seed, shifted=True),
            {
                "results.config": config.to_dict(config.override(EXPERIMENTS[name], changes)),
                "results.evaluated_on": Images("cifar10", "validation", 5_000),
                "results.corrupted.images": 10_000,
            },
        )

    return make


def tables(*runs: Evaluated) -> tuple[TableBeside, ...]:
    content = beside_paper(label_runs(runs))
    assert content is not None
    return content.printed


def lines(*runs: Evaluated) -> dict[str, list[str]]:
    (printed,) = tables(*runs)
    return {row.label: [entry.text for entry in row.entries] for row in printed.table.rows}


def test_ours_less_the_papers(make_row: MakeRow) -> None:
    clean, corrupted = "results.clean.ensemble", "results.corrupted.aggregates.ensemble.by-corruption"
    figures = {
        f"{clean}.error": 0.0518,
        f"{clean}.ece_width15": 0.01,
        f"{clean}.ece_rms_width15": 0.032,
        f"{corrupted}.error": 0.255,
        f"{corrupted}.ece_width15": 0.135,
        f"{corrupted}.ece_rms_width15": 0.16,
    }
    assert lines(changed_all(make_row(), figures)) == {
        "Vanilla ResNeXt: the paper": ["4.18", "1.25", "3.20", "26.50", "13.50", "15.40"],
        "ours, seed 0": ["5.18", "1.00", "3.20", "25.50", "13.50", "16.00"],
        "difference": ["+1.00", "−0.25", "0.00", "−1.00", "0.00", "+0.60"],
    }


def test_a_shortened_run_stands_beside_the_row_without_a_difference(make_row: MakeRow) -> None:
    assert list(lines(make_row(NAME, 0, "epochs=20"))) == [
        "Vanilla ResNeXt: the paper",
        "ours, seed 0, another configuration (epochs: 200 → 20)",
    ]


def test_many_changes_are_counted(make_row: MakeRow) -> None:
    changes = ("epochs=20", "batch_size=64", "momentum=0.5", "learning_rate=0.2", "weight_decay=0")
    (label,) = [label for label in lines(make_row(NAME, 0, *changes)) if label.startswith("ours")]
    assert label.endswith(" and 2 more)")
    assert label.count("→") == 3


def test_a_configuration_of_another_version(make_row: MakeRow) -> None:
    later = changed(make_row(), "results.config", {"name": NAME, "later": 1})
    assert "ours, seed 0, another configuration" in lines(later)


def test_several_seeds_have_the_difference_of_their_mean(make_row: MakeRow) -> None:
    runs = [make_row(NAME, seed) for seed in (0, 1)] + [make_row(NAME, 2, "epochs=20")]
    shown = lines(
        *(
            changed(run, "results.clean.ensemble.error", error)
            for run, error in zip(runs, (0.05, 0.06, 0.5), strict=True)
        )
    )
    assert shown["difference, mean of 2 runs"][0] == "+1.32"
    assert len(shown) == 5


@pytest.mark.parametrize(
    ("path", "absent", "label"),
    [
        ("results.evaluated_on.images", slice(0, 3), "ours, seed 0, clean on 150 images only"),
        ("results.corrupted.images", slice(3, 6), "ours, seed 0, -C on 150 images per cell only"),
    ],
)
def test_a_part_of_the_images_is_not_the_rows(make_row: MakeRow, path: str, absent: slice, label: str) -> None:
    shown = lines(changed(make_row(), path, 150))
    assert shown[label][absent] == shown["difference"][absent] == 3 * ["–"]
    assert shown[label].count("–") == shown["difference"].count("–") == 3


def test_without_a_corrupted_set(make_row: MakeRow) -> None:
    plain = changed(make_row(), "results.corrupted", None)
    assert lines(plain)["ours, seed 0, -C not run"][3:] == 3 * ["–"]


def test_whether_our_cells_are_regenerated(make_row: MakeRow) -> None:
    official = changed(make_row(), "results.corrupted.source", OFFICIAL)
    for runs, is_regenerated in (([make_row()], True), ([official], False), ([official, make_row(seed=1)], True)):
        content = beside_paper(label_runs(runs))
        assert content is not None
        assert content.is_regenerated is is_regenerated


def test_the_other_rows_of_the_table_are_not_run(make_row: MakeRow) -> None:
    (printed,) = tables(make_row())
    assert printed.title == "Table 2, CIFAR-10"
    assert printed.not_run is not None
    others = [row for name, row in PAPER.items() if row.table == 2 and name.startswith("cifar10/") and name != NAME]
    assert [row.label for row in printed.not_run.rows] == [f"{row.label}: not run" for row in others]
    assert printed.not_run.rows[0].entries[0].text == f"{100 * others[0].clean.error:.2f}"


def test_one_part_per_table_and_data_set(make_row: MakeRow) -> None:
    names = [NAME, "cifar10/am-beta", "cifar100/single", "cifar10/batch-ensemble"]
    titles = [printed.title for printed in tables(*map(make_row, names))]
    assert sorted(titles) == ["Table 1, CIFAR-10", "Table 2, CIFAR-10", "Table 2, CIFAR-100"]


def test_runs_that_the_paper_has_not(make_evaluated: MakeEvaluated) -> None:
    assert beside_paper(label_runs([make_evaluated("digits/quickstart")])) is None
