"""Every kernel that the lowering may call, by name.

Conventions of the bodies
- Activations are stacks of four channels (nc4hw4): element ((n * stacks + stack) * h * w + pixel), four lanes.
- A tensor may be a range of another's stacks (a concat without copies): `x_stacks` is the number of stacks of one image
  of the whole buffer, `x_stack0` where the tensor starts.
- Work-groups are (X, 1, 1): what depends on dimensions 1 and 2 is uniform in a work-group, so weights are read once.
- A window reads row or column i of n where `INSIDE(i, n)`, else zero. `PLACE(i, n)` is where the value is;
  `CLAMPED(i, n)` as well, and may be read where i is not inside. With `REFLECT` the image is mirrored at its edges.
- `activation`: 0 none, 1 relu, 2 clip to [lo, hi], 3 sigmoid, 4 leaky relu of slope lo, as on the CPU.
- `LOAD_x_AT(i, x, y)` and `STORE_x_AT` also say where the element would be in an image (`kernels/source/macros.py`):
  hot kernels use them, so that no division is needed; every other kernel works on images through `LOAD_x(i)`.
- Lanes beyond the last channel hold finite numbers that are never read as data.
"""

from __future__ import annotations

from .kernel import Kernel, kernel

_WINDOW = "h w oh ow kh kw sh sw pad_t pad_l"
_TILES = "tile_src:LOCAL_SRC:computed tile_weight:LOCAL_WEIGHT:computed"
_PRODUCT = "depth columns4 a_start a_stride a_batch b_stride b_batch dst_start dst_stride dst_batch has_bias activation"
_BINARY = "a_stacks a_stack0 b_stacks b_stack0 dst_stacks dst_stack0 stacks hw multiply"
_SRC_DST = "src_stacks src_stack0 dst_stacks dst_stack0"

_ALL = (
    kernel(
        "conv_direct", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 in_stacks out_stacks group_stacks {_WINDOW} dh dw "
        "has_residual activation",
        "lo hi", "PIXELS VECTORS LANES", in_half=True,
    ),
    kernel(
        "conv_window", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 in_stacks out_stacks group_stacks h w oh ow kh sh pad_t pad_l dh "
        "has_residual activation",
        "lo hi", "PIXELS VECTORS LANES KW", in_half=True,
    ),
    kernel(
        "conv_pointwise", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 in_stacks out_stacks hw weight_batch has_residual activation",
        "lo hi", "PIXELS VECTORS LANES", in_half=True,
    ),
    kernel(
        "conv_depthwise_rows", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 h w oh ow kh sh pad_t pad_l dh has_residual activation",
        "lo hi", "PIXELS KW SW", in_half=True,
    ),
    kernel(
        "conv_depthwise", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 {_WINDOW} dh dw has_residual activation",
        "lo hi", "PIXELS", in_half=True,
    ),
    kernel(
        "conv_tiled", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 in_stacks out_stacks stages groups {_WINDOW} dh dw "
        "has_residual activation",
        "lo hi", "TX TY TP TV DEPTH SPLIT AHEAD", locals_=_TILES, in_half=True,
    ),
    kernel(
        "product_tiled", "src:4 weight:4 bias:4 residual:4 dst:4*",
        f"{_SRC_DST} residual_stacks residual_stack0 in_stacks out_stacks stages pixels weight_batch has_residual "
        "activation",
        "lo hi", "TX TY TP TV DEPTH SPLIT AHEAD", locals_=_TILES, in_half=True,
    ),
    kernel("im2col", "src:4 dst:4*", f"src_stacks src_stack0 in_stacks {_WINDOW} dh dw", in_half=True),
    *(
        kernel(
            f"winograd_input{suffix}", f"src:{lanes} dst:{lanes}*",
            "src_stacks src_stack0 first_stack in_stacks h w pad_t pad_l tiles_x tiles_y tile_row0 pictures",
            tunables="TILE ALPHA WIDE", body="winograd_input",
        )
        for suffix, lanes in (("", 1), ("_wide", 4))
    ),
    *(
        kernel(
            f"winograd_output{suffix}", f"src:{lanes} bias:{lanes} residual:{lanes} dst:{lanes}*",
            "dst_stacks dst_stack0 residual_stacks residual_stack0 out_stacks oh ow tiles_x tiles_y tile_row0 pictures "
            "has_residual activation",
            "lo hi", "TILE ALPHA WIDE", body="winograd_output",
        )
        for suffix, lanes in (("", 1), ("_wide", 4))
    ),
    # a (rows, depth4) and b (depth, columns4) -> dst (rows, columns4), in vectors of four columns
    kernel("matmul_naive", "a:1 b:1 bias:1 dst:1*", f"rows {_PRODUCT}", "lo hi"),
    kernel(
        "matmul_blocked", "a:1 b:1 bias:1 dst:1*", f"rows {_PRODUCT}", "lo hi", "BX BY BK",
        locals_="tile_a:BLOCK_A:1 tile_b:BLOCK_B:1",
    ),
    kernel(
        "matmul_registers", "a:4 b:4 bias:4 dst:4*", f"rows {_PRODUCT}", "lo hi", "ROWS COLUMNS LANES TAIL",
        in_half=True,
    ),
    kernel(  # b: panels of PANEL vectors (depth4, PANEL)
        "matmul_panels", "a:4 b:4 bias:4 dst:4*",
        "rows depth columns4 a_start a_stride dst_start dst_stride has_bias activation", "lo hi",
        "ROWS COLUMNS LANES PANEL TAIL", in_half=True,
    ),
    kernel(
        "matmul_tiled", "a:4 b:4 bias:4 dst:4*", f"rows {_PRODUCT}", "lo hi", "GX GY RV CV DEPTH AHEAD WHOLE",
        locals_="tile_a:LOCAL_A:computed tile_b:LOCAL_B:computed", in_half=True,
    ),
    kernel(
        "matvec", "a:4 b:4 bias:4 dst:4*", _PRODUCT, "lo hi", "CX KY TURNS", locals_="partial:SHARED", in_half=True,
    ),
    kernel("pool", "src:4 dst:4*", f"{_SRC_DST} {_WINDOW} pad_b pad_r mode"),
    kernel("global_average_pool", "src:4 dst:4*", f"{_SRC_DST} hw stacks"),
    kernel("global_average_group", "src:4 dst:4*", f"{_SRC_DST} hw", "", "CX KY", locals_="partial:SHARED"),
    kernel("softmax_group", "src:4 dst:4*", f"{_SRC_DST} channels hw", "", "CX KY", locals_="partial:SHARED"),
    kernel("softmax_channels", "src:4 dst:4*", f"{_SRC_DST} channels hw"),
    kernel("softmax_plain", "src:1 dst:1*", "axis inner count"),
    kernel("lrn", "src:4 dst:4*", f"{_SRC_DST} channels hw size", "alpha beta bias"),
    kernel("activation", "src:4 dst:4*", f"{_SRC_DST} stacks hw activation", "lo hi"),
    # b is a tensor of the same shape (by_channel 0), or one vector a stack (by_channel 1)
    kernel("binary", "a:4 b:4 dst:4*", f"{_BINARY} by_channel activation", "lo hi", "EACH", in_half=True),
    kernel("binary_naive", "a:1 b:1 dst:1*", f"{_BINARY} activation", "lo hi"),
    kernel("affine", "src:4 scale:4 shift:4 dst:4*", f"{_SRC_DST} hw", in_half=True),
    kernel("affine_plain", "src:1 scale:1 shift:1 dst:1*", "channels inner count"),
    kernel(
        "instance_statistics", "src:4 sums:4:f32*", "src_stacks src_stack0 stacks hw span chunks", "", "CX KY",
        locals_="partial:SHARED",
    ),
    kernel("instance_factors", "sums:4:f32 scale:4 factors:4:f32*", "stacks hw span chunks", "epsilon"),
    kernel("instance_normalise", "src:4 factors:4:f32 shift:4 dst:4*", f"{_SRC_DST} stacks hw activation", "lo hi"),
    kernel("pad", "src:4 dst:4*", f"{_SRC_DST} h w oh ow pad_t pad_l mode", "value"),
    kernel(
        "resize", "src:4 dst:4*",
        f"{_SRC_DST} h w oh ow step_y start_y divisor_y step_x start_x divisor_x linear",
    ),
    kernel("pack", "src:1:f32 dst:4*", "channels hw dst_stacks dst_stack0"),
    kernel("pack_data", "src:1 dst:4*", "channels hw dst_stacks dst_stack0", body="pack"),
    kernel("unpack", "src:4 dst:1:f32*", "channels hw src_stacks src_stack0"),
    kernel("unpack_data", "src:4 dst:1*", "channels hw src_stacks src_stack0", body="unpack"),
    kernel("narrow", "src:1:f32 dst:1*", "count", body="convert"),
    kernel("widen", "src:1 dst:1:f32*", "count", body="convert"),
    kernel("copy_channels", "src:1 dst:1*", f"{_SRC_DST} channels written dst_channel0 hw"),
    kernel("copy_block", "src:1 dst:1*", "count dst_stride dst_offset"),
    kernel("take_block", "src:1 dst:1*", "count src_stride src_offset"),
    kernel("transpose", "src:1 dst:1*", "count d1 d2 d3 s0 s1 s2 s3"),
    kernel(
        "transpose_tiled", "src:1 dst:1*",
        "across along inner src_across dst_along src_inner dst_inner src_outer dst_outer", "", "EDGE LINES",
        locals_="square:LOCAL_SQUARE:1",
    ),
)  # fmt: skip

KERNELS: dict[str, Kernel] = {entry.name: entry for entry in _ALL}
