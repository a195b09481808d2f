"""Short real runs of every kind of ensemble, on grey digits and on coloured images of CIFAR's size."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.small import few_digits, noise_data

ENSEMBLES: dict[str, dict[str, Any]] = {
    "shared BatchNorm": {},
    "per-member BatchNorm": {"batchnorm": "per-member"},
    "deep ensemble": {"ensemble": "deep"},
    "single network": {"num_members": None},
}
TINY = Experiment(
    "tiny", "digits", "split", model="resnet", width=4, num_members=2, steps=12, batch_size=20, policy=MemberPolicy()
)
DATA = {"digits": lambda: few_digits(40), "cifar10": lambda: noise_data(60, 10, size=32, name="cifar10")}

MakeTrained = Callable[..., Run]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> MakeTrained:
    """Makes a run, once of each kind. Tests do not change it."""

    @cache
    def make(ensemble: str = "shared BatchNorm", dataset: str = "digits") -> Run:
        changes: dict[str, Any] = {"dataset": dataset, **ENSEMBLES[ensemble]}
        experiment = replace(TINY, **changes)
        folder = tmp_path_factory.mktemp("exported") / "run"
        assert train(experiment, folder, DATA[dataset](), seed=3, options=Options(device="cpu"))
        return load_run(folder)

    return make
