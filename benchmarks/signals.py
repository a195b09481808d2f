"""Does a temperature that depends on the image do better, on corruptions that it was not fitted on?

    python benchmarks/signals.py runs/cifar10/single/paper-0 runs/cifar10/batch-ensemble/paper-0

Each run must be evaluated with `--sets validation-extra`. One temperature for all images is compared with a temperature
that follows the members' entropy, and with one that follows their disagreement. Each is fitted without one of the four
extra corruptions and judged on it, at all severities. The difference in NLL is averaged over the four corruptions, and
its 95 % interval is over images. The ECE (15 equal-width bins) is the mean over the left-out corruptions.
"""

import sys
from pathlib import Path

import numpy as np

from counterpoint.evaluation.held_out import read_held_out
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.metrics import ece, image_scores, mean_difference
from counterpoint.metrics.checks import Floats
from counterpoint.recalibration.apply import apply
from counterpoint.recalibration.choose import HeldOut, fit_held_out
from counterpoint.recalibration.families import Family, families
from counterpoint.runs.folder import load_run

CONSTANT, SIGNALS = "before, shifted", ("by entropy", "by disagreement", "by both")


def judge(family: Family, held_out: HeldOut) -> tuple[Floats, float]:
    """Each image's NLL under the corruption that was left out, averaged over the four, and the mean ECE."""
    nll_CN, errors = [], []
    for name, sets in held_out.shifted.items():
        recalibration = fit_held_out(family, held_out.without(name), "both")
        probs = [apply(recalibration, one.logits_MNK).ensemble_NK for one in sets]
        scores = [image_scores(p_NK, one.labels_N) for p_NK, one in zip(probs, sets, strict=True)]
        nll_CN.append(np.mean([score.nll for score in scores], axis=0))
        confidence = np.concatenate([p_NK.max(axis=1) for p_NK in probs])
        correct = np.concatenate([p.argmax(axis=1) == one.labels_N for p, one in zip(probs, sets, strict=True)])
        errors.append(ece(confidence, correct))
    return np.mean(nll_CN, axis=0), float(np.mean(errors))


def main() -> None:
    print(f"{'run':42} {'temperature':18} {'NLL':>7} {'ECE %':>6}  less than one for all images")
    for folder in map(Path, sys.argv[1:]):
        run = load_run(folder)
        held_out = read_held_out(run, read_about(run).suites[VALIDATION_EXTRA.name])
        known = {family.name: family for family in families(len(held_out.clean.logits_MNK), shifted=True)}
        constant_N, constant_ece = judge(known[CONSTANT], held_out)
        print(f"{run.experiment.name:42} {'one for all images':18} {constant_N.mean():7.3f} {100 * constant_ece:6.2f}")
        for name in SIGNALS:
            if name in known:
                nll_N, mean_ece = judge(known[name], held_out)
                gain = mean_difference(constant_N, nll_N)
                interval = f"{gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})"
                print(f"{'':42} {name:18} {nll_N.mean():7.3f} {100 * mean_ece:6.2f}  {interval}")


if __name__ == "__main__":
    main()
