"""The files and folders that the farm makes are its user's alone, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.system.private_files import make_private


@pytest.fixture(autouse=True)
def _hides_nothing() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


def test_a_new_ledger_and_its_folder(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/a/b/ledger.sqlite") as ledger:
        ledger.counts()
        assert modes(tmp_path / "a") == {0o700, 0o600}


def test_artifacts(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(b"words")
    Artifacts(tmp_path / "a").put(source)
    assert modes(tmp_path / "a") <= {0o700, 0o600}


def test_an_older_folder_is_closed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(0o755)
    make_private(tmp_path / "old")
    assert modes(tmp_path / "old") == {0o700}


def test_a_folder_of_all_users_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(PermissionError, match="not this user"):
        make_private(shared)
    assert shared.stat().st_mode & 0o1777 == 0o1777
