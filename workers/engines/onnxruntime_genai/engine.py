"""ONNX Runtime GenAI: decoders in ONNX with their cache, as its own builder and PyTorch's exporters write them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from kernels.frontend.gguf import is_gguf
from kernels.frontend.onnx import read_model
from kernels.ir.decoder import DecoderStep
from orchestrator.model.device import Precision
from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment.language_model import Text
from orchestrator.model.job import Cell
from workers.engines.packaged import AnsweringEngine

MODEL, CONFIG = "model.onnx", "genai_config.json"
SHARES = "GroupQueryAttention"
"""The operator that appends to a cache in place: then past and present may be the same memory."""
OTHERS = "attention_mask", "position_ids"
PACKED, ARITHMETIC = "MatMulNBits", "accuracy_level"
LEVELS = {Precision.FP32: 1, Precision.INT8: 4}
"""The attribute of a packed product that says whether its activations are rounded to 8 bits."""


class OnnxRuntimeGenai(AnsweringEngine):
    name, package = "onnxruntime_genai", "onnxruntime-genai"

    precisions = (Precision.FP32, Precision.INT8)

    def written(self, model: Path, step: DecoderStep, cell: Cell, folder: Path) -> Sequence[str]:
        text = cell.text
        assert text is not None
        if is_gguf(model):
            raise Unsupported(
                f"engine {self.name} reads decoders in ONNX, and the model is a GGUF file",
                remedy="leave the engine out, or name the folder that its builder has written",
            )
        file = read_model(model)
        graph = file.proto.graph
        inputs = {port.name for port in graph.input} - {tensor.name for tensor in graph.initializer}
        shares = any(node.op_type == SHARES for node in graph.node)
        (folder / CONFIG).write_text(json.dumps(config_of(step, text, inputs=sorted(inputs), shares=shares), indent=1))
        changed = _with_arithmetic(graph, Precision(cell.precision))
        (folder / MODEL).write_bytes(file.whole().SerializeToString() if changed else model.read_bytes())
        return [MODEL, CONFIG]


def config_of(step: DecoderStep, text: Text, *, inputs: Collection[str], shares: bool) -> dict[str, Any]:
    """Return what the engine must know of a decoder: the names of its ports, and the sizes of its cache. `inputs`: all
    those of the file. `shares`: past and present may be the same memory.

    No token ends a text, so that all answers are as long. Raises Unsupported for ports that it has no place for.
    """
    graph = step.graph
    given = {
        f"{way}_{kind}_names": _pattern(name for name in names if name.endswith(kind))
        for way, names in (("past", graph.state), ("present", graph.state.values()))
        for kind in ("key", "value")
    }
    lacking = set(inputs) - {step.tokens, *OTHERS, *graph.state}
    if lacking or not all(given.values()):
        ports = ", ".join((*inputs, *graph.state.values()))[:400]
        raise Unsupported(
            f"engine onnxruntime_genai has no place for the decoder's ports: {ports}",
            remedy="export it with input_ids, past_key_values.N.key and .value, logits, present.N.key and .value",
        )
    _, heads, _, size = graph.shapes[next(iter(graph.state))]
    decoder = {
        "filename": MODEL, "head_size": size, "num_attention_heads": heads, "num_key_value_heads": heads,
        "hidden_size": heads * size, "num_hidden_layers": len(graph.state) // 2,
        "inputs": {"input_ids": step.tokens, **{name: name for name in OTHERS if name in inputs},
                   **{name: each for name, each in given.items() if name.startswith("past")}},
        "outputs": {step.logits: step.logits, **{n: each for n, each in given.items() if n.startswith("present")}},
        "session_options": {"provider_options": []},
    }  # fmt: skip
    longest = text.capacity + 1
    model = {"type": "llama", "vocab_size": step.words, "context_length": longest, "pad_token_id": 0}
    search = {"do_sample": False, "past_present_share_buffer": shares, "max_length": longest}
    return {"model": {**model, "eos_token_id": [], "decoder": decoder}, "search": search}


def _with_arithmetic(graph: Any, precision: Precision) -> bool:
    """Have packed products computed in a precision; return whether the graph was changed. Raises Unsupported."""
    packed = [node for node in graph.node if node.op_type == PACKED]
    if precision is Precision.INT8 and not packed:
        raise Unsupported(
            "engine onnxruntime_genai computes products of packed weights alone in 8 bits, and the model has none",
            remedy="leave `int8` out, or have its builder write `-p int4`",
        )
    changed = False
    for node in packed:
        own = next((each for each in node.attribute if each.name == ARITHMETIC), None)
        if (own.i if own is not None else 0) != LEVELS[precision]:
            own = own if own is not None else node.attribute.add(name=ARITHMETIC, type=2)
            own.i, changed = LEVELS[precision], True
    return changed


def _pattern(names: Iterable[str]) -> str:
    """Return the name that all layers' have in common, `%d` where its number is; empty: they have none."""
    listed = list(names)
    pattern = re.sub(r"\d+", "%d", listed[0], count=1) if listed else ""
    made = [pattern.replace("%d", str(layer)) for layer in range(len(listed))]
    return pattern if pattern.count("%") == 1 and sorted(made) == sorted(listed) else ""


ENGINE = OnnxRuntimeGenai
