"""When a training warns of lost channels, and what its results keep of their numbers."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.config import Experiment
from counterpoint.nn import Health
from counterpoint.records.codec import encode
from counterpoint.records.results import HealthAfter
from counterpoint.runs.folder import Run
from counterpoint.storage.files import write_json
from counterpoint.training.health import health_record, health_warnings

ENSEMBLE = Experiment("be", "cifar100")
SINGLE = replace(ENSEMBLE, num_members=None)
CHANNELS = 12_608


def health(dead_scales: int = 0, below_eps: int = 0, channels: int = CHANNELS) -> Health:
    return Health(channels, below_eps, dead_scales, 0.5, 0.25)


@pytest.mark.parametrize(("dead", "many"), [(361, False), (407, False), (756, False), (757, True), (1525, True)])
def test_dead_scales_are_many_between_the_good_runs_and_the_bad_one(dead: int, many: bool) -> None:
    assert bool(health_warnings(health(dead_scales=dead), SINGLE, 352)) is many


@pytest.mark.parametrize(("below", "many"), [(780, False), (2521, False), (2522, True), (12_504, True)])
def test_a_fifth_below_eps_is_many(below: int, many: bool) -> None:
    assert bool(health_warnings(health(below_eps=below), ENSEMBLE, 352)) is many


def test_a_network_without_batchnorm_has_nothing_to_lose() -> None:
    assert health_warnings(health(channels=0), ENSEMBLE, 352) == []


def test_the_words_name_the_loss_and_the_remedy() -> None:
    (dead,) = health_warnings(health(dead_scales=1525), SINGLE, 352)
    assert dead == (
        "12.1 % of the network's channels (1,525 of 12,608) are switched off: their BatchNorm scale is below 0.001. "
        "The first steps were probably too large. In a new run try warmup_steps=352, so that the learning rate rises "
        "over the first epoch."
    )
    (below,) = health_warnings(health(below_eps=3152), ENSEMBLE, 352)
    assert below == (
        "25.0 % of the network's channels (3,152 of 12,608) have a running variance below BatchNorm's eps, so that "
        "they are no longer normalised. Weight decay shrank their weights too far. In a new run try decay_rs=false, "
        "which spares r and s."
    )
    assert health_warnings(health(1525, 3152), ENSEMBLE, 352) == [dead, below]


@pytest.mark.parametrize(
    ("experiment", "remedies"),
    [
        (replace(ENSEMBLE, warmup_steps=100), ("warmup_steps=352,", "decay_rs=false,")),
        (replace(ENSEMBLE, warmup_steps=352), ("a lower weight_decay than 0.0005.", "decay_rs=false,")),
        (replace(ENSEMBLE, decay_rs=False), ("warmup_steps=352,", "a lower weight_decay than 0.0005.")),
        (SINGLE, ("warmup_steps=352,", "a lower weight_decay than 0.0005.")),
        (replace(ENSEMBLE, ensemble="deep"), ("warmup_steps=352,", "a lower weight_decay than 0.0005.")),
    ],
)
def test_no_remedy_that_is_taken_already_or_cannot_be(experiment: Experiment, remedies: tuple[str, str]) -> None:
    for warning, remedy in zip(health_warnings(health(2000, 4000), experiment, 352), remedies, strict=True):
        assert f"try {remedy}" in warning


def test_a_warning_comes_once_and_again_at_twice_the_share() -> None:
    shares = [0.01, 0.07, 0.08, 0.11, 0.05, 0.07, 0.13, 0.2, 0.23, 0.9, 1.0]
    healths = [health(dead_scales=round(10_000 * share), channels=10_000) for share in shares]
    warned = [share for i, share in enumerate(shares) if health_warnings(healths[i], SINGLE, 352, healths[:i])]
    # The line is at 6 %, and then at 12, 24, 48 and 96 %.
    assert warned == [0.07, 0.13, 0.9, 1.0]


def test_a_second_kind_of_loss_has_its_own_warning() -> None:
    before, now = health(dead_scales=2000), health(dead_scales=2000, below_eps=4000)
    (warning,) = health_warnings(now, ENSEMBLE, 352, [before])
    assert "running variance below BatchNorm's eps" in warning


def run_with(folder: Path, records: list[dict[str, Any]], experiment: Experiment = SINGLE) -> Run:
    write_json(folder / "run.json", {})
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return Run(folder, experiment, {})


def epoch(number: int, of: Health) -> dict[str, Any]:
    return {"event": "epoch", "epoch": number, "step": 352 * number, "health": asdict(of)}


def test_results_keep_a_few_epochs(tmp_path: Path) -> None:
    records = [epoch(i, health(dead_scales=i)) for i in range(1, 201)]
    kept = health_record(run_with(tmp_path, [{"event": "started", "step": 0}, *records]))
    assert kept is not None
    assert [epoch.epoch for epoch in kept.epochs] == [1, 21, 41, 61, 81, 101, 120, 140, 160, 180, 200]
    assert kept.epochs[3] == HealthAfter(61, below_eps=0, dead_scales=61, spread_r=0.5, spread_s=0.25)
    assert kept.channels == CHANNELS
    assert kept.warnings == ()
    assert len(json.dumps(encode(kept), indent=1)) < 2000


@pytest.mark.parametrize("count", [1, 2, 10, 11, 12, 17, 250])
def test_the_epochs_kept_are_the_first_the_last_and_some_between(tmp_path: Path, count: int) -> None:
    kept = health_record(run_with(tmp_path, [epoch(i, health()) for i in range(1, count + 1)]))
    assert kept is not None
    numbers = [epoch.epoch for epoch in kept.epochs]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1], len(numbers)) == (1, count, min(count, 11))


def test_results_warn_of_the_end_only(tmp_path: Path) -> None:
    bad, good = health(dead_scales=1525), health(dead_scales=361)
    kept = health_record(run_with(tmp_path, [epoch(1, bad), epoch(2, good)]))
    assert kept is not None
    assert kept.warnings == ()
    kept = health_record(run_with(tmp_path, [epoch(1, bad), epoch(2, bad)]))
    assert kept is not None
    assert kept.warnings == tuple(health_warnings(bad, SINGLE, 352))


def test_older_logs_have_none_or_only_their_later_epochs(tmp_path: Path) -> None:
    old = {"event": "epoch", "epoch": 1, "step": 352}
    assert health_record(run_with(tmp_path, [old])) is None
    kept = health_record(run_with(tmp_path, [old, epoch(2, health(dead_scales=1525))]))
    assert kept is not None
    assert [epoch.epoch for epoch in kept.epochs] == [2]
    assert "warmup_steps=352" in kept.warnings[0]
