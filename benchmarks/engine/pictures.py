"""Pictures that are made up, and what a camera records of them.

Discs of any colour before each other ("dead leaves"), whose edges are distributed as those of photographs; seen through
a mosaic of colour filters, darker and noisy.
"""

from __future__ import annotations

import torch
import torch.nn.functional as functional

DISCS = 40
NOISE = 0.01
COLOURS = ((0.7, 0.2, 0.1), (0.15, 0.7, 0.15), (0.05, 0.3, 0.65))
"""The camera's red, green and blue, as shares of a picture's."""


def pictures(n: int, rows: int, columns: int, random: torch.Generator) -> torch.Tensor:
    """(n, 3, rows, columns), values from 0 to 1, a little blurred."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand((n, *shape), generator=random, device=random.device)

    y, x = (torch.linspace(0, size / rows, size, device=random.device) for size in (rows, columns))
    found = draw(3, 1, 1).expand(n, 3, rows, columns)
    for _ in range(DISCS):
        left, top, radius = draw(1, 1, 1) * columns / rows, draw(1, 1, 1), 0.03 / (0.08 + draw(1, 1, 1))
        colour, slope = draw(3, 1, 1), 0.6 * (draw(1, 1, 1) - 0.5) / radius
        is_inside = (x - left) ** 2 + (y[:, None] - top) ** 2 < radius**2
        found = torch.where(is_inside, (colour + slope * (x - left)).clamp(0, 1), found)
    return functional.avg_pool2d(functional.pad(found, (1, 1, 1, 1), mode="reflect"), 3, 1)


def mosaic(picture: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Return what the camera records: planes of red, green, green and blue, (n, 4, rows / 2, columns / 2)."""
    seen = torch.einsum("ij,njhw->nihw", torch.tensor(COLOURS, device=picture.device), picture) ** 1.5 * 0.8
    planes = [seen[:, c, top::2, left::2] for c, top, left in ((0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1))]
    recorded = torch.stack(planes, 1)
    noise = torch.randn(recorded.shape, generator=random, device=random.device)
    return (recorded + NOISE * noise).clamp(0, 1)
