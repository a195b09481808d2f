from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.records.files import (
    COMPARED,
    RECALIBRATED,
    RESULTS,
    THRESHOLD,
    Evaluated,
    read_evaluated,
    write_record,
)
from tests.report import made


@pytest.fixture
def make_evaluated() -> made.MakeEvaluated:
    return made.evaluated


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes what is known of a run into a folder, as the commands do."""

    def write(run: Evaluated, name: str = "run") -> Path:
        folder = tmp_path / name
        beside = ((RECALIBRATED, run.recalibrated), (COMPARED, run.compared), (THRESHOLD, run.thresholded))
        for file, record in ((RESULTS, run.results), *beside):
            if record is not None:
                write_record(folder / file, record)
        return folder

    return write


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """A real, short run that was evaluated on two suites and recalibrated, and has a threshold.

    It is compared with a real single network.
    """
    import torch

    from counterpoint.data.digits import load_digits
    from counterpoint.evaluation.comparison import compare_run
    from counterpoint.evaluation.pipeline import evaluate_run
    from counterpoint.evaluation.recalibration import recalibrate_run
    from counterpoint.evaluation.suites import SUITES
    from counterpoint.evaluation.threshold import threshold_run
    from counterpoint.experiments.quickstart import QUICKSTART
    from counterpoint.policy import MemberPolicy
    from counterpoint.runs.folder import load_run
    from counterpoint.training.loop import Options, train

    folder, data = tmp_path_factory.mktemp("real"), load_digits()
    train_300, test_20 = data.train.select(torch.arange(300)), data.test.select(torch.arange(20))
    few = replace(data, train=train_300, test=test_20, reported="validation")  # as made-up runs are
    folders: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoint.training.run_images.load", lambda *_: few)
        for experiment in reversed(QUICKSTART):
            # Members that begin alike learn enough in four epochs for every recalibration to be fitted.
            plain = replace(experiment, policy=MemberPolicy(flip=False), init_std=0.1)
            short = replace(plain, train_on="split", epochs=4, batch_size=16, width=4)
            target = folder / short.name.replace("/", "-")
            assert train(short, target, few, options=Options(device="cpu"))
            evaluate_run(load_run(target), folder, suites=[*SUITES.values()], device="cpu", cell_images=20)
            folders.append(target)
    single, ensemble = folders
    recalibrate_run(load_run(ensemble), choosing=True)
    compare_run(ensemble, [single])
    threshold_run(load_run(ensemble), 0.5)
    return read_evaluated(ensemble)


@pytest.fixture(scope="session")
def given_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Predictions of two models that were trained elsewhere: an ensemble with all that can be added, and one model."""
    from counterpoint.evaluation.comparison import compare_run
    from counterpoint.evaluation.imported.importing import evaluate_logits
    from counterpoint.evaluation.recalibration import recalibrate_run
    from counterpoint.evaluation.threshold import threshold_run
    from counterpoint.runs.imported import load_any_run
    from tests.made_predictions import made_arrays, save, shifted_arrays

    folder = tmp_path_factory.mktemp("given")
    runs = [folder / "ensemble", folder / "single"]
    for run, members in zip(runs, (3, 1), strict=True):
        arrays = made_arrays(members=members, images=300) | shifted_arrays(members=members, images=300)
        named = arrays | {"name": f"the {run.name}", "dataset": "toys", "classes": ["cat", "dog", "cow", "猫"]}
        evaluate_logits(save(folder / f"{run.name}.npz", named), run)
    recalibrate_run(load_any_run(runs[0]))
    threshold_run(load_any_run(runs[0]), 0.2)
    compare_run(runs[0], runs[1:])
    return runs
