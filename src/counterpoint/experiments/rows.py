"""What all rows of the paper's tables share, and how they are built from it.

Every row warms the learning rate up for one epoch, and no ensemble decays r and s. BatchEnsemble's code, whose schedule
the paper uses, does the same (docs/paper.md, 3 and 11). The rows name both settings. They are not defaults, because a
hash leaves defaults out: older results without these settings would then count as the rows.
"""

from dataclasses import replace
from typing import Literal

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy

CifarName = Literal["cifar10", "cifar100"]
# The steps of one epoch in batches of 128: of the split's 45,000 images, and of all 50,000.
_WARMUP_ON_SPLIT, _WARMUP_ON_ALL = 352, 391


def ensemble(dataset: CifarName, name: str, policy: MemberPolicy) -> Experiment:
    """A BatchEnsemble of four members, trained on the split for 250 epochs."""
    return Experiment(
        f"{dataset}/{name}", dataset, policy=policy, epochs=250, warmup_steps=_WARMUP_ON_SPLIT, decay_rs=False
    )


def single(dataset: CifarName, name: str, policy: MemberPolicy) -> Experiment:
    """A single network, trained on the split for 200 epochs."""
    return Experiment(
        f"{dataset}/{name}", dataset, num_members=None, policy=policy, epochs=200, warmup_steps=_WARMUP_ON_SPLIT
    )


def on_everything(row: Experiment) -> Experiment:
    """The same row trained on all 50,000 images and evaluated on the test set."""
    return replace(row, name=f"{row.name}/test", train_on="all", warmup_steps=_WARMUP_ON_ALL)
