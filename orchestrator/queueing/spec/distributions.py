"""Distributions of times: each says its mean, its squared coefficient of variation, and draws."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Seconds

Draws = NDArray[np.float64]


class Fixed(Model):
    """One fixed time."""

    kind: Literal["fixed"]
    mean: Seconds

    @property
    def scv(self) -> float:
        return 0.0

    def draw(self, random: np.random.Generator, count: int) -> Draws:  # noqa: ARG002
        return np.full(count, self.mean)


class Exponential(Model):
    """Times without memory."""

    kind: Literal["exponential"]
    mean: Seconds

    @property
    def scv(self) -> float:
        return 1.0

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        return random.exponential(self.mean, count)


class Gamma(Model):
    """`cv`: deviation over mean; below 1 steadier than exponential, above 1 burstier."""

    kind: Literal["gamma"]
    mean: Seconds
    cv: float = Field(gt=0, le=100)

    @property
    def scv(self) -> float:
        return self.cv**2

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        return random.gamma(1 / self.scv, self.mean * self.scv, count)


class Weibull(Model):
    """`shape` below 1: heavy tail; 1: exponential."""

    kind: Literal["weibull"]
    mean: Seconds
    shape: float = Field(ge=0.2, le=100)

    @property
    def scv(self) -> float:
        return math.gamma(1 + 2 / self.shape) / math.gamma(1 + 1 / self.shape) ** 2 - 1

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        return random.weibull(self.shape, count) * (self.mean / math.gamma(1 + 1 / self.shape))


class Lognormal(Model):
    """`cv`: deviation over mean."""

    kind: Literal["lognormal"]
    mean: Seconds
    cv: float = Field(gt=0, le=100)

    @property
    def scv(self) -> float:
        return self.cv**2

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        variance = math.log(1 + self.scv)
        return random.lognormal(math.log(self.mean) - variance / 2, math.sqrt(variance), count)


class Uniform(Model):
    """Any time from `low` to `high` alike."""

    kind: Literal["uniform"]
    low: Seconds
    high: Seconds

    @rule
    def _in_order(self) -> None:
        if self.high < self.low:
            raise ValueError(f"high {self.high:g} s is below low {self.low:g} s")

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def scv(self) -> float:
        return (self.high - self.low) ** 2 / 12 / self.mean**2

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        return random.uniform(self.low, self.high, count)


class LedgerCell(Model):
    """The farm's measurements of one cell on one device."""

    experiment: str
    """Id or name, or `latest`."""
    device: str | None = None
    """Serial; needed where several devices ran it."""
    where: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """Columns of the cell: network, backend, precision, axes."""


class Samples(Model):
    """One of these, each as likely: measured times in seconds, given or from the ledger."""

    kind: Literal["samples"]
    values_s: tuple[Annotated[float, Field(gt=0)], ...] = ()
    ledger: LedgerCell | None = None

    @rule
    def _one(self) -> None:
        if bool(self.values_s) == (self.ledger is not None):
            raise ValueError("give either values_s or ledger")

    @property
    def mean(self) -> float:
        return float(np.mean(self.values_s))

    @property
    def scv(self) -> float:
        return float(np.var(self.values_s)) / self.mean**2

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        return random.choice(np.asarray(self.values_s), count)


Distribution = Annotated[
    Fixed | Exponential | Gamma | Weibull | Lognormal | Uniform | Samples, Field(discriminator="kind")
]
