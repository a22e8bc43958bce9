"""Recordings of real phones, which a virtual phone replays: latencies and power of named networks."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

_Positive = Annotated[float, Field(gt=0)]
_NotNegative = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PowerTrace(_Part):
    """Power of the whole phone while the network ran, from the first inference on."""

    time_s: tuple[_NotNegative, ...] = Field(min_length=2)
    """Rising, from 0. When a run is longer, the trace begins again."""
    power_w: tuple[_NotNegative, ...]

    @model_validator(mode="after")
    def _rises(self) -> PowerTrace:
        if len(self.time_s) != len(self.power_w):
            raise ValueError(f"{len(self.time_s)} times for {len(self.power_w)} readings")
        if self.time_s[0] != 0 or any(later <= earlier for earlier, later in pairwise(self.time_s)):
            raise ValueError("time_s must rise from 0")
        return self

    def at(self, time_s: float) -> float:
        """Power `time_s` after the first inference began, interpolated."""
        time_s %= self.time_s[-1]
        last = bisect_right(self.time_s, time_s)
        (t0, t1), (p0, p1) = self.time_s[last - 1 : last + 1], self.power_w[last - 1 : last + 1]
        return p0 + (p1 - p0) * (time_s - t0) / (t1 - t0)


class RecordedCell(_Part):
    """A network as the phone ran it in one way: plans that `at` does not fit have other times."""

    at: dict[str, int | str | bool] = Field(min_length=1)
    """The facts that the plan must have: `api`, `precision`, or any of its options, e.g. `granularity`."""
    latency_ms: tuple[_Positive, ...] = ()
    """The latencies, as those of the network; none: the sum of the layers."""
    layers: dict[str, Annotated[tuple[_Positive, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Layer -> its times in ms, of which each profiled pass plays the next."""
    power: PowerTrace | None = None
    """None: the network's."""

    @model_validator(mode="after")
    def _has_times(self) -> RecordedCell:
        if not (self.latency_ms or self.layers):
            raise ValueError("give `latency_ms` or `layers`")
        return self


class RecordedNetwork(_Part):
    """One network as the phone ran it."""

    latency_ms: tuple[_Positive, ...] = ()
    """The latencies in their order; they begin again when a run has more inferences. Of plans that no cell fits; none:
    those are refused."""
    power: PowerTrace
    cells: tuple[RecordedCell, ...] = ()
    """The first that fits a plan is played. A layer with axes of its own is played as the first that fits those."""
    layers_are_all: bool = False
    """True if the sum of the recorded layers is the time of the network, as the one who recorded it has it. Else a plan
    with other layers, whose time is such a sum, has the warning `layers_missing`."""

    @model_validator(mode="after")
    def _has_times(self) -> RecordedNetwork:
        if not (self.latency_ms or self.cells):
            raise ValueError("give `latency_ms` or `cells`")
        return self


class Recording(_Part):
    """The recording of a phone."""

    schema_version: Literal[1] = 1
    profile: str
    """The model of phone: name of a profile."""
    origin: str = Field(min_length=1)
    """The origin: which phone, when, measured by whom and how."""
    idle_w: _Positive | None = None
    """Power between runs; None: the profile's."""
    networks: dict[str, RecordedNetwork] = Field(min_length=1)
    """The networks by the name of the plan, e.g. squeezenet."""
    goes_on: bool = False
    """True if a run begins with the latency after the last one that was played, so that runs differ as they did; else
    each begins with the first."""


def load_recording(path: Path) -> Recording:
    """Read a recording (YAML or JSON). Raises ValueError naming the file and the field."""
    try:
        return Recording.model_validate(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise ValueError(f"recording {path}: {error}") from error
