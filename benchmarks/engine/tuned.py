"""Tuning ours on this device as `farm tune` searches, without a farm: the database is kept between networks."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import CompileError
from kernels.ir.graph import Graph
from kernels.options import Backend, Choice, Options, Precision
from kernels.tuning import Budgeted, Database, Progress, Ran, Trial, TrialFailed, applicable, device_key, tune

from .agent_process import Agent, limits_of
from .contender import ContenderError
from .ours import find_device


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    choices: dict[str, Choice]
    searched: int
    """Convolutions that the database did not know."""
    seconds: float


def tune_network(
    graph: Graph,
    backend: Backend,
    agent: Agent,
    *,
    device: str,
    database: Database,
    seconds: float,
    spirv_cache: Path,
    report: Callable[[str], None],
    precision: Precision = "fp32",
) -> Tuned:
    """Search what is not known for about `seconds` altogether; each convolution has an equal share of what is left.

    Choices are used as found: that the whole network gains by them, the benchmark shows. Raises ContenderError.
    """
    facts = find_device(agent, backend, device)
    limits, options = limits_of(facts), Options(backend, precision)
    key, began = device_key(backend, facts["device_name"], facts["driver"]), time.monotonic()

    def share(left: int) -> Budgeted:
        """Return a layer's strategy, even where the time is over: each layer has a choice in the benchmark."""
        return Budgeted(max(0.0, began + seconds - time.monotonic()) / left)

    def run(trial: Trial, passes: int) -> Ran:
        try:
            return agent.trial(trial, passes, device=device)
        except subprocess.TimeoutExpired as e:
            raise TrialFailed(f"no end after {e.timeout:g} s") from e

    def show(progress: Progress) -> None:
        best = f", {progress.best_ms:.3g} ms" if progress.best_ms is not None else ""
        report(f"convolution {progress.done} of {progress.total}{best}")

    try:
        searched = tune(
            graph, options, limits, run, device=key, database=database, strategy=share, on_progress=show,
            spirv_cache=spirv_cache,
        )  # fmt: skip
    except CompileError as e:
        raise ContenderError(f"tuning: {e}") from e
    known = database.tuned(key, precision, proven=False)
    choices = applicable(graph, options, limits, known)
    return Tuned(choices, len(searched), time.monotonic() - began)
