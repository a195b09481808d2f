"""The quickstart: scikit-learn's digits, a small ResNet, four members, and the single network beside it.

    counterpoint demo

About 2 minutes on 2 CPU cores, both networks together.
"""

from dataclasses import replace

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy

_ENSEMBLE = Experiment(
    name="digits/quickstart",
    dataset="digits",
    train_on="all",
    model="resnet",
    depth=8,
    width=8,
    num_members=4,
    policy=MemberPolicy(flip=False, crop_padding=4),
    epochs=20,
    batch_size=32,
)
QUICKSTART = (_ENSEMBLE, replace(_ENSEMBLE, name="digits/single", num_members=None))
