"""Tune every layer of a network that has a choice, on one device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.convolution import CONVOLUTIONS
from kernels.errors import CompileError
from kernels.ir.graph import Graph
from kernels.options import Choice, Limits, Options

from .candidates import candidates, distinct
from .database import Database, Found
from .layers import Layer
from .strategies import Strategy, Timing
from .trials import RunTrial, TimeIsOver, TrialFailed, Trials

MARGIN = 0.03
"""The compiler's own choice stays unless another one is faster by this share: less is within the noise."""


@dataclass(frozen=True)
class Progress:
    """The progress of a tuning."""

    done: int
    total: int
    conv: str
    """Key of the layer."""
    found: Found | None = None
    """The finding for the layer, once it is done."""
    measured: int = 0
    """Measurements of its candidates so far."""
    best_ms: float | None = None


def tune(
    graph: Graph,
    options: Options,
    limits: Limits,
    run: RunTrial,
    *,
    device: str,
    database: Database,
    strategy: Callable[[int], Strategy | None],
    again: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    spirv_cache: Path | None = None,
) -> list[Found]:
    """Search each layer that the database does not know yet (with `again`: all); those that were searched.

    `device`: `database.device_key`. `strategy`: from the number of layers that are left; None: no time is left for
    them. The database is saved after each layer: an interrupted tuning resumes. Raises CompileError where there is
    nothing to tune, and TrialFailed where not even the compiler's own choice runs: then there is nothing to compare
    with.
    """
    wanted = _wanted(graph, options, limits)
    known = {key: None if again else database.get(device, options.precision, key) for key in wanted}
    open_, total = [key for key, found in known.items() if found is None], len(wanted)
    for index, key in enumerate(open_):
        done = total - len(open_) + index
        if (how := strategy(len(open_) - index)) is None:
            break

        def report(measured: int, best_ms: float, done: int = done, key: str = key) -> None:
            on_progress(Progress(done, total, key, None, measured, best_ms))

        trials = Trials(wanted[key], options, limits, run, spirv_cache=spirv_cache, report=report)
        try:
            best = _search(wanted[key], options, limits, trials, device, how)
        except TimeIsOver:
            break
        database.add(best)
        database.save()
        known[key] = best
        on_progress(Progress(done + 1, total, key, best, best.tried, best.ms))
    return [found for key in open_ if (found := known[key]) is not None]


def _wanted(graph: Graph, options: Options, limits: Limits) -> dict[str, Layer]:
    if asked := CONVOLUTIONS.asked(options):
        raise CompileError(f"tuning chooses the algorithm and its tile: leave {' and '.join(asked)} out")
    wanted = distinct(graph, options, limits)
    if not wanted:
        raise CompileError(f"{graph.name} leaves no convolution, product or transposition open: nothing to tune")
    return wanted


def _search(layer: Layer, options: Options, limits: Limits, trials: Trials, device: str, strategy: Strategy) -> Found:
    tried = candidates(layer, options, limits)
    if trials(tried[:1], 1) == [None]:  # before any time is spent on a device that runs nothing
        why = trials.failures.get(tried[0], "no time of it was reported")
        raise TrialFailed(f"{layer.key}: the compiler's own choice, {tried[0].words}, does not run: {why}")
    timings = strategy.search(tried, trials)
    default = next((timing.ms for timing in timings if timing.choice == tried[0]), None)
    best = _winner(tried[0], timings, trials)
    if best is None:
        raise TrialFailed(f"{layer.key}: none of {len(tried)} candidates ran; start the tuning again")
    return Found(
        device=device, precision=options.precision, conv=layer.key, algorithm=best.choice.algorithm,
        tile=best.choice.tile, ms=best.ms, default=tried[0].words, default_ms=default, tried=len(tried),
        failed=len(trials.failures), at=time.time(),
    )  # fmt: skip


def _winner(default: Choice, timings: list[Timing], trials: Trials) -> Timing | None:
    """The fastest that is right; the default where nothing is faster beyond the margin."""
    own = next((timing for timing in timings if timing.choice == default), None)
    for timing in timings:
        if own and timing.ms > (1 - MARGIN) * own.ms:
            return own
        if trials.is_right(timing.choice):
            return timing
    return own
