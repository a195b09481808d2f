"""All models of the matrix: at most two of a family."""

from collections import Counter

from conversion import models_audio, models_text, models_timm, models_torchvision

CASES = [*models_torchvision.CASES, *models_timm.CASES, *models_text.CASES, *models_audio.CASES]

if crowded := [family for family, count in Counter(case.family for case in CASES).items() if count > 2]:
    raise ValueError(f"more than two models of a family: {', '.join(crowded)}")
