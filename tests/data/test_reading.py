"""Reading ahead."""

import threading

import pytest

from counterpoint.data.reading import read_ahead
from counterpoint.errors import InputError


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
