"""The sections of the page, in its order: a module for what each says, and beside it the template that lays it out."""

from collections.abc import Sequence

from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Content, Section
from counterpoint.report.sections import (
    classes,
    comparison,
    glossary,
    headlines,
    health,
    heat_maps,
    honesty,
    member_differences,
    metrics,
    outside,
    paper,
    provenance,
    recalibration,
    reliability,
    seeds,
    selective,
    severities,
    shift,
    threshold,
    verdict,
)

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    headlines.SECTION,
    comparison.SECTION,
    reliability.SECTION,
    classes.SECTION,
    shift.SECTION,
    severities.SECTION,
    heat_maps.SECTION,
    selective.SECTION,
    threshold.SECTION,
    outside.SECTION,
    recalibration.SECTION,
    member_differences.SECTION,
    health.SECTION,
    paper.SECTION,
    seeds.SECTION,
    metrics.SECTION,
    honesty.SECTION,
    provenance.SECTION,
    glossary.SECTION,
)


def build_sections(runs: Sequence[ReportedRun]) -> list[tuple[Section, Content]]:
    """The sections that have something to show, with what each shows."""
    return [(section, content) for section in SECTIONS if (content := section.build(runs))]
