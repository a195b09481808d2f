"""Table 1 of the paper: AugMix ensembles on the split, and the best ones trained again on everything.

    counterpoint train cifar10/am-bern-0.875 --out runs/cifar10-am-bern-0.875

250 epochs, M = 4 members with AugMix severities 1, 2, 3, 4 (or 3 for each: "not diverse"). Where the adversarial
perturbation is added, it has the severities of table 2.
"""

from dataclasses import replace
from typing import Literal

from counterpoint.config import Experiment
from counterpoint.experiments.table3 import SINGLE_SEVERITY, single_with_augmix
from counterpoint.policy import Adversarial, AugMix, MemberPolicy

_BETA = AugMix(mixing="beta")
_BERNOULLI = AugMix(mixing="bernoulli", p=0.875)


def _rows(dataset: Literal["cifar10", "cifar100"]) -> tuple[Experiment, ...]:
    def row(name: str, policy: MemberPolicy) -> Experiment:
        return Experiment(f"{dataset}/{name}", dataset, policy=policy)

    bernoulli = row("am-bern-0.875", MemberPolicy(augmix=_BERNOULLI))
    with_adversarial = row("am-bern-0.875+adv", MemberPolicy(augmix=_BERNOULLI, adversarial=Adversarial()))
    not_diverse = replace(_BETA, severity=SINGLE_SEVERITY, assignment="constant")
    return (
        row("am-beta", MemberPolicy(augmix=_BETA)),
        row("am-beta-not-diverse", MemberPolicy(augmix=not_diverse)),
        bernoulli,
        row("am-bern-1.0", MemberPolicy(augmix=replace(_BERNOULLI, p=1.0))),
        with_adversarial,
        *(_on_everything(e) for e in (single_with_augmix(dataset, "bern-0.875"), bernoulli, with_adversarial)),
    )


def _on_everything(experiment: Experiment) -> Experiment:
    """Trained on all 50,000 images and evaluated on the test set."""
    return replace(experiment, name=f"{experiment.name}/test", train_on="all")


TABLE1 = (*_rows("cifar10"), *_rows("cifar100"))
