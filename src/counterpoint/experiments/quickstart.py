"""The quickstart: a small ResNet on scikit-learn's digits, as an ensemble and as a single network.

The ensemble has four members with AugMix of severity 1, 2, 3, 4. The single network has AugMix of severity 3, and is
trained for as many epochs.

    counterpoint demo

Both together take about 2 minutes on 2 CPU cores. Digits are cropped, not flipped.
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
