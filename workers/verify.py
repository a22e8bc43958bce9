"""Outputs against the NumPy reference: what is not right is not a measurement."""

from __future__ import annotations

import sys

import numpy as np

from orchestrator.model.device import Precision
from orchestrator.model.record import OutputCheck

from .plans import Arrays

TOLERANCES = {Precision.FP32: 1e-4, Precision.RELAXED: 1e-4, Precision.FP16: 2e-2, Precision.FP16_ARITHMETIC: 2e-2}
"""Largest absolute difference, as a share of the reference's largest absolute value."""


def verify(outputs: Arrays, reference: Arrays, precision: Precision) -> tuple[OutputCheck, ...]:
    """One check per output that the reference knows. NaN where the reference has none is a difference without bound."""
    return tuple(_check(name, outputs[name], reference[name], precision) for name in outputs if name in reference)


def _check(name: str, found: np.ndarray, wanted: np.ndarray, precision: Precision) -> OutputCheck:
    found, wanted = found.astype(np.float64).reshape(-1), wanted.astype(np.float64).reshape(-1)
    scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
    tolerance = TOLERANCES[precision] * (scale or 1.0)
    difference = float(np.max(np.abs(found - wanted), initial=0.0)) if found.shape == wanted.shape else float("inf")
    bounded = difference if np.isfinite(difference) else sys.float_info.max  # JSON has no infinity
    return OutputCheck(name=name, max_abs_difference=bounded, tolerance=tolerance, ok=difference <= tolerance)


def wrong(checks: tuple[OutputCheck, ...]) -> tuple[str, ...]:
    """Reasons for an invalid record; empty where all is well."""
    return tuple(
        f"output {check.name!r} differs from the reference by {check.max_abs_difference:.3g}, "
        f"more than {check.tolerance:.3g}: the kernel or the driver computes wrongly"
        for check in checks
        if not check.ok
    )
