"""The command line: one small function a command. Heavy imports wait until a command needs them."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import counterpoint
from counterpoint.errors import InputError
from counterpoint.terminal import EXPERIMENTS_LEGEND, data_table, evaluation_parts, experiments_table

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
console = Console(markup=False)  # names and paths may hold brackets

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
    """Run a command; a wrong input, or a file that cannot be read or written, ends with its message and status 2."""
    try:
        app(prog_name="counterpoint")
    except InputError as error:
        _fail(str(error))
    except FileExistsError as error:
        _fail(f"{error.filename} is a file, and a folder is needed there; give another path")
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))


def _fail(message: str) -> None:
    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
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
    out: Annotated[Path, typer.Option(help="Folder for the three runs and the report.")] = Path("demo"),
    device: DeviceOption = "auto",
) -> None:
    """Train a small ensemble and a single network on handwritten digits, and write a report of both.

    A third, short training holds images out, which give the single network its temperatures.

    Needs no download and no GPU: about two minutes on two CPU cores.
    """
    from counterpoint.demo import run_demo

    report = run_demo(out, device)
    console.print(f"report: {report}; open it in a browser", soft_wrap=True)


@app.command()
def experiments(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Show only names with all of these words; a whole name is that one alone."),
    ] = None,
) -> None:
    """List the experiments that `train` knows."""
    from counterpoint.experiments import select_experiments

    found = select_experiments(words or [])
    console.print(experiments_table(found))
    console.print(f"\n{EXPERIMENTS_LEGEND}", highlight=False)


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
    from counterpoint.data.fetch import check_download, fetch, status

    folder = root or data_root()
    for name in names or []:  # all of them before the first download
        check_download(name)
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
    from counterpoint.sheet import check_png

    check_png(out)
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
    path: Annotated[
        str,
        typer.Option(
            help="How a step is computed: auto, fast (own kernels; ResNeXt-29 on a GPU), compiled (torch.compile) or "
            "eager (plain PyTorch). auto is the fastest that the network and the device have."
        ),
    ] = "auto",
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
    from counterpoint.paths import check_path
    from counterpoint.train import Options, train

    chosen = override(find_experiment(experiment), set_ or [])
    options = Options(device, check_path(path), deterministic, max_minutes, tensorboard)
    dataset = load(chosen.dataset, root)
    with stop_on_signal() as stop, training_bar(chosen.name) as watcher:
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
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Also with temperatures that are fitted on the validation images.")
    ] = False,
    temperatures_from: Annotated[
        Path | None,
        typer.Option(
            metavar="TWIN",
            help="Recalibrate a run trained on all images with the temperatures of TWIN: the evaluated run of the same "
            "experiment on the split.",
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="OTHER",
            help="Add the differences from another evaluated run, with intervals; may be repeated. An evaluated RUN is "
            "not evaluated again, and earlier comparisons are replaced.",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="Of the network: headline (fp32, convolutions in TF32 where the GPU has it), bf16 (fastest on a GPU, "
            "slow on a CPU) or strict (fp32 throughout)."
        ),
    ] = "headline",
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Compute a finished run's error, scores and calibration, clean and under 15 corruptions, into results.json.

    The corrupted test set is the official one if it is in the data folder; otherwise it is made there first.

    An interrupted evaluation goes on where it stopped.

    Earlier temperatures and comparisons are kept while the logits are the same; what is dropped is named.
    """
    from counterpoint.evaluate import evaluate_run
    from counterpoint.inference import check_precision
    from counterpoint.runs import load_run

    try:
        results = evaluate_run(
            load_run(run),
            root,
            device=device,
            precision=check_precision(precision),
            cell_images=cell_images,
            recompute=recompute,
            recalibrate=recalibrate,
            twin=load_run(temperatures_from) if temperatures_from else None,
            against=against or (),
        )
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from there")
        raise typer.Exit(130) from None
    for part in evaluation_parts(results):
        console.print(part, highlight=False)
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
    from counterpoint.sheet import check_png
    from counterpoint.shifted import draw_image_atlas, make_shifted_set

    folder = root or data_root()
    if atlas:
        check_png(atlas)
        with count_bar("corrupting the image") as count:
            draw_image_atlas(image, dataset, atlas, seed=seed, root=folder, progress=count)
        console.print(f"atlas: {atlas}", soft_wrap=True)
        return
    if dataset is None:
        raise InputError("name a data set to corrupt (cifar10, cifar100 or digits), or draw an atlas with --atlas PNG")
    data = load(dataset, folder)
    try:
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
    except KeyboardInterrupt:
        console.print("stopped; finished corruptions are kept, and the same command goes on from there", soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"corrupted set: {made.folder} (frost from {made.source['frost']})", soft_wrap=True)


@app.command()
def report(
    runs: RunsArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default="report.FORMAT")] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="html, csv, md or json.", show_default="as the file's name ends, or html"),
    ] = None,
) -> None:
    """Write one self-contained page about evaluated runs, side by side; or the same figures as csv, md or json."""
    from counterpoint.report import write_report

    kind = format_ or _format_of(out)
    path = out or Path(f"report.{kind}")
    write_report(runs, path, kind)
    console.print(f"report: {path}", soft_wrap=True)


def _format_of(out: Path | None) -> str:
    """The format that a report's name asks for."""
    from counterpoint.report import FORMATS

    if out is None or out.is_dir():
        return "html"
    if (ending := out.suffix[1:].lower()) not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{str(out)!r} ends in none of {endings}; give such a name, or add --format")
    return ending


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table1, table2, table3 or all.", show_default=False)],
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="WORDS",
            help='Only rows with these words in their name, e.g. "cifar10 single"; a whole name is that row alone.',
        ),
    ] = None,
    schedule: Annotated[
        str, typer.Option(help="paper, short (a fifth of the epochs) or smoke (64 steps: does it run?).")
    ] = "paper",
    run: Annotated[
        bool, typer.Option("--run", help="Train and evaluate what is missing; otherwise only print.")
    ] = False,
    seeds: Annotated[str, typer.Option(help="The seeds to run, e.g. 0,1,2; every seed that was run is shown.")] = "0",
    max_minutes: Annotated[
        float | None, typer.Option(min=0.2, help="Stop with a checkpoint before this time is over.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    page: Annotated[
        Path | None, typer.Option(help="Write all tables as Markdown.", show_default="docs/reproduction.md with --run")
    ] = None,
    import_parts: Annotated[
        Path | None, typer.Option(help="First join the runs that --export-parts wrote to this folder.")
    ] = None,
    export_parts: Annotated[
        Path | None, typer.Option(help="At last write the runs with their newest checkpoints here, to be carried.")
    ] = None,
    part_mib: Annotated[int, typer.Option(min=1, help="The size of a part.")] = 14,
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Show the paper's tables with our results beside them; with --run, first run what is missing.

    Finished rows are skipped and interrupted ones go on. A row's result is kept in results/, small enough to commit.
    """
    from counterpoint.carry import export_runs, import_runs
    from counterpoint.experiments.schedules import find_schedule
    from counterpoint.reproduction import Folders, RowRun, parse_seeds, read_result, select_rows
    from counterpoint.reproduction_page import check_page, notes, terminal_tables, write_page

    if max_minutes is not None and not run:
        raise InputError("--max-minutes needs --run; without it nothing is trained")
    if run and page is None:
        page = Path("docs/reproduction.md")
    if page:
        check_page(page)
    chosen, folders = find_schedule(schedule), Folders(out, results)
    names = select_rows(table, rows or [])
    wanted = [RowRun(name, chosen, seed) for name in names for seed in parse_seeds(seeds)]
    if import_parts:
        import_runs(import_parts, out)
    if run:
        from counterpoint.console import stop_on_signal
        from counterpoint.reproduce import run_missing

        with stop_on_signal() as stop:
            run_missing(wanted, folders, root=root, device=device, max_minutes=max_minutes, should_stop=stop.is_set)
    if export_parts:
        export_runs(out, [one.place for one in wanted], export_parts, part_mib)
    if page:
        write_page(page, folders)
    for shown in terminal_tables(names, chosen, folders):
        console.print(shown)
    console.print(notes(chosen), highlight=False)
    if not run and not results.exists():
        console.print(f"no results: there is no folder {results}; --results names another", soft_wrap=True)
    if missing := sum(read_result(results, one) is None for one in wanted):
        console.print(f"{missing} of {len(wanted)} results are missing; --run runs them, or goes on with them")
    if page:
        console.print(f"written: {page}", soft_wrap=True)
    if run and stop.is_set():
        raise typer.Exit(130)


bench = typer.Typer(help="Measure this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.callback()
def _bench() -> None:
    """Measure this machine."""


@bench.command()
def step(
    experiment: Annotated[
        str, typer.Argument(help="A name that `counterpoint experiments` lists.")
    ] = "cifar10/batch-ensemble",
    set_: SetOption = None,
    repeats: Annotated[int, typer.Option(min=3, help="Steps timed of each way.")] = 40,
    slow: Annotated[
        bool, typer.Option("--slow/--no-slow", help="Also time eager PyTorch, in fp32, TF32 and bf16.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="Also write the figures to this JSON file.")] = None,
) -> None:
    """Time a training step on the GPU: eager, torch.compile and the fast path, with the same inputs in one run.

    First the paths' logits and gradients are compared with fp32's.

    The floor is computed from the network and from this GPU's rates, measured in the same run.
    """
    from dataclasses import asdict

    from counterpoint.bench import measure
    from counterpoint.config import override
    from counterpoint.environment import command_line, describe_environment
    from counterpoint.experiments import find_experiment
    from counterpoint.files import write_json
    from counterpoint.train import choose_device

    chosen = override(find_experiment(experiment), set_ or [])
    found = []
    for figure in measure(chosen, repeats=repeats, slow=slow):
        console.print(str(figure), soft_wrap=True)
        found.append(asdict(figure))
        if out:  # after each, so that none is lost
            environment = describe_environment(choose_device("cuda"))
            write_json(out, {"command": command_line(), "environment": environment, "figures": found})
