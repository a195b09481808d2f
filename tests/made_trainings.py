"""Several trainings of an experiment as values and files: one number per training decides all of its figures."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from counterpoint.config import override, to_dict
from counterpoint.experiments import find_experiment
from counterpoint.experiments.schedules import find_schedule
from counterpoint.records.figures import Honest
from counterpoint.records.files import write_record
from counterpoint.records.results import Results
from counterpoint.reproduction.rows import RowRun, keep_small
from tests.made_results import make_results
from tests.made_rows import row_results

SINGLE, ENSEMBLE = "cifar10/single", "cifar10/batch-ensemble"


def trained(seed: int, error: float, *settings: str, name: str = SINGLE) -> Results:
    """Clean images have this error, twice of it as NLL and a tenth as debiased ECE. On -C the error is five times as
    large and the debiased ECE half as large as the clean error. An outside image is told apart the better, the lower
    the error.
    """
    results = keep_small(row_results(RowRun(name, find_schedule("paper"), seed), error))
    assert results.corrupted is not None
    aggregates = results.corrupted.aggregates
    assert aggregates.intervals is not None
    assert results.clean.honest is not None
    ece = aggregates.intervals.ece_width15_debiased
    intervals = replace(aggregates.intervals, ece_width15_debiased=replace(ece, value=error / 2))
    estimates = dict(results.clean.honest.ensemble)
    estimates["ece_width15"] = replace(estimates["ece_width15"], debiased=error / 10)
    clean = replace(results.clean.ensemble, nll=2 * error)
    letters = make_results().outside["letters"]
    return replace(
        results,
        experiment=name,
        config=to_dict(override(find_experiment(name), settings)),
        clean=replace(results.clean, ensemble=clean, honest=Honest(estimates)),
        corrupted=replace(results.corrupted, aggregates=replace(aggregates, intervals=intervals)),
        outside={"letters": replace(letters, ensemble=replace(letters.ensemble, auroc=1 - error))},
    )


def write_trainings(folder: Path, errors: Mapping[int, float], *settings: str, name: str = SINGLE) -> Path:
    """Files such as `reproduce` keeps, one for each seed; without their seeds they are called `paper`."""
    for seed, error in errors.items():
        write_record(folder / f"paper-{seed}.json", trained(seed, error, *settings, name=name))
    return folder
