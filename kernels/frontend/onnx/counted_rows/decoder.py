"""Decoders of language models: the keys and values that a file takes, and gives with newer ones, become state.

How many tokens came before is a number that is known when a plan runs. So the past is a tensor of which so many rows
are valid (`counted_rows/`), and the concat behind it puts rows into it. The names are those of PyTorch's exporters as
they are used with transformers, of optimum, and of onnxruntime-genai's builder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.extent import Count
from kernels.frontend.onnx.steps import Steps
from kernels.ir.decoder import DecoderStep
from kernels.ir.graph import Graph

_PAST = re.compile(r"past(?:_key_values?)?[._]?(.+)")
_PRESENT = re.compile(r"present(?:_key_values?)?[._]?(.+)")
_TOKENS = ("input_ids", "tokens")
_PLACES = ("position_ids", "cache_position")
_MASK, _BRANCH = "attention_mask", "use_cache_branch"
POSITION = "position"
"""The input that holds how many tokens came before."""
LENGTH = 2
"""The axis of a past that has a row for each token."""

Sizes = tuple[int | str, ...]
"""Sizes of an input as a file declares them; an open one by its name."""


@dataclass
class Decoder:
    """Sequences side by side: how many tokens the state holds of each (`capacity`), and how many of these a run adds
    (`tokens`). Those of a file that computes places itself are at one position."""

    capacity: int
    tokens: int
    sequences: int = 1
    past: dict[str, str] = field(default_factory=dict)
    """Input -> output with newer rows."""
    given: bool = False
    """The file takes the position itself, and a past of the capacity."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """The width of a past whose file leaves it open."""

    def shapes(
        self, declared: Mapping[str, Sizes], outputs: Sequence[str]
    ) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Return the shapes of the graph's inputs, and why others cannot be taken. `declared`: of the file's inputs."""
        if not 1 <= self.tokens <= self.capacity:
            raise ModelError(f"{self.tokens} tokens do not fit into a state of {self.capacity}")
        given = {match[1]: name for name in outputs if (match := _PRESENT.fullmatch(name))}
        self.past = {n: given[m[1]] for n in declared if (m := _PAST.fullmatch(n)) and m[1] in given}
        if not self.past:
            raise ModelError(
                f"no input is a past (past_key_values.0.key) whose output is there (present.0.key): "
                f"{', '.join(declared)}; export the decoder with its cache"
            )
        self.given = POSITION in declared
        shapes: dict[str, tuple[int, ...]] = {POSITION: (self.sequences if self.given else 1,)}
        refused = dict[str, str]()
        for name, sizes in declared.items():
            if name in self.past:
                shapes[name] = self._rows(name, sizes)
            elif name in _TOKENS:
                shapes[name] = (self._sequences(name, sizes), self.tokens)
            elif name not in (POSITION, *_PLACES, _MASK, _BRANCH):
                refused[name] = f"input {name!r} is none that the decoder of a language model has"
        if not shapes.keys() & _TOKENS:
            raise ModelError(f"no input is called {' or '.join(_TOKENS)}; there are {', '.join(declared)}")
        return shapes, refused

    def _rows(self, name: str, declared: Sizes) -> tuple[int, ...]:
        _, heads, length, width = (*declared, "", "", "", "")[:4]
        width = width if isinstance(width, int) else self.widths.get(name, width)
        if self.given and length == self.capacity:
            length = ""
        if len(declared) != 4 or isinstance(length, int) or not isinstance(heads, int) or not isinstance(width, int):
            raise ModelError(
                f"input {name!r} has the sizes {declared}; a past is (batch, heads, any length, width): export "
                "the model with an open length (dynamic_axes or dynamic_shapes)"
            )
        return self._sequences(name, declared), heads, self.capacity, width

    def _sequences(self, name: str, declared: Sizes) -> int:
        if isinstance(declared[0], int) and declared[0] != self.sequences:
            raise ModelError(
                f"input {name!r} has a batch of {declared[0]}, where {self.sequences} sequences are asked for: ask for "
                "as many, or export it with an open batch (dynamic_axes or dynamic_shapes)"
            )
        return self.sequences

    def begin(self, declared: Mapping[str, Sizes], types: Mapping[str, np.dtype[Any]], to: Context) -> None:
        """Tell the import how much of the past is valid, and compute the inputs that follow from the position."""
        to.states = frozenset(self.past)
        if self.given:
            return
        before = Count(POSITION, 0, self.capacity - self.tokens)
        to.add_shape(POSITION, (1,))
        to.types[POSITION] = np.dtype(np.int64)
        to.bounds[POSITION] = (before.least, before.most)
        to.counts |= {name: {LENGTH: before} for name in self.past}
        for name, sizes in declared.items():
            if name == _MASK:
                to.constants[name] = np.ones((self.sequences, self.capacity), types[name])
                every = before + self.tokens
                if isinstance(every, Count):
                    to.counts[name] = {1: every}
            elif name == _BRANCH:
                to.constants[name] = np.ones((1,), types[name])
            elif name in _PLACES:
                s = Steps(OnnxNode(name, "", to.opset, (), (name,), {}), to)
                places = s.map(("add", "a", "b"), np.arange(self.tokens), POSITION)
                s.end(s.reshape(places, (1, self.tokens)[-len(sizes) :]))
                to.types[name] = np.dtype(np.int64)


def head_widths(graph: Any, declared: Mapping[str, Sizes]) -> dict[str, int]:
    """Return the width of a head by the inputs of each grouped attention of a file, from what the file declares of its
    results: onnxruntime-genai's builder leaves it open in the past, which may be packed."""
    found = dict[str, int]()
    for node in graph.node:
        heads = next((each.i for each in node.attribute if each.name == "num_heads"), 0)
        wide = (declared.get(node.output[0]) or ("",))[-1] if heads > 0 else ""
        if isinstance(wide, int) and wide > 0 and wide % heads == 0:
            found |= dict.fromkeys(node.input, wide // heads)
    return found


def newest(to: Context, name: str) -> str:
    """The tensor that an output is another name of."""
    writers = {node.output: node for node in to.nodes}
    while (node := writers.get(name)) is not None and node.op == "reshape":
        if to.shapes[node.inputs[0]] != to.shapes[name]:
            break
        name = node.inputs[0]
    return name


def step_of(graph: Graph, decoder: Decoder) -> DecoderStep:
    """The step that an import made. Raises ModelError where it has no logits."""
    tokens = next(name for name in graph.inputs if name in _TOKENS)
    counts = range(1, decoder.tokens + 1) if decoder.given else (1, decoder.tokens)
    rows = tuple((decoder.sequences, count) for count in counts)
    others = [name for name in graph.ports_out if graph.shapes[name][:-1] in rows]
    logits = "logits" if "logits" in others else next(iter(others), "")
    if not logits:
        raise ModelError(f"{graph.name}: no output has a row of logits for each token: {', '.join(graph.ports_out)}")
    return DecoderStep(graph, tokens, POSITION, logits, decoder.capacity)
