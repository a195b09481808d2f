"""What recalibrations do: fitted on validation images, one of them perhaps chosen, under shift and image by image."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Figures, Summary
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.records.results import Results
from counterpoint.report.drawing.rows import Pair, pairs_chart
from counterpoint.report.drawing.series import ink_of
from counterpoint.report.metrics import lines, scores_table
from counterpoint.report.numbers import decimal, percent, with_sign
from counterpoint.report.recalibrations import Topic
from counterpoint.report.recalibrations.charts import moves_topic, recalibrations_together
from counterpoint.report.recalibrations.choice import candidates_table, choice_in_words
from counterpoint.report.recalibrations.under_shift import corruptions_topic, severities_topic, shift_topic
from counterpoint.report.recalibrations.words import (
    WITHOUT,
    fitted_in_words,
    is_ensemble,
    label_of,
    meanings,
    parameters_table,
    used_in_words,
    way_name,
)
from counterpoint.report.run import AGGREGATES, HEADLINE, ReportedRun, aggregate_summary, clean_summary
from counterpoint.report.section import Block, Chart, Content, Plot
from counterpoint.report.suites import ShiftedRun, called, papers_suite, suites_of
from counterpoint.report.tables import Column, Table, plain_row

TITLE = "Recalibration"


@dataclass(frozen=True)
class RunRecalibration:
    """One run with and without recalibrations."""

    label: str
    colour: str
    topics: tuple[Topic, ...]


@dataclass(frozen=True)
class Recalibration(Content):
    meanings: dict[str, str]  # of the recalibrations' names
    together: tuple[Plot, ...]  # several runs on the same images
    runs: tuple[RunRecalibration, ...]

    def blocks(self) -> Iterator[Block]:
        if self.together:
            yield Block(f"{TITLE}: all runs", self.together)
        for run in self.runs:
            yield from (Block(f"{TITLE}: {run.label}: {one.title}", one.parts) for one in run.topics)


def recalibration(runs: Sequence[ReportedRun]) -> Recalibration | None:
    """None where no run was recalibrated."""
    found = [(run, scaled) for run in runs if (scaled := run.evaluated.recalibrated) is not None]
    of_runs = tuple(_of_run(run, scaled) for run, scaled in found)
    names = meanings(scaled for _, scaled in found)
    return Recalibration(names, recalibrations_together(runs), of_runs) if found else None


def ways_table(recalibrated: Recalibrated, plain: Results) -> Table:
    """The ensemble's NLL and ECE, without recalibration and with each."""
    several = is_ensemble(recalibrated)
    shift = recalibrated.made_from.corrupted
    suite = (called(shift.source) if shift else "-C") if _is_shifted(recalibrated) else ""
    columns = [Column("Temperature"), Column("NLL", "nats"), Column("ECE", "%")]
    if suite:
        columns += [Column(f"NLL on {suite}", "nats"), Column(f"ECE on {suite}", "%")]
    without = [plain.clean.ensemble]
    if suite and plain.corrupted:
        without.append(plain.corrupted.aggregates.ensemble[HEADLINE])
    rows = [plain_row(WITHOUT, *_nll_and_ece(*without))]
    for name, scaled in recalibrated.ways.items():
        shifted = [scaled.corrupted.ensemble[HEADLINE]] if scaled.corrupted and suite else []
        rows.append(plain_row(way_name(name, several), *_nll_and_ece(scaled.clean.ensemble, *shifted)))
    # The parameters may be others on clean images than on those of the suite.
    clean, corrupted = recalibrated.clean_how, recalibrated.corrupted_how
    how = f"clean: {clean}; {suite}: {corrupted}" if suite and clean != corrupted else clean
    return Table(f"with and without recalibration; {how}; 15 equal-width bins", tuple(columns), tuple(rows))


def shifts_table(recalibrated: Recalibrated, plain: Results) -> Table | None:
    """The same on each other set of shifted images; None where there are none."""
    if not recalibrated.shifts:
        return None
    several = is_ensemble(recalibrated)
    rows = []
    for name in recalibrated.shifts:
        rows.append(plain_row(name, WITHOUT, *_nll_and_ece(plain.shifts[name].aggregates.ensemble[HEADLINE])))
        for way, scaled in recalibrated.ways.items():
            rows.append(plain_row("", way_name(way, several), *_nll_and_ece(scaled.shifts[name].ensemble[HEADLINE])))
    columns = (Column("Images"), Column("Temperature"), Column("NLL", "nats"), Column("ECE", "%"))
    caption = f"with and without recalibration, on other shifted images; {recalibrated.corrupted_how}"
    return Table(caption, columns, tuple(rows))


def _nll_and_ece(*sets: Figures) -> list[str]:
    return [text for figures in sets for text in (decimal(figures.nll), percent(figures.ece_width15))]


def _is_shifted(recalibrated: Recalibrated) -> bool:
    return all(scaled.corrupted for scaled in recalibrated.ways.values())


def _of_run(run: ReportedRun, found: Recalibrated) -> RunRecalibration:
    shifted = papers_suite(run) if _is_shifted(found) else None
    used = () if run.results.imported else (used_in_words(found),)
    topics = (
        *_choice(run, found),
        Topic(
            "Fitted temperatures",
            words=(*fitted_in_words(found, shifted is not None), *used),
            tables=(parameters_table(found, f"{run.label}: what was fitted"),),
        ),
        _every_way(run, found, shifted),
        severities_topic(shifted, found) if shifted else None,
        corruptions_topic(shifted, found) if shifted else None,
        *(shift_topic(other, found) for other in suites_of(run) if other.suite in found.shifts),
        moves_topic(run.label, found),
    )
    return RunRecalibration(run.label, ink_of(run).colour, tuple(topic for topic in topics if topic))


def _choice(run: ReportedRun, found: Recalibrated) -> Iterator[Topic]:
    if found.choice is None:
        return
    several = is_ensemble(found)
    first, *others = choice_in_words(found.choice, several)
    yield Topic("The chosen recalibration", words=(first,))
    table = candidates_table(found.choice, several, f"{run.label}: candidates")
    yield Topic("How it was chosen", words=tuple(others), tables=(table,))


def _every_way(run: ReportedRun, found: Recalibrated, shifted: ShiftedRun | None) -> Topic:
    """All metrics on clean images, and on corrupted ones as each aggregate."""
    scaled = {label_of(name, found): one for name, one in found.ways.items()}
    sets = {run.images: {WITHOUT: _only_scores(run.clean)} | {name: clean_summary(one) for name, one in scaled.items()}}
    if shifted:
        for aggregate in AGGREGATES:
            ways = {name: aggregate_summary(one.corrupted, aggregate) for name, one in scaled.items() if one.corrupted}
            plain = _only_scores(shifted.aggregate(aggregate))
            sets[f"{shifted.images}, {aggregate}"] = {WITHOUT: plain} | ways
    tables, with_members = [], []
    for images, summaries in sets.items():
        models = [line for name, summary in summaries.items() for line in lines(name, summary)]
        whole = [(name, "", scores) for name, kind, scores in models if kind == "run"]
        tables.append(scores_table(f"{run.label}: {images}", "Temperature", whole))
        with_members.append(scores_table(f"{run.label}: {images}, with each member", "Temperature", models))
    clean, *others = tables
    more = {
        "each member": with_members[:2] if run.results.is_ensemble else [],
        "the other two aggregates": others[1:],
    }
    return Topic(
        "Figures with each recalibration",
        words=(_changed_predictions(found),),
        chart=_chart(run, list(sets.values())[:2], clean),
        legend=(("clean", "clean images"), *([("corrupted", "corrupted images")] if shifted else [])),
        tables=tuple(others[:1]),
        more=tuple(table for tables in more.values() for table in tables),
        more_title=", and ".join(title for title, tables in more.items() if tables).capitalize(),
    )


def _changed_predictions(found: Recalibrated) -> str:
    """How many images get another class at most."""
    clean = max(scaled.clean.changed_predictions for scaled in found.ways.values())
    shifted = [scaled.corrupted.changed_predictions for scaled in found.ways.values() if scaled.corrupted]
    if not max(clean, *shifted, 0.0):
        return "No recalibration changes a predicted class."
    corrupted = f", and of at most {with_sign(max(shifted))} of the corrupted ones" if shifted else ""
    return f"A recalibration changes the predicted class of at most {with_sign(clean)} of the clean images{corrupted}."


def _only_scores(summary: Summary) -> Summary:
    """As much as there is of a recalibration."""
    return Summary(ensemble=summary.ensemble, members=summary.members, disagreement=None)


def _chart(run: ReportedRun, sets: Sequence[Mapping[str, Summary]], table: Table) -> Chart:
    """`sets` are the clean images and, where there are some, the corrupted ones."""
    rows = []
    for name in sets[0]:
        clean, *shifted = (summaries[name].ensemble.ece_width15 for summaries in sets)
        words = f"clean {with_sign(clean)}" + "".join(f", corrupted {with_sign(ece)}" for ece in shifted)
        rows.append(Pair(name, clean, shifted[0] if shifted else None, words))
    words = "; ".join(f"{row.label}: {row.words}" for row in rows)
    return Chart(
        pairs_chart(rows, f"ECE of {run.label} with and without recalibration. {words}."),
        "ECE in 15 equal-width bins" + (f", corrupted images {HEADLINE}." if len(sets) > 1 else "."),
        table,
    )
