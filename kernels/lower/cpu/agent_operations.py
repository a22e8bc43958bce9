"""The agent's built-in CPU operations: a contract with `device_agent/src/backends/cpu/`.

Every buffer is plain row-major (NCHW), or a part of one, of which an operation is given no more. Its numbers are fp32
where nothing else is said; the agent refuses a buffer whose `tensor.dtype` is another. Parameters are given in this
order. `activation`: 0 none, 1 relu, 2 clip to [lo, hi], 3 sigmoid, 4 leaky relu of slope lo (0 to 1),
5 hard sigmoid (lo * x + hi, clipped to [0, 1]), 6 hard swish, 7 tanh, 8 x * sigmoid(x), 9 Gelu by erf.
`dst_channels`/`dst_offset`: the destination has `dst_channels` channels per image and the result goes to channels from
`dst_offset` on (a concat without copies). An optional buffer that is absent is given as the destination itself, with
its `has_...` flag 0.

Operations named `..._nc16` work on blocks of sixteen channels instead: (n, blocks, h, w, 16), where what lies in the
lanes beyond the last channel has no meaning; biases are padded to whole blocks; `dst_offset` is a multiple of 16.
`kernels/lower/cpu/packing.py` writes their weights.
"""

from __future__ import annotations

from typing import Literal

from kernels.plan.model import Parameter

_ACCESS: dict[str, Literal["write", "readwrite"]] = {"*": "write", "+": "readwrite"}


def _parameters(buffers: str, ints: str, floats: str = "") -> tuple[Parameter, ...]:
    out = [
        Parameter(name=name.rstrip("*+"), kind="buffer", access=_ACCESS.get(name[-1], "read"))
        for name in buffers.split()
    ]
    out += [Parameter(name=n, kind="i32") for n in ints.split()]
    return (*out, *(Parameter(name=n, kind="f32") for n in floats.split()))


def _numbered(name: str, count: int) -> str:
    return " ".join(f"{name}{index}" for index in range(count))


_EXTENTS = " ".join([*(_numbered(name, 6) for name in "dabce"), _numbered("i", 32)])
_SHUFFLED = "batch batches samples seed half_bits"
_WINDOW = "h w oh ow kh kw sh sw pad_t pad_l"
_CONV = "n c h w k oh ow kh kw sh sw pad_t pad_l dh dw groups has_bias has_residual activation dst_channels dst_offset"

_PLACES = " ".join(f"{name}_start {name}_image {name}_head {name}_row" for name in ("q", "k", "v", "dst"))

_CACHED = "images heads rows capacity depth start image head row turned by_place places batches normed"
_PACKED, _DENSE = "bits block group zero fields", "has_bias activation joins normed"
_INT8_BUFFERS = "src weight scale sums bias residual affine"
_INT8_CONV = (
    "n c h w k oh ow kh kw sh sw pad_t pad_l dh dw groups source has_bias has_residual activation dst_channels "
    "dst_offset steps zero sums_rounded sums_zero scaled branch_rounded branch_zero residual_zero out_zero writes "
    "offsets"
)
_INT8_SCALES = "lo hi step sums_step branch_step residual_step out_step"

CPU_OPERATIONS: dict[str, tuple[Parameter, ...]] = {
    # weight (k, c/groups, kh, kw); bias (k); residual of the result's shape (n, k, oh, ow), added before the activation
    "conv2d": _parameters("src weight bias residual dst*", _CONV, "lo hi"),
    # the same by its definition, one output after the other on one thread
    "conv2d_sequential": _parameters("src weight bias residual dst*", _CONV, "lo hi"),
    # the same with the matrix of windows (c/groups * kh * kw, oh * ow) written out in columns, which the threads share
    # out in strides; one element where the window is 1x1 and the input is that matrix
    "conv2d_im2col": _parameters("src weight bias residual columns* dst*", _CONV, "lo hi"),
    # the first half alone: dst (n, c * kh * kw, oh, ow)
    "im2col": _parameters("src dst*", f"n c {_WINDOW} dh dw"),
    # the definition of a dense layer: src (n, c), weight (c, m), bias (m), dst (n, m)
    "dense_sequential": _parameters("src weight bias dst*", "n c m has_bias activation", "lo hi"),
    # a (rows, depth), or (depth, rows) where it is turned, b (depth, columns) or (columns, depth); dst (rows, columns)
    "product": _parameters(
        "a b bias dst*", "rows depth columns a_stride b_stride a_turned b_turned has_bias activation", "lo hi"
    ),
    # a (batch, m, k), b (batch, k, n), dst (batch, m, n); of fp32, or of i32 or i64, which wrap around
    "matmul": _parameters("a b dst*", "batch m k n"),
    # mode 0 max, 1 average over the valid elements, 2 average over the whole window (pads count)
    "pool2d": _parameters("src dst*", "n c h w oh ow kh kw sh sw pad_t pad_l mode dst_channels dst_offset pad_b pad_r"),
    # src (outer, rows, inner) into dst (outer, axis, inner) from the row `position` on, or where its last rows end
    "put_rows": _parameters("src position dst+", "outer axis inner rows"),
    # src and dst (outer, axis, inner)
    "softmax": _parameters("src dst*", "outer axis inner"),
    # softmax(scale * q k) v of each head: q (rows, depth), k (keys, depth), v (keys, columns); elements of a row
    # lie side by side, rows at start + a step for each image, head and row
    "attention": _parameters("q k v dst*", f"images heads rows keys depth columns {_PLACES}", "scale"),
    # attention over a cache, as kernels/ir/cache.py says: dst (images, heads, capacity, depth) gets rows; ends (images)
    # of i32 or i64; cosines and sines (places, turned / 2), or (batches, rows, turned / 2) where not by_place
    "append": _parameters("src ends cosines sines norm dst+", _CACHED, "epsilon"),
    # k (images, shared, capacity, depth), v (images, shared, capacity, columns), dst (images, rows, heads, columns)
    "attend": _parameters(
        "q k v ends cosines sines norm dst*", f"{_CACHED} shared columns window", "epsilon scale softcap"
    ),
    # (src - mean) / max(sqrt(mean squared distance from the mean + epsilon), least) * scale + shift of each row; scale
    # and shift (columns); 0 stands for the mean where `centred` is 0; beside (rows, columns) is added where `added`
    "row_norm": _parameters("src scale shift beside dst*", "rows columns centred added", "epsilon least"),
    # op 0 add, 1 multiply; a (outer, axis, inner); b the same shape (mode 0), (axis) (mode 1) or one element (mode 2)
    "binary": _parameters("a b dst*", "op mode outer axis inner activation", "lo hi"),
    # dst = src * scale[c] + shift[c]; src and dst (n, c / lanes, hw, lanes): lanes 1 or 16, which c is a multiple of
    "affine": _parameters("src scale shift dst*", "n c hw lanes activation", "lo hi"),
    # (src - mean) / sqrt(variance + epsilon) * scale[c] + shift[c], mean and variance over each image's own group
    "instance_norm": _parameters("src scale shift dst*", "n c hw groups activation", "epsilon lo hi"),
    # planes of h x w; mode 0 `value` around the image, 1 its mirror image (pads below the extents), 2 its edge
    "pad2d": _parameters("src dst*", "planes h w pad_t pad_l pad_b pad_r mode", "value"),
    # source coordinate of row o: (o * step_y + start_y) / divisor_y, kept inside; linear 0 takes its floor
    "resize2d": _parameters("src dst*", "planes h w oh ow step_y start_y divisor_y step_x start_x divisor_x linear"),
    # weight (k blocks, depth, 16); a group has whole blocks, or there is one; src_plain: src is row-major (n, c, h, w)
    "conv2d_nc16": _parameters(
        "src weight bias residual dst*",
        "n c h w k oh ow kh kw sh sw pad_t pad_l dh dw groups src_plain "
        "has_bias has_residual activation dst_channels dst_offset",
        "lo hi",
    ),
    # groups of `width` channels, in and out: 1, 2, 4 or 8 (dw is 1 then); weight (c blocks, kh, kw, width, 16). Or each
    # channel has `times` filters, 1, 2, 4, 8 or 16: c are the results'
    "depthwise_nc16": _parameters(
        "src weight bias residual dst*",
        "n c h w oh ow kh kw sh sw pad_t pad_l dh dw width times "
        "has_bias has_residual activation dst_channels dst_offset",
        "lo hi",
    ),
    # F(4x4, 3x3) of stride 1; weight (36, k blocks, c, 16); scratch (36, c blocks + k blocks, 16) a tile, for as many
    # tiles of 4x4 outputs as are worked on together
    "winograd_4x4_nc16": _parameters(
        "src weight bias residual scratch* dst*",
        "n c h w k oh ow pad_t pad_l has_bias has_residual activation dst_channels dst_offset",
        "lo hi",
    ),
    "pool2d_nc16": _parameters(
        "src dst*", "n c h w oh ow kh kw sh sw pad_t pad_l mode dst_channels dst_offset pad_b pad_r"
    ),
    # dst (n, c blocks, 16)
    "global_average_pool_nc16": _parameters("src dst*", "n c hw"),
    "lrn_nc16": _parameters("src dst*", "n c hw size", "alpha beta bias"),
    # src (n, c), beside and dst (n, m) row-major; weight (m blocks, c, 16); joins 1: beside is added behind the
    # activation, 2: multiplied; `normed`: rows are divided by the root of their mean square, and multiplied by norm (c)
    "dense_nc16": _parameters("src weight bias beside norm dst*", f"n c m {_DENSE}", "lo hi epsilon"),
    # the same of packed weights (m panels, blocks, bytes), as kernels/catalog/panels.py writes and tells of them
    "dense_packed": _parameters("src weight bias beside norm dst*", f"n c m {_DENSE} {_PACKED}", "lo hi epsilon"),
    # as gather_values: rows of packed weights, src (axis, inner); dst (count, inner) of fp32
    "gather_packed": _parameters("src indices dst*", f"axis inner count {_PACKED}"),
    # as conv2d_nc16 and dense in 8 bits: weight int8 (k blocks, depth / 4, 16, 4), of a lane its `scale` and
    # its weights' sum (int32), (k blocks, 16) each; `values` holds the input in uint8, by (`steps`) 0 its image's or
    # row's range, 1 a scale and the whole number of 0, 2 the range of all, as ONNX's DynamicQuantizeLinear has it.
    # Where there are `offsets`, these lie behind the sums: what all weights of an output are less than they should be.
    # `source` 0 blocks, 1 row-major, 2 blocks of uint8 of the given steps, which are read in place where there are no
    # pads; `has_residual` 1 floats, 2 uint8. Before the
    # residual is added, sums with their bias are rounded to a grid (`sums_rounded`), scaled and shifted by `affine`
    # (2, k blocks, 16) (`scaled`), and rounded to another grid (`branch_rounded`). `writes`: 1 floats to dst, 2 uint8
    # to codes, 4 what that stands for to dst; a buffer that is absent is given as one that is written
    "conv2d_int8": _parameters(f"{_INT8_BUFFERS} values* codes* dst*", _INT8_CONV, _INT8_SCALES),
    # one input channel a group; weight int8 (k blocks, kh, kw, 16); k is a multiple of c
    "depthwise_int8": _parameters(f"{_INT8_BUFFERS} codes* dst*", _INT8_CONV, _INT8_SCALES),
    "dense_int8": _parameters(
        "src weight scale sums bias values* dst*", "n c m has_bias activation steps zero offsets", "lo hi step"
    ),
    # dst of shape (d0..d5): an expression of up to four operands with strides; an instruction is function << 24 |
    # register << 16 | register << 8 | register, registers are operands, then f0..f15, then results in their order;
    # functions are those of kernels/lower/cpu/functions.py. Operands of any types are converted to fp32, and the result
    # to its buffer's type: a whole number to the nearest float; of a float the whole part (of 8 bits the last bits of
    # that in 32), or the least whole number where there is none; anything but 0 to truth
    "map": _parameters("a b c d dst*", f"operands instructions {_EXTENTS}", _numbered("f", 16)),
    # the same in whole numbers that wrap around, of 64 bits where `wide`, else of 32; a number is its lower and its
    # upper word. A quotient is cut off; by 0 it is 0, and so is the remainder. A shift by less than 0 or all bits gives
    # 0. Whole numbers of a narrower buffer keep their last bits
    "map_whole": _parameters("a b c d dst*", f"operands instructions {_EXTENTS} {_numbered('n', 32)} wide"),
    # dst of shape (d0..d7): element base + the sum of strides times indices, or times table[t + index] (i32) where
    # t >= 0; where a table says less than 0 `value`, or of whole numbers that of the words low and high. src and dst:
    # elements of any type. Rows of the result, those of d7, lie dst_step apart from dst_start on
    "take": _parameters(
        "src table dst*",
        f"base {_numbered('d', 8)} {_numbered('s', 8)} {_numbered('t', 8)} low high dst_start dst_step",
        "value",
    ),
    # src (outer, axis, inner), dst (outer, count, inner) of any type; indices (i32 or i64) below 0 count from the end,
    # and stay inside
    "gather_values": _parameters("src indices dst*", "outer axis inner count"),
    # src (outer, n, inner), dst (outer, inner) times `scale`; kind 0 sum, 1 max, 2 min, 3 product, place of the 4 first
    # largest, 5 first smallest, 6 last largest, 7 last smallest, 8 sum of squares; of fp32, or of i32 or i64,
    # which wrap around and have no scale; places are i32 or i64
    "reduce": _parameters("src dst*", "kind outer n inner", "scale"),
    # the k best of each row (n), the best first: values and places, each (rows, k); of equal ones the first comes
    # first, NaN counts as the worst; values of fp32, i32 or i64, places of i32 or i64
    "sort_rows": _parameters("src values* places*", "rows n k largest"),
    # boxes (batch, n, 5: two corners, the lower first, and the area), order (rows, length) and valid (rows) of i32 or
    # i64: a row takes boxes in its order, as long as there are `valid`, where none before overlaps by more than
    # `overlap` of what both cover; dst (rows, rounds): their places (i64), then -1; places outside are clipped
    "suppress_rows": _parameters("boxes order valid dst*", "batch n rows length rounds", "overlap"),
    # boxes (rows, 4) of the pictures (rows), as `kernels/ir/regions.py` says; numbers of pictures are clipped; dst
    # (rows, c, oh, ow) row-major, zeros from row `valid` (1) on
    "roi_align_nc16": _parameters("src boxes pictures valid dst*", "n c h w rows oh ow points half largest", "scale"),
    # between row-major (n, c, hw) and blocks
    "to_nc16": _parameters("src dst*", "n c hw"),
    "from_nc16": _parameters("src dst*", "n c hw"),
    # training, as the kernels of kernels/training/gpu_kernels.py: matrices of rows with `stride` numbers each
    "gather": _parameters("data counter dst*", f"{_SHUFFLED} columns hw stride", "scale"),
    "gather_bytes": _parameters("data counter dst*", f"{_SHUFFLED} columns hw stride", "scale"),
    "activate": _parameters("src dst*", "count activation", "lo hi"),
    "activation_gradient": _parameters("value src dst*", "count activation"),
    "cross_entropy": _parameters("src labels counter dst* losses*", f"{_SHUFFLED} columns stride", "share"),
    "squared_error": _parameters("src target dst* losses*", "batch columns stride", "share"),
    "column_sums": _parameters("src dst*", "rows columns4 each"),
    "accumulate": _parameters("src dst+", "count"),
    "gradient_step": _parameters("gradient rates counter weight+", "count batches epochs"),
    "momentum_step": _parameters("gradient rates counter weight+ velocity+", "count batches epochs", "momentum"),
    "count_batch": _parameters("losses report+ counter+", "count batches classifies"),
    "unfold": _parameters("src dst*", f"rows stride channels src_stride {_WINDOW} dh dw"),
    "fold": _parameters("src dst*", f"count stride channels src_stride {_WINDOW} dh dw"),
    "max_pool": _parameters("src dst* winners*", f"count stride {_WINDOW}"),
    "max_pool_gradient": _parameters("src winners dst*", f"count stride {_WINDOW}"),
    "average_pool": _parameters("src dst*", f"count stride {_WINDOW}"),
    "average_pool_gradient": _parameters("src dst*", f"count stride {_WINDOW}"),
}
