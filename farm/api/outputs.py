"""Hold a device's outputs against the right ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.model.errors import NoData, NotComparable
from orchestrator.model.quantity import counted

from .model_files import arguments

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


def right_outputs(model: Any, inputs: Any, expected: Any) -> Any:
    """Return `expected`, or what a function or module makes of the inputs. Raises NoData where there is neither."""
    if expected is None:
        if not hasattr(model, "state_dict"):
            raise NoData("there is nothing to compare with", remedy="give `expected`: arrays, or what computes them")
        expected = model
    if not callable(expected):
        return expected
    if not hasattr(expected, "state_dict"):
        by_name = isinstance(inputs, Mapping)
        return expected(*(inputs.values() if by_name else [inputs] if hasattr(inputs, "shape") else inputs))
    import torch

    positional, named = arguments(expected, inputs)
    was_training = expected.training
    try:
        with torch.no_grad():
            return list(_tensors(expected.eval()(*positional, **named)))
    finally:
        expected.train(was_training)


def _tensors(value: Any) -> Iterator[Any]:
    """Yield a module's tensors in the order in which an export has them: dictionaries and tuples are unpacked."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif value is not None:
        yield value


def compare_outputs(found: Mapping[str, Any], expected: Any) -> pd.DataFrame:
    """A row for each output. Raises NotComparable where names, numbers or shapes differ."""
    import pandas as pd

    if not isinstance(expected, Mapping):
        several = [expected] if hasattr(expected, "shape") else list(expected)
        if len(several) != len(found):
            raise NotComparable(
                f"{counted(len(several), 'output was', 'outputs were')} expected, and the device gave {len(found)}"
            )
        expected = dict(zip(found, several, strict=True))
    rows = []
    for name, right in expected.items():
        if name not in found:
            raise NotComparable(f"the device gave no output {name!r}", remedy=f"there are: {', '.join(found)}")
        rows.append({"output": name, **_differences(found[name], _array(right), name)})
    return pd.DataFrame(rows)


def _array(value: Any) -> npt.NDArray[np.float64]:
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, np.float64)


def _differences(found: Any, right: npt.NDArray[np.float64], name: str) -> dict[str, Any]:
    """PSNR in dB with the largest right value as the peak; shares of examples whose largest output is the same."""
    if found.shape != right.shape:
        raise NotComparable(f"output {name!r} is {found.shape} on the device, and {right.shape} was expected")
    error = np.asarray(found, np.float64) - right
    peak, mean_square = float(np.abs(right).max(initial=0.0)), float(np.mean(error**2))
    classes = [np.asarray(each).reshape(len(each), -1).argmax(1) for each in (found, right) if right.ndim > 1]
    return {
        "shape": right.shape,
        "largest_error": float(np.abs(error).max(initial=0.0)),
        "psnr_db": _psnr_db(peak, mean_square),
        "same_prediction": float(np.mean(classes[0] == classes[1])) if classes else None,
    }


def _psnr_db(peak: float, mean_square: float) -> float:
    """Infinite where nothing differs, minus infinity where every right value is 0."""
    if mean_square == 0:
        return float("inf")
    return 20 * float(np.log10(peak)) - 10 * float(np.log10(mean_square)) if peak > 0 else float("-inf")
