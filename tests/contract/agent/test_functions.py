"""The CPU's functions of each element, against double precision over all floats, in every set of inner loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from kernels.ir.activations import ACTIVATIONS, activated
from kernels.ir.expressions import FUNCTIONS, MAX_OPERANDS
from kernels.lower.cpu.functions import CODES, with_whole_functions
from kernels.reference.expressions import MEANINGS, compute

from .calls import Calls
from .driver import Agent
from .plans import Array

COUNT = 1 << 17
ULPS = 3
"""Units in the last place that a result may be off."""
Wide = npt.NDArray[np.float64]


def _sigmoid(x: Wide) -> Wide:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


MEANT: dict[str, Callable[[Wide], Wide]] = {**MEANINGS, "expm1": np.expm1, "sigmoid": _sigmoid}
UNARY = [name for name in CODES if name in MEANT and (name not in FUNCTIONS or FUNCTIONS[name].arity == 1)]


def _floats(rng: np.random.Generator) -> Array:
    """Numbers of every exponent and sign, denormal ones, infinities and NaN; a third are of usual size."""
    x = rng.integers(0, 1 << 32, COUNT, np.uint32).view(np.float32).copy()
    x[: COUNT // 3] = rng.standard_normal(COUNT // 3, np.float32) * np.float32(4)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 88.73, -87.4, -103.9, -104.1, 9.02, 0.9375]
    x[-len(special) :] = special
    return x


def _call(name: str, x: Array, *numbers: float) -> Calls:
    calls = Calls("map")
    word = CODES[name] << 24 | MAX_OPERANDS << 8 | MAX_OPERANDS + 1
    ints = {"operands": 1, "instructions": 1, "i0": word, "d5": x.size, "a5": 1}
    ints |= {f"d{axis}": 1 for axis in range(5)} | {f"a{axis}": 0 for axis in range(5)}
    ints |= {f"{operand}{axis}": 0 for operand in "bce" for axis in range(6)} | {f"i{k}": 0 for k in range(1, 32)}
    floats = {f"f{index}": number for index, number in enumerate(numbers)}
    calls.add({"a": x, "b": None, "c": None, "d": None}, ints, (x.size,), floats)
    return calls


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
@pytest.mark.parametrize("name", UNARY)
def test_function(agent: Agent, seed: int, name: str, isa: str) -> None:
    x = _floats(np.random.default_rng(seed))
    run = agent.run(_call(name, x).bundle(), {}, POCKETFARM_CPU_ISA=isa)
    if run.code and "this processor has" in run.error.message:
        pytest.skip(f"no {isa} here")
    assert run.code == 0, run.events[-1]
    found = run.output(0)
    with np.errstate(all="ignore"):
        wanted = MEANT[name](x.astype(np.float64))
        rounded = wanted.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    np.testing.assert_array_equal(np.signbit(found[finite]), np.signbit(rounded[finite]))
    off = np.abs(found[finite] - wanted[finite]) / np.spacing(np.abs(rounded[finite])).astype(np.float64)
    worst = int(off.argmax())
    given, got, want = (values[finite][worst] for values in (x, found, wanted))
    assert off[worst] <= ULPS, f"{name}({given!r}) is {got!r}, not {want!r}"


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name not in MEANT])
def test_activation(agent: Agent, seed: int, name: str, isa: str) -> None:
    """An activation is one function of a map, of any parameters; a NaN passes."""
    rng = np.random.default_rng([seed, ACTIVATIONS[name].code])
    numbers = sorted(rng.uniform(0.05, 0.95, len(ACTIVATIONS[name].attributes)).tolist())
    x = _floats(rng)[: int(rng.integers(1, COUNT))]
    meant = activated("a", (name, *numbers))
    whole = with_whole_functions(meant)
    assert whole == (name, "a", *numbers)
    run = agent.run(_call(name, x, *numbers).bundle(), {}, POCKETFARM_CPU_ISA=isa)
    if run.code and "this processor has" in run.error.message:
        pytest.skip(f"no {isa} here")
    assert run.code == 0, run.events[-1]
    with np.errstate(invalid="ignore"):  # NaN that signal
        wanted = compute(meant, [x.astype(np.float64)], x.shape).astype(np.float32)
    np.testing.assert_allclose(run.output(0), wanted, rtol=1e-5, atol=1e-6)
