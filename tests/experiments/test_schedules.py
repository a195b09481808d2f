from dataclasses import replace

import pytest

from counterpoint.errors import InputError
from counterpoint.experiments import config_hash, find_experiment
from counterpoint.experiments.schedules import SCHEDULES, find_schedule


@pytest.mark.parametrize(("name", "epochs"), [("cifar10/single", 200), ("cifar100/be+adv", 250)])
def test_schedules(name: str, epochs: int) -> None:
    row = find_experiment(name)
    assert find_schedule("paper").shorten(row) == row
    assert find_schedule("short").shorten(row) == replace(row, epochs=epochs // 5)
    smoke = find_schedule("smoke")
    assert (smoke.shorten(row).steps, smoke.images, smoke.eager) == (64, 200, True)
    assert (smoke.shorten(row).warmup_steps, find_schedule("short").shorten(row).warmup_steps) == (0, row.warmup_steps)
    assert len({config_hash(s.shorten(row)) for s in SCHEDULES.values()}) == 3
    with pytest.raises(InputError, match="unknown schedule 'shrt'; did you mean 'short'"):
        find_schedule("shrt")
