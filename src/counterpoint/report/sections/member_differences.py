"""Do the members differ? Their predictions beside those of independent members, and their factors beside each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from counterpoint.records.results import Between, Collapse, FactorCorrelation
from counterpoint.report.drawing.plots import Line, Scale, lines_chart
from counterpoint.report.drawing.series import ink_of
from counterpoint.report.numbers import decimal, percent, with_sign
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Chart, Content
from counterpoint.report.suites import named_severities, papers_suite
from counterpoint.report.tables import Column, Row, Table, plain_row

TITLE = "Differences between members"
_COLUMNS = (
    Column("Images"),
    Column("Disagree", "%"),
    Column("If independent", "%"),
    Column("Share of that", "%"),
    Column("KL", "nats"),
)


@dataclass(frozen=True)
class RunDifferences:
    """How much one run's members differ."""

    label: str
    colour: str
    verdict: str
    chart: Chart
    factors: Table | None


@dataclass(frozen=True)
class MemberDifferences(Content):
    runs: tuple[RunDifferences, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{TITLE}: {run.label}", (run.verdict, run.chart, run.factors)) for run in self.runs)


def member_differences(runs: Sequence[ReportedRun]) -> MemberDifferences | None:
    """None where no run's members were compared."""
    found = [(run, collapse) for run in runs if (collapse := run.results.collapse) is not None]
    sets = [between for _, collapse in found for between in (collapse.clean, *collapse.severities)]
    highest = max((max(between.disagreement, between.independent_disagreement) for between in sets), default=0.0)
    return MemberDifferences(tuple(_of_run(*one, highest) for one in found)) if found else None


def _of_run(run: ReportedRun, found: Collapse, highest: float) -> RunDifferences:
    factors = {name: one for name, one in (("r", found.r), ("s", found.s)) if one is not None}
    return RunDifferences(
        label=run.label,
        colour=ink_of(run).colour,
        verdict=found.verdict,
        chart=_chart(run, found, highest),
        factors=_factors_table(run.label, factors) if factors else None,
    )


def _chart(run: ReportedRun, found: Collapse, highest: float) -> Chart:
    """`highest` is the most that members of any run disagree: all runs have the same axis."""
    shifted = papers_suite(run)
    severities = dict(zip(named_severities(shifted), found.severities, strict=False)) if shifted else {}
    points = {"Clean": found.clean, **severities}
    joined = severities if severities and shifted and not shifted.clean_is_severity_0 else points
    lines = (
        Line("independent", "independent", [between.independent_disagreement for between in joined.values()]),
        Line("members", "members", [between.disagreement for between in joined.values()]),
    )
    words = [
        f"{name.lower()}: {with_sign(between.disagreement)}, "
        f"if independent {with_sign(between.independent_disagreement)}"
        for name, between in points.items()
    ]
    ends = "; ".join(dict.fromkeys((words[0], words[-1])))
    return Chart(
        lines_chart(
            "disagreement",
            list(joined),
            lines,
            Scale("two members disagree", True, with_sign, highest),
            f"How often two members of {run.label} disagree: {'; '.join(words)}.",
        ),
        f"How often two members disagree. {ends.capitalize()}.",
        Table(
            f"{run.label}: two members compared",
            _COLUMNS,
            tuple(_row(name, between) for name, between in points.items()),
        ),
    )


def _row(name: str, between: Between) -> Row:
    independent = between.independent_disagreement
    share = f"{100 * between.disagreement / independent:.0f}" if independent > 0 else "–"
    return plain_row(name, percent(between.disagreement), percent(independent), share, decimal(between.pairwise_kl))


def _factors_table(label: str, factors: Mapping[str, FactorCorrelation]) -> Table:
    rows = []
    for name, correlation in factors.items():
        rows.append(_factor_row(f"{name}, all pairs", correlation.plain, 0.0))
        rows.append(_factor_row(f"{name}, closest pair", correlation.closest, correlation.independent))
    columns = (Column("Factors"), Column("Here"), Column("Independent", "about"), Column("Identical"))
    return Table(f"{label}: correlation of the members’ factors", columns, tuple(rows))


def _factor_row(label: str, here: float, independent: float) -> Row:
    return plain_row(label, *(f"{value:.3f}".replace("-", "−") for value in (here, independent, 1.0)))
