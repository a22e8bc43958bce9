"""Each policy of placement keeps its own law, and all of them the law that nothing runnable waits for a free device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.ledger import Ledger
from orchestrator.ledger.queue.outlook import Outlook, Work
from orchestrator.model.device import Health
from orchestrator.model.experiment import PlacementRules, PolicyName
from orchestrator.model.live.queue_view import Share, WaitingJob
from orchestrator.scheduling import seldom
from orchestrator.scheduling.expectations.energy import expected_energy
from orchestrator.scheduling.expectations.learnt import Learnt
from orchestrator.scheduling.expectations.work import expected_s
from orchestrator.scheduling.placement import Floor, Policy, place
from orchestrator.scheduling.placer import Placer
from orchestrator.scheduling.policies import POLICIES, FairShare
from orchestrator.scheduling.policies.levels import STEP_S
from orchestrator.scheduling.queue_view import QueueView
from orchestrator.system.config import Settings
from tests.unit.energy.scenarios import run_block
from virtual_phones.simulation import Course

from . import make

NOW = 1e6
TEMPERATURES = st.lists(st.none() | st.floats(10, 34), min_size=2, max_size=5)
WANTED = st.tuples(st.integers(-2, 2), st.none() | st.floats(1, 2 * NOW))
"""Priority and deadline."""
LEVELS = st.lists(st.none() | st.floats(25, 100), min_size=2, max_size=5)


def placed(order: str, jobs: list[WaitingJob], *devices: object) -> dict[str, str]:
    floor = Floor({d.serial: d for d in devices}, {}, Policy(order=POLICIES[order]), NOW)  # type: ignore[attr-defined]
    return dict(place([[job] for job in jobs], floor).assignments)


def test_every_policy_can_be_chosen() -> None:
    assert set(get_args(Settings.model_fields["policy"].annotation)) == set(POLICIES) == set(get_args(PolicyName))


@pytest.mark.parametrize("order", POLICIES)
@settings(max_examples=20, deadline=None)
@given(states=LEVELS, jobs=st.integers(0, 7))
def test_no_device_is_left_free_while_a_job_could_run(order: str, states: list[float | None], jobs: int) -> None:
    devices = [make.device(f"S{n}", battery_percent=level) for n, level in enumerate(states)]
    serials = [device.serial for device in devices]
    own = order == "same_device"  # an experiment has one device there, so each job is of another
    waiting = [
        make.waiting(f"j{n}", *serials, experiment_id=f"e{n if own else 0}", order=(n if own else 0, n))
        for n in range(jobs)
    ]
    assert len(placed(order, waiting, *devices)) == min(jobs, len(devices))


@settings(max_examples=50, deadline=None)
@given(st.integers(-100, 100), st.integers(-100, 100), st.floats(0, NOW), st.floats(0, NOW))
def test_ageing_places_what_has_waited_long_enough(low: int, high: int, first: float, second: float) -> None:
    jobs = [
        make.waiting("old", "A", experiment_id="old", priority=low, submitted_at=first, order=(0, 0)),
        make.waiting("new", "A", experiment_id="new", priority=high, submitted_at=second, order=(1, 0)),
    ]
    worth = {job.job_id: job.priority + (NOW - job.submitted_at) // STEP_S for job in jobs}
    (chosen,) = placed("ageing", jobs, make.device("A"))
    assert worth[chosen] == max(worth.values())


@settings(max_examples=50, deadline=None)
@given(st.lists(WANTED, min_size=2, max_size=6), st.booleans())
def test_the_earliest_deadline_of_the_highest_priority_comes_first(
    wanted: list[tuple[int, float | None]], by_farm: bool
) -> None:
    """The policy is the farm's, or that of experiments that have a deadline; others of their priority come after."""
    jobs = [
        make.waiting(
            f"j{n}", "A", experiment_id=f"e{n}", priority=priority, deadline=at, order=(n, 0),
            policy="deadline" if at is not None and not by_farm else None,
        )
        for n, (priority, at) in enumerate(wanted)
    ]  # fmt: skip
    (chosen,) = placed("deadline" if by_farm else "fair_share", jobs, make.device("A"))
    priority, at = wanted[int(chosen[1:])]
    assert priority == max(each for each, _ in wanted)
    rivals = [each for of, each in wanted if of == priority and each is not None]
    assert at == (min(rivals) if rivals else None)


@settings(max_examples=20, deadline=None)
@given(TEMPERATURES)
def test_an_experiment_prefers_devices_by_its_own_policy(temps: list[float | None]) -> None:
    """Another one beside it goes by the farm's, for the same devices."""
    devices = [make.device(f"S{n}", battery_temp_c=temp_c) for n, temp_c in enumerate(temps)]
    serials = [device.serial for device in devices]
    own = make.waiting("own", *serials, experiment_id="a", policy="coolest", order=(0, 0))
    other = make.waiting("other", *serials, experiment_id="b", order=(1, 0))
    found = placed("fair_share", [own, other], *devices)
    coolest = min(99.0 if temp_c is None else temp_c for temp_c in temps)
    assert (temps[int(found["own"][1:])] or 99.0) == coolest and found["other"] != found["own"]


@settings(max_examples=50, deadline=None)
@given(TEMPERATURES)
def test_the_coolest_device_works_and_one_that_does_not_tell_last(temps: list[float | None]) -> None:
    devices = [make.device(f"S{n}", battery_temp_c=temp_c) for n, temp_c in enumerate(temps)]
    job = make.waiting("j", *(device.serial for device in devices))
    at = int(placed("coolest", [job], *devices)["j"][1:])
    told = [temp_c for temp_c in temps if temp_c is not None]
    assert temps[at] == (min(told) if told else None)


@settings(max_examples=50, deadline=None)
@given(LEVELS)
def test_the_fullest_device_works_and_one_without_a_battery_first(levels: list[float | None]) -> None:
    devices = [make.device(f"S{n}", battery_percent=level) for n, level in enumerate(levels)]
    job = make.waiting("j", *(device.serial for device in devices))
    level = levels[int(placed("most_charged", [job], *devices)["j"][1:])]
    assert level == (None if None in levels else max(level for level in levels if level is not None))


BOUND = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "S0", "S1", "S2", "gone"])), min_size=1, max_size=5)
"""Experiments: their waiting jobs, and the device of their latest attempt."""


@settings(max_examples=100, deadline=None)
@given(
    BOUND,
    st.lists(st.sampled_from([Health.READY, Health.READY, Health.OFFLINE]), min_size=3, max_size=3),
    st.booleans(),
)
def test_an_experiment_stays_on_one_device_and_waits_for_none_that_gets_no_work(
    experiments: list[tuple[int, str]], health: list[Health], by_farm: bool
) -> None:
    devices = [make.device(f"S{n}", health=each) for n, each in enumerate(health)]
    ready = {device.serial for device in devices if device.state.health is Health.READY}
    groups = [
        [
            make.waiting(f"{e}-{n}", "S0", "S1", "S2", experiment_id=f"e{e}", order=(e, n),
                         policy=None if by_farm else "same_device")
            for n in range(jobs)
        ]
        for e, (jobs, _) in enumerate(experiments)
    ]  # fmt: skip
    shares = {f"e{e}": Share(serial=serial) for e, (_, serial) in enumerate(experiments)}
    policy = Policy(shares=shares, order=POLICIES["same_device" if by_farm else "fair_share"])
    floor = Floor({device.serial: device for device in devices}, {}, policy, NOW)
    found = place(groups, floor)
    taken: dict[str, list[str]] = {}
    for job_id, serial in found.assignments:
        taken.setdefault(job_id.split("-")[0], []).append(serial)
    for e, (jobs, bound) in enumerate(experiments):
        own, usable = taken.get(str(e), []), {bound} if bound in ready else ready
        assert len(own) <= 1 and set(own) <= usable
        if jobs and not own:
            assert usable <= {serial for serials in taken.values() for serial in serials}, "its device was free"
        left = [found.waiting[f"{e}-{n}"] for n in range(jobs) if f"{e}-{n}" in found.waiting]
        assert len(left) == (jobs > len(own)) and all(why.text for why in left), "one tells it of all"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 1), st.none() | st.integers(0, 10**9)), min_size=2, max_size=6))
def test_the_longest_of_the_highest_priority_begins_first_and_what_nobody_knows_before(
    wanted: list[tuple[int, float | None]],
) -> None:
    jobs = [
        make.waiting(f"j{n}", "A", experiment_id=f"e{n}", priority=priority, order=(n, 0), policy="longest_first")
        for n, (priority, _) in enumerate(wanted)
    ]
    shares = {f"e{n}": Share(expected_s=expected) for n, (_, expected) in enumerate(wanted)}
    floor = Floor({"A": make.device("A")}, {}, Policy(shares=shares), NOW)
    ((chosen, _),) = place([[job] for job in jobs], floor).assignments
    priority, expected = wanted[int(chosen[1:])]
    assert priority == max(each for each, _ in wanted)
    rivals = [seconds for of, seconds in wanted if of == priority]
    assert expected is None if None in rivals else expected == max(each for each in rivals if each is not None)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | st.floats(0.1, 10), min_size=2, max_size=5), st.booleans())
def test_work_goes_where_it_takes_least_energy(shares: list[float | None], by_farm: bool) -> None:
    """Two experiments for the same devices each go by what is known of it; an unknown device counts as the mean."""
    devices = {f"S{n}": make.device(f"S{n}") for n in range(len(shares))}
    policy = None if by_farm else "least_energy"
    own = make.waiting("own", *devices, experiment_id="own", policy=policy, order=(0, 0))
    other = replace(own, job_id="other", experiment_id="other", order=(1, 0))
    known = {f"S{n}": share for n, share in enumerate(shares) if share is not None}
    opposite = {serial: 1 / share for serial, share in known.items()}
    of = {"own": Share(energy=known), "other": Share(energy=opposite, running=1)}
    order = POLICIES["least_energy" if by_farm else "fair_share"]
    placed_on = dict(place([[own], [other]], Floor(devices, {}, Policy(shares=of, order=order), NOW)).assignments)
    first, second = placed_on["own"], placed_on["other"]
    assert known.get(first, 1.0) == min(known.get(serial, 1.0) for serial in devices)
    left = [serial for serial in devices if serial != first]
    assert opposite.get(second, 1.0) == min(opposite.get(serial, 1.0) for serial in left)


def test_expected_energy_is_a_share_of_the_mean_over_what_was_measured_on_both() -> None:
    """B takes three times as much as A for a small cell and for a large one; D, of B's model, is taken for it. What one
    device measured alone tells nothing of it beside others."""
    known = {
        ("small", "net gauge"): {"A": [1.0, 3.0], "B": [6.0]},
        ("large", "net gauge"): {"A": [200.0], "B": [500.0, 700.0]},
        **{(f"alone {n}", "net meter"): {"B": [1.0]} for n in range(4)},
    }
    found = expected_energy(known, {"A": "one", "B": "two", "C": "", "D": "two"})
    assert found == pytest.approx({"A": 3**-0.5, "B": 3**0.5, "C": 1.0, "D": 3**0.5})
    assert expected_energy({}, {"A": "one"}) == {"A": 1.0}


def test_expected_energy_compares_devices_that_measured_different_cells() -> None:
    """B takes twice, C four times as much as A; each cell has another two of them."""
    known = {
        ("one", "net"): {"A": [1.0], "B": [2.0]},
        ("two", "net"): {"B": [200.0], "C": [400.0]},
        ("three", "net"): {"A": [10.0], "C": [40.0]},
    }
    found = expected_energy(known, {"A": "", "B": "", "C": ""})
    assert found == pytest.approx({"A": 0.5, "B": 1.0, "C": 2.0})


def test_experiments_that_take_turns_are_learnt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now_s = list[str](), [0.0]
    monkeypatch.setattr(seldom, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def learn(experiment: str, _models: Mapping[str, str]) -> int:
        asked.append(experiment)
        now_s[0] += 0.1  # so that it is due again after five seconds
        return len(asked)

    learnt = Learnt(learn)
    for experiment in ["a", "b", "a", "b", "a", "b"]:
        assert experiment in learnt.of([experiment], {})
    assert asked == ["a", "b"]


def test_a_new_experiment_goes_where_blocks_of_the_same_file_took_least(tmp_path: Path) -> None:
    """Blocks of another file, and gauges whose gain is unknown, are left out."""
    blocks = {
        "S7": "uA, 250 ms",
        "P7": "uA, 250 ms, fine steps",
        "N5": "uA, 1 s, inverted sign",
        "N6": "uA, 250 ms, high idle",
    }
    told: dict[str, float] = {}
    same = make.experiment(name="e", placement=PlacementRules(policy="least_energy"))
    another = same.model_copy(update={"name": "another"})
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        for number, (serial, gauge) in enumerate(blocks.items()):
            job = make.job(f"e-{number}", candidates=(serial,))
            ledger.submit(f"e-{number}", another if serial == "N5" else same, [job])
            begun = ledger.begin_attempt(job.job_id, serial, "lab", 60.0)
            assert begun is not None
            found = run_block(gauge, 1, course=Course(idle_s=20.0, load_s=40.0, inference_s=0.2))
            if (net := found.energy.per_inference_j) is not None:
                told[serial] = net.value
            measured = {name: getattr(found.record, name) for name in ("samples", "phases", "power", "sampler")}
            calibration = found.record.gauge
            assert calibration is not None
            measured["gauge"] = calibration.model_copy(update={"absolute": serial != "N6"})
            ledger.keep(make.record(job, attempt=begun.attempt, token=begun.token, serial=serial, **measured))
        known = ledger.energies("e-0")
        assert known == {(job.cell.cell_id, "net gauge"): {s: [pytest.approx(told[s])] for s in ("S7", "P7")}}
        frugal, other = sorted(("S7", "P7"), key=told.__getitem__)
        assert frugal == "S7", "fair share takes P7"
        job = make.job("e-new", candidates=("S7", "P7"))
        assert ledger.submit("e-new", same, [job])
        queue, devices = QueueView(ledger), {serial: make.device(serial) for serial in ("S7", "P7")}
        queue.refresh()
        assert Placer(queue, FairShare(), ledger).place(devices, {}, 0, {}).assignments == ((job.job_id, frugal),)
        without = Placer(queue, FairShare(), ledger).place({other: devices[other]}, {}, 0, {})
        assert without.assignments == ((job.job_id, other),), "another one is not waited for"


def test_expected_work_is_that_of_the_choice_that_has_most_to_do() -> None:
    took = {("c", "A"): (10.0, 12.0, 14.0), ("c", "B"): (2.0, 2.0, 2.0)}
    work = (Work(("A",), "c", 5), Work(("B",), "c", 20), Work(("A", "B"), "c", 2))
    outlook = Outlook(took_s=took, work=work, under_way=(), rivals={}, held=0)
    assert expected_s(outlook, {}) == 60.0
    assert expected_s(replace(outlook, work=(*work, Work(("A", "B"), "c", 100))), {}) == 102 * 7 / 2
    assert expected_s(replace(outlook, took_s={}), {}) is None
