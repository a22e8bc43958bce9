"""The quantities that are measured."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from orchestrator.model.base import Model
from orchestrator.model.power import PowerSource
from orchestrator.model.quantity import SamplingPeriod

Quantity = Literal["latency", "layers", "memory", "power"]


class Measure(Model):
    """What is measured."""

    quantities: tuple[Quantity, ...] = ("latency", "memory")
    """`latency` and `memory` cost nothing; `layers` is a separate profiled pass; `power` samples the gauge."""
    power_period: SamplingPeriod = 0.1
    """Sampling period of the power gauge, with a unit: `100 ms`."""
    power_source: PowerSource | Literal["auto"] = "auto"
    """`auto`: the best that the device has: an external meter, else the workstation's counter, else the gauge."""

    @field_validator("quantities", mode="before")
    @classmethod
    def _unique(cls, value: object) -> object:
        if isinstance(value, list | tuple) and len(set(map(str, value))) != len(value):
            raise ValueError("a quantity is listed twice")
        return value
