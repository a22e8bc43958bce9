"""`farm dataset`: from images to a set."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from farm.cli import main


@pytest.fixture
def images(tmp_path: Path, seed: int) -> Path:
    generator = np.random.default_rng(seed)
    for name in ("n02/a.png", "n01/b.png", "n02/c.png"):
        path = tmp_path / "val" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(path)
    return tmp_path / "val"


def pixels(path: Path) -> np.ndarray:
    """The middle 16 x 16 of an image of 20 x 24."""
    return np.asarray(Image.open(path))[2:18, 4:20].transpose(2, 0, 1)


def test_folders_are_classes(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "set.npy"
    assert main(("dataset", str(images), "--size", "16", "--resize", "20", "-o", str(target), "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["examples"], told["shape"]) == (3, [3, 16, 16])
    expected = np.stack([pixels(images / name) for name in ("n01/b.png", "n02/a.png", "n02/c.png")])
    assert (np.load(target) == expected).all()
    assert Path(told["labels"]).read_text() == "0\n1\n1\n"


def test_a_list_decides(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listing, target = tmp_path / "val.txt", tmp_path / "set.npy"
    listing.write_text("n02/c.png 65\nn01/b.png 970\nn02/a.png 3\n")
    options = ("--size", "16", "--resize", "20", "--channels", "bgr", "--first", "2", "-o", str(target))
    assert main(("dataset", str(images), "--labels", str(listing), *options)) == 0
    assert (np.load(target) == np.stack([pixels(images / n)[::-1] for n in ("n02/c.png", "n01/b.png")])).all()
    said = capsys.readouterr()
    assert "labels: " in said.out and (tmp_path / "set.labels.txt").read_text() == "65\n970\n"


def test_what_cannot_be_used_leaves_nothing(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images / "n02" / "d.png").write_bytes(b"no image")
    target = tmp_path / "set.npy"
    assert main(("dataset", str(images), "--size", "16", "-o", str(target))) == 1
    assert "d.png: no readable image" in capsys.readouterr().err
    (tmp_path / "val.txt").write_text("n02/a.png 1\nn03/x.png 2\n")
    assert main(("dataset", str(images), "--size", "16", "-o", str(target), "--labels", str(tmp_path / "val.txt"))) == 1
    assert "image 2, `n03/x.png`, is not in" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(("dataset", str(tmp_path / "empty"), "--size", "16", "-o", str(target))) == 1
    assert "there are no images" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "val", "val.txt"]
