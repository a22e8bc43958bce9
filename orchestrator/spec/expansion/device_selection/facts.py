"""The facts of a device that a selection expression may name: each with its type and its meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.model.device import Api, Device, Precision, Source

Value = str | float | bool | frozenset[str] | None


class FactType(StrEnum):
    """The type of a fact; decides which operators and units fit."""

    TEXT = "a text"
    NUMBER = "a number"
    SIZE = "a size with a unit, e.g. 3 GiB"
    PERCENT = "a percentage, e.g. 40 %"
    CELSIUS = "a temperature, e.g. 35 C"
    FLAG = "true or false"
    SET = "a set of texts"


UNITS: dict[str, tuple[FactType, float]] = {
    **{unit: (FactType.SIZE, float(1000**power)) for power, unit in enumerate(("B", "kB", "MB", "GB"))},
    **{unit: (FactType.SIZE, float(1024**power)) for power, unit in enumerate(("KiB", "MiB", "GiB"), start=1)},
    "%": (FactType.PERCENT, 1.0),
    "C": (FactType.CELSIUS, 1.0),
    "°C": (FactType.CELSIUS, 1.0),
}


@dataclass(frozen=True)
class Fact:
    """One name of the expression language. `read` returns None where the device does not tell: facts have an empty text
    or 0 there."""

    type: FactType
    read: Callable[[Device], Value]
    values: tuple[str, ...] = ()
    """The only texts that it may have; empty: any."""


def _precisions(device: Device) -> frozenset[str]:
    return frozenset(str(precision) for api in device.facts.apis for precision in api.precisions)


FACTS: dict[str, Fact] = {
    "serial": Fact(FactType.TEXT, lambda d: d.facts.serial),
    "host": Fact(FactType.TEXT, lambda d: d.facts.host or None),
    "kind": Fact(FactType.TEXT, lambda d: d.facts.kind, ("phone", "workstation")),
    "source": Fact(FactType.TEXT, lambda d: str(d.facts.source), tuple(map(str, Source))),
    "model": Fact(FactType.TEXT, lambda d: d.facts.model or None),
    "manufacturer": Fact(FactType.TEXT, lambda d: d.facts.manufacturer or None),
    "soc": Fact(FactType.TEXT, lambda d: d.facts.soc or None),
    "gpu": Fact(FactType.TEXT, lambda d: d.facts.gpu or None),
    "gpu_vendor": Fact(FactType.TEXT, lambda d: d.facts.gpu_vendor or None),
    "abi": Fact(FactType.TEXT, lambda d: d.facts.abi or None),
    "profile": Fact(FactType.TEXT, lambda d: d.facts.profile or None),
    "sdk": Fact(FactType.NUMBER, lambda d: float(d.facts.sdk) or None),
    "cores": Fact(FactType.NUMBER, lambda d: float(d.facts.cores) or None),
    "memory": Fact(FactType.SIZE, lambda d: float(d.facts.memory_bytes) or None),
    "apis": Fact(FactType.SET, lambda d: frozenset(str(a.api) for a in d.facts.apis), tuple(map(str, Api))),
    "precisions": Fact(FactType.SET, _precisions, tuple(map(str, Precision))),
    "labels": Fact(FactType.SET, lambda d: frozenset(d.noted.labels if d.noted else ())),
    "owner": Fact(FactType.TEXT, lambda d: d.noted.owner or None if d.noted else None),
    "battery": Fact(FactType.PERCENT, lambda d: d.state.battery_percent),
    "battery_temp": Fact(FactType.CELSIUS, lambda d: d.state.battery_temp_c),
    "charging": Fact(FactType.FLAG, lambda d: d.state.charging),
}


def shown(value: Value, kind: FactType) -> str:
    """A fact's value as a person would write it."""
    if value is None:
        return "unknown"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(value)) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if kind is FactType.SIZE:
        return f"{value / 2**30:.3g} GiB"
    return f"{value:g}" + {FactType.PERCENT: " %", FactType.CELSIUS: " C"}.get(kind, "")
