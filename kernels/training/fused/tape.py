"""Forward and back through one stage, with as few steps as follow from what each reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Node
from kernels.training.gradients import GRADED, Tape
from kernels.training.machine import Rows, Source, Windows

from .machine import FusedMachine


class FusedTape(Tape):
    """A product ends in its activation's gradient, or in the step of the weight whose gradient it is."""

    machine: FusedMachine

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        nodes = self.graph.nodes
        self._readers = Counter(name for node in nodes for name in node.inputs)
        self._makers = {node.output: node for node in nodes}
        self._left = Counter(self._readers)
        """Readers of a weight whose gradient is still to come."""
        self._stepped: set[str] = set()

    def _activation_of(self, tensor: str) -> str:
        """The activation of a layer whose result only one node reads; empty: none."""
        node = self._makers.get(tensor)
        activation = node.attributes.get("activation") if node else None
        is_own = node is not None and node.op in ("dense", "conv") and self._readers[tensor] == 1
        return activation[0] if is_own and activation and activation[0] in GRADED else ""

    def _own_bias(self, node: Node) -> str:
        """A node's bias that is trained and that no other node has; empty: none."""
        name = node.inputs[2] if len(node.inputs) > 2 else ""
        return name if name in self.trained and self._readers[name] == 1 and name not in self._stepped else ""

    def multiply(self, node: Node, source: Source, target: Rows, *, turned: bool = False) -> None:
        """See `Tape`; the weight is read as it lies."""
        right = self.weight(node.inputs[1])
        depth = source.depth if isinstance(source, Windows) else source.stride
        way = self.machine.shared(source.rows, target.stride // 4, depth)
        activation = node.attributes.get("activation") or ()
        self.machine.store(
            node.name, way, source, right, target.buffer, rows=source.rows, columns4=target.stride // 4,
            bias=self.bias(node), activation=activation, b_way=int(turned),
        )  # fmt: skip

    def multiply_back(self, node: Node, before: Rows, source: Rows, *, turned: bool) -> None:
        """See `Tape`; it ends in the gradient of the source's own activation."""
        name = node.inputs[0]
        gradient = replace(source, buffer=self.machine.rows(f"{name}:gradient", source.rows, source.c).buffer)
        self._through(node, before, gradient, b_way=int(turned))

    def windows(self, node: Node, windows: Windows) -> Source:
        """See `Tape`; windows of whole vectors are read where the image lies."""
        return windows if _is_whole(windows) else super().windows(node, windows)

    def windows_back(self, node: Node, before: Rows, windows: Windows) -> None:
        """See `Tape`; without strides it is a convolution too, with the weights' taps in the other order."""
        source, g = windows.source, windows.geometry
        if not _is_whole(windows) or (g["sh"], g["sw"]) != (1, 1):
            super().windows_back(node, before, windows)
            return
        gradient = self.machine.rows(f"{node.inputs[0]}:gradient", source.n, source.c, source.h, source.w)
        turned = {
            **g, "h": g["oh"], "w": g["ow"], "oh": g["h"], "ow": g["w"], "channels": before.stride,
            "pad_t": (g["kh"] - 1) * g["dh"] - g["pad_t"], "pad_l": (g["kw"] - 1) * g["dw"] - g["pad_l"],
        }  # fmt: skip
        self._through(node, Windows(before, turned), gradient, b_way=2)

    def _through(self, node: Node, before: Source, gradient: Rows, *, b_way: int) -> None:
        name, weight, columns4 = node.inputs[0], self.weight(node.inputs[1]), gradient.stride // 4
        layer, depth = f"{node.name}:gradient", before.depth if isinstance(before, Windows) else before.stride
        way = self.machine.shared(gradient.rows, columns4, depth)
        activation = self._activation_of(name)
        if activation:
            self.before.add(name)
            self.machine.join(
                layer, way, before, weight, rows=gradient.rows, columns4=columns4, end="gradient", b_way=b_way,
                buffers={"value": self.values[name].buffer, "dst": gradient.buffer},
                ints={"activation": ACTIVATIONS[activation].code},
            )  # fmt: skip
        else:
            self.machine.store(
                layer, way, before, weight, gradient.buffer, rows=gradient.rows, columns4=columns4, b_way=b_way
            )
        self.give(name, gradient)

    def descend(self, node: Node, left: Source, right: Rows, before: Rows) -> None:
        """See `Tape`; the last gradient of a weight ends in its step, and that of its bias with it."""
        name = node.inputs[1]
        is_last = name in self.trained and self._left[name] == 1
        bias = self._own_bias(node) if is_last and right is before else ""
        if not bias:
            self.give_bias(node, before)
        if name not in self.trained:
            return
        self._left[name] -= 1
        layer, rows, columns4 = f"{node.name}:weight", self.real_rows(name), right.stride // 4
        addend = self.gradients.pop(name, None)
        way = self.machine.shared(rows, columns4, left.rows, sums=bool(bias), may_part=is_last and addend is None)
        added = addend.buffer if addend else ""
        if not is_last:
            matrix = self.weight(name)
            target = replace(self.machine.rows(f"{name}:gradient", matrix.n, matrix.c), n=rows)
            self.machine.store(
                layer, way, left, right, target.buffer, rows=rows, columns4=columns4, a_turned=True, addend=added
            )
            self.gradients[name] = target
            return
        self._stepped |= {name, bias}
        changed = {**self.descent.rate(), **self.descent.changed(name, 4 * rows * columns4)}
        if bias:
            changed |= self.descent.changed(bias, 4 * columns4, "bias")
        if way.parts == 1:
            buffers = {**changed, "addend": added} if added else changed
            self.machine.join(
                layer, way, left, right, rows=rows, columns4=columns4, end="step", buffers=buffers,
                ints=self.descent.ints, floats=self.descent.floats, a_turned=True,
            )  # fmt: skip
            return
        whole = (rows + bool(bias)) * columns4
        partial = self.machine.rows(f"{name}:parts", way.parts * (rows + bool(bias)), right.c).buffer
        self.machine.store(
            layer, way, left, right, partial, rows=rows, columns4=columns4, part_size=whole, a_turned=True
        )
        sizes = {"count": rows * columns4, "all_count": whole, "parts": way.parts, "part_size": whole}
        self.machine.sum_step(
            f"{name}:step", {**changed, "partial": partial}, {**sizes, **self.descent.ints}, self.descent.floats
        )

    def give_bias(self, node: Node, before: Rows) -> None:
        """See `Tape`; unless the loss has taken its step."""
        if len(node.inputs) < 3 or node.inputs[2] not in self._stepped:
            super().give_bias(node, before)

    def squared_error(self) -> tuple[str, int, Rows]:
        """See `Tape`; with the gradient of the last activation and the step of the last bias."""
        name = self.stage.output
        value, node = self.values[name], self._makers[name]
        columns4, activation = value.stride // 4, node.attributes.get("activation")
        gradient = self.machine.rows(f"{name}:gradient", value.n, value.c, value.h, value.w)
        losses = self.machine.buffer(f"{self.stage.name}:losses", (columns4,), "activation")
        buffers = {
            "src": value.buffer, "target": self.values[self.stage.target].buffer, "dst": gradient.buffer,
            "losses": losses,
        }  # fmt: skip
        ints = {
            "batch": value.rows, "columns": value.c, "columns4": columns4,
            "activation": ACTIVATIONS[activation[0]].code if activation else 0,
        }  # fmt: skip
        floats = {"share": 1 / value.n}
        self.before |= {name} if activation else set()
        bias = self._own_bias(node) if node.op in ("dense", "conv") else ""
        if bias:
            buffers |= {**self.descent.rate(), **self.descent.changed(bias, value.stride, "bias")}
            ints, floats = {**ints, **self.descent.ints}, {**floats, **self.descent.floats}
            self._stepped.add(bias)
        self.machine.squared_error(f"{self.stage.name}:loss", buffers, ints, floats)
        return losses, columns4, gradient


def _is_whole(windows: Windows) -> bool:
    return windows.geometry["channels"] % 4 == 0
