"""A network's health over its training: when to warn, and what results.json keeps of the log."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.config import Experiment
from counterpoint.nn.health import DEAD_BELOW, Health
from counterpoint.records.progress import log_entry
from counterpoint.records.results import HealthAfter, HealthRecord
from counterpoint.runs.folder import Run

# A warning comes above these shares of all channels. Each lies between runs in docs/differences.md. Good runs had
# 3.2 % dead scales, and a run that lost a point and a half of accuracy had 12.1 %. A good run had 6 % of its running
# variances below eps, and a run in which r and s decayed had 99 %.
MANY_DEAD_SCALES = 0.06
MANY_BELOW_EPS = 0.2

_EPOCHS_KEPT = 11  # the first, the last, and nine between


def health_warnings(
    health: Health, experiment: Experiment, steps_per_epoch: int, earlier: Sequence[Health] = ()
) -> list[str]:
    """A warning with its remedy if many scales are dead, and another if many running variances are below eps.

    A warning that was given after one of the `earlier` epochs comes again when the share passes twice the limit, four
    times the limit, and so on.
    """
    warnings = []
    epochs = (*earlier, health)
    if _is_news([_share(epoch, epoch.dead_scales) for epoch in epochs], MANY_DEAD_SCALES):
        warnings.append(
            f"{_in_words(health, health.dead_scales)} are switched off: their BatchNorm scale is below {DEAD_BELOW}. "
            f"{_why_dead(experiment, steps_per_epoch)}."
        )
    if _is_news([_share(epoch, epoch.below_eps) for epoch in epochs], MANY_BELOW_EPS):
        warnings.append(
            f"{_in_words(health, health.below_eps)} have a running variance below BatchNorm's eps, so that they are no "
            f"longer normalised. Weight decay shrank their weights too far. In a new run try {_less_decay(experiment)}."
        )
    return warnings


def logged_health(log: Sequence[Mapping[str, Any]]) -> list[Health]:
    """The network's health before its first step and after each epoch, from a run's log. Early logs have none."""
    return [log_entry(Health, record, "health") for record in log if "health" in record]


def health_record(run: Run) -> HealthRecord | None:
    """A run's health in up to eleven epochs, and the warnings at its end. None where the log has no health."""
    records = [record for record in run.read_log() if record["event"] == "epoch" and "health" in record]
    if not records:
        return None
    healths, first = logged_health(records), records[0]
    epochs = tuple(
        HealthAfter(records[i]["epoch"], health.below_eps, health.dead_scales, health.spread_r, health.spread_s)
        for i, health in ((i, healths[i]) for i in _spaced(len(records)))
    )
    # Only the last epoch can have fewer steps than the others.
    warnings = health_warnings(healths[-1], run.experiment, first["step"] // first["epoch"])
    return HealthRecord(healths[-1].channels, epochs, tuple(warnings))


def _is_news(shares: Sequence[float], many: float) -> bool:
    """Whether the last share has passed a limit that none before it had passed."""
    *before, now = (_doublings(share, many) for share in shares)
    return now > max(before, default=0)


def _doublings(share: float, many: float) -> int:
    """How many limits the share has passed: 0 up to `many`, 1 above it, 2 from 2·`many` on, 3 from 4·`many` on, …"""
    return 1 + math.floor(math.log2(share / many)) if share > many else 0


def _share(health: Health, lost: int) -> float:
    return lost / health.channels if health.channels else 0.0


def _in_words(health: Health, lost: int) -> str:
    return f"{100 * _share(health, lost):.1f} % of the network's channels ({lost:,} of {health.channels:,})"


def _why_dead(experiment: Experiment, steps_per_epoch: int) -> str:
    """The likely cause, and what to try. After a warm-up scales were seen to die slowly, over all epochs."""
    if experiment.warmup_steps < steps_per_epoch:
        remedy = f"warmup_steps={steps_per_epoch}, so that the learning rate rises over the first epoch"
        return f"The first steps were probably too large. In a new run try {remedy}"
    return (
        f"Weight decay probably drew them to 0. In a new run try a lower weight_decay than {experiment.weight_decay:g}"
    )


def _less_decay(experiment: Experiment) -> str:
    if experiment.has_factors and experiment.decay_rs:
        return "decay_rs=false, which spares r and s"
    return f"a lower weight_decay than {experiment.weight_decay:g}"


def _spaced(count: int) -> list[int]:
    """Up to eleven of the numbers 0 … `count` − 1, evenly spaced, with the first and the last."""
    if count <= _EPOCHS_KEPT:
        return list(range(count))
    return [round(i * (count - 1) / (_EPOCHS_KEPT - 1)) for i in range(_EPOCHS_KEPT)]
