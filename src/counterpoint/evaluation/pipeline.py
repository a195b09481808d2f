"""Evaluate a finished run from start to end: corrupted images, logits, figures."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from counterpoint.data import data_root
from counterpoint.devices import Precision, choose_device
from counterpoint.errors import StoppedError
from counterpoint.evaluation.image_groups import ImageGroup, check_counts, clean_groups, images_to_corrupt, suite_group
from counterpoint.evaluation.inference import collect_logits, keep_spent, spent_before
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.members import check_trusted
from counterpoint.evaluation.own.groups import check_own, own_groups
from counterpoint.evaluation.own.reading import Reader
from counterpoint.evaluation.results import write_results
from counterpoint.evaluation.suites import CORRUPTED, SUITES, Suite, corrupted_set, find_suites
from counterpoint.parallel.group import first_then_others
from counterpoint.parallel.world import ALONE, World
from counterpoint.records.files import RESULTS, read_results, stale_notes
from counterpoint.records.results import Results
from counterpoint.runs.checkpoints import finished_checkpoint
from counterpoint.runs.folder import Run, load_run
from counterpoint.runs.imported import AnyRun, load_any_run
from counterpoint.storage.locks import locked
from counterpoint.storage.provenance import describe_environment
from counterpoint.time_limit import TimeLimit
from counterpoint.training.network import describe_run
from counterpoint.training.run_images import parts_of_run
from counterpoint.watching import SILENT, Watcher


def evaluate_run(
    run: Run | Path | str,
    root: Path | str | None = None,
    *,
    source: Path | str | None = None,
    suites: Sequence[Suite | str] = (CORRUPTED,),
    shifts: Mapping[str, Path | str] | None = None,
    outside: Mapping[str, Path | str] | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    clean_images: int | None = None,
    cell_images: int | None = None,
    precision: Precision = "headline",
    trusted_model: str | None = None,
    max_minutes: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    watcher: Watcher = SILENT,
    world: World = ALONE,
) -> Results:
    """Evaluate `run` on the clean images and on each of the suites, and write results.json and scores.npz.

    `run` is a run, or its folder. `suites` are "corrupted" and "validation-extra", or one of them, or none. `shifts`
    are your own shifted images: for each name a folder, a .csv or an .npz file (docs/images.md). `outside` are images
    of none of the classes: for each name a folder of pictures at any depth, or an .npz file. With `skip_bad`, files
    that are not readable images are left out of both. Sets of earlier evaluations stay in the results, as long as the
    network and its precision are the same. `source` is the place of your own images, if they were moved.
    `trusted_model` is the name of the model, if it is a function of your own. Without it the function is not imported,
    because a name in the run's files is not enough.

    `clean_images` and `cell_images` are how many images of the clean set and of each cell are used, from the first on.
    Without them all are used, and only those that are used are corrupted. Of your own images, which lie in the order of
    their classes, `clean_images` must not be fewer than there are.

    With `max_minutes` the evaluation begins no cell that would probably end later. `should_stop` ends it after the cell
    in progress. Both raise `counterpoint.errors.StoppedError`, and the same call goes on from the cells that are done.

    To evaluate in several processes, call this in each of them with its own `world` (docs/parallel.md).

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load
    >>> from counterpoint.evaluation.pipeline import evaluate_run
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> results = evaluate_run("runs/mine", suites=(), clean_images=50, device="cpu")
    >>> 0 <= results.clean.ensemble.ece_width15 <= 1
    True
    """
    started, watcher = time.monotonic(), watcher if world.is_first else SILENT
    root, source = Path(root or data_root()), Path(source) if source else None
    limit, held = TimeLimit(max_minutes, started), ExitStack()

    def is_over() -> bool:
        return should_stop() or limit.is_near()

    def prepare() -> tuple[torch.device, Run, list[ImageGroup]]:
        loaded = load_run(run)
        check_trusted(loaded, trusted_model)
        check_counts(clean_images=clean_images, cell_images=cell_images)
        wanted = find_suites(suites)
        check_own(shifts, outside, loaded.experiment.dataset)
        where = choose_device(device, world)
        parts = parts_of_run(loaded, root, source, watcher)
        described = describe_run(loaded, parts)
        finished_checkpoint(described)
        # Whatever can be refused is refused before corrupted images are made.
        groups = clean_groups(described, parts, root, clean_images)
        sources = [(suite, images_to_corrupt(described, parts, suite)) for suite in wanted]
        if shifts or outside:
            reader = Reader.of(described, parts, root, skip_bad=skip_bad, watcher=watcher)
            groups += own_groups(shifts or {}, outside or {}, reader)
        if world.is_first:  # with another precision, a second evaluation would mix its logits with these
            busy = f"another process is training or evaluating in {described.folder}; wait for it, or end it first"
            held.enter_context(locked(described.folder, busy))
        for suite, images in sources:
            corrupted = corrupted_set(parts, root, suite, images, watcher, is_over, count=cell_images)
            groups.append(suite_group(corrupted, cell_images))
        return where, described, groups

    with held:
        where, run, groups = first_then_others(world, prepare)

        def conclude() -> Results:
            if not world.is_first:
                return read_results(run.folder / RESULTS)
            if is_over():
                raise StoppedError
            results = _figures(run, where, started - spent_before(run), watcher)
            keep_spent(run, None)
            return results

        try:
            collect_logits(
                run,
                groups,
                device=where,
                precision=precision,
                trusted_model=trusted_model,
                should_stop=is_over,
                watcher=watcher,
                world=world,
            )
            return first_then_others(world, conclude)
        except StoppedError:
            if world.is_first:
                keep_spent(run, spent_before(run) + time.monotonic() - started)
            raise


def recompute_results(run: AnyRun | Path | str, watcher: Watcher = SILENT) -> Results:
    """Compute the figures again from the saved logits. It needs neither the network nor the images.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.evaluation.pipeline import recompute_results
    >>> labels = np.arange(40) % 2
    >>> first = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> recompute_results("runs/theirs").clean == first.clean
    True
    """
    return _figures(load_any_run(run), choose_device("cpu"), time.monotonic(), watcher)


def _figures(run: AnyRun, device: torch.device, started: float, watcher: Watcher) -> Results:
    """Compute the figures from the logits in the folder. The watcher hears what does not count."""
    results = write_results(run, environment=describe_environment(device), started=started)
    for name, missing in read_about(run).missing_files.items():
        sets = (f" --sets {name}" if name in SUITES else f" --shift {name}=PATH") if isinstance(run, Run) else ""
        go_on = f"`{run.evaluate_command}{sets}` makes them"
        watcher.noted(f"{name} is left out: {missing} of its files are missing; {go_on}")
    for note in stale_notes(run.folder, results):
        watcher.noted(note)
    return results
