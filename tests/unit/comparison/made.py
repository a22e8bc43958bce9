"""Rows of sides, made to order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.analysis.comparison import Compared, Rules, SideRow, compare
from orchestrator.model.device import Source


def row(value: float | None, **more: Any) -> SideRow:
    at = more.pop("at", 0.0)
    given: dict[str, Any] = {
        "device": "phone-1", "source": Source.PHONE, "network": "lenet", "backend": "opencl", "precision": "fp32",
        "night": "night-1/phone-1/0", "round": 0, "started_at": at, "ended_at": at + 30.0,
        "values": {} if value is None else {"latency": value},
    }  # fmt: skip
    return SideRow(**{**given, **more})


def measured(values: Sequence[float], name: str = "night-1", late: float = 0.0, **more: Any) -> list[SideRow]:
    """One block a round, a minute each; `late`: seconds after the round began."""
    return [
        row(value, night=f"{name}/{more.get('device', 'phone-1')}/0", round=turn, at=60.0 * turn + late, **more)
        for turn, value in enumerate(values)
    ]


def one(a: Sequence[SideRow], b: Sequence[SideRow], **rules: Any) -> Compared:
    (found,) = compare(a, b, Rules(**rules))
    return found
