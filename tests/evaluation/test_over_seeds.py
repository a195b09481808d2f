"""Comparisons of experiments over seeds, from their results alone."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from counterpoint.errors import InputError
from counterpoint.evaluation.over_seeds import compare_experiments
from counterpoint.metrics import difference_over_seeds
from counterpoint.records.files import read_record, read_results, write_record
from counterpoint.records.images import Images, Source
from counterpoint.records.over_seeds import ComparedExperiments, SeedsComparison
from counterpoint.records.results import Results
from tests.made_trainings import ENSEMBLE, SINGLE, write_trainings

OURS, OTHER = {0: 0.10, 1: 0.12, 2: 0.17}, {0: 0.13, 1: 0.14, 2: 0.19}
ROWS = Path(__file__).parents[2] / "results" / "cifar100"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two experiments with the same three seeds."""
    ours = write_trainings(tmp_path / "ours", OURS, name=ENSEMBLE)
    return ours, write_trainings(tmp_path / "other", OTHER)


def compared(ours: Path, other: Path) -> SeedsComparison:
    (found,) = compare_experiments(ours, [other]).against
    return found


def change(folder: Path, seed: int, changed: Callable[[Results], Results]) -> None:
    file = folder / f"paper-{seed}.json"
    write_record(file, changed(read_results(file)))


def test_equal_seeds_are_compared_in_pairs(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    assert found.pairing == "pairs of equal seeds"
    expected = stats.ttest_rel([*OURS.values()], [*OTHER.values()]).confidence_interval()
    for differences, name, factor in (
        (found.clean, "error", 1.0),
        (found.clean, "nll", 2.0),
        (found.clean, "ece_width15_debiased", 0.1),
        (found.clean, "ece_width15", 0.5),
        (found.corrupted, "error", 5.0),
        (found.corrupted, "ece_width15_debiased", 0.5),
        (found.corrupted, "ece_rms_width15", 1.25),
    ):
        one = differences[name]
        assert (one.low, one.high) == pytest.approx((factor * expected.low, factor * expected.high)), name
        assert one.by_seed == pytest.approx([factor * each for each in (-0.03, -0.02, -0.02)])
        assert one.ours.values == pytest.approx([factor * error for error in OURS.values()])
        assert one.other.mean == pytest.approx(factor * 0.46 / 3)
        assert one.degrees_of_freedom == 2
    assert found.clean["error"].ours.deviation == pytest.approx(0.036056, rel=1e-4)
    brier = found.corrupted["brier"]
    assert (brier.low, brier.high) == (None, None), "it is the same in all runs"


def test_an_auroc_is_compared_on_the_same_outside_images(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    auroc, error = found.outside["letters"].auroc, found.clean["error"]
    assert (auroc.difference, auroc.low) == pytest.approx((-error.difference, -(error.high or 0)))
    change(
        pair[1], 2, lambda results: replace(results, outside={"letters": replace(results.outside["letters"], key="x")})
    )
    assert not compared(*pair).outside


def test_own_shifts_are_compared_where_all_runs_have_them(pair: tuple[Path, Path]) -> None:
    def add(results: Results) -> Results:
        assert results.corrupted is not None
        own = replace(results.corrupted, source=Source("own", key="0123"), corruptions=("frosted",), severities=(1,))
        own = replace(own, cells={"frosted": own.cells["fog"][:1]}, risk_coverage=(), member_bins=())
        return replace(results, shifts={"frosted": own})

    for folder in pair:
        for seed in OURS:
            change(folder, seed, add)
    found = compared(*pair)
    assert found.shifts["frosted"].differences == found.corrupted
    change(pair[0], 1, lambda results: replace(results, shifts={}))
    assert not compared(*pair).shifts


def test_other_seeds_are_two_groups(pair: tuple[Path, Path], tmp_path: Path) -> None:
    more = {**OTHER, 3: 0.15}
    for seeds in (more, {seed + 7: error for seed, error in OTHER.items()}):
        other = write_trainings(tmp_path / f"other{len(seeds)}", seeds)
        found = compared(pair[0], other)
        assert found.pairing == "two groups"
        expected = stats.ttest_ind([*OURS.values()], [*seeds.values()], equal_var=False)
        error = found.clean["error"]
        assert (error.low, error.high) == pytest.approx(tuple(expected.confidence_interval()))
        assert error.degrees_of_freedom == pytest.approx(expected.df)
        assert error.by_seed == ()


def test_the_file_holds_all_that_was_found(pair: tuple[Path, Path], tmp_path: Path) -> None:
    more = write_trainings(tmp_path / "more", {5: 0.1, 6: 0.2}, "epochs=7")
    (more / "paper-9").mkdir()
    (more / "paper-9" / "run.json").touch()
    out = tmp_path / "kept.json"
    found = compare_experiments(pair[0], [pair[1], more], out)
    assert read_record(out, ComparedExperiments, "") == found
    assert (found.ours.experiment, found.ours.place, found.ours.seeds) == (ENSEMBLE, "ours", (0, 1, 2))
    assert [one.run for one in found.ours.runs] == ["paper-0", "paper-1", "paper-2"]
    assert found.ours.runs[1].made_from == read_results(pair[0] / "paper-1.json").made_from
    other, third = (one.other for one in found.against)
    assert (other.experiment, other.config["epochs"]) == (SINGLE, 200)
    assert (third.place, third.config["epochs"], third.without_results) == ("more", 7, ("paper-9",))


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda one: replace(one, evaluated_on=Images("cifar10", "validation", 60)), "60 validation images of cifar10"),
        (lambda one: replace(one, evaluated_on=Images("cifar10", "validation", 5000, "abcdef")), "(key abcdef)"),
        (lambda one: replace(one, corrupted=replace(one.corrupted, images=60)), "60 images per cell"),
        (
            lambda one: replace(
                one, corrupted=replace(one.corrupted, source=replace(one.corrupted.source, constants="imagenet-c"))
            ),
            "imagenet-c",
        ),
        (lambda one: replace(one, corrupted=None), "10,000 images per cell (regenerated"),
    ],
    ids=["fewer clean", "other clean", "fewer corrupted", "other constants", "none corrupted"],
)
def test_runs_of_one_experiment_on_other_images_are_refused(
    pair: tuple[Path, Path], changed: Callable[[Results], Results], words: str, seed: int
) -> None:
    change(pair[1], seed, changed)
    with pytest.raises(InputError, match=r"evaluate all on the same images, or move those away") as raised:
        compared(*pair)
    assert words in str(raised.value)
    assert f"{pair[1]}/paper-0.json was evaluated on" in str(raised.value)
    assert f"and {pair[1]}/paper-{max(seed, 1)}.json on" in str(raised.value)


def test_sets_that_two_experiments_do_not_share_are_left_out(pair: tuple[Path, Path]) -> None:
    def other_cells(results: Results) -> Results:
        assert results.corrupted is not None
        return replace(results, corrupted=replace(results.corrupted, images=60))

    for seed in OTHER:
        change(pair[1], seed, other_cells)
    found = compared(*pair)
    assert found.clean
    assert not found.corrupted
    for seed in OTHER:
        change(pair[1], seed, lambda results: replace(results, evaluated_on=Images("cifar10", "test", 5000)))
    with pytest.raises(
        InputError, match=r"ours was evaluated on 5,000 validation .*; give experiments evaluated on the"
    ):
        compared(*pair)


def test_figures_that_a_run_lacks_are_left_out(pair: tuple[Path, Path]) -> None:
    """Results of earlier versions have no debiased calibration errors over all cells."""

    def earlier(results: Results) -> Results:
        assert results.corrupted is not None
        aggregates = replace(results.corrupted.aggregates, intervals=None)
        return replace(results, corrupted=replace(results.corrupted, aggregates=aggregates))

    change(pair[0], 1, earlier)
    found = compared(*pair)
    assert found.corrupted.keys() == {
        *("error", "nll", "brier", "ece_width15", "ece_rms_width15", "ece_mass15", "ece_rms_mass15")
    }
    assert "ece_width15_debiased" in found.clean


@pytest.mark.parametrize("few", ["ours", "other", "both"])
def test_one_seed_is_too_few(tmp_path: Path, few: str) -> None:
    ours = write_trainings(tmp_path / "ours", {0: 0.1} if few != "other" else OURS)
    other = write_trainings(tmp_path / "other", {0: 0.1} if few != "ours" else OTHER, "epochs=7")
    lacking = "ours" if few == "both" else few
    message = (
        rf"{lacking} has one evaluated seed \(0\).*; an interval over seeds needs at least two of each experiment\. "
        rf"Train and evaluate another seed .*`counterpoint compare {ours}/paper-0\.json {other}/paper-0\.json`"
    )
    with pytest.raises(InputError, match=message) as raised:
        compare_experiments(ours, [other])
    assert str(raised.value).count("has one evaluated seed") == 1 + (few == "both")


def test_the_advice_for_one_seed_names_runs_of_a_shared_seed(tmp_path: Path) -> None:
    ours = write_trainings(tmp_path / "ours", {0: 0.1})
    for seeds, (run, beside) in (
        ({3: 0.1, 0: 0.2}, ("paper-0", "paper-0")),
        ({1: 0.1, 2: 0.2}, ("paper-0", "paper-1")),
    ):
        other = write_trainings(tmp_path / f"other{min(seeds)}{max(seeds)}", seeds, "epochs=7")
        with pytest.raises(InputError, match=rf"compare {ours}/{run}\.json {other}/{beside}\.json`"):
            compare_experiments(ours, [other])


def test_a_run_is_given_once(pair: tuple[Path, Path]) -> None:
    ours, other = pair
    for others in ([ours / "paper"], [other, other / "paper"]):
        with pytest.raises(InputError, match=r"paper-0\.json is given twice, in .* and in .*; name each run once"):
            compare_experiments(ours, others)


def test_others_must_be_a_list_and_out_a_file(pair: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"others is '.*other'; it must be a list, such as \['.*other'\]"):
        compare_experiments(pair[0], str(pair[1]))
    with pytest.raises(InputError, match=r"is a folder; give a file name, such as .*compared\.json"):
        compare_experiments(pair[0], [pair[1]], tmp_path)


def test_the_committed_rows_have_two_pairs_of_seeds(tmp_path: Path) -> None:
    """What is said of AugMix on CIFAR-100, from the same files by hand."""
    found = compared(ROWS / "single-am-bern-0.875", ROWS / "single" / "paper")
    assert (found.pairing, found.other.seeds) == ("pairs of equal seeds", (0, 1))
    files = [
        [read_results(ROWS / row / f"paper-{i}.json") for i in (0, 1)] for row in ("single-am-bern-0.875", "single")
    ]
    errors = [[one.corrupted.aggregates.ensemble["by-corruption"].error for one in of if one.corrupted] for of in files]
    error = found.corrupted["error"]
    assert error.difference == pytest.approx(-0.1603, abs=1e-4)
    assert (error.low, error.high) == pytest.approx(tuple(stats.ttest_rel(*errors).confidence_interval()))
    assert "ece_width15_debiased" not in found.corrupted, "they are older"
    ece = found.corrupted["ece_width15"]
    assert ece.low is not None
    standard_error = abs(ece.by_seed[0] - ece.by_seed[1]) / 2
    assert (ece.difference - ece.low) / standard_error == pytest.approx(12.706, abs=1e-3)
    assert ece.low < 0 < (ece.high or 0)
    one_seed = tmp_path / "single"
    one_seed.mkdir()
    shutil.copy(ROWS / "single" / "paper-0.json", one_seed)
    with pytest.raises(InputError, match=r"single has one evaluated seed \(0\); an interval over seeds"):
        compare_experiments(ROWS / "single-am-bern-0.875", [one_seed])


def test_every_figure_is_that_of_the_metric(pair: tuple[Path, Path]) -> None:
    found = compared(*pair)
    for one in (*found.clean.values(), *found.corrupted.values()):
        expected = difference_over_seeds(one.ours.values, one.other.values, paired=True)
        assert (one.difference, one.low, one.high) == (expected.value, expected.low, expected.high)
        assert one.deviation == expected.deviation
