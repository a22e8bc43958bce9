"""Files that wait for the farm, where several sessions have them at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workers.files.host_files import HostFiles
from workers.files.outbox import Outbox


def test_two_phones_may_have_trained_the_same_model(tmp_path: Path) -> None:
    box = Outbox(tmp_path, HostFiles(tmp_path))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(box.add, ["a" * 64] * 200))
    assert box.waiting() == []
