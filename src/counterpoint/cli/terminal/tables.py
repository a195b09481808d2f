"""Tables for the terminal. Tables of figures come from the report. Nothing here imports torch."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy

if TYPE_CHECKING:
    from counterpoint.data.fetch import Status
    from counterpoint.experiments.settings import Setting
    from counterpoint.records.compared import Comparison
    from counterpoint.records.over_seeds import SeedsComparison, TrainedExperiment
    from counterpoint.records.recalibrated import Recalibrated
    from counterpoint.records.results import Results
    from counterpoint.records.threshold import Thresholded
    from counterpoint.report.tables import Table as ReportTable

EXPERIMENTS_LEGEND = (
    "on: split holds some training images out for validation; all trains on every training image.\n"
    "augmentation: AugMix, adversarial perturbation (adv) or stochastic depth (drop rate), with its severity. One "
    "number is for all members. 1–4 goes from the first member to the last. shuffled deals these severities out anew "
    "before each step.\n"
    "p: the share of the images that are augmented. beta 1: each image is mixed with its augmented version, with a "
    "weight drawn from Beta(1, 1)."
)


def experiments_table(experiments: Iterable[Experiment]) -> Table:
    """One line per experiment, with what sets it apart. A second augmentation has a second line."""
    table = _table(("experiment", "members", "on", "epochs", "augmentation"))
    table.columns[0].no_wrap = True
    for e in experiments:
        members = str(e.num_members or "single")
        table.add_row(e.name, members, e.train_on, str(e.epochs), _augmentation(e.policy) or "–")
    return table


def settings_tables(settings: Sequence["Setting"]) -> list[Table]:
    """One table per group of settings, because the keys of some groups are much longer than those of others."""
    tables = []
    for group in dict.fromkeys(setting.group for setting in settings):
        table = _table(("key", "default", "meaning (allowed values)"), title=group or "experiment")
        table.columns[0].no_wrap = table.columns[1].no_wrap = True
        for setting in settings:
            if setting.group == group:
                table.add_row(setting.key, setting.default or "–", f"{setting.line} ({setting.may_be})")
        tables.append(table)
    return tables


OTHER_DEFAULTS = "An experiment may have another default, and so may your own images (`train --images`)."


def setting_in_words(setting: "Setting") -> list[str]:
    """The meaning, the allowed values and the default of one setting, in sentences."""
    default = f"The default is {setting.default}." if setting.default else "By default it is not set."
    if setting.default is None:
        default = "There is no default: every experiment sets it."
    return [
        f"{setting.key}: {setting.meaning}",
        f"Allowed: {setting.may_be}. {default}",
        f"For example: --set {setting.key}={setting.default or 'VALUE'}",
        *([OTHER_DEFAULTS] if setting.default else []),
    ]


def data_table(folder: Path, rows: Sequence["Status"]) -> Table:
    """Which data sets are on disk, and which are missing."""
    table = _table(("data set", "size", "where it is, or what to do"), title=f"data sets in {folder}")
    for row in rows:
        size = f"{row.size / 1e6:,.0f} MB" if row.size else ""
        table.add_row(row.name, size, row.problem or row.where)
    return table


def results_parts(results: "Results") -> list[Table | str]:
    """What `evaluate` prints: the headline figures, what each suite is made of, what learned little, how well outside
    images are told apart, a verdict on whether the members differ, and warnings of lost channels."""
    from counterpoint.records.files import Evaluated
    from counterpoint.report.run import ReportedRun
    from counterpoint.report.sections.headlines import headline_table, suites_in_words
    from counterpoint.report.sections.outside import run_table, sets_in_words
    from counterpoint.report.verdicts.of_run import behind_sentences, guessing_sentences

    run = ReportedRun(results.experiment, Evaluated(results))
    parts: list[Table | str] = [to_rich(headline_table(run)), *suites_in_words(run)]
    parts += [sentence.text for sentence in (*guessing_sentences([run]), *behind_sentences(run))]
    if outside := run_table(run):
        parts += [to_rich(outside), *sets_in_words(run)]
    if results.collapse:
        parts.append(results.collapse.verdict)
    if results.health:
        parts += [f"warning: {sentence}" for sentence in results.health.warnings]
    return parts


def recalibrated_parts(recalibrated: "Recalibrated", plain: "Results") -> list[Table | str]:
    """What `recalibrate` prints: the parameters, the ensemble's NLL and ECE without recalibration and with each, and
    the choice."""
    from counterpoint.report.recalibrations.choice import choice_in_words, short_candidates_table
    from counterpoint.report.recalibrations.words import is_ensemble, parameters_table
    from counterpoint.report.sections.recalibration import shifts_table, ways_table

    tables = (parameters_table(recalibrated), ways_table(recalibrated, plain), shifts_table(recalibrated, plain))
    parts: list[Table | str] = [to_rich(table) for table in tables if table]
    if choice := recalibrated.choice:
        several = is_ensemble(recalibrated)
        parts += [to_rich(short_candidates_table(choice, several)), *choice_in_words(choice, several)]
    return parts


def threshold_parts(thresholded: "Thresholded", several: bool) -> list[Table | str]:
    """What `threshold` prints: the promise in words, and whether it held on other images."""
    from counterpoint.report.sections.threshold import cells_table, checks_table, threshold_in_words

    tables = (checks_table(thresholded), cells_table(thresholded))
    return [*threshold_in_words(thresholded, several), *(to_rich(table) for table in tables if table)]


def comparison_tables(ours: str, comparison: "Comparison") -> list[Table]:
    """The differences from another run, with their intervals: of figures, and of AUROCs."""
    from counterpoint.report.sections.comparison import differences_table, outside_table, pair_name

    tables = differences_table(ours, comparison), outside_table(pair_name(ours, comparison), comparison)
    return [to_rich(table) for table in tables if table]


def over_seeds_parts(ours: "TrainedExperiment", comparison: "SeedsComparison") -> list[Table | str]:
    """What `compare` prints of two experiments: what the seeds decide, and the figures."""
    from counterpoint.report.over_seeds import comparison_in_words, comparison_over_seeds

    tables = comparison_over_seeds(ours, comparison)
    return [*comparison_in_words(ours, comparison), *(part for table in tables for part in ("", to_rich(table)))]


def to_rich(table: "ReportTable") -> Table:
    """A table of the report as `rich` prints it. What stands in it is only text, whatever brackets it holds."""
    shown = Table(title=Text(table.caption), title_justify="left", box=None, pad_edge=False)
    figures_at: JustifyMethod = "left" if all(row.kind == "words" for row in table.rows) else "right"
    for number, column in enumerate(table.columns):
        heading = Text("\n".join(filter(None, (column.label, column.unit))))
        shown.add_column(heading, justify=figures_at if number else "left", overflow="fold")
    for row in table.rows:
        entries = [Text(entry.in_one_line, style="bold" if entry.best else "") for entry in row.entries]
        shown.add_row(Text(row.label), *entries)
    return shown


def _table(headings: Sequence[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _augmentation(policy: MemberPolicy) -> str:
    """One line per augmentation, short enough for 80 columns."""
    lines = []
    if augmix := policy.augmix:
        mixing = f"p {augmix.p:g}" if augmix.mixing == "bernoulli" else f"beta {augmix.beta:g}"
        lines.append(f"AugMix {_span(augmix.severity)} {mixing}{_shuffled(augmix.assignment)}")
    if adversarial := policy.adversarial:
        shuffled = _shuffled(adversarial.assignment)
        lines.append(f"adv {_span(adversarial.severity)} p {adversarial.p:g}{shuffled}")
    if depth := policy.stochastic_depth:
        lines.append(f"drop rate {_span(depth.drop_rate)}{_shuffled(depth.assignment)}")
    return "\n".join(lines)


def _span(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g}–{values[-1]:g}"


def _shuffled(assignment: str) -> str:
    return " shuffled" if assignment == "shuffled" else ""
