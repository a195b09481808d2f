"""A new run that starts from the weights of a finished one: what is taken, what is new, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.models import Wanted
from counterpoint.nn import Ensemble
from counterpoint.nn.resnet import ResNet
from counterpoint.normalisation import NORMALISATION
from counterpoint.policy import MemberPolicy
from counterpoint.runs.checkpoints import Checkpoint, fingerprint, save_checkpoint
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run, keep_description, open_run
from counterpoint.training.network import build_described
from counterpoint.training.starting_weights import build_from, weights_hash
from tests.other_models import declare_torchvision_operators, needs
from tests.small import TINY, noise

BATCH = replace(TINY, policy=MemberPolicy())
PER_MEMBER = replace(BATCH, batchnorm="per-member")
DEEP = replace(BATCH, ensemble="deep")
SINGLE = replace(BATCH, num_members=None)
VIT = replace(BATCH, model="vit", model_options={"patch_size": 2, "depth": 1, "width": 8, "heads": 2})
THREE = ("cat", "dog", "emu")


def described(classes: tuple[str, ...] = THREE, *, channels: int = 3, size: int = 8) -> Description:
    return Description(classes, channels, size, size, 40, 15, NORMALISATION)


def finished(folder: Path, experiment: Experiment, description: Description | None = None, step: int = 15) -> Run:
    """A run whose weights and BatchNorm statistics are those of no seed, as after a training."""
    description = description or described()
    run = open_run(folder, experiment, seed=7, options={}, environment={})
    run = keep_description(run, description)
    model = build_described(experiment, description, 7, restored=True, trusted_model=experiment.model)
    generator = torch.Generator().manual_seed(0)
    tensors = {
        f"model.{name}": tensor + 0.1 * torch.rand(tensor.shape, generator=generator)
        if tensor.is_floating_point()
        else tensor + 3
        for name, tensor in model.state_dict().items()
    }
    save_checkpoint(run.folder, Checkpoint(tensors, step, 0.0))
    return run


def weights(run: Run) -> dict[str, Tensor]:
    return load_model(run, torch.device("cpu"), run.experiment.model)[0].state_dict()


def initial(experiment: Experiment, description: Description, seed: int = 1) -> dict[str, Tensor]:
    return build_described(experiment, description, seed, restored=True, trusted_model=experiment.model).state_dict()


def start(experiment: Experiment, source: Run, description: Description | None = None) -> tuple[Ensemble, str]:
    return build_from(experiment, description or described(), 1, source, trusted_model=experiment.model)


def split_head(tensors: dict[str, Tensor], *layers: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of the layers, and all others."""
    head = {name: tensor for name, tensor in tensors.items() if name.rpartition(".")[0].endswith(layers)}
    return head, {name: tensor for name, tensor in tensors.items() if name not in head}


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "experiment", [SINGLE, BATCH, PER_MEMBER, DEEP, VIT], ids=["single", "batch", "per-member", "deep", "vit"]
)
def test_with_the_same_classes_every_tensor_is_taken(tmp_path: Path, experiment: Experiment) -> None:
    """BatchNorm's statistics too; only the seed, the policy and the schedule are the new run's own."""
    source = finished(tmp_path / "run", experiment)
    model, words = start(replace(experiment, learning_rate=0.01, name="new"), source)
    assert_equal(model.state_dict(), weights(source))
    assert words == f"{len(weights(source))} tensors of {source.folder} (step 15)"


@pytest.mark.parametrize("classes", [("cat", "dog", "yak"), ("dog", "cat", "emu"), ("cat", "dog"), tuple("abcdefg")])
@pytest.mark.parametrize("experiment", [SINGLE, BATCH, PER_MEMBER, DEEP], ids=["single", "batch", "per-member", "deep"])
def test_with_other_classes_the_head_is_the_initial_one(
    tmp_path: Path, experiment: Experiment, classes: tuple[str, ...]
) -> None:
    source = finished(tmp_path / "run", experiment)
    model, words = start(experiment, source, described(classes))
    head, body = split_head(model.state_dict(), "classifier")
    initial_head, _ = split_head(initial(experiment, described(classes)), "classifier")
    _, source_body = split_head(weights(source), "classifier")
    assert head
    assert_equal(head, initial_head)
    assert_equal(body, source_body)
    taken = f"{len(body)} tensors of {source.folder} (step 15)"
    assert words == f"{taken}; its last layer (classifier) is new, because the classes differ"


@torch.no_grad()
def logits(model: Ensemble) -> Tensor:
    images = noise(6) / 127.5 - 1
    return model.eval()(images.expand(model.num_members, *images.shape))


@pytest.mark.parametrize("batchnorm", ["shared", "per-member"])
@pytest.mark.parametrize("model", [SINGLE, replace(SINGLE, model=VIT.model, model_options=VIT.model_options)])
def test_members_start_from_a_single_network(tmp_path: Path, model: Experiment, batchnorm: Any) -> None:
    source = finished(tmp_path / "run", model)
    expected = logits(load_model(source, torch.device("cpu"))[0])
    experiment = replace(model, num_members=3, batchnorm=batchnorm, init_std=0.0)
    exact, words = start(experiment, source)
    torch.testing.assert_close(logits(exact), expected.expand(3, -1, -1), rtol=1e-6, atol=1e-6)
    near, far = (logits(start(replace(experiment, init_std=std), source)[0]) for std in (1e-3, 0.5))
    spread = float(expected.std())
    assert 0 < float((near - expected).abs().max()) < 0.1 * spread < float((far - expected).abs().max())
    assert words.startswith(f"{len(weights(source))} tensors of {source.folder} (step 15), from which each of the 3")


def test_members_of_a_single_network_have_the_factors_and_the_head_of_their_seed(tmp_path: Path) -> None:
    source = finished(tmp_path / "run", SINGLE)
    four = described(tuple("abcd"))
    found = start(BATCH, source, four)[0].state_dict()
    expected = initial(BATCH, four)
    factors = {name for name in expected if name.endswith((".r", ".s")) or name.startswith("network.classifier.")}
    assert len(factors) > 4
    assert all(torch.equal(found[name], expected[name]) for name in factors)
    source_body = split_head(weights(source), "classifier")[1]
    assert all(torch.equal(found[name], tensor) for name, tensor in source_body.items())
    assert found.keys() == factors | source_body.keys()


@pytest.mark.parametrize(
    ("source", "experiment", "message"),
    [
        (
            BATCH,
            replace(BATCH, width=8),
            r"another network \(width: 4 → 8\); a new run can .* same model and options: set width=4$",
        ),
        (
            BATCH,
            replace(BATCH, model="wide-resnet-10-1"),
            r"\(model: resnet → wide-resnet-10-1; depth: 8 → .*: set model=resnet and depth=8 and width=",
        ),
        (
            VIT,
            replace(VIT, model_options={**VIT.model_options, "depth": 2}),
            r"another network \(model_options.depth: 1 → 2\).*: set model_options.depth=1$",
        ),
        (
            BATCH,
            SINGLE,
            "run is a batch ensemble of 2 members, and the new run is a single network; a run can start from",
        ),
        (BATCH, replace(BATCH, num_members=3), "of 2 members, and the new run is a batch ensemble of 3 members"),
        (BATCH, DEEP, "is a batch ensemble of 2 members, and the new run is a deep ensemble of 2 members"),
        (DEEP, BATCH, "is a deep ensemble of 2 members, and the new run is a batch ensemble of 2 members"),
        (
            SINGLE,
            DEEP,
            r"a single network, and the new run is a deep .* a batch ensemble can also start from a single network",
        ),
        (BATCH, PER_MEMBER, "has batchnorm shared, and the new run per-member; set batchnorm=shared"),
    ],
)
def test_weights_of_another_network_are_refused(
    tmp_path: Path, source: Experiment, experiment: Experiment, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        start(experiment, finished(tmp_path / "run", source))


def test_settings_of_other_networks_do_not_matter(tmp_path: Path) -> None:
    """A ViT has no use for `cardinality`, which is ResNeXt's."""
    source = finished(tmp_path / "run", replace(VIT, cardinality=8))
    assert_equal(start(VIT, source)[0].state_dict(), weights(source))


@pytest.mark.parametrize("classes", [THREE, tuple("ab")])
@pytest.mark.parametrize("experiment", [SINGLE, BATCH])
def test_images_with_other_channels_are_refused(
    tmp_path: Path, experiment: Experiment, classes: tuple[str, ...]
) -> None:
    source = finished(tmp_path / "run", experiment)
    with pytest.raises(
        InputError, match=r"run do not fit: stem.0.weight is \(4, 3, 3, 3\) there and \(4, 1, 3, 3\) here; the images"
    ):
        start(experiment, source, described(classes, channels=1))


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    source = finished(tmp_path / "run", BATCH, step=14)
    for use in (lambda: start(BATCH, source), lambda: weights_hash(source)):
        with pytest.raises(InputError, match=r"run is not finished: 14 of 15 steps are done; continue it with"):
            use()


def test_the_hash_is_that_of_the_loaded_network(tmp_path: Path) -> None:
    source = finished(tmp_path / "run", BATCH)
    assert weights_hash(source) == fingerprint(weights(source))


USERS = """
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes, in_channels, per_pixel=False):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(in_channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.pool = nn.Flatten() if per_pixel else nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.first = nn.LazyLinear(5)
        self.between = nn.Linear(5, num_classes)
        self.last = nn.Linear(num_classes, num_classes)

    def forward(self, images):
        return self.last(self.between(self.first(self.pool(self.body(images)))))

make_model = Net
"""


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    (tmp_path / "netmodule.py").write_text(USERS)
    monkeypatch.syspath_prepend(tmp_path)
    return replace(BATCH, model="netmodule:make_model")


def test_every_layer_that_depends_on_the_classes_is_new(tmp_path: Path, users: Experiment) -> None:
    source = finished(tmp_path / "run", users)
    four = described(tuple("abcd"))
    model, words = start(users, source, four)
    head, body = split_head(model.state_dict(), ".between", ".last")
    assert_equal(head, split_head(initial(users, four), ".between", ".last")[0])
    assert_equal(body, split_head(weights(source), ".between", ".last")[1])
    assert "; its last layers (between, last) are new, because the classes differ" in words


def test_a_function_needs_the_users_word(tmp_path: Path, users: Experiment) -> None:
    source = finished(tmp_path / "run", users)
    with pytest.raises(InputError, match="is a function that is imported only if you name it yourself"):
        build_from(users, described(), 1, source, trusted_model=None)


def test_a_network_that_depends_on_the_size_of_images_is_refused(tmp_path: Path, users: Experiment) -> None:
    experiment = replace(users, model_options={"per_pixel": True})
    source = finished(tmp_path / "run", experiment)
    with pytest.raises(InputError, match=r"first.weight is \(5, 144\) there and \(5, 64\) here; .* the same size"):
        start(experiment, source, described(size=6))


def test_no_published_weights_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def make(wanted: Wanted, *_: Any) -> nn.Module:
        asked.append(wanted.pretrained)
        return ResNet(wanted.num_classes, depth=8, width=4)

    monkeypatch.setattr("counterpoint.training.network.make_network", make)
    experiment = replace(BATCH, model="timm/some", pretrained=True)
    start(experiment, finished(tmp_path / "run", experiment), described(tuple("abcd")))
    assert len(asked) > 1
    assert not any(asked)


@needs("transformers")
@pytest.mark.filterwarnings("default")
def test_a_model_of_transformers_starts_with_other_classes(tmp_path: Path) -> None:
    """Its run's configuration has a number of classes too, which must not get in the way."""
    declare_torchvision_operators()
    from transformers import ViTConfig

    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    vit = ViTConfig(image_size=8, patch_size=4, num_labels=3, **small).to_dict()
    vit["model_type"] = "vit"
    experiment = replace(BATCH, model="hf/some/vit")
    source = finished(tmp_path / "run", experiment, replace(described(), model_config=vit))
    for classes in (tuple("abc"), tuple("abcde")):
        wanted = replace(described(classes), model_config=vit)
        found = split_head(start(experiment, source, wanted)[0].state_dict(), ".classifier")
        assert_equal(found[0], split_head(initial(experiment, wanted), ".classifier")[0])
        assert_equal(found[1], split_head(weights(source), ".classifier")[1])
