"""A decoder's layers in the operators in which onnxruntime's builder of language models writes them.

So all that is known of an exporter's decoder is known of a GGUF file's, and other engines can run it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from kernels.errors import ModelError
from kernels.frontend.spelling import spelled

from .header import Header, Tensor
from .hyperparameters import Hyperparameters

_OPSET, _IR = 23, 10
_NORM = "SimplifiedLayerNormalization"


@dataclass(frozen=True)
class Sizes:
    """Sequences, tokens of each at once, places of the cache, and of how many last tokens logits are given."""

    batch: int
    tokens: int
    capacity: int
    logits: int


@dataclass(frozen=True)
class Stored:
    """A weight of the decoder: rows of a stored tensor, in an order, or an array. `turned`: columns become rows."""

    tensor: Tensor | None
    rows: npt.NDArray[np.int64] | None = None
    turned: bool = False
    array: npt.NDArray[Any] | None = None


Read = Callable[[Tensor], npt.NDArray[np.float32]]


def decoder_of(
    header: Header, model: Hyperparameters, sizes: Sizes, read: Read
) -> tuple[onnx.ModelProto, dict[str, Stored]]:
    """Return the decoder without its weights, and where each of these is stored. Raises ModelError for tensors that are
    missing, of another shape, or not known."""
    return _Decoder(header, model, sizes, read).written()


class _Decoder:
    """One model while its nodes are written."""

    def __init__(self, header: Header, model: Hyperparameters, sizes: Sizes, read: Read) -> None:
        self._tensors, self._m, self._sizes, self._read = header.tensors, model, sizes, read
        self._stored: dict[str, Stored] = {}
        self._weights: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._used: set[str] = set()

    def written(self) -> tuple[onnx.ModelProto, dict[str, Stored]]:
        m, s = self._m, self._sizes
        words = self._find("token_embd.weight").shape[0]
        x = self._add("gather", self._weight("token_embd.weight", (words, m.width)), "tokens")
        x = self._add("mul", x, self._array("widening", np.float32(m.width**0.5))) if m.is_gemma else x
        last = self._add("add", "position", self._array("newest", np.int64(s.tokens - 1)))
        self._add("cast", last, to=TensorProto.INT32, output="ends")
        self._array("total", np.int32(s.capacity))
        for layer in range(m.layers):
            x = self._layer(f"blk.{layer}.", layer, x)
        if s.logits < s.tokens:
            x = self._add("slice", x, *(self._whole([n]) for n in (s.tokens - s.logits, s.tokens, 1)))
        name = "output" if "output.weight" in self._tensors else "token_embd"
        x = self._product(self._norm(x, "output_norm.weight"), name, words)
        if cap := m.final_softcap:
            low, high = (self._array(f"cap.{word}", np.float32(n)) for word, n in (("low", 1 / cap), ("high", cap)))
            x = self._add("mul", self._add("tanh", self._add("mul", x, low)), high)
        self._add("identity", x, output="logits")
        if unknown := sorted(set(self._tensors) - self._used):
            raise ModelError(
                f"{len(unknown)} tensors have no place in a decoder of {m.architecture}, as {unknown[0]!r}; bring the "
                "model as ONNX"
            )
        return self._model(words), self._stored

    def _model(self, words: int) -> onnx.ModelProto:
        m, s = self._m, self._sizes
        cache = TensorProto.FLOAT, (s.batch, m.shared, s.capacity, m.size)
        pairs = [f"{layer}.{word}" for layer in range(m.layers) for word in ("key", "value")]
        inputs = {"tokens": (TensorProto.INT64, (s.batch, s.tokens)), "position": (TensorProto.INT64, (s.batch,))}
        inputs |= {f"past_key_values.{pair}": cache for pair in pairs}
        outputs = {"logits": (TensorProto.FLOAT, (s.batch, s.logits, words))} | {f"present.{p}": cache for p in pairs}
        ports = ([helper.make_tensor_value_info(n, *kind) for n, kind in each.items()] for each in (inputs, outputs))
        graph = helper.make_graph(self._nodes, m.architecture, *ports, self._weights)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)

    def _layer(self, prefix: str, layer: int, x: str) -> str:
        m = self._m
        attended = self._attention(prefix, layer, self._norm(x, f"{prefix}attn_norm.weight"))
        attended = self._product(attended, f"{prefix}attn_output", m.width)
        x = self._add("add", x, self._after(attended, f"{prefix}post_attention_norm.weight"))
        rows = self._norm(x, f"{prefix}ffn_norm.weight")
        inner = self._find(f"{prefix}ffn_down.weight").shape[-1]
        gate, up = self._parts(rows, {f"{prefix}ffn_gate": inner, f"{prefix}ffn_up": inner}, f"{prefix}ffn_up")
        gate = (
            self._add("gelu", gate, approximate="tanh")
            if m.is_gemma
            else self._add("mul", gate, self._add("sigmoid", gate))
        )
        down = self._product(self._add("mul", gate, up), f"{prefix}ffn_down", m.width)
        return self._add("add", x, self._after(down, f"{prefix}post_ffw_norm.weight"))

    def _attention(self, prefix: str, layer: int, rows: str) -> str:
        m, local = self._m, self._m.is_local(layer)
        widths = {f"{prefix}attn_{word}": m.size * n for word, n in (("q", m.heads), ("k", m.shared), ("v", m.shared))}
        found = self._parts(rows, widths, f"{prefix}attn_qkv")
        for index, (name, width) in enumerate(widths.items()):
            if f"{name}_norm.weight" in self._tensors:
                apart = self._add("reshape", found[index], self._whole([0, 0, width // m.size, m.size]))
                apart = self._norm(apart, f"{name}_norm.weight", m.size)
                found[index] = self._add("reshape", apart, self._whole([0, 0, width]))
        pair = [f"{layer}.{word}" for word in ("key", "value")]
        attributes: dict[str, Any] = {"num_heads": m.heads, "kv_num_heads": m.shared, "do_rotary": 1, "scale": m.scale}
        attributes |= {"local_window_size": m.window} if local else {}
        attributes |= {"softcap": m.softcap} if m.softcap else {}
        inputs = [*found, *(f"past_key_values.{each}" for each in pair), "ends", "total", *self._angles(local)]
        outputs = [f"{prefix}attended", *(f"present.{each}" for each in pair)]
        domain = "com.microsoft"
        self._nodes.append(
            helper.make_node("GroupQueryAttention", inputs, outputs, outputs[0], domain=domain, **attributes)
        )
        return outputs[0]

    def _angles(self, local: bool) -> tuple[str, str]:
        """Cosines and sines of each place, by halves of what is turned."""
        m, names = self._m, [f"{word}{'.local' * local}" for word in ("cosines", "sines")]
        if names[0] not in self._stored:
            base, factor = (m.base_local, m.factor_local) if local else (m.base, m.factor)
            with np.errstate(all="ignore"):
                turns = np.float64(base) ** -(np.arange(0, m.turned, 2) / m.turned) / factor
                if "rope_freqs.weight" in self._tensors:  # by which Llama 3.1 slows its slow turns
                    turns = turns / self._read(self._find("rope_freqs.weight", (m.turned // 2,)))
                angles = np.arange(self._sizes.capacity)[:, None] * turns
            if not np.isfinite(angles).all():
                raise ModelError(f"places turn by no finite angle (base {base:g}, factor {factor:g}); convert it again")
            for name, values in zip(names, (np.cos(angles), np.sin(angles)), strict=True):
                self._array(name, values.astype(np.float32))
        return names[0], names[1]

    def _parts(self, x: str, widths: dict[str, int], fused: str) -> list[str]:
        """Products with weights of these names, or with the rows of one that has them all behind each other."""
        if all(f"{name}.weight" in self._tensors for name in widths):
            return [self._product(x, name, width) for name, width in widths.items()]
        ends = np.cumsum([0, *widths.values()]).tolist()
        self._find(f"{fused}.weight", (ends[-1], self._m.width))
        return [
            self._product(x, name, width, rows=np.arange(first, first + width), stored=fused)
            for (name, width), first in zip(widths.items(), ends, strict=False)
        ]

    def _product(
        self, x: str, name: str, width: int, *, rows: npt.NDArray[np.int64] | None = None, stored: str = ""
    ) -> str:
        """x times a weight, and its bias where there is one; `rows` of what is stored under another name."""
        stored, m, is_whole = stored or name, self._m, rows is None
        if m.in_pairs and name.endswith(("attn_q", "attn_k")):  # half a head apart: as other architectures have them
            head = np.arange(m.size)
            head[: m.turned] = head[: m.turned].reshape(-1, 2).T.reshape(-1)
            rows = (np.arange(width).reshape(-1, m.size)[:, head]).reshape(-1)
        tensor = self._find(f"{stored}.weight")
        if len(tensor.shape) != 2 or (is_whole and tensor.shape[0] != width):
            raise ModelError(f"tensor {tensor.name!r} has shape {tensor.shape}; expected ({width}, ...)")
        y = self._add("matmul", x, self._store(f"{name}.turned", (tensor.shape[1], width), Stored(tensor, rows, True)))
        if f"{stored}.bias" not in self._tensors:
            return y
        bias = Stored(self._find(f"{stored}.bias", (tensor.shape[0],)), rows)
        return self._add("add", y, self._store(f"{name}.bias", (width,), bias))

    def _after(self, x: str, weight: str) -> str:
        """Rows as a norm behind a layer leaves them, where there is one."""
        return self._norm(x, weight) if weight in self._tensors else x

    def _norm(self, x: str, weight: str, width: int = 0) -> str:
        stored = self._weight(weight, (width or self._m.width,))
        return self._add(_NORM, x, stored, axis=-1, epsilon=self._m.epsilon)

    def _find(self, name: str, shape: tuple[int, ...] | None = None) -> Tensor:
        if name not in self._tensors:
            raise ModelError(f"tensor {name!r} is missing: the file is not whole; convert or download it again")
        self._used.add(name)
        found = self._tensors[name]
        if shape is not None and found.shape != shape:
            raise ModelError(f"tensor {name!r} has shape {found.shape}; its other sizes ask for {shape}")
        return found

    def _weight(self, name: str, shape: tuple[int, ...]) -> str:
        return self._store(name, shape, Stored(self._find(name, shape)))

    def _whole(self, values: list[int]) -> str:
        return self._array(f"whole.{'.'.join(map(str, values))}", np.asarray(values))

    def _array(self, name: str, array: npt.ArrayLike) -> str:
        found = np.asarray(array)
        kind = helper.np_dtype_to_tensor_dtype(found.dtype)
        return self._store(name, found.shape, Stored(None, array=found), kind)

    def _store(self, name: str, shape: tuple[int, ...], stored: Stored, kind: int = TensorProto.FLOAT) -> str:
        if name not in self._stored:
            self._stored[name] = stored
            self._weights.append(TensorProto(name=name, dims=shape, data_type=kind))
        return name

    def _add(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{op}.{len(self._nodes)}"
        self._nodes.append(helper.make_node(op if op == _NORM else spelled(op), inputs, [output], output, **attributes))
        return output
