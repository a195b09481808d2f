"""How long two commands take at the same time on this machine, and how long one after the other.

    python benchmarks/two_at_once.py                 two demos
    python benchmarks/two_at_once.py --epochs 4      two trainings of the demo's network instead, which takes less time

Each command has a folder of its own. The ratio of the two times should be near 1, and not above 1.25.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def command(folder: Path, epochs: int | None) -> list[str]:
    start = [sys.executable, "-m", "counterpoint"]
    if epochs is None:
        return [*start, "demo", "--out", str(folder)]
    return [*start, "train", "digits/quickstart", "--set", f"epochs={epochs}", "--out", str(folder), "--device", "cpu"]


def seconds(folder: Path, epochs: int | None, *, at_once: bool) -> float:
    commands = [command(folder / f"{'together' if at_once else 'alone'}-{i}", epochs) for i in range(2)]
    begin = time.perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    for one in commands:
        running.append(subprocess.Popen(one, stdout=subprocess.DEVNULL))
        if not at_once:
            running[-1].wait()
    if any(process.wait() for process in running):
        sys.exit("a command failed")
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int)
    epochs = parser.parse_args().epochs
    with tempfile.TemporaryDirectory() as folder:
        one_by_one = seconds(Path(folder), epochs, at_once=False)
        print(f"one after the other: {one_by_one:.0f} s", flush=True)
        together = seconds(Path(folder), epochs, at_once=True)
        print(f"both at once: {together:.0f} s, {together / one_by_one:.2f} times as long")


if __name__ == "__main__":
    main()
