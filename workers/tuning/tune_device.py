"""Tune a network on one device: run trial plans through its agent, inside one session, outside the queue."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from kernels.ir.graph import Graph
from kernels.options import Choice, Options
from kernels.tuning import (
    Database,
    Found,
    Progress,
    Strategy,
    applicable,
    steps,
    tune,
)
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.system.config import Settings
from workers.engines.pocketfarm.plans.compiler_options import limits_of
from workers.engines.pocketfarm.plans.tuned_choices import FILE, key_of
from workers.infer import LOCK_WAIT_S, find_member
from workers.session.session import session

from .bench import Bench, go_on
from .plan_comparison import Verdict, settle

SEARCH = 0.6
"""Share of a budget after which the search ends: the whole networks are to be compared in the rest."""
LEAST_S = 1.0
"""A layer has no less time than this, while there is any: what is left then waits for the next tuning."""


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning."""

    device: DeviceFacts
    key: str
    """The key of the device in the database."""
    choices: tuple[Found, ...]
    """All that is known of the network's layers now."""
    searched: tuple[str, ...]
    """The layers that were searched just now."""
    left: int
    """Layers that the budget left no time for."""
    verdict: Verdict
    search_s: float
    compare_s: float


def tune_on(
    *,
    device: str | None,
    graph: Graph,
    options: Options,
    settings: Settings,
    strategy: Callable[[float], Strategy],
    budget_s: float | None = None,
    began: float | None = None,
    again: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_compare: Callable[[int, int], None] = lambda *_: None,
) -> Tuned:
    """Search what the database does not know yet, compare the whole network tuned and untuned, keep what gains.

    `device`: a serial or an adb address; None: this host. `strategy`: from the seconds that one layer may take.
    `budget_s`: of all from `began` (by the monotonic clock; None: now) to the end of the comparison; what it leaves no
    time for, the next call goes on with.
    The database is saved after each layer. Raises DeviceBusy where a session holds the device, Unsupported, the
    transient errors, and CompileError where there is nothing to tune.
    """
    now, api = time.monotonic(), Api(options.backend)
    began = now if began is None else began
    member = find_member(device, api, settings)
    limits = limits_of(member.facts, api, Precision(options.precision))
    database, key = Database(settings.state / FILE), key_of(member.facts, api, options.threads)
    keys = steps(graph, options, limits)
    with (
        tempfile.TemporaryDirectory(prefix="pocketfarm-tune-") as scratch,
        session(member, None, settings.state, go_on, lock_wait_s=LOCK_WAIT_S),
    ):
        bench = Bench(member, graph, options, limits, settings.state / "cache" / "spirv", Path(scratch))
        if budget_s is not None:
            bench.reference()  # within the budget too

        def how(left: int) -> Strategy | None:
            left_s = bench.left_s()
            return strategy(max(left_s / left, min(LEAST_S, left_s))) if left_s > 0 else None

        searched, open_ = list[Found](), dict[str, Choice]()
        for share in (1.0,) if budget_s is None else (SEARCH, 1.0):
            bench.ends_at = began + share * (inf if budget_s is None else budget_s)
            searched += tune(
                graph, options, limits, bench.trial, device=key, database=database, strategy=how,
                again=again and not searched, on_progress=on_progress, spirv_cache=bench.spirv_cache,
            )  # fmt: skip
            if open_ := applicable(graph, options, limits, database.tuned(key, options.precision, proven=False)):
                break  # there is something to compare
        searched_at = time.monotonic()
        bench.ends_at = began + (inf if budget_s is None else budget_s)
        verdict = settle(
            open_, keys, lambda choices, *how: bench.network(replace(options, tuned=choices), *how), on_compare
        )
    database.mark(key, options.precision, verdict.kept, kept=True)
    database.mark(key, options.precision, verdict.dropped, kept=False)
    database.save()
    known = [database.get(key, options.precision, layer) for layer in dict.fromkeys(keys.values())]
    return Tuned(
        device=member.facts,
        key=key,
        choices=tuple(each for each in known if each),
        searched=tuple(each.conv for each in searched),
        left=sum(each is None for each in known),
        verdict=verdict,
        search_s=searched_at - now,
        compare_s=time.monotonic() - searched_at,
    )
