"""Small decoders with random weights, written by the package `gguf` as llama.cpp's converter does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

WORDS, WIDTH, LAYERS, HEADS, SHARED, INNER, CONTEXT = 96, 64, 3, 4, 2, 96, 128
SIZES = {"qwen2": 16, "phi3": 16}
"""Numbers of a head, where they are not 32."""
SAID: dict[str, dict[str, Any]] = {
    "llama": {"rope.dimension_count": 32, "rope.freq_base": 5e5},
    "qwen2": {"rope.freq_base": 1e6},
    "qwen3": {"rope.freq_base": 1e6},
    "gemma2": {"attention.sliding_window": 4, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    "gemma3": {"rope.freq_base": 1e6, "attention.sliding_window": 4, "rope.scaling.factor": 8.0},
    "phi3": {"rope.dimension_count": 16},
}


def write_decoder(
    path: Path, architecture: str, rng: np.random.Generator, kind: str = "F32", *, layers: int = 0, **said: Any
) -> dict[str, np.ndarray]:
    """Write one of an architecture, its matrices stored as `kind`; return the weights that it means, by name."""
    writer = gguf.GGUFWriter(path, architecture)
    size = SIZES.get(architecture, 32)
    layers = layers or (7 if architecture == "gemma3" else LAYERS)
    usual = {
        "block_count": layers, "context_length": CONTEXT, "embedding_length": WIDTH, "feed_forward_length": INNER,
        "attention.head_count": HEADS, "attention.head_count_kv": SHARED, "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.key_length": size, "attention.value_length": size, "vocab_size": WORDS,
    }  # fmt: skip
    for key, value in {**usual, **SAID[architecture], **said}.items():
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        (writer.add_float32 if isinstance(value, float) else add)(f"{architecture}.{key}", value)
    if "rope.scaling.type" not in said and "rope.scaling.factor" in SAID[architecture]:
        writer.add_string(f"{architecture}.rope.scaling.type", "linear")
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    shapes = _shapes(architecture, layers, tied=rng.random() < 0.5)
    meant = {}
    for name, shape in shapes.items():
        array = rng.standard_normal(shape).astype(np.float32) / np.float32(1 if "embd" in name else shape[-1] ** 0.5)
        array = array + np.float32(1) if "norm" in name else array
        stored = gguf.GGMLQuantizationType[kind if array.ndim > 1 else "F32"]
        packed = array if stored == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(array, stored)
        writer.add_tensor(name, packed, raw_dtype=stored)
        meant[name] = gguf.quants.dequantize(packed, stored) if packed is not array else array
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return meant


def _shapes(architecture: str, layers: int, *, tied: bool) -> dict[str, tuple[int, ...]]:
    size = SIZES.get(architecture, 32)
    heads, shared = HEADS * size, SHARED * size
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (WORDS, WIDTH), "output_norm.weight": (WIDTH,)}
    found |= {} if tied or architecture.startswith("gemma") else {"output.weight": (WORDS, WIDTH)}
    for layer in range(layers):
        own: dict[str, tuple[int, ...]] = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_output": (WIDTH, heads)}
        own |= {"attn_q": (heads, WIDTH), "attn_k": (shared, WIDTH), "attn_v": (shared, WIDTH)}
        own |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
        if architecture == "phi3":
            for name in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
                del own[name]
            own |= {"attn_qkv": (heads + 2 * shared, WIDTH), "ffn_up": (2 * INNER, WIDTH)}
        if architecture in ("qwen3", "gemma3"):
            own |= {"attn_q_norm": (size,), "attn_k_norm": (size,)}
        if architecture.startswith("gemma"):
            own |= {"post_attention_norm": (WIDTH,), "post_ffw_norm": (WIDTH,)}
        found |= {f"blk.{layer}.{name}.weight": shape for name, shape in own.items()}
        if architecture == "qwen2":
            found |= {f"blk.{layer}.attn_{word}.bias": own[f"attn_{word}"][:1] for word in "qkv"}
    return found
