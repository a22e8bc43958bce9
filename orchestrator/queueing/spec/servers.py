"""Servers: phones that serve one request, or one batch, at a time."""

from __future__ import annotations

from pydantic import Field, model_validator

from orchestrator.model.base import Model
from orchestrator.model.experiment import Name
from orchestrator.model.quantity import Celsius, Rest, Seconds

from .distributions import Distribution


class Power(Model):
    """Watts of a server."""

    idle_w: float = Field(default=0.0, ge=0)
    busy_w: float = Field(ge=0)


class Heat(Model):
    """A first-order model of a server's temperature, and how much slower it is when it is hot.

    Steady state is `ambient` while idle and `ambient + rise` while busy; both are approached with `time_constant`.
    """

    ambient: Celsius = 25.0
    rise_c: float = Field(gt=0, le=200)
    """Degrees above `ambient` under load without end."""
    time_constant: Seconds
    throttle_at: Celsius
    """From here on the server is slower."""
    slower_per_c: float = Field(default=0.05, ge=0)
    """For every degree above `throttle_at` service takes longer by this share."""
    slowest: float = Field(default=3.0, ge=1)
    """Service never takes longer than so many times."""


class ServerGroup(Model):
    """Servers of one kind."""

    name: Name
    count: int = Field(default=1, ge=1, le=10_000)
    devices: str | None = None
    """On phones: which devices these are, in the words of an experiment's `devices`; `count` of them serve."""
    travel: Distribution | None = None
    """How long a request and its answer travel, in a simulation: the server can do nothing else meanwhile. On phones it
    is measured."""
    speed: float = Field(default=1.0, gt=0)
    """Service takes 1/speed of the class's time."""
    service: dict[str, Distribution] = Field(default_factory=dict)
    """Times of these servers by class, instead of the class's own: as measured on them."""
    power: Power | None = None
    heat: Heat | None = None
    setup: Rest = 0.0
    """What a cold server needs before it serves: the first time, and after `keep_warm` without work."""
    keep_warm: Seconds | None = None
    """How long an idle server stays warm; not given: for ever."""

    @model_validator(mode="after")
    def _consistent(self) -> ServerGroup:
        if self.keep_warm is not None and not self.setup:
            raise ValueError("keep_warm without setup changes nothing: give `setup: 300 ms`")
        return self
