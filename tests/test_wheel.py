"""A built wheel works outside the tree, with its templates and data files inside it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else of the project."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=TREE, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run_outside(site: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(site), "COUNTERPOINT_DATA": str(site.parent / "data")}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=site.parent, env=environment, timeout=180
    )


def test_the_wheel_is_what_is_imported(site: Path) -> None:
    where = run_outside(site, "-c", "import counterpoint; print(counterpoint.__file__)").stdout
    assert where.startswith(str(site))


def test_it_holds_no_tests_and_all_its_data(site: Path) -> None:
    names = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert {
        "counterpoint/report/formats/page.html",
        "counterpoint/report/formats/style.css",
        "counterpoint/report/sections/health.html",
        "counterpoint/corrupt/cifar_c.toml",
        "counterpoint/corrupt/imagenet_c.toml",
        "counterpoint/serving/web/page.html",
        "counterpoint/serving/web/page.css",
        "counterpoint/serving/web/page.js",
        "counterpoint/py.typed",
    } <= names
    assert not [name for name in names if "test" in name]
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]


def test_train_evaluate_and_report_from_the_wheel(site: Path) -> None:
    tiny = ["--set", "steps=2", "--set", "width=2", "--device", "cpu"]
    for arguments in (
        ["train", "digits/quickstart", "--out", "run", *tiny],
        ["evaluate", "run", "--cell-images", "5", "--device", "cpu"],
        ["report", "run"],
    ):
        done = run_outside(site, "-m", "counterpoint", *arguments)
        assert done.returncode == 0, done.stderr
    assert "digits/quickstart" in (site.parent / "report.html").read_text()
    results = json.loads((site.parent / "run" / "results.json").read_text())
    assert results["run"]["command"].startswith("counterpoint train digits/quickstart --out run")
