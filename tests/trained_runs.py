"""A short real run that the tests of a process share."""

import pytest

from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.small import FOUR_STEPS, few_digits


@pytest.fixture(scope="session")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The quickstart's ensemble after four steps. Tests do not change it."""
    folder = tmp_path_factory.mktemp("short") / "run"
    assert train(FOUR_STEPS, folder, few_digits(40), seed=3, options=Options(device="cpu"))
    return load_run(folder)
