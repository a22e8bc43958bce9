"""Small decoders as exporters write them, with drawn sizes and weights, and their greedy tokens by onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from kernels.frontend.gguf import decoder_file

from .gguf_models import SAID, SHARED, SIZES, WORDS, write_decoder

SPELLINGS = ("shape", "mask", "places", "grouped")
"""The source of what each token sees: shapes, a mask, given places; or GroupQueryAttention."""
SOURCES = (*SPELLINGS, "gguf")


@dataclass(frozen=True)
class Drawn:
    """A decoder's file, and a prompt."""

    path: Path
    spelling: str
    layers: int
    shared: int
    size: int
    words: int
    prompt: tuple[int, ...]

    def past(self) -> list[str]:
        return [f"past_key_values.{layer}.{kind}" for layer in range(self.layers) for kind in ("key", "value")]

    def greedy(self, count: int) -> list[int]:
        """Return the tokens that onnxruntime generates, its cache growing from no row on."""
        session, text, taken, past = self._session(), list(self.prompt), 0, None
        while len(text) < len(self.prompt) + count:
            logits, past = self._run(session, text, taken, past)
            taken = len(text)
            text.append(int(logits[-1].argmax()))
        return text[len(self.prompt) :]

    def logits(self) -> np.ndarray:
        """Return onnxruntime's logits behind each token of the prompt."""
        return self._run(self._session(), list(self.prompt), 0, None)[0]

    def _session(self) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        return ort.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])

    def _run(
        self, session: ort.InferenceSession, text: list[int], taken: int, past: dict[str, np.ndarray] | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Take the tokens of a text behind so many; returns their logits, and the cache."""
        past = past or {name: np.zeros((1, self.shared, 0, self.size), np.float32) for name in self.past()}
        given = {"input_ids": np.array([text[taken:]]), "attention_mask": np.ones((1, len(text)), np.int64)}
        given |= {"position_ids": np.arange(taken, len(text))[None], **past}
        wanted = {port.name for port in session.get_inputs()}
        names = [name.replace("past_key_values", "present") for name in past]
        logits, *rows = session.run(["logits", *names], {k: v for k, v in given.items() if k in wanted})
        assert logits.shape == (1, len(text) - taken, self.words)
        return logits[0], dict(zip(past, rows, strict=True))


def drawn(folder: Path, rng: np.random.Generator, spelling: str, *, prompt: int = 0) -> Drawn:
    """Draw a decoder: sizes, weights, and a prompt of some tokens; of a GGUF file, its architecture."""
    shared, groups, layers = (int(number) for number in rng.integers(1, (4, 4, 3)))
    size, words = int(rng.choice([16, 32] if spelling == "grouped" else [4, 8, 16])), int(rng.integers(20, 90))
    tokens = tuple(map(int, rng.integers(0, words, prompt or int(rng.integers(2, 12)))))
    if spelling == "gguf":
        architecture = str(rng.choice([*SAID]))
        write_decoder(folder / "m.gguf", architecture, rng, layers=layers)
        size = SIZES.get(architecture, 32)
        return DrawnFile(folder / "m.gguf", spelling, layers, SHARED, size, WORDS, tuple(n % WORDS for n in tokens))
    made = Drawn(folder / f"{spelling}.onnx", spelling, layers, shared, size, words, tokens)
    _Writer(made, groups, rng).write()
    return made


class DrawnFile(Drawn):
    """A decoder in a GGUF file; onnxruntime gets the whole text for each token."""

    def greedy(self, count: int) -> list[int]:
        text = list(self.prompt)
        for _ in range(count):
            text.append(int(self._logits_of(text, 1)[-1].argmax()))
        return text[len(self.prompt) :]

    def logits(self) -> np.ndarray:
        return self._logits_of(list(self.prompt), len(self.prompt))

    def _logits_of(self, text: list[int], rows: int) -> np.ndarray:
        proto = decoder_file(self.path, sizes={"tokens": len(text), "capacity": len(text), "logits": rows}).whole()
        session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        given = {port.name: np.zeros(port.shape, np.float32) for port in session.get_inputs()[2:]}
        given |= {"tokens": np.array([text]), "position": np.zeros(1, np.int64)}
        return session.run(["logits"], given)[0][0]


class _Writer:
    def __init__(self, made: Drawn, groups: int, rng: np.random.Generator) -> None:
        self._made, self._heads, self._rng = made, made.shared * groups, rng
        self._wide = self._heads * made.size
        self._nodes: list[onnx.NodeProto] = []
        self._stored: dict[str, np.ndarray] = {}

    def write(self) -> None:
        made, grouped = self._made, self._made.spelling == "grouped"
        half = made.size // 2
        angles = np.arange(256)[:, None] / 100 ** (np.arange(half) / half)
        self._tables = [self._store(function(angles).astype(np.float32)) for function in (np.cos, np.sin)]
        x = self._add("Gather", self._weight(made.words, self._wide, scale=1.0), "input_ids")
        if grouped:
            axis, one = self._store(np.array([1])), self._store(np.array(1))
            valid = self._add("ReduceSum", "attention_mask", axis, keepdims=0)
            ends = self._add("Cast", self._add("Sub", valid, one), to=TensorProto.INT32)
            total = self._add("Gather", self._add("Shape", "attention_mask"), one, axis=0)
            self._ends = ends, self._add("Cast", total, to=TensorProto.INT32)
        else:
            self._see()
        for layer in range(made.layers):
            x = self._add("Add", x, self._grouped(layer, x) if grouped else self._attention(layer, x))
            inner = self._add("MatMul", self._normed(x), self._weight(self._wide, 24))
            inner = self._add("Mul", inner, self._add("Sigmoid", inner))
            x = self._add("Add", x, self._add("MatMul", inner, self._weight(24, self._wide)))
        self._add("MatMul", self._normed(x), self._weight(self._wide, made.words), name="logits")
        self._save()

    def _see(self) -> None:
        """Compute places and what each token sees."""
        zero, one, two = (self._store(np.array(number)) for number in (0, 1, 2))
        before = self._add("Gather", self._add("Shape", "past_key_values.0.key"), two, axis=0)
        new = self._add("Gather", self._add("Shape", "input_ids"), one, axis=0)
        every = self._add("Add", before, new)
        own = self._add("Range", before, every, one)
        self._places = "position_ids" if self._made.spelling == "places" else self._add("Unsqueeze", own, self._axis(0))
        keys = self._add("Unsqueeze", self._add("Range", zero, every, one), self._axis(0))
        seen = self._add("LessOrEqual", keys, self._add("Unsqueeze", own, self._axis(1)))
        if self._made.spelling == "mask":
            mask = self._add("Cast", "attention_mask", to=TensorProto.BOOL)
            seen = self._add("And", seen, self._add("Unsqueeze", mask, self._store(np.array([1, 2]))))
        least = self._store(np.float32(-3e38)), self._store(np.float32(0))
        self._added = self._add("Where", seen, least[1], least[0])

    def _attention(self, layer: int, x: str) -> str:
        made, x = self._made, self._normed(x)
        past = f"past_key_values.{layer}"
        query = self._turned(self._heads_of(x, self._heads))
        key, value = self._turned(self._heads_of(x, made.shared)), self._heads_of(x, made.shared)
        key = self._add("Concat", f"{past}.key", key, axis=-2, name=f"present.{layer}.key")
        value = self._add("Concat", f"{past}.value", value, axis=-2, name=f"present.{layer}.value")
        key, value = self._repeated(key), self._repeated(value)
        scores = self._add("MatMul", query, self._add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self._add("Mul", scores, self._store(np.float32(made.size**-0.5)))
        weights = self._add("Softmax", self._add("Add", scores, self._added), axis=-1)
        found = self._add("Transpose", self._add("MatMul", weights, value), perm=[0, 2, 1, 3])
        flat = self._add("Reshape", found, self._store(np.array([0, 0, self._wide])))
        return self._add("MatMul", flat, self._weight(self._wide, self._wide))

    def _grouped(self, layer: int, x: str) -> str:
        made, x = self._made, self._normed(x)
        counts = self._heads, made.shared, made.shared
        parts = [self._add("MatMul", x, self._weight(self._wide, count * made.size)) for count in counts]
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        outputs = [f"attended.{layer}", f"present.{layer}.key", f"present.{layer}.value"]
        self._nodes.append(
            helper.make_node(
                "GroupQueryAttention", [*parts, *past, *self._ends, *self._tables], outputs, domain="com.microsoft",
                num_heads=self._heads, kv_num_heads=made.shared, do_rotary=1,
            )
        )  # fmt: skip
        return self._add("MatMul", outputs[0], self._weight(self._wide, self._wide))

    def _heads_of(self, x: str, count: int) -> str:
        flat = self._add("MatMul", x, self._weight(self._wide, count * self._made.size))
        apart = self._add("Reshape", flat, self._store(np.array([0, 0, count, self._made.size])))
        return self._add("Transpose", apart, perm=[0, 2, 1, 3])

    def _turned(self, x: str) -> str:
        half = self._made.size // 2
        a, b = (self._add("Slice", x, self._axis(k * half), self._axis((k + 1) * half), self._axis(3)) for k in (0, 1))
        cos, sin = (self._add("Gather", table, self._places) for table in self._tables)
        cos, sin = (self._add("Unsqueeze", each, self._axis(1)) for each in (cos, sin))
        first = self._add("Sub", self._add("Mul", a, cos), self._add("Mul", b, sin))
        return self._add("Concat", first, self._add("Add", self._add("Mul", b, cos), self._add("Mul", a, sin)), axis=-1)

    def _repeated(self, x: str) -> str:
        groups, made = self._heads // self._made.shared, self._made
        if groups == 1:
            return x
        shape, two = self._add("Shape", x), self._store(np.array([2]))
        rows = self._add("Gather", shape, two, axis=0)
        shared, size = self._store(np.array([1, made.shared])), self._store(np.array([made.size]))
        wide = self._add("Concat", shared, self._store(np.array([groups])), rows, size, axis=0)
        spread = self._add("Expand", self._add("Unsqueeze", x, two), wide)
        joined = self._add("Concat", self._store(np.array([0, self._heads])), rows, size, axis=0)
        return self._add("Reshape", spread, joined)

    def _normed(self, x: str) -> str:
        mean = self._add("ReduceMean", self._add("Mul", x, x), self._axis(-1))
        scaled = self._add("Div", x, self._add("Sqrt", self._add("Add", mean, self._store(np.float32(1e-5)))))
        return self._add("Mul", scaled, self._store(self._rng.uniform(0.5, 1.5, self._wide).astype(np.float32)))

    def _axis(self, axis: int) -> str:
        return self._store(np.array([axis]))

    def _weight(self, rows: int, columns: int, scale: float = 0.0) -> str:
        """Weights so large that texts differ."""
        drawn = self._rng.standard_normal((rows, columns)) * (scale or 1.5 * rows**-0.5)
        return self._store(drawn.astype(np.float32))

    def _store(self, value: np.ndarray) -> str:
        name = f"w{len(self._stored)}"
        self._stored[name] = value
        return name

    def _add(self, op: str, *inputs: str, name: str = "", **attributes: object) -> str:
        name = name or f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def _save(self) -> None:
        made, whole, single = self._made, TensorProto.INT64, TensorProto.FLOAT
        inputs = {"input_ids": (whole, ["texts", "new"]), "attention_mask": (whole, ["texts", "every"])}
        inputs |= {"position_ids": (whole, ["texts", "new"])}
        inputs |= {name: (single, ["texts", made.shared, "past", made.size]) for name in made.past()}
        rows = single, ["texts", made.shared, "every", made.size]
        outputs = {"logits": (single, ["texts", "new", made.words])}
        outputs |= {name.replace("past_key_values", "present"): rows for name in made.past()}
        read = {name for node in self._nodes for name in node.input}
        graph = helper.make_graph(
            self._nodes, "decoder",
            [helper.make_tensor_value_info(name, *of) for name, of in inputs.items() if name in read],
            [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in self._stored.items()],
        )  # fmt: skip
        domains = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=9), made.path)
