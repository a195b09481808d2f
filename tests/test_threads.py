"""Work in threads gives what `map` gives, and no more of it runs at the same time than is allowed; reading ahead."""

import os
import sys
import threading
import time

import pytest

from counterpoint.errors import InputError
from counterpoint.processes import count_workers
from counterpoint.threads import in_threads, read_ahead, usable_cpus


def test_results_come_in_the_order_of_the_tasks() -> None:
    def work(task: int) -> int:
        time.sleep(0.002 * (task % 3))
        return task**2

    assert list(in_threads(work, range(30))) == [task**2 for task in range(30)]


def test_an_error_of_a_task_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda task: 1 / task, [1, 0, 2]))


def test_at_most_so_many_tasks_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.threads.usable_cpus", lambda: 8)
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says on which CPUs a process may run")
def test_a_job_of_a_cluster_takes_the_cpus_that_it_was_given() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_cpus() == count_workers(None) == 1
    finally:
        os.sched_setaffinity(0, before)
    assert usable_cpus() == count_workers(None) == len(before)


def test_reading_ahead_is_one_item_ahead() -> None:
    begun: list[int] = []
    second = threading.Event()

    def read(item: int) -> int:
        begun.append(item)
        if item == 1:
            second.set()
        return item * item

    values = read_ahead(read, range(4))
    assert next(values) == (0, 0)
    assert second.wait(10), "the second item is read while the first is in use"
    assert begun == [0, 1]
    assert list(values) == [(1, 1), (2, 4), (3, 9)]
    assert list(read_ahead(read, [])) == []


def test_an_error_in_reading_arrives_where_the_item_is_used() -> None:
    def read(item: int) -> int:
        if item == 2:
            raise InputError("cell 2 is damaged")
        return item

    values = read_ahead(read, range(4))
    assert [next(values), next(values)] == [(0, 0), (1, 1)]
    with pytest.raises(InputError, match="cell 2 is damaged"):
        next(values)
