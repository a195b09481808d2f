"""Which images of an evaluated set belong together, as the logits' folder and the records keep it."""

import hashlib
from dataclasses import dataclass

from numpy.typing import ArrayLike

from counterpoint.metrics.checks import Integers
from counterpoint.metrics.groups import groups_of
from counterpoint.records.images import InGroups


@dataclass(frozen=True, eq=False)
class Together:
    """At least one group has several images."""

    group_N: Integers
    """Each image's group, numbered in the order of their first images."""
    record: InGroups

    @classmethod
    def of(cls, groups_N: ArrayLike | None, images: int) -> "Together | None":
        """None where no images belong together."""
        groups = groups_of(groups_N, images)
        if groups is None:
            return None
        key = hashlib.sha256(groups.group_N.astype("<i8").tobytes()).hexdigest()[:16]
        return cls(groups.group_N, InGroups(len(groups), key))
