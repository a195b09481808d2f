"""The command line: one small function a command. Heavy imports wait until a command needs them."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import counterpoint
from counterpoint.errors import InputError
from counterpoint.terminal import data_table, experiments_table, results_table

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
ExperimentArgument = Annotated[
    str, typer.Argument(help="A name that `counterpoint experiments` lists.", show_default=False)
]
SeedOption = Annotated[int, typer.Option(min=0, help="Decides initial weights, order and augmentation.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, e.g. --set epochs=20.")
]
RunsArgument = Annotated[list[Path], typer.Argument(help="Run folders (or their results.json).", show_default=False)]
RunArgument = Annotated[Path, typer.Argument(help="A run's folder, as `train --out` made it.", show_default=False)]


def main() -> None:
    """Run a command; a wrong input ends with its message and status 2."""
    try:
        app(prog_name="counterpoint")
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
    from counterpoint.experiments import select_experiments

    found = select_experiments(words or [])
    console.print(experiments_table(found))


@app.command()
def data(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="To download: cifar10, cifar100, cifar10-c, cifar100-c. None lists what is there."),
    ] = None,
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
    console.print(data_table(folder, status(folder)))


@app.command()
def views(
    experiment: ExperimentArgument,
    out: Annotated[Path, typer.Option(help="The PNG to write.")] = Path("views.png"),
    images: Annotated[int, typer.Option(min=1, help="How many images to show.")] = 8,
    seed: SeedOption = 0,
    epoch: Annotated[int, typer.Option(min=0, help="Of which epoch, counted from 0.")] = 0,
    set_: SetOption = None,
    root: DataOption = None,
) -> None:
    """Draw the views that each member would be trained on: rows are images, columns the members.

    The adversarial perturbation, if the experiment has one, is that of the initial weights.
    """
    from counterpoint.config import override
    from counterpoint.data import load
    from counterpoint.experiments import find_experiment
    from counterpoint.gallery import draw_views

    chosen = override(find_experiment(experiment), set_ or [])
    draw_views(chosen, load(chosen.dataset, root), out, images=images, seed=seed, epoch=epoch)
    console.print(f"views: {out}", soft_wrap=True)


@app.command()
def train(
    experiment: ExperimentArgument,
    out: Annotated[Path, typer.Option(help="The run's folder; an unfinished run there goes on.", show_default=False)],
    seed: SeedOption = 0,
    set_: SetOption = None,
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
    console.print(results_table(results))
    console.print(f"written: {run / 'results.json'}; now `counterpoint report {run}`", soft_wrap=True)


@app.command()
def corrupt(
    dataset: Annotated[
        str | None, typer.Argument(help="cifar10, cifar100 or digits; not needed for an atlas.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the set.", show_default="regenerated/… in the data folder")
    ] = None,
    atlas: Annotated[
        Path | None, typer.Option(help="Instead: draw every corruption of one image into this PNG.")
    ] = None,
    image: Annotated[
        str, typer.Option(help="The atlas's image: its number in the test set, or a picture's path.")
    ] = "0",
    seed: Annotated[int, typer.Option(min=0, help="Of the random corruptions.")] = 0,
    extra: Annotated[bool, typer.Option("--extra", help="Also the four extra corruptions, for validation.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    root: DataOption = None,
) -> None:
    """Make the corrupted test set of a data set: 15 corruptions × 5 severities, in CIFAR-C's own layout.

    What is there already is kept, so that an interrupted command goes on where it stopped.
    """
    from counterpoint.console import count_bar
    from counterpoint.data import data_root, load
    from counterpoint.shifted import draw_image_atlas, make_shifted_set

    folder = root or data_root()
    if atlas:
        draw_image_atlas(image, dataset, atlas, seed=seed, root=folder)
        console.print(f"atlas: {atlas}", soft_wrap=True)
        return
    if dataset is None:
        raise InputError("name a data set to corrupt (cifar10, cifar100 or digits), or draw an atlas with --atlas PNG")
    data = load(dataset, folder)
    with count_bar(f"corrupting {dataset}") as count:
        made = make_shifted_set(
            data,
            folder,
            out=out,
            seed=seed,
            extra=extra,
            workers=workers,
            progress=lambda _, done, total: count(done, total),
        )
    console.print(f"corrupted set: {made.folder} (frost from {made.source['frost']})", soft_wrap=True)


@app.command()
def report(
    runs: RunsArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default="report.FORMAT")] = None,
    format_: Annotated[str, typer.Option("--format", help="html, csv, md or json.")] = "html",
) -> None:
    """Write one self-contained page about evaluated runs, side by side; or the same figures as csv, md or json."""
    from counterpoint.report import write_report

    path = out or Path(f"report.{format_}")
    write_report(runs, path, format_)
    console.print(f"[bold]report:[/] {path}", soft_wrap=True)
