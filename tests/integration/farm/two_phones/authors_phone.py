"""A recording of study S's Galaxy S7, made of the authors' own logs and power traces."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from orchestrator.exchange.power_traces import read_trace

Logged = dict[str, list[float]]
"""Layer -> its times in ms, one of each repetition."""


def recording(folder: Path, to: Path) -> Path:
    """`folder`: `galaxy_s7` of the data. Layers by g and one CPU thread, with the power of both loads.

    Whole networks with the best g of each layer are not in the logs: their times are those of table VI. A log has the
    layers that g fits, of which a sum is no network.
    """
    by_g = [
        {"at": {"api": "opencl", "precision": precision, "granularity": int(path.stem)}, "layers": means(logged(path))}
        for precision, logs in (("fp32", "logs"), ("imprecise", "logs_imprecise"))
        for path in sorted((folder / logs).glob("[0-9]*.txt"))
    ]
    sequential = logged(folder / "logs" / "sequential.txt")
    runs = [sum(times) for times in zip(*sequential.values(), strict=True)]
    cells = [
        *by_g,
        {
            "at": {"api": "cpu"},
            "latency_ms": [mean(runs)],
            "layers": means(sequential),
            "power": power(folder, "Sequential"),
        },
        {"at": {"api": "opencl", "precision": "fp32"}, "latency_ms": [436.71]},
        {"at": {"api": "opencl", "precision": "imprecise"}, "latency_ms": [207.1]},
    ]
    network = {"power": power(folder, "Parallel"), "cells": cells}
    idle = [plain(folder, name) for name in ("Baseline", "Baseline2")]
    to.write_text(
        json.dumps(
            {
                "profile": "galaxy_s7",
                "origin": "the authors' logs and Trepn traces of 2016-09-07",
                "idle_w": mean(idle),
                "networks": {"squeezenet_v1_0": network},
            }
        )
    )
    return to


def logged(path: Path) -> Logged:
    """Return each layer's times in ms, of all runs that logged it; what is no layer of the network is left out."""
    found: Logged = defaultdict(list)
    for line in re.finditer(r"^(\w+) \(ms\):?\s*([\d.]+)$", path.read_text(), re.MULTILINE):
        if float(line[2]) > 0:
            found[line[1].lower()].append(float(line[2]))
    return dict(found)


def means(layers: Logged) -> Logged:
    """Return each layer's mean, as the study has it: a block profiles fewer passes than the eleven that were logged."""
    return {name: [mean(times)] for name, times in layers.items()}


def plain(folder: Path, name: str) -> float:
    (trace,) = read_trace(folder / "power" / f"{name}.csv")
    return float(trace.power_w.mean())


def power(folder: Path, name: str) -> dict[str, Any]:
    """The mean of both runs of a load, as published. Their power varies by a seventh, and a load of some seconds would
    meet another part of them in each block."""
    watts = mean(plain(folder, run) for run in (name, f"{name}2"))
    return {"time_s": [0.0, 1.0], "power_w": [watts, watts]}
