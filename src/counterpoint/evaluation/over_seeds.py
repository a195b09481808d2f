"""The difference between two experiments that were each trained with several seeds, from their results.json alone."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from counterpoint.errors import InputError, some
from counterpoint.evaluation.comparison import check_request, images_in_words
from counterpoint.evaluation.scored import place_name
from counterpoint.metrics.over_seeds import difference_over_seeds
from counterpoint.records.figures import CalibrationError
from counterpoint.records.files import write_record
from counterpoint.records.over_seeds import (
    ComparedExperiments,
    FigureOverSeeds,
    OutsideOverSeeds,
    SeedsComparison,
    SeedsDifference,
    SeedsDifferences,
    ShiftOverSeeds,
    TrainedExperiment,
    TrainedRun,
)
from counterpoint.records.results import Results, Shifted
from counterpoint.records.trainings import Trainings, read_trainings
from counterpoint.runs.folder import folder_of
from counterpoint.storage.folders import quoted
from counterpoint.storage.provenance import command_line, now

_MEANS = ("error", "nll", "brier")
_CALIBRATION: tuple[CalibrationError, ...] = ("ece_width15", "ece_rms_width15", "ece_mass15", "ece_rms_mass15")


def compare_experiments(
    experiment: Path | str, others: Sequence[Path | str], out: Path | str | None = None
) -> ComparedExperiments:
    """Compare an experiment with others over seeds, and write the differences to `out`, if it is given.

    Each is a name for evaluated runs that differ in their seed alone: the folder that holds them, such as
    results/cifar100/single, or what they are called without their seeds, such as results/cifar100/single/paper. Two
    experiments with the same seeds are compared in pairs of equal seeds, and others as two groups.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment, compare_experiments
    >>> from counterpoint.data import load
    >>> from counterpoint.evaluation.pipeline import evaluate_run
    >>> from counterpoint.runs.folder import load_run
    >>> from counterpoint.training.loop import Options, train
    >>> for name, rate in (("fast", 0.1), ("slow", 0.01)):
    ...     mine = Experiment(name, "digits", model="resnet", width=2, steps=2, batch_size=8, learning_rate=rate)
    ...     for seed in (0, 1):
    ...         folder = Path(f"runs/{name}-{seed}")
    ...         _ = train(mine, folder, load("digits"), seed=seed, options=Options(device="cpu"))
    ...         _ = evaluate_run(load_run(folder), suites=(), clean_images=50, device="cpu")
    >>> compare_experiments("runs/fast", ["runs/slow"]).against[0].pairing
    'pairs of equal seeds'
    """
    check_request(others, out)
    ours, *rest = (_checked(read_trainings(folder_of(place))) for place in (experiment, *others))
    for one, other in combinations((ours, *rest), 2):
        _check_apart(one, other)
    against = tuple(_compare(ours, other) for other in rest)
    compared = ComparedExperiments(_described(ours), command_line(), now(), against)
    if out is not None:
        write_record(Path(out), compared)
    return compared


def _checked(trainings: Trainings) -> Trainings:
    """Raise if the runs were not evaluated on the same images: their figures would differ for that reason too."""
    first = trainings.first
    for seed, results in trainings.results.items():
        same_cells = results.images_of("corrupted") == first.images_of("corrupted")
        if results.evaluated_on != first.evaluated_on or not same_cells:
            raise InputError(
                f"{trainings.runs[trainings.seeds[0]]} was evaluated on {images_in_words(first)}, and "
                f"{trainings.runs[seed]} on {images_in_words(results)}; evaluate all on the same images, or move those "
                "away that differ"
            )
    return trainings


def _check_apart(one: Trainings, other: Trainings) -> None:
    places = {path.resolve() for path in one.runs.values()}
    for path in other.runs.values():
        if path.resolve() in places:
            raise InputError(f"{path} is given twice, in {one.place} and in {other.place}; name each run once")


def _compare(ours: Trainings, other: Trainings) -> SeedsComparison:
    _check_enough(ours, other)
    runs = [*ours.results.values(), *other.results.values()]
    paired = ours.seeds == other.seeds
    difference = partial(_difference, len(ours.runs), paired)
    differences = partial(_differences, len(ours.runs), paired)
    same_clean = _are_alike(one.evaluated_on for one in runs)
    same_cells = runs[0].corrupted is not None and _are_alike(one.images_of("corrupted") for one in runs)
    shared = [name for name in runs[0].checked_shifts if _are_alike(one.images_of(name) for one in runs)]
    if not (same_clean or same_cells or shared):
        raise InputError(
            f"{ours.place} was evaluated on {images_in_words(runs[0])}, and {other.place} on "
            f"{images_in_words(other.first)}; give experiments evaluated on the same images"
        )
    outside = [name for name in runs[0].outside if same_clean and _are_alike(_outside(name, one) for one in runs)]
    return SeedsComparison(
        other=_described(other),
        pairing="pairs of equal seeds" if paired else "two groups",
        clean=differences([_clean_figures(one) for one in runs]) if same_clean else {},
        corrupted=differences([_cell_figures(one.corrupted) for one in runs if one.corrupted]) if same_cells else {},
        shifts={
            name: ShiftOverSeeds(
                runs[0].shifts[name].shift, differences([_cell_figures(one.shifts[name]) for one in runs])
            )
            for name in shared
        },
        outside={
            name: OutsideOverSeeds(
                runs[0].outside[name].identity, difference([one.outside[name].ensemble.auroc for one in runs])
            )
            for name in outside
        },
    )


def _check_enough(ours: Trainings, other: Trainings) -> None:
    few = [one for one in (ours, other) if len(one.runs) < 2]
    if not few:
        return
    have = " and ".join(f"{one.place} has one evaluated seed ({one.seeds[0]}){_left_out(one)}" for one in few)
    seed = next((seed for seed in ours.seeds if seed in other.seeds), None)
    run, beside = (one.runs[one.seeds[0] if seed is None else seed] for one in (ours, other))
    raise InputError(
        f"{have}; an interval over seeds needs at least two of each experiment. Train and evaluate another seed "
        "(--seed of train, or --seeds of sweep and reproduce), or compare two runs over images: "
        f"`counterpoint compare {quoted(run)} {quoted(beside)}`"
    )


def _left_out(trainings: Trainings) -> str:
    names = [path.name for path in trainings.without_results]
    return f" and {some(names)} without results" if names else ""


def _described(trainings: Trainings) -> TrainedExperiment:
    runs = (
        TrainedRun(seed, place_name(path), trainings.results[seed].made_from) for seed, path in trainings.runs.items()
    )
    left_out = tuple(path.name for path in trainings.without_results)
    place = trainings.place.resolve().name
    return TrainedExperiment(trainings.first.experiment, place, trainings.first.config, tuple(runs), left_out)


def _differences(ours: int, paired: bool, figures: Sequence[Mapping[str, float]]) -> SeedsDifferences:
    """Of the figures that every run has. The first `ours` are of the first experiment."""
    known = [name for name in figures[0] if all(name in one for one in figures)]
    return {name: _difference(ours, paired, [one[name] for one in figures]) for name in known}


def _difference(ours: int, paired: bool, values: Sequence[float]) -> SeedsDifference:
    first, other = values[:ours], values[ours:]
    found = difference_over_seeds(first, other, paired=paired)
    return SeedsDifference(
        ours=_over_seeds(first),
        other=_over_seeds(other),
        difference=found.value,
        deviation=found.deviation,
        degrees_of_freedom=found.degrees,
        low=found.low,
        high=found.high,
        by_seed=tuple(a - b for a, b in zip(first, other, strict=True)) if paired else (),
    )


def _over_seeds(values: Sequence[float]) -> FigureOverSeeds:
    return FigureOverSeeds(float(np.mean(values)), float(np.std(values, ddof=1)), tuple(values))


def _clean_figures(results: Results) -> dict[str, float]:
    estimates = results.clean.honest.ensemble if results.clean.honest else {}
    debiased = {f"{name}_debiased": one.debiased for name, one in estimates.items()}
    return {name: getattr(results.clean.ensemble, name) for name in (*_MEANS, *_CALIBRATION)} | debiased


def _cell_figures(shifted: Shifted) -> dict[str, float]:
    """Over all cells. Results of earlier versions have no debiased calibration errors there."""
    over_cells, intervals = shifted.aggregates.ensemble["by-corruption"], shifted.aggregates.intervals
    debiased = [f"{name}_debiased" for name in _CALIBRATION] if intervals else []
    return {name: getattr(over_cells, name) for name in (*_MEANS, *_CALIBRATION)} | {
        name: getattr(intervals, name).value for name in debiased
    }


def _are_alike(images: Iterable[Hashable]) -> bool:
    return len(set(images)) == 1


def _outside(name: str, results: Results) -> Hashable:
    return results.outside[name].identity if name in results.outside else None
