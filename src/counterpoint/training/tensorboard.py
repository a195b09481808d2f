"""The epochs' figures for TensorBoard, if asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path

from counterpoint.errors import InputError

_SCALARS = ("loss", "error", "learning_rate")


def open_tensorboard(folder: Path, step: int, wanted: bool) -> Callable[[Mapping[str, object]], None]:
    """A function that takes an epoch's log record; what an interrupted run wrote after `step` is hidden."""
    if not wanted:
        return lambda _: None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "--tensorboard needs the tensorboard package: pip install 'counterpoint[tensorboard]'"
        ) from None
    writer = SummaryWriter(folder / "tensorboard", purge_step=step or None)

    def write(record: Mapping[str, object]) -> None:
        for name in _SCALARS:
            writer.add_scalar(f"train/{name}", record[name], record["step"])
        writer.flush()

    return write
