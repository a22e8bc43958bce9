"""Make the device profile: a quick part when a device is first seen, load steps when power is to be measured."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from orchestrator.model.device import DeviceState
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.errors import FarmError, LeaseLost, StableError, Unsupported
from orchestrator.model.power import PowerSource
from orchestrator.spec.wiring_file import load_wiring
from orchestrator.system.config import Settings
from workers.connection.base import DeviceConnection
from workers.devices.fleet import Member
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.power import bench_of, find_sources
from workers.session.conditions import SETTINGS
from workers.session.conditions.root import root_shell
from workers.session.supply import supply_way

from . import store
from .calibrate import CannotCalibrate
from .load_steps import Say, calibrate_gauge, find_cut
from .nodes import probe_nodes
from .sampler_cost import measure_cost

log = logging.getLogger(__name__)
SAMPLER_PERIOD_MS = (20, 100)
"""Bounds of the period at which the sampler's cost is measured: half of the gauge's refresh period in between."""
RETRY_S = 3600.0
"""A gauge that could not be calibrated is not tried again before every job."""
AT_REST_C_PER_MIN = 0.2
NOT_YET = "not calibrated yet: `farm enrol` does it"


def first_sight(member: Member, settings: Settings) -> Enrolment:
    """The stored profile; a new serial or build is looked at and stored. The caller holds the device's lock."""
    stored = store.load(settings.state, member.facts.serial, member.facts.fingerprint)
    return stored or store.save(settings.state, look(member, settings))


def look(member: Member, settings: Settings) -> Enrolment:
    """Return what can be found without load: nodes, permissions, sources. Raises TransientError."""
    phone = member.facts.kind == "phone"
    wired = load_wiring(settings.wiring_file).device(member.facts.serial)
    nodes = probe_nodes(member.connection) if phone else ()
    permissions = probe_permissions(member.connection) if phone else {}
    return Enrolment(
        serial=member.facts.serial,
        fingerprint=member.facts.fingerprint,
        enrolled_at=time.time(),
        agent_sha256=member.agent_sha256,
        nodes=nodes,
        permissions=permissions,
        sources=find_sources(bench_of(member, settings, wired)),
        gauge_reason=NOT_YET if phone else "it has no battery",
        reference_temp_c=wired.reference_temp,
        supply=supply_way(member, wired, settings.state),
    )


def enrol(
    member: Member, settings: Settings, check: Callable[[], None], say: Say = lambda *_: None, *, quick: bool = False
) -> Enrolment:
    """Look at the device, calibrate its gauge, measure the sampler's cost, store the profile.

    The caller holds the device's lock. `quick`: without load; a calibration of before is kept. A gauge that cannot be
    calibrated is no error: `gauge_reason` says why. Raises the transient errors, and what `check` raises.
    """
    say("nodes and permissions", 0.0)
    found = look(member, settings)
    before = store.load(settings.state, found.serial, found.fingerprint)
    if before:
        calibration = {"gauge": before.gauge, "gauge_reason": before.gauge_reason, "sampler": before.sampler}
        rest_c = before.reference_temp_c if found.reference_temp_c is None else found.reference_temp_c
        found = found.model_copy(update={**calibration, "reference_temp_c": rest_c})
    if not quick:
        found = _measured(found, member, settings, check, say)
    say("done", 1.0)
    return store.save(settings.state, found)


def ensure_calibrated(
    member: Member, settings: Settings, check: Callable[[], None], say: Say = lambda *_: None
) -> Enrolment:
    """The profile for a block that measures power: calibrated now where it is not yet and can be.

    The caller holds the device's lock, inside its session: with a cut supply the gauge can be read. An uncalibrated
    profile says why in `gauge_reason`; the block runs all the same, with a doubt.
    """
    stored = first_sight(member, settings)
    if stored.calibrated or member.facts.kind != "phone":
        return stored
    try:
        find_cut(member, settings)
    except CannotCalibrate as e:  # told at once, and no reason to wait an hour when the supply is cut
        return stored.model_copy(update={"gauge_reason": _reason(e)})
    tried = stored.gauge_reason != NOT_YET and time.time() - stored.enrolled_at < RETRY_S
    return stored if tried else enrol(member, settings, check, say)


def at_rest(settings: Settings, enrolment: Enrolment, state: DeviceState) -> Enrolment:
    """The profile with a reference temperature as soon as the battery was seen at rest; stored then."""
    slope, temp_c = state.battery_slope_c_per_min, state.battery_temp_c
    if enrolment.reference_temp_c is not None or slope is None or temp_c is None or abs(slope) >= AT_REST_C_PER_MIN:
        return enrolment
    return store.save(settings.state, enrolment.model_copy(update={"reference_temp_c": temp_c}))


def _measured(found: Enrolment, member: Member, settings: Settings, check: Callable[[], None], say: Say) -> Enrolment:
    """Return the profile with everything that needs load."""
    update: dict[str, object] = {"enrolled_at": time.time()}
    refresh_ns = 0
    if member.facts.kind == "phone":
        try:
            _check_readable(found)
            gauge = calibrate_gauge(member, settings, check, say)
            update |= {"gauge": gauge, "gauge_reason": ""}
            refresh_ns = gauge.refresh_ns
        except CannotCalibrate as e:
            log.warning("%s: %s", found.serial, e)
            update |= {"gauge": None, "gauge_reason": _reason(e)}
    say("cost of the sampler", 0.6)
    shortest, longest = SAMPLER_PERIOD_MS
    period_ms = min(longest, max(shortest, refresh_ns // 2_000_000)) if refresh_ns else longest
    try:
        update["sampler"] = measure_cost(member, Plans(settings.state), period_ms, check)
    except LeaseLost:
        raise
    except StableError as e:  # a device that cannot run the small network is no worse gauge
        log.warning("%s: the sampler's cost is unknown: %s", found.serial, e)
    return found.model_copy(update=update)


def _check_readable(found: Enrolment) -> None:
    """Load steps tell nothing of a gauge that the first look could not read. Raises CannotCalibrate."""
    for fact in found.sources:
        if fact.source is PowerSource.GAUGE and not fact.usable:
            raise CannotCalibrate(fact.reason)


def _reason(error: FarmError) -> str:
    return str(error.args[0]) + (f"; {error.remedy}" if error.remedy else "")


def probe_permissions(connection: DeviceConnection) -> dict[str, bool]:
    """Permission -> whether the shell has it: of a setting, whether a session would switch it. Changes nothing.
    Raises TransportLost."""
    return {
        "root": _may(lambda: root_shell(connection, "enrolment")),
        **{each.permission: _may(each.check, connection) for each in SETTINGS.values() if each.permission},
        "perfetto": connection.shell(["sh", "-c", "command -v perfetto"]).code == 0,
    }


def _may(check: Callable[..., object], *given: object) -> bool:
    try:
        check(*given)
    except Unsupported:
        return False
    return True
