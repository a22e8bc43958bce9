"""Tools are asked for a block, and tell what they did; the checks that readers of outputs share."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.model.device import Api, EngineAxis, Precision
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import PrintedSample, Unread
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt

TOKENS = EngineAxis(name="tokens", help="tokens of a sample", default=128, bounds=(1, 1 << 20))
STAGE = EngineAxis(
    name="stage",
    help="`prefill` reads `tokens` at once, `decode` generates them one by one",
    default="decode",
    words=("prefill", "decode"),
)
"""Axes of engines for language models."""


def delegates(*names: str) -> EngineAxis:
    """Return the axis of an engine that leaves the CPU's work to others."""
    help_ = "what computes on `cpu` in place of its own kernels; `auto`: what it takes by itself"
    return EngineAxis(name="delegate", help=help_, default="auto", words=("auto", *names))


class WrongDevice(Unread):
    """It ran, and not on the device that was asked for."""

    cause = "wrong_device"


@dataclass(frozen=True)
class Asked:
    """One block, as a tool is asked for it."""

    model: str
    """Path of the model's file on the device, or of its folder where the tool takes one."""
    backend: Api
    precision: Precision
    samples: int
    warmup: int
    axes: Mapping[str, Any] = field(default_factory=dict)
    """The values of `threads` and of the engine's own axes."""

    @property
    def threads(self) -> int:
        """0: as many as the tool takes by itself."""
        return int(self.axes["threads"])

    @property
    def prompt(self) -> int:
        """Tokens that a sample reads; 0 where it generates."""
        return int(self.axes["tokens"]) if self.axes.get("stage") == "prefill" else 0

    @property
    def generated(self) -> int:
        """Tokens that a sample generates."""
        return int(self.axes["tokens"]) if self.axes.get("stage") == "decode" else 0


@dataclass(frozen=True)
class Told:
    """The words of a tool on a run that went well."""

    samples: Sequence[PrintedSample]
    """All that it told, unmeasured ones first; one, where it tells a mean."""
    device: str
    version: str = ""
    """Empty: it does not say; then the version is that of who brought it."""
    threads: int = 0
    warmup: int = 0
    """Samples at the beginning that are no measurement."""
    mean_of: int = 1
    """The runs of which the one sample is the mean."""


class Tool(Protocol):
    """A program with its words and the reader of its output."""

    @property
    def name(self) -> str: ...
    @property
    def takes_folder(self) -> bool: ...
    def arguments(self, asked: Asked, /) -> list[str]: ...
    def read(self, lines: Sequence[Line], asked: Asked, /) -> Told: ...
    def judged(self, *, with_power: bool) -> tuple[Doubt, ...]: ...


def one_match(pattern: str, lines: Sequence[Line], what: str) -> re.Match[str]:
    """Return the only line that an expression matches from its begin to its end. Raises Unread."""
    found = [(line, match) for line in lines if (match := re.fullmatch(pattern, line.text.rstrip()))]
    if len(found) != 1:
        raise Unread(f"{what}: {counted(len(found), 'line tells', 'lines tell')} it, and one should")
    if not found[0][0].whole:
        raise Unread(f"{what}: the output ends within its line")
    return found[0][1]


def number(text: str, what: str) -> float:
    """Return a finite number above zero. Raises Unread."""
    try:
        value = float(text)
    except ValueError as e:
        raise Unread(f"{what}: {text[:40]!r} is no number") from e
    if not (math.isfinite(value) and value > 0):
        raise Unread(f"{what}: {text[:40]} is no figure of a run")
    return value


def agreed(what: str, one: object, other: object, within: float = 0.0, rounded: float = 0.0) -> None:
    """Raise Unread where two tellings of one thing differ; `within`: by more than a share, of numbers; `rounded`: and
    by more than their printing takes, which counts where they are small."""
    same = one == other
    if not same and isinstance(one, int | float) and isinstance(other, int | float):
        same = abs(one - other) <= within * max(abs(one), abs(other)) + rounded
    if not same:
        raise Unread(f"{what}: it says {str(one)[:60]}, where {str(other)[:60]} is expected")
