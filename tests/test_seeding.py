import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.seeding import Stream, philox


def philox_by_hand(counter: list[int], key: list[int]) -> list[int]:
    """One block with Python's unbounded integers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(p1 >> 32) ^ x[1] ^ k[0], p1 % 2**32, (p0 >> 32) ^ x[3] ^ k[1], p0 % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return x


def test_philox_gives_the_published_answers() -> None:
    """The known-answer vectors of the Random123 distribution."""
    ones = 0xFFFFFFFF
    vectors = [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, [ones] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ]
    for counter, key, expected in vectors:
        c0, c1, c2, c3 = (torch.tensor(c) for c in counter)
        assert philox((c0, c1, c2, c3), (key[0], key[1])).tolist() == expected
        assert philox_by_hand(counter, key) == expected


def test_words_do_not_depend_on_the_batch() -> None:
    stream = Stream(3, "flip", epoch=7, member=2)
    whole = stream.words(torch.arange(100), 9)
    assert whole.shape == (100, 9)
    picked = torch.tensor([99, 4, 4, 17])
    assert torch.equal(stream.words(picked, 9), whole[picked])
    assert torch.equal(stream.words(picked, 5), whole[picked, :5])


@pytest.mark.parametrize(
    "changed",
    [Stream(1, "a", 0, 0), Stream(0, "b", 0, 0), Stream(0, "a", 1, 0), Stream(0, "a", 0, 1)],
    ids=["seed", "purpose", "epoch", "member"],
)
def test_each_part_of_the_key_changes_every_stream(changed: Stream) -> None:
    words = Stream(0, "a", 0, 0).words(torch.arange(1000), 4)
    assert (words == changed.words(torch.arange(1000), 4)).sum() == 0


def test_uniform_is_uniform_and_open() -> None:
    u = Stream(0, "test").uniform(torch.arange(50_000), 4)
    assert u.dtype == torch.float64
    assert 0 < u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert abs(u.mean() - 0.5) < 0.003
    assert abs(u.var() - 1 / 12) < 0.001
    assert torch.corrcoef(u.T).fill_diagonal_(0).abs().max() < 0.02


def test_integers_cover_their_range_evenly() -> None:
    drawn = Stream(0, "test").integers(torch.arange(30_000), 1, 9).flatten()
    counts = torch.bincount(drawn)
    assert counts.shape == (9,)
    assert (counts - 30_000 / 9).abs().max() < 5 * (30_000 / 9) ** 0.5


def test_a_range_of_integers_that_would_overflow_is_refused() -> None:
    stream, indices = Stream(0, "test"), torch.arange(1000)
    words = stream.words(indices, 1).flatten().tolist()
    assert stream.integers(indices, 1, 1 << 31).flatten().tolist() == [word * (1 << 31) >> 32 for word in words]
    for high in ((1 << 31) + 1, 0, -3):
        with pytest.raises(InputError, match=f"high is {high}; it must be a whole number from 1 to 2,147,483,648"):
            stream.integers(indices, 1, high)


def test_permutation_is_one_and_differs_by_epoch() -> None:
    first, second = (Stream(0, "order", epoch).permutation(1000) for epoch in (0, 1))
    assert torch.equal(first.sort().values, torch.arange(1000))
    assert (first == second).sum() < 10


def test_generator_depends_on_the_key_only() -> None:
    draw = [torch.rand(3, generator=Stream(seed, "init").generator()) for seed in (0, 0, 1)]
    assert torch.equal(draw[0], draw[1])
    assert not torch.equal(draw[0], draw[2])


def test_a_bad_key_is_named() -> None:
    with pytest.raises(InputError, match="seed is -1"):
        Stream(-1, "x")
    with pytest.raises(InputError, match="epoch is 4294967296"):
        Stream(0, "x", epoch=2**32)
