"""Table 2 of the paper: no AugMix; stochastic depth and adversarial perturbation, with and without diversity.

    counterpoint train cifar10/batch-ensemble --out runs/cifar10-batch-ensemble

200 epochs for the single model, 250 for ensembles.
"""

from typing import Literal

from counterpoint.config import Experiment
from counterpoint.policy import Adversarial, MemberPolicy, StochasticDepth


def _rows(dataset: Literal["cifar10", "cifar100"]) -> tuple[Experiment, ...]:
    def row(name: str, policy: MemberPolicy) -> Experiment:
        return Experiment(f"{dataset}/{name}", dataset, policy=policy)

    return (
        Experiment(f"{dataset}/single", dataset, num_members=None, epochs=200),
        row("batch-ensemble", MemberPolicy()),
        row("be+sd", MemberPolicy(stochastic_depth=StochasticDepth())),
        row("be+sd-not-diverse", MemberPolicy(stochastic_depth=StochasticDepth((0.075,), "constant"))),
        row("be+adv", MemberPolicy(adversarial=Adversarial())),
        row("be+adv-not-diverse", MemberPolicy(adversarial=Adversarial(assignment="shuffled"))),
        row("be+adv-1.0", MemberPolicy(adversarial=Adversarial(p=1.0))),
    )


TABLE2 = (*_rows("cifar10"), *_rows("cifar100"))
