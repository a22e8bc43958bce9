"""A simulated block as the agent's event lines: what its sampler reads, and when."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from virtual_phones.profile import Profile

from .story import Course, Fault, Story

SAMPLER_LEAD_S = 0.5
"""The sampler runs for so long before the first phase, and after the last."""
LATE_S = 0.0003
"""Mean lateness of a reading after its deadline."""
READ_NS = 400_000
"""Reading all nodes takes so long."""
SYSTEM_SHARE = 0.02
"""The share of the cores that the system itself keeps busy, on the average."""
TICKS_PER_S = 100
"""The kernel's ticks, in which it counts a core's time."""
CPU_PER_LOAD = 0.3
"""Share of the cores that inferences on the GPU keep busy, at full load."""

Event = dict[str, Any]


def journal(profile: Profile, course: Course, story: Story, seed: int, faults: Sequence[Fault]) -> tuple[Event, ...]:
    """All lines, in the order of writing."""
    start_s, end_s = story.phases[0][1], story.phases[-1][2]
    chance = random.Random(f"sampler {seed}")
    gaps = [(start_s + f.at_s, start_s + f.at_s + f.for_s) for f in faults if f.kind == "sampling_gap"]
    times_s = list(_deadlines(chance, course, start_s - SAMPLER_LEAD_S, end_s + SAMPLER_LEAD_S, gaps))
    events = [
        *(
            {"event": "phase", "phase": name, "start_ns": _ns(began_s), "end_ns": _ns(over_s), "t_ns": _ns(over_s)}
            for name, began_s, over_s in story.phases
        ),
        *_samples(course, story),
        *_power(profile, course, story, times_s, chance),
    ]
    events.sort(key=itemgetter("t_ns"))
    head, tail = _head(profile, _ns(start_s - 2 * SAMPLER_LEAD_S)), _tail(course, story, times_s)
    return tuple({"seq": seq, **event} for seq, event in enumerate([head, *events, *tail]))


def parts(events: tuple[Event, ...], story: Story, faults: Sequence[Fault]) -> tuple[tuple[Event, ...], ...]:
    """Cut where the cable drops: a follower reads on from there when it is back, nothing is lost or twice."""
    start_s = story.phases[0][1]
    cuts_ns = sorted(_ns(start_s + fault.at_s) for fault in faults if fault.kind == "cable_drop")
    indices = [0, *(bisect_right(events, cut_ns, key=itemgetter("t_ns")) for cut_ns in cuts_ns), len(events)]
    return tuple(events[first:last] for first, last in pairwise(indices))


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)


def _head(profile: Profile, t_ns: int) -> Event:
    return {
        "event": "hello", "t_ns": t_ns, "schema_version": 1, "agent_version": "simulated", "command": "run", "pid": 1,
        "abi": "arm64-v8a", "cores": profile.cores, "page_bytes": 4096,
    }  # fmt: skip


def _tail(course: Course, story: Story, times_s: Sequence[float]) -> list[Event]:
    gaps_s = [later - earlier for earlier, later in pairwise(times_s)]
    t_ns, longest_s = _ns(times_s[-1]) + READ_NS, max(gaps_s)
    sampler = {
        "event": "sampler", "t_ns": t_ns, "period_ns": _ns(course.period_s), "readings": len(times_s),
        "missed": sum(round(gap_s / course.period_s) - 1 for gap_s in gaps_s if gap_s > 1.5 * course.period_s),
        "longest_gap_ns": _ns(longest_s), "cpu_ns": len(times_s) * READ_NS,
    }  # fmt: skip
    run_ns = t_ns - _ns(story.phases[0][1])
    return [sampler, {"event": "result", "t_ns": t_ns, "samples": story.truth.inferences, "run_ns": run_ns}]


def _samples(course: Course, story: Story) -> Iterator[Event]:
    for index, (phase, start_s, end_s) in enumerate(story.inferences):
        start_ns, end_ns = _ns(start_s), _ns(end_s)
        answer: Event = {}
        if course.answers is not None:
            times = [_ns(time_s) for time_s in story.tokens_s[index]]
            texts = course.answers.sequences
            tokens = [1] * len(times) * texts
            answer = {"prompt": course.answers.prompt, "sequences": texts, "tokens": tokens, "token_ns": times}
        yield {
            "event": "sample", "t_ns": end_ns, "index": index, "phase": phase, "start_ns": start_ns,
            "duration_ns": end_ns - start_ns, **answer,
        }  # fmt: skip


def _deadlines(
    chance: random.Random, course: Course, start_s: float, end_s: float, gaps: Sequence[tuple[float, float]]
) -> Iterator[float]:
    for index in range(int((end_s - start_s) / course.period_s) + 1):
        due_s = start_s + index * course.period_s
        if not any(began_s <= due_s < over_s for began_s, over_s in gaps):
            yield due_s + chance.expovariate(1 / LATE_S)


def _power(
    profile: Profile, course: Course, story: Story, times_s: Sequence[float], chance: random.Random
) -> Iterator[Event]:
    moments = [moment.state.time_s for moment in story.moments]
    denied, gpu = profile.gauge.denied, profile.gpu
    tick = 1 / (TICKS_PER_S * profile.cores * course.period_s)
    for time_s in times_s:
        index = bisect_right(moments, time_s)
        shown, running = story.moments[index - 1], story.moments[min(index, len(moments) - 1)]
        reading, own = shown.reading, CPU_PER_LOAD * running.own
        busy = own + running.others + chance.expovariate(1 / SYSTEM_SHARE)
        yield {
            "event": "power",
            "t_ns": _ns(time_s),
            "current_ua": None if "current_now" in denied else reading.current,
            "voltage_uv": None if "voltage_now" in denied else reading.voltage_uv,
            "temp_dc": reading.temp_dc,
            "status": reading.status,
            "charge_uah": None if "charge_counter" in denied else reading.charge_uah,
            "gpu_hz": running.gpu_cap_hz if running.own > 0 else gpu.clocks_hz[0],
            "gpu_cap_hz": running.gpu_cap_hz,
            "cpu_cap_khz": running.cpu_cap_khz,
            "gpu_busy": running.own,
            "cpu_busy": min(1.0, round(busy / tick) * tick),
            "own_busy": own,
            "skin_dc": round(running.state.skin_c * 10),
            "read_ns": READ_NS,
        }
