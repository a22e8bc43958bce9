"""Attention over a cache of keys and values: `append` puts new rows into it, `attend` looks at those that are valid.

`append`: inputs past (B, H, C, D), new, ends (B), [cosines, sines], [scale (D)] -> past, in which `rows` new rows of
each head stand at the places up to `ends`. `attend`: inputs q, keys (B, H, C, D), values (B, H, C, E), ends, [cosines,
sines], [scale] -> (B, rows, heads * E): softmax(q k) v of `heads` heads that share H of the cache, of which a row sees
the places up to its own; the last row's is `ends`. Nothing behind them is read.

Attributes: `rows`; `place`: where the elements of a row of `new` or `q` are (first, of a batch, of a head, of a row);
those of a row lie side by side. `turned`: so many numbers of a row are turned by its place, in pairs half of them apart
(RoFormer, Su et al. 2021), by cosines and sines (places, turned / 2), or where not `by_place` of each batch and row.
`normed`: rows are divided by the root of their mean square plus `epsilon` before, and multiplied by the scale. More of
`attend`: `heads`; `scale` of scores; `window` (0: none), how many places a row sees; `softcap` (0: none): scores
become softcap * tanh(score / softcap).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from kernels.errors import ModelError

Shape = tuple[int, ...]
CACHED = ("append", "attend")


def cached_shape(op: str, shapes: Sequence[Shape], a: Mapping[str, Any]) -> Shape:
    """Return the result's shape. Raises ModelError for operands that do not fit."""
    batch, shared, _, depth = shapes[1 if op == "attend" else 0]
    columns = shapes[2][3] if op == "attend" else depth
    heads = a.get("heads", shared)
    first, *steps = a["place"]
    ends = [(count - 1) * step for count, step in zip((batch, heads, a["rows"]), steps, strict=True)]
    if min(a["place"]) < 0 or first + sum(ends) + depth > prod(shapes[0 if op == "attend" else 1]):
        raise ModelError(f"rows at {a['place']} are outside of their tensor")
    ends_at = 3 if op == "attend" else 2
    if shapes[ends_at] != (batch,) or heads % shared or not 0 < a["rows"] <= shapes[1 if op == "attend" else 0][2]:
        raise ModelError(f"shapes {shapes} do not fit {a['rows']} rows of {heads} heads on {shared}")
    if a["turned"] % 8 or a["turned"] > depth or any(n % 4 for n in (depth, columns, *a["place"])):
        raise ModelError(f"rows of {depth}, {a['turned']} turned, at {a['place']}: all are whole vectors of four")
    angles = shapes[ends_at + 1] if a["turned"] else ()
    wanted = 2 if a["by_place"] else 3
    if a["turned"] and (len(angles) != wanted or angles[-1] != a["turned"] // 2 or angles != shapes[ends_at + 2]):
        raise ModelError(f"angles of shape {angles} do not fit {a['turned']} numbers of a row that are turned")
    return (batch, a["rows"], heads * columns) if op == "attend" else shapes[0]
