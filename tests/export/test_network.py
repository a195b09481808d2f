import torch

from counterpoint.augment.standard import to_unit
from counterpoint.evaluation.members import load_model
from counterpoint.export.network import whole_network
from counterpoint.nn.one_member import fold
from counterpoint.normalisation import Normalisation
from counterpoint.recalibration.choose import NONE
from tests.export.conftest import MakeTrained
from tests.small import noise

CPU = torch.device("cpu")


def test_it_is_the_ensemble_from_pixels_to_the_mean_probability(trained: MakeTrained) -> None:
    model, _ = load_model(trained("shared BatchNorm", "cifar10"), CPU)
    normalisation = Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))
    images_NCHW = noise(7, 32)
    mean, std = (torch.tensor(values)[:, None, None] for values in (normalisation.mean, normalisation.std))
    expected_MNK = model.predict_members((to_unit(images_NCHW) - mean) / std)
    with torch.no_grad():
        probs_NK, members_MNK = whole_network(model, normalisation, NONE)(images_NCHW.permute(0, 2, 3, 1))
    torch.testing.assert_close(members_MNK, expected_MNK, atol=1e-5, rtol=0)
    torch.testing.assert_close(probs_NK, expected_MNK.mean(0), atol=1e-5, rtol=0)


def test_weights_are_rounded_once_and_the_model_stays_as_it_was(trained: MakeTrained) -> None:
    run = trained()
    (model, _), (other, _) = load_model(run, CPU), load_model(run, CPU)
    exact = fold(other.double()).state_dict()
    found = whole_network(model, run.description.normalisation, NONE).members.state_dict()
    assert found.keys() == exact.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, exact[name].to(tensor.dtype)), name
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
