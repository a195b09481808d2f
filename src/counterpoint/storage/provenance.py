"""What a result was made with: versions, device, commit, command. Torch is imported only to describe a device."""

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import counterpoint

if TYPE_CHECKING:
    import torch

_PACKAGES = ("torch", "numpy", "scipy", "pillow", "safetensors", "triton", "timm", "torchvision", "transformers")


def describe_environment(device: "torch.device") -> dict[str, Any]:
    """Versions, device and commit, as JSON values."""
    import torch

    return {
        "counterpoint": counterpoint.__version__,
        "commit": _commit(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(terse=True),
        "versions": {"python": platform.python_version()} | _versions(),
    }


def command_line(file: Path | None = None) -> str:
    """The command as a person would type it again. Of `file`, which it may name, only the name is shown."""
    program, *arguments = sys.argv
    name = "counterpoint" if Path(program).name in ("counterpoint", "__main__.py") else Path(program).name
    return shlex.join([name, *(_without_folder(argument, file) for argument in arguments)])


def _without_folder(argument: str, file: Path | None) -> str:
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{file.name}" if file and Path(value) == file else argument


def command_name() -> str:
    """The command without its arguments, such as `counterpoint predict`: these may be thousands of files."""
    return " ".join(command_line().split()[:2])


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def _commit() -> str | None:
    """The source tree's commit, with "+" if it was changed. COUNTERPOINT_COMMIT can give it where there is no git."""
    if stated := os.environ.get("COUNTERPOINT_COMMIT"):
        return stated
    package = Path(__file__).parents[1]
    try:
        tracked = _git(package, "ls-files", "--error-unmatch", __file__)
        return _git(package, "rev-parse", "HEAD") + (
            "+" if tracked and _git(package, "status", "--porcelain", ".") else ""
        )
    except (OSError, subprocess.SubprocessError):  # no git, no repository, or no answer in time
        return None


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
