"""Table 1 of the paper: AugMix ensembles on the split, and the best recipes trained again on all images.

    counterpoint train cifar10/am-bern-0.875 --out runs/cifar10-am-bern-0.875

250 epochs. The four members have AugMix severities 1, 2, 3, 4, or 3 each in the row that is "not diverse". The
adversarial perturbation, where it is added, has the severities of table 2.
"""

from dataclasses import replace

from counterpoint.config import Experiment
from counterpoint.experiments.rows import CifarName, ensemble, on_everything
from counterpoint.experiments.table3 import SINGLE_SEVERITY, single_with_augmix
from counterpoint.policy import Adversarial, AugMix, MemberPolicy

_BETA = AugMix(mixing="beta")
_BERNOULLI = AugMix(mixing="bernoulli", p=0.875)


def _rows(dataset: CifarName) -> tuple[Experiment, ...]:
    bernoulli = ensemble(dataset, "am-bern-0.875", MemberPolicy(augmix=_BERNOULLI))
    with_adversarial = ensemble(
        dataset, "am-bern-0.875+adv", MemberPolicy(augmix=_BERNOULLI, adversarial=Adversarial())
    )
    not_diverse = replace(_BETA, severity=SINGLE_SEVERITY, assignment="constant")
    return (
        ensemble(dataset, "am-beta", MemberPolicy(augmix=_BETA)),
        ensemble(dataset, "am-beta-not-diverse", MemberPolicy(augmix=not_diverse)),
        bernoulli,
        ensemble(dataset, "am-bern-1.0", MemberPolicy(augmix=replace(_BERNOULLI, p=1.0))),
        with_adversarial,
        *(on_everything(row) for row in (single_with_augmix(dataset, "bern-0.875"), bernoulli, with_adversarial)),
    )


TABLE1 = (*_rows("cifar10"), *_rows("cifar100"))
