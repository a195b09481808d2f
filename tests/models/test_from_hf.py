"""Image classifiers of transformers, where it is installed, from folders: nothing is downloaded."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from counterpoint.errors import InputError
from counterpoint.models import ModelFacts, Wanted, describe_model, make_network
from counterpoint.models.from_hf import offline
from counterpoint.normalisation import NORMALISATION, Normalisation
from tests.models.conftest import MakeModel
from tests.other_models import needs

pytestmark = [needs("transformers"), pytest.mark.filterwarnings("default")]

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ViT for images of 32×32 pixels and 1000 classes, as transformers saves it."""
    from transformers import ViTConfig, ViTForImageClassification

    folder = tmp_path_factory.mktemp("hf")
    torch.manual_seed(5)
    ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, num_labels=1000, **SMALL)).save_pretrained(folder)
    processor = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "do_normalize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def changed(folder: Path, target: Path, **values: Any) -> Path:
    """A copy of the folder without weights, whose config.json is changed."""
    target.mkdir()
    config = json.loads((folder / "config.json").read_text()) | values
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_a_model_has_our_classes_and_channels(make_model: MakeModel, folder: Path) -> None:
    for channels in (1, 3):
        network = make_model(f"hf/{folder}", channels=channels, num_hidden_layers=2)
        assert network(torch.randn(2, channels, 32, 32)).shape == (2, 7)


def test_a_run_keeps_normalisation_and_configuration(folder: Path, tmp_path: Path) -> None:
    facts = describe_model(Wanted(f"hf/{folder}", {"num_hidden_layers": 2}, 7, 3))
    assert facts.normalisation == Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    kept = facts.configuration
    assert kept is not None
    assert json.loads(json.dumps(kept)) == kept
    assert (kept["model_type"], kept["num_hidden_layers"], len(kept["id2label"])) == ("vit", 2, 7)
    plain = changed(folder, tmp_path / "plain")
    assert describe_model(Wanted(f"hf/{plain}", {}, 7, 3)).normalisation == NORMALISATION
    (plain / "preprocessor_config.json").write_text('{"do_normalize": false, "image_mean": [0.1], "image_std": [1]}')
    assert describe_model(Wanted(f"hf/{plain}", {}, 7, 3)).normalisation == Normalisation(0, 1)


def test_the_network_is_made_from_the_configuration_alone(folder: Path) -> None:
    facts = describe_model(Wanted(f"hf/{folder}", {}, 7, 3))
    read_again = ModelFacts(facts.normalisation, json.loads(json.dumps(facts.configuration)))
    elsewhere = Wanted("hf/nowhere/at-all", {}, 7, 3)
    here, there = (
        make_network(wanted, kept, torch.Generator().manual_seed(0)).state_dict()
        for wanted, kept in ((Wanted(f"hf/{folder}", {}, 7, 3), facts), (elsewhere, read_again))
    )
    assert here.keys() == there.keys()
    assert all(torch.equal(here[key], there[key]) for key in here)
    with pytest.raises(InputError, match="the run does not hold the configuration of hf/nowhere/at-all"):
        make_network(elsewhere, ModelFacts(), torch.Generator())


def test_the_classes_are_those_wanted_whatever_the_configuration_says(folder: Path) -> None:
    facts = describe_model(Wanted(f"hf/{folder}", {}, 7, 3))
    network = make_network(Wanted(f"hf/{folder}", {}, 5, 3), facts, torch.Generator().manual_seed(0))
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 5)


def test_what_names_code_or_kernels_is_not_kept(folder: Path, tmp_path: Path) -> None:
    unsafe = {
        "auto_map": {"AutoModelForImageClassification": "evil--modeling.Evil"},
        "_attn_implementation": "evil/kernel",
        "attn_implementation": "evil/kernel",
        "quantization_config": {"quant_method": "evil"},
        "dtype": "bfloat16",
    }
    named = changed(folder, tmp_path / "named", **unsafe)
    facts = describe_model(Wanted(f"hf/{named}", {}, 7, 3))
    assert facts.configuration is not None
    assert not unsafe.keys() & facts.configuration.keys()
    # Nor is it believed where a run's files have it.
    tampered = ModelFacts(facts.normalisation, {**facts.configuration, **unsafe, "vision_config": unsafe})
    network: Any = make_network(Wanted(f"hf/{named}", {}, 7, 3), tampered, torch.Generator().manual_seed(0))
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    assert network.model.config._attn_implementation in ("sdpa", "eager")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hiden_size": 8}, r"unknown option of hf/.* 'hiden_size'; did you mean 'hidden_size'"),
        ({"hidden_size": "big"}, r"cannot be made with model_options.hidden_size=big: .*hidden_size"),
        ({"trust_remote_code": True}, "unknown option of hf/.* 'trust_remote_code'"),
        ({"attn_implementation": "a/b"}, "model_options.attn_implementation cannot be set: counterpoint decides it"),
        ({"num_labels": 3}, "model_options.num_labels cannot be set"),
        (
            {"image_size": 64},
            r"does not take images with 3 channels of 32×32 pixels .*; set model_options.image_size=32",
        ),
    ],
)
def test_wrong_options_are_named(make_model: MakeModel, folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(f"hf/{folder}", **options)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "bert"}, "is of the type 'bert', for which transformers itself has no image classifier"),
        (
            {"model_type": "my-own", "auto_map": {"AutoConfig": "a.B"}},
            "of the type 'my-own'.*code from elsewhere is never",
        ),
        ({"model_type": "timm_wrapper"}, "is a model of timm; name it timm/NAME"),
    ],
)
def test_models_of_other_kinds_are_refused(
    make_model: MakeModel, folder: Path, tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_model(f"hf/{changed(folder, tmp_path / 'other', **values)}")


def test_a_folder_that_is_not_there_is_named(make_model: MakeModel) -> None:
    with (
        offline(),
        pytest.raises(InputError, match=r"hf/./nowhere is neither a folder with a config.json nor a model that"),
    ):
        make_model("hf/./nowhere")


def test_published_weights_are_kept_but_for_the_head(make_model: MakeModel, folder: Path) -> None:
    from transformers import ViTForImageClassification

    theirs = ViTForImageClassification.from_pretrained(folder).state_dict()
    ours = make_model(f"hf/{folder}", pretrained=True).state_dict()
    ours = {key.removeprefix("model."): tensor for key, tensor in ours.items()}
    assert theirs.keys() == ours.keys()
    differing = {key for key in theirs if not torch.equal(theirs[key], ours[key])}
    assert differing == {"classifier.weight", "classifier.bias"}


def test_published_weights_may_have_no_head(make_model: MakeModel, folder: Path, tmp_path: Path) -> None:
    from transformers import ViTForImageClassification

    whole = ViTForImageClassification.from_pretrained(folder)
    whole.vit.save_pretrained(tmp_path / "body")
    ours = make_model(f"hf/{tmp_path / 'body'}", pretrained=True).state_dict()
    theirs = {f"model.{key}": tensor for key, tensor in whole.state_dict().items() if not key.startswith("classifier")}
    assert all(torch.equal(ours[key], tensor) for key, tensor in theirs.items())


def test_weights_that_do_not_fit_or_are_no_safetensors_are_refused(
    make_model: MakeModel, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        InputError, match=r"weights do not fit hf/.*: vit.embeddings.position_embeddings is \(1, 17, 16\)"
    ):
        make_model(f"hf/{folder}", pretrained=True, image_size=16, size=16)
    with pytest.raises(InputError, match=r"weights do not fit hf/.*: there are none for vit\..* and \d+ more; leave"):
        make_model(f"hf/{folder}", pretrained=True, num_hidden_layers=2)
    unknown = changed(folder, tmp_path / "unknown")
    weights = load_file(folder / "model.safetensors")
    save_file({f"other.{name}": weight for name, weight in weights.items()}, unknown / "model.safetensors")
    with pytest.raises(InputError, match=r"weights do not fit hf/.*: there are none for classifier.weight, vit\..*"):
        make_model(f"hf/{unknown}", pretrained=True)
    pickled = changed(folder, tmp_path / "pickled")
    torch.save({"classifier.bias": torch.zeros(1000)}, pickled / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"has no weights as safetensors that can be downloaded"):
        make_model(f"hf/{pickled}", pretrained=True)


def test_offline_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    before = constants.HF_HUB_OFFLINE
    with offline():
        assert constants.HF_HUB_OFFLINE
        assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
    assert before == constants.HF_HUB_OFFLINE
    assert (os.environ["HF_HUB_OFFLINE"], os.environ.get("TRANSFORMERS_OFFLINE")) == ("0", None)
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants")
    with offline():
        assert os.environ["HF_HUB_OFFLINE"] == "1"
