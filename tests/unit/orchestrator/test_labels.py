"""Files of labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.acts.submission.labels import read_labels, read_listing
from orchestrator.model.errors import ModelFileError


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "labels.txt").write_text(text)
    return tmp_path / "labels.txt"


def test_one_a_line_with_or_without_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jpg 65\n\nfolder/the second.jpg\t970\r\n")
    assert read_labels(path) == (65, 970)
    assert read_listing(path) == [("a.jpg", 65), ("folder/the second.jpg", 970)]
    assert read_labels(written(tmp_path, "7\n0\n")) == (7, 0)


@pytest.mark.parametrize("line", ["a.jpg", "a.jpg -1", "1.5", "³", "99999999999", "a.jpg 65,"])
def test_a_line_without_a_class(tmp_path: Path, line: str) -> None:
    with pytest.raises(ModelFileError, match=r"labels\.txt:2: .* does not end in a class number"):
        read_labels(written(tmp_path, f"1\n{line}\n"))


def test_no_text_and_no_name(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="entry 2 names no image"):
        read_listing(written(tmp_path, "a.jpg 1\n2\n"))
    (tmp_path / "labels.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelFileError, match="not readable as text"):
        read_labels(tmp_path / "labels.txt")
