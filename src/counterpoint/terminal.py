"""Tables for the terminal. Nothing here imports torch."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy

if TYPE_CHECKING:
    from counterpoint.data.fetch import Status

_FIGURES = ("error", "ece_width15", "ece_rms_width15")


def experiments_table(experiments: Iterable[Experiment]) -> Table:
    """One line an experiment, with what sets it apart."""
    table = _table(("experiment", "members", "on", "epochs", "augmentation"))
    table.columns[0].no_wrap = True
    for e in experiments:
        members = str(e.num_members or "single")
        table.add_row(e.name, members, e.train_on, str(e.epochs), _augmentation(e.policy) or "–")
    return table


def data_table(folder: Path, rows: Sequence["Status"]) -> Table:
    """What is there of each data set."""
    table = _table(("data set", "size", "where, or what to do"), title=f"data sets in {folder}")
    for row in rows:
        size = f"{row.size / 1e6:,.0f} MB" if row.size else ""
        table.add_row(row.name, size, row.problem or row.where)
    return table


def results_table(results: dict[str, Any]) -> Table:
    """The ensemble's and its members' figures in percent, clean and under shift (by-corruption)."""
    where, clean, shifted = results["evaluated_on"], results["clean"], results["corrupted"]["aggregates"]
    title = f"{results['experiment']} on {where['images']:,} {where['dataset']} {where['part']} images, and on -C"
    table = _table(("", "error %", "ECE %", "ECE-rms %", "-C error %", "-C ECE %", "-C ECE-rms %"), title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    rows = [("ensemble" if len(clean["members"]) > 1 else "network", clean["ensemble"], shifted["ensemble"])]
    if len(clean["members"]) > 1:
        both = zip(clean["members"], shifted["members"], strict=True)
        rows += [(f"member {i}", *figures) for i, figures in enumerate(both, 1)]
    for name, clean_figures, aggregates in rows:
        shown = (clean_figures, aggregates["by-corruption"])
        table.add_row(name, *(f"{100 * figures[key]:.2f}" for figures in shown for key in _FIGURES))
    return table


def _table(headings: Sequence[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _augmentation(policy: MemberPolicy) -> str:
    parts = []
    if augmix := policy.augmix:
        mixing = f"p {augmix.p:g}" if augmix.mixing == "bernoulli" else f"beta {augmix.beta:g}"
        parts.append(f"AugMix {_vector(augmix.severity, augmix.assignment)} {mixing}")
    if adversarial := policy.adversarial:
        vector = _vector(adversarial.severity, adversarial.assignment)
        parts.append(f"adversarial {vector} p {adversarial.p:g}")
    if depth := policy.stochastic_depth:
        parts.append(f"drop rate {_vector(depth.drop_rate, depth.assignment)}")
    return ", ".join(parts)


def _vector(values: Sequence[float], assignment: str) -> str:
    return " ".join(f"{value:g}" for value in values) + (" shuffled" if assignment == "shuffled" else "")
