"""Chosen before any test: Triton decides at its import whether it compiles kernels or, without a GPU, interprets them."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
