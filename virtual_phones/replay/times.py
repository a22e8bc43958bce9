"""The recorded times of a plan: its latencies, and the times of its layers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .journal import End


@dataclass(frozen=True)
class Times:
    """The times of one plan."""

    network: str
    cell: int
    """The network's cell that is played; -1: none of them."""
    latency_ms: list[float]
    layers: Mapping[str, list[float]]
    """Layer -> its recorded times."""
    missing: tuple[str, ...] = ()
    """Layers of the plan that are not in the latency, because it is the sum of those that were recorded."""

    def replaying(self, events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The real agent's events, with the recorded times of the layers; a layer that was not recorded is left out."""
        left: dict[tuple[str, int], int] = {}
        passes = {name: itertools.cycle(times) for name, times in self.layers.items()}
        for event in events:
            if event["event"] != "layer":
                yield event
            elif event["layer"] in passes:
                key = (event["layer"], event.get("repeat", 0))
                if key not in left:  # a layer of several steps: the first has its time
                    left[key] = round(next(passes[event["layer"]]) * 1e6)
                yield {**event, "duration_ns": left[key]}
                left[key] = 0


def times_of(plan: Mapping[str, Any], recorded: Mapping[str, Any]) -> Times:
    """Raises End where nothing was recorded of the plan."""
    name = plan["name"]
    if name not in recorded:
        raise End("unsupported", f"no latency of {name} was recorded; there are: {', '.join(recorded)}")
    cells = recorded[name]["cells"]
    had = {**plan.get("options", {}), "api": plan.get("api"), "precision": plan.get("precision")}
    cell = next((number for number, each in enumerate(cells) if fits(each["at"], had)), -1)
    layers, is_mixed = _layers(cells, had)
    played = cells[cell] if cell >= 0 else recorded[name]
    latency = played["latency_ms"] if not is_mixed else []
    missing: tuple[str, ...] = ()
    if not latency:
        latency = [sum(sum(times) / len(times) for times in layers.values())]
        if not recorded[name].get("layers_are_all"):
            missing = tuple(
                dict.fromkeys(each["layer"] for each in plan.get("steps", ()) if each["layer"] not in layers)
            )
    if not latency[0]:
        known = "; ".join(str(each["at"]) for each in cells)
        raise End("unsupported", f"{name} was not recorded like this; there is {known}")
    return Times(name, cell, latency, layers, missing)


def fits(at: Mapping[str, Any], had: Mapping[str, Any]) -> bool:
    return all(had.get(key) == value for key, value in at.items())


def _layers(cells: Iterable[Mapping[str, Any]], had: Mapping[str, Any]) -> tuple[dict[str, list[float]], bool]:
    """The times of each layer by the first cell that fits it, and whether a layer has axes of its own."""
    own: dict[str, dict[str, Any]] = {}
    for key, value in had.items():
        axis, colon, layer = key.partition(":")
        if colon and axis != "algorithm":  # which `auto` decides, too
            own.setdefault(layer, {})[axis] = value
    found: dict[str, list[float]] = {}
    for each in cells:
        for layer, times in each["layers"].items():
            if layer not in found and fits(each["at"], {**had, **own.get(layer, {})}):
                found[layer] = times
    return found, any(layer in found for layer in own)
