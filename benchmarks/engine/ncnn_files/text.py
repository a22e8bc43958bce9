"""Layers -> lines of a .param file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from .writer import Layer


def with_splits(layers: list[Layer]) -> tuple[list[Layer], set[str]]:
    """ncnn lets a blob be read once: what several layers read passes through a Split."""
    readers: dict[str, int] = defaultdict(int)
    for _, _, inputs, _, _ in layers:
        for blob in inputs:
            readers[blob] += 1
    found: list[Layer] = []
    taken: dict[str, int] = defaultdict(int)
    for kind, name, inputs, outputs, parameters in layers:
        renamed = []
        for blob in inputs:
            renamed.append(f"{blob}/{taken[blob]}" if readers[blob] > 1 else blob)
            taken[blob] += 1
        found.append((kind, name, renamed, outputs, parameters))
        for blob in outputs:
            if readers[blob] > 1:
                parts = [f"{blob}/{i}" for i in range(readers[blob])]
                found.append(("Split", f"split/{blob}", [blob], parts, {}))
    return found, {blob for blob, count in readers.items() if count > 1}


def numbered(layers: list[Layer]) -> dict[str, str]:
    """Blob -> a short name without blanks."""
    blobs = [blob for _, _, _, outputs, _ in layers for blob in outputs]
    return {blob: f"b{index}" for index, blob in enumerate(blobs)}


def line(layer: Layer, names: Mapping[str, str]) -> str:
    kind, name, inputs, outputs, parameters = layer
    words = [kind, name.replace(" ", "_"), str(len(inputs)), str(len(outputs))]
    words += [names[blob] for blob in (*inputs, *outputs)]
    for key, value in parameters.items():
        if isinstance(value, list):
            words.append(f"{-23300 - key}={len(value)}," + ",".join(map(_number, value)))
        else:
            words.append(f"{key}={_number(value)}")
    return " ".join(words)


def _number(value: float | int) -> str:
    return str(int(value)) if isinstance(value, int | np.integer) else f"{float(value):e}"
