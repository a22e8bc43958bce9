"""Images as examples: the middle, upright, in the network's order of channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kernels.errors import InputError
from kernels.frontend.image_sets import Channels, Preparation, images_in


def saved(path: Path, pixels: np.ndarray, **how: object) -> Path:
    Image.fromarray(pixels).save(path, **how)
    return path


def test_the_middle_is_cut_out(tmp_path: Path, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (10, 14, 3), dtype=np.uint8)
    path = saved(tmp_path / "a.png", pixels)
    found = Preparation(size=6, resize=10)(path)
    assert found.shape == (3, 6, 6) and (found == pixels[2:8, 4:10].transpose(2, 0, 1)).all()
    assert (Preparation(6, 10, Channels.BGR)(path) == found[::-1]).all()
    gray = Preparation(6, 10, Channels.GRAY)
    assert gray(path).shape == gray.shape == (1, 6, 6)


def test_the_shorter_edge_decides(tmp_path: Path) -> None:
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[:, 40:] = 200
    found = Preparation(size=20, resize=20)(saved(tmp_path / "a.png", pixels))
    assert found[0, 10, 2] == 0 and found[0, 10, 17] == 200  # half and half


def test_an_image_is_turned_upright(tmp_path: Path) -> None:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:8] = 255
    turned = Image.Exif()
    turned[0x0112] = 3  # by 180 degrees
    found = Preparation(16, 16)(saved(tmp_path / "a.png", pixels, exif=turned))
    assert found[0, 0, 0] == 0 and found[0, 15, 0] == 255


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8 no image")
    with pytest.raises(InputError, match=r"bad\.jpg: no readable image"):
        Preparation(8, 8)(tmp_path / "bad.jpg")
    with pytest.raises(InputError, match="a square of 9 pixels from an edge of 8"):
        Preparation(9, 8)


def test_images_below_a_folder_in_order(tmp_path: Path) -> None:
    for name in ("b/2.JPG", "a/3.png", "a/1.jpeg", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in images_in(tmp_path)] == ["a/1.jpeg", "a/3.png", "b/2.JPG"]
