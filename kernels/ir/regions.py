"""`roi_align`: boxes of pictures brought to one size (He et al., Mask R-CNN, 2017).

It reads x (n, c, h, w), boxes (rows, 4) as left, top, right, bottom, times `scale` in pixels; `pictures` (rows), the
number of each one's picture; `valid` (1): the rows behind so many are zeros. A box is cut into `size` (rows, columns)
parts, and each of these into `points` by `points`, in whose middles the picture is read, between its pixels linearly.
Where a point lies further than a pixel outside, it is zero. With `half` the middle of a pixel, else its corner, has
whole coordinates, and then a box is a pixel wide and high at least. `kind`: "mean" of the points of a part, or "max" of
the four pixels beside each times their shares.
"""

from __future__ import annotations

KINDS = ("mean", "max")
