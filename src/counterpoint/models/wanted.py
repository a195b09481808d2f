"""The network that is asked for, what a run keeps about it, and how a library is asked for it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.model_names import LIBRARIES, WITH_FIELDS, library_of
from counterpoint.normalisation import NORMALISATION, Normalisation


@dataclass(frozen=True)
class Wanted:
    """A network that is asked for: its name, its options, and the classes and images it is for.

    >>> from counterpoint.models import Wanted
    >>> Wanted("resnet", {"depth": 8, "width": 4}, num_classes=10, in_channels=3).images
    '3 channels of 32×32 pixels'
    """

    name: str
    options: Mapping[str, Any]
    num_classes: int
    in_channels: int
    size: tuple[int, int] = (32, 32)
    pretrained: bool = False

    @property
    def short(self) -> str:
        """The name that a library knows it by."""
        return self.name.partition("/")[2] if library_of(self.name) else self.name

    @property
    def images(self) -> str:
        """Its images in words."""
        return (
            f"{self.in_channels} channel{'s' if self.in_channels > 1 else ''} of {self.size[0]}×{self.size[1]} pixels"
        )


def wanted_of(
    experiment: Experiment, num_classes: int, in_channels: int, size: tuple[int, int], *, pretrained: bool
) -> Wanted:
    """The network of an experiment. The options of some models are the experiment's own fields.

    >>> from counterpoint import Experiment
    >>> from counterpoint.models import wanted_of
    >>> experiment = Experiment("mine", "digits", model="resnet", width=4)
    >>> wanted_of(experiment, num_classes=10, in_channels=1, size=(32, 32), pretrained=False).options
    {'depth': 8, 'width': 4}
    """
    fields = {field: getattr(experiment, field) for field in WITH_FIELDS.get(experiment.model, ())}
    return Wanted(experiment.model, fields or experiment.model_options, num_classes, in_channels, size, pretrained)


@dataclass(frozen=True)
class ModelFacts:
    """What a run keeps about its model, so that the network can be made again from the run's files alone.

    >>> from counterpoint.models import ModelFacts
    >>> ModelFacts().normalisation.mean
    0.5
    """

    normalisation: Normalisation = NORMALISATION
    configuration: Mapping[str, Any] | None = None
    """For a model of transformers: what its configuration class needs."""


def published_normalisation(mean: Sequence[float], std: Sequence[float], channels: int) -> Normalisation:
    """A library's normalisation. Grey images get the mean of what it has for the colours."""
    if channels == 1:
        return Normalisation(sum(mean) / len(mean), sum(std) / len(std))
    normalisation = Normalisation(tuple(mean), tuple(std))
    normalisation.check_channels(channels)
    return normalisation


def library(wanted: Wanted) -> Any:
    """The library that the model is of, imported. The error for one that is missing says what to install."""
    package = LIBRARIES[str(library_of(wanted.name))]
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{wanted.name} needs {error.name}, which is not installed; pip install {error.name}"
        ) from None
    except (ImportError, RuntimeError, OSError) as error:
        # timm and transformers import torchvision, and that is made for one version of torch.
        culprit = "torchvision" if "torchvision" in str(error) else package
        raise InputError(
            f"{wanted.name} needs {package}, which cannot be imported here ({one_line(error)}); install the {culprit} "
            f"that belongs to torch {torch.__version__}"
        ) from None


@contextmanager
def making(wanted: Wanted) -> Iterator[None]:
    """Inside, whatever a library raises says that the model cannot be made with these options."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # libraries raise all kinds
        options = ", ".join(f"model_options.{key}={value}" for key, value in wanted.options.items())
        raise InputError(
            f"{wanted.name} cannot be made{f' with {options}' if options else ''}: {one_line(error)}"
        ) from error


def refuse_options(wanted: Wanted, reserved: Sequence[str]) -> None:
    """Raise for options that counterpoint sets itself, or that name files and places to load from."""
    for key in wanted.options:
        if key in reserved:
            raise InputError(f"model_options.{key} cannot be set: counterpoint decides it for {wanted.name}")


def no_such_model(wanted: Wanted, known: Sequence[str], lister: str) -> InputError:
    """The error for a model that a library does not have."""
    prefix = library_of(wanted.name)
    near = get_close_matches(wanted.short, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(repr(f'{prefix}/{name}') for name in near)}?" if near else ""
    return InputError(f"unknown model {wanted.name!r}{hint} ({lister} lists all {len(known):,})")


def one_line(error: BaseException) -> str:
    """An error's kind and the first line of its words."""
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
