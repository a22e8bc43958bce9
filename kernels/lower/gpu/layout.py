"""Conversions between row-major arrays and four-channel stacks, inserted where an operation needs the other form."""

from __future__ import annotations

import numpy as np

from kernels.ir.dims import Dims, has_channels
from kernels.plan.model import Dtype, Tensor
from kernels.plan.port_values import NUMPY
from kernels.source.kernel import Buffer, Kernel, result, view

from .bodies import body
from .context import GpuContext
from .places.ports import in_rows
from .values import Value, View

_PLACES = ("channels", "hw")
PACK = Kernel("pack", body("pack"), (Buffer("src", 1, "f32"), result("dst")), (*_PLACES, *view("dst")))
PACK_DATA = Kernel("pack_data", body("pack"), (Buffer("src", 1), result("dst")), PACK.ints)
UNPACK = Kernel("unpack", body("unpack"), (Buffer("src"), result("dst", 1, "f32")), (*_PLACES, *view("src")))
UNPACK_DATA = Kernel("unpack_data", body("unpack"), (Buffer("src"), result("dst", 1)), UNPACK.ints)
_NARROW = Kernel("narrow", body("convert"), (Buffer("src", 1, "f32"), result("dst", 1)), ("count",))
_WIDEN = Kernel("widen", body("convert"), (Buffer("src", 1), result("dst", 1, "f32")), ("count",))


def packed(context: GpuContext, tensor: str) -> View:
    """The tensor in stacks of four channels."""
    value = _value(context, tensor)
    if value.packed is None:
        dims = context.dims(tensor)
        # the last lanes of a flat row may hold anything, for it is only read element by element
        if dims.hw == 1 and (dims.c % 4 == 0 or not has_channels(context.graph.shapes[tensor])):
            value.packed = View(plain(context, tensor), dims.stacks, 0)
        elif tensor in context.graph.constants:
            value.packed = View(_packed_constant(context, tensor, dims), dims.stacks, 0)
        else:
            value.packed = _pack(context, tensor, value, dims)
    return value.packed


def plain(context: GpuContext, tensor: str) -> str:
    """Return the tensor as a row-major buffer of the plan's data type, or of whole numbers."""
    if not context.half or context.is_whole(tensor):
        return single(context, tensor)
    value = context.values.of(tensor)
    if value.plain is None and tensor in context.graph.constants:  # rounded here, not in every inference
        value.plain = _constant(context, tensor, "f16")
    if value.plain is None:
        shared = row_major(context, tensor, value)
        if shared is not None:
            value.plain = shared
        elif value.packed is not None:
            value.plain = _unpack(context, tensor, value.packed, UNPACK_DATA, context.plain_buffer(tensor))
        else:
            value.plain = _convert(context, tensor, _NARROW, str(value.single), context.plain_buffer(tensor))
    return value.plain


def as_kept(context: GpuContext, tensor: str) -> str:
    """The tensor as a row-major buffer, in fp32 where a plan of halves keeps it so."""
    return single(context, tensor) if tensor in context.kept_single else plain(context, tensor)


def single(context: GpuContext, tensor: str) -> str:
    """Return the tensor as a row-major buffer of fp32, or of whole numbers."""
    value = context.values.of(tensor)
    if value.single is None and tensor in context.graph.constants:
        value.single = _constant(context, tensor, "f32")
        value.plain = value.single if context.is_whole(tensor) else value.plain
    if value.single is None:
        shared = None if context.half else row_major(context, tensor, value)
        if shared is not None:
            value.single = shared
        else:
            value.single = write_single(context, tensor, context.plain_buffer(tensor, "f32"))
    return value.single


def exists_in_single(context: GpuContext, tensor: str) -> bool:
    """Return whether a plan of halves has the tensor row-major in single alone, like a given input: tokens stay
    whole."""
    value = context.values.get(tensor, Value())
    return context.half and value.single is not None and value.plain is None and value.packed is None


def write_single(context: GpuContext, tensor: str, target: str) -> str:
    """Write the tensor as row-major fp32 into `target`, from stacks or from half."""
    value = _value(context, tensor)
    source = value.plain or row_major(context, tensor, value)
    if source is not None:
        return _convert(context, tensor, _WIDEN, source, target)
    assert value.packed is not None
    return _unpack(context, tensor, value.packed, UNPACK, target)


def _value(context: GpuContext, tensor: str) -> Value:
    value = context.values.of(tensor)
    if value == Value():
        value.single = _constant(context, tensor, "f32")
    return value


def _constant(context: GpuContext, tensor: str, dtype: Dtype) -> str:
    array, kind = context.graph.constants[tensor], context.held(tensor)
    dtype = dtype if kind == "f32" else kind
    with np.errstate(over="ignore"):  # a half is infinite then, as a device rounds
        content = array.astype(NUMPY[dtype]).tobytes()
    buffer = context.draft.add_weight(tensor, content, Tensor(shape=array.shape, dtype=dtype))
    if kind != "f32":
        context.stored[buffer] = kind
    return buffer


def _packed_constant(context: GpuContext, tensor: str, dims: Dims) -> str:
    """A constant in stacks, made here and not in every inference."""
    planes = context.graph.constants[tensor].reshape(dims.n, dims.c, dims.hw)
    stacks = np.pad(planes, ((0, 0), (0, -dims.c % 4), (0, 0))).reshape(dims.n, dims.stacks, 4, dims.hw)
    described = Tensor(shape=context.graph.shapes[tensor], dtype=context.dtype, layout="nc4hw4")
    with np.errstate(over="ignore"):
        content = stacks.transpose(0, 1, 3, 2).astype(NUMPY[context.dtype]).tobytes()
    return context.draft.add_weight(f"{tensor}:packed", content, described)


def row_major(context: GpuContext, tensor: str, value: Value) -> str | None:
    """The packed buffer itself where its bytes are in row-major order."""
    dims, view = context.dims(tensor), value.packed
    whole = view is not None and view.stack0 == 0 and (view.stacks == dims.stacks or dims.n == 1)
    if view is not None and whole and in_rows(dims):
        return view.buffer
    return None


def _pack(context: GpuContext, tensor: str, value: Value, dims: Dims) -> View:
    kernel, source = (PACK, value.single) if value.single is not None else (PACK_DATA, value.plain)
    view = context.new_packed(tensor)
    context.dispatch(
        kernel, f"{tensor}:pack", {"src": str(source), "dst": view.buffer},
        {"channels": dims.c, "hw": dims.hw, **view.ints("dst")}, (dims.hw * dims.stacks, 1, dims.n),
        traffic=_moved(context, dims, plain_is_single=kernel is PACK),
    )  # fmt: skip
    return view


def _unpack(context: GpuContext, tensor: str, view: View, kernel: Kernel, target: str) -> str:
    dims = context.dims(tensor)
    context.dispatch(
        kernel, f"{tensor}:unpack", {"src": view.buffer, "dst": target},
        {"channels": dims.c, "hw": dims.hw, **view.ints("src")}, (dims.hw * dims.stacks, 1, dims.n),
        traffic=_moved(context, dims, plain_is_single=kernel is UNPACK),
    )  # fmt: skip
    return target


def _moved(context: GpuContext, dims: Dims, *, plain_is_single: bool) -> int:
    """Bytes read and written between a row-major array and stacks."""
    item = 2 if context.half else 4
    return dims.elements * (4 if plain_is_single else item) + dims.packed_elements * item


def _convert(context: GpuContext, tensor: str, kernel: Kernel, source: str, target: str) -> str:
    dims = context.dims(tensor)
    count = dims.elements
    buffers, layer = {"src": source, "dst": target}, f"{tensor}:{kernel.name}"
    context.dispatch_copy(kernel, layer, buffers, {"count": count}, (count, 1, 1), traffic=6 * count)
    return target
