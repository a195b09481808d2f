import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.processes import count_workers, parallel_map


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_tasks_are_made_shortly_before(workers: int) -> None:
    made: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number * number

    with parallel_map(workers) as in_parallel:
        for number, root in enumerate(in_parallel(math.sqrt, tasks())):
            assert root == number
            assert len(made) <= number + 1 + 4 * workers


def test_the_work_is_done_elsewhere_with_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with parallel_map(2) as in_parallel:
        assert list(in_parallel(os.getenv, ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])) == ["1", "1"]
    assert (os.environ["OMP_NUM_THREADS"], os.environ.get("MKL_NUM_THREADS")) == ("7", None)


def test_an_error_of_a_task_is_raised_here() -> None:
    with parallel_map(2) as in_parallel, pytest.raises(ValueError, match="math domain error"):
        list(in_parallel(math.sqrt, [1.0, -1.0]))


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_must_be_some(workers: int) -> None:
    with pytest.raises(InputError, match=f"workers is {workers}; it must be 1 or more"):
        count_workers(workers)
    assert count_workers(3) == 3


UNGUARDED = """
import math
from pathlib import Path
from counterpoint.processes import count_workers, parallel_map
from counterpoint.storage.locks import in_turn

count_workers(2)
with in_turn(Path("desk"), lambda: None), parallel_map(2) as in_parallel:
    print(list(in_parallel(math.sqrt, [1.0, 4.0])))
"""


def test_a_script_without_a_guard_is_told_and_does_not_wait_for_itself(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(UNGUARDED)
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert "InputError: a process that was started for this work has ended" in last
    assert 'must have its code under `if __name__ == "__main__":`' in last
