"""Jobs through submitit: what sbatch would be asked for, and a preemption in submitit's own stand-in for a cluster."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.launching import slurm
from counterpoint.launching.job import is_done
from counterpoint.launching.plan import Sweep, make_jobs
from counterpoint.launching.queue import queue_states
from counterpoint.launching.slurm import ClusterJob, Resources, submit, submit_missing
from counterpoint.launching.states import job_states
from counterpoint.records.progress import epochs_done
from counterpoint.runs.folder import load_run
from counterpoint.storage.files import read_json
from tests.launching.acting import make_job
from tests.launching.test_queue import write_script
from tests.processes_of import children

pytest.importorskip("submitit")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="submitit and Slurm are for Linux")
TINY = ("epochs=3", "width=2", "batch_size=64", "policy.augmix=none", "train_on=all")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that look like Slurm's. sbatch keeps what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("srun", "squeue", "sacct"):
        write_script(folder / name, "")
    write_script(folder / "sbatch", f'cp "$1" {tmp_path}/given.sh; echo "Submitted batch job 17"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_what_a_job_asks_the_cluster_for(tmp_path: Path, cluster: Path) -> None:
    job = make_job(tmp_path, "done")
    resources = Resources("long", gpus=2, minutes=90, sbatch={"account": "lab", "cpus-per-task": "8"})
    submit_missing([job], resources)
    asked = (tmp_path / "given.sh").read_text()
    for option in (
        "--partition=long",
        "--gpus-per-node=2",
        "--time=90",
        "--account=lab",
        "--cpus-per-task=8",
        "--requeue",
        "--signal=USR2@90",
        "--job-name=job",
    ):
        assert f"#SBATCH {option}\n" in asked
    assert read_json(job.submission) == {"id": "17"}
    (tmp_path / "given.sh").unlink()
    write_script(cluster / "squeue", "echo '17|PENDING'")
    submit_missing([job], resources)
    assert not (tmp_path / "given.sh").exists(), "it waits in the queue already"
    assert [state.kind for state in job_states([job], queue_states([job]))] == ["queued"]


def test_what_sbatch_refuses_is_told(tmp_path: Path, cluster: Path) -> None:
    write_script(cluster / "sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1")
    with pytest.raises(InputError, match="job was not submitted: sbatch: error: invalid partition"):
        submit_missing([make_job(tmp_path, "done")], Resources("nowhere", gpus=0))


@pytest.mark.usefixtures("acting")
def test_a_job_that_fails_fails_on_the_cluster_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(slurm, "_PAUSE_SECONDS", 0.0)
    try:
        with pytest.raises(RuntimeError, match="no such thing"):
            ClusterJob(make_job(tmp_path, "terminate", "wrong"))()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_preempted_job_is_requeued_and_goes_on(tmp_path: Path) -> None:
    sweep = Sweep(["digits/single"], TINY, {}, [0], evaluate=False, options=("--device", "cpu"))
    (job,) = make_jobs(sweep, tmp_path)
    (handle,) = submit([job], Resources(gpus=0), cluster="local")
    limit = time.monotonic() + 120
    while time.monotonic() < limit and not epochs_done(job.folder):
        time.sleep(0.02)
    assert [state.kind for state in job_states([job], {})] == ["running"]
    (on_node,) = children(handle._process.pid)
    os.kill(on_node, signal.SIGUSR2)
    assert handle.result() is None
    assert is_done(job)
    assert [state.kind for state in job_states([job], {})] == ["finished"]
    started = [record["step"] for record in load_run(job.folder).read_log() if record["event"] == "started"]
    assert started[0] == 0
    assert 22 <= started[1] < 66, "it went on from the checkpoint of the step at which it was asked to end"
    assert handle._process.wait() == 0
