import pytest

from counterpoint.data import load
from counterpoint.errors import InputError


def test_an_unknown_data_set_is_named_with_its_neighbours() -> None:
    with pytest.raises(InputError, match=r"unknown data set 'cifar-10'; did you mean 'cifar10'.*known: cifar10, "):
        load("cifar-10")
