"""The command line: one small function a command. Heavy imports wait until a command needs them."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import counterpoint
from counterpoint.errors import InputError

app = typer.Typer(
    name="counterpoint",
    help="Train ensembles whose members each see a differently augmented version of the data, and see how far their "
    "confidence can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with the data sets.", envvar="COUNTERPOINT_DATA", show_default="user's cache"),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N; auto is the GPU if there is one.")]
RunsArgument = Annotated[list[Path], typer.Argument(help="Run folders (or their results.json).", show_default=False)]
RunArgument = Annotated[Path, typer.Argument(help="A run's folder, as `train --out` made it.", show_default=False)]


def main() -> None:
    """Run a command; a wrong input ends with its message and status 2."""
    try:
        app()
    except InputError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(counterpoint.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version  # its callback did the work


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the two runs and the report.")] = Path("demo"),
    device: DeviceOption = "auto",
) -> None:
    """Train a small ensemble and a single network on handwritten digits, and write a report of both.

    Needs no download and no GPU: about two minutes on two CPU cores.
    """
    from counterpoint.demo import run_demo

    report = run_demo(out, device)
    console.print(f"[bold]report:[/] {report}", soft_wrap=True)


@app.command()
def experiments(
    words: Annotated[list[str] | None, typer.Argument(help="Show only names with all of these words.")] = None,
) -> None:
    """List the experiments that `train` knows."""
    from counterpoint.experiments import EXPERIMENTS

    found = [e for name, e in EXPERIMENTS.items() if all(word.lower() in name for word in words or [])]
    if not found:
        raise InputError(
            f"no experiment has {' and '.join(words or [])} in its name; `counterpoint experiments` lists all"
        )
    table = Table(box=None, pad_edge=False)
    for heading in ("experiment", "network", "members", "trained on", "epochs"):
        table.add_column(heading)
    for e in found:
        table.add_row(e.name, e.model, str(e.num_members or "single"), e.train_on, str(e.epochs))
    console.print(table)


@app.command()
def data(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets to download; none lists what is there.")] = None,
    root: DataOption = None,
) -> None:
    """List the data sets that are there, or download some, with progress, resume and checksum."""
    from counterpoint.console import download_bar
    from counterpoint.data import data_root
    from counterpoint.data.fetch import fetch, status

    folder = root or data_root()
    for name in names or []:
        with download_bar(name) as progress:
            fetched = fetch(name, folder, progress)
        console.print(f"{name} is in {fetched}", soft_wrap=True)
    if names:
        return
    table = Table(title=f"data sets in {folder}", title_justify="left", box=None, pad_edge=False)
    for heading in ("data set", "state", "size", "where"):
        table.add_column(heading, overflow="fold")
    for row in status(folder):
        size = f"{row.size / 1e6:,.0f} MB" if row.size else ""
        table.add_row(row.name, row.problem or "complete", size, str(row.where or ""))
    console.print(table)


@app.command()
def train(
    experiment: Annotated[
        str, typer.Argument(help="A name that `counterpoint experiments` lists.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; an unfinished run there goes on.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Decides weights, order and augmentation.")] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, e.g. --set epochs=20.")
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option(min=0.2, help="Stop with a checkpoint before this time is over.")
    ] = None,
    root: DataOption = None,
    device: DeviceOption = "auto",
    compile_: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Use torch.compile.", show_default="on a GPU")
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bits every time on a GPU too, at some cost in speed.")
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
) -> None:
    """Train an experiment, or go on with the unfinished run in the folder."""
    from counterpoint.config import override
    from counterpoint.console import stop_on_signal, training_bar
    from counterpoint.data import load
    from counterpoint.experiments import find_experiment
    from counterpoint.train import Options, train

    chosen = override(find_experiment(experiment), set_ or [])
    options = Options(device, compile_, deterministic, max_minutes, tensorboard)
    dataset = load(chosen.dataset, root)
    with stop_on_signal() as stop, training_bar(chosen.name, chosen.epochs) as watcher:
        finished = train(chosen, out, dataset, seed=seed, options=options, watcher=watcher, should_stop=stop.is_set)
    if finished:
        console.print(f"finished: {out}; now `counterpoint evaluate {out}`", soft_wrap=True)
    else:
        console.print(f"stopped with a checkpoint in {out}; the same command goes on from there", soft_wrap=True)
        raise typer.Exit(130 if stop.is_set() else 0)


@app.command()
def evaluate(
    run: RunArgument,
    cell_images: Annotated[
        int | None, typer.Option(min=1, help="Use the first N images of each corrupted cell.", show_default="all")
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute the figures again from the saved logits; needs no network.")
    ] = False,
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Compute a finished run's error, scores and calibration, clean and under 15 corruptions, into results.json.

    The corrupted test set is the official one if it is in the data folder; otherwise it is made there first.
    """
    from counterpoint.evaluate import evaluate_run
    from counterpoint.runs import load_run

    results = evaluate_run(load_run(run), root, device=device, cell_images=cell_images, recompute=recompute)
    console.print(_summary(results))
    console.print(f"written: {run / 'results.json'}; now `counterpoint report {run}`", soft_wrap=True)


_SHOWN = ("error", "ece_width15", "ece_rms_width15")


def _summary(results: dict) -> Table:
    """The ensemble's and its members' figures in percent."""
    where, clean, shifted = results["evaluated_on"], results["clean"], results["corrupted"]["aggregates"]
    title = f"{results['experiment']} on {where['images']:,} {where['dataset']} {where['part']} images, and on -C"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("", "error %", "ECE %", "ECE-rms %", "-C error %", "-C ECE %", "-C ECE-rms %"):
        table.add_column(heading, justify="right" if heading else "left")
    rows = [("ensemble", clean["ensemble"], shifted["ensemble"])]
    rows += [(f"member {i}", *both) for i, both in enumerate(zip(clean["members"], shifted["members"], strict=True), 1)]
    for name, *both in rows if len(rows) > 2 else [("network", *rows[0][1:])]:
        figures = (both[0], both[1]["by-corruption"])
        table.add_row(name, *(f"{100 * f[key]:.2f}" for f in figures for key in _SHOWN))
    return table


@app.command()
def report(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one self-contained page about evaluated runs, side by side."""
    from counterpoint.report import write_report

    write_report(runs, out)
    console.print(f"[bold]report:[/] {out}", soft_wrap=True)
