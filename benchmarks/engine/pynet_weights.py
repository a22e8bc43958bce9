"""Trained weights of PyNET, for what seeded ones cannot show: how much of an image rounding costs.

    python -m benchmarks.engine.pynet_weights -o weights.npz [--steps 800]

All levels are trained together with Adam, on pictures that are made up (`pictures.py`). That is a small camera
pipeline, not the authors'. 800 steps take a minute on an H100. `benchmarks.engine.pynet --weights` reads it. Needs
NumPy, pydantic and PyTorch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as functional

from benchmarks.command_line import run_command
from kernels.frontend.networks.pynet import pynet
from kernels.ir.graph import Array

from .pictures import mosaic, pictures
from .pynet import Tensors, run_torch, torch_constants

LEARNING_RATE = 5e-4
TOLD = 50
"""Steps between two lines."""


def train(steps: int, size: int, batch: int, random: torch.Generator) -> dict[str, Array]:
    """The weights by name, from those of seed 1."""
    graph = pynet(1, batch, size=(size, size))
    weights = torch_constants(graph, str(random.device), torch.float32)
    optimiser = torch.optim.Adam([weight.requires_grad_() for weight in weights.values()])
    began = time.monotonic()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * (1 - 0.9 * step / steps)
        wanted = pictures(batch, 2 * size, 2 * size, random)
        losses = _losses(run_torch(graph, weights, mosaic(wanted, random)), wanted)
        optimiser.zero_grad()
        torch.stack(losses).sum().backward()
        optimiser.step()
        if step % TOLD == 0 or step == steps - 1:
            decibels = -10 * torch.log10(losses[0].detach()).item()
            print(f"step {step}, {time.monotonic() - began:.1f} s: {decibels:.1f} dB to the picture", flush=True)
    return {name: weight.detach().cpu().numpy() for name, weight in weights.items()}


def _losses(images: Tensors, wanted: torch.Tensor) -> list[torch.Tensor]:
    """Mean squared errors, of the largest image first."""
    largest = sorted(images.values(), key=lambda image: -image.shape[-1])
    return [
        functional.mse_loss(image, functional.avg_pool2d(wanted, wanted.shape[-1] // image.shape[-1]))
        for image in largest
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the weights, .npz")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--size", type=int, default=64, help="rows and columns of a plane")
    parser.add_argument("--batch", type=int, default=12)
    options = parser.parse_args(argv)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    random = torch.Generator("cuda" if torch.cuda.is_available() else "cpu").manual_seed(1)
    np.savez(options.out, **train(options.steps, options.size, options.batch, random))


if __name__ == "__main__":
    run_command(main)
