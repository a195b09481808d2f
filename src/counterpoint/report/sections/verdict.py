"""What the report says first, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.verdicts.verdict import verdict_of

_TITLE = "Verdict"


@dataclass(frozen=True)
class Verdict(Content):
    sentences: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block(_TITLE, self.sentences)


def verdict(runs: Sequence[ReportedRun]) -> Verdict:
    return Verdict(tuple(verdict_of(runs)))


SECTION = Section("verdict", _TITLE, verdict, "sections/verdict.html")
