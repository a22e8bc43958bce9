"""Queueing experiments on the devices of this host: choose them, hold them, run, and let them go."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from orchestrator.acts import held
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Device, DeviceState, Health
from orchestrator.model.errors import FarmError, NoData, SpecError, TransportLost, Unsupported
from orchestrator.model.quantity import counted
from orchestrator.queueing.capacity import MOST_RUNS, Capacity, check_target, find_live_capacity
from orchestrator.queueing.kept import KeptServer, keep_run
from orchestrator.queueing.live import LiveRun, run_live
from orchestrator.queueing.live.station import network_name
from orchestrator.queueing.requests import Requests
from orchestrator.queueing.spec import Answer, QueueingSpec, ServerGroup
from orchestrator.spec.expansion import device_selection
from orchestrator.system.config import Settings
from workers.connection.adb import server_of
from workers.devices.admit import enrol_phone
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Member
from workers.devices.lookup import find_phone
from workers.devices.workstation import enrol_workstation
from workers.serving import Network, Resident, Serving

from .access import COMMAND_LINE, site_of, user_by

PARALLEL = 16
SETUP_S = 900.0
"""The time that compiling, pushing and warming may take, before an agent ends by itself."""
LOCK_WAIT_S = 600.0
"""The time that a block on a device may take to end."""


@dataclass(frozen=True)
class OnDevices:
    """Runs, and the devices that served in them."""

    spec: QueueingSpec
    runs: list[LiveRun]
    residents: list[Resident]

    def keep(self, ledger: Ledger) -> str:
        """Store them; the run's id. Raises ServiceDown."""
        names = [
            group.name if group.count == 1 else f"{group.name}-{number + 1}"
            for group in self.spec.servers
            for number in range(group.count)
        ]
        servers = [
            KeptServer(
                server=name, device=each.member.facts, agent_sha256=each.member.agent_sha256, plans=each.plans,
                expected_s=each.expected_s, state_before=each.state_before, state_after=each.state_after,
                conditions=each.proofs, ended_by=str(each.error or ""),
            )
            for name, each in zip(names, self.residents, strict=True)
        ]  # fmt: skip
        readings = [each.wire.readings if each.wire else [] for each in self.residents]
        return keep_run(ledger, self.spec, self.runs, servers, readings)


def run_on_devices(spec: QueueingSpec, settings: Settings, ledger: Ledger, tell: Callable[[str], None]) -> OnDevices:
    """All replications, one after the other, on the same devices.

    Raises Unsupported for what phones cannot do, NoData where too few devices fit, DeviceBusy where somebody holds one,
    and what keeps a device from serving before the first request; one that goes away later is a result.
    """
    with _resident(spec, settings, ledger, tell) as serving:
        return _replicated(spec, serving, tell)


def run_at_loads(
    spec: QueueingSpec, loads: Sequence[float], settings: Settings, ledger: Ledger, tell: Callable[[str], None]
) -> Generator[tuple[float, OnDevices]]:
    """The spec at several loads, one after the other on the same devices: shares of what these serve, always busy, by
    the times that they took when they were warmed. Raises as `run_on_devices` does; SpecError: it has no rates."""
    spec.offered_rates()
    with _resident(spec, settings, ledger, tell, len(loads)) as serving:
        whole = _capacity(spec, serving.residents)
        tell(f"capacity: {whole:.4g} requests/s")
        for load in loads:
            tell(f"load {load:g}: {load * whole:.4g} requests/s")
            _forget_readings(serving)
            yield load, _replicated(spec.at_rate(load * whole), serving, tell)


def capacity_on_devices(
    spec: QueueingSpec, settings: Settings, ledger: Ledger, tell: Callable[[str], None]
) -> tuple[Capacity, list[str]]:
    """The largest rate that keeps to the target, and the runs that were kept on the way, each with a seed that its spec
    tells; `tell` hears of each at once. At most `MOST_RUNS` of the spec's `duration`.

    Raises as `run_on_devices` does; SpecError: no target or no rates, or nothing that is searched meets it, or all
    does; TransportLost: a phone went away, so that the others would be judged for it.
    """
    check_target(spec)
    once, kept = spec.model_copy(update={"replications": 1}), []
    at_most = f"at most {MOST_RUNS} runs of {spec.duration:g} s"
    with _resident(once, settings, ledger, tell, MOST_RUNS, at_most) as serving:
        whole = _capacity(spec, serving.residents)
        tell(f"capacity: {whole:.4g} requests/s; {at_most}")

        def run(at: QueueingSpec) -> Requests | None:
            tell(f"{sum(at.offered_rates().values()):.4g} requests/s")
            _forget_readings(serving)
            ran = _replicated(at, serving, lambda _: None)
            kept.append(ran.keep(ledger))
            tell(f"kept as {kept[-1]}")
            (live,) = ran.runs
            if live.gone:
                raise TransportLost(
                    f"phones went away at {sum(at.offered_rates().values()):.4g}/s: {'; '.join(live.run.doubts)}",
                    remedy=f"see `farm queue show {kept[-1]}`, and search again",
                )
            return None if live.given_up else live.run.requests

        return find_live_capacity(once, whole, run), kept


def _forget_readings(serving: Serving) -> None:
    """Remove the readings of the runs before."""
    for each in serving.residents:
        if each.wire is not None:
            del each.wire.readings[:-1]


@contextmanager
def _resident(
    spec: QueueingSpec, settings: Settings, ledger: Ledger, tell: Callable[[str], None], turns: int = 1, note: str = ""
) -> Iterator[Serving]:
    """The devices, held and ready to serve the spec so many times. `note`: of the hold, instead of when they have."""
    check_possible(spec)
    members = choose(spec, settings, ledger)
    serials = [member.facts.serial for member in members]
    lasting_s = SETUP_S + turns * spec.replications * (2 * spec.duration + 120.0)
    tell(f"servers: {', '.join(serials)}")
    end = time.strftime("%H:%M", time.localtime(time.time() + turns * spec.replications * spec.duration))
    with (
        held(
            site_of(settings, ledger), user_by(COMMAND_LINE), serials,
            f"queueing {spec.name}, {note or f'done not before {end}'}",
        ),
        Serving(
            members, networks_of(spec), spec.conditions, settings, power_period_s=spec.power_period,
            lasting_s=lasting_s, lock_wait_s=LOCK_WAIT_S,
        ) as serving,
    ):  # fmt: skip
        yield serving


def _replicated(spec: QueueingSpec, serving: Serving, tell: Callable[[str], None]) -> OnDevices:
    measured_s = [[_expected_s(spec, each, kind) for kind in range(len(spec.classes))] for each in serving.residents]
    runs = []
    for number, seed in enumerate(np.random.SeedSequence(spec.seed).spawn(spec.replications)):
        tell(f"run {number + 1} of {spec.replications}: {spec.duration:g} s")
        wires = [each.wire for each in serving.residents if each.wire is not None]
        runs.append(run_live(spec, seed, wires, measured_s))
    return OnDevices(spec, runs, serving.residents)


def _capacity(spec: QueueingSpec, residents: Sequence[Resident]) -> float:
    """Requests a second of the spec's mix, in full batches. Raises SpecError: it has no rates."""
    rates = spec.offered_rates()
    groups = [group for group in spec.servers for _ in range(group.count)]
    size = spec.batch.size
    full = size / (1 + spec.batch.marginal * (size - 1))

    def seconds(group: ServerGroup, resident: Resident, kind: int) -> float:
        if spec.classes[kind].infer is None:
            return spec.mean_service_s(group, spec.classes[kind]) / full
        return resident.expected_s[network_name(kind, size)] * (spec.classes[kind].inferences or 1) / size

    return sum(
        sum(rates.values())
        / sum(rates[of.name] * seconds(group, resident, kind) for kind, of in enumerate(spec.classes))
        for group, resident in zip(groups, residents, strict=True)
    )


def check_possible(spec: QueueingSpec) -> None:
    """Raises Unsupported, SpecError."""
    if spec.stations:
        raise Unsupported("networks of stations are simulated alone", remedy="add --simulate")
    if spec.batch.continuous or (spec.batch.size > 1 and any(e.infer and e.infer.language_model for e in spec.classes)):
        raise Unsupported("batch: a phone generates one sequence at a time", remedy="add --simulate")
    highest = max(each.priority for each in spec.classes)
    if spec.preemption != "none" and (whole := [e for e in spec.classes if e.priority < highest and not e.inferences]):
        raise Unsupported(
            f"preemption: a request of class {whole[0].name} is one inference, and a phone that has begun one ends it",
            remedy="say of how many `inferences` its requests are, leave out `preemption`, or simulate it: --simulate",
        )
    for group in spec.servers:
        if group.devices is None:
            raise SpecError(
                f"server {group.name} names no devices",
                remedy='say which serve: `devices: model == "SM-G930F"`, or simulate them: --simulate',
            )


def networks_of(spec: QueueingSpec) -> list[Network]:
    """Return the networks that every server loads: one a class, and with batches a second plan for full ones."""
    sizes = sorted({1, spec.batch.size})
    found = []
    for kind, of in enumerate(spec.classes):
        if of.infer is not None and isinstance(of.service, Answer):
            found.append(Network(network_name(kind, 1), of.infer.cell(1, of.service.longest), *of.service.usual))
        elif of.infer is not None:
            found += [Network(network_name(kind, size), of.infer.cell(size)) for size in sizes]
    return found


def _expected_s(spec: QueueingSpec, resident: Resident, kind: int) -> float | None:
    of = spec.classes[kind]
    return resident.expected_s[network_name(kind, 1)] * (of.inferences or 1) if of.infer else None


def choose(spec: QueueingSpec, settings: Settings, ledger: Ledger) -> list[Member]:
    """A device for each server, in the spec's order. Raises NoData, SpecError, TransportLost."""
    devices = announced(settings) if settings.redis_url else found(settings)
    others = {hold.serial for hold in ledger.standing.holds() if hold.who != getpass.getuser()}
    free = [each for each in devices if each.state.health == Health.READY and each.facts.serial not in others]
    chosen: list[Device] = []
    for group in spec.servers:
        wanted = device_selection.parse(group.devices or "true")
        fitting = [each for each in free if wanted.matches(each)]
        if len(fitting) < group.count:
            raise NoData(
                f"server {group.name} needs {counted(group.count, 'device')}, and {len(fitting)} are free that fit "
                f"`{group.devices}`; there are: {', '.join(each.facts.serial for each in devices) or 'none'}",
                remedy="`farm devices` tells of each; lower `count`, or widen `devices`",
            )
        chosen += fitting[: group.count]
        free = [each for each in free if each not in chosen]
    return _members(settings, chosen)


def announced(settings: Settings) -> list[Device]:
    """The devices of this host as the running farm announces them; one that somebody holds too."""
    devices = [each for each in Inventory(connect(settings)).devices() if each.facts.host == settings.host]
    return sorted(devices, key=lambda device: device.facts.serial)


def found(settings: Settings) -> list[Device]:
    """The devices of this host as they answer now, where no farm runs."""
    own = [Device(facts=member.facts, state=state) for member, state in enrol_workstation(settings)]
    server = server_of(settings)
    try:
        addresses = [row.address for row in server.devices() if row.state == "device"]
    except FarmError:
        return own  # a host without phones has no adb server
    phones = [Device(facts=member.facts, state=state) for member, state in enrol_all(settings, addresses)]
    return sorted(own + phones, key=lambda device: device.facts.serial)


def _members(settings: Settings, devices: Sequence[Device]) -> list[Member]:
    """Ready to be driven, in this order. Raises TransportLost for one that has just gone."""
    local = any(each.facts.kind == "workstation" for each in devices)
    ready = enrol_workstation(settings) if local else []
    ready += enrol_all(settings, [each.facts.serial for each in devices if each.facts.kind == "phone"])
    members = {member.facts.serial: member for member, _ in ready}
    return [members[each.facts.serial] for each in devices]


def enrol_all(settings: Settings, phones: Sequence[str]) -> list[tuple[Member, DeviceState]]:
    """Phones by serial or address."""
    server = server_of(settings)

    def one(name: str) -> tuple[Member, DeviceState]:
        connection = find_phone(name, server)
        with device_lock(settings.state, connection.serial, wait_s=LOCK_WAIT_S):
            return enrol_phone(connection, settings)

    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(one, phones))
