"""Inputs on a device: those of one run are there together, however full the device's cache is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from workers.connection.local import LocalConnection
from workers.devices.install import MAX_CACHED, put_files
from workers.engines.pocketfarm.measure.ports import CACHE, FILE, Inputs


@pytest.mark.parametrize("count", [2, MAX_CACHED + 4])
def test_inputs_of_one_run_do_not_displace_each_other(tmp_path: Path, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    connection = LocalConnection("p", tmp_path / "device")
    contents = {f"x{i}": rng.random(8).tobytes() for i in range(count)}
    old = tmp_path / "old"
    for number in range(MAX_CACHED - 1):
        old.write_bytes(bytes([number]))
        put_files(connection, CACHE, hashlib.sha256(old.read_bytes()).hexdigest(), {FILE: old})
    before = set((tmp_path / "device" / CACHE).iterdir())
    inputs = Inputs.of_contents(connection, contents)
    inputs.push(connection)
    assert {name: Path(path).read_bytes() for name, path in inputs.paths.items()} == contents
    assert not any(path.exists() for path in before), "what no run needs makes room"
