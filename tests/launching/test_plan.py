"""Which runs a sweep has, what they are called, and what is refused before anything is run."""

from pathlib import Path
from typing import Any

import pytest

from counterpoint.config import override
from counterpoint.errors import InputError
from counterpoint.experiments import find_experiment
from counterpoint.launching.plan import Sweep, make_jobs, parse_varied, run_name
from counterpoint.runs.folder import open_run

OUT = Path("sweeps")


def plan(*varied: str, fixed: tuple[str, ...] = (), out: Path = OUT, **changes: Any) -> list[Any]:
    values = {"experiments": ["digits/single"], "seeds": [0], **changes}
    return make_jobs(Sweep(fixed=fixed, varied=parse_varied(varied), **values), out)


def test_every_combination_is_a_run() -> None:
    jobs = plan(
        "learning_rate=0.1",
        "policy.crop_scale=0.25,1",
        "learning_rate=0.01",
        fixed=("epochs=2",),
        experiments=["digits/single", "digits/quickstart"],
        seeds=[0, 1],
    )
    assert [job.name for job in jobs] == [
        f"digits-{name}__learning_rate={rate}__policy.crop_scale=0.25,1__seed={seed}"
        for name in ("single", "quickstart")
        for rate in ("0.1", "0.01")
        for seed in (0, 1)
    ]
    assert {job.experiment.epochs for job in jobs} == {2}
    assert jobs[2].experiment.learning_rate == 0.01
    assert jobs[2].experiment.policy.crop_scale == (0.25, 1.0)
    assert (jobs[1].seed, jobs[1].experiment.name) == (1, "digits/single")


def test_the_commands_are_what_a_person_would_type() -> None:
    (job,) = plan("epochs=2", fixed=("width=4",), seeds=[3], options=("--device", "cpu"))
    folder = "sweeps/digits-single__epochs=2__seed=3"
    settings = ("--set", "width=4", "--set", "epochs=2")
    assert job.commands == (
        ("train", "digits/single", "--out", folder, "--seed", "3", *settings, "--device", "cpu"),
        ("evaluate", folder, "--device", "cpu"),
    )
    assert job.results == Path(folder) / "results.json"
    (job,) = plan(evaluate=False)
    assert [command[0] for command in job.commands] == ["train"]
    assert job.results is None


def test_a_function_of_the_users_own_is_named_for_the_evaluation_too() -> None:
    (job,) = plan(fixed=("model=mine:make",))
    assert job.commands[1][2:] == ("--model", "mine:make")


def test_without_settings_there_is_a_run_for_each_seed() -> None:
    jobs = plan(seeds=[0, 7])
    assert [job.name for job in jobs] == ["digits-single__seed=0", "digits-single__seed=7"]
    assert jobs[0].experiment == find_experiment("digits/single")


def test_names_that_a_file_cannot_have_stay_apart() -> None:
    names = [run_name("a/b", [f"model={model}"], 0) for model in ("timm/x", "timm-x", "timm:x", "../x", "x" * 300)]
    assert len(set(names)) == len(names)
    assert names[1] == "a-b__model=timm-x__seed=0"
    assert names[0].startswith("a-b__model=timm-x~")
    for name in names:
        assert "/" not in name
        assert len(name) <= 200
    assert len(run_name("a", [f"key{i}={i}" for i in range(99)], 0)) <= 200


@pytest.mark.parametrize(
    ("varied", "fixed", "message"),
    [
        (["learning_rate"], [], "--vary learning_rate: it must be KEY=VALUE"),
        (["=1"], [], "--vary =1: it must be KEY=VALUE"),
        (["seed=1"], [], "such as --seeds 0,1,2"),
        (["epochs=1", "epochs=1"], [], "--vary epochs=1 is given twice"),
        (["learning_rate=0.1", "learning_rate=0.10"], [], "are the same run"),
        (["epochs=1"], ["epochs=2"], "epochs is given with --set and with --vary"),
        ([], ["epochs=1", "epochs=2"], "--set epochs is given twice; --vary epochs=VALUE"),
        ([], ["epochs=1,2"], "it must be a whole number; to run it with each of several values: --vary epochs=1 "),
        (["epoch=1"], [], "unknown key 'epoch'"),
        (["epochs=0"], [], "epochs is 0; it must be from 1 to 1,000,000"),
    ],
)
def test_what_makes_no_sense_is_refused(varied: list[str], fixed: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        plan(*varied, fixed=tuple(fixed))
    assert message in str(refused.value)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"notes.txt is a file, but a folder is needed there; give another --out"):
        plan(out=tmp_path / "notes.txt")


def test_runs_of_other_settings_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    experiment = override(find_experiment("digits/single"), ["epochs=2"])
    open_run(tmp_path / "digits-single__seed=0", experiment, seed=0, options={}, environment={})
    assert len(plan(out=tmp_path, fixed=("epochs=2",))) == 1
    with pytest.raises(InputError, match=r"digits-single__seed=0 holds another run \(epochs: 2 → 3\)"):
        plan(out=tmp_path, fixed=("epochs=3",))
