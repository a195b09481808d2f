import pytest

from counterpoint.errors import InputError
from counterpoint.recalibration.families import check_members, families

NAMES = [family.name for family in families(4, shifted=True)]


def test_names_are_told_apart_and_none_is_taken() -> None:
    assert len(set(NAMES)) == len(NAMES) == 9
    assert "none" not in NAMES


def test_only_those_of_clean_images_come_without_shift() -> None:
    of_clean = families(4, shifted=False)
    assert [family.name for family in of_clean] == ["before", "after", "per-member"]
    for family in families(4, shifted=True):
        assert (family.images == "clean") == (family in of_clean)
        assert not family.signals or family.acts == "before"


def test_one_network_has_nothing_to_average_and_no_disagreement() -> None:
    assert [family.name for family in families(1, shifted=True)] == ["before", "before, shifted", "by entropy"]
    assert [family.name for family in families(1, shifted=False)] == ["before"]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("before", 1),
        ("after", 1),
        ("per-member", 4),
        ("after, shifted", 1),
        ("per-member, shifted", 4),
        ("by entropy", 2),
        ("by disagreement", 2),
        ("by both", 3),
    ],
)
def test_parameters_are_counted(name: str, count: int) -> None:
    (family,) = (family for family in families(4, shifted=True) if family.name == name)
    assert family.parameters(4) == count


def test_one_network_cannot_disagree_with_itself() -> None:
    for family in families(4, shifted=True):
        check_members(family, 2)
        if "disagreement" not in family.signals:
            check_members(family, 1)
            continue
        with pytest.raises(InputError, match=rf"'{family.name}' needs the disagreement .* only one network"):
            check_members(family, 1)
