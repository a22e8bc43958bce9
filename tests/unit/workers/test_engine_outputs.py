"""The output of engines' own benchmarks is read right, or refused."""

from __future__ import annotations

import json
import os
import random
import re

import pytest

from orchestrator.model.event import Sample
from orchestrator.model.experiment.engine_settings import PrintedSample
from tests.engine_outputs import Output, engines, outputs, read
from tests.fuzz.mutations import mutate
from workers.engines.agent import came_one_by_one, placed
from workers.engines.folder import Unread

CHANGES = int(os.environ.get("POCKETFARM_ENGINE_OUTPUTS", "200"))
"""Random changes of each engine's outputs; by hand 10000."""
CLOSE = 1e-3
PLAIN = {"benchncnn": r" *\S+  min = .*", "mnn_benchmark": r"\[ - \] .*"}
"""Tools that tell each figure once: in this line of theirs nothing shows a changed digit, and only cuts are tried."""


@pytest.mark.parametrize("output", outputs(), ids=lambda output: f"{output.engine}: {output.name}")
def test_an_output_is_read_as_it_is(output: Output) -> None:
    if output.refused:
        with pytest.raises(Unread, match=re.escape(output.refused)) as told:
            read(output)
        assert told.value.cause == output.cause
        return
    told = read(output)
    assert [each.duration_ns / 1e6 for each in told.samples] == pytest.approx(output.ms, rel=1e-6)
    assert told.device and told.mean_of in (1, output.asked.samples)


def test_every_engine_has_good_and_bad_ones() -> None:
    for name in engines():
        own = [output for output in outputs() if output.engine == name]
        assert len(own) >= 11 and 4 <= sum(bool(output.ms) for output in own) < len(own)


@pytest.mark.parametrize("name", engines())
def test_a_changed_output_is_refused_or_read_right(name: str, seed: int) -> None:
    """Never a figure that is not the tool's: cuts, changed digits, lines twice, parts of other outputs."""
    draw = random.Random(f"{seed} {name}")
    good = [output for output in outputs() if output.engine == name and output.ms]
    seeds = [output.text.encode() for output in good]
    refused = 0
    for _ in range(CHANGES):
        output = draw.choice(good)
        text = changed(output, seeds, draw)
        try:
            told = read(output, text)
        except Unread:
            refused += 1
            continue
        found = [each.duration_ns / 1e6 for each in told.samples]
        assert found == pytest.approx(output.ms, rel=max(CLOSE, checked_within(output))), text
    assert refused > CHANGES / 5, "changes that change nothing try nothing"


def checked_within(output: Output) -> float:
    """The share within which a tool tells a figure twice: llm_bench's second telling has two decimals."""
    return 0.0051 * output.ms[0] / (1000 * output.asked.axes["tokens"]) if output.engine == "mnn_llm_bench" else 0.0


def changed(output: Output, seeds: list[bytes], draw: random.Random) -> str:
    plain = re.search(rf"(?m)^{PLAIN[output.engine]}$", output.text) if output.engine in PLAIN else None
    if draw.random() < 0.3:
        return output.text[: draw.randrange(len(output.text))]
    if plain is None:
        return mutate([output.text.encode()], draw).decode(errors="replace")
    before, after = output.text[: plain.start()], output.text[plain.end() :]
    return mutate([before.encode()], draw).decode(errors="replace") + plain[0] + after


def test_lines_that_are_read_late_are_one_by_one_and_those_of_one_flush_are_not(seed: int) -> None:
    """Samples of less than a millisecond on a busy machine, whose lines are read some ms after they were printed."""
    draw = random.Random(seed)
    for _ in range(50):
        at, printed, late = 10**12, [], []
        run = make_sample(at, 10**12)
        for _ in range(draw.randint(60, 200)):
            duration = draw.randint(10**6, 9 * 10**6)
            at += duration + draw.choice((0, 0, 10**7))
            printed.append(PrintedSample(duration, at))
            late.append(PrintedSample(duration, max([at + draw.randint(0, 40_000_000), *(t for _, t in late[-1:])])))
        assert came_one_by_one(run, printed) and came_one_by_one(run, late)
        flushed = [PrintedSample(duration, at) for duration, _ in printed]
        assert not came_one_by_one(run, flushed)
        for found in (printed, late, flushed):
            samples = placed(run, found)
            ends = [each.start_ns + each.duration_ns for each in samples]
            assert all(end <= after.start_ns for end, after in zip(ends, samples[1:], strict=False))
            assert all(end <= told for end, (_, told) in zip(ends, found, strict=True)), "none ends after its line"
        assert [each.start_ns + each.duration_ns for each in placed(run, printed)] == [told for _, told in printed]


def make_sample(start_ns: int, duration_ns: int) -> Sample:
    return Sample(seq=0, t_ns=start_ns, index=0, phase="timed", start_ns=start_ns, duration_ns=duration_ns)


@pytest.mark.parametrize("name", ["executor_runner", "llama.cpp"])
def test_short_samples_are_read_as_they_are_printed(name: str, seed: int) -> None:
    """Samples of microseconds are printed to the ns, and the tool rounds their mean or sum: as llama-bench did with a
    network of five layers."""
    draw = random.Random(f"{seed} {name}")
    for _ in range(50):
        output = draw.choice([each for each in outputs() if each.engine == name and len(each.ms) > 1])
        samples_ns = [draw.randint(800, 90_000) for _ in output.ms]
        text = (short_llama if name == "llama.cpp" else short_executor)(output, samples_ns)
        assert [each.duration_ns for each in read(output, text).samples] == samples_ns


def short_llama(output: Output, samples_ns: list[int]) -> str:
    line, tokens = re.search(r"(?m)^\{.*$", output.text), output.asked.axes["tokens"]
    assert line is not None
    rates = [float(f"{tokens * 1e9 / each:.6g}") for each in samples_ns]
    told = {"samples_ns": samples_ns, "samples_ts": rates, "avg_ns": sum(samples_ns) // len(samples_ns)}
    return output.text.replace(line[0], json.dumps(json.loads(line[0]) | told))


def short_executor(output: Output, samples_ns: list[int]) -> str:
    """The clock has more digits than are printed."""
    left = iter(samples_ns)
    text = re.sub(r"(Iteration \d+ of \d+: )[0-9.]+", lambda match: f"{match[1]}{next(left) / 1e6:.6f}", output.text)
    total = f"in {(sum(samples_ns) + 0.49 * len(samples_ns)) / 1e6:.6f} ms."
    return re.sub(r"in [0-9.]+ ms\.(?=\nI [^\n]*outputs)", total, text)
