"""Specs and runs for these tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from orchestrator.queueing.measures import Measured, measure
from orchestrator.queueing.requests import Run
from orchestrator.queueing.simulation import simulate
from orchestrator.queueing.spec import QueueingSpec

EXPONENTIAL = {"kind": "exponential", "mean": "10 ms"}


def request_class(name: str = "a", rate: float = 70.0, **more: Any) -> dict[str, Any]:
    return {"name": name, "arrivals": {"kind": "poisson", "rate": rate}, "service": EXPONENTIAL, **more}


def make(
    classes: list[dict[str, Any]] | None = None, servers: int | list[dict[str, Any]] = 1, **more: Any
) -> QueueingSpec:
    """An M/M/c system with a load of 0.7 unless told otherwise."""
    data = {
        "name": "test",
        "servers": servers if isinstance(servers, list) else [{"name": "s", "count": servers}],
        "classes": classes or [request_class()],
        "duration": "100 s",
        **more,
    }
    return QueueingSpec.model_validate(data)


def run(spec: QueueingSpec, seed: int = 1) -> Run:
    return simulate(spec, np.random.SeedSequence(seed))


def measured(spec: QueueingSpec, seed: int = 1) -> Measured:
    return measure(spec, [run(spec, seed)])
