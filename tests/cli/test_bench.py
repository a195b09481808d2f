import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from counterpoint.cli.bench import step
from counterpoint.errors import InputError
from counterpoint.training import bench
from counterpoint.training.bench import Difference, Timing


def test_each_figure_is_printed_and_kept_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What was measured before a crash is in the file."""

    def crash(*_: object, **__: object) -> Iterator[Timing]:
        yield Timing("fast", 17.66, 28_996.1, 0.66, 7.54)
        raise InputError("out of memory")

    monkeypatch.setattr(bench, "differences", lambda _: iter([Difference("fast", 0.007, 0.12)]))
    monkeypatch.setattr(bench, "time_steps", crash)
    monkeypatch.setattr("counterpoint.devices.choose_device", lambda _: torch.device("cpu"))
    out = tmp_path / "step.json"
    with pytest.raises(InputError, match="out of memory"):
        step("cifar10/single", None, 40, True, out)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "fast against fp32: logits 7.0e-03, gradients 1.2e-01 (relative)"
    assert printed[1].split() == "fast 17.66 ms 28,996 member-images/s 66% of the floor 7.54 GB".split()
    kept = json.loads(out.read_text())
    assert [figure.get("milliseconds") for figure in kept["figures"]] == [None, 17.66]
    assert kept.keys() == {"command", "environment", "figures"}
