"""Nights of suites in a ledger, made to order: what a keeper of nights would have stored."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from orchestrator.analysis.comparison import Compared, SideRow, compare
from orchestrator.ledger import Ledger
from orchestrator.model.device import Source
from orchestrator.model.experiment import Side, Sides
from orchestrator.nightly import Missing, Night, NightRow, Suite

DAY_S = 86400.0
FIRST = 1_780_000_000.0
SUITE = Suite(name="nightly", experiments=("lenet.yaml",), sides=Sides(candidate=Side(axes={"threads": 4})))
Factor = Callable[[int, str, str, str], float]
"""Night, device, network and side -> the factor of its time."""


def nights(
    count: int, factor: Factor, devices: tuple[str, ...] = ("A", "B", "C"), networks: tuple[str, ...] = ("l", "m", "n")
) -> list[Night]:
    generator = random.Random(f"{count} {devices}")
    return [one_night(number, factor, devices, networks, generator) for number in range(count)]


def one_night(
    number: int, factor: Factor, devices: tuple[str, ...], networks: tuple[str, ...], generator: random.Random
) -> Night:
    sides: dict[str, list[SideRow]] = {"a": [], "b": []}
    for device in devices:
        day = math.exp(generator.gauss(0, 0.008))
        for network in networks:
            for side, rows in sides.items():
                for turn in range(6):
                    value = 10 * day * factor(number, device, network, side) * math.exp(generator.gauss(0, 0.002))
                    at = FIRST + DAY_S * number + 60.0 * turn
                    rows.append(
                        SideRow(
                            device=device, source=Source.VIRTUAL, network=network, backend="opencl", precision="fp32",
                            night=f"{number}/{device}", round=turn, started_at=at, ended_at=at + 50,
                            values={"latency": value},
                        )
                    )  # fmt: skip
    return judged(number, list(compare(sides["a"], sides["b"])), devices)


def judged(number: int, rows: list[Compared], devices: tuple[str, ...], **more: object) -> Night:
    due = FIRST + DAY_S * number
    given: dict[str, object] = {
        "night_id": f"nightly@{number:03}", "suite": SUITE, "file": "nightly.yaml", "scheduled": True, "due_at": due,
        "began_at": due, "ends_at": due + 7200, "ended_at": due + 3000, "expected": devices, "devices": devices,
        "rows": tuple(NightRow(part="lenet", compared=row, repeated=_repeated(row)) for row in rows),
        "outcome": "complete",
    }  # fmt: skip
    return Night.model_validate({**given, **more})


def _repeated(row: Compared) -> Compared | None:
    return row if row.verdict == "different" else None


def missing(device: str) -> Missing:
    return Missing(device=device, reason="it is not connected", cells=3)


def kept(ledger: Ledger, found: list[Night]) -> None:
    for night in found:
        ledger.nights.begin(
            night.night_id, night.suite.name, night.due_at, night.model_dump_json().encode(), over=True
        )  # fmt: skip
