import pytest

from counterpoint.errors import InputError
from counterpoint.policy import Adversarial, AugMix, MemberPolicy
from tests.small import ALL_AUGMENTATIONS


def test_a_policy_names_a_value_outside_its_choices() -> None:
    with pytest.raises(InputError, match="assignment=random: it must be one of diverse, shuffled"):
        AugMix(assignment="random")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mixing=gamma: it must be one of bernoulli, beta"):
        AugMix(mixing="gamma")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="space=log: it must be one of network, pixel"):
        Adversarial(space="log")  # type: ignore[arg-type]


def test_a_number_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match="adversarial severity inf is not allowed; each entry must be a finite"):
        Adversarial(severity=(10**400, 0, 0, 0))


def test_consistency_and_adversarial_views_exclude_each_other() -> None:
    with pytest.raises(InputError, match=r"augmix jsd is 12.0, and there is an adversarial perturbation too"):
        MemberPolicy(augmix=AugMix(jsd=12.0), adversarial=Adversarial())
    assert MemberPolicy(augmix=AugMix(jsd=12.0)).views_per_step == 3
    assert ALL_AUGMENTATIONS.views_per_step == MemberPolicy().views_per_step == 1
