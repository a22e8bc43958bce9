"""Simulated blocks as records, and the gauges on which the energy is checked against the truth."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from orchestrator.energy import BlockEnergy, block_energy
from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.event import EVENT, Event, Phase, Power, Sample, Sampler
from orchestrator.model.experiment import Conditions
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.record import Outcome, Record
from virtual_phones.profile import Profile, load_profile
from virtual_phones.simulation import Answers, Course, Fault, FaultKind, Simulated, simulate

Kind = TypeVar("Kind")

GAIN_UNCERTAINTY = 0.01
"""Standard uncertainty of the simulated gauges' gain; each run draws its error from it."""

GAUGES: dict[str, tuple[str, dict[str, Any]]] = {
    "uA, 250 ms": ("galaxy_s7", {}),
    "uA, 1 s, inverted sign": ("nexus_5", {}),
    "mA, 500 ms": ("galaxy_s24", {}),
    "uA, 250 ms, high idle": ("nexus_6p", {}),
    "uA, 250 ms, fine steps": ("pixel_7", {}),
    "mA, 1 s, inverted sign, noisy": ("galaxy_s7", {
        "unit": "mA", "refresh_ms": 1000, "discharging_sign": 1, "noise_ua": 15_000,
    }),
    "uA, 700 ms, steps of 10 mA, noisy": ("pixel_7", {"refresh_ms": 700, "quantum_ua": 10_000, "noise_ua": 6000}),
}  # fmt: skip
"""Name -> profile and what its gauge has otherwise."""
POWERS: dict[str, dict[str, float]] = {
    "wandering rest": {"wander_w": 0.02},
    "leakage": {"leak_w_per_k": 0.01},
    "ripple, wandering rest, leakage": {"ripple": 0.3, "wander_w": 0.01, "leak_w_per_k": 0.004},
}
"""Name -> what the power of a Galaxy S7 has otherwise."""

QUIET: dict[str, tuple[str, dict[str, Any]]] = {
    "no noise, steps of 10 mA": ("pixel_7", {"quantum_ua": 10_000, "noise_ua": 0}),
    "hardly any noise, steps of 5 mA": ("nexus_5", {"quantum_ua": 5_000, "noise_ua": 500}),
    "little noise, mA": ("galaxy_s24", {"noise_ua": 300}),
    "no gauge": ("sd888_hdk", {}),
}
"""Gauges that print the same for long and are well, and a phone whose gauge cannot be read."""

DISCHARGING = Conditions(supply="discharging")


@dataclass(frozen=True)
class Run:
    """One simulated block, as the farm sees it and as it was."""

    truth_j: float
    """An inference's true energy."""
    record: Record
    gain: float
    cut: bool = False
    """The agent's first stream ended without a result: a cable was drawn."""

    @cached_property
    def energy(self) -> BlockEnergy:
        found = block_energy(self.record)
        assert found is not None
        return found


@cache
def profile_of(gauge: str) -> Profile:
    name, changes = (GAUGES | QUIET | dict.fromkeys(POWERS, ("galaxy_s7", {})))[gauge]
    profile = load_profile(name)
    power = profile.power.model_copy(update=POWERS.get(gauge, {}))
    return profile.model_copy(update={"gauge": profile.gauge.model_copy(update=changes), "power": power})


def calibration_of(profile: Profile, gain_uncertainty: float = GAIN_UNCERTAINTY) -> GaugeCalibration:
    """Return the calibration as enrolment finds it, with a meter at hand."""
    gauge = profile.gauge
    return GaugeCalibration(
        ampere_per_unit=1e-3 if gauge.unit == "mA" else 1e-6,
        discharging_sign=gauge.discharging_sign,
        refresh_ns=round(gauge.refresh_ms * 1e6),
        noise_a=math.hypot(gauge.noise_ua, gauge.quantum_ua / math.sqrt(12)) * 1e-6,
        gain_uncertainty=gain_uncertainty,
        absolute=True,
        method="meter",
    )


def course_of(profile: Profile, seed: int) -> Course:
    """A course as the protocol wants it: load, inference, warm-up and sampling period vary."""
    chance, refresh_s = random.Random(f"course {profile.name} {seed}"), profile.gauge.refresh_ms / 1000
    return Course(
        idle_s=60,
        warmup_s=chance.choice((0.0, 3.0, 10.0)),
        load_s=max(30.0, 100 * refresh_s) * chance.uniform(1.0, 1.3),
        load=chance.uniform(0.4, 1.0),
        inference_s=math.exp(chance.uniform(math.log(0.03), math.log(0.4))),
        scatter=chance.uniform(0.002, 0.03),
        period_s=chance.choice((0.04, 0.1, 0.125)) if refresh_s < 0.5 else chance.choice((0.1, 0.25)),
    )


def run_block(gauge: str, seed: int, faults: tuple[Fault, ...] = (), course: Course | None = None) -> Run:
    profile = profile_of(gauge)
    gain = random.Random(f"gain {gauge} {seed}").gauss(1.0, GAIN_UNCERTAINTY)
    simulated = simulate(profile, course or course_of(profile, seed), seed, faults, gain)
    cut = simulated.parts[0][-1]["event"] not in ("result", "error")
    return Run(simulated.truth.per_inference_j, record_of(simulated, profile), gain, cut)


def record_of(simulated: Simulated, profile: Profile, *, calibrated: bool = True, **more: Any) -> Record:
    """The record that a worker makes of these lines."""
    events = [EVENT.validate_python(event) for event in simulated.events]
    facts = DeviceFacts(serial="SIM", host="h", kind="phone", source=Source.VIRTUAL, profile=profile.name)
    fields: dict[str, Any] = {
        "experiment_id": "e", "job_id": "j", "cell_id": "c", "block": 0, "attempt": 1, "token": 1, "worker": "w",
        "device": facts, "source": Source.VIRTUAL, "outcome": Outcome.OK, "started_at": 0.0, "ended_at": 1.0,
        "samples": of_kind(events, Sample), "phases": of_kind(events, Phase), "power": of_kind(events, Power),
        "sampler": next(iter(of_kind(events, Sampler)), None),
        "gauge": calibration_of(profile) if calibrated else None,
    }  # fmt: skip
    return Record(**{**fields, **more})


def of_kind(events: list[Event], kind: type[Kind]) -> tuple[Kind, ...]:
    return tuple(event for event in events if isinstance(event, kind))


def fault_of(kind: FaultKind, course: Course, seed: int) -> Fault:
    """A fault that begins at a random time between the middle of the first rest and the first half of the load."""
    chance = random.Random(f"fault {seed}")
    load_s = course.idle_s + course.warmup_s
    at_s = chance.uniform(course.idle_s / 2, load_s + course.load_s / 2)
    if kind in ("throttle", "clock_cap"):
        return Fault(kind, chance.uniform(load_s + 0.25 * course.load_s, load_s + 0.6 * course.load_s),
                     share=chance.uniform(0.5, 0.85))  # fmt: skip
    if kind == "sampling_gap":
        return Fault(kind, at_s, for_s=chance.uniform(4.5, 20) * course.period_s)
    if kind == "background":
        return Fault(kind, at_s, for_s=chance.uniform(8, 60), share=chance.uniform(0.2, 0.6))
    if kind in ("freeze", "charging"):
        return Fault(kind, at_s, for_s=chance.choice((20.0, 40.0, 1e9)))
    return Fault(kind, at_s)


def answers_of(profile: Profile, seed: int) -> Course:
    """A course of a language model's answers: prompts and tokens take longer, or shorter, than the gauge's refresh."""
    chance, refresh_s = random.Random(f"answers {profile.name} {seed}"), profile.gauge.refresh_ms / 1000
    answers = Answers(
        prompt=chance.randint(16, 512),
        generate=chance.randint(8, 64),
        prompt_s=math.exp(chance.uniform(math.log(0.3), math.log(6.0))),
        token_s=math.exp(chance.uniform(math.log(0.03), math.log(0.2))),
        prompt_load=chance.uniform(0.6, 1.0),
        token_load=chance.uniform(0.2, 0.7),
        context_s=chance.choice((0.0, chance.uniform(0.1, 2.0))),
        sequences=(texts := random.Random(seed)).randint(1, 4),
        text_share=texts.uniform(0.05, 0.9),
    )
    return Course(
        warmup_s=chance.choice((0.0, 3.0)),
        load_s=max(30.0, 100 * refresh_s) * chance.uniform(1.0, 2.0),
        scatter=chance.uniform(0.002, 0.03),
        period_s=chance.choice((0.04, 0.1)) if refresh_s < 0.5 else chance.choice((0.1, 0.25)),
        answers=answers,
    )


def truth_of(simulated: Simulated, asked: Answers) -> dict[str, float]:
    """True net energy of a token, by phase."""
    truth = simulated.truth
    texts = truth.inferences * asked.sequences
    return {
        "prompt": truth.prompt_j / asked.prompt / texts,
        "generated": truth.generated_j / (asked.generate - 1) / texts,
    }


def answered(gauge: str, course: int, seed: int, gain: float) -> tuple[Record, dict[str, float]]:
    """A block of answers, as the farm sees it, and the truth of a token."""
    profile = profile_of(gauge)
    asked = answers_of(profile, course)
    assert asked.answers is not None
    found = simulate(profile, asked, seed, (), gain)
    return record_of(found, profile), truth_of(found, asked.answers)
