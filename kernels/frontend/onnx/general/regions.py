"""RoiAlign: each box of a picture brought to one size, by points between pixels (`kernels/ir/regions.py`)."""

from __future__ import annotations

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode

from .padded.counts import number
from .steps import Steps


def roi_align(node: OnnxNode, to: Context) -> None:
    """x (N, C, H, W), boxes (R, 4), the number of each one's picture (R) -> (R, C, rows, columns)."""
    s = Steps(node, to)
    x, boxes, pictures = (s.operand(index) for index in range(3))
    if len(s.shape(x)) != 4 or s.shape(boxes)[1:] != (4,) or s.shape(pictures) != s.shape(boxes)[:1]:
        raise ModelError(
            f"node {node.name!r} (RoiAlign): a picture {s.shape(x)}, boxes {s.shape(boxes)} and numbers of pictures "
            f"{s.shape(pictures)} do not fit; expected (N, C, H, W), (R, 4) and (R)"
        )
    count, mode = s.shape(boxes)[0], str(s.attribute("mode", "avg"))
    size = int(s.attribute("output_height", 1)), int(s.attribute("output_width", 1))
    if (points := int(s.attribute("sampling_ratio", 0))) < 1:
        node.reject("sampling_ratio is 0: how many points it takes depends on the boxes; export it with 1 or more")
    s.check_size((count, s.shape(x)[1], *size))
    usual = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    counted = to.counts.get(boxes, {}).get(0)
    valid = s.constant(np.array([count])) if counted is None else number(s, counted)
    attributes = {
        "size": size, "points": points, "kind": "mean" if mode == "avg" else "max",
        "scale": float(s.attribute("spatial_scale", 1.0)),
        "half": s.attribute("coordinate_transformation_mode", usual) == "half_pixel",
    }  # fmt: skip
    s.end(s.emit("roi_align", [s.tensor(each) for each in (x, boxes, pictures, valid)], attributes))
