"""Operators that read tensors of which some axes are padded (`rows.py`).

Most compute each row by itself, and what they make of the padding is padding. Those that look along a padded axis find
there what leaves their result as it is.
"""

from __future__ import annotations

from kernels.frontend.onnx.extent import Count

from .rows import Counts, Rows


def elementwise(r: Rows) -> None:
    every = [r.extents(index) for index in range(len(r.node.inputs)) if r.has(index)]
    rank = max(map(len, every))
    found: Counts = {}
    for axis in range(rank):
        wide = [e[axis - rank] for e in every if len(e) >= rank - axis and e[axis - rank] != 1]
        if any(isinstance(each, Count) for each in wide):
            if any(each != wide[0] for each in wide):
                r.differ(f" along axis {axis}")
            found[axis] = wide[0]  # type: ignore[assignment]
    r.import_from()
    r.tell(found)


def passed(r: Rows) -> None:
    """Each row by itself: the first input's first axis, or channels and pictures that nothing looks along."""
    r.only(0, (0,), "is looked along")
    for index in range(1, len(r.node.inputs)):
        r.only(index, (), "is looked along")
    r.import_from()
    r.tell(*[r.counts(0)] * len(r.node.outputs))
