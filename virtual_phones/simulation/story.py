"""The story of a simulated block: power, heat and battery by `physics.step`, the gauge's readings by `FuelGauge`.

The power is taken at every refresh of the gauge and at every change of the load or of a fault.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from virtual_phones.hardware.clocks import Clocks, policies
from virtual_phones.hardware.gauge import FuelGauge, Reading
from virtual_phones.hardware.physics import State, clock_cap, initial_state, step
from virtual_phones.profile import Profile

PhaseName = Literal["idle_before", "warmup", "load", "idle_after"]
FaultKind = Literal["charging", "freeze", "throttle", "clock_cap", "background", "sampling_gap", "cable_drop"]

LEAD_S = 2.0
"""The phone lies still for so long, and one refresh period more, before the first phase."""
TAIL_S = 1.0
"""The time for which it lies still after the last phase."""
SETTLED_S = 1e-6
"""The moment just after a refresh."""
HIGH_PART = 0.4
"""The part of an inference that is left when its power falls."""
SAME_S = 1e-9
"""Times that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of a language model instead of inferences. Times are of one text, at the highest clock."""

    prompt: int = 128
    """Tokens of the prompt."""
    generate: int = 32
    prompt_s: float = 1.0
    """The time from the start of the prompt to the first token."""
    token_s: float = 0.1
    """The time from one token to the next."""
    prompt_load: float = 1.0
    """Share of the processors that the prompt keeps busy."""
    token_load: float = 0.5
    context_s: float = 0.0
    """The time before the prompt, as busy as it, outside the clock."""
    sequences: int = 1
    """Texts side by side; a prompt computes, and takes so many times as long."""
    text_share: float = 0.2
    """The part of `token_s` that each text takes; the rest reads the weights, once for all texts."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course that the agent is asked for. A phase of no length is left out."""

    idle_s: float = 60.0
    warmup_s: float = 5.0
    load_s: float = 30.0
    """The load ends with the first inference that is complete after so long."""
    load: float = 1.0
    """Share of the processors that inferences keep busy."""
    inference_s: float = 0.05
    """The time of one inference at the highest clock."""
    scatter: float = 0.01
    """Standard deviation of an inference's duration, as a share."""
    period_s: float = 0.1
    """Sampling period."""
    answers: Answers | None = None
    """The load, instead of inferences."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong: from `at_s` after the start of the first phase, for `for_s`."""

    kind: FaultKind
    at_s: float
    for_s: float = 1e9
    share: float = 0.7
    """The share of the clock that `throttle` and `clock_cap` leave; of the cores that `background` keeps busy."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth that no gauge knows, over the load phase."""

    load_s: float
    consumed_j: float
    idle_w: float
    inferences: int
    prompt_j: float = 0.0
    """Net energy of all prompts of answers."""
    generated_j: float = 0.0
    """Net energy from each answer's first token to its last."""

    @property
    def net_j(self) -> float:
        return self.consumed_j - self.idle_w * self.load_s

    @property
    def per_inference_j(self) -> float:
        return self.net_j / self.inferences


@dataclass(frozen=True, slots=True)
class Moment:
    """The phone from the moment before until this one, and what the gauge shows from now on."""

    state: State
    reading: Reading
    own: float
    """Share of the cores that inferences kept busy."""
    others: float
    """Share that others wanted; together they get no more than all."""
    gpu_cap_hz: int
    cpu_cap_khz: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that happened in a block, in order."""

    phases: tuple[tuple[PhaseName, float, float], ...]
    inferences: tuple[tuple[Literal["warmup", "timed"], float, float], ...]
    """(phase, start, end) of each."""
    tokens_s: tuple[tuple[float, ...], ...]
    """The times at which the tokens of each came; none of inferences that are no answers."""
    moments: tuple[Moment, ...]
    truth: Truth


def tell(profile: Profile, course: Course, seed: int, faults: Sequence[Fault], gauge_gain: float) -> Story:
    """Return what happens, apart from how the agent tells it."""
    block = _Block(profile, course, seed, tuple(faults), gauge_gain)
    block.rest(LEAD_S + block.refresh_s)
    block.start_s = block.state.time_s
    phases: list[tuple[PhaseName, float, float]] = []
    for name, length_s in (("idle_before", course.idle_s), ("warmup", course.warmup_s), ("load", course.load_s)):
        phases += block.phase(name, length_s)  # type: ignore[arg-type]
    truth = block.truth
    phases += block.phase("idle_after", course.idle_s)
    block.rest(TAIL_S)
    return Story(tuple(phases), tuple(block.inferences), tuple(block.tokens_s), tuple(block.moments), truth)


@dataclass(slots=True)
class _Inferences:
    """One inference after the other, at the clock of the moment."""

    course: Course
    chance: random.Random
    started_s: float
    left_s: float = 0.0
    """The time that the inference that runs would still take at the highest clock."""
    whole_s: float = 1.0
    """The time that it takes in all."""
    done: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin(self.started_s)

    def advance(self, now_s: float, until_s: float, clock: float) -> None:
        while (end_s := now_s + self.left_s / clock) <= until_s + SAME_S:
            self.done.append((self.started_s, end_s))
            now_s = end_s
            self._begin(now_s)
        self.left_s -= (until_s - now_s) * clock

    def _begin(self, now_s: float) -> None:
        self.started_s = now_s
        self.left_s = self.whole_s = self.course.inference_s * max(0.1, self.chance.gauss(1.0, self.course.scatter))

    @property
    def shape(self) -> float:
        """Return the power above its mean at this moment of the inference, as a share of the ripple; 0 on the whole."""
        return 2 / 3 if self.left_s > HIGH_PART * self.whole_s else -1.0


class _Block:
    def __init__(
        self, profile: Profile, course: Course, seed: int, faults: tuple[Fault, ...], gauge_gain: float
    ) -> None:
        self.profile, self.course, self.faults, self.gain = profile, course, faults, gauge_gain
        self.refresh_s = profile.gauge.refresh_ms / 1000
        self.start_s = float("inf")
        self.inferences: list[tuple[Literal["warmup", "timed"], float, float]] = []
        self.tokens_s: list[tuple[float, ...]] = []
        self.moments: list[Moment] = []
        self._net_j = {"prompt": 0.0, "generated": 0.0}
        self._chance = random.Random(seed)
        self._gauge = FuelGauge(profile, seed)
        self._clocks = Clocks(profile)
        self._caps: dict[tuple[float, float, float], tuple[float, int, tuple[int, ...]]] = {}
        self.state = replace(initial_state(profile), time_s=self._chance.uniform(1000, 2000))
        self.calm = self.state
        """The same phone without any load: what it draws is idle power, what the other draws beside it is caused."""

    def phase(self, name: PhaseName, length_s: float) -> list[tuple[PhaseName, float, float]]:
        """Go through one phase; tells when it was, or nothing where it has no length."""
        began, calm = self.state, self.calm
        if length_s <= 0:
            return []
        if name in ("warmup", "load"):
            busy = self._busy if self.course.answers is None else self._answer
            busy("timed" if name == "load" else "warmup", began.time_s + length_s)
        else:
            self.rest(length_s)
        if name == "load":
            length_s, consumed_j = self.state.time_s - began.time_s, self.state.consumed_j - began.consumed_j
            count = sum(phase == "timed" for phase, _, _ in self.inferences)
            idle_w = (self.calm.consumed_j - calm.consumed_j) / length_s
            self.truth = Truth(length_s, consumed_j, idle_w, count, self._net_j["prompt"], self._net_j["generated"])
        return [(name, began.time_s, self.state.time_s)]

    def rest(self, length_s: float) -> None:
        until_s = self.state.time_s + length_s
        while self.state.time_s < until_s - SAME_S:
            self._step(min(until_s, self._next_change_s()), 0.0)

    def _busy(self, phase: Literal["warmup", "timed"], until_s: float) -> None:
        """Inference after inference, until one is complete after `until_s`."""
        running = _Inferences(self.course, self._chance, self.state.time_s)
        while not running.done or running.done[-1][1] < until_s:
            now_s, clock = self.state.time_s, self._limits()[0]
            end_s, change_s = now_s + running.left_s / clock, self._next_change_s()
            target_s = min(end_s, change_s) if max(end_s, change_s) >= until_s else change_s
            running.advance(now_s, target_s, clock)
            self._step(target_s, self.course.load, running.shape)
        self.inferences += [(phase, start_s, end_s) for start_s, end_s in running.done]

    def _answer(self, phase: Literal["warmup", "timed"], until_s: float) -> None:
        """Answer after answer, until one is complete after `until_s`."""
        own = self.course.answers
        assert own is not None
        self._net_j = {"prompt": 0.0, "generated": 0.0}
        step_s = own.token_s * (1 + own.text_share * (own.sequences - 1))
        while self.state.time_s < until_s:
            self._part("", own.context_s * own.sequences, own.prompt_load)
            start_s = self.state.time_s
            self._part("prompt", own.prompt_s * own.sequences, own.prompt_load)
            tokens_s = [self.state.time_s]
            for _ in range(own.generate - 1):
                self._part("generated", step_s, own.token_load)
                tokens_s.append(self.state.time_s)
            self.inferences.append((phase, start_s, tokens_s[-1]))
            self.tokens_s.append(tuple(tokens_s))

    def _part(self, name: str, length_s: float, load: float) -> None:
        """One part of an answer, with what it draws beside the idle power."""
        left_s = length_s * max(0.1, self._chance.gauss(1.0, self.course.scatter))
        began, calm = self.state.consumed_j, self.calm.consumed_j
        while left_s > SAME_S:
            now_s, clock = self.state.time_s, self._limits()[0]
            target_s = min(now_s + left_s / clock, self._next_change_s())
            left_s -= (target_s - now_s) * clock
            self._step(target_s, load)
        if name:
            self._net_j[name] += self.state.consumed_j - began - (self.calm.consumed_j - calm)

    def _step(self, until_s: float, load: float, shape: float = 0.0) -> None:
        """Step to a moment before which nothing changes. `shape`: see `_Inferences.shape`."""
        others = sum(fault.share for fault in self._now("background"))
        share, gpu_cap_hz, cpu_cap_khz = self._limits()
        charging = self.profile.battery.charging or bool(self._now("charging"))
        if charging != self.state.charging:
            self.state, self.calm = (replace(each, charging=charging) for each in (self.state, self.calm))
        length_s = until_s - self.state.time_s
        self.state = step(self.profile, self.state, min(1.0, load + others), length_s, clock=share)
        self.calm = step(self.profile, self.calm, 0.0, length_s)
        self._gauge.frozen = bool(self._now("freeze"))
        power = self.profile.power
        caused = (power.load_w - power.idle_w) * load * share / max(self.state.device_w, 1e-9)
        rippled = self.state.current_a * (1 + power.ripple * shape * caused)
        reading = self._gauge.read(replace(self.state, current_a=rippled * self.gain))
        self.moments.append(Moment(self.state, reading, load, others, gpu_cap_hz, cpu_cap_khz))

    def _now(self, kind: FaultKind) -> list[Fault]:
        since_s = self.state.time_s - self.start_s + SETTLED_S
        return [fault for fault in self.faults if fault.kind == kind and 0 <= since_s - fault.at_s < fault.for_s]

    def _next_change_s(self) -> float:
        after_s = self.state.time_s + SETTLED_S
        refresh_s = (int(after_s / self.refresh_s) + 1) * self.refresh_s + SETTLED_S
        edges = [self.start_s + at_s for fault in self.faults for at_s in (fault.at_s, fault.at_s + fault.for_s)]
        return min([refresh_s, *(edge_s for edge_s in edges if edge_s > after_s)])

    def _limits(self) -> tuple[float, int, tuple[int, ...]]:
        """(share of the highest clock, highest clock allowed to the GPU, to each core)."""
        heat = clock_cap(self.profile.thermal, self.state.skin_c)
        seen, hidden = (min([1.0, *(f.share for f in self._now(kind))]) for kind in ("clock_cap", "throttle"))
        if (heat, seen, hidden) not in self._caps:
            self._clocks.caps, self._clocks.hidden = {"fault": seen}, {"fault": hidden}
            cores = [(self._clocks.cpu(first, heat).high, cluster.cores) for first, cluster in policies(self.profile)]
            cpu_cap_khz = tuple(cap for cap, count in cores for _ in range(count))
            share = min(heat, self._clocks.share())
            self._caps[heat, seen, hidden] = share, self._clocks.gpu(heat).high, cpu_cap_khz
        return self._caps[heat, seen, hidden]
