"""Decoders of language models: their cache is state, to which a run appends, whatever the exporter's spelling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from kernels.compile import compile_generation
from kernels.errors import ModelError
from kernels.frontend.load import load_decoder
from kernels.ir.decoder import DecoderStep
from kernels.options import Backend, Limits, Options
from kernels.plan.model import BufferArgument, Copy, Dispatch, Plan
from kernels.reference import evaluate

from .decoders import SOURCES, SPELLINGS, Drawn, drawn

CAPACITY, COUNT = 40, 16


def greedy(steps: list[DecoderStep], prompt: tuple[int, ...], count: int) -> list[int]:
    """Generate tokens by the reference, the host carrying the state: the prompt in pieces, the last one filled up, or
    computing some tokens again where it gives the last logits alone."""
    piece, one = steps
    state = {name: np.zeros(one.graph.shapes[name]) for name in one.graph.state}
    text, taken, found = list(prompt), 0, list[int]()
    while len(found) < count:
        last, rest = piece.rows == 1, len(text) - taken
        step = piece if rest > 1 and (not last or len(text) >= piece.count) else one
        taken = len(text) - piece.count if last and 1 < rest < step.count else taken
        new = text[taken : taken + step.count]
        filled = np.array([new + [0] * (step.count - len(new))])
        given = {step.tokens: filled, step.position: np.array([taken]), **state}
        results = evaluate(step.graph, given)
        state = {name: results[newer] for name, newer in step.graph.state.items()}
        taken += len(new)
        if taken == len(text):
            found.append(int(results[step.logits][0, min(len(new), step.rows) - 1].argmax()))
            text.append(found[-1])
    return found


@pytest.mark.parametrize("spelling", SOURCES)
def test_tokens_are_those_of_onnxruntime(tmp_path: Path, seed: int, spelling: str) -> None:
    model = drawn(tmp_path, np.random.default_rng(seed), spelling)
    assert greedy(load_decoder(model.path, CAPACITY, (5, 1)), model.prompt, COUNT) == model.greedy(COUNT)


@pytest.mark.parametrize("backend", ["cpu", "opencl", "vulkan"])
@pytest.mark.parametrize("spelling", ["gguf", ""])
def test_a_token_writes_its_own_rows_alone(tmp_path: Path, seed: int, backend: Backend, spelling: str) -> None:
    """Steps write to a state by `put_rows` or `append` alone, once each, and copy none; both passes share states and
    weights."""
    rng = np.random.default_rng([seed, len(backend)])
    model = drawn(tmp_path, rng, spelling or str(rng.choice(SPELLINGS)))
    steps = load_decoder(model.path, CAPACITY, (4, 1))
    plan = compile_generation(steps, Options(backend), Limits(), spirv_cache=tmp_path).plan
    states = {buffer.id: buffer.bytes for buffer in plan.buffers if buffer.role == "variable"}
    assert states == dict.fromkeys(model.past(), 4 * model.shared * CAPACITY * model.size)
    assert plan.generation is not None
    for each in plan.generation.passes:
        writes = written(plan, each.begin, each.end, states)
        rows = 4 * each.tokens * model.shared * model.size
        assert sorted(name for name, _ in writes) == sorted(states)
        alone = [moved for _, moved in writes if moved]  # the attention of a token reads the past beside
        assert all(2 * rows < moved <= 4 * rows + 8 * model.size for moved in alone)


def written(plan: Plan, begin: int, end: int, states: dict[str, int]) -> list[tuple[str, int]]:
    """The writes of some steps to states, with the bytes that these read and write, a cosine and a place too."""
    programs, found = {program.id: program for program in plan.programs}, []
    for step in plan.steps[begin:end]:
        if isinstance(step, Copy) and step.target in states:
            found.append((step.target, step.bytes))
        if not isinstance(step, Dispatch):
            continue
        for parameter, argument in zip(programs[step.program].parameters, step.arguments, strict=True):
            if isinstance(argument, BufferArgument) and argument.buffer in states and parameter.access != "read":
                kernel = programs[step.program].kernel
                assert kernel.startswith(("put_rows", "append")) or "_appending" in kernel
                found.append((argument.buffer, 0 if "_appending" in kernel else step.bytes))
    return found


def _changed(model: Drawn, change: str) -> Path:
    proto = onnx.load(model.path)
    ports = {port.name: port for port in (*proto.graph.input, *proto.graph.output)}
    if change == "fixed":
        ports["past_key_values.0.key"].type.tensor_type.shape.dim[2].dim_value = 7
    elif change == "unpaired":
        del proto.graph.output[1:]
    elif change == "other input":
        proto.graph.input.append(onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, [1, 3]))
    else:
        proto.graph.input[0].name = "words"
        for node in proto.graph.node:
            node.input[:] = ["words" if name == "input_ids" else name for name in node.input]
    onnx.save(proto, model.path)
    return model.path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("fixed", "past_key_values.0.key.*any length.*export the model with an open length"),
        ("unpaired", "no input is a past .*export the decoder with its cache"),
        ("other input", "'pixels' is none that the decoder"),
        ("renamed", "no input is called input_ids or tokens"),
    ],
)
def test_what_is_no_decoder_is_refused_with_words(tmp_path: Path, seed: int, change: str, words: str) -> None:
    model = drawn(tmp_path, np.random.default_rng(seed), "shape")
    with pytest.raises(ModelError, match=words):
        load_decoder(_changed(model, change), CAPACITY, (1,))


def test_more_tokens_than_the_state_holds_are_refused(tmp_path: Path, seed: int) -> None:
    model = drawn(tmp_path, np.random.default_rng(seed), "mask")
    with pytest.raises(ModelError, match="9 tokens do not fit into a state of 8"):
        load_decoder(model.path, 8, (9, 1))
