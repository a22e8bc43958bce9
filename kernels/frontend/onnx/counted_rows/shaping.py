"""Operators that shape, join and slice tensors of which some axes are padded, and those that say extents of such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import add

import numpy as np

from kernels.frontend.onnx.context import AnyArray
from kernels.frontend.onnx.extent import Count, Extent, factors, larger, most, quotient, smaller
from kernels.ir import compositions as c

from .counts import number, whole_numbers
from .rows import Counts, Rows


def transposed(r: Rows) -> None:
    perm = list(r.attribute("perm", range(len(r.shape(r.operand(0))))[::-1]))
    r.import_from()
    r.tell({perm.index(axis): count for axis, count in r.counts(0).items()})


def _shaped(r: Rows, wanted: Sequence[Extent]) -> None:
    """Reshape: of axes that are divided only the first may be padded; valid elements of several that are joined move
    together."""
    x, given, target = r.operand(0), r.extents(0), list(wanted)
    own, i, j = r.shape(x), 0, 0
    found, shape = dict[int, Count](), list[int]()
    try:
        while i < len(given) or j < len(target):
            a, b = i, j
            i, j = i + (i < len(given)), j + (j < len(target))
            while _times(given[a:i]) != _times(target[b:j]):
                take = j == len(target) or (i < len(given) and prod(own[a:i]) < prod(map(most, target[b:j])))
                if (take and i == len(given)) or (not take and j == len(target)):
                    raise ValueError("extents do not meet")
                i, j = i + take, j + (not take)
            while i < len(given) and given[i] == 1:
                i += 1
            while j < len(target) and target[j] == 1:
                j += 1
            sizes = [most(extent) for extent in target[b:j]]
            inside = [axis for axis in range(a, i) if isinstance(given[axis], Count)]
            after = [axis for axis in range(b, j) if isinstance(target[axis], Count)]
            if any(own[axis] != 1 for axis in range(a, max(inside, default=a))) or len(inside) > 1:
                x = _together(r, x, given, a, i)
            if len(after) > 1 or any(target[axis] != 1 for axis in range(b, max(after, default=b))):
                raise ValueError("rows would not stay together")
            for axis in after:
                found[axis] = target[axis]  # type: ignore[assignment]
                sizes[axis - b] = prod(own[a:i]) // prod(size for k, size in enumerate(sizes) if k != axis - b)
            shape += sizes
    except ValueError as e:
        r.refuse(f"{given} cannot become {target} ({e})")
    kind = r.to.type_of(r.operand(0))
    r.end(r.reshape(x, shape))
    r.tell(found)
    r.to.types[r.node.outputs[0]] = kind


def _together(r: Rows, x: str, given: Sequence[Extent], start: int, stop: int) -> str:
    """Put the valid elements of some axes, row-major, first. The shape stays."""
    own = r.shape(x)
    total = prod(own[start:stop])
    r.places(total)
    left: str | AnyArray = np.arange(total, dtype=np.float32)
    places: str | AnyArray = np.zeros(1, np.float32)
    for axis in reversed(range(start, stop)):
        stride = float(prod(own[axis + 1 : stop]))
        if axis == start:
            places = r.map(("add", "a", ("mul", "b", stride)), places, left)
            break
        extent = ("max", "b", 1.0)
        about = ("floor", ("div", ("add", "a", 0.5), extent))  # a division on a GPU may be slightly wrong
        rest = ("sub", "a", ("mul", "c", extent))
        wrong = ("sub", ("less", rest, 0.0), c.less_or_equal(extent, rest))
        count = number(r, given[axis])
        times = r.map(("sub", "c", wrong), left, count, r.map(about, left, count))
        places = r.map(
            ("add", "a", ("mul", ("sub", "b", ("mul", "c", ("max", "d", 1.0))), stride)), places, left, times, count
        )
        left = times
    flat = r.reshape(x, (prod(own[:start]), total, prod(own[stop:])))
    return r.reshape(r.gather(flat, r.tensor(places), 1), own)


def _times(extents: Sequence[Extent]) -> tuple[int, Counter[Count]]:
    parts = [factors(extent) for extent in extents]
    return prod(base for base, _ in parts), Counter(count for _, counts in parts for count in counts)


def reshaped(r: Rows) -> None:
    wanted, given = whole_numbers(r.to, r.operand(1)), r.extents(0)
    if wanted is None:
        r.refuse("its target is computed otherwise than by counting")
    zero = not r.attribute("allowzero", 0)
    target = [given[k] if zero and extent == 0 and k < len(given) else extent for k, extent in enumerate(wanted)]
    if -1 in target:
        try:
            target[target.index(-1)] = quotient(given, [extent for extent in target if extent != -1])
        except ValueError:
            r.refuse(f"{given} cannot become {target}")
    _shaped(r, target)


def flattened(r: Rows) -> None:
    given = r.extents(0)
    axis = int(r.attribute("axis", 1))
    axis += len(given) if axis < 0 else 0
    _shaped(r, [quotient(given[:axis], []), quotient(given[axis:], [])])


def squeezed(r: Rows) -> None:
    given, axes = r.extents(0), r.whole_numbers(1, "axes")
    gone = [k for k, e in enumerate(given) if e == 1] if axes is None else r.node.distinct_axes(axes, len(given))
    _shaped(r, [extent for k, extent in enumerate(given) if k not in gone])


def unsqueezed(r: Rows) -> None:
    given, axes = iter(r.extents(0)), r.whole_numbers(1, "axes") or []
    rank = len(r.shape(r.operand(0))) + len(axes)
    new = r.node.distinct_axes(axes, rank)
    _shaped(r, [1 if k in new else next(given) for k in range(rank)])


def marked(r: Rows) -> None:
    """OneHot, which has one axis more."""
    axis = r.node.axis(r.attribute("axis", -1), len(r.shape(r.operand(0))) + 1)
    r.import_from()
    r.tell({k + (k >= axis): count for k, count in r.counts(0).items()})


def repeated(r: Rows) -> None:
    """Tile: along other axes than those of which some elements are valid."""
    r.only(0, [axis for axis, times in enumerate(r.whole_numbers(1) or []) if times == 1], "is repeated")
    r.import_from()
    r.tell(r.counts(0))


def expanded(r: Rows) -> None:
    given, wanted = r.extents(0), whole_numbers(r.to, r.operand(1))
    if wanted is None:
        r.refuse("its target is computed otherwise than by counting")
    rank = max(len(given), len(wanted))
    given = [*(1,) * (rank - len(given)), *given]
    target = [*(1,) * (rank - len(wanted)), *wanted]
    own = (1,) * (rank - len(r.shape(r.operand(0)))) + r.shape(r.operand(0))
    found, shape = dict[int, Count](), list[int]()
    for axis, (a, b) in enumerate(zip(given, target, strict=True)):
        if a not in (1, b) and b != 1:
            r.refuse(f"{a} rows cannot become {b}")
        extent = b if a == 1 else a
        shape.append(most(extent) if a == 1 else own[axis])
        if isinstance(extent, Count):
            found[axis] = extent
    r.import_from(None, r.stored(shape))
    r.tell(found)
    r.to.spread[r.node.outputs[0]] = r.operand(0)


def filled(r: Rows) -> None:
    """ConstantOfShape."""
    wanted = whole_numbers(r.to, r.operand(0)) or []
    value = np.asarray(r.attribute("value", np.zeros(1, np.float32))).reshape(())
    wanted = [larger(extent, 0) for extent in wanted]
    shape = [most(extent) for extent in wanted]
    r.to.reserve(r.node, prod(shape) * value.itemsize)
    r.to.constants[r.node.outputs[0]] = np.full(shape, value)
    r.tell({axis: extent for axis, extent in enumerate(wanted) if isinstance(extent, Count)})


def counted(r: Rows) -> None:
    """Range."""
    start, limit, step = ((whole_numbers(r.to, r.operand(index)) or [-1])[0] for index in range(3))
    length = limit - start
    if isinstance(start, Count) and step == 1 and not isinstance(length, Count) and length > 0:
        r.end(r.map(("add", "a", "b"), np.arange(length), number(r, start)))
        r.to.types[r.node.outputs[0]] = np.dtype(np.int64)
        return
    if isinstance(start, Count) or not isinstance(limit, Count) or step != 1:
        r.refuse("only a range from a constant number on in steps of 1 may end at a count")
    count = larger(limit - start, 0)
    r.to.constants[r.node.outputs[0]] = np.arange(start, start + most(count), dtype=np.int64)
    if isinstance(count, Count):
        r.tell({0: count})


def sliced(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    parts = [_part(r, index, name) for index, name in enumerate(("starts", "ends", "axes", "steps"), 1)]
    starts, ends = parts[0] or [], parts[1] or []
    axes = r.node.distinct_axes([most(k) if isinstance(k, Count) else k for k in parts[2] or range(len(starts))], rank)
    steps = parts[3] or [1] * len(axes)
    counts, x, kind = r.counts(0), r.operand(0), r.to.type_of(r.operand(0))
    found = {k: c for k, c in counts.items() if k not in axes}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent: Extent = counts.get(axis, r.shape(x)[axis])
        if not any(isinstance(each, Count) for each in (extent, start, end)):
            x = _constant_part(r, x, axis, start, end, step)  # type: ignore[arg-type]
            continue
        if isinstance(extent, Count) and (start, step) == (-1, -1) and _is_before(end, r.shape(x)[axis]):
            x, found[axis] = _turned_round(r, x, axis, extent), extent
            continue
        if step != 1:
            r.refuse(f"a slice of them in steps of {step} is not supported")
        first, last = (_end(r, each, extent) for each in (start, end))
        count = larger(last - first, 0)
        width = min(most(count), r.shape(x)[axis])
        if not width:
            r.refuse("a slice of it is empty")
        if isinstance(first, Count):
            places = r.map(("add", "a", "b"), np.arange(width, dtype=np.int32), number(r, first))
            r.places(r.shape(x)[axis])
            x = r.gather(x, places, axis)
        else:
            x = r.slice(x, axis, first, min(first + width, r.shape(x)[axis]))
        if isinstance(count, Count):
            found[axis] = count
    r.end(x)
    r.tell(found)
    r.to.types[r.node.outputs[0]] = kind


def _is_before(end: Extent, most: int) -> bool:
    """Return whether a slice that goes backwards to there takes the first element, too."""
    return not isinstance(end, Count) and end < -most


def _turned_round(r: Rows, x: str, axis: int, count: Count) -> str:
    """Put the valid elements in the opposite order, the last one first."""
    back = np.arange(1, r.shape(x)[axis] + 1, dtype=np.int32)
    places = r.map(("max", ("sub", "b", "a"), 0.0), back, number(r, count))
    r.places(r.shape(x)[axis])
    return r.gather(x, places, axis)


def _constant_part(r: Rows, x: str, axis: int, start: int, end: int, step: int) -> str:
    extent = r.shape(x)[axis]
    chosen = range(extent)[start : None if step < 0 and end < -extent else end : step]
    if not chosen:
        r.refuse("a slice of it is empty")
    return r.tensor(x) if chosen == range(extent) else r.pick(x, axis, chosen)


def _part(r: Rows, index: int, name: str) -> list[Extent] | None:
    if r.node.opset < 10:
        return r.attribute(name)  # type: ignore[no-any-return]
    if not r.has(index):
        return None
    found = whole_numbers(r.to, r.node.input(index))
    if found is None:
        r.refuse("where its slice lies is computed otherwise than by counting")
    return found


def _end(r: Rows, place: Extent, extent: Extent) -> Extent:
    """A bound of a slice, counted from the first row."""
    if not isinstance(place, Count):
        return larger(extent + place, 0) if place < 0 else smaller(place, extent)
    if place.least >= 0:
        return smaller(place, extent)
    key = ("end", place, extent)
    if key not in r.to.made:
        inside = ("select", ("less", "a", 0.0), ("max", ("add", "a", "b"), 0.0), ("min", "a", "b"))
        r.to.made[key] = r.map(inside, number(r, place), number(r, extent))
    return Count(r.to.made[key], 0, max(0, min(place.most, most(extent)), most(extent + min(-1, place.most))))


def joined(r: Rows) -> None:
    """Join: behind the valid rows of a part those of the next."""
    axis = r.node.axis(r.attribute("axis"), len(r.shape(r.operand(0))))
    names = [name for name in r.node.inputs if 0 not in r.shape(name)]
    found: Counts = {}
    for name in names:
        for other, count in r.to.counts.get(name, {}).items():
            if other != axis and found.setdefault(other, count) != count:
                r.differ()
    every = [r.to.counts.get(name, {}).get(axis, r.shape(name)[axis]) for name in names]
    whole = reduce(add, every)
    has_room = isinstance(every[0], Count) and r.shape(names[0])[axis] >= most(whole)
    if len(names) == 2 and has_room and isinstance(whole, Count) and not isinstance(every[1], Count):
        place = number(r, every[0])
        r.to.emit(r.node, "put_rows", (names[0], r.tensor(names[1]), place), {"axis": axis})
        r.tell({**found, axis: whole})
        return
    joined = r.concat(names, axis)
    if any(isinstance(extent, Count) for extent in every[:-1]):
        joined = r.gather(joined, _valid_first(r, every, [r.shape(name)[axis] for name in names]), axis)
    if not isinstance(whole, Count):  # of parts that are together as many as there were before they were divided
        joined = r.slice(joined, axis, 0, int(whole))
    r.end(joined)
    if isinstance(whole, Count):
        found[axis] = whole
    r.tell(found)


def _valid_first(r: Rows, every: Sequence[Extent], sizes: Sequence[int]) -> str:
    """Return the places of the valid elements of parts of these sizes, one behind the other, then of the other
    elements."""
    key = ("valid first", *every, *sizes)
    if key not in r.to.made:
        held = r.concat([number(r, extent) for extent in every], 0)
        part = np.repeat(np.arange(len(sizes)), sizes)
        inside = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        valid = r.map(("less", "a", "b"), inside, r.pick(held, 0, part))
        r.to.made[key], total = r.true_places(valid)
        r.to.made.setdefault(reduce(add, every), total)
    return r.to.made[key]


def divided(r: Rows) -> None:
    axis = r.node.axis(r.attribute("axis", 0), len(r.shape(r.operand(0))))
    r.only(0, [k for k in range(len(r.shape(r.operand(0)))) if k != axis], "is divided")
    r.import_from()
    r.tell(*[r.counts(0)] * len(r.node.outputs))
