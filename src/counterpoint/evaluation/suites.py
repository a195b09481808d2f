"""Suites of shifts: which part's images are corrupted, in which ways, and how badly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES
from counterpoint.errors import one_of
from counterpoint.records.results import Part


@dataclass(frozen=True)
class Suite:
    """Each of the corruptions at each of the severities."""

    name: str
    part: Part
    corruptions: tuple[str, ...]
    severities: tuple[int, ...] = SEVERITIES

    @property
    def cells(self) -> list[tuple[str, int]]:
        return [(name, severity) for name in self.corruptions for severity in self.severities]

    @property
    def in_json(self) -> dict[str, Any]:
        """What about.json says of it, beside where the images come from and how many there are."""
        return {"part": self.part, "corruptions": list(self.corruptions), "severities": list(self.severities)}


CORRUPTED = Suite("corrupted", "test", CORRUPTIONS)
"""The paper's suite: the test images under the official corruptions. Its figures are those of -C."""
VALIDATION_EXTRA = Suite("validation-extra", "validation", EXTRA_CORRUPTIONS)
"""Held-out training images under corruptions that are in no test set, so that choices can be made on them."""

SUITES = {suite.name: suite for suite in (CORRUPTED, VALIDATION_EXTRA)}
TAKEN = {"clean", *SUITES}
"""Names of sets on the page and in the folder, which no other set may have."""


def find_suites(names: Sequence[str]) -> list[Suite]:
    """The suites of these names."""
    return [SUITES[one_of("set of images", name, SUITES)] for name in dict.fromkeys(names)]
