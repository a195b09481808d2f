"""Chosen before any test: Triton decides at its import to compile its kernels or, without a GPU, to interpret them."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

pytest_plugins = [
    "tests.chromium",
    "tests.made_images",
    "tests.made_rows",
    "tests.made_runs",
    "tests.real_data",
    "tests.trained_runs",
]
