"""Tables for the terminal. Nothing here imports torch."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy

if TYPE_CHECKING:
    from counterpoint.data.fetch import Status

_COMPARED = (
    ("error %", "error", 100),
    ("NLL", "nll", 1),
    ("Brier", "brier", 1),
    ("debiased ECE %", "ece_width15_debiased", 100),
)

EXPERIMENTS_LEGEND = (
    "on: split holds training images out and evaluates on them; all trains on every one and evaluates on the test "
    "set.\n"
    "augmentation: AugMix, adversarial perturbation (adv) or stochastic depth (drop rate), and how strong: one number "
    "for all members, or 1–4 from the first member to the last; shuffled deals these out anew before each update.\n"
    "p: the share of the images that get it; beta 1: mixed with the clean image by a weight drawn from Beta(1, 1)."
)


def experiments_table(experiments: Iterable[Experiment]) -> Table:
    """One line an experiment, with what sets it apart; a second one only for a second augmentation."""
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


def evaluation_parts(results: dict[str, Any]) -> list[Table | str]:
    """What `evaluate` prints: the headline figures, whether the members differ and many channels are lost,
    recalibration and comparisons."""
    corrupted = results["corrupted"]
    about_cells = f"-C: {corrupted['source']['kind']}, {corrupted['images']:,} images a cell."
    parts: list[Table | str] = [results_table(results), about_cells]
    if collapse := results.get("collapse"):
        parts.append(collapse["verdict"])
    if health := results.get("health"):
        parts += [f"warning: {sentence}" for sentence in health["warnings"]]
    if recalibrated := results.get("recalibrated"):
        parts.append(recalibrated_table(recalibrated))
    return parts + [comparison_table(other) for other in results.get("against", [])]


def results_table(results: dict[str, Any]) -> Table:
    """The ensemble's and its members' figures in percent, clean and under shift (by-corruption), with the ECE's noise
    floor and the excess over it."""
    where, clean, shifted = results["evaluated_on"], results["clean"], results["corrupted"]["aggregates"]
    title = f"{results['experiment']} on {where['images']:,} {where['dataset']} {where['part']} images, and on -C"
    table = _figures_table(("", "", "error %", "ECE %", "floor", "excess", "ECE-rms %"), title)
    rows = [(clean["ensemble"], shifted["ensemble"]), *zip(clean["members"], shifted["members"], strict=True)]
    names = ["ensemble", *(f"member {i}" for i in range(1, len(rows)))]
    if len(clean["members"]) == 1:
        names, rows = ["network"], rows[:1]
    for name, floor, (figures, aggregates) in zip(names, _clean_floors(clean), rows, strict=False):
        headline = aggregates["by-corruption"]
        table.add_row(name, "clean", *_headline(figures, floor))
        table.add_row("", "-C", *_headline(headline, headline.get("ece_width15_floor")))
    return table


def recalibrated_table(recalibrated: dict[str, Any]) -> Table:
    """The ensemble's NLL and ECE with each kind of temperature."""
    title = f"with temperatures; clean: {recalibrated['clean_how']}; -C: {recalibrated['corrupted_how']}"
    table = _figures_table(("", "temperature", "NLL", "ECE %", "-C NLL", "-C ECE %"), title)
    for kind, way in recalibrated["ways"].items():
        temperatures = way["temperature"] if isinstance(way["temperature"], list) else [way["temperature"]]
        figures = (way["clean"]["ensemble"], way["corrupted"]["ensemble"]["by-corruption"])
        cells = [cell for f in figures for cell in (f"{f['nll']:.4f}", _percent(f["ece_width15"]))]
        table.add_row(kind, " ".join(f"{value:.3f}" for value in temperatures), *cells)
    return table


def comparison_table(other: dict[str, Any]) -> Table:
    """The differences from another run, with their intervals; those of a calibration error on -C are by-corruption."""
    clean, corrupted = other["clean"], other["corrupted"]
    shifted = corrupted and corrupted["mean"] | (corrupted.get("by_corruption") or {})
    title = f"this run − {other['experiment']}, seed {other['seed']} ({other['run']}), with 95 % intervals over images"
    headings = (
        f"{name}{'' if part else ': not the same images'}" for name, part in (("clean", clean), ("-C", shifted))
    )
    table = _figures_table(("", *headings), title)
    for label, key, scale in _COMPARED:
        table.add_row(
            label, *(_interval(part[key], scale) if part and key in part else "–" for part in (clean, shifted))
        )
    return table


def _clean_floors(clean: dict[str, Any]) -> list[float | None]:
    """The floors of the ECE of the ensemble and its members; none in a results file from before they were computed."""
    if "honest" not in clean:
        return [None] * (1 + len(clean["members"]))
    return [own["ece_width15"]["floor"] for own in (clean["honest"]["ensemble"], *clean["honest"]["members"])]


def _headline(figures: dict[str, float], floor: float | None) -> tuple[str, ...]:
    ece = figures["ece_width15"]
    noise = ("–", "–") if floor is None else (_percent(floor), _percent(ece - floor))
    return _percent(figures["error"]), _percent(ece), *noise, _percent(figures["ece_rms_width15"])


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def _interval(difference: dict[str, float], scale: int) -> str:
    digits = 2 if scale == 100 else 4
    value, low, high = (f"{scale * difference[key]:+.{digits}f}" for key in ("difference", "low", "high"))
    return f"{value} ({low} to {high})"


def _figures_table(headings: Sequence[str], title: str) -> Table:
    table = _table(headings, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _table(headings: Sequence[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _augmentation(policy: MemberPolicy) -> str:
    """A line each, short enough for 80 columns."""
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
