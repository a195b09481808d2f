"""The weights that a new run starts from: those of a finished run, except for the head if the classes differ."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from counterpoint import config
from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.model_names import WITH_FIELDS
from counterpoint.nn import Ensemble
from counterpoint.runs.checkpoints import fingerprint, finished_checkpoint
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run
from counterpoint.setting_types import written
from counterpoint.training.network import as_it_is, build_described


def build_from(
    experiment: Experiment, description: Description, seed: int, source: Run, *, trusted_model: str | None
) -> tuple[Ensemble, str]:
    """The network that the description is of, with the weights of a finished run, and what was taken in words.

    Where the classes are others, the head keeps the initial values of the seed. The weights of a single network may
    also start a batch ensemble: they go into the plain network, before members are made of it. No published weights
    are fetched. `trusted_model` is the model's name, if it is a function of the user's own.
    """
    _check_model(experiment, source)
    _check_members(experiment, source)
    checkpoint = finished_checkpoint(source)
    weights = _Weights(source, checkpoint.model_tensors, _find_head(description, source, trusted_model))
    words = f"{weights.count} tensors of {source.folder} (step {checkpoint.step:,})"
    is_plain = source.experiment.num_members is None
    give = weights.put_into_plain if is_plain else as_it_is
    model = build_described(
        experiment, description, seed, restored=True, trusted_model=trusted_model, with_weights=give
    )
    if not is_plain:
        weights.put_into(model)
    elif experiment.num_members is not None:
        words += f", from which each of the {experiment.members} members starts"
    return model, words + weights.head_in_words()


def weights_hash(source: Run) -> str:
    """A hash of a finished run's weights, the one that its logits and results are marked with."""
    return fingerprint(finished_checkpoint(source).model_tensors)


def starting_from(source: Run | None, experiment: Experiment) -> Experiment:
    """The experiment, which then names the weights that it starts from. Raise if it names others already."""
    found = None if source is None else weights_hash(source)
    if experiment.starts_from not in (None, found):
        raise InputError(
            f"starts_from is {experiment.starts_from}, and the weights to start from are {found or 'none'}; name the "
            "run with --from (start=RUN in Python) and leave starts_from to it"
        )
    return replace(experiment, starts_from=found)


@dataclass(frozen=True)
class _Weights:
    """A finished run's tensors, and the modules of the head, which are not taken."""

    source: Run
    tensors: Mapping[str, Tensor]
    head: Set[str]

    @property
    def count(self) -> int:
        """How many tensors are taken."""
        return sum(_owner(name) not in self.head for name in self.tensors)

    def put_into_plain(self, network: nn.Module) -> nn.Module:
        """A plain network, whose tensors the run names as those of an ensemble of one."""
        self.put_into(Ensemble(network))
        return network

    def put_into(self, model: Ensemble) -> None:
        """Replace all tensors but the head's. All of them must fit, because a start from half of the weights would be
        misleading.
        """
        initial = model.state_dict()
        for name in dict.fromkeys([*initial, *self.tensors]):
            there, here = (_shape(tensors.get(name)) for tensors in (self.tensors, initial))
            if _owner(name) not in self.head and there != here:
                raise InputError(
                    f"the weights of {self.source.folder} do not fit: {_short(name)} is {there} there and {here} here; "
                    "the images must have the same channels and, for some models, the same size"
                )
        taken = {name: tensor for name, tensor in self.tensors.items() if _owner(name) not in self.head}
        model.load_state_dict(initial | taken)

    def head_in_words(self) -> str:
        names = list(dict.fromkeys(_short(name) for name in sorted(self.head)))
        if not names:
            return ""
        layers = f"its last layer ({names[0]}) is" if len(names) == 1 else f"its last layers ({', '.join(names)}) are"
        return f"; {layers} new, because the classes differ"


def _find_head(description: Description, source: Run, trusted_model: str | None) -> Set[str]:
    """The modules with a tensor whose shape depends on the number of classes; none where the classes are the same.

    The names are those of the source's network, which is built for these classes and for another number of them.
    """
    before, now = source.description.classes, description.classes
    if before == now:
        return frozenset()
    others = before if len(before) != len(now) else (*now, "one more")
    first, second = (_shapes(replace(description, classes=classes), source, trusted_model) for classes in (now, others))
    return {_owner(name) for name in first.keys() | second.keys() if first.get(name) != second.get(name)}


def _shapes(description: Description, source: Run, trusted_model: str | None) -> dict[str, str]:
    """The shape of each tensor in the source's network as it is for this description."""
    model = build_described(source.experiment, description, source.seed, restored=True, trusted_model=trusted_model)
    return {name: _shape(tensor) for name, tensor in model.state_dict().items()}


def _check_model(experiment: Experiment, source: Run) -> None:
    """Raise unless the run is of the same network."""
    before, now = _network_settings(source.experiment), _network_settings(experiment)
    differing = config.differences(before, now)
    if differing:
        flat = dict(config.flatten(now))
        add = [f"{key}={written(value)}" for key, value in config.flatten(before) if flat.get(key) != value]
        raise InputError(
            f"{source.folder} is a run of another network ({'; '.join(differing)}); a new run can "
            f"start from its weights only with the same model and options{': set ' if add else ''}{' and '.join(add)}"
        )


def _network_settings(experiment: Experiment) -> dict[str, Any]:
    """What decides a plain network, beside images and classes."""
    fields = {field: getattr(experiment, field) for field in WITH_FIELDS.get(experiment.model, ())}
    return {"model": experiment.model, **fields, "model_options": experiment.model_options}


def _check_members(experiment: Experiment, source: Run) -> None:
    """Raise unless the members are of the same kind and number, or are made of a single network."""
    before = source.experiment
    if before.num_members is None and (experiment.num_members is None or experiment.ensemble == "batch"):
        return
    if (before.num_members, before.ensemble) != (experiment.num_members, experiment.ensemble):
        raise InputError(
            f"{source.folder} is {_kind(before)}, and the new run is {_kind(experiment)}; a run can "
            "start from a run of its own kind with as many members; a batch ensemble can also start "
            "from a single network (num_members=none)"
        )
    if before.batchnorm != experiment.batchnorm:
        raise InputError(
            f"{source.folder} has batchnorm {before.batchnorm}, and the new run {experiment.batchnorm}; set "
            f"batchnorm={before.batchnorm}"
        )


def _kind(experiment: Experiment) -> str:
    if experiment.num_members is None:
        return "a single network"
    members = "1 member" if experiment.num_members == 1 else f"{experiment.num_members} members"
    return f"a {experiment.ensemble} ensemble of {members}"


def _owner(name: str) -> str:
    """The module that a tensor is of."""
    return name.rpartition(".")[0]


def _short(name: str) -> str:
    """A tensor's or module's name in the plain network."""
    return re.sub(r"^network\.(members\.\d+\.)?", "", name)


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else str(tuple(tensor.shape))
