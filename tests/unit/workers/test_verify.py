from __future__ import annotations

import numpy as np
import pytest

from kernels.reference import evaluate
from orchestrator.model.device import Precision
from orchestrator.model.record import DoubtCode
from tests.unit.kernels.back.graphs import Builder
from workers.engines.models.verify_outputs import rounding_doubts, verify, wrong

REFERENCE = {"y": np.array([[0.5, -2.0, 1.0]])}


@pytest.mark.parametrize(
    ("error", "precision", "ok"),
    [
        (0.0, Precision.FP32, True),
        (1.9e-4, Precision.FP32, True),
        (2.1e-4, Precision.FP32, False),
        (2.1e-4, Precision.RELAXED, False),
        (1.9e-4, Precision.IMPRECISE, True),
        (2.1e-4, Precision.IMPRECISE, False),
        (3.9e-2, Precision.FP16, True),
        (4.1e-2, Precision.FP16, False),
    ],
)
def test_tolerance_is_relative_to_the_largest_value(error: float, precision: Precision, ok: bool) -> None:
    (check,) = verify({"y": REFERENCE["y"] + np.array([0, 0, error])}, REFERENCE, precision)
    assert check.ok is ok
    assert check.max_abs_difference == pytest.approx(error)
    assert bool(wrong((check,))) is not ok


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_a_number_is_wrong_and_survives_json(bad: float) -> None:
    (check,) = verify({"y": np.array([0.5, bad, 1.0])}, REFERENCE, Precision.FP32)
    assert not check.ok
    assert type(check).model_validate_json(check.model_dump_json()) == check


def test_another_shape_is_wrong() -> None:
    assert not verify({"y": np.zeros(4)}, REFERENCE, Precision.FP32)[0].ok


def test_the_signal_to_noise_ratio_is_of_the_largest_value(seed: int) -> None:
    """There is none where nothing differs, or there is nothing to differ from."""
    draw = np.random.default_rng(seed)
    wanted = draw.normal(size=(3, 5)) * 10.0 ** draw.integers(-20, 150)
    found = wanted * (1 + draw.normal(size=(3, 5)) * 1e-3)
    (check,) = verify({"y": found}, {"y": wanted}, Precision.FP32)
    scale = np.abs(wanted).max()
    assert check.psnr_db == pytest.approx(-10 * np.log10(np.mean(((found - wanted) / scale) ** 2)))
    for same, right in (
        (wanted, wanted),
        (np.ones(3), np.zeros(3)),
        (np.full((3, 5), np.nan), wanted),
        (found[0], wanted),
    ):
        assert verify({"y": same}, {"y": right}, Precision.FP32)[0].psnr_db is None


def test_an_output_of_zeros() -> None:
    assert verify({"y": np.zeros(3)}, {"y": np.zeros(3)}, Precision.FP32)[0].ok


def test_what_single_precision_itself_loses_is_allowed_ten_times() -> None:
    rounded = {"y": REFERENCE["y"] + np.array([1e-4, 0, 0])}
    near, far = {"y": REFERENCE["y"] + 9e-4}, {"y": REFERENCE["y"] + 1.1e-3}
    assert not verify(near, REFERENCE, Precision.FP32)[0].ok
    (check,) = verify(near, REFERENCE, Precision.FP32, lambda: rounded)
    assert check.ok and check.tolerance == pytest.approx(1e-3)
    (doubt,) = rounding_doubts([check])
    assert doubt.code is DoubtCode.ROUNDING and "y: rounding alone loses 0.0001 in this precision" in doubt.detail
    assert rounding_doubts(verify(REFERENCE, REFERENCE, Precision.FP32)) == ()
    assert not verify(far, REFERENCE, Precision.FP32, lambda: rounded)[0].ok


def test_rounding_is_asked_only_where_it_matters() -> None:
    def never() -> dict[str, np.ndarray]:
        raise AssertionError("asked")

    assert verify(REFERENCE, REFERENCE, Precision.FP32, never)[0].ok


def test_what_halves_themselves_lose_is_allowed_ten_times() -> None:
    """Networks with steps of 8 bits lose more in halves than the tolerance: a value falls on the other side of one."""
    rounded = {"y": REFERENCE["y"] + np.array([1e-2, 0, 0])}
    near, far = {"y": REFERENCE["y"] + 0.09}, {"y": REFERENCE["y"] + 0.11}
    assert not verify(near, REFERENCE, Precision.FP16)[0].ok
    assert verify(near, REFERENCE, Precision.FP16, lambda: rounded)[0].ok
    assert not verify(far, REFERENCE, Precision.FP16, lambda: rounded)[0].ok


def test_halves_leave_places_as_they_are() -> None:
    """Tokens and sorted places are whole numbers beyond what halves hold one by one."""
    build = Builder()
    x = build.input(1, 8)
    far = build.node("map", [x], (1, 8), expression=("add", "a", 4001.0))
    near = build.node("map", [x], (1, 8), expression=("mul", "a", 0.1))
    inputs = {"x": np.arange(8.0)[None]}
    found = evaluate(build.outputs(far, near), inputs, in_halves=True)
    assert np.array_equal(found[far], inputs["x"] + 4001)
    assert np.array_equal(found[near], (inputs["x"] * 0.1).astype(np.float16))


def test_nothing_beyond_a_tenth_of_the_largest_value_passes() -> None:
    """Nor is a device blamed for what rounding may have done."""
    rounded = {"y": REFERENCE["y"] + 1}
    near, far = {"y": REFERENCE["y"] + 0.19}, {"y": REFERENCE["y"] + 0.21}
    assert verify(near, REFERENCE, Precision.FP32, lambda: rounded)[0].ok
    checks = verify(far, REFERENCE, Precision.FP32, lambda: rounded)
    assert not checks[0].ok and "nothing can be said of the device" in wrong(checks)[0]
    (far_off,) = wrong(verify({"y": REFERENCE["y"] + 11}, REFERENCE, Precision.FP32, lambda: rounded))
    assert "computes wrongly" in far_off


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_single_precision_that_overflows_allows_nothing(bad: float) -> None:
    (check,) = verify({"y": REFERENCE["y"] + 1}, REFERENCE, Precision.FP32, lambda: {"y": REFERENCE["y"] * bad})
    assert not check.ok and check.tolerance == pytest.approx(2e-4)
