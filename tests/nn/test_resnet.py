import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, resnet


def test_a_generator_fixes_the_weights() -> None:
    first, again, reseeded = (resnet(3, 2, generator=torch.Generator().manual_seed(s)).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["network.stem.0.r"], reseeded["network.stem.0.r"])


@pytest.mark.parametrize("members", [None, 2])
def test_small_resnet_runs_on_grey_images_of_any_size(members: int | None) -> None:
    network = resnet(7, members, depth=14, width=4, in_channels=1)
    model = network if isinstance(network, Ensemble) else Ensemble(network)
    assert model(torch.randn(members or 1, 3, 1, 20, 28)).shape == (members or 1, 3, 7)
    with pytest.raises(InputError, match="depth is 9"):
        resnet(7, depth=9)
