"""Choose the settings of the demo, on held-out training digits only.

    OMP_NUM_THREADS=1 python benchmarks/demo_choice.py ensemble
    OMP_NUM_THREADS=1 python benchmarks/demo_choice.py single

No test image is read, and none of the 15 corruptions of the test set is made. A candidate is trained on two thirds of
the training digits with seed 1. The demo itself has seed 0. The other third, 449 digits, is held out. The candidate is
judged on it twice: clean, and under the four extra corruptions (speckle noise, Gaussian blur, spatter, saturate) at
severities 1 to 5.

The rule was written before the first candidate was trained:

1. A candidate's figure is the mean of two NLLs of the averaged prediction, without recalibration: on clean held-out
   digits, and on corrupted held-out digits. The lowest figure wins. The NLL is low only where predictions are both
   right and calibrated.
2. The settings are chosen in stages, since all combinations would take hours. Each stage starts from the best candidate
   so far, which stays unless another one is better.
3. Every candidate has about the same cost as the first, 30 epochs of 898 digits, except for the last ones of the
   single network. The demo must end within three minutes on two CPU cores.
4. The single network gets the same chances: its own AugMix severity, the same schedules, and at the end more epochs:
   twice as many, which take about as long as the ensemble, and four times as many, which are as many views as the four
   members see together.

Each candidate is trained once, so that differences of about 0.01 in the figure may be chance. The results are in
results/demo. results/README.md says which candidate the demo has, and why.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from counterpoint.config import Experiment, override
from counterpoint.corrupt import EXTRA_CORRUPTIONS, SEVERITIES, corrupt
from counterpoint.data import LabelledImages, load, parts_of
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.metrics import aggregate, ece_debiased, score_set
from counterpoint.metrics.scores import ImageScores
from counterpoint.metrics.summary import figures
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train

SEED = 1
START = Experiment(
    name="digits/choice",
    dataset="digits",
    train_on="split",
    model="resnet",
    depth=8,
    width=8,
    num_members=4,
    policy=MemberPolicy(flip=False, augmix=AugMix()),
    epochs=30,
    batch_size=32,
)
SCHEDULES = (
    ("learning_rate=0.05",),
    ("warmup_steps=28",),
    ("batch_size=16",),
    ("batch_size=64",),
    ("width=12", "epochs=18"),
)
STAGES = {
    "ensemble": (
        (("decay_rs=false",), ("init_std=0.1",), ("decay_rs=false", "init_std=0.1")),
        tuple((f"policy.augmix.severity={values}",) for values in ("0,1,2,3", "0.5,1,1.5,2", "2,3,4,5")),
        SCHEDULES,
    ),
    "single": (
        tuple((f"policy.augmix.severity={value}",) for value in (1, 2, 4)),
        SCHEDULES,
        (("epochs*2",), ("epochs*4",)),
    ),
}
STARTS = {
    "ensemble": (),
    "single": ("num_members=none", "policy.augmix.severity=3", "policy.augmix.assignment=constant"),
}


def candidate(settings: Sequence[str]) -> Experiment:
    """The experiment with these settings. A later one replaces an earlier one; "epochs*4" multiplies the epochs."""
    experiment = override(START, [setting for setting in settings if "*" not in setting])
    factors = [int(setting.partition("*")[2]) for setting in settings if "*" in setting]
    return override(experiment, [f"epochs={experiment.epochs * factor}" for factor in factors])


def judge(experiment: Experiment) -> dict[str, float]:
    """Train the candidate, and give its figures on the held-out digits in percent, its NLLs and its seconds."""
    held_out = parts_of(load("digits"), experiment).validation
    assert held_out is not None
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        train(experiment, Path(folder) / "run", load("digits"), seed=SEED, options=Options(device="cpu"))
        seconds = time.process_time() - begun
        clean, *cells = predictions(Path(folder) / "run", held_out)
    of_clean, count = figures(clean), len(SEVERITIES)
    grid = {name: cells[i * count : (i + 1) * count] for i, name in enumerate(EXTRA_CORRUPTIONS)}
    shifted = aggregate(grid)["by-corruption"]
    return {
        "figure": (of_clean.nll + shifted.nll) / 2,
        "clean NLL": of_clean.nll,
        "error": 100 * of_clean.error,
        "ECE": 100 * ece_debiased(clean.confidence, clean.correct).value,
        "shifted NLL": shifted.nll,
        "error ": 100 * shifted.error,
        "ECE ": 100 * shifted.ece_width15,
        "over-conf.": 100 * shifted.overconfidence,
        "CPU s": seconds,
    }


def predictions(folder: Path, held_out: LabelledImages) -> Iterator[ImageScores]:
    """The averaged prediction's scores on clean images, and then on each cell of the extra corruptions."""
    model, _ = load_model(load_run(folder), torch.device("cpu"))
    members = fold_members(model, torch.device("cpu"))
    for images in shifts(held_out.images_NCHW):
        probs_MNK = torch.from_numpy(member_logits(members, images)).softmax(-1)
        yield score_set(probs_MNK.double().numpy(), held_out.labels_N.numpy()).ensemble


def shifts(images_NCHW: Tensor) -> Iterator[Tensor]:
    yield images_NCHW
    images_NHWC = images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    for name in EXTRA_CORRUPTIONS:
        for severity in SEVERITIES:
            yield torch.from_numpy(corrupt(images_NHWC, name, severity)).permute(0, 3, 1, 2)


def show(settings: Sequence[str], row: dict[str, float], mark: str) -> None:
    print(" ".join(f"{value:11.4f}" for value in row.values()), f" {mark:6}", " ".join(settings), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=tuple(STAGES))
    network = parser.parse_args().network
    print(" ".join(f"{name:>11}" for name in ("figure", "clean NLL", "error %", "ECE %", "-extra NLL")), end=" ")
    print(" ".join(f"{name:>11}" for name in ("error %", "ECE %", "over-conf.", "CPU s")), "        settings")
    best: tuple[str, ...] = STARTS[network]
    lowest = judge(candidate(best))
    show(best, lowest, "first")
    for stage in STAGES[network]:
        before = best
        for change in stage:
            row = judge(candidate((*before, *change)))
            better = row["figure"] < lowest["figure"]
            show((*before, *change), row, "best" if better else "")
            if better:
                best, lowest = (*before, *change), row
    print("chosen:", " ".join(best) or "the first")


if __name__ == "__main__":
    main()
