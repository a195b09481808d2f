import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.exceptions import HTTPException

from counterpoint.serving.web.limits import Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(most_waiting=3)
    yield worker
    worker.close()


def test_one_at_a_time_in_order(worker: Worker) -> None:
    at_work, most, order = 0, 0, []

    def work(number: int) -> int:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        time.sleep(0.01)
        order.append(number)
        at_work -= 1
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(*(worker.do(lambda n=n: work(n)) for n in range(4)))  # type: ignore[misc]

    assert asyncio.run(ask()) == order == [0, 1, 2, 3]
    assert most == 1


def test_more_than_may_wait_are_refused_and_later_ones_are_not(worker: Worker) -> None:
    go = threading.Event()

    async def ask() -> None:
        asked = [asyncio.create_task(worker.do(go.wait)) for _ in range(4)]
        await asyncio.sleep(0.05)
        with pytest.raises(HTTPException, match="3 pictures are waiting already") as refused:
            await worker.do(go.wait)
        assert refused.value.status_code == 503
        assert refused.value.headers == {"Retry-After": "2"}
        go.set()
        assert await asyncio.gather(*asked) == [True] * 4
        assert await worker.do(lambda: 5) == 5

    asyncio.run(ask())


def test_an_error_is_raised_where_the_work_was_asked_for(worker: Worker) -> None:
    async def ask() -> None:
        with pytest.raises(ZeroDivisionError):
            await worker.do(lambda: 1 // 0)
        assert await worker.do(lambda: 5) == 5

    asyncio.run(ask())


def test_work_that_nobody_waits_for_any_more_ends_before_the_next_begins(worker: Worker) -> None:
    events: list[str] = []
    go = threading.Event()

    def slow() -> None:
        go.wait(5)
        events.append("slow ended")
        raise ValueError("nobody hears of it")

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await worker.do(slow)
        following = asyncio.create_task(worker.do(lambda: events.append("next")))
        await asyncio.sleep(0.05)
        assert events == []
        go.set()
        await following

    asyncio.run(ask())
    assert events == ["slow ended", "next"]


def test_whoever_gives_up_waiting_leaves_nothing_behind(worker: Worker) -> None:
    go, done = threading.Event(), []

    async def ask() -> None:
        first = asyncio.create_task(worker.do(go.wait))
        await asyncio.sleep(0.01)
        for _ in range(3):  # each takes all places, and gives them back
            given_up = [asyncio.create_task(worker.do(lambda: done.append("computed"))) for _ in range(3)]
            await asyncio.sleep(0.01)
            for task in given_up:
                task.cancel()
            await asyncio.gather(*given_up, return_exceptions=True)
        go.set()
        await first
        assert await worker.do(lambda: 5) == 5

    asyncio.run(ask())
    assert done == []
