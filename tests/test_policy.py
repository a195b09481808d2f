import pytest

from counterpoint.errors import InputError
from counterpoint.policy import Adversarial, AugMix, MemberPolicy
from tests.small import ALL_AUGMENTATIONS


def test_a_policy_names_a_value_outside_its_choices() -> None:
    with pytest.raises(InputError, match="unknown augmix severity assignment 'random'"):
        AugMix(assignment="random")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown augmix mixing 'gamma'"):
        AugMix(mixing="gamma")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown adversarial space 'log'"):
        Adversarial(space="log")  # type: ignore[arg-type]


def test_a_number_that_no_float_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match=r"adversarial severity 1000.*… is not allowed; each entry must be a finite"):
        Adversarial(severity=(10**400, 0, 0, 0))


def test_consistency_and_adversarial_views_exclude_each_other() -> None:
    with pytest.raises(InputError, match=r"augmix jsd is 12.0, and there is an adversarial perturbation too"):
        MemberPolicy(augmix=AugMix(jsd=12.0), adversarial=Adversarial())
    assert MemberPolicy(augmix=AugMix(jsd=12.0)).views_per_step == 3
    assert ALL_AUGMENTATIONS.views_per_step == MemberPolicy().views_per_step == 1
