"""One inference outside the queue: no Redis, no ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest
import scipy  # its parts are imported when they are asked for
from onnx import TensorProto, helper

from farm.cli import main
from farm.cli.engine.generation import generate, perplexity
from kernels.errors import InputError
from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.options import Backend, Options
from kernels.reference import evaluate
from orchestrator.model.device import Api, Source
from orchestrator.model.errors import DeviceBusy, TransportLost, Unsupported
from orchestrator.system.config import Settings
from tests.unit.kernels.front.decoders import SOURCES, drawn
from tests.unit.kernels.front.onnx_models import run_onnxruntime, save_model
from virtual_phones.faults import KernelLimit
from workers.devices.device_lock import device_lock
from workers.devices.workstation import CPU_SERIAL
from workers.engines.models import Arrays
from workers.engines.pocketfarm.kept_state import KeptState
from workers.engines.pocketfarm.plans.kernel_limits import KernelLimits
from workers.infer import infer

from .conftest import Wiring


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_workload(network="lenet", onnx=None, seed=3)


@pytest.fixture(scope="module")
def inputs(graph: Graph) -> Arrays:
    return random_inputs(graph, 4)


@pytest.mark.parametrize("backend", ["opencl", "vulkan", "cpu"])
def test_every_node_on_this_host(graph: Graph, inputs: Arrays, settings: Settings, backend: Backend) -> None:
    (result,) = infer(device=None, work=[(graph, inputs)], options=Options(backend, keep_all=True), settings=settings)
    expected = evaluate(graph, dict(inputs), keep=True)
    named = {name for node in graph.nodes for name in node.outputs if name}
    assert set(result.outputs) >= named
    for name in named:
        assert result.outputs[name].shape == graph.shapes[name]
        scale = float(np.abs(expected[name]).max()) or 1.0
        np.testing.assert_allclose(result.outputs[name], expected[name], atol=1e-4 * scale, rtol=0)
    assert result.runs_on.api == backend and result.sample.duration_ns > 0 and result.setup


@pytest.mark.parametrize("name", ["serial", "address"])
def test_on_a_phone(graph: Graph, inputs: Arrays, lab: Wiring, lab_settings: Settings, name: str) -> None:
    options = Options("cpu", threads=1)
    (result,) = infer(device=getattr(lab, name), work=[(graph, inputs)], options=options, settings=lab_settings)
    assert (result.device.serial, result.device.address) == (lab.serial, lab.address)
    assert result.device.source == Source.VIRTUAL and result.runs_on.threads == 1
    expected = evaluate(graph, dict(inputs))
    assert set(result.outputs) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(result.outputs[name], array, atol=1e-4 * float(np.abs(array).max()), rtol=0)


def test_a_kernel_that_the_driver_refuses_is_planned_within_its_limit(
    graph: Graph, inputs: Arrays, lab: Wiring, lab_settings: Settings
) -> None:
    (plain,) = infer(device=lab.serial, work=[(graph, inputs)], options=Options("opencl"), settings=lab_settings)
    kernel = next(program.kernel for program in plain.plan.programs if program.kernel.startswith("conv_"))
    lab.phones.control.fault(lab.serial, KernelLimit(kernel=kernel, work_group=5))
    (result,) = infer(device=lab.serial, work=[(graph, inputs)], options=Options("opencl"), settings=lab_settings)
    assert result.plan.plan_hash != plain.plan.plan_hash
    assert KernelLimits(lab_settings.state).of(result.device, Api.OPENCL) == {kernel: 5}
    for name, array in plain.outputs.items():
        np.testing.assert_allclose(result.outputs[name], array, atol=1e-4 * float(np.abs(array).max()), rtol=0)


def test_the_command_runs_each_input_with_the_sizes_that_it_has(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    rng, node = np.random.default_rng(seed), helper.make_node("Add", ["x", "t"], ["y"])
    path = save_model(tmp_path / "m.onnx", [node], {"x": ("n", "steps"), "t": ()}, ["y"])
    common, files, wanted = [str(path), "--backend", "cpu", "--json"], list[str](), []
    for name, shape in (("a/one", (2, 5)), ("b/one", (1, 3)), ("two", (2, 5))):
        file = tmp_path / f"{name}.npz"
        file.parent.mkdir(exist_ok=True)
        x, t = rng.standard_normal(shape).astype(np.float32), np.float32(rng.standard_normal())
        np.savez(file, x=x, t=t)
        files += ["--input", str(file)]
        wanted.append(x + t)

    def told(*words: str) -> dict[str, Any]:
        assert main(["infer", *common, "--state", str(settings.state), *words]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    each = told(*files, "--outputs", str(tmp_path / "out"))["inferences"]
    assert [one["input"] for one in each] == ["one", "one~2", "two"]
    for one, values in zip(each, wanted, strict=True):
        found = np.load(tmp_path / "out" / one["input"] / one["files"]["y"])
        np.testing.assert_allclose(found, values, rtol=1e-6, atol=1e-6)
    assert told("--size", "steps=7", "--batch", "3")["outputs"]["y"]["shape"] == [3, 7]


def test_a_device_in_a_session_is_busy(
    graph: Graph, inputs: Arrays, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.infer.LOCK_WAIT_S", 0.1)
    monkeypatch.setattr("workers.devices.workstation.LOCK_WAIT_S", 0.1)
    with device_lock(settings.state, CPU_SERIAL), pytest.raises(DeviceBusy):
        infer(device=CPU_SERIAL, work=[(graph, inputs)], options=Options("opencl"), settings=settings)


def test_devices_that_are_not_there(graph: Graph, inputs: Arrays, lab_settings: Settings) -> None:
    with pytest.raises(Unsupported, match="this host has: local-cpu"):
        infer(device="local-gpu", work=[(graph, inputs)], options=Options("opencl"), settings=lab_settings)
    with pytest.raises(TransportLost, match=r"not found.*; this host itself is local-cpu"):
        infer(device="no-such", work=[(graph, inputs)], options=Options("opencl"), settings=lab_settings)


def test_outputs_are_files_of_the_types_that_the_model_says(tmp_path: Path, seed: int) -> None:
    """Each type's numbers, written by `farm infer`, are those of onnxruntime."""
    kinds = ("float16", "float", "double", "int8", "uint8", "int16", "int32", "int64", "bool")
    outputs = ", ".join(f"{kind}[5] {kind}_y" for kind in kinds)
    body = "".join(f"{kind}_y = Cast<to={TensorProto.DataType.Value(kind.upper())}>(x)\n" for kind in kinds)
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> typed (int32[5] x) => ({outputs}) {{ {body} }}'
    )
    onnx.save(model, path := tmp_path / "typed.onnx")
    x = np.random.default_rng(seed).integers(0, 128, 5).astype(np.int32)
    np.save(tmp_path / "x.npy", x)
    words = ["infer", str(path), "--input", str(tmp_path / "x.npy"), "--backend", "cpu", "--dump", str(tmp_path / "y")]
    assert main([*words, "--state", str(tmp_path / "state")]) == 0
    for name, wanted in run_onnxruntime(path, {"x": x}).items():
        found = np.load(tmp_path / "y" / f"{name}.npy")
        assert found.dtype == wanted.dtype, name
        np.testing.assert_array_equal(found, wanted)


def test_a_language_model_answers(
    tmp_path: Path, seed: int, lab: Wiring, lab_settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(seed)
    model, text = drawn(tmp_path, rng, str(rng.choice(SOURCES))), tmp_path / "tokens.txt"
    sequences = int(rng.choice([1, rng.integers(2, 6)]))
    others = rng.integers(0, model.words, (sequences - 1, len(model.prompt)))
    texts = [model, *(replace(model, prompt=tuple(map(int, each))) for each in others)]
    text.write_text("\n".join(" ".join(map(str, each.prompt)) for each in texts))
    words = ("--language-model", str(model.path), "--tokens", str(text), "--generate", "9", "--json")
    here = ("infer", *words, "--check", "--backend", "cpu", "--state", str(tmp_path / "state"))
    assert main(here) == 0
    options = Options("cpu", threads=1)
    on_phone = generate(model.path, text, 9, check=True, device=lab.serial, options=options, settings=lab_settings)
    for facts in (json.loads(capsys.readouterr().out), on_phone):
        answers = [each.greedy(9) for each in texts]
        assert facts["tokens"] == (answers if sequences > 1 else answers[0])
        assert facts.get("sequences", 1) == sequences
        assert facts["prompt_tokens"] == len(model.prompt)
        assert facts["check"]["ok"] and facts["check"]["tokens"] == 9
        assert facts["token_ms"] == sorted(facts["token_ms"]) and facts["token_ms"][0] == facts["first_token_ms"] > 0
        assert facts["prompt_tokens_per_s"] > 0 and facts["generated_tokens_per_s"] > 0
    assert on_phone["runs_on"]["device"] == lab.serial
    text.write_text(str(list(model.prompt)))
    scored = perplexity(model.path, text, device=lab.serial, options=options, settings=lab_settings)
    wanted = scipy.special.log_softmax(model.logits().astype(np.float64), -1)[
        np.arange(len(model.prompt) - 1), model.prompt[1:]
    ]
    assert scored["perplexity"] == pytest.approx(np.exp(-wanted.mean()), rel=1e-4)
    text.write_text(f"{model.words}")
    assert main(here) != 0
    assert f"token {model.words}; the model's vocabulary has {model.words}" in capsys.readouterr().err


def test_a_state_goes_on_as_one_longer_text(
    tmp_path: Path, seed: int, lab: Wiring, lab_settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text is cut anywhere, and what was taken of it is kept on this host and taken up by a phone, or there again."""
    rng = np.random.default_rng(seed)
    model, count = drawn(tmp_path, rng, str(rng.choice(SOURCES))), int(rng.integers(3, 9))
    wanted, cut, file = model.greedy(count), int(rng.integers(1, count)), tmp_path / "tokens.txt"
    backend: Backend = rng.choice(get_args(Backend)).item()

    def answer(tokens: Sequence[Any], count: int, **how: Any) -> list[int]:
        file.write_text(str([*tokens]))
        options = Options(how.pop("backend", backend), threads=1)
        told = generate(how.pop("path", model.path), file, count, options=options, settings=lab_settings, **how)
        found: list[int] = told["tokens"]
        return found

    part, whole, joined = (tmp_path / name for name in ("part", "whole", "joined"))
    here, there = rng.permutation([CPU_SERIAL, lab.serial])
    assert answer(model.prompt, count, device=here, save_state=whole) == wanted
    assert answer(model.prompt, cut, device=here, save_state=part) == wanted[:cut]
    again = cut - 1 + int(rng.integers(0, count - cut)) if count - cut > 1 else cut - 1
    behind = wanted[cut - 1 : again + 1]
    assert answer(behind, count - again - 1, device=there, load_state=part, save_state=joined) == wanted[again + 1 :]
    states = [KeptState.read(each) for each in (whole, joined)]
    assert len({(each.tokens, each.model, each.backend) for each in states}) == 1
    if backend == "cpu" and again == cut - 1:  # each token by a run of its own
        assert states[0].rows == states[1].rows
    last = wanted[cut - 1 :][:1]
    with pytest.raises(InputError, match="2 rows, and a state is kept of one text"):
        answer([last, last], 1, device=here, load_state=part)
    with pytest.raises(InputError, match=f"--backend {backend} --precision fp32"):
        answer(last, 1, device=here, load_state=part, backend="cpu" if backend == "opencl" else "opencl")
    (tmp_path / "other").mkdir()
    other = drawn(tmp_path / "other", np.random.default_rng([seed, 1]), model.spelling)
    with pytest.raises(InputError, match="the state of another model"):
        answer(last, 1, device=here, load_state=part, path=other.path)
    content = part.read_bytes()
    part.write_bytes(content[: int(rng.integers(1, len(content)))])
    words = ("infer", "--language-model", str(model.path), "--tokens", str(file), "--load-state", str(part))
    assert main([*words, "--backend", backend, "--state", str(tmp_path / "state")]) != 0
    assert "take an earlier state" in (said := capsys.readouterr().err) or "no state" in said
