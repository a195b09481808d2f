"""Does diversity improve calibration? A small network, with as many seeds as a CPU can train.

    OMP_NUM_THREADS=1 python benchmarks/diversity.py OUT [--seeds 0 1 …] [--earlier FILE] [--level 0.975]

The paper's rows take a GPU half an hour each, so that few seeds of them can be trained. This trains the paper's pairs
on a ResNet-8: ensembles that differ in diversity alone, and a single network beside them. It trains with the paper's
optimiser, and with the severities and drop rates of its rows:

    AugMix (Beta)     diverse 1, 2, 3, 4          not diverse 3, 3, 3, 3
    stochastic depth  diverse 0, 0.05, 0.1, 0.15  not diverse 0.075 for each member

The paper's two AugMix ensembles also differ in their mean severity, which is 2.5 and 3. So there is a third one, with
2.5 for each member.

The rule was written before the first run. The outcome is the debiased -C ECE, by corruption. Two runs with the same
seed are a pair. The claim holds if the 95 % interval over seeds (Student's t) of the mean difference lies below 0, and
the opposite holds if it lies above. Otherwise it is not decided. The other figures are shown beside it.

Ten seeds did not decide it, so ten more are trained. This rule was written before the first of them: all twenty
decide, by the same rule with a 97.5 % interval, because this is the second look at the first ten. If the time is over
before all are done, the seeds that are done count. --earlier FILE adds the figures of seeds that were trained before.

Twenty seeds did not decide it either: in some of them a member of a BatchEnsemble hardly learns. --ensemble deep trains
deep ensembles instead, whose members share no weights. This rule was written before the first of them: the seeds 0 to
19 in one look, the same outcome, and a 98.3 % interval for each of the three pairs (all three together 95 %). If the
time is over before all are done, the seeds count whose five ensembles are done. It was over after thirteen.

The images are scikit-learn's digits: 898 to train on, 450 to test on. An ensemble takes about 1.5 minutes on one core.
The same command goes on after an interruption. It prints the tables, and writes all figures to OUT/digits.json.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from counterpoint.metrics import difference_over_seeds
from counterpoint.records.files import RESULTS, read_results
from counterpoint.report.run import HEADLINE

COMMON = (
    *("num_members=4", "model=resnet", "depth=8", "width=8"),
    *("epochs=30", "batch_size=32", "warmup_steps=29"),
)
ENSEMBLES = {"batch": ("init_std=0.5", "decay_rs=false"), "deep": ("ensemble=deep",)}
SINGLE = "augmix-single"
AUGMIX = ("policy.augmix.mixing=beta",)
DEPTH = ("policy.augmix=none",)
KINDS: dict[str, tuple[str, ...]] = {
    "augmix-diverse": (*AUGMIX, "policy.augmix.severity=1,2,3,4"),
    "augmix-3": (*AUGMIX, "policy.augmix.severity=3", "policy.augmix.assignment=constant"),
    "augmix-2.5": (*AUGMIX, "policy.augmix.severity=2.5", "policy.augmix.assignment=constant"),
    SINGLE: (*AUGMIX, "policy.augmix.severity=3", "policy.augmix.assignment=constant", "num_members=none"),
    "depth-diverse": (*DEPTH, "policy.stochastic_depth.drop_rate=0,0.05,0.1,0.15"),
    "depth-0.075": (*DEPTH, "policy.stochastic_depth.drop_rate=0.075", "policy.stochastic_depth.assignment=constant"),
}
PAIRS = (
    ("augmix-diverse", "augmix-3"),
    ("augmix-diverse", "augmix-2.5"),
    ("augmix-diverse", SINGLE),
    ("augmix-3", SINGLE),
    ("depth-diverse", "depth-0.075"),
)
FIGURES = ("error", "ece", "corrupted_error", "corrupted_nll", "corrupted_ece")
"""What is shown. The ECEs have 15 equal-width bins and are debiased. The last one decides."""


def train_and_evaluate(run: Path, ensemble: str, kind: str, seed: int) -> None:
    if (run / RESULTS).exists():
        return
    settings = (f"--set={one}" for one in (f"name={kind}", *COMMON, *ENSEMBLES[ensemble], *KINDS[kind]))
    train = ("train", "digits/quickstart", "--out", str(run), "--seed", str(seed), *settings)
    for command in (train, ("evaluate", str(run))):
        subprocess.run([sys.executable, "-m", "counterpoint", *command], check=True, capture_output=True)


def figures(run: Path) -> dict[str, float]:
    results = read_results(run / RESULTS)
    assert results.corrupted is not None
    over_cells = results.corrupted.aggregates
    assert results.clean.honest is not None
    assert over_cells.intervals is not None
    return {
        "error": results.clean.ensemble.error,
        "ece": results.clean.honest.ensemble["ece_width15"].debiased,
        "corrupted_error": over_cells.ensemble[HEADLINE].error,
        "corrupted_nll": over_cells.ensemble[HEADLINE].nll,
        "corrupted_ece": over_cells.intervals.ece_width15_debiased.value,
    }


def show(found: Mapping[str, Mapping[int, Mapping[str, float]]], level: float) -> None:
    """Percent and points, but for the NLL."""
    scale = np.array([1 if name.endswith("nll") else 100 for name in FIGURES])
    values = {
        kind: scale * [[run[name] for name in FIGURES] for run in runs.values()]  # (seeds, figures)
        for kind, runs in found.items()
    }
    print(f"{'mean ± standard deviation':34}" + "".join(f"{name:>26}" for name in FIGURES))
    for kind, runs in values.items():
        row = (f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(runs.mean(axis=0), runs.std(axis=0, ddof=1), strict=True))
        print(f"{kind:34}" + "".join(f"{text:>26}" for text in row))
    print(f"\n{f'mean difference ({level:.1%} over seeds)':34}" + "".join(f"{name:>26}" for name in FIGURES))
    for kind, other in (pair for pair in PAIRS if set(pair) <= values.keys()):
        row = (
            f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
            for mean, low, high in map(partial(mean_interval, level), values[kind].T, values[other].T)
        )
        print(f"{f'{kind} − {other}':34}" + "".join(f"{text:>26}" for text in row))


def mean_interval(level: float, ours_S: np.ndarray, other_S: np.ndarray) -> tuple[float, float, float]:
    """The mean difference over pairs of seeds and its interval. It has no length where all pairs agree."""
    found = difference_over_seeds(ours_S, other_S, paired=True, level=level)
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return found.value, low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(12)))
    parser.add_argument("--ensemble", choices=ENSEMBLES, default="batch")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--earlier", type=Path, help="digits.json of other seeds, to show all together")
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals over seeds")
    asked = parser.parse_args()
    kinds = [kind for kind in KINDS if asked.ensemble == "batch" or kind != SINGLE]  # which is the same for both
    jobs = {(kind, seed): asked.out / "digits" / f"{kind}-{seed}" for seed in asked.seeds for kind in kinds}
    with ThreadPoolExecutor(asked.processes) as pool:
        done = pool.map(lambda job: train_and_evaluate(jobs[job], asked.ensemble, *job), jobs)
        for (kind, seed), _ in zip(jobs, done, strict=True):
            print(f"{kind}, seed {seed}: done", flush=True)
    earlier = json.loads(asked.earlier.read_text()) if asked.earlier else {kind: {} for kind in kinds}
    found = {
        kind: {int(seed): run for seed, run in earlier[kind].items()}
        | {seed: figures(jobs[kind, seed]) for seed in asked.seeds}
        for kind in kinds
    }
    (asked.out / "digits.json").write_text(json.dumps(found, indent=1) + "\n")
    show(found, asked.level)


if __name__ == "__main__":
    main()
