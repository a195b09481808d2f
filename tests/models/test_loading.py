"""A run of a library's model is loaded from its own files: no network, no hub, and not the folder it came from."""

import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor

from counterpoint.augment.standard import to_unit
from counterpoint.config import Experiment
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.nn import Ensemble
from counterpoint.normalisation import NORMALISATION
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from tests.heard import Heard
from tests.other_models import needs
from tests.small import noise, noise_data

pytestmark = pytest.mark.filterwarnings("default")
CPU = torch.device("cpu")
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def trained(folder: Path, model: str, **changes: Any) -> Path:
    experiment = Experiment("tiny", "digits", "all", model=model, num_members=2, steps=2, batch_size=4)
    data = noise_data(8, 4, size=32)
    heard = Heard()
    assert train(replace(experiment, **changes), folder, data, options=Options(device="cpu"), watcher=heard)
    return folder


@pytest.fixture
def disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can reach the network."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the network was used")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


def assert_loads_without_the_network(folder: Path) -> None:
    run = load_run(folder)
    assert run.description.normalisation != NORMALISATION
    model, step = load_model(run, CPU)
    assert step == 2
    images = noise(3, 32)
    members = fold_members(model, CPU, normalisation=run.description.normalisation)
    assert torch.from_numpy(member_logits(members, images)).allclose(slow_logits(model, images, folder), atol=1e-4)


@torch.no_grad()
def slow_logits(model: Ensemble, images: Tensor, folder: Path) -> Tensor:
    values = json.loads((folder / "run.json").read_text())["description"]["normalisation"]
    mean, std = (torch.tensor(values[key])[:, None, None] for key in ("mean", "std"))
    views = (to_unit(images) - mean) / std
    return model(views.expand(model.num_members, *views.shape))


@needs("timm", "torchvision")
@pytest.mark.usefixtures("disconnected")
def test_a_run_of_timm(tmp_path: Path) -> None:
    assert_loads_without_the_network(trained(tmp_path / "run", "timm/resnet10t"))


@needs("torchvision")
@pytest.mark.usefixtures("disconnected")
def test_a_run_of_torchvision(tmp_path: Path) -> None:
    assert_loads_without_the_network(trained(tmp_path / "run", "torchvision/mobilenet_v3_small"))


@needs("transformers")
@pytest.mark.usefixtures("disconnected")
def test_a_run_of_transformers(tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    source = tmp_path / "source"
    ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **SMALL)).save_pretrained(source)
    processor = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    (source / "preprocessor_config.json").write_text(json.dumps(processor))
    folder = trained(tmp_path / "run", f"hf/{source}", model_options={"hidden_act": "relu"})
    shutil.rmtree(source)
    assert load_run(folder).record["description"]["model_config"]["hidden_act"] == "relu"
    assert_loads_without_the_network(folder)


@needs("torchvision")
@pytest.mark.usefixtures("disconnected")
def test_published_weights_are_not_asked_for_once_there_is_a_checkpoint(tmp_path: Path) -> None:
    """As a run of pretrained weights is: they are in its checkpoint."""
    folder = trained(tmp_path / "run", "torchvision/mobilenet_v3_small")
    record = json.loads((folder / "run.json").read_text())
    record["experiment"]["pretrained"] = True
    (folder / "run.json").write_text(json.dumps(record))
    assert_loads_without_the_network(folder)
