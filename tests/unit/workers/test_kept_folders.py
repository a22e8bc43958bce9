"""Folders that a host keeps: whole, and bounded by their number and last use."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from workers.files.kept_folders import note_use, prune, write_whole


def test_those_of_longest_ago_go_and_those_in_use_stay(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for turn in range(20):
        parent, now = tmp_path / str(turn), time.time()
        ages = rng.sample(range(10, 10_000), rng.randint(1, 12))  # seconds, none within ten of a bound
        for age in ages:
            write_whole(parent / f"{age}", lambda made: (made / "file").write_text("whole"))
            os.utime(parent / f"{age}", (now - age, now - age))
        (parent / ".partial-other").mkdir()
        most, spared_s = rng.randint(1, 12), rng.choice((0, rng.randrange(0, 10_000, 10) + 5))
        prune(parent, most, spared_s)
        wanted = {age for age in ages if age < spared_s} | set(sorted(ages)[:most])
        assert {path.name for path in parent.iterdir()} == {*map(str, wanted), ".partial-other"}
        assert all((parent / str(age) / "file").read_text() == "whole" for age in wanted)


def test_a_use_is_noted_and_what_is_gone_is_told(tmp_path: Path) -> None:
    write_whole(tmp_path / "kept", lambda made: (made / "file").touch())
    os.utime(tmp_path / "kept", (1, 1))
    assert note_use(tmp_path / "kept") and (tmp_path / "kept").stat().st_mtime > 1
    assert not note_use(tmp_path / "gone")


def test_what_is_half_written_is_never_seen(tmp_path: Path) -> None:
    def broken(made: Path) -> None:
        (made / "half").touch()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        write_whole(tmp_path / "kept", broken)
    assert not list(tmp_path.iterdir())
    write_whole(tmp_path / "kept", lambda made: (made / "first").touch())
    write_whole(tmp_path / "kept", lambda made: (made / "second").touch())
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["first"], "another process was quicker"
