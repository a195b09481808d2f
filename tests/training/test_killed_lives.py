"""A training that is killed 25 times, at random steps and while it writes checkpoints, ends with the same bits."""

import random
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.training.killed_lives import EPOCHS
from tests.training.tiny_run import lives

LIVES = "tests.training.killed_lives"
STEPS_PER_EPOCH = 5
INSIDE = ("write", "fsync", "replace")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")


def planned() -> list[tuple[str, int]]:
    """Fifteen kills after a random number of updates, and ten in a life's first or second checkpoint."""
    drawn = random.Random(23)
    kills = [("update", drawn.randint(1, 2 * STEPS_PER_EPOCH - 1)) for _ in range(15)]
    kills += [(INSIDE[i % 3], drawn.randint(1, 2)) for i in range(10)]
    drawn.shuffle(kills)
    return kills


def test_25_kills_change_no_bit(tmp_path: Path) -> None:
    kills = planned()
    undisturbed, landed = lives(LIVES, {str(tmp_path / "whole"): [], str(tmp_path / "killed"): kills})
    assert undisturbed == []
    assert [(kill["place"], kill["count"]) for kill in landed] == kills
    before = 0
    for kill in landed:
        checkpoints = [name for name in kill["held"] if name.startswith("step-")]
        newest = int(checkpoints[-1][5:14]) if checkpoints else 0
        assert newest >= before, "no life goes back behind a checkpoint"
        if kill["place"] == "update":
            assert kill["step"] == before + kill["count"], "each life begins at the last checkpoint"
        (unfinished,) = [name for name in kill["held"] if name.endswith(".tmp")] or [None]
        assert (unfinished is not None) == (kill["place"] in INSIDE), "these kills landed inside a checkpoint's writing"
        if kill["place"] in INSIDE:
            whole = (tmp_path / "whole" / "checkpoints" / f"step-{EPOCHS * STEPS_PER_EPOCH:09d}.safetensors").stat()
            assert (kill["size"] < 0.6 * whole.st_size) == (kill["place"] == "write"), "half a file, or a whole one"
        before = newest
    assert {kill["step"] % STEPS_PER_EPOCH for kill in landed if kill["place"] == "update"} == set(range(5))
    ours, theirs = (
        load_file(sorted((tmp_path / name / "checkpoints").glob("step-*"))[-1]) for name in ("killed", "whole")
    )
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name
    assert not list((tmp_path / "killed" / "checkpoints").glob(".*")), "what the kills left is swept away"
