"""Servers: phones that serve one request, or one batch, at a time."""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.experiment import Name
from orchestrator.model.quantity import Celsius, Rest, Seconds

from .distributions import Distribution, LedgerCell


class Power(Model):
    """Watts of a server."""

    idle_w: float = Field(default=0.0, ge=0)
    busy_w: float = Field(ge=0)


class ThrottleStep(Model):
    """A step of a server's throttling: how slow it is from a temperature on."""

    at: Celsius
    times: float = Field(ge=1, le=1000)
    """Service takes so many times as long as on a cool server."""


class Heat(Model):
    """A first-order model of a server's temperature, and how much slower it is when it is hot.

    Steady state is `ambient` while idle and `ambient + rise` while busy; both are approached with `time_constant`.
    """

    ambient: Celsius = 25.0
    rise_c: float = Field(gt=0, le=200)
    """Degrees above `ambient` under load without end."""
    time_constant: Seconds
    throttle_at: Celsius | None = None
    """The temperature from which on the server is slower; neither this nor `steps`: it never is."""
    slower_per_c: float = Field(default=0.05, ge=0)
    """The share by which service takes longer for every degree above `throttle_at`."""
    slowest: float = Field(default=3.0, ge=1)
    """Service never takes longer than so many times, by `throttle_at`."""
    steps: tuple[ThrottleStep, ...] = ()
    """The steps of throttling, in place of `throttle_at`."""
    slow_is_cooler: bool = False
    """A server that is so many times as slow heats itself as much less, as one does whose clock was lowered."""
    known_to: Celsius | None = None
    """The highest temperature of which this is known; a run that gets hotter says so."""
    unsure_c: float = Field(default=0.0, ge=0, le=50)
    """Its temperatures may be higher or lower by so much: figures span what that leaves open."""
    time_constant_between: tuple[Seconds, Seconds] | None = None
    """Likewise of the time constant."""

    def others(self) -> tuple[Heat, ...]:
        """Return heats as far from this one as it may be; none where nothing is unsure."""
        apart_c = {-self.unsure_c, self.unsure_c}
        constants_s = set(self.time_constant_between or (self.time_constant,))
        if apart_c == {0.0} and constants_s == {self.time_constant}:
            return ()
        return tuple(
            self.model_copy(update={"ambient": self.ambient + by_c, "time_constant": constant_s})
            for by_c in sorted(apart_c)
            for constant_s in sorted(constants_s)
        )

    @rule
    def _one_way_to_throttle(self) -> None:
        if self.steps and self.throttle_at is not None:
            raise ValueError("give either throttle_at or steps")
        if any(low.at >= high.at or low.times > high.times for low, high in pairwise(self.steps)):
            raise ValueError("steps must rise")


class ServerGroup(Model):
    """Servers of one kind."""

    name: Name
    count: int = Field(default=1, ge=1, le=10_000)
    devices: str | None = None
    """The devices, on phones, in the words of an experiment's `devices`; `count` of them serve."""
    travel: Distribution | None = None
    """The time that a request and its answer travel, in a simulation: the server can do nothing else meanwhile. On
    phones it is measured."""
    speed: float = Field(default=1.0, gt=0)
    """Service takes 1/speed of the class's time."""
    service: dict[str, Distribution] = Field(default_factory=dict)
    """Times of these servers by class, instead of the class's own: as measured on them."""
    power: Power | None = None
    heat: Heat | None = None
    learn: LedgerCell | None = None
    """Measured blocks from which `heat` and `setup` are learnt, as far as they are not given here; for simulations."""
    setup: Rest = 0.0
    """The time that a cold server needs before it serves: the first time, and after `keep_warm` without work."""
    keep_warm: Seconds | None = None
    """The time that an idle server stays warm; not given: for ever."""

    @rule
    def _consistent(self) -> None:
        if self.keep_warm is not None and not self.setup and self.learn is None:
            raise ValueError("keep_warm without setup changes nothing: give `setup: 300 ms`")
