"""Turn scores into predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.frontend.input_file import Arrays
from orchestrator.model.errors import SpecError
from orchestrator.model.quantity import counted
from orchestrator.model.record import Predictions

MOST = 5
"""Classes that are kept of each example."""


def predictions(outputs: Arrays, examples: range) -> Predictions:
    """The classes with the highest scores of each example; outputs of all inferences lie one behind the other.

    NaN is below minus infinity. Raises SpecError where the network has several outputs, or one score only.
    """
    if len(outputs) != 1:
        raise SpecError(
            f"the network has {counted(len(outputs), 'output')} ({', '.join(outputs)}); predictions are read from one",
            remedy="export the model with its scores as the only output",
        )
    scores = next(iter(outputs.values())).astype(np.float64).reshape(len(examples), -1)
    if scores.shape[1] < 2:
        raise SpecError("the network has one score for each example: there are no classes to choose from")
    unknown = np.isnan(scores)
    ranked = np.where(unknown, -np.inf, scores)
    top = np.lexsort((-ranked, unknown), axis=1)[:, :MOST]
    return Predictions(first=examples.start, top=tuple(map(tuple, top.tolist())), margins=_margins(ranked, top))


def _margins(scores: npt.NDArray[Any], top: npt.NDArray[Any]) -> tuple[float, ...]:
    best, second = (np.take_along_axis(scores, top[:, i : i + 1], axis=1)[:, 0] for i in (0, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        margins = best - second
    return tuple(np.where(np.isfinite(margins), margins, 0.0).tolist())
