"""Heat, throttling and set-up that are learnt from blocks, against virtual phones whose truth is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.ledger import Ledger
from orchestrator.model.event import Setup
from orchestrator.model.record import InvalidCode, Invalidity, Outcome, Record
from orchestrator.queueing.experiment import measure_runs, run_simulated
from orchestrator.queueing.learnt import Body, fill_bodies, learn_body
from orchestrator.queueing.measures import measure
from orchestrator.queueing.requests import Column
from orchestrator.queueing.spec import parse
from tests.unit.energy.scenarios import record_of
from tests.unit.imports.conftest import Farm
from tests.unit.imports.conftest import farm as farm
from tests.unit.imports.conftest import ledger as ledger
from tests.unit.orchestrator import make as orchestrated
from tests.unit.queueing.make import make, run
from virtual_phones.hardware.physics import clock_cap, initial_state, step
from virtual_phones.profile import Profile, load_profile
from virtual_phones.simulation import Course, simulate

pytestmark = [pytest.mark.unit, pytest.mark.slow]

INFERENCE_S = 0.1
LIGHTER = 0.2
"""The share of phones' real heat capacities: what takes half an hour takes six minutes of simulated time."""


@cache
def profile_of(name: str) -> Profile:
    profile = load_profile(name)
    lighter = {
        each: LIGHTER * getattr(profile.thermal, each) for each in ("die_j_per_k", "skin_j_per_k", "battery_j_per_k")
    }
    return profile.model_copy(update={"thermal": profile.thermal.model_copy(update=lighter)})


@cache
def block(name: str, load_s: float, idle_s: float) -> Record:
    course = Course(idle_s=idle_s, warmup_s=0.0, load_s=load_s, inference_s=INFERENCE_S)
    return record_of(simulate(profile_of(name), course, seed=1), profile_of(name))


def learnt(*records: Record) -> Body:
    return learn_body("phone", "night", "net", records)


def slowest_mode_s(profile: Profile) -> float:
    """Time constant with which the three bodies come to rest in the end."""
    heat = profile.thermal
    die, skin, battery = heat.die_j_per_k, heat.skin_j_per_k, heat.battery_j_per_k
    to_die, to_battery, to_air = heat.die_skin_w_per_k, heat.battery_skin_w_per_k, heat.skin_ambient_w_per_k
    flows = [
        [-to_die / die, to_die / die, 0.0],
        [to_die / skin, -(to_die + to_battery + to_air) / skin, to_battery / skin],
        [0.0, to_battery / battery, -to_battery / battery],
    ]
    return float(-1 / max(np.linalg.eigvals(np.array(flows)).real))


@pytest.mark.parametrize("name", ["pixel_7", "galaxy_s7", "nexus_6p"])
def test_what_is_learnt_is_what_the_phone_is(name: str) -> None:
    """A block of more than twice the time constant. The phone has three heat capacities, the model one."""
    profile, found = profile_of(name), learnt(block(name, 360.0, 60.0))
    thermal, power, heat = profile.thermal, profile.power, found.heat
    assert heat is not None and found.rms_c is not None and found.rms_c < 0.25
    rest_c = thermal.ambient_c + power.idle_w / thermal.skin_ambient_w_per_k
    rise_c = (power.load_w - power.idle_w) / thermal.skin_ambient_w_per_k
    assert heat.ambient == pytest.approx(rest_c, abs=1.0) and heat.rise_c == pytest.approx(rise_c, rel=0.1)
    assert heat.time_constant == pytest.approx(slowest_mode_s(profile), rel=0.15)
    assert heat.known_to is not None
    reached = [at for at in thermal.status_skin_c if at <= heat.known_to - 0.5]
    assert [each.at for each in heat.steps][: len(reached)] == pytest.approx(reached, abs=0.5)
    caps = thermal.status_cap[1:]
    assert [each.times for each in heat.steps] == pytest.approx([1 / cap for cap in caps[: len(heat.steps)]], rel=0.05)


def phone_serves(profile: Profile, arrivals: Column) -> tuple[Column, float]:
    """Sojourns of requests that the phone's own physics serves in their order, and how hot its skin became."""
    state, ended = replace(step(profile, initial_state(profile), 0.0, 1800.0), time_s=0.0), []
    hottest_c = 0.0
    for at in arrivals.tolist():
        state, left_s = step(profile, state, 0.0, max(0.0, at - state.time_s)), INFERENCE_S
        while left_s > 1e-9:  # the clock falls in the middle of an inference, too
            clock = clock_cap(profile.thermal, state.skin_c)
            spent_s = min(left_s / clock, 0.02)
            state = step(profile, state, 1.0, spent_s)
            left_s -= spent_s * clock
        ended.append(state.time_s)
        hottest_c = max(hottest_c, state.skin_c)
    return np.array(ended) - arrivals, hottest_c


@pytest.mark.parametrize(("name", "rate"), [("pixel_7", 4.0), ("pixel_7", 5.0), ("pixel_7", 6.0), ("nexus_6p", 4.0)])
def test_sustained_load_is_served_as_the_phone_serves_it(name: str, rate: float) -> None:
    """The same arrivals by the learnt constants and by the phone's physics: a cool phone, and such as work in their
    first, second and third step of throttling."""
    heat = learnt(block(name, 360.0, 60.0)).heat
    assert heat is not None
    service = {"kind": "fixed", "mean": f"{INFERENCE_S} s"}
    of = {"name": "a", "arrivals": {"kind": "poisson", "rate": rate}, "service": service}
    found = run(make([of], [{"name": "phone", "heat": heat.model_dump()}], duration="10 min"))
    truth_s, hottest_c = phone_serves(profile_of(name), found.requests.column("intended"))
    simulated_s = found.requests.sojourn_s
    assert max(temp_c for (temp_c,) in found.course.temp_c if temp_c) == pytest.approx(hottest_c, abs=0.75)
    assert float(simulated_s.mean()) == pytest.approx(float(truth_s.mean()), rel=0.05)
    assert float(np.quantile(simulated_s, 0.99)) == pytest.approx(float(np.quantile(truth_s, 0.99)), rel=0.05)
    assert found.doubts == ()


def test_a_load_that_holds_the_phone_at_a_step_is_told_with_what_is_not_known() -> None:
    """The block came to 45 C, where throttling held it: its last inferences alone show that step. The load holds the
    phone there, where a tenth of a degree is a tenth of the sojourn."""
    heat = learnt(block("pixel_7", 360.0, 60.0)).heat
    assert heat is not None and [each.at for each in heat.steps] == pytest.approx([39, 42, 45], abs=0.1)
    service = {"kind": "fixed", "mean": f"{INFERENCE_S} s"}
    of = {"name": "a", "arrivals": {"kind": "poisson", "rate": 7.5}, "service": service}
    spec = make([of], [{"name": "phone", "heat": heat.model_dump()}], duration="10 min", warm_up="none")
    runs = run_simulated(spec)
    truth_s, hottest_c = phone_serves(profile_of("pixel_7"), runs[0].requests.column("intended"))
    found = measure_runs(spec, runs)
    for name, truth in (("mean", truth_s.mean()), ("p99", np.quantile(truth_s, 0.99))):
        told = next(each for each in found.doubts if f"open: {name} of the sojourn" in each)
        low_s, high_s = map(float, re.findall(r"from ([0-9.]+) to ([0-9.]+) s", told)[0])
        assert 0.99 * low_s <= truth <= 1.01 * high_s
    assert max(temp_c for (temp_c,) in runs[0].course.temp_c if temp_c) <= max(hottest_c, 45.1)


def test_where_heat_is_sure_figures_are_those_of_one_run() -> None:
    """A cool phone's are, too: no step is near."""
    heat = learnt(block("pixel_7", 360.0, 60.0)).heat
    assert heat is not None and heat.unsure_c > 0 and len(heat.others()) == 4
    sure = heat.model_copy(update={"unsure_c": 0.0, "time_constant_between": None})
    assert sure.others() == ()
    for each in (heat, sure):
        spec = make(servers=[{"name": "phone", "heat": each.model_dump()}], duration="60 s")
        runs = run_simulated(spec)
        assert measure_runs(spec, runs) == measure(spec, runs)


def test_a_run_that_is_hotter_than_any_block_says_so() -> None:
    heat = learnt(block("galaxy_s7", 360.0, 60.0)).heat
    assert heat is not None
    hotter = heat.model_copy(update={"ambient": heat.ambient + 15})
    (doubt,) = run(make(servers=[{"name": "phone", "heat": hotter.model_dump()}], duration="10 min")).doubts
    assert doubt.startswith("phone became") and f"hotter than {heat.known_to:.1f} C" in doubt


def without_temperature(record: Record) -> Record:
    power = tuple(each.model_copy(update={"skin_dc": None, "temp_dc": None}) for each in record.power)
    return record.model_copy(update={"power": power})


def of_random_heat(record: Record) -> Record:
    """Its temperatures have nothing to do with its load."""
    random = np.random.default_rng(1)
    power = tuple(each.model_copy(update={"skin_dc": int(random.integers(250, 400))}) for each in record.power)
    return record.model_copy(update={"power": power})


@pytest.mark.parametrize(
    ("load_s", "idle_s", "change", "said"),
    [
        (30.0, 60.0, lambda record: record, "longest load of 30 s does not tell the time constant"),
        (5.0, 5.0, lambda record: record, "warmed by [01].[0-9] C"),
        (30.0, 60.0, without_temperature, "no block tells its temperature"),
        (360.0, 60.0, of_random_heat, "does not tell the time constant|do not follow the load"),
    ],
    ids=["short", "cool", "mute", "random"],
)
def test_blocks_that_do_not_suffice_teach_no_heat(
    load_s: float, idle_s: float, change: Callable[[Record], Record], said: str
) -> None:
    found = learnt(change(block("pixel_7", load_s, idle_s)))
    assert found.heat is None and re.search(said, found.why_no_heat) and "state `heat`" in found.text


SPEC = """
name: replay
servers: [{name: phone, learn: {experiment: night}%s}]
classes:
  - {name: a, arrivals: {kind: poisson, rate: 6}, service: {kind: fixed, mean: 100 ms}}
duration: 6 min
"""
SETUPS_MS = (300, 200, 700)


@pytest.fixture
def night(farm: Farm, ledger: Ledger) -> Farm:
    """A ledger with three long blocks, one of which throttled and does not count, and one that failed."""
    jobs = [orchestrated.job("night", number) for number in range(4)]
    ledger.submit("night", orchestrated.experiment(name="night"), jobs)
    for number, job in enumerate(jobs):
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 60.0)
        assert begun is not None
        more: dict[str, Any] = {"outcome": Outcome.FAILED}
        if number < len(SETUPS_MS):
            measured = block("pixel_7", 360.0, 60.0)
            steps = {"slot": 5000, "build": SETUPS_MS[number], "readback": 7000}
            more = {name: getattr(measured, name) for name in ("samples", "phases", "power")}
            more["setup"] = [
                Setup(seq=0, t_ns=0, step=step, start_ns=0, duration_ns=ms * 1_000_000)  # type: ignore[arg-type]
                for step, ms in steps.items()
            ]
        if number == 0:
            throttled = Invalidity(code=InvalidCode.THROTTLED, detail="slower")
            more |= {"outcome": Outcome.INVALID, "invalid": (throttled,)}
        ledger.keep(orchestrated.record(job, attempt=begun.attempt, token=begun.token, **more))
    return farm


def simulated(farm: Farm, more: str = "") -> tuple[dict[str, Any], str]:
    Path("spec.yaml").write_text(SPEC % more)
    code, said, told = farm("queue", "spec.yaml", "--simulate", "--json")
    assert code == 0, told
    return json.loads(said), told


def test_a_group_learns_from_the_blocks_that_it_names(night: Farm) -> None:
    found, told = simulated(night)
    (body,) = found["learnt"]
    assert {"server": "phone", "device": "A", "source": "virtual", "blocks": 3, "setup_s": 0.3}.items() <= body.items()
    assert body["heat"]["time_constant"] == pytest.approx(slowest_mode_s(profile_of("pixel_7")), rel=0.15)
    assert "learnt of phone: set-up 0.3 s; " in told and "3 blocks of squeezenet_v1_0 on A (virtual), night" in told
    assert found["all"]["service_s"]["p99"]["value"] > 0.11, "it throttles"
    stated = "heat: {ambient: 20 C, rise_c: 1, time_constant: 1 s}, setup: 1 s"
    cool, _ = simulated(night, f", {stated}")
    assert cool["all"]["service_s"]["p50"]["value"] == pytest.approx(0.1), "what is stated stays"
    assert cool["learnt"] == found["learnt"]


def test_a_group_may_state_that_it_needs_no_set_up(night: Farm, ledger: Ledger) -> None:
    for more, setup_s in (("", 0.3), (", setup: 0 s", 0.0)):
        filled, _ = fill_bodies(parse(SPEC % more, "spec"), ledger, ledger.experiment)
        assert [group.setup for group in filled.servers] == [setup_s]
