"""Augmentation of training images, with a severity for each member.

Everything random is sampled first and applied afterwards.
"""

from counterpoint.augment.adversarial import perturb
from counterpoint.augment.augmix import apply_augmix
from counterpoint.augment.augmix_plan import AugMixPlan, concatenate, mixing_weights, sample_augmix
from counterpoint.augment.views import make_views

__all__ = ["AugMixPlan", "apply_augmix", "concatenate", "make_views", "mixing_weights", "perturb", "sample_augmix"]
