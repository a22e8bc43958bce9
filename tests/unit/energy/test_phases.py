"""Energy of a token, of prompts and of generation apart, against what the model of the phone really took.

Fixed seeds, as in `test_truth`: of random ones a share of intervals would now and then be below any bound.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from orchestrator.analysis.statistics import Figure, energy_uses
from orchestrator.energy import BlockEnergy, block_energy
from orchestrator.energy.phases import PhaseEnergy
from orchestrator.figures import TOKEN_ENERGIES, answers, figures_of
from orchestrator.model.device import DeviceState, Health
from orchestrator.model.event import Sample
from orchestrator.model.power import PowerSeries, PowerSource, Scope
from orchestrator.model.record import DoubtCode
from tests.unit.report.records import cell
from virtual_phones.simulation import simulate

from .scenarios import GAIN_UNCERTAINTY, GAUGES, POWERS, answered, answers_of, profile_of, record_of, truth_of

pytestmark = [pytest.mark.unit, pytest.mark.slow]
SEEDS = range(4)
BLOCKS = 5


class Told(NamedTuple):
    """The figure of a phase of one block, and the truth as its gauge could show it."""

    gauge: str
    phase: PhaseEnergy
    truth_j: float
    gain: float


@cache
def told() -> list[Told]:
    found = []
    for gauge in (*GAUGES, *POWERS):
        for seed in SEEDS:
            gain = random.Random(f"gain {gauge} {seed}").gauss(1.0, GAIN_UNCERTAINTY)
            record, truth = answered(gauge, seed, seed, gain)
            energy = block_energy(record)
            assert energy is not None
            assert DoubtCode.POWER_STEP not in {each.code for each in energy.doubts}
            found += [Told(gauge, each, truth[each.name], gain) for each in energy.phases]
    return found


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    every = told()
    assert len(every) == 2 * len(SEEDS) * len(GAUGES | POWERS), "both phases of each block are told"
    whole = [one.phase.per_token_j.low <= one.truth_j <= one.phase.per_token_j.high for one in every]
    within = [own.low <= one.truth_j * one.gain <= own.high for one in every if (own := one.phase.within_per_token_j)]
    for held in (whole, within):
        assert 0.90 <= np.mean(held) <= 0.99, (np.mean(held), len(held))


def test_phases_are_not_mixed() -> None:
    """Each is near its own truth, though a gauge's refresh is as long as a prompt: half the blocks within 1 %."""
    errors = np.array([one.phase.within_per_token_j.value / (one.truth_j * one.gain) - 1 for one in told()])
    assert np.median(np.abs(errors)) < 0.01 and np.mean(np.abs(errors) < 0.05) > 0.9
    widths = np.array([one.phase.within_per_token_j.std / one.phase.within_per_token_j.value for one in told()])
    assert np.median(widths) < 0.02, "the intervals cover because they are right, not because they are wide"


def test_the_interval_over_blocks_holds_the_truth() -> None:
    """Blocks of one phone share its gain's error; a cell's figure is the median over them, by phase."""
    held = []
    for gauge in list(GAUGES)[:5]:
        gain = random.Random(f"phone {gauge}").gauss(1.0, GAIN_UNCERTAINTY)
        runs = [answered(gauge, 0, seed, gain) for seed in range(BLOCKS)]
        (use,) = energy_uses(figures_of(record, cell()) for record, _ in runs)
        for name in TOKEN_ENERGIES:
            figure: Figure = use.per_token_j[name]
            truth_j = float(np.median([truth[name.split()[0]] for _, truth in runs]))
            assert figure.value is not None and figure.total is not None
            held.append(figure.total.low <= truth_j <= figure.total.high)
    assert np.mean(held) >= 0.9


def test_a_meter_tells_the_same(seed: int) -> None:
    """A fast meter's means, and programs that tell a prompt or a generation alone, give the powers that were there."""
    rng = np.random.default_rng(seed)
    prompt_w, token_w, idle_w = rng.uniform(3, 6), rng.uniform(1.5, 3), rng.uniform(0.3, 0.8)
    record, _ = answered("uA, 250 ms", int(rng.integers(100)), int(rng.integers(100)), 1.0)
    edges = [(each.start_ns, each.token_ns[0], each.token_ns[-1]) for each in record.samples if each.tokens]
    load = next(each for each in record.phases if each.phase == "load")
    busy = next((each for each in record.phases if each.phase == "warmup"), load).start_ns
    t_ns = np.arange(record.phases[0].start_ns - 10**9, record.phases[-1].end_ns + 10**9, 10**7)
    power_w = np.where((t_ns > busy) & (t_ns <= load.end_ns), prompt_w, idle_w)
    for _, first_ns, last_ns in edges:
        power_w[(t_ns > first_ns) & (t_ns <= last_ns)] = token_w
    meter = PowerSeries(
        source=PowerSource.METER, scope=Scope.DEVICE, name="m", t_ns=tuple(map(int, t_ns)),
        power_w=tuple(power_w + rng.normal(0, 0.01, len(t_ns))), is_mean=True, gain_uncertainty=0.0,
    )  # fmt: skip
    metered = record.model_copy(update={"series": (meter,), "power": ()})
    apart = metered.model_copy(update={"samples": tuple(_apart(metered.samples))})
    whole = dict[str, int]()
    for one in (metered, apart):
        energy = block_energy(one)
        assert energy is not None and energy.source is PowerSource.METER
        found = {each.name: each for each in energy.phases}
        whole = whole or {name: each.tokens for name, each in found.items()}
        assert {name: each.tokens for name, each in found.items()} == whole
        for name, watts in (("prompt", prompt_w), ("generated", token_w)):
            wanted_j = (watts - idle_w) * found[name].length_s / found[name].tokens  # type: ignore[index]
            assert found[name].per_token_j.value == pytest.approx(wanted_j, rel=0.03)  # type: ignore[index]
    alone = [replace_tokens(each) for each in record.samples]
    without = block_energy(record.model_copy(update={"samples": tuple(alone)}))
    assert without is not None and without.phases == (), "inferences have no phases"


def _apart(samples: tuple[Sample, ...]) -> list[Sample]:
    """The same as a program tells them that times a prompt alone, then a generation alone, and only its mean."""
    found = []
    for each in samples:
        first, last = each.token_ns[0], each.token_ns[-1]
        base = {"seq": 0, "t_ns": 0, "index": each.index, "phase": each.phase, "sequences": each.sequences}
        found.append(Sample(**base, start_ns=each.start_ns, duration_ns=first - each.start_ns, prompt=each.prompt))
        count = len(each.tokens) - each.sequences
        found.append(Sample(**base, start_ns=first, duration_ns=last - first, token_count=count))
    return found


def replace_tokens(sample: Sample) -> Sample:
    return sample.model_copy(update={"prompt": 0, "tokens": (), "token_ns": ()})


def test_tokens_per_percent_of_the_battery() -> None:
    """The phone's own charge counter and level tell it, as its whole power takes them."""
    for gauge in list(GAUGES)[:3]:
        profile, asked = profile_of(gauge), answers_of(profile_of(gauge), 2)
        found = simulate(profile, asked, 2)
        record, level = record_of(found, profile), round(100 * profile.battery.level)
        known = record.model_copy(update={"state_before": DeviceState(health=Health.READY, battery_percent=level)})
        assert asked.answers is not None
        (energy,) = [each for each in (block_energy(record) or none()).phases if each.name == "generated"]
        net_j = truth_of(found, asked.answers)["generated"]
        gross_j = net_j + found.truth.idle_w * energy.length_s / energy.tokens
        volts = np.median([each.voltage_uv for each in record.power if each.voltage_uv]) / 1e6
        wanted = profile.battery.capacity_mah * 3.6 / 100 * volts / gross_j
        assert answers.tokens_per_percent(known) == pytest.approx(wanted, rel=0.05)
        assert answers.tokens_per_percent(record) is None


def none() -> BlockEnergy:
    raise AssertionError("the block has an energy")


def test_simulated_answers_are_those_of_the_course() -> None:
    profile = profile_of("uA, 250 ms")
    course = replace(answers_of(profile, 1), load_s=20.0, idle_s=5.0, warmup_s=0.0, scatter=0.0)
    assert course.answers is not None
    alone = replace(course, answers=replace(course.answers, sequences=1))
    speeds = []
    for asked in (alone, course):
        found, own = simulate(profile, asked, 3), asked.answers
        assert own is not None
        record = record_of(found, profile)
        for each in record.samples:
            assert [len(answer) for answer in each.answers] == [len(each.token_ns)] * own.sequences
            assert len(each.token_ns) == own.generate and each.prompt == own.prompt
            assert all(before < after for before, after in pairwise((each.start_ns, *each.token_ns)))
        assert found.truth.prompt_j + found.truth.generated_j <= found.truth.net_j * (1 + 1e-9)
        speeds.append((answers.prompt_per_s(record) or 0.0, answers.generated_per_s(record) or 0.0))
    texts, share = course.answers.sequences, course.answers.text_share
    assert texts > 1, "else it says nothing"
    gain = np.divide(*reversed(speeds))
    assert gain == pytest.approx((1.0, texts / (1 + share * (texts - 1))), rel=1e-3), "weights are read once for all"
