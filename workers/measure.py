"""One run of one plan on one device, inside a session: push, start, follow, collect."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from orchestrator.errors import AgentFault, DeviceSick, FarmError, LeaseLost, TransientError
from orchestrator.model.device import Api, DeviceFacts
from orchestrator.model.event import Event, Output, Sample
from orchestrator.model.experiment import SETUP_S, SUSTAINED_MARGIN
from orchestrator.model.live import Phase
from orchestrator.model.power import PowerSeries

from .agent import AgentRun, CpuUse, Follower, RunRequest, has_turn, start_agent, stop_agents
from .device.base import DeviceConnection
from .fleet import Member
from .install import put_files, run
from .plans import Arrays, StoredPlan
from .power import PowerMeter
from .supply import PlannedCut

log = logging.getLogger(__name__)
_DTYPES = {"f32": "<f4", "f16": "<f2", "i32": "<i4", "u8": "|u1"}
_TRANSIENT = {"device_error", "io", "storage_full", "cancelled"}
"""Error codes of the agent that speak of the device, not of the workload; a `cancelled` not by us is a takeover."""

Report = Callable[[Phase, int, int, float | None], None]
"""phase, samples done, of how many, ms per inference of the latest"""


class PowerContaminated(TransientError):
    """The phone did not begin to run from its battery within the time that it had."""

    cause = "power_contaminated"

    def __init__(self, message: str, *, device: str) -> None:
        remedy = "check that the supply is really cut: some hubs switch the data lines and leave the power on"
        super().__init__(f"the agent saw no discharging battery: {message}", device=device, remedy=remedy)


Setup = Literal["cold", "warm", "cached", "any"]
"""Which compiled programs a fresh process finds. cold: none, neither the agent's nor the driver's; warm: the driver's,
if it keeps any; cached: the agent's too; any: as earlier runs left them."""


@dataclass(frozen=True)
class Block:
    """How one block is run."""

    name: str
    """`<job>/<attempt>`: with the device's marker before it, the agent's."""
    warmup: int
    samples: int
    """Each of one inference, or of a stream of `inferences`."""
    deadline_s: float
    layer_passes: int = 0
    threads: int = 0
    inferences: int = 1
    cpu_use: CpuUse = field(default_factory=CpuUse)
    power_period_ms: int = 0
    idle_s: float = 0.0
    load_s: float = 0.0
    warmup_stable: float = 0.0
    cpus: str = ""
    await_discharging_s: float = 0.0
    discharging_sign: int = 0
    """Of the gauge, as it was calibrated; 0: not known."""
    setup: Setup = "any"

    @property
    def is_primed(self) -> bool:
        """A run before the measured one leaves the compiled programs that it is to find."""
        return self.setup in ("warm", "cached")

    @property
    def expected_s(self) -> float:
        """How long the agent needs from its start, at most: where the load has a length, its parts and a margin."""
        if not self.load_s:
            return self.deadline_s
        return min(self.deadline_s, 2 * self.idle_s + (1 + SUSTAINED_MARGIN) * self.load_s + SETUP_S)


@dataclass(frozen=True)
class Measurement:
    run: AgentRun
    outputs: dict[str, npt.NDArray[Any]]
    """Empty where the run did not end with a result."""
    series: tuple[PowerSeries, ...] = ()
    """Readings of the meter."""


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
) -> Measurement:
    """The caller holds a session. A run that failed or was killed is returned too: `raise_for` tells.

    `check` is called before each step on the device and stops the agent unless it raises LeaseLost. `meter` measures
    meanwhile; `cut` is begun when the agent runs and ended when it is done, or by the session where it is not.
    """
    connection = member.connection
    total = block.warmup + block.samples
    check()
    report("pushing", 0, total, None)
    plan = put_files(connection, "plans", stored.plan_hash, stored.files)
    check()
    with _run_folder(connection, block) as folder:
        request = _request(member, stored, block, folder, plan, _push_inputs(connection, stored, inputs))
        if block.is_primed:
            report("waiting", 0, total, None)
            raise_for(_drive(member, _priming(request), check, lambda _: None, None), member.facts.serial)
        check()
        report("waiting", 0, total, None)
        with _metered(meter) as series:
            done = _drive(member, request, check, _Counter(total, report), cut)
            series += meter.stop(done.events) if meter else ()
        report("collecting", total, total, None)
        outputs = {} if done.killed or done.error else _pull_outputs(connection, stored, request, done.events)
    return Measurement(done, outputs, tuple(series))


def raise_for(run: AgentRun, serial: str) -> None:
    """Turn the agent's error, if it reported one, into ours: AgentFault or DeviceSick."""
    error = run.error
    if error is None:
        return
    step = f" in {error.step}" if error.step else ""
    if error.code == "power_contaminated":
        raised: FarmError = PowerContaminated(error.message, device=serial)
        raise raised
    kind: type[FarmError] = DeviceSick if error.code in _TRANSIENT else AgentFault
    raised = kind(f"the agent reported {error.code}{step}: {error.message}", device=serial)
    raised.cause = error.code
    raise raised


def device_option(facts: DeviceFacts, api: Api) -> str:
    """A workstation may have several devices per API: name ours. A phone has one."""
    found = facts.api(api)
    return found.device_name if facts.kind == "workstation" and found and api != Api.CPU else ""


def _request(
    member: Member, stored: StoredPlan, block: Block, folder: str, plan: str, inputs: dict[str, str]
) -> RunRequest:
    return RunRequest(
        plan=plan,
        inputs=inputs,
        folder=folder,
        marker=member.marker + block.name,
        warmup=block.warmup,
        samples=block.samples,
        layer_passes=block.layer_passes,
        threads=block.threads,
        inferences=block.inferences,
        cpu_use=block.cpu_use,
        power_period_ms=block.power_period_ms,
        deadline_s=block.deadline_s,
        cache="" if block.setup in ("cold", "warm") else f"{member.connection.folder}/cache",
        device=device_option(member.facts, Api(stored.plan.api)),
        idle_ms=round(1000 * block.idle_s),
        load_ms=round(1000 * block.load_s),
        warmup_stable=block.warmup_stable,
        cpus=block.cpus,
        await_discharging_ms=round(1000 * block.await_discharging_s),
        discharging_sign=block.discharging_sign if block.await_discharging_s else 0,
        environment=without_driver_caches(folder) if block.setup == "cold" else (),
    )


def _priming(request: RunRequest) -> RunRequest:
    """The same set-up and one inference, nothing measured."""
    return replace(
        request, folder=f"{request.folder}/primed", marker=f"{request.marker}/primed", warmup=1, samples=0,
        layer_passes=0, power_period_ms=0, idle_ms=0, load_ms=0, warmup_stable=0.0, await_discharging_ms=0,
        discharging_sign=0,
    )  # fmt: skip


def without_driver_caches(folder: str) -> tuple[str, ...]:
    """Variables with which the drivers that keep compiled programs on disk find none: PoCL, Mesa, NVIDIA."""
    return (
        f"POCL_CACHE_DIR={folder}/driver-cache",
        "MESA_SHADER_CACHE_DISABLE=true",
        "__GL_SHADER_DISK_CACHE=0",
        "CUDA_CACHE_DISABLE=1",
    )


@contextmanager
def _metered(meter: PowerMeter | None) -> Iterator[list[PowerSeries]]:
    """The meter measures inside, and is free afterwards whatever happens. Raises MeterLost, TransportLost."""
    series: list[PowerSeries] = []
    if meter is None:
        yield series
        return
    meter.start()
    try:
        yield series
    except BaseException:
        _quietly(meter.stop)
        raise


def _drive(
    member: Member,
    request: RunRequest,
    check: Callable[[], None],
    on_event: Callable[[Event], None],
    cut: PlannedCut | None,
) -> AgentRun:
    """Start and follow; whatever ends it early stops the agent, except a lost lease: then the device is not ours."""
    try:
        start_agent(member, request)
        if cut:
            cut.begin()
        done = Follower(member, request, check, on_event, cut).follow()
        if cut:
            cut.end()
        return done
    except LeaseLost:
        raise
    except BaseException:
        _quietly(lambda: stop_agents(member, request.marker))
        raise


class _Counter:
    """Turns events into progress: `running` once the agent has its turn, then sample by sample."""

    def __init__(self, total: int, report: Report) -> None:
        self._total, self._report, self._done = total, report, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sample):
            self._done += 1
            self._report("running", self._done, self._total, event.duration_ns / event.inferences / 1e6)
        elif has_turn(event) and not self._done:
            self._report("running", 0, self._total, None)


@contextmanager
def _run_folder(connection: DeviceConnection, block: Block) -> Iterator[str]:
    """A fresh folder of this attempt, removed afterwards unless the device is no longer ours."""
    folder = f"{connection.folder}/runs/{block.name.replace('/', '-')}"
    run(connection, "rm", "-rf", folder)
    run(connection, "mkdir", "-p", folder)
    try:
        yield folder
    except LeaseLost:
        raise
    except BaseException:
        _quietly(lambda: run(connection, "rm", "-rf", folder))
        raise
    else:
        _quietly(lambda: run(connection, "rm", "-rf", folder))


def _push_inputs(connection: DeviceConnection, stored: StoredPlan, inputs: Arrays) -> dict[str, str]:
    """Port name -> path on the device, by content."""
    paths: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        for port in stored.plan.inputs:
            content = np.ascontiguousarray(inputs[port.name], dtype=_DTYPES[port.dtype]).tobytes()
            identity = hashlib.sha256(content).hexdigest()
            file = Path(temporary) / identity
            file.write_bytes(content)
            paths[port.name] = f"{put_files(connection, 'inputs', identity, {'data.bin': file})}/data.bin"
    return paths


def _pull_outputs(
    connection: DeviceConnection, stored: StoredPlan, request: RunRequest, events: list[Event]
) -> dict[str, npt.NDArray[Any]]:
    """Every output of the plan, verified by the SHA-256 in its event. Raises DeviceSick."""
    written = {event.name: event for event in events if isinstance(event, Output)}
    outputs: dict[str, npt.NDArray[Any]] = {}
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        for port in stored.plan.outputs:
            if port.name not in written:
                raise DeviceSick(f"the agent wrote no output {port.name!r}", device=connection.serial)
            file = Path(temporary) / "output.bin"
            connection.pull(f"{request.outputs}/{written[port.name].file.rsplit('/', 1)[-1]}", file)
            content = file.read_bytes()
            if hashlib.sha256(content).hexdigest() != written[port.name].sha256:
                raise DeviceSick(f"output {port.name!r} did not arrive intact", device=connection.serial)
            outputs[port.name] = np.frombuffer(content, _DTYPES[port.dtype]).reshape(port.shape)
    return outputs


def _quietly(act: Callable[[], object]) -> None:
    try:
        act()
    except TransientError as e:
        log.info("%s", e)
