"""The sizes and the habits of a decoder, as a GGUF file says them.

Sources: the keys of docs/gguf.md of ggml; what an architecture does beside them, llama.cpp's `llama-model.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernels.errors import ModelError

from .header import Header

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3")
_PAIRS = ("llama",)
"""Architectures whose numbers that are turned together lie side by side; those of the others half a head apart."""
_LOCAL_EVERY = {"gemma2": 2, "gemma3": 6}
"""Layers see a window only, but the last of each run of so many, where the file says no other number."""
_USUAL = {"attention.causal": True, "rope.scaling.attn_factor": 1.0}
"""Habits that any architecture may have otherwise, and what they are in a decoder that is read here."""
_WHOLE_FILE = ("split.count",)
_LARGEST, _WIDEST = 1 << 40, 1 << 24
"""A number that a file says, and the numbers of all heads, at most."""


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
    """Places are divided by it, or by the next one in layers that see a window."""
    factor_local: float
    window: int
    """Places that local layers see; 0: there are none."""
    every: int
    """The last layer of each run of so many is no local one; 0: all are local."""
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
        return bool(self.window and (not self.every or (layer + 1) % self.every))


class _Said:
    """The values that a file says of one architecture, each held against what it can be."""

    def __init__(self, said: Mapping[str, Any], architecture: str) -> None:
        self._said, self._architecture = said, architecture

    def number(self, key: str, usual: float | None = None) -> float:
        """A number from 0 on, or `usual` where nothing is said. Raises ModelError."""
        key = key if key in _WHOLE_FILE else f"{self._architecture}.{key}"
        value = self._said.get(key, usual)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
            raise ModelError(f"{key} is {value!r}; expected a number from 0 on: convert the model again")
        return float(value)

    def count(self, key: str, usual: float | None = None) -> int:
        """A whole number. Raises ModelError."""
        value = self.number(key, usual)
        if value != int(value):
            raise ModelError(f"{key} is {value}; expected a whole number: convert the model again")
        return int(value)

    def word(self, key: str, usual: Any) -> Any:
        return self._said.get(f"{self._architecture}.{key}", usual)


def hyperparameters_of(header: Header) -> Hyperparameters:
    """Read them. Raises ModelError for an architecture, or a habit, that is not known."""
    architecture = header.said.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"architecture {architecture!r} is not known; known are {', '.join(ARCHITECTURES)}: bring the model as "
            "ONNX, or measure it through an engine that knows it"
        )
    said = _Said(header.said, architecture)
    scaling = _checked_scaling(said)
    width, heads = said.count("embedding_length"), said.count("attention.head_count")
    shared, layers = said.count("attention.head_count_kv", heads), said.count("block_count")
    if not 0 < layers < 1 << 12 or not heads or not shared or heads % shared or width < 1:
        raise ModelError(f"{layers} layers of {width} numbers, {heads} heads on {shared}: these do not fit together")
    size = said.count("attention.key_length", width // heads)
    if size < 2 or said.count("attention.value_length", size) != size or heads * size > _WIDEST:
        raise ModelError(
            f"{heads} heads with keys of {size} numbers: keys and values of different sizes, of fewer than 2, or of "
            f"more than {_WIDEST} in all are not supported; bring the model as ONNX"
        )
    turned = said.count("rope.dimension_count", size)
    if not 0 < turned <= size or turned % 2:
        raise ModelError(f"{turned} of {size} numbers of a head are turned; expected an even number of them")
    # Gemma's largest ones divide by the root of another number (its `query_pre_attn_scalar`)
    whole = (architecture, layers) in {("gemma2", 46), ("gemma3", 62)}
    gemma2, every = architecture == "gemma2", _LOCAL_EVERY.get(architecture, 0)
    base = said.number("rope.freq_base", 10000.0)
    return Hyperparameters(
        architecture, layers, width, heads, shared, size,
        epsilon=said.number("attention.layer_norm_rms_epsilon", 1e-5),
        context=said.count("context_length"),
        turned=turned,
        base=base,
        base_local=said.number("rope.freq_base_swa", base if gemma2 else 10000.0),
        factor=scaling,
        factor_local=scaling if gemma2 else 1.0,
        window=said.count("attention.sliding_window", 4096 if gemma2 else 0) if every else 0,
        every=said.count("attention.sliding_window_pattern", every) if every else 0,
        scale=((width // heads) if whole else size) ** -0.5,
        softcap=said.number("attn_logit_softcapping", 50.0) if gemma2 else 0.0,
        final_softcap=said.number("final_logit_softcapping", 30.0 if gemma2 else 0.0) if every else 0.0,
    )  # fmt: skip


def _checked_scaling(said: _Said) -> float:
    """Return by what places are divided. Raises ModelError for what a decoder of such an architecture may
    have and this room does not know."""
    if (parts := said.count("split.count", 0)) > 1:
        raise ModelError(f"one of {parts} parts; merge them (llama-gguf-split --merge FIRST OUT)")
    if said.count("expert_count", 0):
        raise ModelError("a mixture of experts is not supported; bring a dense model")
    for key, usual in _USUAL.items():
        if (value := said.word(key, usual)) != usual:
            raise ModelError(f"{key} {value!r} is not supported, only {usual!r}; bring the model as ONNX")
    scaling = said.word("rope.scaling.type", "linear")
    if scaling not in ("none", "linear"):
        raise ModelError(
            f"places scaled by {scaling!r} are not supported, only none and linear; bring the model as ONNX"
        )
    factor = said.number("rope.scaling.factor", 0.0) or said.number("rope.scale_linear", 0.0)
    return (factor if scaling == "linear" else 0.0) or 1.0
