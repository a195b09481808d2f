"""The epochs' figures for TensorBoard, if asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from counterpoint.errors import InputError

_SCALARS = ("loss", "error", "learning_rate")
_HEALTH = ("below_eps", "dead_scales", "spread_r", "spread_s")


def open_tensorboard(folder: Path, step: int, wanted: bool) -> Callable[[Mapping[str, Any]], None]:
    """A function that writes an epoch's log record for TensorBoard, if that is `wanted`.

    What an interrupted run wrote after `step` is hidden.
    """
    if not wanted:
        return lambda _: None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "--tensorboard needs the tensorboard package: pip install 'counterpoint[tensorboard]'"
        ) from None
    writer = SummaryWriter(folder / "tensorboard", purge_step=step or None)

    def write(record: Mapping[str, Any]) -> None:
        for name in _SCALARS:
            writer.add_scalar(f"train/{name}", record[name], record["step"])
        for name, value in record.get("validation", {}).items():
            writer.add_scalar(f"validation/{name}", value, record["step"])
        for name in _HEALTH:
            if (value := record["health"][name]) is not None:  # a plain network has no r and s
                writer.add_scalar(f"health/{name}", value, record["step"])
        writer.flush()

    return write
