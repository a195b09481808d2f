"""Models of other libraries are exported too, and a model hub's own library reads the card."""

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint.config import Experiment
from counterpoint.export import export_run
from counterpoint.export.card import model_card
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from tests.export.made_card import CHOSEN, OF_THRESHOLD, made_facts
from tests.other_models import needs
from tests.small import noise_data

pytestmark = [pytest.mark.filterwarnings("default"), needs("onnx", "onnxruntime", "onnxscript")]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def assert_exported(folder: Path, model: str, **changes: Any) -> str:
    """The card's words for the network."""
    experiment = Experiment("tiny", "digits", "all", model=model, num_members=2, steps=2, batch_size=4, **changes)
    assert train(experiment, folder / "run", noise_data(8, 4, size=32), options=Options(device="cpu"))
    for name in ("model.onnx", "model.pt2"):
        written = export_run(load_run(folder / "run"), folder / name)
        assert written.agreement.difference < 1e-4
        assert str(folder).encode() not in written.path.read_bytes()
    card = written.card.read_text(encoding="utf-8")
    assert str(folder) not in card
    return card.partition("- Network: ")[2].partition("\n")[0]


@needs("timm", "torchvision")
def test_a_model_of_timm_with_batchnorm(tmp_path: Path) -> None:
    assert (
        assert_exported(tmp_path, "timm/resnet10t")
        == "timm/resnet10t, an ensemble of 2 members that share their weights (BatchEnsemble)"
    )


@needs("timm", "torchvision")
def test_a_model_of_timm_with_attention(tmp_path: Path) -> None:
    options = {"img_size": 32, "patch_size": 8, "depth": 2}
    assert "patch16" in assert_exported(tmp_path, "timm/vit_tiny_patch16_224", model_options=options)


@needs("transformers")
def test_a_model_of_transformers_from_a_folder(tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    source = tmp_path / "source"
    ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **SMALL)).save_pretrained(source)
    (source / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4] * 3})
    )
    assert assert_exported(tmp_path, f"hf/{source}").startswith("an image classifier of transformers, an ensemble")


@needs("huggingface_hub")
def test_a_hub_reads_the_card() -> None:
    from huggingface_hub import ModelCard

    data = ModelCard(model_card(made_facts(CHOSEN))).data
    assert data.model_name == "digits/quickstart"
    assert (data.license, data.library_name, data.pipeline_tag) == ("unknown", "onnx", "image-classification")
    assert data.tags == ["counterpoint", "onnx", "calibration", "uncertainty", "ensemble"]
    found = {(one.dataset_type, one.metric_type): one.metric_value for one in data.eval_results}
    assert found == {
        ("digits", "accuracy"): 0.75,
        ("digits", "ece"): 0.05,
        ("digits", "nll"): 0.7,
        ("digits-c", "accuracy"): 0.75,
        ("digits-c", "ece"): 0.05,
        ("digits-c", "nll"): 0.7,
    }
    assert {one.dataset_split for one in data.eval_results} == {"validation", "test"}
    assert ModelCard(model_card(made_facts(OF_THRESHOLD))).data.eval_results is None
