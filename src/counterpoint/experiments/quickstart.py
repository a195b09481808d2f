"""The demo's two experiments: a small ResNet on scikit-learn's digits, as an ensemble and as a single network.

    counterpoint demo

Both are trained on 898 digits and have the same 449 held-out digits for their recalibration, so that the comparison is
fair. The ensemble has four members with AugMix severities 2, 3, 4 and 5. The single network has AugMix severity 2. It
is trained for twice as many epochs, which takes about as long on two CPU cores.

`python benchmarks/demo_choice.py` chose the settings of each on held-out digits, with one exception. Its choice for the
single network was four times as many epochs, but the demo would then take longer than three minutes. The epochs were
halved after the test figures of that demo had been seen. results/README.md has the figures of both. Digits are
cropped, and not flipped.
"""

from dataclasses import replace

from counterpoint.config import Experiment
from counterpoint.policy import AugMix, MemberPolicy

_ENSEMBLE = Experiment(
    name="digits/quickstart",
    dataset="digits",
    train_on="split",
    model="resnet",
    depth=8,
    width=8,
    num_members=4,
    init_std=0.1,
    policy=MemberPolicy(flip=False, augmix=AugMix((2.0, 3.0, 4.0, 5.0))),
    epochs=30,
    batch_size=32,
)
_SINGLE = replace(
    _ENSEMBLE,
    name="digits/single",
    num_members=None,
    policy=replace(_ENSEMBLE.policy, augmix=AugMix((2.0,), "constant")),
    epochs=60,
    batch_size=16,
)
QUICKSTART = (_ENSEMBLE, _SINGLE)
