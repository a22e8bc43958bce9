"""Every source of power figures by its name, and which one a block gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import ValidationError

from orchestrator.model import problem
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.errors import FarmError, Unsupported
from orchestrator.model.power import PowerSource, Scope

from .base import Bench, HostMeter, PowerMeter
from .clock_mapping import Ask, clock_of
from .csv_file import csv_file
from .gauge import Gauge, gauge
from .host_source import HostSource
from .iio import iio
from .joulescope import joulescope
from .model import model
from .monsoon import monsoon
from .nvml import NvmlMeter
from .odpm import odpm
from .perfetto import perfetto
from .ppk2 import ppk2
from .rapl import RaplMeter

METERS: dict[str, Callable[[Mapping[str, Any]], HostMeter]] = {
    "monsoon": monsoon,
    "joulescope": joulescope,
    "ppk2": ppk2,
    "iio": iio,
    "csv": csv_file,
}
"""External meters by their name in the wiring file."""


def _meter(bench: Bench) -> PowerMeter:
    if not bench.meter:
        raise bench.unsupported("the wiring file names no meter for it", "see docs/howto/power-sources.md")
    kind, options = next(iter(bench.meter.items()))
    if kind not in METERS:
        raise bench.unsupported(f"the wiring file names an unknown meter {kind!r}", f"there are: {', '.join(METERS)}")
    try:
        built = METERS[kind](options)
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or kind
        raise bench.unsupported(
            f"the wiring file, meter {kind}: {field}: {problem.describe(first)}", "correct it"
        ) from e
    fact = SourceFact(source=PowerSource.METER, scope=Scope.DEVICE, name=kind, usable=True)
    return HostSource(fact, built, _ask(bench))


def _rapl(bench: Bench) -> PowerMeter:
    if bench.member.facts.kind != "workstation" or bench.member.facts.gpu_vendor not in ("", "cpu"):
        raise bench.unsupported("RAPL measures the CPU of this host", "it fits the device local-cpu alone")
    fact = SourceFact(source=PowerSource.RAPL, scope=Scope.PACKAGE, name="CPU packages", usable=True)
    return HostSource(fact, RaplMeter(bench.sys), None)


def _nvml(bench: Bench) -> PowerMeter:
    facts = bench.member.facts
    if facts.kind != "workstation" or facts.gpu_vendor != "nvidia":
        raise bench.unsupported("NVML measures NVIDIA boards of this host", "it fits such a device alone")
    fact = SourceFact(source=PowerSource.NVML, scope=Scope.BOARD, name=facts.gpu, usable=True)
    return HostSource(fact, NvmlMeter(facts.gpu), None)


SOURCES: dict[PowerSource, Callable[[Bench], PowerMeter]] = {
    PowerSource.METER: _meter,
    PowerSource.GAUGE: gauge,
    PowerSource.ODPM: odpm,
    PowerSource.PERFETTO: perfetto,
    PowerSource.RAPL: _rapl,
    PowerSource.NVML: _nvml,
    PowerSource.MODEL: model,
}
_SCOPES = {
    PowerSource.ODPM: Scope.RAILS,
    PowerSource.PERFETTO: Scope.RAILS,
    PowerSource.RAPL: Scope.PACKAGE,
    PowerSource.NVML: Scope.BOARD,
}


def choose_source(bench: Bench, wanted: PowerSource | Literal["auto"]) -> PowerMeter:
    """The source that a block gets. Raises Unsupported where the device lacks the one that was asked for.

    `auto`: an external meter, else the workstation's counter, else the gauge. An external meter that is configured and
    cannot be used is an error: figures of another source would be taken for its.
    """
    if wanted == "auto":
        return _best(bench)
    if wanted not in SOURCES:
        raise bench.unsupported(f"{wanted} is no source that can be measured with", "see docs/howto/power-sources.md")
    return SOURCES[wanted](bench)


def _best(bench: Bench) -> PowerMeter:
    if bench.meter:
        return _meter(bench)
    if bench.member.facts.kind == "phone":
        return Gauge()  # the agent says itself where it finds none
    for source in (PowerSource.NVML, PowerSource.RAPL):
        try:
            return SOURCES[source](bench)
        except Unsupported:
            continue
    return Gauge()


def find_sources(bench: Bench) -> tuple[SourceFact, ...]:
    """Return the sources of this device; those that it lacks say why and what would help. Raises TransientError."""
    facts = []
    for source, make in SOURCES.items():
        try:
            facts.append(make(bench).fact)
        except Unsupported as e:
            facts.append(_absent(source, e))
    return tuple(facts)


def _absent(source: PowerSource, error: FarmError) -> SourceFact:
    reason = str(error.args[0]) + (f"; {error.remedy}" if error.remedy else "")
    return SourceFact(source=source, scope=_SCOPES.get(source, Scope.DEVICE), usable=False, reason=reason)


def _ask(bench: Bench) -> Ask | None:
    """Return how to ask the device for its time; None: a workstation's clock is this host's."""
    if bench.member.facts.kind == "workstation":
        return None
    return clock_of(bench.member.connection, bench.member.agent)
