"""Hold devices in sessions, each with a resident agent, for as long as a `with` block lasts."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kernels.errors import interruptible
from orchestrator.model.device import Api, DeviceState
from orchestrator.model.errors import FarmError, LeaseLost
from orchestrator.model.experiment import Conditions
from orchestrator.model.job import Cell
from orchestrator.model.record import ConditionProof
from orchestrator.system.config import Settings
from workers.claim import JobCancelled
from workers.devices.fleet import Member, stop_agents
from workers.devices.install import put_files
from workers.engines.agent import tenths
from workers.engines.models import Arrays
from workers.engines.pocketfarm.measure.ports import TOKENS, push_inputs
from workers.engines.pocketfarm.measure.request import device_option
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.enrolment import store
from workers.session.session import Session, session

from .wire import AgentWire

READY_S = 600.0
"""The time that a device may take to load and warm its networks."""
END_S = 20.0
LOOK_S = 1.0
WARMUP = 3
TRIALS = 5
"""Inferences that tell how long a network takes there, once it is warm."""


@dataclass(frozen=True)
class Network:
    """A network that a server is asked for by name."""

    name: str
    cell: Cell
    prompt: int = 0
    """Tokens of a prompt, and of its answer, that tell how long one takes; 0: it is no language model."""
    generate: int = 0


@dataclass
class Resident:
    """A device that serves."""

    member: Member
    wire: AgentWire | None = None
    expected_s: dict[str, float] = field(default_factory=dict)
    """Mean time of an inference of each network, before the run."""
    plans: dict[str, str] = field(default_factory=dict)
    """Network -> hash of its plan."""
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    proofs: tuple[ConditionProof, ...] = ()
    error: Exception | None = None
    """The error that ended it before its time."""


class Serving:
    """Servers in a `with` block: all are ready inside, and everything is put back after it.

    Each has a thread, because a session is held by the thread that began it.
    """

    def __init__(
        self,
        members: Sequence[Member],
        networks: Sequence[Network],
        conditions: Conditions | None,
        settings: Settings,
        *,
        power_period_s: float = 0.1,
        lasting_s: float = 3600.0,
        lock_wait_s: float | None = None,
    ) -> None:
        """`lasting_s`: after so long an agent that is still there ends by itself."""
        self.residents = [Resident(member) for member in members]
        self._networks, self._conditions, self._settings = networks, conditions, settings
        self._plans = Plans(settings.state)
        self._period_ms, self._lasting_s, self._lock_wait_s = round(1000 * power_period_s), lasting_s, lock_wait_s
        self._ready = threading.Semaphore(0)
        self._over, self._stopped = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=self._hold, args=(each,), daemon=True) for each in self.residents]

    def __enter__(self) -> Serving:
        """Raises what the first device raised that cannot serve."""
        for thread in self._threads:
            thread.start()
        try:
            while not all(each.wire or each.error for each in self.residents):
                self._ready.acquire()
                failed = next((each.error for each in self.residents if each.error), None)
                if failed is not None:
                    raise failed
        except BaseException:
            self._stopped.set()
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise JobCancelled("another server could not be had", remedy="see the error of that one")

    def _hold(self, resident: Resident) -> None:
        try:
            with (
                interruptible(self._check),
                session(
                    resident.member, self._conditions, self._settings.state, self._check, lock_wait_s=self._lock_wait_s
                ) as held,
            ):
                resident.state_before = held.state_before
                self._serve(resident, held)
            resident.state_after, resident.proofs = held.state_after, tuple(held.proofs)
        except Exception as e:  # told by `__enter__`, or by the run as a server that went away
            resident.error = e
        finally:
            self._ready.release()

    def _serve(self, resident: Resident, held: Session) -> None:
        """Serve until the run is over. Raises LeaseLost where the phone was taken."""
        member, marker = resident.member, f"{resident.member.marker}serve"
        enrolment = store.load(self._settings.state, member.facts.serial, member.facts.fingerprint)
        stream = member.connection.stream(self._argv(resident, marker))
        wire = AgentWire(stream, member.facts.serial, enrolment.gauge if enrolment else None)
        try:
            wire.await_ready(READY_S)
            for network in self._networks:
                resident.expected_s[network.name] = _trial(wire, network)
            resident.wire = wire
            self._ready.release()
            while not self._over.wait(LOOK_S):
                held.check()
            with suppress(FarmError):  # it may have gone in the run, which has told so
                wire.finish(END_S)
        except LeaseLost:
            wire.shut()  # whoever listens hears that it has gone
            self._over.wait()
            raise
        finally:
            wire.close()
            with suppress(FarmError):
                stop_agents(member, marker)

    def _inputs(self, cell: Cell) -> Arrays:
        models = self._plans.models
        if cell.text is not None:
            return {TOKENS: models.texts.tokens(cell.workload, cell.text)}
        return models.inputs(cell.workload, cell.batch)

    def _argv(self, resident: Resident, marker: str) -> list[str]:
        """The agent's command line; plans and inputs lie on the device then."""
        member = resident.member
        connection, facts = member.connection, member.facts
        words = ["env", *member.environment] if member.environment else []
        words += [member.agent, "serve", "--marker", marker, "--deadline-s", f"{self._lasting_s:g}"]
        words += ["--warmup", str(WARMUP), "--power-period-ms", str(self._period_ms)] if facts.kind == "phone" else []
        stop_dc = tenths(self._conditions.stop_temp) if self._conditions and facts.kind == "phone" else 0
        words += ["--stop-temp-dc", str(stop_dc)] if stop_dc else []
        for network in self._networks:
            stored = self._plans.plan(network.cell, facts)
            resident.plans[network.name] = stored.plan_hash
            folder = put_files(connection, "plans", stored.plan_hash, stored.files)
            words += ["--plan", f"{network.name}={folder}"]
            inputs = self._inputs(network.cell)
            for port, path in push_inputs(connection, stored, inputs).items():
                words += ["--input", f"{network.name}:{port}={path}"]
        cache = f"{connection.folder}/cache"
        device = next((found for each in self._networks if (found := device_option(facts, Api(each.cell.backend)))), "")
        return [*words, *(("--cache-dir", cache) if self._networks else ()), *(("--device", device) if device else ())]


def _trial(wire: AgentWire, network: Network) -> float:
    times = []
    for _ in range(TRIALS):
        wire.ask(0, network=network.name, prompt=network.prompt, generate=network.generate)
        answer = wire.await_answer(READY_S)
        times.append((answer.end_ns - answer.start_ns) / 1e9)
    return sum(times) / TRIALS
