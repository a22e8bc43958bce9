"""Figures that are computed without SciPy are those that SciPy computes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import scipy  # its parts are imported when they are asked for
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.analysis.incomplete_beta import LARGEST, f_tail, incomplete_beta
from orchestrator.analysis.student_t import t_quantile

SIZES = st.floats(0.3, LARGEST)
FREEDOM = st.integers(1, 1000)


@given(SIZES, SIZES, st.floats(0, 1))
def test_incomplete_beta(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(scipy.special.betainc(a, b, x), rel=1e-9, abs=1e-10)


@example(1, 8, 1e-14)
@given(FREEDOM, FREEDOM, st.floats(0, 100))
def test_tail_of_f(freedom: int, of_divisor: int, value: float) -> None:
    assert f_tail(freedom, of_divisor, value) == pytest.approx(
        scipy.special.fdtrc(freedom, of_divisor, value), rel=1e-9, abs=1e-12
    )


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0.5, 1e6))
def test_quantile_of_t(probability: float, freedom: float) -> None:
    """Degrees of freedom that are left to SciPy are among these."""
    assert t_quantile(probability, freedom) == pytest.approx(
        scipy.special.stdtrit(freedom, probability), rel=1e-9, abs=1e-9
    )


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="incomplete beta"):
        incomplete_beta(2 * LARGEST, 1, 0.5)


def test_a_quantile_needs_no_scipy() -> None:
    """Its import takes a fifth of a short command's time."""
    code = "import sys; from orchestrator.analysis.student_t import half_width; half_width(1.0, 4.0)"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'scipy' not in sys.modules"], check=True)
