"""ONNX Runtime GenAI: decoders in ONNX with their cache, as its own builder and PyTorch's exporters write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernels.frontend.gguf import is_gguf
from kernels.frontend.onnx import read_model
from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment.language_model import Text
from workers.engines.packaged import AnsweringEngine

CONFIG = "genai_config.json"
SHARES = "GroupQueryAttention"
"""The operator that appends to a cache in place: then past and present may be the same memory."""
TOKENS, OTHERS = ("input_ids", "tokens"), ("attention_mask", "position_ids")


class OnnxRuntimeGenai(AnsweringEngine):
    name, package = "onnxruntime_genai", "onnxruntime-genai"

    def beside(self, model: Path, text: Text, folder: Path) -> Sequence[str]:
        if is_gguf(model):
            raise Unsupported(
                f"engine {self.name} reads decoders in ONNX, and the model is a GGUF file",
                remedy="leave the engine out, or name the folder that its builder has written",
            )
        (folder / CONFIG).write_text(json.dumps(config_of(read_model(model).proto, text), indent=1))
        return [CONFIG]


def config_of(proto: Any, text: Text) -> dict[str, Any]:
    """Return what the engine must know of a decoder: the names of its ports, and the sizes of its cache.

    No token ends a text, so that all answers are as long. Raises Unsupported for ports that it has no place for.
    """
    inputs = {port.name: _sizes(port) for port in proto.graph.input}
    outputs = {port.name: _sizes(port) for port in proto.graph.output}
    past = [name for name in inputs if name not in (*TOKENS, *OTHERS)]
    keys = [name for name in past if name.endswith("key")]
    heads, _, size = inputs[keys[0]][1:] if keys and len(inputs[keys[0]]) == 4 else (0, 0, 0)
    tokens = next((name for name in TOKENS if name in inputs), "")
    words = outputs.get("logits", (0,))[-1]
    given = {
        f"{way}_{kind}_names": _pattern(name for name in names if name.endswith(kind))
        for way, names in (("past", past), ("present", outputs))
        for kind in ("key", "value")
    }
    if not (tokens and words and heads and size and all(given.values()) and len(past) == 2 * len(keys)):
        raise Unsupported(
            f"engine onnxruntime_genai has no place for the decoder's ports: {', '.join((*inputs, *outputs))[:400]}",
            remedy="export it with input_ids, past_key_values.N.key and .value, logits, present.N.key and .value",
        )
    shares = any(node.op_type == SHARES for node in proto.graph.node)
    decoder = {
        "filename": "model.onnx", "head_size": size, "num_attention_heads": heads, "num_key_value_heads": heads,
        "hidden_size": heads * size, "num_hidden_layers": len(keys),
        "inputs": {"input_ids": tokens, **{name: name for name in OTHERS if name in inputs},
                   **{name: each for name, each in given.items() if name.startswith("past")}},
        "outputs": {"logits": "logits", **{name: each for name, each in given.items() if name.startswith("present")}},
        "session_options": {"provider_options": []},
    }  # fmt: skip
    model = {"type": "llama", "vocab_size": words, "context_length": text.capacity + 1, "pad_token_id": 0}
    search = {"do_sample": False, "past_present_share_buffer": shares, "max_length": text.capacity + 1}
    return {"model": {**model, "eos_token_id": [], "decoder": decoder}, "search": search}


def _sizes(port: Any) -> tuple[int, ...]:
    """Return a port's sizes; 0 of one that is open."""
    return tuple(int(each.dim_value) for each in port.type.tensor_type.shape.dim)


def _pattern(names: Iterable[str]) -> str:
    """Return the name that all layers' have in common, `%d` where its number is; empty: they have none."""
    listed = list(names)
    pattern = re.sub(r"\d+", "%d", listed[0], count=1) if listed else ""
    made = [pattern.replace("%d", str(layer)) for layer in range(len(listed))]
    return pattern if pattern.count("%") == 1 and sorted(made) == sorted(listed) else ""


ENGINE = OnnxRuntimeGenai
