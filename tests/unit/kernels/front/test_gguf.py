"""GGUF files against onnxruntime, which runs the same decoder, and llama.cpp (cyllama), where it is installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import onnxruntime
import pytest

from kernels.errors import CompileError, ModelError, OptionError
from kernels.frontend.gguf import decoder_file, load_gguf, read_header
from kernels.frontend.gguf.header import Header
from kernels.frontend.gguf.hyperparameters import hyperparameters_of
from kernels.frontend.load import load_file
from kernels.reference import evaluate

from .gguf_models import CONTEXT, LAYERS, SAID, WORDS, write_decoder

KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0")


@pytest.mark.parametrize("architecture", SAID)
def test_a_prompt_and_steps_after_it(tmp_path: Path, seed: int, architecture: str) -> None:
    """A prompt in pieces of random lengths, each over the cache of those before, against onnxruntime in one piece."""
    rng = np.random.default_rng(seed)
    path, capacity = tmp_path / "m.gguf", int(rng.integers(10, CONTEXT))
    write_decoder(path, architecture, rng, kind=str(rng.choice(KINDS)))
    tokens = rng.integers(0, WORDS, (1, int(rng.integers(8, capacity + 1))))
    steps = tokens.shape[1]
    sizes = {"tokens": steps, "capacity": capacity, "logits": steps}
    model = decoder_file(path, sizes=sizes | {"capacity": steps}).whole()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ports = {port.name: np.zeros(port.shape, np.float32) for port in session.get_inputs()[2:]}
    position = np.zeros(1, np.int64)
    (wanted, *_) = session.run(None, {"tokens": tokens, "position": position, **ports})
    cache = {name: np.zeros((*array.shape[:2], capacity, array.shape[3]), np.float32) for name, array in ports.items()}
    done, found = 0, []
    while done < steps:
        piece = tokens[:, done : done + int(rng.integers(1, 5))]
        graph = load_file(path, sizes=sizes | {"tokens": piece.shape[1], "logits": piece.shape[1]})
        out = evaluate(graph, {"tokens": piece, "position": np.array([done]), **cache})
        cache = {name: out[name.replace("past_key_values", "present")].astype(np.float32) for name in cache}
        found.append(out["logits"])
        done += piece.shape[1]
    np.testing.assert_allclose(np.concatenate(found, 1), wanted, atol=2e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("architecture", SAID)
def test_llama_cpp_gives_the_same(tmp_path: Path, seed: int, architecture: str) -> None:
    """Its own reading of the file, with a cache in fp32; its Gelu is a table of halves."""
    llama = pytest.importorskip("cyllama.llama.llama_cpp")
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    write_decoder(path, architecture, rng, **_habits(architecture, rng))
    tokens = rng.integers(0, WORDS, (1, 12))

    class Model(llama.LlamaModel):  # type: ignore[misc, name-defined]
        n_vocab = WORDS

    parameters = llama.LlamaContextParams()
    parameters.type_k = parameters.type_v = parameters.flash_attn_type = 0
    model = Model(path_model=str(path), params=llama.LlamaModelParams(), verbose=False)
    context = llama.LlamaContext(model=model, params=parameters, verbose=False)
    batch = llama.LlamaBatch(n_tokens=12, embd=0, n_seq_max=1)
    batch.set_batch(tokens[0].tolist(), 0, True)
    context.decode(batch)
    wanted = np.array([context.get_logits_ith(i) for i in range(12)])
    graph = load_gguf(path, sizes={"tokens": 12, "logits": 12})
    cache = {name: np.zeros(graph.shapes[name], np.float32) for name in graph.inputs[2:]}
    found = evaluate(graph, {"tokens": tokens, "position": np.zeros(1, np.int64), **cache})["logits"][0]
    np.testing.assert_allclose(found, wanted, atol=(2e-3 if "gemma" in architecture else 1e-5) * np.abs(wanted).max())


def _habits(architecture: str, rng: np.random.Generator) -> dict[str, Any]:
    """Draw what a file says of places. Of Gemma 2 llama.cpp divides those in windows, though told not to."""
    drawn: dict[str, Any] = {"rope.freq_base": float(rng.choice([1e2, 1e4, 1e6]))}
    kinds = ["linear"] if architecture == "gemma2" else ["linear", "none"]
    drawn |= {str(rng.choice(["rope.scaling.factor", "rope.scale_linear"])): float(rng.choice([0.5, 4.0]))}
    drawn |= {"rope.scaling.type": str(rng.choice(kinds))} if rng.random() < 0.7 else {}
    if architecture.startswith("gemma"):
        drawn |= {"attention.sliding_window_pattern": int(rng.integers(0, 5))} if rng.random() < 0.5 else {}
        drawn |= {"rope.freq_base_swa": float(rng.choice([1e2, 1e5]))} if rng.random() < 0.5 else {}
        drawn |= {"final_logit_softcapping": 2.0, "attention.sliding_window": int(rng.integers(1, 9))}
    return drawn


USUAL = {"general.architecture": "gemma2", "gemma2.block_count": 4, "gemma2.embedding_length": 8,
         "gemma2.context_length": 9, "gemma2.attention.head_count": 2}  # fmt: skip
MEANT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"window": 4096, "every": 2, "factor": 1.0, "base_local": 1e4, "final_softcap": 30.0}),
    ({"rope.freq_base": 1e6}, {"base": 1e6, "base_local": 1e6}),
    ({"rope.scaling.factor": 4.0}, {"factor": 4.0, "factor_local": 4.0}),
    ({"rope.scale_linear": 4.0}, {"factor": 4.0}),
    ({"rope.scaling.factor": 4.0, "rope.scaling.type": "none"}, {"factor": 1.0, "factor_local": 1.0}),
    ({"attention.sliding_window_pattern": 3}, {"every": 3}),
]


@pytest.mark.parametrize("said, meant", MEANT)
def test_habits_mean_what_they_do_to_llama_cpp(said: dict[str, Any], meant: dict[str, Any]) -> None:
    """Its own reading, as the test above found it."""
    found = hyperparameters_of(Header(USUAL | {f"gemma2.{key}": value for key, value in said.items()}, {}))
    assert {name: getattr(found, name) for name in meant} == meant


ODD: tuple[Any, ...] = (
    "",
    "x",
    True,
    2.0,
    0.5,
    -1,
    np.nan,
    np.inf,
    -np.inf,
    0,
    1,
    1 << 31,
    1 << 62,
    1e300,
    1e-300,
    [],
    [1, 2],
    [[1]],
)


def test_what_a_file_says_in_another_type_is_refused_in_words(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw a key that is read, and what no converter writes there: read all the same, or refused with the path."""
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    architecture = str(rng.choice([*SAID]))
    write_decoder(path, architecture, rng)
    header = read_header(path)
    keys = sorted({*header.said, "split.count", *(f"{architecture}.{key}" for key in _habits("gemma2", rng))})
    refused = 0
    for _ in range(60):
        key, value = str(rng.choice(keys)), ODD[int(rng.integers(len(ODD)))]
        changed = Header({**header.said, key: value}, header.tensors)
        monkeypatch.setattr("kernels.frontend.gguf.loading.read_header", lambda _, changed=changed: changed)
        try:
            load_gguf(path)
        except CompileError as e:
            refused += 1
            assert str(path) in str(e) or "size capacity" in str(e), (key, value)
    assert refused


def test_weights_are_what_the_package_unpacks(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    monkeypatch.setattr("kernels.frontend.gguf.loading._CHUNK", int(rng.integers(1, 1 << 12)))
    for kind in KINDS:
        meant = write_decoder(path, "qwen3", rng, kind)
        model = decoder_file(path)
        stored = {tensor.name: model.array(tensor) for tensor in model.proto.graph.initializer}
        for name, array in meant.items():
            found = stored[name] if name in stored else stored.get(name.replace("weight", "turned"))
            if found is not None:
                np.testing.assert_array_equal(found, array if name in stored else array.T)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "causal": ({"attention.causal": 0}, "attention.causal 0 is not supported"),
    "factor": ({"rope.scaling.attn_factor": 0.5}, "attn_factor 0.5 is not supported"),
    "angles": ({"rope.freq_base": 0.0}, "turn by no finite angle"),
    "experts": ({"expert_count": 4}, "a mixture of experts"),
    "scaling": ({"rope.scaling.type": "yarn"}, "places scaled by 'yarn'"),
    "heads": ({"attention.head_count_kv": 3}, "do not fit together"),
    "width": ({"embedding_length": 32}, "token_embd.weight"),
    "layers": ({"block_count": LAYERS + 1}, f"tensor 'blk.{LAYERS}.attn_norm.weight' is missing"),
    "fewer": ({"block_count": LAYERS - 1}, "have no place in a decoder"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_decoder_has_not_is_refused(tmp_path: Path, seed: int, fault: str) -> None:
    said, words = FAULTS[fault]
    path = tmp_path / "m.gguf"
    write_decoder(path, "llama", np.random.default_rng(seed), **said)
    with pytest.raises(ModelError, match=words) as refused:
        load_gguf(path)
    assert str(path) in str(refused.value)


def test_damaged_files_are_refused(tmp_path: Path, seed: int) -> None:
    """Cut anywhere, or with bytes of the head changed: refused, or read."""
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    write_decoder(path, "llama", rng)
    whole = path.read_bytes()
    for end in (0, 3, 20, *rng.integers(24, len(whole) - 1, 8)):
        path.write_bytes(whole[: int(end)])
        with pytest.raises(ModelError, match=r"m\.gguf"):
            load_gguf(path)
    for _ in range(8):
        changed = bytearray(whole)
        for at in rng.integers(0, 3000, 2):
            changed[int(at)] = int(rng.integers(256))
        path.write_bytes(changed)
        try:
            load_gguf(path)
        except CompileError as e:
            assert "m.gguf" in str(e) or "size" in str(e)


def test_a_weight_of_another_size_is_refused(tmp_path: Path, seed: int) -> None:
    """Each weight of a drawn architecture, with fewer rows in the file's head: it is named, and never read in part."""
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    write_decoder(path, str(rng.choice([*SAID])), rng)
    whole, shapes = path.read_bytes(), {each.name: each.shape for each in gguf.GGUFReader(path).tensors}
    for name, shape in shapes.items():
        if name in ("token_embd.weight", "output.weight"):  # their rows are the words, however many there are
            continue
        at = whole.index(len(name).to_bytes(8, "little") + name.encode()) + 8 + len(name) + 4 + 8 * (len(shape) - 1)
        assert int.from_bytes(whole[at : at + 8], "little") == shape[-1] > 1
        path.write_bytes(whole[:at] + int(rng.integers(1, shape[-1])).to_bytes(8, "little") + whole[at + 8 :])
        with pytest.raises(ModelError, match=name.rpartition(".")[0]):
            load_gguf(path)


def test_a_weight_that_cannot_be_read_is_told_with_its_file(tmp_path: Path, seed: int) -> None:
    """Draw a weight, and a NaN in it or a type that nobody unpacks."""
    rng, path = np.random.default_rng(seed), tmp_path / "m.gguf"
    write_decoder(path, str(rng.choice([*SAID])), rng)
    found = read_header(path).tensors
    name = str(rng.choice([*found]))
    for odd, told in ((replace(found[name], kind="I32"), "stored as I32"), (found[name], "holds NaN")):
        file = decoder_file(path)
        stored = next(each for each in file.stored.values() if each.tensor and each.tensor.name == name)
        content = bytearray(path.read_bytes())
        content[odd.start : odd.start + 4] = np.float32(np.nan).tobytes()
        path.write_bytes(content)
        tensor = next(each for each in file.proto.graph.initializer if file.stored[each.name] is stored)
        with pytest.raises(ModelError, match=rf"m\.gguf: tensor '{name}' .*{told}"):
            replace(file, stored={tensor.name: replace(stored, tensor=odd)}).array(tensor)


def test_other_files_and_sizes_are_refused(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "m.gguf"
    for said, words in ((b"GGUF\0\0\0\3" + bytes(16), "big-endian"), (b"PK\3\4" + bytes(40), "no GGUF file")):
        path.write_bytes(said)
        with pytest.raises(ModelError, match=words):
            load_file(path)
    write_decoder(path, "llama", np.random.default_rng(seed))
    path.write_bytes(path.read_bytes().replace(b"llama", b"mamba"))
    with pytest.raises(ModelError, match="'mamba' is not known; known are llama"):
        load_file(path)
    write_decoder(path, "llama", np.random.default_rng(seed))
    for sizes in ({"tokens": 9, "capacity": 8}, {"logits": 2}, {"capacity": CONTEXT + 1}, {"width": 3}, {"tokens": 0}):
        with pytest.raises(OptionError):
            load_file(path, sizes=sizes)
