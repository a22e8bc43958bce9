"""Tune a network on one device: run trial plans through its agent, inside one session, outside the queue."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median

import numpy as np

from kernels.compile import compile_graph
from kernels.frontend.load import random_inputs
from kernels.ir.graph import Graph
from kernels.options import Choice, Limits, Options
from kernels.plan.model import Bundle
from kernels.reference import evaluate
from kernels.tuning import (
    Database,
    Found,
    Progress,
    Ran,
    Strategy,
    TimeIsOver,
    Trial,
    TrialFailed,
    applicable,
    steps,
    tune,
)
from orchestrator.config import Settings
from orchestrator.errors import AgentFault, DeviceSick
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.model.event import Event, Layer, Sample
from workers.devices.fleet import Member
from workers.devices.install import run as run_command
from workers.execution.verify_outputs import verify, wrong
from workers.infer import LOCK_WAIT_S, find_member
from workers.measure import Block, DeviceSlept, Measurement, measure, raise_for, raise_if_slept
from workers.plans.plan_store import Arrays, StoredPlan, limits_of, store
from workers.plans.tuned_choices import FILE, key_of
from workers.session.conditions import SETTINGS, awake
from workers.session.session import session

from .plan_comparison import PlanRun, Verdict, settle

log = logging.getLogger(__name__)
TRIAL_S = (60.0, 15.0)
"""Watchdog of a trial plan: for the plan, and for each of its candidates; drivers compile some for seconds."""
RUN_LIMIT_S = 600.0
"""Watchdog of one run of a whole network."""
WARMUP = 2
RUNS = 3
"""Of one plan, where the phone sleeps meanwhile."""
SEARCH = 0.6
"""Share of a budget after which the search ends: the whole networks are to be compared in the rest."""
LEAST_S = 1.0
"""A layer has no less time than this, while there is any: what is left then waits for the next tuning."""


@dataclass(frozen=True)
class Tuned:
    """What a tuning came to."""

    device: DeviceFacts
    key: str
    """Of the device in the database."""
    choices: tuple[Found, ...]
    """All that is known of the network's layers now."""
    searched: tuple[str, ...]
    """Those that were searched just now."""
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
    again: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_compare: Callable[[int, int], None] = lambda *_: None,
) -> Tuned:
    """Search what the database does not know yet, compare the whole network tuned and untuned, keep what gains.

    `device`: a serial or an adb address; None: this host. `strategy`: from the seconds that one layer may take.
    `budget_s`: of the search and the comparison together; what it leaves no time for, the next call goes on with.
    The database is saved after each layer. Raises DeviceBusy where a session holds the device, Unsupported, the
    transient errors, and CompileError where there is nothing to tune.
    """
    began, api = time.monotonic(), Api(options.backend)
    member = find_member(device, api, settings)
    limits = limits_of(member.facts, api, Precision(options.precision))
    database, key = Database(settings.state / FILE), key_of(member.facts, api, options.threads)
    keys = steps(graph, options, limits)
    with (
        tempfile.TemporaryDirectory(prefix="pocketfarm-tune-") as scratch,
        session(member, None, settings.state, _go_on, lock_wait_s=LOCK_WAIT_S),
    ):
        bench = _Bench(member, graph, options, limits, settings.state / "cache" / "spirv", Path(scratch))
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
        verdict = settle(open_, keys, bench.network, on_compare)
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
        search_s=searched_at - began,
        compare_s=time.monotonic() - searched_at,
    )


class _Bench:
    """Runs plans on one device; the caller holds the session."""

    def __init__(
        self, member: Member, graph: Graph, options: Options, limits: Limits, spirv_cache: Path, scratch: Path
    ) -> None:
        """`scratch`: folder for plans, the caller's to remove."""
        self._member, self._graph, self._options, self._limits = member, graph, options, limits
        self.spirv_cache, self._scratch = spirv_cache, scratch
        self._inputs = random_inputs(graph, 1)
        self._reference: Arrays = {}
        self._rounded: Arrays = {}
        self._networks: dict[tuple[tuple[str, Choice], ...], StoredPlan] = {}
        self._runs = 0
        self.ends_at = inf
        """By the monotonic clock: no run goes on beyond it."""

    def left_s(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())

    def trial(self, trial: Trial, passes: int) -> Ran:
        """As `RunTrial`: what the device refuses, and what hangs or crashes there, is a TrialFailed."""
        first, each = TRIAL_S
        block = self._block(0, passes, warmup=1, deadline_s=first + each * len(trial.graph.nodes))
        stored = self._store(trial.bundle, "trial")
        try:
            measured = self._run(stored, trial.inputs, block)
        except (AgentFault, DeviceSick) as e:
            raise TrialFailed(str(e)) from e
        finally:
            _remove(self._member, stored)
        times = {layer: tuple(passes.values()) for layer, passes in _passes_ms(measured.run.events).items()}
        return Ran(times, measured.outputs)

    def network(self, choices: Mapping[str, Choice], samples: int, passes: int) -> PlanRun:
        """As `contest.RunPlan`; outputs are verified where layers are profiled."""
        block = self._block(samples, passes, warmup=WARMUP, deadline_s=RUN_LIMIT_S)
        measured = self._run(self._network(choices), self._inputs, block)
        events = measured.run.events
        times = tuple(e.duration_ns / 1e6 for e in events if isinstance(e, Sample) and e.phase == "timed")
        by_layer = {layer: median(passes.values()) for layer, passes in _passes_ms(events).items()}
        return PlanRun(times, by_layer, self._wrong(measured) if passes else ())

    def _wrong(self, measured: Measurement) -> tuple[str, ...]:
        return wrong(verify(measured.outputs, self.reference(), Precision(self._options.precision), self._in_single))

    def reference(self) -> Arrays:
        """The network's outputs in double precision."""
        self._reference = self._reference or evaluate(self._graph, self._inputs)
        return self._reference

    def _in_single(self) -> Arrays:
        self._rounded = self._rounded or evaluate(self._graph, self._inputs, dtype=np.float32)
        return self._rounded

    def _network(self, choices: Mapping[str, Choice]) -> StoredPlan:
        """Compiled and written once: a network's weights may be large."""
        key = tuple(choices.items())
        if key not in self._networks:
            options = replace(self._options, tuned=choices)
            bundle = compile_graph(self._graph, options, self._limits, spirv_cache=self.spirv_cache)
            self._networks[key] = self._store(bundle, f"network-{len(self._networks)}")
        return self._networks[key]

    def _store(self, bundle: Bundle, name: str) -> StoredPlan:
        store(bundle, self._scratch / name)
        return StoredPlan(bundle.plan, self._scratch / name, bundle.plan.plan_hash)

    def _block(self, samples: int, passes: int, *, warmup: int, deadline_s: float) -> Block:
        self._runs += 1
        name = f"tune/{self._runs}"
        return Block(
            name, warmup=warmup, samples=samples, deadline_s=deadline_s, layer_passes=passes,
            threads=self._options.threads,
        )  # fmt: skip

    def _run(self, stored: StoredPlan, inputs: Arrays, block: Block) -> Measurement:
        """A run during which the phone slept is discarded and made again, with the phone awake.

        Raises AgentFault and DeviceSick for a run without a result, DeviceSlept where each was slept through.
        """
        serial = self._member.facts.serial
        for left in reversed(range(RUNS)):
            measured = self._measured(stored, inputs, block)
            raise_for(measured.run, serial)
            if measured.run.killed:
                raise DeviceSick("the agent ended without a result: most likely out of memory", device=serial)
            try:
                raise_if_slept(measured.run, serial)
                break
            except DeviceSlept as e:
                if not left:
                    raise
                log.warning("%s; it is discarded", e)
                self._wake()
        return measured

    def _measured(self, stored: StoredPlan, inputs: Arrays, block: Block) -> Measurement:
        """Within the time that is left. Raises TimeIsOver where that was too short."""
        left_s = self.left_s()
        if left_s <= 0:
            raise TimeIsOver
        if left_s >= block.deadline_s:
            return measure(self._member, stored, inputs, block, _go_on, lambda *_: None)
        try:
            measured = measure(self._member, stored, inputs, replace(block, deadline_s=left_s), _go_on, lambda *_: None)
        except DeviceSick as e:
            raise (TimeIsOver if self.left_s() <= 0 else e) from e
        if measured.run.error is not None and self.left_s() <= 0:
            raise TimeIsOver
        return measured

    def _wake(self) -> None:
        if self._member.facts.kind == "phone":
            SETTINGS[awake.NAME].prepare(self._member.connection)


def _passes_ms(events: Iterable[Event]) -> dict[str, dict[int, float]]:
    """Layer -> pass -> device time, the layer's steps added up."""
    found: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for event in events:
        if isinstance(event, Layer):
            found[event.layer][event.repeat] += event.duration_ns / 1e6
    return found


def _remove(member: Member, stored: StoredPlan) -> None:
    """Trial plans are large and run once or twice: they do not stay on the device."""
    folder = f"{member.connection.folder}/plans/{stored.plan_hash[:16]}"
    try:
        run_command(member.connection, "rm", "-rf", folder, deadline_s=60.0)
    except DeviceSick as e:  # the result of the trial counts for more
        log.warning("%s", e)


def _go_on() -> None:
    """Outside the queue there is no lease to lose."""
