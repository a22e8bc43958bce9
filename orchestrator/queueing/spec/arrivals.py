"""The arrivals of a class's requests. `rate` is in requests a second."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Seconds, Share

from .distributions import Distribution

Rate = Annotated[float, Field(gt=0, le=1e6)]


class DeterministicArrivals(Model):
    """One request every 1/rate seconds."""

    kind: Literal["deterministic"]
    rate: Rate


class PoissonArrivals(Model):
    """Independent requests."""

    kind: Literal["poisson"]
    rate: Rate


class GammaArrivals(Model):
    """Independent gaps, gamma distributed; `cv` above 1: in clusters."""

    kind: Literal["gamma"]
    rate: Rate
    cv: float = Field(gt=0, le=100)


class WeibullArrivals(Model):
    """Independent gaps, Weibull distributed; `shape` below 1: in clusters."""

    kind: Literal["weibull"]
    rate: Rate
    shape: float = Field(ge=0.2, le=100)


class MmppArrivals(Model):
    """Poisson requests whose rate changes at random: state i has `rates[i]` and lasts `stays[i]` on average.

    The states follow each other in this order, round and round (a Markov-modulated Poisson process).
    """

    kind: Literal["mmpp"]
    rates: tuple[Annotated[float, Field(ge=0, le=1e6)], ...] = Field(min_length=2, max_length=100)
    stays: tuple[Seconds, ...] = Field(min_length=2, max_length=100)

    @rule
    def _consistent(self) -> None:
        if len(self.rates) != len(self.stays):
            raise ValueError(f"{len(self.rates)} rates and {len(self.stays)} stays: give one stay for each rate")
        if not any(self.rates):
            raise ValueError("every rate is 0: nothing would arrive")

    @property
    def rate(self) -> float:
        return sum(rate * stay for rate, stay in zip(self.rates, self.stays, strict=True)) / sum(self.stays)


class DiurnalArrivals(Model):
    """Poisson requests whose rate goes up and down as a sine: `rate` on average, by the share `swing`."""

    kind: Literal["diurnal"]
    rate: Rate
    swing: Share
    period: Seconds = 86400.0


class ClosedArrivals(Model):
    """`clients` who each send a request, wait for its end, think, and send the next (closed loop)."""

    kind: Literal["closed"]
    clients: int = Field(ge=1, le=100_000)
    think: Distribution


class TraceArrivals(Model):
    """A CSV file with a column `time_s` and, where it holds several classes, `class`; relative to the spec's folder."""

    kind: Literal["trace"]
    file: str
    faster: float = Field(default=1.0, gt=0)
    """Play it so many times as fast."""


Arrivals = Annotated[
    DeterministicArrivals
    | PoissonArrivals
    | GammaArrivals
    | WeibullArrivals
    | MmppArrivals
    | DiurnalArrivals
    | ClosedArrivals
    | TraceArrivals,
    Field(discriminator="kind"),
]


def faster(arrivals: Arrivals, factor: float) -> Arrivals:
    """The same with so many times the rate; what comes in bursts has the same bursts with more in each.

    Raises ValueError for a closed loop.
    """
    if isinstance(arrivals, ClosedArrivals):
        raise ValueError("a closed loop has no rate of its own: change `clients` or `think`")
    if isinstance(arrivals, TraceArrivals):
        return arrivals.model_copy(update={"faster": arrivals.faster * factor})
    if isinstance(arrivals, MmppArrivals):
        return arrivals.model_copy(update={"rates": tuple(rate * factor for rate in arrivals.rates)})
    return arrivals.model_copy(update={"rate": arrivals.rate * factor})
