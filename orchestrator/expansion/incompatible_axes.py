"""Axes that do not go together: why a combination of the matrix is not run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.model.device import Api

AXES = ("algorithm", "granularity", "threads", "thread_life", "pipeline")
"""The axes that decide it, beside the backend."""


def algorithms_of(backend: Api) -> tuple[str, ...]:
    """Algorithms of convolution that a backend knows, `auto` first."""
    from kernels.catalog import ALGORITHMS
    from kernels.lower.cpu import ALGORITHMS as CPU_ALGORITHMS

    return CPU_ALGORITHMS if backend is Api.CPU else ("auto", *ALGORITHMS)


def misfit(backend: Api, options: Mapping[str, Any]) -> str:
    """Why these values of the axes do not go together on a backend; empty where they do."""
    from kernels.catalog.tiles import granularity_misfit

    algorithm, threads = options.get("algorithm", "auto"), options.get("threads", 0)
    if algorithm not in algorithms_of(backend):
        return f"{backend} has no algorithm `{algorithm}` (it has {', '.join(algorithms_of(backend))})"
    if "granularity" in options and (reason := granularity_misfit(options["granularity"])):
        return reason
    if algorithm == "sequential" and threads > 1:
        return f"algorithm `sequential` is the reference on one thread, not on {threads}"
    if threads == 1 and options.get("thread_life", "kept") != "kept":
        return "one thread is the caller's own: none is started"
    if options.get("pipeline", "none") == "none":
        return ""
    if algorithm == "sequential":
        return "algorithm `sequential` is the reference on one thread: it has no pipeline"
    if threads == 1:
        return "a pipeline has at least two stages, each with a thread of its own"
    if options.get("thread_life", "kept") != "kept":
        return "the stages of a pipeline keep their threads"
    return ""
