"""Experiments with language models: the numbers of tokens are axes, however they are written; what does not fit."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from orchestrator.exchange.token_rows import token_rows
from orchestrator.figures import answers
from orchestrator.model.device import OURS, EngineFacts
from orchestrator.model.event import Power, Sample
from orchestrator.model.experiment import Experiment
from orchestrator.spec.expansion.expand import cells_of, expand
from tests.unit.report.records import cell, record

from . import make


def asked(workload: dict[str, Any], **parts: Any) -> Experiment:
    own = {"language_model": "decoder.onnx", **workload}
    return Experiment.model_validate({"name": "talks", "workload": own, **parts})


def test_numbers_of_tokens_are_axes_wherever_they_stand(seed: int) -> None:
    """Any of them may stand in the workload or in the matrix, as one number or several; what is kept says it once."""
    random = Random(seed)
    text = {name: random.sample(range(1, 999), random.randrange(1, 4)) for name in ("context", "prompt", "generate")}
    text |= {"batch": random.sample(range(1, 99), random.randrange(1, 3))} if random.random() < 0.5 else {}
    inside = random.sample(sorted(text), random.randrange(len(text) + 1))
    spelled = {name: values[0] if len(values) == 1 else values for name, values in text.items()}
    experiment = asked(
        {name: spelled[name] for name in inside}, matrix={n: each for n, each in spelled.items() if n not in inside}
    )
    cells = cells_of(experiment)
    wanted = set(product(text["context"], text["prompt"], text["generate"], text.get("batch", [1])))
    assert {each.text for each in cells} == wanted and len(cells) == len(wanted)
    kept = Experiment.model_validate_json(experiment.model_dump_json())
    assert [each.cell_id for each in cells_of(kept)] == [each.cell_id for each in cells]
    (plain,) = cells_of(asked({}))
    assert plain.text == (0, 512, 128, 1) and plain.text.capacity == 639 and plain.text.pieces == (64, 1)


def test_other_experiments_say_nothing_of_tokens() -> None:
    assert not {"context", "prompt", "generate"} & make.experiment().model_dump(mode="json")["matrix"].keys()


@pytest.mark.parametrize(
    ("workload", "parts", "words"),
    [
        ({"prompt": 3}, {"matrix": {"prompt": 4}}, "give `prompt` once"),
        ({"prompt": 0}, {}, "greater than or equal to 1"),
        ({"prompt": "once"}, {"matrix": {"prompt": 4}}, "give `prompt` once"),
        ({"prompt": {"text": "a.txt", "tokens": "b.npy"}}, {}, "give one of `text` and `tokens`"),
        ({"onnx": "m.onnx"}, {}, "give exactly one of"),
        ({"input": "x.npy"}, {}, "has no `input`"),
        ({"language_model": None, "network": "lenet", "prompt": 3}, {}, "are of a `language_model`"),
        ({"language_model": None, "network": "lenet"}, {"matrix": {"context": 3}}, r"matrix\.context: a text is of"),
        ({"batch": 3}, {"matrix": {"batch": 2}}, "give `batch` once"),
        ({"language_model": None, "network": "lenet", "batch": 3}, {}, "are of a `language_model`"),
        ({}, {"matrix": {"network": "lenet"}}, r"leave out `matrix\.network`"),
        ({}, {"matrix": {"on_cpu": "softmax"}}, r"leave out `matrix\.on_cpu`"),
        ({}, {"sampling": {"frames": 4}}, r"leave out `sampling\.frames`"),
        ({}, {"measure": {"quantities": ["latency", "layers"]}}, r"leave out `measure\.quantities: layers`"),
        ({}, {"sides": {"baseline": {"onnx": "a"}, "candidate": {"onnx": "b"}}}, "leave out `sides: onnx, network`"),
    ],
)
def test_what_does_not_fit_is_refused_with_words(workload: dict[str, Any], parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        asked(workload, **parts)


def test_other_engines_are_excluded_with_the_reason() -> None:
    other = EngineFacts(name="other", takes=("network", "onnx"), missing="install it")
    device = make.device("A").model_copy(update={"engines": (OURS, other)})
    found = expand(asked({"prompt": [8, 16]}, matrix={"engine": [OURS.name, "other"]}), "e", [device])
    assert {job.cell.engine for job in found.jobs} == {OURS.name}
    reasons = [each.reason for each in found.exclusions]
    assert "engine other runs no `language_model` of a workload (it runs: network, onnx)" in reasons


def test_figures_are_ratios_of_sums(seed: int) -> None:
    """Draw answers of unlike length, of a text or several: each figure equals what NumPy makes of the same times."""
    rng = np.random.default_rng(seed)
    plain, sequences = record(cell("cpu"), [1.0] * int(rng.integers(1, 6))), int(rng.choice([1, rng.integers(2, 9)]))
    drawn = [_answer(each, rng, sequences) for each in plain.samples]
    found, timed = plain.model_copy(update={"samples": tuple(drawn)}), drawn[1:]
    first = np.array([each.token_ns[0] - each.start_ns for each in timed])
    gaps = [np.diff(each.token_ns) for each in timed]
    prompts = sequences * sum(each.prompt for each in timed)
    assert answers.prompt_per_s(found) == pytest.approx(prompts / first.sum() * 1e9)
    every = np.concatenate(gaps)
    assert answers.generated_per_s(found) == pytest.approx(sequences * len(every) / every.sum() * 1e9)
    of_each = answers.generated_of_each_per_s(found)
    assert of_each == (pytest.approx(len(every) / every.sum() * 1e9) if sequences > 1 else None)
    assert answers.answer_of(found) == timed[0].tokens[: len(timed[0].token_ns)]
    assert answers.first_token_ms(found) == pytest.approx(np.median(first) / 1e6)
    assert answers.between_tokens_ms(found) == pytest.approx(np.median(every) / 1e6)
    p99 = answers.between_tokens_p99_ms(found)
    assert p99 == (pytest.approx(np.percentile(every, 99) / 1e6) if len(every) >= 100 else None)
    assert answers.prompt_per_s(plain) is answers.generated_per_s(plain) is answers.first_token_ms(plain) is None


def test_temperatures_and_clocks_stand_beside_each_token(seed: int) -> None:
    """A token has what the last reading before it says, where that is not old; a gap in the readings leaves it out."""
    rng = np.random.default_rng(seed)
    plain = record(cell("cpu"), [1.0, 1.0])
    sequences = int(rng.integers(1, 4))
    found = plain.model_copy(update={"samples": tuple(_answer(each, rng, sequences) for each in plain.samples)})
    tokens = [(each, at) for each in found.samples for _ in range(sequences) for at in each.token_ns]
    first, last = max(0, tokens[0][1] - 10**7), tokens[-1][1] + 10**7
    gap = sorted(map(int, rng.integers(first, last, 2)))
    times = [at for at in range(first, last, 10**6) if not gap[0] < at < gap[1]]
    power = tuple(
        Power(seq=0, t_ns=at, temp_dc=250 + place % 99, skin_dc=300 + place % 99, cpu_khz=(place, 7), gpu_hz=place)
        for place, at in enumerate(times)
    )
    rows = list(token_rows(found.model_copy(update={"power": power})))
    assert [row["token"] for row in rows] == [token for each in found.samples for token in each.tokens]
    for row, (sample, at) in zip(rows, tokens, strict=True):
        place = sum(time <= at for time in times) - 1
        assert (row["index"], row["t_ns"]) == (sample.index, at)
        if place < 0 or at - times[place] > 3 * 10**6:
            assert row["battery_temp_c"] is row["cpu_hz"] is None
        else:
            wanted = (25 + place % 99 / 10, 30 + place % 99 / 10, 1000 * max(place, 7), place)
            assert (row["battery_temp_c"], row["skin_temp_c"], row["cpu_hz"], row["gpu_hz"]) == pytest.approx(wanted)
    assert sum(row["token_ms"] for row in rows) == pytest.approx(  # type: ignore[misc]
        sequences * sum(each.token_ns[-1] - each.start_ns for each in found.samples) / 1e6
    )


def _answer(sample: Sample, rng: np.random.Generator, sequences: int) -> Sample:
    count = int(rng.integers(2, 80))
    times = sample.start_ns + rng.integers(1, 10**7, count).cumsum()
    tokens = tuple(map(int, rng.integers(0, 99, count * sequences)))
    told = {"prompt": int(rng.integers(1, 600)), "sequences": sequences, "tokens": tokens}
    told |= {"token_ns": tuple(map(int, times))}
    return sample.model_copy(update=told)
