"""MODULE:FUNCTION, a function of the user's own that makes the network.

It is imported only if the user named it in this call or command. A name in a run's files is never enough.
"""

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from counterpoint.errors import InputError, unknown
from counterpoint.models.wanted import Wanted, refuse_options

ADVICE = "the function is called with num_classes and in_channels and must return a network for such images"


def make_by_function(wanted: Wanted, trusted_model: str | None) -> nn.Module:
    """What the user's function returns. Nothing is imported unless `trusted_model` is the function's name."""
    if trusted_model != wanted.name:
        raise InputError(
            f"{wanted.name} is a function that is imported only if you name it yourself, with --model {wanted.name} "
            f"or trusted_model={wanted.name!r} in Python"
        )
    network = find_call(wanted)()
    if not isinstance(network, nn.Module):
        raise InputError(f"{wanted.name} returned {type(network).__name__}; it must return a torch.nn.Module")
    return network


def find_call(wanted: Wanted) -> Callable[[], Any]:
    """The call that makes the network. Its function is imported, and takes such arguments."""
    refuse_options(wanted, ("num_classes", "in_channels"))
    function = _find(wanted.name)
    arguments = {"num_classes": wanted.num_classes, "in_channels": wanted.in_channels, **wanted.options}
    _check_call(function, wanted.name, arguments)
    return partial(function, **arguments)


def _find(name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        raise InputError(
            f"the model {name} needs a module {error.name!r}, and there is none in this folder or among the packages"
        ) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        functions = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise unknown(f"function of {module_name} ({module.__file__})", function_name, functions)
    return function


def _check_call(function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> None:
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        call = ", ".join(f"{key}=…" for key in arguments)
        raise InputError(f"{name} does not take the call {name.partition(':')[2]}({call}): {error}") from None
    except ValueError:  # some callables have no signature; the call itself will tell
        return
