"""Text that the agent generates: the tokens are those of onnxruntime on each backend, from a state that is cleared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for

from kernels.compile import compile_generation
from kernels.frontend.load import load_decoder
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Bundle
from orchestrator.model.event import Error, Sample
from orchestrator.model.experiment.language_model import Text
from tests.unit.kernels.front.decoders import SOURCES, SPELLINGS, Drawn, drawn
from tests.unit.kernels.front.gguf_models import CONTEXT
from tests.waiting import eventually

from .driver import TIMEOUT_S, Agent, Ended, read_events
from .phone_nodes import battery, write_nodes

CAPACITY, COUNT, PIECE = 32, 12, 4


def compiled(
    tmp_path: Path, rng: np.random.Generator, backend: Backend, sources: tuple[str, ...] = SOURCES, sequences: int = 1
) -> tuple[Drawn, Bundle]:
    """A drawn decoder with a prompt of several pieces, of which the last is not full."""
    model = drawn(tmp_path, rng, str(rng.choice(sources)), prompt=int(rng.integers(5, 12)))
    steps = load_decoder(model.path, CAPACITY, (PIECE, 1), sequences=sequences)
    return model, compile_generation(steps, Options(backend), Limits(), spirv_cache=tmp_path)


def generate(agent: Agent, bundle: Bundle, tokens: Sequence[int], count: int, *options: object) -> Ended:
    file = agent.folder / "tokens.bin"
    np.array(tokens, "<i8").tofile(file)
    return agent.run(bundle, {}, "--tokens", file, *(("--generate", count) if count else ()), *options)


@pytest.mark.parametrize("sources", [SPELLINGS, ("gguf",)], ids=["onnx", "gguf"])
@pytest.mark.parametrize("backend", ["cpu", "opencl", "vulkan"])
def test_tokens_are_those_of_onnxruntime(
    tmp_path: Path, agent: Agent, seed: int, backend: Backend, sources: tuple[str, ...]
) -> None:
    rng = np.random.default_rng([seed, len(backend)])
    sequences = int(rng.integers(2, 10)) if rng.random() < 0.6 else 1
    model, bundle = compiled(tmp_path, rng, backend, sources, sequences)
    context = int(rng.integers(0, len(model.prompt)))
    others = rng.integers(0, model.words, (sequences - 1, len(model.prompt)))
    texts = [model, *(replace(model, prompt=tuple(map(int, each))) for each in others)]
    tokens = [token for text in texts for token in text.prompt]
    ended = generate(agent, bundle, tokens, COUNT, "--warmup", 1, "--samples", 2, "--context", context)
    samples = [event for event in ended.events if isinstance(event, Sample)]
    assert [sample.phase for sample in samples] == ["warmup", "timed", "timed"]
    assert {sample.answers for sample in samples} == {tuple(tuple(text.greedy(COUNT)) for text in texts)}
    for sample in samples:
        assert (sample.context, sample.prompt) == (context, len(model.prompt) - context)
        assert len(sample.token_ns) == COUNT
        assert (sample.start_ns, *sample.token_ns) == tuple(sorted((sample.start_ns, *sample.token_ns)))
        assert sample.duration_ns == sample.token_ns[-1] - sample.start_ns
    if model.spelling != "gguf" and sequences == 1:  # of which a plan gives the last row of logits
        probabilities_are_onnxruntimes(agent, bundle, model, context)


def test_a_gguf_file_tells_the_probabilities_of_a_text(tmp_path: Path, agent: Agent, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, "gguf", prompt=int(rng.integers(5, 12)))
    steps = load_decoder(model.path, CAPACITY, (PIECE, 1), logits=PIECE)
    bundle = compile_generation(steps, Options("cpu"), Limits())
    probabilities_are_onnxruntimes(agent, bundle, model, int(rng.integers(0, len(model.prompt) - 1)))


def probabilities_are_onnxruntimes(agent: Agent, bundle: Bundle, model: Drawn, context: int) -> None:
    """Each token's behind all before it, in pieces of which the last is not full."""
    ended = generate(agent, bundle, model.prompt, 0, "--samples", 1, "--context", context)
    (sample,) = (event for event in ended.events if isinstance(event, Sample))
    rows = model.logits().astype(np.float64)
    wanted = scipy.special.log_softmax(rows, -1)[np.arange(len(rows) - 1), model.prompt[1:]]
    np.testing.assert_allclose(sample.log_probabilities, wanted[context:], atol=2e-4)
    assert (sample.context, sample.prompt, sample.tokens) == (context, len(model.prompt) - context, ())


def test_a_full_state_is_filled_to_its_last_row(tmp_path: Path, agent: Agent, seed: int) -> None:
    model, bundle = compiled(tmp_path, np.random.default_rng(seed), "cpu")
    count = CAPACITY + 1 - len(model.prompt)
    ended = generate(agent, bundle, model.prompt, count)
    assert [e.tokens for e in ended.events if isinstance(e, Sample)] == [tuple(model.greedy(count))]
    prompt = tuple(map(int, np.resize(model.prompt, CAPACITY - 1)))  # its last piece has no room to be filled up
    ended = generate(agent, bundle, prompt, 2)
    longer = replace(model, prompt=prompt)
    assert [e.tokens for e in ended.events if isinstance(e, Sample)] == [tuple(longer.greedy(2))]


def test_what_does_not_fit_is_refused_with_words(tmp_path: Path, agent: Agent, seed: int) -> None:
    model, bundle = compiled(tmp_path, np.random.default_rng(seed), "cpu")
    cases = {
        f"the plan holds {CAPACITY}": (model.prompt, CAPACITY, ()),
        f"token {model.words}; the vocabulary has {model.words}": ((*model.prompt, model.words), 2, ()),
        f"more than the --context of {len(model.prompt)}": (model.prompt, 2, ("--context", len(model.prompt))),
        "leave out --inferences": (model.prompt, 2, ("--inferences", 2)),
        **({"gives the last token's logits alone": (model.prompt, 0, ())} if model.spelling == "gguf" else {}),
    }
    for words, (tokens, count, options) in cases.items():
        ended = generate(agent, bundle, tokens, count, *options)
        assert any(isinstance(event, Error) and words in event.message for event in ended.events), words
    ended = agent.run(bundle, {})
    assert any(isinstance(event, Error) and "give --tokens FILE" in event.message for event in ended.events)
    model, bundle = compiled(tmp_path, np.random.default_rng(seed), "cpu", sequences=2)
    for words, (tokens, count) in {
        "as many for each of 2 sequences": ((*model.prompt, *model.prompt, 0), 2),
        "probabilities are told of a single sequence": ((*model.prompt, *model.prompt), 0),
    }.items():
        ended = generate(agent, bundle, tokens, count)
        assert any(isinstance(event, Error) and words in event.message for event in ended.events), words


@pytest.mark.parametrize("sources", [SPELLINGS, ("gguf",)], ids=["onnx", "gguf"])
def test_each_token_of_a_prompt_is_computed_once(
    tmp_path: Path, agent: Agent, seed: int, sources: tuple[str, ...]
) -> None:
    """Runs inside the clock take as many tokens as the prompt has, behind a context of any length, by the pieces of a
    workload's text. Pieces of other lengths fill up, or compute again: the count tells."""
    rng = np.random.default_rng(seed)
    context, prompt = int(rng.integers(0, 90)), int(rng.integers(1, 30) if rng.random() < 0.5 else rng.integers(65, 90))
    context = min(context, CONTEXT - prompt - 4)
    text = Text(context, prompt, 4)
    model = drawn(tmp_path, rng, str(rng.choice(sources)), prompt=context + prompt)
    wanted = tuple(model.greedy(4))
    for pieces in (text.pieces, (PIECE, 1)):
        steps = load_decoder(model.path, text.capacity, pieces)
        bundle = compile_generation(steps, Options("cpu"), Limits(), spirv_cache=tmp_path)
        ended = generate(agent, bundle, model.prompt, 4, "--samples", 1, "--context", context)
        (sample,) = (event for event in ended.events if isinstance(event, Sample))
        assert (sample.context, sample.prompt, sample.tokens) == (context, prompt, wanted)
        again = 0 if pieces == text.pieces or prompt % PIECE == 1 else -prompt % PIECE
        alone = model.spelling == "gguf" and prompt + context < PIECE  # there are no tokens to compute again
        assert sample.computed == prompt + (0 if alone else again)


@pytest.mark.parametrize("node", ["battery", "skin"])
def test_heat_ends_an_answer_between_two_tokens(tmp_path: Path, agent: Agent, seed: int, node: str) -> None:
    """A phone that becomes hot in mid-load: all answers are whole but the last, which is the beginning of one. One that
    is hot already gives a token."""
    rng = np.random.default_rng([seed, len(node)])
    model, bundle = compiled(tmp_path, rng, "cpu")
    limit_dc = int(rng.integers(300, 600))
    zone = "sys/class/thermal/thermal_zone3"
    temp = {"battery": "sys/class/power_supply/battery/temp", "skin": f"{zone}/temp"}[node]
    root = write_nodes(tmp_path / "root", {**battery(), f"{zone}/type": "skin-therm", f"{zone}/temp": "250"})
    file = tmp_path / "tokens.bin"
    np.array(model.prompt, "<i8").tofile(file)
    options = ("--tokens", file, "--generate", COUNT, "--load-ms", 600_000, "--stop-temp-dc", limit_dc)
    journal = tmp_path / "journal.jsonl"
    running = agent.start(bundle, {}, *options, "--journal", journal, POCKETFARM_SYSROOT=root)
    eventually(lambda: journal.exists() and journal.read_text().count('"sample"') > 3)
    write_nodes(tmp_path / "root", {temp: str(limit_dc + 1)})
    assert running.wait(TIMEOUT_S) == 0
    ended = Ended(read_events(journal.read_text()), 0, "")
    answer, samples = tuple(model.greedy(COUNT)), ended.all("sample")
    assert {each.tokens for each in samples[:-1]} == {answer}
    last = samples[-1]
    assert last.tokens == answer[: len(last.tokens)] and len(last.tokens) == len(last.token_ns) >= 1
    (warning,) = ended.all("warning")
    assert warning.code == "too_hot" and warning.message.startswith(f"{node} at {(limit_dc + 1) / 10:.1f} C")
    assert ended.one("result").samples == len(samples)
    hot = agent.run(bundle, {}, *options, "--warmup", 3, POCKETFARM_SYSROOT=root)
    assert [(each.phase, each.tokens) for each in hot.all("sample")] == [("timed", answer[:1])]


def test_a_phone_that_tells_no_temperature_is_told_of(tmp_path: Path, agent: Agent, seed: int) -> None:
    model, bundle = compiled(tmp_path, np.random.default_rng(seed), "cpu")
    root = write_nodes(tmp_path / "root", {"proc/uptime": "1"})
    file = tmp_path / "tokens.bin"
    np.array(model.prompt, "<i8").tofile(file)
    options = ("--tokens", file, "--generate", 2, "--stop-temp-dc", 1)
    ended = agent.run(bundle, {}, *options, POCKETFARM_SYSROOT=root)
    assert ended.code == 0 and ended.one("warning").code == "no_temperature"
