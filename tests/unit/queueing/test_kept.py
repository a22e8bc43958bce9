"""Requests and readings in packed columns."""

from __future__ import annotations

import numpy as np

from orchestrator.model.telemetry import Reading
from orchestrator.queueing.kept.columns import pack_readings, pack_requests, unpack_readings, unpack_requests
from orchestrator.queueing.requests import COLUMNS, FULL

from .make import make, request_class, run

NS = 1e-9


def test_requests_come_back_to_the_nanosecond(seed: int) -> None:
    """Some are dropped; they travel, and are of several classes. Some runs have none."""
    classes = [request_class("a", 60.0), request_class("b", 40.0, deadline="20 ms")]
    servers = [{"name": "s", "travel": {"kind": "exponential", "mean": "1 ms"}}]
    spec = make(classes, servers, limits={"queue": 3, "drop_late": True}, duration="20 s")
    tables = [
        run(spec, seed).requests.rows,
        np.empty((0, len(COLUMNS))),
        run(spec, seed + 1).requests.rows,
        np.empty((0, len(COLUMNS))),
    ]
    tables[0][::7, 5] = np.nan
    assert (tables[0][:, 8] == FULL).any() and np.isnan(tables[0][:, 2]).any()
    found = unpack_requests(pack_requests(tables), len(tables))
    assert [len(each) for each in found] == [len(each) for each in tables]
    for before, after in zip(tables, found, strict=True):
        np.testing.assert_allclose(after, before, atol=5 * NS, rtol=1e-6)


def test_a_request_takes_few_bytes(seed: int) -> None:
    rows = run(make(duration="500 s"), seed).requests.rows
    assert len(rows) > 30_000
    assert len(pack_requests([rows])) / len(rows) < 30


def test_readings_come_back() -> None:
    told = Reading(10**15, -250_000, 3_900_000, "Discharging", 31.5, None, 2_000_000, None)
    silent = Reading(10**15 + 1, None, None, "", None, None, None, None)
    assert unpack_readings(pack_readings([[told], [], [silent, told]])) == [(0, told), (2, silent), (2, told)]
    assert unpack_readings(pack_readings([])) == []
