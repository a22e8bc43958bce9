"""Verify outputs against the NumPy reference."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.frontend.input_file import Arrays
from kernels.options import HALF
from orchestrator.model.device import Precision
from orchestrator.model.record import Doubt, DoubtCode, OutputCheck

Array = npt.NDArray[Any]

TOLERANCES = {precision: 2e-2 if precision in HALF else 1e-4 for precision in Precision} | {Precision.INT8: 0.25}
"""Largest absolute difference, as a share of the reference's largest absolute value."""


ROUNDING = 10
"""The factor by which a device may be further from the reference than its own roundings. Winograd's transforms lose 3.7
times as much on PyNET, whose hundred normalisations magnify every rounding; a wrong kernel far more."""

MOST = 0.1
"""The widest tolerance, as a share of the largest value: beyond it a comparison says nothing."""


def verify(
    outputs: Arrays, reference: Arrays, precision: Precision, rounded: Callable[[], Arrays] | None = None
) -> tuple[OutputCheck, ...]:
    """One check per output that the reference knows. NaN where the reference has none is a difference without bound.

    `rounded`: makes the reference with the precision's own roundings. It is asked only where an output is beyond the
    tolerance: a network may lose more than that to rounding alone, whoever computes it. One with steps of 8 bits does
    so in halves.
    """
    checks = tuple(_check(name, outputs[name], reference[name], precision) for name in outputs if name in reference)
    if rounded is None or all(check.ok for check in checks):
        return checks
    own = rounded()
    lost = {name: _difference(own[name], wanted) for name, wanted in reference.items()}
    most = MOST / TOLERANCES[precision]
    return tuple(allowing(check, lost[check.name], most * check.tolerance) for check in checks)


def _check(name: str, found: Array, wanted: Array, precision: Precision) -> OutputCheck:
    scale = float(np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
    tolerance = TOLERANCES[precision] * (scale or 1.0)
    difference = _difference(found, wanted)
    bounded = difference if np.isfinite(difference) else sys.float_info.max  # JSON has no infinity
    psnr_db = None
    if scale and 0 < difference < np.inf:
        shares = _differences(found, wanted) / difference  # whose squares stay within range
        psnr_db = float(20 * np.log10(scale / difference) - 10 * np.log10(np.mean(shares**2)))
    return OutputCheck(
        name=name, max_abs_difference=bounded, tolerance=tolerance, ok=difference <= tolerance, psnr_db=psnr_db
    )


def _difference(found: Array, wanted: Array) -> float:
    """The largest; infinite between different sizes, NaN where one of them is."""
    return float(np.max(_differences(found, wanted), initial=0.0)) if found.size == wanted.size else float("inf")


def _differences(found: Array, wanted: Array) -> Array:
    """Return the absolute difference of each number."""
    return np.abs(found.astype(np.float64).reshape(-1) - wanted.astype(np.float64).reshape(-1))


def allowing(check: OutputCheck, lost: float, most: float) -> OutputCheck:
    """The check with a tolerance for what rounding loses; a loss that is no number, or small, changes nothing."""
    tolerance = min(ROUNDING * lost, most)
    if not np.isfinite(lost) or tolerance <= check.tolerance:
        return check
    ok = check.max_abs_difference <= tolerance
    return check.model_copy(update={"tolerance": tolerance, "ok": ok, "rounding": lost})


def rounding_doubts(checks: Iterable[OutputCheck]) -> tuple[Doubt, ...]:
    """One where a tolerance was widened: the verification says less there."""
    worst = max(checks, key=lambda check: check.rounding, default=None)
    if worst is None or worst.rounding == 0:
        return ()
    detail = f"{worst.name}: rounding alone loses {worst.rounding:.2g} in this precision; {ROUNDING}x passes"
    return (Doubt(code=DoubtCode.ROUNDING, detail=detail),)


def wrong(checks: tuple[OutputCheck, ...]) -> tuple[str, ...]:
    """Reasons for an invalid record; empty where all is well."""
    return tuple(
        f"output {check.name!r} differs from the reference {_by(check)}: {_cause(check)}"
        for check in checks
        if not check.ok
    )


def _by(check: OutputCheck) -> str:
    if check.max_abs_difference == sys.float_info.max:
        return "in size, or has numbers that are none (NaN, infinite)"
    return f"by {check.max_abs_difference:.3g}, more than {check.tolerance:.3g}"


def _cause(check: OutputCheck) -> str:
    if check.max_abs_difference > ROUNDING * check.rounding:
        return "the kernel or the driver computes wrongly"
    return (
        f"rounding alone loses {check.rounding:.3g} of this network in this precision, so that nothing can be said of "
        "the device; measure it in another precision"
    )
