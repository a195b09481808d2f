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
    Section("verdict", verdict.TITLE, verdict.verdict_of, "sections/verdict.html"),
    Section("headlines", headlines.TITLE, headlines.headlines, "sections/headlines.html"),
    Section("comparison", "Differences between runs", comparison.comparisons, "sections/comparison.html"),
    Section("reliability", reliability.TITLE, reliability.reliability, "sections/reliability.html"),
    Section("classes", classes.TITLE, classes.classes, "sections/classes.html"),
    Section("shift", shift.TITLE, shift.under_shift, "sections/shift.html"),
    Section("severities", "Severities", severities.against_severity, "sections/severities.html"),
    Section("heat-maps", "Heat maps", heat_maps.heat_maps, "sections/heat_maps.html"),
    Section("selective", selective.TITLE, selective.selective, "sections/selective.html"),
    Section("threshold", threshold.TITLE, threshold.thresholds, "sections/threshold.html"),
    Section("outside", outside.TITLE, outside.outside, "sections/outside.html"),
    Section("recalibration", recalibration.TITLE, recalibration.recalibration, "sections/recalibration.html"),
    Section(
        "collapse", member_differences.TITLE, member_differences.member_differences, "sections/member_differences.html"
    ),
    Section("health", health.TITLE, health.health, "sections/health.html"),
    Section("paper", paper.TITLE, paper.beside_paper, "sections/paper.html"),
    Section("seeds", "Spread over seeds", seeds.seeds, "sections/seeds.html"),
    Section("metrics", metrics.TITLE, metrics.metrics, "sections/metrics.html"),
    Section("honesty", "Noise floors", honesty.honesty, "sections/honesty.html"),
    Section("provenance", provenance.TITLE, provenance.provenance, "sections/provenance.html"),
    Section("glossary", glossary.TITLE, glossary.glossary, "sections/glossary.html"),
)


def build_sections(runs: Sequence[ReportedRun]) -> list[tuple[Section, Content]]:
    """The sections that have something to show, with what each shows."""
    return [(section, content) for section in SECTIONS if (content := section.build(runs))]
