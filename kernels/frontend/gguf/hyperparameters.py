"""The sizes and the habits of a decoder, as a GGUF file says them.

Sources: the keys of docs/gguf.md of ggml; what an architecture does beside them, llama.cpp's `llama-model.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernels.errors import ModelError

from .header import Header

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3")
_PAIRS = ("llama",)
"""Architectures whose numbers that are turned together lie side by side; those of the others half a head apart."""
_LOCAL_EVERY = {"gemma2": 2, "gemma3": 6}
"""Layers see a window only, but the last of each run of so many."""


@dataclass(frozen=True)
class Hyperparameters:
    """The sizes and habits of one decoder."""

    architecture: str
    layers: int
    width: int
    heads: int
    shared: int
    """Heads of keys and values."""
    size: int
    """Numbers of a head."""
    epsilon: float
    context: int
    turned: int
    """Numbers of a head that are turned by its place."""
    base: float
    base_local: float
    factor: float
    """Places are divided by it, but in layers that see a window."""
    window: int
    """Places that local layers see; 0: there are none."""
    scale: float
    """Factor of the scores."""
    softcap: float
    final_softcap: float

    @property
    def in_pairs(self) -> bool:
        return self.architecture in _PAIRS

    @property
    def is_gemma(self) -> bool:
        """Words are multiplied by the root of their width, and the gate is a Gelu."""
        return self.architecture in _LOCAL_EVERY

    def is_local(self, layer: int) -> bool:
        every = _LOCAL_EVERY.get(self.architecture, 0)
        return bool(self.window and every and (layer + 1) % every)


def hyperparameters_of(header: Header) -> Hyperparameters:
    """Read them. Raises ModelError for an architecture, or a habit, that is not known."""
    said = header.said
    architecture = said.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"architecture {architecture!r} is not known; known are {', '.join(ARCHITECTURES)}: bring the model as "
            "ONNX, or measure it through an engine that knows it"
        )
    _check(said, architecture)

    def of(key: str, usual: Any = None) -> Any:
        value = said.get(f"{architecture}.{key}", usual)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise ModelError(f"{architecture}.{key} is {value!r}; expected a number: convert the model again")
        return value

    width, heads = of("embedding_length"), of("attention.head_count")
    shared, layers = of("attention.head_count_kv", heads), of("block_count")
    if not 0 < layers < 1 << 12 or not heads or not shared or heads % shared or width < 1:
        raise ModelError(f"{layers} layers of {width} numbers, {heads} heads on {shared}: these do not fit together")
    size = of("attention.key_length", width // heads)
    if size < 2 or of("attention.value_length", size) != size:
        raise ModelError("keys and values of different sizes are not supported; bring the model as ONNX")
    turned = int(of("rope.dimension_count", size))
    if not 0 < turned <= size or turned % 2:
        raise ModelError(f"{turned} of {size} numbers of a head are turned; expected an even number of them")
    # Gemma's largest ones divide by the root of another number (its `query_pre_attn_scalar`)
    whole = (architecture, layers) in {("gemma2", 46), ("gemma3", 62)}
    gemma2 = architecture == "gemma2"
    return Hyperparameters(
        architecture, layers, width, heads, shared, size,
        epsilon=of("attention.layer_norm_rms_epsilon", 1e-5),
        context=int(of("context_length")),
        turned=turned,
        base=of("rope.freq_base", 10000.0),
        base_local=of("rope.freq_base_swa", 10000.0),
        factor=of("rope.scaling.factor", 1.0) or 1.0,
        window=int(of("attention.sliding_window", 0)) if architecture in _LOCAL_EVERY else 0,
        scale=((width // heads) if whole else size) ** -0.5,
        softcap=of("attn_logit_softcapping", 50.0) if gemma2 else 0.0,
        final_softcap=of("final_logit_softcapping", 30.0) if gemma2 else 0.0,
    )  # fmt: skip


def _check(said: Any, architecture: str) -> None:
    """Raise ModelError for what a decoder of such an architecture may have and this room does not know."""
    if said.get("split.count", 0) > 1:
        raise ModelError(f"one of {said['split.count']} parts; merge them (llama-gguf-split --merge FIRST OUT)")
    if said.get(f"{architecture}.expert_count", 0):
        raise ModelError("a mixture of experts is not supported; bring a dense model")
    scaling = said.get(f"{architecture}.rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise ModelError(
            f"places scaled by {scaling!r} are not supported, only none and linear; bring the model as ONNX"
        )
