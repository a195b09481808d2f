"""Which names and options a model may have."""

from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.model_names import check_model, is_function, is_own, library_of, parse_option, wide_resnet_size


@pytest.mark.parametrize(
    ("name", "own", "library", "function"),
    [
        ("resnext29", True, None, False),
        ("vit", True, None, False),
        ("wide-resnet-28-10", True, None, False),
        ("timm/resnet18.a1_in1k", False, "timm", False),
        ("torchvision/resnet18", False, "torchvision", False),
        ("hf/google/vit-base-patch16-224", False, "hf", False),
        ("hf/./my:folder", False, "hf", False),
        ("hf//srv/my folder", False, "hf", False),
        ("mymodule:make_model", False, None, True),
        ("my_package.models:Net", False, None, True),
    ],
)
def test_what_a_name_stands_for(name: str, own: bool, library: str | None, function: bool) -> None:
    assert (is_own(name), library_of(name), is_function(name)) == (own, library, function)
    check_model(name, {}, pretrained=False)


def test_a_wide_resnets_name_has_its_sizes() -> None:
    assert wide_resnet_size("wide-resnet-28-10") == (28, 10)
    assert wide_resnet_size("wide-resnet-10-1") == (10, 1)
    assert wide_resnet_size("wide-resnet-28") is wide_resnet_size("wide-resnet-a-b") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wide-resnet-28", "unknown model 'wide-resnet-28'; did you mean 'wide-resnet-28-10'"),
        (
            "vitt",
            r"unknown model 'vitt'; did you mean 'vit'\? \(known: resnext29, resnet, vit, wide-resnet-28-10, timm/NAME",
        ),
        ("timm/", "unknown model 'timm/'; did you mean 'timm/NAME'"),
        ("tim/resnet18", r"unknown library of models 'tim'; did you mean 'timm'\? \(known: timm, torchvision, hf\)"),
        ("models.py:make", "'models.py:make' names a file; give the module's name, as in models:make"),
        ("../nets/models.py:make", r"names a file; give the module's name, as in models:make"),
        ("nets/models:make", "names a file; give the module's name, as in models:make"),
        (":make", "':make' is not MODULE:FUNCTION, as in mymodule:make_model"),
        ("mymodule:", "'mymodule:' is not MODULE:FUNCTION"),
        ("my-module:make", "'my-module:make' is not MODULE:FUNCTION"),
        ("a:b:c", "'a:b:c' is not MODULE:FUNCTION"),
        ("", "unknown model ''"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_model(name, {}, pretrained=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("none", None),
        ("True", True),
        ("false", False),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("avg", "avg"),
        ("", ""),
        ("2,2,6,2", [2, 2, 6, 2]),
        ("[7]", [7]),
        ("[0.5, 1]", [0.5, 1]),
        ("a,b", "a,b"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1,nan", "1,nan"),
    ],
)
def test_an_options_value_has_the_type_that_it_looks_like(text: str, value: Any) -> None:
    found = parse_option(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("value", [(1, 2), {"a": 1}, float("nan"), [1, object()], object()])
def test_an_option_that_json_does_not_bring_back_is_refused(value: Any) -> None:
    with pytest.raises(
        InputError, match=r"model_options\.a is .*; it must be a text, a number, true, false, none or a"
    ):
        check_model("m:f", {"a": value}, pretrained=False)
