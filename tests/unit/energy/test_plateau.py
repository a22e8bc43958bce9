"""The first plateau of a sustained load: simulated phones whose true moment of throttling is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.figures import figures_of
from orchestrator.figures.plateau import Plateau, plateau_of
from orchestrator.model.event import Sample
from orchestrator.model.record import Record
from orchestrator.report import console, export
from orchestrator.report.html import render
from tests.unit.orchestrator.make import experiment
from tests.unit.report.records import built, cell, summarised
from tests.widths import drawn
from virtual_phones.profile import Profile, load_profile
from virtual_phones.simulation import Course, Fault, simulate

from .scenarios import record_of

THROTTLES = ("galaxy_s24", "pixel_7", "sd888_hdk")
LOAD = cell()


def loaded(profile: Profile, course: Course, seed: int, *faults: Fault, **more: object) -> Record:
    return record_of(simulate(profile, course, seed, faults), profile, **{"cell_id": LOAD.cell_id, **more})


def drawn_course(rng: np.random.Generator, load_s: float) -> Course:
    inference_s, scatter = float(np.exp(rng.uniform(np.log(0.04), np.log(0.8)))), float(rng.uniform(0.005, 0.05))
    return Course(idle_s=1, load_s=load_s, inference_s=inference_s, scatter=scatter, period_s=0.5)


def told(record: Record) -> Plateau:
    found = plateau_of([each for each in record.samples if each.phase == "timed"])
    assert found is not None
    return found


def capped_s(record: Record) -> float | None:
    """Return when the phone's own clock fell under the load, as its nodes told; None: never."""
    (load,) = (each for each in record.phases if each.phase == "load")
    caps = [(each.t_ns, each.gpu_cap_hz) for each in record.power if load.start_ns <= each.t_ns <= load.end_ns]
    return next(((t_ns - load.start_ns) / 1e9 for t_ns, cap in caps if cap != caps[0][1]), None)


def as_answers(record: Record, rng: np.random.Generator) -> list[Sample]:
    """Return the same load as answers: of each an inference is the prompt, and the others its tokens."""
    timed, made = [each for each in record.samples if each.phase == "timed"], []
    while len(timed) > 2:
        count = min(len(timed), int(rng.integers(3, 90)))
        own, timed = timed[:count], timed[count:]
        ends = tuple(each.start_ns + each.duration_ns for each in own)
        told = {"prompt": 9, "tokens": (1,) * count, "token_ns": ends, "duration_ns": ends[-1] - own[0].start_ns}
        made.append(own[0].model_copy(update=told))
    return made


@pytest.mark.parametrize("name", THROTTLES)
def test_heat_ends_the_plateau_when_the_phone_lowers_its_clock(name: str, seed: int) -> None:
    """Inferences and tokens alike: the speeds before and at the end are the counts of the simulation."""
    rng = np.random.default_rng([seed, len(name)])
    course = drawn_course(rng, 900.0)
    record = loaded(load_profile(name), course, seed)
    truth_s, timed = capped_s(record), [each for each in record.samples if each.phase == "timed"]
    assert truth_s is not None
    found = told(record)
    assert found.end_s == pytest.approx(truth_s, abs=0.5 + 3 * course.inference_s)  # a reading, and a few inferences
    assert found.per_s == pytest.approx(1 / course.inference_s, rel=0.01)
    start_s, length_s = timed[0].start_ns / 1e9, (timed[-1].start_ns + timed[-1].duration_ns - timed[0].start_ns) / 1e9
    last = [each for each in timed if each.start_ns / 1e9 - start_s > 2 / 3 * length_s]
    assert found.sustained_per_s == pytest.approx(len(last) / (length_s / 3), rel=0.02)
    assert found.units == pytest.approx(truth_s / course.inference_s, rel=0.02)
    answers = plateau_of(as_answers(record, rng))
    assert answers is not None and found.end_s is not None
    assert answers.end_s == pytest.approx(found.end_s, abs=3 + 4 * course.inference_s)  # prompts are not seen
    assert answers.per_s == pytest.approx(found.per_s, rel=0.01)


def test_a_drop_at_any_time_is_found_where_it_is(seed: int) -> None:
    """Draw phones that do not throttle by themselves, and a throttle that nothing but speed tells."""
    rng = np.random.default_rng(seed)
    for number in range(6):
        course, share = drawn_course(rng, 300.0), float(rng.uniform(0.5, 0.88))
        at_s = float(rng.uniform(45, 240))
        lead_s = course.idle_s + course.warmup_s
        record = loaded(load_profile("galaxy_s7"), course, seed + number, Fault("throttle", lead_s + at_s, share=share))
        (load,) = (each for each in record.phases if each.phase == "load")
        begun_s = (load.start_ns - min(each.start_ns for each in record.phases)) / 1e9 - lead_s
        found = told(record)
        assert found.end_s == pytest.approx(at_s - begun_s, abs=4 * course.inference_s), course
        assert found.sustained_per_s < 0.95 * found.per_s


def test_a_speed_that_wanders_has_no_end(seed: int) -> None:
    """Inferences resemble the one before by 0.9, and wander by 3 %: one load in twenty at most seems to throttle."""
    rng, ends = np.random.default_rng(seed), 0
    for _ in range(40):
        noise = np.zeros(3000)
        steps = rng.normal(0, 0.03 * np.sqrt(1 - 0.9**2), len(noise))
        for i in range(1, len(noise)):
            noise[i] = 0.9 * noise[i - 1] + steps[i]
        ends_ns = np.cumsum((1e8 * np.exp(noise)).astype(int))
        starts_ns = np.concatenate(([0], ends_ns[:-1]))
        samples = [
            Sample(seq=i, t_ns=0, index=i, phase="timed", start_ns=int(a), duration_ns=int(b - a))
            for i, (a, b) in enumerate(zip(starts_ns, ends_ns, strict=True))
        ]
        found = plateau_of(samples)
        assert found is not None
        ends += found.end_s is not None
        assert found.units is None or found.end_s is not None
    assert ends <= 2


def test_few_units_and_a_stall_tell_nothing_wrong() -> None:
    short = [Sample(seq=i, t_ns=0, index=i, phase="timed", start_ns=i * 10**8, duration_ns=10**8) for i in range(99)]
    assert plateau_of(short) is None and plateau_of([]) is None
    stalled = [replace_time(each, each.start_ns + 10**12 * (each.index > 400)) for each in long(800)]
    stalled[400] = stalled[400].model_copy(update={"duration_ns": 10**12 + 10**8})
    assert plateau_of(stalled) is not None


def long(count: int) -> list[Sample]:
    return [Sample(seq=i, t_ns=0, index=i, phase="timed", start_ns=i * 10**8, duration_ns=10**8) for i in range(count)]


def replace_time(sample: Sample, start_ns: int) -> Sample:
    return sample.model_copy(update={"start_ns": start_ns})


def test_blocks_tell_it_with_intervals_and_a_block_that_kept_its_speed_is_no_end(seed: int) -> None:
    """Table, page and JSON; of a load in which some blocks did not throttle no end is told, but how many did."""
    rng, profile = np.random.default_rng(seed), load_profile("pixel_7")
    course = replace(drawn_course(rng, 700.0), inference_s=0.25)
    hot = [loaded(profile, course, seed + n, job_id=f"h{n}", block=n, token=n + 1) for n in range(6)]
    wanted = experiment(sampling={"mode": "sustained", "load": "700 s", "deadline": "15 min"})
    cells = {LOAD.cell_id: LOAD}
    content = built("e", wanted, cells=cells, records=hot, outcomes={"ok": 6}, now=1e9)
    (summary,) = content.summaries
    end, course_told = summary.others["plateau end"], summary.throttling
    truths = sorted(capped_s(each) or 0.0 for each in hot)
    assert end.interval is not None and course_told is not None and course_told.throttled == 6
    assert end.interval.low - 1.5 <= truths[0] <= truths[-1] <= end.interval.high + 1.5
    stretches = course_told.bins
    assert all(each.power_w and each.temp_c and each.clock_hz for each in stretches)
    assert stretches[-1].temp_c > stretches[0].temp_c and stretches[-1].clock_hz < stretches[0].clock_hz
    data = json.loads(json.dumps(export.as_data(content)))["summaries"][0]
    assert data["plateau_end_s"]["value"] == end.value and data["until_throttled_units"]["value"] > 0
    assert data["plateau_per_s"]["value"] > data["sustained_per_s"]["value"] > 0
    table, page = drawn(console.render(content), 200), render(content)
    assert "6 of 6" in table and "plateau units/s" in table and "temperature" in page
    cool = loaded(load_profile("galaxy_s7"), replace(course, load_s=100.0), seed, job_id="cool", block=6, token=9)
    (mixed,) = summarised([*hot, cool], cells, mode="sustained")
    assert "plateau end" not in mixed.others and mixed.others["plateau"].value is not None
    assert mixed.throttling is not None and (mixed.throttling.throttled, mixed.throttling.blocks) == (6, 7)
    assert not figures_of(hot[0], LOAD).values.keys() & {"plateau", "sustained"}, "of a steady block none is told"
