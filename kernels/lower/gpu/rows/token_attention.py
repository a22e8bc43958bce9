"""`attend` of one token (`kernels/ir/cache.py`) on a GPU: places shared out over work-groups, which read a key once for
all heads that share it, and append the token's own key and value (flash-decoding, Dao et al. 2023).

How many splits there are follows from the device's compute units; how many of them have places, from those that are
valid: the others end at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from kernels.catalog.work_group import group_conflict
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import plain, single
from kernels.lower.gpu.taking import grown
from kernels.lower.states import writes_in_place
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, LocalArray, changed, result
from kernels.source.tile import derived

from .cached import PLACE, RowTile, beside, lower_cached

_GROUP, _LANES, _KEYS = 128, 4, 8
"""Work-items; those that share a key's row at least, and vectors of it that each has at most."""
_TOGETHER = 8
"""Heads of a work-group at most: registers hold a sum of each."""
_SPLITS, _GROUPS_OF_A_UNIT, _GROUPS_OF_A_PHONE = 64, 4, 2
"""Parts of the places at most, and work-groups that a compute unit has at once."""
_UNITS, _LOCAL_BYTES = 8, 16 << 10
"""Compute units and local memory of a device that does not tell."""


@dataclass(frozen=True)
class TokenTile(RowTile):
    """`together` heads in `splits` parts; `lanes` work-items of `group` share a row, and `columns4` a value. Sums of
    `joined` heads meet at once."""

    columns4: int
    group: int
    lanes: int
    together: int
    splits: int
    joined: int

    places = derived(lambda tile: max(1, tile.group // tile.lanes))
    """Places of a turn."""

    parts = derived(lambda tile: max(1, tile.group // tile.columns4))
    keys = derived(lambda tile: -(-tile.depth4 // tile.lanes))
    """Vectors of a key that a work-item has."""

    values = derived(lambda tile: -(-tile.places // tile.parts))
    """Vectors of values that a work-item has."""

    pairs = derived(lambda tile: -(-tile.together // tile.lanes))
    """Scores of a work-item."""

    query = derived(lambda tile: tile.together * tile.depth4)
    met = derived(lambda tile: tile.together * tile.group)
    summed = derived(lambda tile: tile.joined * tile.group)
    sets = derived(lambda tile: tile.together // tile.joined)
    """Meetings of sums."""

    found = derived(lambda tile: -(-tile.splits // tile.parts))
    """Vectors that a work-item has of what splits found."""

    seen = derived(lambda tile: tile.together * tile.places)


_ENDS = Buffer("ends", 1, "f32")
_VALID = ("heads", "capacity", "window")
_KEY, _VALUE = (tuple(f"{name}_{of}" for of in ("start", "batch", "head")) for name in ("key", "value"))
_ATTEND = Kernel(
    "attend_token",
    body("attend_token"),
    (Buffer("src"), Buffer("key_cache"), Buffer("value_cache"), _ENDS, result("dst")),
    (*_VALID, "kept", *PLACE[:3]),
    ("scale", "softcap"),
    tile=TokenTile,
    locals=(
        LocalArray("tile_q", "QUERY"),
        LocalArray("tile_k", "DEPTH4"),
        LocalArray("tile_v", "COLUMNS4"),
        LocalArray("held", "SUMMED"),
        LocalArray("meeting", "MET", 1),
        LocalArray("scores", "SEEN", 1),
        LocalArray("weight", "SEEN", 1),
        LocalArray("factors", "TOGETHER", 1),
    ),
)
_JOIN = Kernel(
    "attend_join",
    body("attend_join"),
    (Buffer("parts", storage="f32"), _ENDS, result("dst")),
    _VALID,
    tile=TokenTile,
    locals=(
        LocalArray("held", "GROUP"),
        LocalArray("meeting", "GROUP", 1),
        LocalArray("scores", "SPLITS", 1),
        LocalArray("weight", "SPLITS", 1),
    ),
)


def lower_append(context: GpuContext, node: Node) -> None:
    """Leave it to the attention that alone reads key and value."""
    readers = context.graph.consumers(node.output)
    if len(readers) == 1 and node.output in _appended(context, readers[0]):
        grown(context, node)
    else:
        lower_cached(context, node)


def lower_attend(context: GpuContext, node: Node) -> None:
    """Depths, columns and halves of what is turned are whole vectors (`cached.py` of the frontend)."""
    tile, appended = _tile(context, node), _appended(context, node)
    if tile is None:
        if appended:
            lower_cached(context, *appended.values())
        lower_cached(context, node)
        return
    a, shapes = node.attributes, context.graph.shapes
    batch, kept, capacity, depth = shapes[node.inputs[1]]
    heads = a["heads"]
    kernel = beside(_ATTEND, turned=tile.half4 > 0, normed=a["normed"])
    ends = single(context, node.inputs[3])
    buffers = {"src": plain(context, node.inputs[0]), "key_cache": plain(context, node.inputs[1])}
    buffers |= {"value_cache": plain(context, node.inputs[2]), "ends": ends}
    names = zip(("cosines", "sines", "norm"), node.inputs[4:], strict=False)
    buffers |= {name: plain(context, tensor) for name, tensor in names if tensor}
    ints = {"heads": heads, "capacity": capacity, "window": a["window"], "kept": kept}
    ints |= {name: n // 4 for name, n in zip(PLACE[:3], a["place"], strict=False)}
    ints |= {"places": shapes[node.inputs[4]][0]} if a["turned"] else {}
    floats = {"scale": float(a["scale"]), "softcap": float(a["softcap"])}
    floats |= {"epsilon": float(a["epsilon"])} if a["normed"] else {}
    for name, words, append in zip(("new_key", "new_value"), (_KEY, _VALUE), appended.values(), strict=False):
        buffers |= {name: plain(context, append.inputs[1])}
        ints |= {word: n // 4 for word, n in zip(words, append.attributes["place"], strict=False)}
        if append.attributes["normed"]:
            buffers |= {"new_norm": plain(context, append.inputs[5])}
    if appended:
        kernel = _appending(kernel)
    if not context.limits.unified_memory:
        kernel = kernel.in_order("key_cache", "value_cache")
    switches = {"NORMED": int(a["normed"]), "BY_PLACE": int(a["by_place"]), "CAPPED": int(a["softcap"] > 0)}
    target, (head_items, blocks) = context.new_plain(node.output), (tile.splits * tile.group, heads // tile.together)
    dispatch = partial(context.dispatch, tile=tile, group=tile.group)
    if tile.splits == 1:
        found = target
    else:
        shape = (batch, heads, tile.splits, 4 * tile.columns4 + 4)
        described = Tensor(shape=shape, dtype="f32")
        size = 16 * batch * heads * tile.splits * (tile.columns4 + 1)
        found = context.draft.add_buffer(f"{node.name}:splits", size, "scratch", described)
        *read, written = kernel.buffers
        kernel = replace(kernel, name=f"{kernel.name}_part", buffers=(*read, replace(written, storage="f32")))
    dispatch(
        kernel, node.name, {**buffers, "dst": found}, ints, (head_items, blocks, batch), floats=floats,
        switches={**switches, "APPENDS": int(bool(appended))}, traffic=context.traffic(node),
        flops=4 * batch * heads * capacity * depth,
    )  # fmt: skip
    if found != target:
        own, groups = {name: ints[name] for name in _VALID}, (heads * tile.group, batch, 1)
        join = _JOIN if context.limits.unified_memory else _JOIN.in_order("parts")
        dispatch(join, node.name, {"parts": found, "ends": ends, "dst": target}, own, groups)


def _appending(kernel: Kernel) -> Kernel:
    """The kernel that puts the token's own key and value into the cache."""
    caches = {name: changed(name) for name in ("key_cache", "value_cache")}
    *read, written = (caches.get(buffer.name, buffer) for buffer in kernel.buffers)
    normed = any(buffer.name == "norm" for buffer in kernel.buffers)
    own = (Buffer("new_key"), Buffer("new_value"), *(Buffer("new_norm"),) * normed)
    name, ints = f"{kernel.name}_appending", (*kernel.ints, *_KEY, *_VALUE)
    return replace(kernel, name=name, buffers=(*read, *own, written), ints=ints)


def _appended(context: GpuContext, node: Node) -> dict[str, Node]:
    """Return what appends key and value to caches that only this attention reads, where one step can do both."""
    if node.op != "attend":
        return {}
    graph, found = context.graph, dict[str, Node]()
    for index, name in enumerate(node.inputs[1:3]):
        append = context.writers.get(name)
        if append is None or append.op != "append" or graph.consumers(name) != [node] or name in graph.ports_out:
            return {}
        if not writes_in_place(graph, append) or append.inputs[2] != node.inputs[3] or name in found:
            return {}
        a, own = append.attributes, node.attributes
        alike = all(a[word] == own[word] for word in ("turned", "by_place", "normed"))
        alike = alike and a.get("epsilon") == own.get("epsilon") and append.inputs[3:5] == node.inputs[4:6]
        if a["rows"] != own["rows"] or (a["turned"] or a["normed"] if index else not alike):
            return {}
        found[name] = append
    return found


def _tile(context: GpuContext, node: Node) -> TokenTile | None:
    """Return the tile of a token's attention; None where it is computed as several rows are."""
    a, shapes, limits = node.attributes, context.graph.shapes, context.limits
    batch, kept, capacity, depth = shapes[node.inputs[1]]
    if a["rows"] > 1 or limits.cpu_device:
        return None
    most = min(_GROUP, limits.within(_ATTEND.name).max_work_group or _GROUP)
    depth4, columns4, group = depth // 4, shapes[node.inputs[2]][3] // 4, 1 << (most.bit_length() - 1)
    lanes = max(_LANES, 1 << (ceil(depth4 / _KEYS) - 1).bit_length())
    if columns4 > group or 2 * lanes > group:
        return None
    shared, units = a["heads"] // kept, limits.compute_units or _UNITS
    for together in (n for n in range(min(_TOGETHER, shared), 0, -1) if shared % n == 0):
        groups, turns = a["heads"] // together * batch, ceil(capacity * lanes / group)
        each = _GROUPS_OF_A_PHONE if limits.unified_memory else _GROUPS_OF_A_UNIT
        splits = min(_SPLITS, max(1, ceil(each * units / groups)), turns)
        known = replace(limits, local_bytes=limits.local_bytes or _LOCAL_BYTES)
        for joined in (1,) if limits.unified_memory else (together, 1):
            tile = TokenTile(depth4, a["turned"] // 8, columns4, group, lanes, together, splits, joined)
            if group_conflict(known, group=group, local_bytes=_ATTEND.local_bytes(tile.constants)) is None:
                return tile
    return None
