"""One run of one plan on one device, inside a session: push, start, follow, collect."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from orchestrator.model.device import Reading
from orchestrator.model.event import Event, Power, Sample
from orchestrator.model.live.announcement import Learnt
from orchestrator.model.power import PowerSeries
from workers.connection.ahead import Ahead
from workers.devices.fleet import Member
from workers.devices.install import put_files, run
from workers.engines.agent import AgentRun, drive, has_turn, run_folder
from workers.engines.engine import Report, Trips
from workers.engines.models import Arrays
from workers.engines.pocketfarm.plans.plan_store import StoredPlan
from workers.engines.powered import metered, read_meter
from workers.power import PowerMeter
from workers.session.supply import PlannedCut

from .block import Block
from .checkpoints import epochs_before, epochs_in, left_by_attempts, place_of_epoch, pull_checkpoint
from .ports import pull_outputs, small_outputs
from .prepared import PLANS, prepared_for
from .request import priming


@dataclass(frozen=True)
class Measurement:
    run: AgentRun
    each: dict[str, npt.NDArray[Any]]
    """Outputs: inferences x the output's dimensions, as many as the inputs had frames. Empty without a result."""
    series: tuple[PowerSeries, ...] = ()
    """Readings of the meter."""
    checkpoint: bytes = b""
    """The checkpoint of a training that is over, or what a text has left where the block keeps it."""
    earlier: tuple[Sample, ...] = ()
    """Epochs of earlier attempts, from whose checkpoint this one went on."""

    @property
    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """The outputs of the first inference."""
        return {name: values[0] for name, values in self.each.items()}


def measure(
    member: Member,
    stored: StoredPlan,
    inputs: Arrays,
    block: Block,
    check: Callable[[], None],
    report: Report,
    *,
    meter: PowerMeter | None = None,
    cut: PlannedCut | None = None,
    tidy: list[Sequence[str]] | None = None,
    trips: Trips | None = None,
) -> Measurement:
    """The caller holds a session. A run that failed or was killed is returned too: `raise_for` tells.

    `check` is called before each step on the device and stops the agent unless it raises LeaseLost. `meter` measures
    meanwhile; `cut` is begun when the agent runs and ended when it is done, or by the session where it is not. `tidy`
    gets the commands that remove what it leaves on the device; None: they are run here. `trips`: those of the
    session's blocks.
    """
    total = block.warmup + (sum(stage.epochs for stage in stored.plan.stages) or block.samples)
    check()
    report("pushing", 0, total, None)
    trips = trips or Trips(Ahead(member.connection))
    prepared = prepared_for(trips, member, stored, inputs, block)
    connection, request = trips.ahead, prepared.request
    member = replace(member, connection=connection)
    with run_folder(connection, request.folder, tidy):
        put_files(connection, PLANS, stored.plan_hash, stored.files, verified=trips.verified)
        check()
        prepared.inputs.push(connection, trips.verified)
        if block.is_primed:
            report("waiting", 0, total, None)
            primed = drive(member, priming(request), check, lambda _: None, None)
            if primed.killed or primed.error:
                return Measurement(primed, {})
        check()
        report("waiting", 0, total, None)
        journals: tuple[str, ...] = ()
        told: tuple[Sample, ...] = ()
        if request.checkpoint:
            left = left_by_attempts(connection, request.checkpoint)
            journals = tuple(name for name in left.journals if name != request.journal)
            run(connection, "rm", "-f", request.journal)  # of a plan that this attempt has given up
            request = replace(request, resume=left.checkpoint)
            told = epochs_in(connection, journals) if request.resume else ()
        with metered(meter) as series:
            files = small_outputs(stored, request)
            then = () if meter or cut else trips.coming(trips)
            done = drive(member, request, check, _Counter(stored, total, report), cut, files, then)
            series += read_meter(meter, done.events) if meter else ()
        report("collecting", total, total, None)
        went_well = not (done.killed or done.error)
        outputs = pull_outputs(connection, stored, request, done.events, done.read) if went_well else {}
        checkpoint, earlier = b"", told
        if request.checkpoint:
            own = [event for event in done.events if isinstance(event, Sample)]
            earlier = epochs_before(own, told, stored) if own or went_well else ()
            if went_well:
                checkpoint = pull_checkpoint(connection, request.checkpoint, (*journals, request.journal))
        if request.state and went_well:
            checkpoint = pull_checkpoint(connection, request.state, ())
    return Measurement(done, outputs, tuple(series), checkpoint, earlier)


class _Counter:
    """Turns events into progress: `running` once the agent has its turn, then by each sample and reading."""

    def __init__(self, plan: StoredPlan, total: int, report: Report) -> None:
        self._plan, self._total, self._report = plan, total, report
        self._done, self._running = 0, False
        self._last_ms: float | None = None
        self._reading: Reading | None = None
        self._learnt: Learnt | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sample):
            self._done += 1
            self._last_ms = event.duration_ns / event.inferences / 1e6
            if event.stage and event.epoch is not None:
                self._done = place_of_epoch(event, self._plan) + 1
                self._learnt = Learnt(stage=event.stage, epoch=event.epoch, loss=event.loss, error=event.error)
        elif isinstance(event, Power):
            self._reading = event.reading(time.time())
        elif self._running:
            return
        self._running = self._running or isinstance(event, Sample) or has_turn(event)
        if self._running:
            self._report("running", self._done, self._total, self._last_ms, self._reading, self._learnt)
