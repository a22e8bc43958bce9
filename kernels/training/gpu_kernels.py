"""Kernels that only training needs, on OpenCL and Vulkan. The CPU backend has operations of the same names.

Activations are matrices of rows with `stride` numbers each, a multiple of four: a pixel a row, its channels in it.
"""

from __future__ import annotations

from kernels.source.kernel import Buffer, Kernel, changed, result

from .bodies import body

_COUNTER = Buffer("counter", 1, "i32")
_SHUFFLED = ("batch", "batches", "samples", "seed", "half_bits")
"""Integers of the part `drawn`."""
_WINDOW = ("h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "pad_t", "pad_l")
_POOL = ("count", "stride", *_WINDOW)
_STEP = (Buffer("gradient"), Buffer("rates", 1), _COUNTER, changed("weight"))


def _kernel(name: str, buffers: tuple[Buffer, ...], ints: tuple[str, ...], floats: tuple[str, ...] = ()) -> Kernel:
    return Kernel(name, body(name.removesuffix("_bytes")), buffers, ints, floats)


_ALL = (
    _kernel(
        "gather",
        (Buffer("data", 1, "f32"), _COUNTER, result("dst", 1)),
        (*_SHUFFLED, "columns", "hw", "stride"),
        ("scale",),
    ),
    _kernel(
        "gather_bytes",
        (Buffer("data", 1, "i32"), _COUNTER, result("dst", 1)),
        (*_SHUFFLED, "columns", "hw", "stride"),
        ("scale",),
    ),
    _kernel("activate", (Buffer("src"), result("dst")), ("count", "activation"), ("lo", "hi")),
    _kernel("activation_gradient", (Buffer("value", 1), Buffer("src", 1), result("dst", 1)), ("count", "activation")),
    _kernel(
        "cross_entropy",
        (Buffer("src", 1), Buffer("labels", 1, "i32"), _COUNTER, result("dst", 1), result("losses", 1)),
        (*_SHUFFLED, "columns", "stride"),
        ("share",),
    ),
    _kernel(
        "squared_error",
        (Buffer("src", 1), Buffer("target", 1), result("dst", 1), result("losses", 1)),
        ("batch", "columns", "stride"),
        ("share",),
    ),
    _kernel("column_sums", (Buffer("src"), result("dst")), ("rows", "columns4", "each")),
    _kernel("turn", (Buffer("src"), result("dst")), ("columns4", "rows4", "each")),
    _kernel("accumulate", (Buffer("src"), changed("dst")), ("count",)),
    _kernel("gradient_step", _STEP, ("count", "batches", "epochs")),
    _kernel("momentum_step", (*_STEP, changed("velocity")), ("count", "batches", "epochs"), ("momentum",)),
    _kernel(
        "count_batch",
        (Buffer("losses", 1), changed("report", 1), changed("counter", 1, "i32")),
        ("count", "batches", "classifies"),
    ),
    _kernel(
        "unfold",
        (Buffer("src", 1), result("dst", 1)),
        ("rows", "stride", "channels", "src_stride", *_WINDOW, "dh", "dw"),
    ),
    _kernel(
        "fold",
        (Buffer("src", 1), result("dst", 1)),
        ("count", "stride", "channels", "src_stride", *_WINDOW, "dh", "dw"),
    ),
    _kernel("max_pool", (Buffer("src", 1), result("dst", 1), result("winners", 1)), _POOL),
    _kernel("max_pool_gradient", (Buffer("src", 1), Buffer("winners", 1), result("dst", 1)), _POOL),
    _kernel("average_pool", (Buffer("src", 1), result("dst", 1)), _POOL),
    _kernel("average_pool_gradient", (Buffer("src", 1), result("dst", 1)), _POOL),
)
KERNELS = {kernel.name: kernel for kernel in _ALL}
