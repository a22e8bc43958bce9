"""Plans of one network run on one device, inside a session that the caller holds."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import median

from kernels.compile import compile_graph
from kernels.frontend.load import random_inputs
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.model import Bundle
from kernels.reference import evaluate, roundings
from kernels.tuning import Ran, TimeIsOver, Trial, TrialFailed
from orchestrator.model.device import Precision
from orchestrator.model.errors import AgentFault, DeviceSick
from orchestrator.model.event import Event, Layer, Sample
from workers.devices.fleet import Member
from workers.devices.install import run as run_command
from workers.engines.agent import DeviceSlept, raise_for, raise_if_slept
from workers.engines.models import Arrays
from workers.engines.models.verify_outputs import verify, wrong
from workers.engines.pocketfarm.measure import Block, Measurement, measure
from workers.engines.pocketfarm.plans.plan_store import StoredPlan, store
from workers.session.conditions import SETTINGS, awake

from .plan_comparison import PlanRun

log = logging.getLogger(__name__)
TRIAL_S = (60.0, 15.0)
"""Watchdog of a trial plan: for the plan, and for each of its candidates; drivers compile some for seconds."""
RUN_LIMIT_S = 600.0
"""Watchdog of one run of a whole network."""
WARMUP = 2
RUNS = 3
"""The runs of one plan, where the phone sleeps meanwhile."""


class Bench:
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
        self._networks: dict[str, StoredPlan] = {}
        self._runs = 0
        self.ends_at = inf
        """The end by the monotonic clock: no run goes on beyond it."""

    def left_s(self) -> float:
        return max(0.0, self.ends_at - time.monotonic())

    def trial(self, trial: Trial, passes: int) -> Ran:
        """Run a trial as `RunTrial`: what the device refuses, and what hangs or crashes there, is a TrialFailed."""
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

    def network(self, options: Options, samples: int, passes: int) -> PlanRun:
        """The whole network, compiled so; outputs are verified where layers are profiled. Raises TimeIsOver."""
        block = self._block(samples, passes, warmup=WARMUP, deadline_s=RUN_LIMIT_S)
        measured = self._run(self._network(options), self._inputs, block)
        events = measured.run.events
        times = tuple(e.duration_ns / 1e6 for e in events if isinstance(e, Sample) and e.phase == "timed")
        by_layer = {layer: median(passes.values()) for layer, passes in _passes_ms(events).items()}
        return PlanRun(times, by_layer, self._wrong(measured) if passes else ())

    def _wrong(self, measured: Measurement) -> tuple[str, ...]:
        return wrong(verify(measured.outputs, self.reference(), Precision(self._options.precision), self._in_precision))

    def reference(self) -> Arrays:
        """The network's outputs in double precision."""
        self._reference = self._reference or evaluate(self._graph, self._inputs)
        return self._reference

    def _in_precision(self) -> Arrays:
        self._rounded = self._rounded or evaluate(self._graph, self._inputs, **roundings(self._options.precision))
        return self._rounded

    def _network(self, options: Options) -> StoredPlan:
        """Compiled and written once: a network's weights may be large."""
        key = repr(options)
        if key not in self._networks:
            limits = Limits() if options.backend == "cpu" != self._options.backend else self._limits
            bundle = compile_graph(self._graph, options, limits, spirv_cache=self.spirv_cache)
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
        """Measure within the time that is left. Raises TimeIsOver where that was too short."""
        left_s = self.left_s()
        if left_s <= 0:
            raise TimeIsOver
        if left_s >= block.deadline_s:
            return measure(self._member, stored, inputs, block, go_on, lambda *_: None)
        try:
            measured = measure(self._member, stored, inputs, replace(block, deadline_s=left_s), go_on, lambda *_: None)
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


def go_on() -> None:
    """Outside the queue there is no lease to lose."""
