"""Work in threads gives what `map` gives, and no more of it runs at the same time than is allowed."""

import threading
import time

import pytest

from counterpoint.threads import in_threads


def test_results_come_in_the_order_of_the_tasks() -> None:
    def work(task: int) -> int:
        time.sleep(0.002 * (task % 3))
        return task**2

    assert list(in_threads(work, range(30))) == [task**2 for task in range(30)]


def test_an_error_of_a_task_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda task: 1 / task, [1, 0, 2]))


def test_at_most_so_many_tasks_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    lock, running, most = threading.Lock(), 0, 0

    def work(_: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    list(in_threads(work, range(20), most=2))
    assert most == 2
