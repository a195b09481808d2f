"""The quickstart: scikit-learn's digits, a small ResNet, four members with AugMix of severity 1, 2, 3, 4, and beside it
a single network with AugMix of severity 3, trained for as many epochs.

    counterpoint demo

About 2 minutes on 2 CPU cores, both networks together. Digits are cropped, not flipped.
"""

from dataclasses import replace

from counterpoint.config import Experiment
from counterpoint.policy import AugMix, MemberPolicy

_ENSEMBLE = Experiment(
    name="digits/quickstart",
    dataset="digits",
    train_on="all",
    model="resnet",
    depth=8,
    width=8,
    num_members=4,
    policy=MemberPolicy(flip=False, augmix=AugMix()),
    epochs=20,
    batch_size=32,
)
_SINGLE_POLICY = replace(_ENSEMBLE.policy, augmix=AugMix((3.0,), "constant"))
QUICKSTART = (_ENSEMBLE, replace(_ENSEMBLE, name="digits/single", num_members=None, policy=_SINGLE_POLICY))
