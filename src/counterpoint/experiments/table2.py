"""Table 2 of the paper: no AugMix; stochastic depth and adversarial perturbation, with and without diversity.

    counterpoint train cifar10/batch-ensemble --out runs/cifar10-batch-ensemble

200 epochs for the single model, 250 for ensembles.
"""

from counterpoint.config import Experiment
from counterpoint.experiments.rows import CifarName, ensemble, single
from counterpoint.policy import Adversarial, MemberPolicy, StochasticDepth


def _rows(dataset: CifarName) -> tuple[Experiment, ...]:
    return (
        single(dataset, "single", MemberPolicy()),
        ensemble(dataset, "batch-ensemble", MemberPolicy()),
        ensemble(dataset, "be+sd", MemberPolicy(stochastic_depth=StochasticDepth())),
        ensemble(dataset, "be+sd-not-diverse", MemberPolicy(stochastic_depth=StochasticDepth((0.075,), "constant"))),
        ensemble(dataset, "be+adv", MemberPolicy(adversarial=Adversarial())),
        ensemble(dataset, "be+adv-not-diverse", MemberPolicy(adversarial=Adversarial(assignment="shuffled"))),
        ensemble(dataset, "be+adv-1.0", MemberPolicy(adversarial=Adversarial(p=1.0))),
    )


TABLE2 = (*_rows("cifar10"), *_rows("cifar100"))
