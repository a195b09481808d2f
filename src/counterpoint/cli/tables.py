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
    """One line per experiment, with what sets it apart. A second augmentation has a second line."""
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
    """What `evaluate` prints: the headline figures, a verdict on whether the members differ, warnings of lost channels,
    recalibration, and comparisons."""
    corrupted = results["corrupted"]
    about_cells = f"-C: {corrupted['source']['kind']}, {corrupted['images']:,} images per cell."
    parts: list[Table | str] = [results_table(results), about_cells]
    if collapse := results.get("collapse"):
        parts.append(collapse["verdict"])
    if health := results.get("health"):
        parts += [f"warning: {sentence}" for sentence in health["warnings"]]
    if recalibrated := results.get("recalibrated"):
        parts.append(recalibrated_table(recalibrated))
    return parts + [comparison_table(comparison) for comparison in results.get("against", [])]


def results_table(results: dict[str, Any]) -> Table:
    """The ensemble's and its members' figures in percent, on clean images and on -C (by-corruption).

    Beside the ECE stand its noise floor and the excess over it.
    """
    where, clean, corrupted = results["evaluated_on"], results["clean"], results["corrupted"]["aggregates"]
    title = f"{results['experiment']} on {where['images']:,} {where['dataset']} {where['part']} images, and on -C"
    table = _figures_table(("", "", "error %", "ECE %", "floor", "excess", "ECE-rms %"), title)
    rows = [(clean["ensemble"], corrupted["ensemble"]), *zip(clean["members"], corrupted["members"], strict=True)]
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
    for kind, scaled in recalibrated["ways"].items():
        temperature = scaled["temperature"]
        temperatures = temperature if isinstance(temperature, list) else [temperature]
        figures = (scaled["clean"]["ensemble"], scaled["corrupted"]["ensemble"]["by-corruption"])
        shown = [text for f in figures for text in (f"{f['nll']:.4f}", _percent(f["ece_width15"]))]
        table.add_row(kind, " ".join(f"{value:.3f}" for value in temperatures), *shown)
    return table


def comparison_table(comparison: dict[str, Any]) -> Table:
    """The differences from another run, with their intervals. Those of a calibration error on -C are by-corruption."""
    clean, on_cells = comparison["clean"], comparison["corrupted"]
    corrupted = on_cells and on_cells["mean"] | (on_cells.get("by_corruption") or {})
    other_run = f"{comparison['experiment']}, seed {comparison['seed']} ({comparison['run']})"
    title = f"this run − {other_run}, with 95 % intervals over images"
    headings = (
        f"{name}{'' if part else ': not the same images'}" for name, part in (("clean", clean), ("-C", corrupted))
    )
    table = _figures_table(("", *headings), title)
    for label, key, scale in _COMPARED:
        table.add_row(
            label, *(_interval(part[key], scale) if part and key in part else "–" for part in (clean, corrupted))
        )
    return table


def _clean_floors(clean: dict[str, Any]) -> list[float | None]:
    """The noise floors of the ECE, of the ensemble and then of its members. Early results files have none."""
    if "honest" not in clean:
        return [None] * (1 + len(clean["members"]))
    predictors = (clean["honest"]["ensemble"], *clean["honest"]["members"])
    return [estimates["ece_width15"]["floor"] for estimates in predictors]


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
