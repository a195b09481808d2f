"""Networks by name: counterpoint's own, those of timm, torchvision and transformers, and functions of the user's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn

from counterpoint.model_names import is_own, library_of
from counterpoint.models import from_hf, from_timm, from_torchvision, users
from counterpoint.models.checks import check_network
from counterpoint.models.own import make_own
from counterpoint.models.wanted import ModelFacts, Wanted, wanted_of

__all__ = ["ModelFacts", "Wanted", "describe_model", "make_network", "wanted_of"]


class Library(NamedTuple):
    """How a library's models are described and made, and what to set where one does not take images of a size."""

    describe: Callable[[Wanted], ModelFacts]
    make: Callable[[Wanted, ModelFacts], nn.Module]
    size_advice: str


_LIBRARIES = {
    "timm": Library(from_timm.describe, from_timm.make, from_timm.SIZE_ADVICE),
    "torchvision": Library(from_torchvision.describe, from_torchvision.make, from_torchvision.SIZE_ADVICE),
    "hf": Library(from_hf.describe, from_hf.make, from_hf.SIZE_ADVICE),
}


def describe_model(wanted: Wanted) -> ModelFacts:
    """The facts about a model that a run keeps. A library may look them up in its registry, without a network.

    >>> from counterpoint.models import Wanted, describe_model
    >>> describe_model(Wanted("resnet", {}, num_classes=10, in_channels=3)).normalisation.std
    0.5
    """
    prefix = library_of(wanted.name)
    return _LIBRARIES[prefix].describe(wanted) if prefix else ModelFacts()


def check_model(wanted: Wanted) -> None:
    """Raise if such a network cannot be made, as far as can be told without making it. A function of your own is
    imported, and not called.
    """
    if is_own(wanted.name):
        with torch.device("meta"):  # takes no memory and little time
            make_own(wanted, torch.Generator("cpu"))
    elif library_of(wanted.name):
        describe_model(wanted)
    else:
        users.find_call(wanted)


def make_network(
    wanted: Wanted, facts: ModelFacts, generator: torch.Generator, trusted_model: str | None = None
) -> nn.Module:
    """Make a plain network. The generator draws its weights; published weights are loaded if they are wanted.

    `trusted_model` is the name of the model, if it is a function of your own. Without it the function is not imported.

    >>> import torch
    >>> from counterpoint.models import ModelFacts, Wanted, make_network
    >>> wanted = Wanted("resnet", {"depth": 8, "width": 4}, num_classes=10, in_channels=3)
    >>> make_network(wanted, ModelFacts(), torch.Generator().manual_seed(0))(torch.randn(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if is_own(wanted.name):
        return make_own(wanted, generator)
    prefix = library_of(wanted.name)
    with _seeded(generator):
        if prefix:
            network, advice = _LIBRARIES[prefix].make(wanted, facts), _LIBRARIES[prefix].size_advice
        else:
            network, advice = users.make_by_function(wanted, trusted_model), users.ADVICE
        check_network(network, wanted, advice.format(height=wanted.size[0]))
    return network


@contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """Inside, torch's global draws on a CPU depend on the generator, because networks of other libraries use only
    these.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        yield
