"""The quantities that are measured."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, get_args

from pydantic import field_validator

from orchestrator.model.base import Model
from orchestrator.model.power import PowerSource
from orchestrator.model.quantity import SamplingPeriod

Quantity = Literal["latency", "layers", "memory", "power"]
_KNOWN = (*get_args(Quantity), "energy")


class Measure(Model):
    """The quantities that are measured, and how."""

    quantities: tuple[Quantity, ...] = ("latency", "memory")
    """`latency` and `memory` cost nothing; `layers` is a separate profiled pass; `power` samples the gauge (`energy` is
    the same)."""
    power_period: SamplingPeriod = 0.1
    """Sampling period of the power gauge, with a unit: `100 ms`."""
    power_source: PowerSource | Literal["auto"] = "auto"
    """`auto`: the best that the device has: an external meter, else the workstation's counter, else the gauge."""

    @field_validator("quantities", mode="before")
    @classmethod
    def _unique(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            value = [_known(each) for each in value]
        if isinstance(value, list | tuple) and len(set(map(str, value))) != len(value):
            raise ValueError("a quantity is listed twice")
        return value


def _known(word: object) -> object:
    """`energy` is asked for as `power`, of which it is made. Raises ValueError for a misspelt one."""
    if isinstance(word, str) and word not in _KNOWN and (near := get_close_matches(word.lower(), _KNOWN, n=1)):
        raise ValueError(f"did you mean `{near[0]}`? {word[:40]!r} is none of {', '.join(_KNOWN)}")
    return "power" if word == "energy" else word
