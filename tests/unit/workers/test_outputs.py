"""Outputs that were read in the trip that started the agent are taken where they are whole, else pulled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.plan.model import Plan, Port
from orchestrator.model.errors import DeviceSick
from orchestrator.model.event import Event, Output
from workers.connection.local import LocalConnection
from workers.engines.pocketfarm.measure.ports import SMALL_BYTES, pull_outputs, small_outputs
from workers.engines.pocketfarm.measure.run_request import RunRequest
from workers.engines.pocketfarm.plans.plan_store import StoredPlan

NOW = np.array([[1, 2, 3]], dtype=np.float32)
LATER = NOW + 3


def stored(*shapes: tuple[int, ...]) -> StoredPlan:
    ports = tuple(Port(name=f"y{n}", buffer=f"b{n}", shape=shape) for n, shape in enumerate(shapes))
    values: dict[str, Any] = {"outputs": ports}
    return StoredPlan(Plan.model_construct(**values), Path(), "hash")


def request(folder: Path) -> RunRequest:
    return RunRequest(plan="", inputs={}, folder=str(folder), marker="p/job/1", warmup=0, samples=1, layer_passes=0,
                      threads=1, power_period_ms=0, deadline_s=1.0, cache="")  # fmt: skip


def written(content: bytes) -> list[Event]:
    sha256 = hashlib.sha256(content).hexdigest()
    return [Output(seq=1, t_ns=1, name="y0", file="/there/0.bin", bytes=len(content), sha256=sha256, finite=True)]


@pytest.mark.parametrize("early", [b"", NOW.tobytes()[:5], LATER.tobytes()])
def test_what_was_read_too_early_is_pulled(tmp_path: Path, early: bytes) -> None:
    asked, plan = request(tmp_path), stored((3,))
    (path,) = small_outputs(plan, asked)
    Path(path).write_bytes(NOW.tobytes())
    found = pull_outputs(LocalConnection("p", tmp_path), plan, asked, written(NOW.tobytes()), {path: early})
    assert found["y0"].tolist() == NOW.tolist()


def test_what_was_read_in_time_needs_no_trip(tmp_path: Path) -> None:
    """The file is not there any more, so that only what was read can be the answer."""
    asked, plan = request(tmp_path), stored((3,))
    (path,) = small_outputs(plan, asked)
    connection, events = LocalConnection("p", tmp_path), written(NOW.tobytes())
    assert pull_outputs(connection, plan, asked, events, {path: NOW.tobytes()})["y0"].tolist() == NOW.tolist()
    with pytest.raises(DeviceSick):
        pull_outputs(connection, plan, asked, events, {})


def test_large_and_many_outputs_are_not_read_early(tmp_path: Path) -> None:
    asked = request(tmp_path)
    assert small_outputs(stored((SMALL_BYTES // 4,)), asked) and not small_outputs(stored((SMALL_BYTES // 4, 2)), asked)
    assert not small_outputs(stored(*[(1,)] * 9), asked)
