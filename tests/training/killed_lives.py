"""A quick training of many epochs that is killed again and again: `tests.training.tiny_run` says how.

python -m tests.training.killed_lives PLANS
"""

import json
import sys
from dataclasses import replace

from counterpoint.policy import MemberPolicy
from tests.small import TINY, noise_data
from tests.training.tiny_run import live_again_and_again

EPOCHS = 26

if __name__ == "__main__":
    experiment = replace(TINY, epochs=EPOCHS, width=1, batch_size=2, policy=MemberPolicy())
    live_again_and_again(experiment, noise_data(10, 2), json.loads(sys.argv[1]))
