"""Table 3 of the paper: single models with AugMix.

    counterpoint train cifar10/single-am-bern-0.875 --out runs/cifar10-single-am-bern-0.875

200 epochs. The paper does not give the severity; it is AugMix's default, 3 (docs/paper.md, 6).
"""

from counterpoint.config import Experiment
from counterpoint.experiments.rows import CifarName, single
from counterpoint.policy import AugMix, MemberPolicy

SINGLE_SEVERITY = (3.0,)
_MIXING = {
    "beta": AugMix(SINGLE_SEVERITY, "constant", "beta"),
    "bern-0.875": AugMix(SINGLE_SEVERITY, "constant", "bernoulli", p=0.875),
    "bern-1.0": AugMix(SINGLE_SEVERITY, "constant", "bernoulli", p=1.0),
}


def single_with_augmix(dataset: CifarName, mixing: str) -> Experiment:
    """A single network trained with AugMix."""
    return single(dataset, f"single-am-{mixing}", MemberPolicy(augmix=_MIXING[mixing]))


_DATASETS: tuple[CifarName, ...] = ("cifar10", "cifar100")
TABLE3 = tuple(single_with_augmix(dataset, mixing) for dataset in _DATASETS for mixing in _MIXING)
