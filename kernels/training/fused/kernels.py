"""Descriptions of the fused kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kernels.source.kernel import Buffer, Kernel, LocalArray, changed, result
from kernels.source.tile import SharedSum, derived
from kernels.training.bodies import body

from .tiles import ProductTile

End = Literal["store", "gradient", "step"]
ENDS: dict[End, int] = {"store": 0, "gradient": 1, "step": 2}
_RATE = (Buffer("rates", 1), Buffer("counter", 1, "i32"))


def _stepped(momentum: bool, bias: bool) -> tuple[Buffer, ...]:
    names = ["weight", *(["bias"] if bias else []), *(["velocity"] if momentum else [])]
    return *_RATE, *map(changed, [*names, *(["bias_velocity"] if momentum and bias else [])])


@lru_cache
def product_kernel(end: End, *, sums: bool, adds: bool, momentum: bool, shared: bool) -> Kernel:
    """`sums`: of the right operand's columns; `adds`: another gradient; `shared`: by several teams."""
    operands = (Buffer("a"), Buffer("b"), *((Buffer("addend"),) if adds else ()))
    ends = {
        "store": (Buffer("bias"), result("dst")),
        "gradient": (Buffer("value"), result("dst")),
        "step": _stepped(momentum, sums),
    }
    ints = ["rows", "columns4", "depth", "each", "a_stride", "b_stride"]
    ints += {
        "store": ["part_size", "has_bias", "activation"],
        "gradient": ["activation"],
        "step": ["batches", "epochs"],
    }[end]
    floats = {"store": ("lo", "hi"), "gradient": (), "step": ("momentum",) if momentum else ()}[end]
    arrays = [LocalArray("tile_a", "LOCAL_A"), LocalArray("tile_b", "LOCAL_B")]
    arrays += [LocalArray("meeting", "LOCAL_MEETING")] if shared else []
    return Kernel(
        "training_product", body("product"), (*operands, *ends[end]), tuple(ints), floats,
        ProductTile, tuple(arrays),
    )  # fmt: skip


@lru_cache
def sum_step(*, bias: bool, momentum: bool) -> Kernel:
    """Adds up the parts of a gradient, and the step."""
    floats = ("momentum",) if momentum else ()
    ints = ("count", "all_count", "parts", "part_size", "batches", "epochs")
    return Kernel("sum_step", body("sum_step"), (Buffer("partial"), *_stepped(momentum, bias)), ints, floats)


@dataclass(frozen=True)
class Columns(SharedSum):
    """`cx` vectors of columns, the rows shared out over `ky` work-items each."""

    group = derived(lambda tile: tile.shared)


COLUMNS = Columns(8, 16)


@lru_cache
def squared_error(*, bias: bool, momentum: bool) -> Kernel:
    """Loss, gradient before the last layer's activation, and the step of its bias."""
    buffers = (
        Buffer("src"),
        Buffer("target"),
        result("dst"),
        result("losses", 1),
        *(_stepped(momentum, True) if bias else ()),
    )
    buffers = tuple(buffer for buffer in buffers if buffer.name not in ("weight", "velocity"))
    floats = ("share", *(("momentum",) if bias and momentum else ()))
    ints = ("batch", "columns", "columns4", "activation", *(("batches", "epochs") if bias else ()))
    arrays = (LocalArray("losses_here", "SHARED"), LocalArray("sums_here", "SHARED"))
    return Kernel("squared_error_step", body("squared_error_step"), buffers, ints, floats, Columns, arrays)


COUNT = Kernel(
    "count_together",
    body("count_together"),
    (Buffer("losses", 1), changed("report", 1), changed("counter", 1, "i32")),
    ("count", "batches", "classifies"),
    (),
    SharedSum,
    (LocalArray("sums_here", "SHARED"),),
)
