"""Images as examples: decoded, resized, cropped, in the order of channels that a network takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})


class Channels(StrEnum):
    """The channels and their order."""

    RGB = "rgb"
    BGR = "bgr"
    """The order that networks trained with Caffe take."""
    GRAY = "gray"


@dataclass(frozen=True)
class Preparation:
    """Steps that prepare every image. Edges in pixels."""

    size: int
    """Edge of the square that is cut from the middle."""
    resize: int
    """Length of the shorter edge before that, bilinear."""
    channels: Channels = Channels.RGB

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize:
            raise InputError(
                f"a square of {self.size} pixels from an edge of {self.resize}: give 1 or more, and no more than that"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels x rows x columns."""
        return (1 if self.channels is Channels.GRAY else 3, self.size, self.size)

    def __call__(self, path: Path) -> npt.NDArray[np.uint8]:
        """One image. Raises InputError where it cannot be decoded."""
        from PIL import Image, ImageOps

        try:
            with Image.open(path) as opened:
                upright = ImageOps.exif_transpose(opened).convert("L" if self.channels is Channels.GRAY else "RGB")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as e:
            raise InputError(f"{path}: no readable image: {e}") from e
        width, height = upright.size
        share = self.resize / min(width, height)
        scaled = upright.resize(
            (max(self.size, round(width * share)), max(self.size, round(height * share))), Image.Resampling.BILINEAR
        )
        left, top = ((edge - self.size) // 2 for edge in scaled.size)
        pixels = np.asarray(scaled.crop((left, top, left + self.size, top + self.size)), np.uint8)
        planes = pixels[None] if self.channels is Channels.GRAY else pixels.transpose(2, 0, 1)
        return planes[::-1] if self.channels is Channels.BGR else planes


def images_in(folder: Path) -> list[Path]:
    """Every image below a folder, in the order of their paths."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def open_set(path: Path, examples: int, shape: Sequence[int]) -> np.memmap[Any, np.dtype[np.uint8]]:
    """A new `.npy` of bytes on disk, examples x shape, to be filled."""
    mapped: np.memmap[Any, np.dtype[np.uint8]] = np.lib.format.open_memmap(path, "w+", np.uint8, (examples, *shape))
    return mapped
