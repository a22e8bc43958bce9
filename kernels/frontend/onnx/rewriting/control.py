"""Control flow: the graphs of If, Loop and Scan are written out as nodes of the model, as often as they run.

How often a loop runs has to be known when the model is read, or is a number of rows (`counted_loops.py`). Of an If
whose condition is computed both branches run, and the condition chooses between their results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.counted_rows.counts import whole_numbers
from kernels.frontend.onnx.counted_rows.sizes import with_sizes
from kernels.frontend.onnx.extent import Count
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.operator import Operator, always
from kernels.frontend.onnx.rewriting.inside import Inside, either

from . import counted_loops


def _written_out(write: Callable[[Inside], None], n: Nodes) -> None:
    """Import what the graphs of a node do. Raises ModelError, and UnsupportedNode where that is not known before."""
    write(Inside(n))


def _if(inside: Inside) -> None:
    node, to, s = inside.node, inside.to, inside.steps
    condition = s.operand(0)
    branches = [node.attributes["else_branch"], node.attributes["then_branch"]]
    if condition in to.constants:
        for index, name in enumerate(inside.run(branches[bool(inside.known(condition, "its condition")[0])], [])):
            inside.end(name, index)
        return
    try:
        other, then = (inside.run(branch, []) for branch in branches)
    except ModelError as e:
        hint = "both branches run, because the condition is computed; of an input that decides it, say its one value"
        raise type(e)(f"{e}; {hint} (`--constant NAME=N`)", e.obstacles) from e
    one = s.reshape(condition, ())
    for index, (a, b) in enumerate(zip(then, other, strict=True)):
        for name in (a, b):
            to.require(node, name, "what a branch gives")
        inside.end(either(inside, one, a, b), index)


def _loop(inside: Inside) -> None:
    node = with_sizes(inside.node, inside.to, (0,), optional=True)
    found = whole_numbers(inside.to, node.input(0))
    if found and isinstance(count := found[0], Count):
        if not inside.known(node.input(1) or inside.constant(True), "its condition")[0]:
            node.reject("it never runs")
        counted_loops.loop(inside, count)
        return
    most = int(inside.known(node.input(0), "its number of turns")[0]) if node.input(0) else None
    body, condition = node.attributes["body"], node.input(1) or inside.constant(True)
    states, collected = list(node.inputs[2:]), list[list[str]]()
    turn = 0
    while (most is None or turn < most) and bool(inside.known(condition, "its condition")[0]):
        condition, *results = inside.run(body, [inside.constant(inside.turn(body, turn)), condition, *states])
        collected.append(results[len(states) :])
        states = results[: len(states)]
        turn += 1
    for index, name in enumerate(states):
        inside.end(name, index)
    for index in range(len(states), len(node.outputs)):
        inside.stack([parts[index - len(states)] for parts in collected], 0, index)


def _scan(inside: Inside) -> None:
    node, s = inside.node, inside.steps
    if node.opset < 9:
        node.reject("in opset 8 it has a batch of sequences; convert the model to a newer opset")
    count = int(s.attribute("num_scan_inputs"))
    states, sources = list(node.inputs[: len(node.inputs) - count]), [*node.inputs[len(node.inputs) - count :]]
    outputs = len(node.outputs) - len(states)
    places = list(s.attribute("scan_input_axes", [0] * count))
    axes = [node.axis(axis, len(s.shape(name))) for axis, name in zip(places, sources, strict=True)]
    for name, axis in zip(sources, axes, strict=True):
        if axis in inside.to.counts.get(name, {}):
            node.reject(f"how often it runs, the rows of {name!r}, depends on the model's input; a Loop may do that")
    lengths = {s.shape(name)[axis] for name, axis in zip(sources, axes, strict=True)}
    if len(lengths) != 1:
        node.damaged(f"its sequences have lengths {sorted(lengths)}; expected one")
    backwards, length = list(s.attribute("scan_input_directions", [0] * count)), lengths.pop()
    collected = []
    for turn in range(length):
        parts = [
            _part(inside, name, axis, length - 1 - turn if reverse else turn)
            for name, axis, reverse in zip(sources, axes, backwards, strict=True)
        ]
        results = inside.run(node.attributes["body"], [*states, *parts])
        collected.append(results[len(states) :])
        states = results[: len(states)]
    for index, name in enumerate(states):
        inside.end(name, index)
    joined = list(s.attribute("scan_output_axes", [0] * outputs))
    turned = list(s.attribute("scan_output_directions", [0] * outputs))
    for index in range(outputs):
        parts = [results[index] for results in collected]
        inside.stack(parts[::-1] if turned[index] else parts, joined[index], len(states) + index)


def _part(inside: Inside, name: str, axis: int, place: int) -> str:
    """One element along an axis."""
    s, to = inside.steps, inside.to
    if name in to.constants:
        return inside.constant(np.take(to.constants[name], place, axis))
    shape = s.shape(name)
    part = s.reshape(s.slice(name, axis, place, place + 1), (*shape[:axis], *shape[axis + 1 :]))
    to.types[part] = to.type_of(name)
    return part


OPERATORS = tuple(
    Operator(name, writes=always, write=partial(_written_out, write))
    for name, write in (("If", _if), ("Loop", _loop), ("Scan", _scan))
)
