"""The rows of the paper's three tables.

    counterpoint train cifar10/am-bern-0.875 --out runs/cifar10-am-bern-0.875

Every row warms the learning rate up for one epoch, and no ensemble decays r and s. BatchEnsemble's code, whose schedule
the paper uses, does the same (docs/paper.md, 3 and 11). The rows name both settings. They are not defaults, because a
hash leaves defaults out: older results without these settings would then count as the rows.
"""

from dataclasses import replace
from typing import Literal

from counterpoint.config import Experiment
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth

CifarName = Literal["cifar10", "cifar100"]
# The steps of one epoch in batches of 128: of the split's 45,000 images, and of all 50,000.
_WARMUP_ON_SPLIT, _WARMUP_ON_ALL = 352, 391
# The paper does not give the severity of single models; it is AugMix's default, 3 (docs/paper.md, 6).
_SINGLE_SEVERITY = (3.0,)
_BETA = AugMix(mixing="beta")
_BERNOULLI = AugMix(mixing="bernoulli", p=0.875)
_OF_SINGLE = {
    "beta": AugMix(_SINGLE_SEVERITY, "constant", "beta"),
    "bern-0.875": AugMix(_SINGLE_SEVERITY, "constant", "bernoulli", p=0.875),
    "bern-1.0": AugMix(_SINGLE_SEVERITY, "constant", "bernoulli", p=1.0),
}


def _ensemble(dataset: CifarName, name: str, policy: MemberPolicy) -> Experiment:
    """A BatchEnsemble of four members, trained on the split for 250 epochs."""
    return Experiment(
        f"{dataset}/{name}", dataset, policy=policy, epochs=250, warmup_steps=_WARMUP_ON_SPLIT, decay_rs=False
    )


def _single(dataset: CifarName, name: str, policy: MemberPolicy) -> Experiment:
    """A single network, trained on the split for 200 epochs."""
    return Experiment(
        f"{dataset}/{name}", dataset, num_members=None, policy=policy, epochs=200, warmup_steps=_WARMUP_ON_SPLIT
    )


def _on_everything(row: Experiment) -> Experiment:
    """The same row trained on all 50,000 images and evaluated on the test set."""
    return replace(row, name=f"{row.name}/test", train_on="all", warmup_steps=_WARMUP_ON_ALL)


def _table1(dataset: CifarName) -> tuple[Experiment, ...]:
    """AugMix ensembles on the split, and the best recipes trained again on all images.

    The four members have AugMix severities 1, 2, 3, 4, or 3 each in the row that is "not diverse". The adversarial
    perturbation, where it is added, has the severities of table 2.
    """
    bernoulli = _ensemble(dataset, "am-bern-0.875", MemberPolicy(augmix=_BERNOULLI))
    with_adversarial = _ensemble(
        dataset, "am-bern-0.875+adv", MemberPolicy(augmix=_BERNOULLI, adversarial=Adversarial())
    )
    single = _single(dataset, "single-am-bern-0.875", MemberPolicy(augmix=_OF_SINGLE["bern-0.875"]))
    not_diverse = replace(_BETA, severity=_SINGLE_SEVERITY, assignment="constant")
    return (
        _ensemble(dataset, "am-beta", MemberPolicy(augmix=_BETA)),
        _ensemble(dataset, "am-beta-not-diverse", MemberPolicy(augmix=not_diverse)),
        bernoulli,
        _ensemble(dataset, "am-bern-1.0", MemberPolicy(augmix=replace(_BERNOULLI, p=1.0))),
        with_adversarial,
        *(_on_everything(row) for row in (single, bernoulli, with_adversarial)),
    )


def _table2(dataset: CifarName) -> tuple[Experiment, ...]:
    """No AugMix; stochastic depth and adversarial perturbation, with and without diversity."""
    return (
        _single(dataset, "single", MemberPolicy()),
        _ensemble(dataset, "batch-ensemble", MemberPolicy()),
        _ensemble(dataset, "be+sd", MemberPolicy(stochastic_depth=StochasticDepth())),
        _ensemble(dataset, "be+sd-not-diverse", MemberPolicy(stochastic_depth=StochasticDepth((0.075,), "constant"))),
        _ensemble(dataset, "be+adv", MemberPolicy(adversarial=Adversarial())),
        _ensemble(dataset, "be+adv-not-diverse", MemberPolicy(adversarial=Adversarial(assignment="shuffled"))),
        _ensemble(dataset, "be+adv-1.0", MemberPolicy(adversarial=Adversarial(p=1.0))),
    )


def _table3(dataset: CifarName) -> tuple[Experiment, ...]:
    """Single models with AugMix."""
    return tuple(
        _single(dataset, f"single-am-{name}", MemberPolicy(augmix=augmix)) for name, augmix in _OF_SINGLE.items()
    )


ROWS = tuple(
    row for table in (_table2, _table3, _table1) for dataset in ("cifar10", "cifar100") for row in table(dataset)
)
