"""Table 3 of the paper: single models with AugMix.

    counterpoint train cifar10/single-am-bern-0.875 --out runs/cifar10-single-am-bern-0.875

200 epochs. The severity is AugMix's own default, 3; the paper does not say (SPEC D6).
"""

from typing import Literal

from counterpoint.config import Experiment
from counterpoint.policy import AugMix, MemberPolicy

SINGLE_SEVERITY = (3.0,)
_MIXING = {
    "beta": AugMix(SINGLE_SEVERITY, "constant", "beta"),
    "bern-0.875": AugMix(SINGLE_SEVERITY, "constant", "bernoulli", p=0.875),
    "bern-1.0": AugMix(SINGLE_SEVERITY, "constant", "bernoulli", p=1.0),
}


def single_with_augmix(dataset: Literal["cifar10", "cifar100"], mixing: str) -> Experiment:
    """A single network trained with AugMix."""
    policy = MemberPolicy(augmix=_MIXING[mixing])
    return Experiment(f"{dataset}/single-am-{mixing}", dataset, num_members=None, policy=policy, epochs=200)


TABLE3 = tuple(single_with_augmix(d, mixing) for d in ("cifar10", "cifar100") for mixing in _MIXING)
