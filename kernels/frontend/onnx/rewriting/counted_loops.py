"""Loops that run as often as there are rows of which the model's input decides how many there are.

A body of which no turn reads what another one made, but each appends to what the loop gives, is imported once, for a
row of any number, and computed of all rows at once (`counted_rows/every_row.py`). Else it is written out for the
largest number of turns, and what those behind the last one make is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from kernels.frontend.onnx.counted_rows.counts import extents_of, number
from kernels.frontend.onnx.counted_rows.counts import write_out as write_out_extents
from kernels.frontend.onnx.counted_rows.every_row import EveryRow
from kernels.frontend.onnx.extent import Count, Extent, most
from kernels.frontend.onnx.reading.graphs import names_read
from kernels.frontend.onnx.rewriting.inside import Inside, either


def loop(inside: Inside, count: Count) -> None:
    """Import a Loop of so many turns."""
    node, body = inside.node, inside.node.attributes["body"]
    states = node.inputs[2:]
    if not most(count):
        for index, name in enumerate(states):
            inside.end(name, index)
        return
    shapes = [inside.steps.shape(name) for name in states]
    axes = [_appended(body, 2 + index, 1 + index, 0 in shape) for index, shape in enumerate(shapes)]
    if None in axes:
        _by_turns(inside, count)
    else:
        _by_rows(inside, count, [axis for axis in axes if axis is not None])


def _appended(body: onnx.GraphProto, given: int, made: int, empty: bool) -> int | None:
    """The axis along which each turn appends to a state, and does nothing else with it; None: it does something else.

    `given` and `made`: the state's place among the body's inputs and outputs; `empty`: it has no elements at first,
    none that a Cast could change.
    """
    copies = ("Cast", "Identity") if empty else ("Identity",)
    writers = {name: node for node in body.node for name in node.output}
    writers_of_copies = {name: node for name, node in writers.items() if node.op_type in copies}
    joined = _source(writers_of_copies, body.output[made].name)
    node = writers.get(joined)
    if node is None or node.op_type != "Concat":
        return None
    state, chain = body.input[given].name, {joined, body.output[made].name}
    if _source(writers_of_copies, node.input[0], chain) != state or not {state, *chain}.isdisjoint(node.input[1:]):
        return None
    readers = [reader for reader in body.node if not {state, *chain}.isdisjoint(names_read([reader]))]
    alone = all(len(reader.output) == 1 and reader.output[0] in chain for reader in readers)
    given_on = sum(port.name in chain or port.name == state for port in body.output)
    (axis,) = (each.i for each in node.attribute if each.name == "axis")
    return axis if alone and given_on == 1 else None


def _source(copies: dict[str, onnx.NodeProto], name: str, passed: set[str] | None = None) -> str:
    """Return the tensor that another is a copy of, and put the copies into `passed`."""
    while name in copies:
        if passed is not None:
            passed.add(name)
        name = copies[name].input[0]
    return name


def _by_rows(inside: Inside, count: Count, axes: Sequence[int]) -> None:
    node, to, s, body = inside.node, inside.to, inside.steps, inside.node.attributes["body"]
    states, rows = node.inputs[2:], most(count)
    axes = [node.axis(axis, len(s.shape(name))) for axis, name in zip(axes, states, strict=True)]
    turn = to.fresh(f"{next(filter(None, node.outputs))}/turn")
    to.add_shape(turn, inside.turn(body, 0).shape)
    to.types[turn], to.bounds[turn] = np.dtype(np.int64), (0.0, rows - 1.0)
    before = len(to.nodes)
    empty = [
        inside.constant(np.zeros([0 if k == axis else n for k, n in enumerate(s.shape(name))], to.type_of(name)))
        for name, axis in zip(states, axes, strict=True)
    ]
    condition, *results = inside.run(body, [turn, inside.constant(True), *empty])
    _goes_on(inside, condition)
    for name in results:
        if name in to.extents:
            write_out_extents(node, to, name)
    own = to.nodes[before:]
    del to.nodes[before:]
    every = EveryRow.by_number(s, rows, turn)
    every.extend(own)
    for index, name in enumerate(results):
        if index >= len(node.outputs) or not node.outputs[index]:
            continue
        if index < len(states):
            _append(inside, every, count, index, name, axes[index])
        else:
            _collect(inside, every, count, index, name)


def _goes_on(inside: Inside, condition: str) -> None:
    if not inside.known(condition, "its condition")[0]:
        inside.node.reject("its condition ends it after the first turn, and how many turns there are is counted")


def _append(inside: Inside, every: EveryRow, count: Count, index: int, row: str, axis: int) -> None:
    """Join the results of all turns. Along other axes they have the extents of the state at first: joining asks for
    it."""
    node, to, s = inside.node, inside.to, inside.steps
    first = node.inputs[2 + index]
    extents, found = extents_of(to, first), dict[int, Extent]()
    new = every.of(row)
    for k, extent in enumerate(extents_of(to, row)):
        if k == axis:
            if isinstance(extent, Count):
                node.reject(f"in each turn it appends another number of elements ({row!r}); it has to be constant")
        elif extent == extents[k]:
            found[k] = extent
        elif isinstance(extents[k], Count) or most(extents[k]) > s.shape(row)[k] or not isinstance(extent, Count):
            node.damaged(
                f"it appends {s.shape(row)} ({row!r}) along axis {axis} to {s.shape(first)}; their other extents differ"
            )
        else:
            new = s.slice(new, k + 1, 0, most(extents[k]))
    shape = s.shape(new)[1:]
    new = s.transpose(new, (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)))
    whole = (*shape[:axis], every.rows * shape[axis], *shape[axis + 1 :])
    new = _told(inside, new, whole, row, {**found, axis: count * shape[axis]})
    if s.shape(first)[axis]:
        target = node.outputs[index]
        inside.nodes.concat(first, new, name=target, axis=axis)
    else:
        inside.end(new, index)


def _collect(inside: Inside, every: EveryRow, count: Count, index: int, row: str) -> None:
    extents = extents_of(inside.to, row)
    if any(isinstance(extent, Count) and every.depends(extent) for extent in extents):
        inside.node.reject("what it collects changes its shape from turn to turn")
    new = every.of(row)
    found: dict[int, Extent] = {0: count, **{k + 1: extent for k, extent in enumerate(extents)}}
    inside.end(_told(inside, new, inside.steps.shape(new), row, found), index)


def _told(inside: Inside, new: str, shape: Sequence[int], like: str, extents: dict[int, Extent]) -> str:
    """A tensor of its own, of the type of another one, and what of it is valid."""
    to, s = inside.to, inside.steps
    found = s.emit("reshape", (s.tensor(new),), {"shape": tuple(shape)})
    to.counts[found] = {axis: extent for axis, extent in extents.items() if isinstance(extent, Count)}
    to.types[found] = to.type_of(like)
    return found


def _by_turns(inside: Inside, count: Count) -> None:
    node, to, s, body = inside.node, inside.to, inside.steps, inside.node.attributes["body"]
    states, collected = list(node.inputs[2:]), list[list[str]]()
    for turn in range(most(count)):
        given = [inside.constant(inside.turn(body, turn)), inside.constant(True), *states]
        condition, *results = inside.run(body, given)
        _goes_on(inside, condition)
        collected.append(results[len(states) :])
        new = results[: len(states)]
        if turn >= count.least:
            runs = s.reshape(s.map(("less", float(turn), "a"), number(s, count)), ())
            new = [either(inside, runs, a, b) for a, b in zip(new, states, strict=True)]
        states = new
    for index, name in enumerate(states):
        inside.end(name, index)
    for index in range(len(states), len(node.outputs)):
        if target := node.outputs[index]:
            parts = [made[index - len(states)] for made in collected]
            inside.stack(parts, 0, index)
            to.counts[target] = {**to.counts.get(target, {}), 0: count}
