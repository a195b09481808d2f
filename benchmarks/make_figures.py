"""Make the pictures that README and docs show.

    python benchmarks/make_figures.py
    python benchmarks/make_figures.py views noise-floor

Without names it makes all of them. Pictures of a run are of the demo's: `counterpoint demo` is run first if the folder
`--demo` has no report. Every draw has a seed. A picture whose CIFAR-10 or Chromium is missing stays as it is, and the
command says so.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from figures.averaged import average, cifar_members
from figures.by_corruption import ensembles, seeds
from figures.drawn import batch_ensemble, stochastic_depth
from figures.noise import noise_floor
from figures.screens import NoBrowserError, shoot_report, shoot_serve
from figures.seen import adversarial, severities, views
from figures.sheets import atlas, photograph_atlas
from figures.sources import Sources
from figures.svg import Drawing

from counterpoint.errors import InputError

ROOT = Path(__file__).parents[1]
DRAWINGS: dict[str, Callable[[Sources], Drawing]] = {
    "views": views,
    "severities": severities,
    "batch-ensemble": batch_ensemble,
    "average": average,
    "cifar-members": cifar_members,
    "stochastic-depth": stochastic_depth,
    "adversarial": adversarial,
    "noise-floor": noise_floor,
    "seeds": seeds,
    "ensembles": ensembles,
}
PICTURES: dict[str, Callable[[Sources, Path], list[Path]]] = {
    "atlas": atlas,
    "atlas-photograph": photograph_atlas,
    "report": shoot_report,
    "serve": shoot_serve,
}


def make(name: str, sources: Sources, out: Path) -> list[Path]:
    """The files of one picture."""
    if name in PICTURES:
        return PICTURES[name](sources, out)
    path = out / f"{name}.svg"
    DRAWINGS[name](sources).write(path)
    return [path]


def run_demo(folder: Path) -> None:
    if not (folder / "report.html").exists():
        subprocess.run([sys.executable, "-m", "counterpoint", "demo", "--out", str(folder)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pictures that README and docs show.")
    parser.add_argument("names", nargs="*", choices=[[], *DRAWINGS, *PICTURES], help="only these (default: all)")
    parser.add_argument("--demo", type=Path, default=ROOT / "demo", help="the folder of `counterpoint demo`")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", help="where the pictures go")
    arguments = parser.parse_args()
    run_demo(arguments.demo)
    arguments.out.mkdir(parents=True, exist_ok=True)
    sources = Sources(arguments.demo, ROOT / "results")
    for name in arguments.names or [*DRAWINGS, *PICTURES]:
        try:
            for path in make(name, sources, arguments.out):
                print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)
        except (InputError, NoBrowserError) as problem:
            print(f"{name} stays as it is: {problem}", flush=True)


if __name__ == "__main__":
    main()
