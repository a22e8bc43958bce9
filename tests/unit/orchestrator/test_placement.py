"""Laws of placement, and the reasons that people read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.ledger import Hold
from orchestrator.model.device import Device, Health
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.experiment import Conditions, Range
from orchestrator.model.live.lease import Lease
from orchestrator.model.live.queue_view import Share, WaitingJob
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.scheduling import placement
from orchestrator.scheduling.placement import Placement, Policy

from . import make

NOW = 1000.0
SERIALS = list("ABCDE")


def place(
    jobs: Sequence[WaitingJob], devices: Sequence[Device], leases: Mapping[str, Lease], policy: Policy, now: float
) -> Placement:
    floor = placement.Floor({d.serial: d for d in devices}, leases, policy, now)
    found = placement.place([[job] for job in jobs], floor)
    return Placement(tuple(sorted(found.assignments)), found.waiting)


def lease(serial: str) -> Lease:
    return Lease(serial=serial, job_id="other", attempt=1, token=1, expires_at=NOW + 5)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[WaitingJob], list[Device], dict[str, Lease], Policy]:
    known = draw(st.lists(st.sampled_from(SERIALS), unique=True))
    devices = [
        make.device(
            s, host=draw(st.sampled_from(["h1", "h2"])), health=draw(st.sampled_from(list(Health))),
            ready_at=draw(st.sampled_from([None, NOW - 1, NOW + 60])),
            battery_percent=draw(st.sampled_from([None, 10.0, 80.0])),
        )
        for s in known
    ]  # fmt: skip
    devices += [make.device(s, host="h1") for s in SERIALS if s not in known and draw(st.booleans())]
    jobs = [
        make.waiting(
            f"j{i}", *draw(st.lists(st.sampled_from(SERIALS), min_size=1, unique=True)),
            experiment_id=draw(st.sampled_from(["e1", "e2", "e3"])), priority=draw(st.integers(0, 1)), order=(i % 3, i),
            failed_on=frozenset(draw(st.lists(st.sampled_from(SERIALS), max_size=2))),
            not_before=draw(st.sampled_from([0.0, 0.0, NOW + 9])),
        )
        for i in range(draw(st.integers(0, 8)))
    ]  # fmt: skip
    leases = {s: lease(s) for s in draw(st.lists(st.sampled_from(SERIALS), max_size=2, unique=True))}
    shares = {"e1": Share(draw(st.integers(0, 2)), draw(st.sampled_from([0.0, 5.0])))}
    return jobs, devices, leases, Policy({"h1": draw(st.integers(1, 4)), "h2": draw(st.integers(1, 4))}, shares)


def runnable(job: WaitingJob, device: Device, devices: list[Device]) -> bool:
    """The rules, written again without looking at the code: device alone, leases and limits apart."""
    state = device.state
    alive = {d.serial for d in devices if d.state.health is Health.READY}
    avoided = device.serial in job.failed_on and bool((set(job.candidates) - job.failed_on) & alive)
    return (
        device.serial in job.candidates
        and not avoided
        and state.health is Health.READY
        and (state.ready_at is None or state.ready_at <= NOW)
        and (state.battery_percent is None or state.battery_percent >= 20)
        and job.not_before <= NOW
    )


@settings(max_examples=100, deadline=None)
@given(situations())
def test_laws(situation: tuple[list[WaitingJob], list[Device], dict[str, Lease], Policy]) -> None:
    jobs, devices, leases, policy = situation
    placement = place(jobs, devices, leases, policy, NOW)
    by_id, by_serial = {j.job_id: j for j in jobs}, {d.serial: d for d in devices}
    taken = [serial for _, serial in placement.assignments]
    assert len(taken) == len(set(taken))
    assert not set(taken) & set(leases)
    assert all(runnable(by_id[j], by_serial[s], devices) for j, s in placement.assignments)
    assert {j for j, _ in placement.assignments} | set(placement.waiting) == set(by_id)
    assert not {j for j, _ in placement.assignments} & set(placement.waiting)
    assert all(reason.text for reason in placement.waiting.values())
    sessions = Counter(by_serial[s].facts.host for s in [*taken, *(s for s in leases if s in by_serial)])
    free = [
        d for d in devices
        if d.serial not in taken and d.serial not in leases
        and sessions[d.facts.host] < policy.host_limits[d.facts.host]
    ]  # fmt: skip
    assert not any(runnable(by_id[j], d, devices) for j in placement.waiting for d in free)


@settings(max_examples=30, deadline=None)
@given(situations(), st.integers(1, 3))
def test_the_last_of_jobs_that_are_alike_says_why_they_wait(
    situation: tuple[list[WaitingJob], list[Device], dict[str, Lease], Policy], alike: int
) -> None:
    jobs, devices, leases, policy = situation
    groups = [[replace(job, job_id=f"{job.job_id}.{n}", order=(n, *job.order)) for n in range(alike)] for job in jobs]
    floor = placement.Floor({d.serial: d for d in devices}, leases, policy, NOW)
    found = placement.place(groups, floor)
    assigned = {job_id for job_id, _ in found.assignments}
    assert found.waiting.keys() == {group[-1].job_id for group in groups} - assigned
    taken = leases | {serial: lease(serial) for _, serial in found.assignments}
    left = [[job for job in group if job.job_id not in assigned] for group in groups]
    again = placement.place(left, placement.Floor({d.serial: d for d in devices}, taken, policy, NOW))
    assert again.waiting.keys() == found.waiting.keys() and not again.assignments, "nothing was left that could begin"


@settings(max_examples=100, deadline=None)
@given(situations(), st.randoms())
def test_the_order_of_arguments_does_not_matter(situation: tuple, random: object) -> None:
    jobs, devices, leases, policy = situation
    before = place(jobs, devices, leases, policy, NOW)
    for items in (jobs, devices):
        random.shuffle(items)  # type: ignore[attr-defined]
    leases = dict(reversed(leases.items()))
    assert place(jobs, devices, leases, policy, NOW) == before


def one(job: WaitingJob, *devices: Device, leases: dict[str, Lease] | None = None, limit: int = 400) -> Placement:
    return place(
        [job], list(devices), leases or {}, Policy(dict.fromkeys({device.facts.host for device in devices}, limit)), NOW
    )


def test_a_job_that_must_be_alone_empties_its_host_first() -> None:
    jobs = [make.waiting("suspect", "A", alone=True), make.waiting("b", "B", priority=1), make.waiting("c", "C")]
    devices = [make.device("A", host="h1"), make.device("B", host="h1"), make.device("C", host="h2")]
    busy = place(jobs, devices, {"B": lease("B")}, Policy(), NOW)
    assert busy.assignments == (("c", "C"),)
    assert "runs alone" in busy.waiting["suspect"].text
    empty = place(jobs, devices, {}, Policy(labels={"suspect": "lenet #1"}), NOW)
    assert empty.assignments == (("c", "C"), ("suspect", "A"))
    assert "runs nothing beside" in empty.waiting["b"].text
    under_way = Policy(alone=frozenset({"other"}))
    assert place(jobs[1:], devices, {"A": lease("A")}, under_way, NOW).assignments == (("c", "C"),)
    away = place(jobs, devices[1:], {}, Policy(), NOW)
    assert away.assignments == (("b", "B"), ("c", "C")), "what lacks its device keeps no host"


def test_priority_then_fairness_then_order() -> None:
    jobs = [make.waiting(f"a{i}", "A", "B", "C", experiment_id="a", order=(0, i)) for i in range(9)]
    jobs += [make.waiting(f"b{i}", "A", "B", "C", experiment_id="b", order=(1, i)) for i in range(9)]
    jobs += [make.waiting("urgent", "A", "B", "C", experiment_id="a", priority=1, order=(2, 0))]
    placed = {j for j, _ in place(jobs, [make.device(s) for s in "ABC"], {}, Policy(), NOW).assignments}
    assert placed == {"urgent", "b0", "a0"}


def test_experiments_share_one_device_in_turn() -> None:
    jobs = [make.waiting(f"{e}0", "A", experiment_id=e, order=(i, 0)) for i, e in enumerate("ab")]
    served = Policy(shares={"a": Share(0, served_at=50.0), "b": Share(0, served_at=40.0)})
    assert place(jobs, [make.device("A")], {}, served, NOW).assignments == (("b0", "A"),)
    running = Policy(shares={"a": Share(0, served_at=50.0), "b": Share(2, served_at=40.0)})
    assert place(jobs, [make.device("A")], {}, running, NOW).assignments == (("a0", "A"),)


def test_a_device_that_others_need_is_left_to_them() -> None:
    jobs = [make.waiting("any", "A", "B", order=(0, 0)), make.waiting("only", "A", order=(0, 1))]
    placement = place(jobs, [make.device("A"), make.device("B")], {}, Policy(), NOW)
    assert placement.assignments == (("any", "B"), ("only", "A"))


def test_an_earlier_failure_is_avoided_while_another_candidate_lives() -> None:
    job = make.waiting("j", "A", "B", failed_on=frozenset("A"))
    busy = one(job, make.device("A"), make.device("B"), leases={"B": lease("B")})
    assert busy.waiting["j"] == WaitReason(
        kind=WaitKind.BUSY, text="B: busy with job other; A: an earlier attempt was lost there"
    )
    gone = one(job, make.device("A"), make.device("B", health=Health.OFFLINE))
    assert gone.assignments == (("j", "A"),)


def test_reasons_are_for_people() -> None:
    job = make.waiting("j", "A")
    assert one(job).waiting["j"].text == "offline: no host announces it"
    assert one(job, make.device(health=Health.OFFLINE)).waiting["j"].text == "offline"
    sick = make.device(health=Health.QUARANTINED, reason="3 attempts lost")
    assert one(job, sick).waiting["j"].text == "quarantined: 3 attempts lost"
    assert one(job, make.device(ready_at=NOW + 60)).waiting["j"].text.startswith("cooling, ready at about ")
    assert one(job, make.device(), leases={"A": lease("A")}).waiting["j"].text == "busy with job other"
    assert "at least 20 %" in one(job, make.device(battery_percent=12.0)).waiting["j"].text
    assert "at most 40 C" in one(job, make.device(battery_temp_c=41.0)).waiting["j"].text
    assert "thermal status 3" in one(job, make.device(thermal_status=3)).waiting["j"].text
    assert "free storage 1 MiB" in one(job, make.device(free_storage_bytes=2**20)).waiting["j"].text
    full = make.waiting("j", "A", conditions=Conditions(battery_percent=Range(max=60)))
    assert "at most 60 %" in one(full, make.device(battery_percent=90.0)).waiting["j"].text
    crowded = one(job, make.device(), make.device("B"), leases={"B": lease("B")}, limit=1)
    assert crowded.waiting["j"].text == "host lab is at its limit of 1 sessions"


@pytest.mark.parametrize(
    ("kind", "device"),
    [
        (WaitKind.SICK, make.device(health=Health.SICK)),
        (WaitKind.RESTING, make.device(ready_at=NOW + 60)),
        (WaitKind.BATTERY, make.device(battery_percent=12.0)),
        (WaitKind.TEMPERATURE, make.device(thermal_status=3)),
        (WaitKind.STORAGE, make.device(free_storage_bytes=2**20)),
    ],
)
def test_reasons_are_of_a_kind_for_programs(kind: WaitKind, device: Device) -> None:
    assert one(make.waiting("j", "A"), device).waiting["j"].kind is kind
    both = make.waiting("j", "A", "B", "C")
    others = [make.device("B", **dict(device.state)), make.device("C")]
    busy = one(both, device, *others, leases={"C": lease("C")}).waiting["j"]
    assert busy.kind is WaitKind.BUSY, "C will be free: that is what the job waits for"
    assert one(both, device, *others[:1]).waiting["j"].kind is kind, "that of most candidates"


def test_every_health_that_keeps_work_away_is_a_kind() -> None:
    assert {health.value for health in Health} - {kind.value for kind in WaitKind} == {"ready"}


def profiled(serial: str, *, rest_c: float | None = None, supply: str = "none", **permissions: bool) -> Device:
    profile = Enrolment(
        serial=serial, fingerprint="f", enrolled_at=1.0, permissions=permissions, reference_temp_c=rest_c, supply=supply
    )  # fmt: skip
    return make.device(serial).model_copy(update={"enrolment": profile})


@pytest.mark.parametrize(
    ("wanted", "lacking", "able"),
    [
        ({"clocks": "fixed_performance"}, {"fixed_performance": False}, {"fixed_performance": True}),
        ({"clocks": "locked"}, {"lock_clocks": False}, {"lock_clocks": True}),
        ({"airplane_mode": True}, {"airplane_mode": False}, {"airplane_mode": True}),
        ({"battery_saver_off": True}, {"battery_saver": False}, {"battery_saver": True}),
        ({"bluetooth_off": True}, {"bluetooth": False}, {"bluetooth": True}),
        ({"screen_dimmed": True}, {"write_settings": False}, {}),
        ({"supply": "cut"}, {"supply": "none"}, {"supply": "uhubctl"}),
    ],
)
def test_a_device_that_can_never_meet_the_conditions_is_passed_over(
    wanted: dict[str, Any], lacking: dict[str, Any], able: dict[str, Any]
) -> None:
    job = make.waiting("j", "A", "B", conditions=Conditions(**wanted))
    devices = [profiled("A", **lacking), profiled("B", **able)]
    assert place([job], devices, {}, Policy(), NOW).assignments == (("j", "B"),)
    busy = place([job], devices, {"B": lease("B")}, Policy(), NOW)
    assert "A: it cannot meet the experiment's conditions, others can" in busy.waiting["j"].text
    alone = make.waiting("j", "A", conditions=Conditions(**wanted))
    assert place([alone], devices, {}, Policy(), NOW).assignments == (("j", "A"),), (
        "its worker refuses it with a reason"
    )


def test_a_phone_without_a_command_that_the_conditions_need_is_passed_over_by_its_name(seed: int) -> None:
    needs = {"screen_dimmed": "settings", "sync_off": "settings", "background_stopped": "am", "airplane_mode": "cmd"}
    for wanted, tool in Random(seed).sample(sorted(needs.items()), 3):
        job = make.waiting("j", "A", "B", conditions=Conditions.model_validate({wanted: True}))
        device = make.device("A")
        bare = device.model_copy(update={"facts": device.facts.model_copy(update={"tools_missing": ("wm", tool)})})
        busy = place([job], [bare, make.device("B")], {"B": lease("B")}, Policy(), NOW)
        assert f"A: it cannot meet the experiment's conditions (it has no {tool}), others can" in busy.waiting["j"].text
        assert place([make.waiting("j", "A")], [bare], {}, Policy(), NOW).assignments == (("j", "A"),)


@pytest.mark.parametrize(
    ("wanted", "state", "words"),
    [
        ({"battery_temp_min": 20.0}, {"battery_temp_c": 15.0}, "cold: 15 C"),
        ({"skin_temp_max": 34.0}, {"skin_temp_c": 36.0}, "hot: skin 36.0 C"),
        ({"supply": "discharging"}, {"charging": True}, "a supply is connected"),
        ({"settled": True}, {"battery_temp_c": 27.0}, "within 1 C of its rest at 24 C"),
        ({"settled": True}, {"battery_temp_c": 24.5, "battery_slope_c_per_min": -0.4}, "changes by -0.40 C a minute"),
    ],
)
def test_what_is_not_met_now_waits_with_the_reason(wanted: dict[str, Any], state: dict[str, Any], words: str) -> None:
    profile = profiled("A", rest_c=24.0).enrolment
    device = make.device("A", **state).model_copy(update={"enrolment": profile})
    waits = place([make.waiting("j", "A", conditions=Conditions(**wanted))], [device], {}, Policy(), NOW)
    assert words in waits.waiting["j"].text
    assert place([make.waiting("j", "A")], [device], {}, Policy(), NOW).assignments == (("j", "A"),)


def test_held_devices_are_free_for_their_holders_alone(seed: int) -> None:
    """Whatever the order: everybody has what they, or their project, hold and what nobody does, and no one else's."""
    chosen = random.Random(seed)
    for _ in range(50):
        who = {serial: chosen.choice(["anna", "bert", ""]) for serial in "ABCDEF"}
        pools = {serial: chosen.choice(["vision", "speech", ""]) for serial in who}
        fits = {serial: chosen.random() < 0.8 for serial in who}
        devices = [
            make.device(
                s, health=Health.HELD if who[s] or pools[s] else Health.READY if fits[s] else Health.QUARANTINED
            )
            for s in who
        ]
        holds = {s: [Hold(s, who[s], 0.0, None, "")] * bool(who[s]) for s in who}
        for s, project in pools.items():
            holds[s] += [Hold(s, "x", 0.0, None, "", project=project)] * bool(project)
        fit = {s: make.device(s, health=Health.READY if fits[s] else Health.QUARANTINED) for s in who}
        own = {s: (holds[s], fit[s]) for s in who if holds[s]}
        accounts = [(submitter, project) for submitter in ("anna", "bert", "") for project in ("vision", "speech")]
        jobs = [
            make.waiting(f"{by}.{of}.{n}", *who, experiment_id=f"{by}.{of}", submitter=by, project=of, order=(0, n))
            for by, of in accounts
            for n in range(6)
        ]
        chosen.shuffle(jobs)
        placed = place(jobs, devices, {}, Policy(held=own), NOW).assignments
        for job, serial in placed:
            submitter, project, _ = job.split(".")
            assert who[serial] in ("", submitter) and pools[serial] in ("", project) and fits[serial]
        assert {serial for _, serial in placed} == {serial for serial in who if fits[serial]}
