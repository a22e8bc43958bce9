"""Arrays as a plan's ports take and give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError

from .model import Dtype, Port

NUMPY: dict[Dtype, str] = {
    "f32": "<f4", "f16": "<f2", "i32": "<i4", "i64": "<i8", "u8": "|u1", "i8": "|i1", "bool": "|b1",
}  # fmt: skip
LARGEST = {"f32": 1 << 24, "f16": 1 << 11}
"""The largest number up to which a type of floating point holds every whole number."""


def as_port(port: Port, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the numbers of an input in its port's type. Raises InputError for a whole number that it does not hold."""
    dtype = np.dtype(NUMPY[port.dtype])
    if array.dtype.kind in "iu" and array.size:
        most = LARGEST.get(port.dtype) or np.iinfo(dtype).max
        least = -most if port.dtype in LARGEST else np.iinfo(dtype).min
        if (odd := array[(array > most) | (array < least)]).size:
            raise InputError(
                f"input {port.name!r} holds {odd[0]}; this plan computes its whole numbers in {port.dtype}, exact from "
                f"{least} to {most}"
            )
    return np.asarray(array, dtype, order="C")
