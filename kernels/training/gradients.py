"""Forward and back through one stage: for each operation its steps, and those of its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from kernels.errors import OptionError, UnsupportedNode
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Node

from .descent import Descent
from .machine import Machine, Rows, Source, Windows
from .stages import TIED, TrainingStage
from .variables import FAR_BELOW, Variable

_PARTS = 64
"""Rows that one work-item adds up at most twice over, where a sum has many."""
GRADED = ("relu", "sigmoid")
"""Activations that have a gradient here, where a layer applies them."""
TANH, TANH_CODE = ("tanh", "a"), 7
"""The expression of the one `map` that has a gradient, and what the kernels of training call it."""
_CODES = {"relu": ACTIVATIONS["relu"].code, "sigmoid": ACTIVATIONS["sigmoid"].code, "tanh": TANH_CODE}


class Tape:
    """Values of a stage's tensors, and gradients as far as something that is trained depends on them."""

    def __init__(
        self,
        machine: Machine,
        stage: TrainingStage,
        variables: Mapping[str, Variable],
        buffers: Mapping[str, str],
        descent: Descent,
    ) -> None:
        self.machine, self.stage, self.descent = machine, stage, descent
        self.graph, self.trained = stage.graph, stage.trained
        self.values: dict[str, Rows] = {}
        self.gradients: dict[str, Rows] = {}
        """Gradients of tensors and of weights."""
        self.before: set[str] = set()
        """Tensors whose gradient is that before their activation."""
        self._variables, self._buffers = variables, buffers
        self._live = set(stage.trained)
        self._turned: dict[str, Rows] = {}
        self._back: list[Callable[[], None]] = []

    def forward(self, node: Node) -> None:
        """Append a node's steps. Raises UnsupportedNode, OptionError."""
        if node.op not in RULES:
            raise UnsupportedNode(f"{node.name}: {node.op!r} has no gradient; known: {', '.join(RULES)}")
        activation = node.attributes.get("activation")
        if activation and activation[0] not in GRADED:
            raise UnsupportedNode(
                f"{node.name}: activation {activation[0]!r} has no gradient; known: {', '.join(GRADED)}"
            )
        if self._live & set(node.inputs):
            self._live.add(node.output)
        self.values[node.output], back = RULES[node.op](self, node)
        if node.output in self._live:
            self._back.append(back)

    def backward(self, output: str, gradient: Rows) -> None:
        """Append the steps of every gradient, from that of the output."""
        self.gradients[output] = gradient
        for step in reversed(self._back):
            step()

    def is_live(self, name: str) -> bool:
        """Return whether something that is trained is, or lies before, a tensor."""
        return name in self._live

    def give(self, name: str, gradient: Rows) -> None:
        """A gradient of a tensor or weight; of several it gets their sum."""
        if name in self.gradients:
            target = self.gradients[name]
            buffers = {"src": gradient.buffer, "dst": target.buffer}
            count = target.elements // 4
            self.machine.kernel("accumulate", f"{name}:gradient", buffers, {"count": count}, (count, 1))
        else:
            self.gradients[name] = gradient

    def weight(self, name: str) -> Rows:
        """A weight's matrix, with the rows that fill it up."""
        variable = self._variables[name]
        rows = 1 if len(variable.shape) == 1 else -(-variable.rows // 4) * 4
        return Rows(self._buffers[name], rows, variable.columns)

    def bias(self, node: Node) -> str:
        """The buffer of a node's bias; empty where it needs none."""
        if len(node.inputs) > 2 and node.inputs[2]:
            return self._buffers[node.inputs[2]]
        if node.attributes.get("activation") != ("sigmoid",):
            return ""
        channels = self.graph.shapes[node.output][1]
        whole = Variable("", (channels,), filler=FAR_BELOW).lay(np.zeros(channels, np.float32))
        return self.machine.buffer(f"{node.name}:no_bias", whole.shape, "weight", whole)

    def real_rows(self, name: str) -> int:
        """Rows of a weight's matrix that hold weights."""
        return self._variables[name].rows

    def turned(self, name: str) -> Rows:
        """A weight's matrix transposed: once a pass."""
        if name not in self._turned:
            self._turned[name] = self.machine.transposed(f"{name}:transposed", self.weight(name))
        return self._turned[name]

    def before_activation(self, node: Node, value: Rows) -> Rows:
        """The gradient before a node's activation."""
        behind = self.gradients[node.output]
        activation = node.attributes.get("activation")
        if not activation or node.output in self.before:
            return behind
        return self.activation_gradient(node.name, value, behind, activation[0])

    def activation_gradient(self, layer: str, value: Rows, behind: Rows, activation: str) -> Rows:
        """See the kernel of this name."""
        target = replace(value, buffer=self.machine.rows(f"{layer}:before", value.n, value.c, value.h, value.w).buffer)
        buffers = {"value": value.buffer, "src": behind.buffer, "dst": target.buffer}
        ints = {"count": value.elements, "activation": _CODES[activation]}
        self.machine.kernel("activation_gradient", f"{layer}:gradient", buffers, ints, (value.elements, 1))
        return target

    def column_sums(self, layer: str, source: Rows) -> Rows:
        """A row of the sums of the columns, in two steps where there are many rows."""
        rows, columns4 = source.rows, source.stride // 4
        parts = -(-rows // _PARTS) if rows > 4 * _PARTS else 1
        while parts > 4 * _PARTS:
            parts = -(-parts // 2)
        if parts > 1:
            partial = self.machine.rows(f"{layer}:partial", parts, source.c)
            each = -(-rows // parts)
            ints = {"rows": rows, "columns4": columns4, "each": each}
            buffers = {"src": source.buffer, "dst": partial.buffer}
            self.machine.kernel("column_sums", layer, buffers, ints, (columns4, parts))
            source, rows = partial, parts
        target = self.machine.rows(f"{layer}:sums", 1, source.c)
        ints = {"rows": rows, "columns4": columns4, "each": rows}
        self.machine.kernel("column_sums", layer, {"src": source.buffer, "dst": target.buffer}, ints, (columns4, 1))
        return target

    def descend(self, node: Node, left: Source, right: Rows, before: Rows) -> None:
        """The gradients of a node's weight, left transposed times right, and bias, where they are trained."""
        self.give_bias(node, before)
        name = node.inputs[1]
        if name in self.trained:
            across = self.machine.transposed(f"{node.name}:weight", self.in_memory(left))
            matrix = self.weight(name)
            target = self.machine.rows(f"{name}:gradient", matrix.n, matrix.c)
            self.machine.product(f"{node.name}:weight", across, right, target, rows=self.real_rows(name))
            self.give(name, replace(target, n=self.real_rows(name)))

    def give_bias(self, node: Node, before: Rows) -> None:
        """The gradient of a node's bias, where it is trained."""
        bias = node.inputs[2] if len(node.inputs) > 2 else ""
        if bias in self.trained:
            self.give(bias, self.column_sums(f"{node.name}:bias", before))

    def steps(self) -> None:
        """Append the steps that are still to be taken."""
        names = sorted(self.trained & set(self.gradients))
        collected = [self.descent.collect(self.gradients[name]) for name in names]
        for name, gradient in zip(names, collected, strict=True):
            self.descent.step(name, gradient)

    def squared_error(self) -> tuple[str, int, Rows]:
        """The loss of a stage with a target: the buffer of the losses, their number, and the gradient of the output."""
        value, target = self.values[self.stage.output], self.values[self.stage.target]
        gradient = self.machine.rows(f"{self.stage.output}:gradient", value.n, value.c, value.h, value.w)
        losses = self.machine.buffer(f"{self.stage.name}:losses", (value.stride,), "activation")
        buffers = {"src": value.buffer, "dst": gradient.buffer, "target": target.buffer, "losses": losses}
        ints, floats = {"columns": value.c, "stride": value.stride, "batch": value.rows}, {"share": 1 / value.n}
        self.machine.kernel("squared_error", f"{self.stage.name}:loss", buffers, ints, (value.stride, 1), floats)
        return losses, value.stride, gradient

    # -- products, which a machine may join with what follows them --------------------------------------------------

    def multiply(self, node: Node, source: Source, target: Rows, *, turned: bool = False) -> None:
        """A node's result: source times weight, with bias and activation."""
        name = node.inputs[1]
        right = self.turned(name) if turned else self.weight(name)
        left, activation = self.in_memory(source), node.attributes.get("activation") or ()
        self.machine.product(
            node.name, left, right, target, rows=left.rows, bias=self.bias(node), activation=activation
        )

    def multiply_back(self, node: Node, before: Rows, source: Rows, *, turned: bool) -> None:
        """The gradient of a dense node's source: that before its activation times the weight."""
        name, weight = node.inputs[0], node.inputs[1]
        gradient = replace(source, buffer=self.machine.rows(f"{name}:gradient", source.rows, source.c).buffer)
        other = self.turned(weight) if turned else self.weight(weight)
        self.machine.product(f"{node.name}:gradient", before, other, gradient, rows=source.rows)
        self.give(name, gradient)

    def windows(self, node: Node, windows: Windows) -> Source:
        """The windows that a convolution reads, in memory if need be."""
        target = self.machine.rows(f"{node.name}:windows", windows.source.n, windows.depth, *windows.size)
        ints = {**windows.geometry, "stride": target.stride, "rows": target.rows}
        buffers = {"src": windows.source.buffer, "dst": target.buffer}
        self.machine.kernel("unfold", node.name, buffers, ints, (target.elements, 1))
        return target

    def in_memory(self, source: Source) -> Rows:
        """Return the rows in memory that a product reads."""
        if isinstance(source, Windows):
            raise TypeError("windows that are in no memory")
        return source

    def windows_back(self, node: Node, before: Rows, windows: Windows) -> None:
        """The gradient of a convolution's source: each pixel adds up its windows."""
        machine, source, name = self.machine, windows.source, node.inputs[0]
        spread = machine.rows(f"{node.name}:spread", source.n, windows.depth, *windows.size)
        machine.product(f"{node.name}:gradient", before, self.turned(node.inputs[1]), spread, rows=spread.rows)
        gradient = machine.rows(f"{name}:gradient", source.n, source.c, source.h, source.w)
        ints = {**windows.geometry, "stride": spread.stride, "count": source.elements}
        buffers = {"src": spread.buffer, "dst": gradient.buffer}
        machine.kernel("fold", f"{node.name}:gradient", buffers, ints, (source.elements, 1))
        self.give(name, gradient)


Rule = Callable[[Tape, Node], tuple[Rows, Callable[[], None]]]


def _dense(tape: Tape, node: Node) -> tuple[Rows, Callable[[], None]]:
    """y = activation(x W + b); tied: x W^T + b with the W of another layer."""
    source, tied = tape.values[node.inputs[0]], TIED in node.attributes
    target = tape.machine.rows(node.output, source.n, tape.graph.shapes[node.output][1])
    tape.multiply(node, source, target, turned=tied)

    def back() -> None:
        before = tape.before_activation(node, target)
        if tape.is_live(node.inputs[0]):
            tape.multiply_back(node, before, source, turned=not tied)
        tape.descend(node, *((before, source) if tied else (source, before)), before)

    return target, back


def _conv(tape: Tape, node: Node) -> tuple[Rows, Callable[[], None]]:
    """Windows as rows, times the weights; back the same way, and each pixel adds up its windows."""
    a, source = node.attributes, tape.values[node.inputs[0]]
    if a["groups"] != 1 or a.get("pad_mode") or len(node.inputs) > 3:
        raise OptionError(
            f"{node.name}: convolutions in groups, with mirrored edges or a residual cannot be trained here"
        )
    _, _, oh, ow = tape.graph.shapes[node.output]
    k, c, kh, kw = tape.graph.shapes[node.inputs[1]]
    geometry = {
        "channels": c, "src_stride": source.stride, "h": source.h, "w": source.w, "oh": oh, "ow": ow, "kh": kh,
        "kw": kw, "sh": a["strides"][0], "sw": a["strides"][1], "pad_t": a["pads"][0], "pad_l": a["pads"][1],
        "dh": a["dilations"][0], "dw": a["dilations"][1],
    }  # fmt: skip
    windows = Windows(source, geometry)
    read = tape.windows(node, windows)
    target = tape.machine.rows(node.output, source.n, k, oh, ow)
    tape.multiply(node, read, target)

    def back() -> None:
        before = tape.before_activation(node, target)
        if tape.is_live(node.inputs[0]):
            tape.windows_back(node, before, windows)
        tape.descend(node, read, before, before)

    return target, back


def _activation(tape: Tape, node: Node) -> tuple[Rows, Callable[[], None]]:
    """An activation that no layer applies."""
    source, function = tape.values[node.inputs[0]], "tanh" if node.op == "map" else node.op
    if node.op == "map" and node.attributes["expression"] != TANH:
        raise UnsupportedNode(f"{node.name}: of the functions of an element, relu, sigmoid and tanh have gradients")
    if node.op == "sigmoid" and source.c % 4:
        raise OptionError(f"{node.name}: a sigmoid of its own needs a multiple of four channels, not {source.c}")
    target = replace(source, buffer=tape.machine.rows(node.output, source.n, source.c, source.h, source.w).buffer)
    ints = {"count": source.elements // 4, "activation": _CODES[function]}
    buffers = {"src": source.buffer, "dst": target.buffer}
    tape.machine.kernel("activate", node.name, buffers, ints, (source.elements // 4, 1), {"lo": 0.0, "hi": 0.0})

    def back() -> None:
        gradient = tape.activation_gradient(node.name, target, tape.gradients[node.output], function)
        tape.give(node.inputs[0], gradient)

    return target, back


def _pool(tape: Tape, node: Node) -> tuple[Rows, Callable[[], None]]:
    """max_pool remembers which place of a window was the largest; average_pool shares out."""
    a, machine, source = node.attributes, tape.machine, tape.values[node.inputs[0]]
    if node.op == "average_pool" and a["count_include_pad"] and any(a["pads"]):
        raise OptionError(f"{node.name}: a mean that counts pads cannot be trained here")
    _, _, oh, ow = tape.graph.shapes[node.output]
    target = machine.rows(node.output, source.n, source.c, oh, ow)
    geometry = {
        "stride": source.stride, "h": source.h, "w": source.w, "oh": oh, "ow": ow, "kh": a["kernel"][0],
        "kw": a["kernel"][1], "sh": a["strides"][0], "sw": a["strides"][1], "pad_t": a["pads"][0],
        "pad_l": a["pads"][1],
    }  # fmt: skip
    winners: dict[str, str] = {}
    if node.op == "max_pool":
        winners["winners"] = machine.rows(f"{node.name}:winners", source.n, source.c, oh, ow).buffer
    buffers = {"src": source.buffer, "dst": target.buffer, **winners}
    machine.kernel(node.op, node.name, buffers, {**geometry, "count": target.elements}, (target.elements, 1))

    def back() -> None:
        gradient = machine.rows(f"{node.inputs[0]}:gradient", source.n, source.c, source.h, source.w)
        ints = {**geometry, "count": source.elements}
        buffers = {"src": tape.gradients[node.output].buffer, "dst": gradient.buffer, **winners}
        machine.kernel(f"{node.op}_gradient", f"{node.name}:gradient", buffers, ints, (source.elements, 1))
        tape.give(node.inputs[0], gradient)

    return target, back


def _reshape(tape: Tape, node: Node) -> tuple[Rows, Callable[[], None]]:
    """Flattening an image is another way to see its rows: its readers' weights lie in the same order."""
    source, shape = tape.values[node.inputs[0]], tape.graph.shapes[node.output]
    if shape == tape.graph.shapes[node.inputs[0]]:
        return source, lambda: tape.give(node.inputs[0], tape.gradients[node.output])
    if len(shape) != 2 or shape[0] != source.n or source.image:
        raise OptionError(
            f"{node.name}: only an image can be flattened in training, not {shape} made of another tensor"
        )
    image = (source.c, source.h, source.w)
    flat = Rows(source.buffer, source.n, source.h * source.w * source.stride, image=image)

    def back() -> None:
        behind = tape.gradients[node.output]
        tape.give(node.inputs[0], replace(source, buffer=behind.buffer))

    return flat, back


RULES: dict[str, Rule] = {
    "dense": _dense,
    "conv": _conv,
    "relu": _activation,
    "sigmoid": _activation,
    "map": _activation,
    "max_pool": _pool,
    "average_pool": _pool,
    "reshape": _reshape,
}
"""Rules of the operators that can be trained."""
