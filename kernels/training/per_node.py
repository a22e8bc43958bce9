"""The steps of study A as published: a work-item computes a node of a layer, of one sample or of the whole batch."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from kernels.errors import OptionError
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Node
from kernels.source.kernel import Buffer, Kernel, changed, result

from .bodies import body
from .gradients import Tape
from .machine import GpuMachine, Rows, Source, activation_code
from .stages import TIED

MOST_SAMPLES = 256
"""The most samples of a batch: a work-item keeps a number of each."""

_FEED_FORWARD = Kernel(
    "feed_forward",
    body("feed_forward"),
    (Buffer("src", 1), Buffer("weight", 1), Buffer("bias", 1), result("dst", 1)),
    ("nodes", "inputs", "src_stride", "weight_stride", "stride", "has_bias", "activation"),
    ("lo", "hi"),
)


@lru_cache
def _back_propagate(*, hidden: bool, adds: bool) -> Kernel:
    operands = [Buffer("src", 1), Buffer("value", 1), Buffer("error", 1), *([Buffer("next", 1)] if hidden else [])]
    results = (result("dst", 1), result("bias", 1), changed("gradient", 1) if adds else result("gradient", 1))
    ints = ["nodes", "inputs", "stride", "weight_stride", "activation"]
    ints += ["next_nodes", "next_stride", "error_stride"] if hidden else []
    return Kernel("back_propagate", body("back_propagate"), (*operands, *results), tuple(ints))


class NodeTape(Tape):
    """A layer's way back is one kernel, which takes the error from the gradients of the layer that reads it."""

    machine: GpuMachine

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if others := [node for node in self.graph.nodes if node.op != "dense"]:
            raise OptionError(f"steps per_node are of dense layers; {others[0].name} is {others[0].op!r}: give `auto`")
        if self.graph.shapes[self.graph.inputs[0]][0] > MOST_SAMPLES:
            raise OptionError(f"steps per_node take at most {MOST_SAMPLES} samples a batch: give `auto`")
        self._readers: dict[str, tuple[Node, Rows]] = {}
        """Tensor -> the layer that reads it, and the gradient before that one's activation."""

    def multiply(self, node: Node, source: Source, target: Rows, *, turned: bool = False) -> None:
        """See `Tape`."""
        assert isinstance(source, Rows)
        weight, bias = self.weight(node.inputs[1]), self.bias(node)
        code, lo, hi = activation_code(node.attributes.get("activation") or ())
        self.machine.dispatch(
            _FEED_FORWARD, node.name,
            {"src": source.buffer, "weight": weight.buffer, "bias": bias or weight.buffer, "dst": target.buffer},
            {
                "nodes": target.stride, "inputs": source.c, "src_stride": source.stride, "stride": target.stride,
                "weight_stride": weight.stride, "has_bias": int(bool(bias)), "activation": code,
            },
            (target.stride, target.rows), floats={"lo": lo, "hi": hi}, switches={"TURNED": int(turned)},
        )  # fmt: skip

    def before_activation(self, node: Node, value: Rows) -> Rows:
        """See `Tape`; it is written together with the gradients of bias and weight."""
        return self.machine.rows(f"{node.name}:before", value.n, value.c)

    def multiply_back(self, node: Node, before: Rows, source: Rows, *, turned: bool) -> None:
        """See `Tape`; the kernel of the layer before does it."""
        self._readers[node.inputs[0]] = node, before

    def descend(self, node: Node, left: Source, right: Rows, before: Rows) -> None:
        """See `Tape`; all of the node's way back."""
        name, tied, activation = node.inputs[1], TIED in node.attributes, node.attributes.get("activation")
        weight, source, value = self.weight(name), self.values[node.inputs[0]], self.values[node.output]
        reader, adds = self._readers.get(node.output), name in self.gradients
        if not adds:
            rows = self.machine.rows(f"{name}:gradient", weight.n, weight.c)
            self.gradients[name] = replace(rows, n=self.real_rows(name))
        bias = self.machine.rows(f"{node.name}:bias", 1, value.c)
        buffers = {
            "src": source.buffer, "value": value.buffer, "dst": before.buffer, "bias": bias.buffer,
            "gradient": self.gradients[name].buffer,
        }  # fmt: skip
        ints = {
            "nodes": value.stride, "inputs": source.stride, "stride": value.stride, "weight_stride": weight.stride,
            "activation": ACTIVATIONS[activation[0]].code if activation else 0,
        }  # fmt: skip
        switches = {"BATCH": value.n, "TURNED": int(tied), "HIDDEN": int(reader is not None), "ADDS": int(adds)}
        turns = value.n * (1 + source.stride) + source.stride
        if reader is None:
            buffers["error"] = self.gradients[node.output].buffer
        else:
            behind, error = reader
            following = self.weight(behind.inputs[1])
            buffers |= {"error": error.buffer, "next": following.buffer}
            ints |= {"next_nodes": error.c, "next_stride": following.stride, "error_stride": error.stride}
            switches["NEXT_TURNED"] = int(TIED in behind.attributes)
            turns += value.n * error.c
        self.machine.check_turns(node.name, turns)
        kernel = _back_propagate(hidden=reader is not None, adds=adds)
        self.machine.dispatch(kernel, f"{node.name}:gradient", buffers, ints, (value.stride, 1), switches=switches)
        if len(node.inputs) > 2 and node.inputs[2] in self.trained:
            self.give(node.inputs[2], bias)
