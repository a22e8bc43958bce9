"""Operations on whole numbers equal NumPy's, of every width, drawn at random and at the ends of their ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
import pytest

from kernels.ir.expressions import BITS, FUNCTIONS
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.lower.cpu.functions import WHOLE_CODES
from kernels.plan.model import Dtype
from kernels.plan.port_values import NUMPY

from .calls import Calls, moved
from .driver import Agent

Whole = np.ndarray[Any, np.dtype[Any]]
CASES = 40
TYPES: tuple[Dtype, ...] = ("f32", "i32", "i64", "u8", "i8", "bool")
NUMBERS: tuple[Dtype, ...] = ("f32", "i32", "i64")


@pytest.fixture
def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def some(draw: np.random.Generator, kind: Dtype, *shape: int) -> Whole:
    """Numbers of a type: small ones, those at the ends of its range, and any."""
    dtype = np.dtype(NUMPY[kind])
    if kind == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    if kind == "f32":
        floats = np.asarray(draw.normal(0, 10.0 ** draw.integers(-1, 20), shape), np.float32)
        rare = np.float32(draw.choice([np.nan, np.inf, -np.inf, -0.0, 2**31]))
        return np.asarray(np.where(draw.random(shape) < 0.1, rare, floats))
    limits = np.iinfo(dtype)
    ends = draw.choice(np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1], dtype), shape)
    small = draw.integers(-5 if limits.min else 0, 6, shape)
    chosen = draw.integers(0, 3, shape)
    return np.asarray(np.choose(chosen, [small, ends, draw.integers(limits.min, limits.max, shape, dtype)]), dtype)


def same(results: Sequence[Whole], expected: Sequence[Whole]) -> None:
    for number, (result, want) in enumerate(zip(results, expected, strict=True)):
        assert result.dtype == want.dtype
        np.testing.assert_array_equal(result, want, err_msg=f"call {number}")


def converted(array: Whole, kind: Dtype) -> Whole:
    """Convert as the contract says."""
    if array.dtype.kind == "f" and kind in ("i32", "i64", "i8", "u8"):
        wide = np.dtype("<i8" if kind == "i64" else "<i4")
        end = 2.0 ** (8 * wide.itemsize - 1)
        inside = (array >= -end) & (array < end)
        return np.where(inside, np.where(inside, array, 0).astype(wide), np.iinfo(wide).min).astype(NUMPY[kind])
    return array != 0 if kind == "bool" else array.astype(NUMPY[kind])


def strides(shape: Sequence[int], full: Sequence[int]) -> list[int]:
    """Strides of an operand that broadcasts."""
    own = [1] * (len(full) - len(shape)) + list(shape)
    return [0 if size == 1 else prod(own[axis + 1 :]) for axis, size in enumerate(own)]


def mapped(calls: Calls, code: int, operands: Sequence[Whole], shape: Sequence[int], dtype: Dtype, **more: int) -> None:
    """Add a map of one function."""
    ints = {"operands": len(operands), "instructions": 1, "i0": code << 24 | 0 << 16 | 1 << 8 | 2}
    for name, array in zip(("d", "a", "b", "c", "e"), (None, *operands), strict=False):
        values = list(shape) if array is None else strides(array.shape, shape)
        fill = 1 if array is None else 0
        ints |= {f"{name}{6 - len(shape) + axis}": value for axis, value in enumerate(values)}
        ints |= {f"{name}{axis}": fill for axis in range(6 - len(shape))}
    given: dict[str, Whole | None] = {**dict.fromkeys("abcd"), **dict(zip("abcd", operands, strict=False))}
    unused = {p.name: 0 for p in CPU_OPERATIONS[calls.operation] if p.kind == "i32" and p.name not in ints}
    calls.add(given, {**unused, **ints, **more}, tuple(shape), dtype=dtype)


def _quotient(a: Whole, b: Whole) -> Whole:
    with np.errstate(all="ignore"):
        size = np.where(b == 0, 0, np.abs(a.astype(object)) // np.where(b == 0, 1, np.abs(b.astype(object))))
        signed = np.where((a < 0) != (b < 0), -size, size)
    return _last_bits(signed, a.dtype)


def _last_bits(numbers: Whole, dtype: np.dtype[Any]) -> Whole:
    """Whole numbers of any size as a type holds their last bits."""
    bits = 8 * dtype.itemsize
    return np.array([(int(n) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for n in numbers.ravel()], dtype).reshape(
        numbers.shape
    )


def _exact(function: Callable[..., Any]) -> Callable[..., Whole]:
    """Compute with Python's numbers, then keep the last bits."""

    def compute(*arrays: Whole) -> Whole:
        full = np.broadcast_arrays(*arrays)
        found = [function(*map(int, each)) for each in zip(*(array.ravel() for array in full), strict=True)]
        return _last_bits(np.array(found, object).reshape(full[0].shape), arrays[0].dtype)

    return compute


def _shift(x: int, by: int, bits: int, left: bool) -> int:
    if not 0 <= by < bits:
        return 0
    return x << by if left else (x % 2**bits) >> by


def _remainder(a: int, b: int) -> int:
    size = abs(a) % abs(b) if b else 0
    return -size if a < 0 else size


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    return pow(base, exponent, 2**64)


def _through(kind: str, a: Whole) -> Whole:
    return a.astype(kind).astype(a.dtype)


def meanings(bits: int) -> dict[str, Callable[..., Whole]]:
    return {
        "add": _exact(lambda a, b: a + b),
        "sub": _exact(lambda a, b: a - b),
        "mul": _exact(lambda a, b: a * b),
        "div": _quotient,
        "min": np.minimum,
        "max": np.maximum,
        "pow": _exact(_power),
        "less": _exact(lambda a, b: a < b),
        "equal": _exact(lambda a, b: a == b),
        "select": lambda a, b, c: np.asarray(np.where(a != 0, b, c)),
        "neg": _exact(lambda a: -a),
        "abs": _exact(abs),
        "remainder": _exact(_remainder),
        "shift_left": _exact(lambda a, b: _shift(a, b, bits, True)),
        "shift_right": _exact(lambda a, b: _shift(a, b, bits, False)),
        "bit_and": np.bitwise_and,
        "bit_or": np.bitwise_or,
        "bit_xor": np.bitwise_xor,
        "bit_not": np.bitwise_not,
        **{name: partial(_through, name) for name in ("int8", "uint8", "int16", "uint16", "uint32")},
    }


CODES = {name: FUNCTIONS[name].code for name in FUNCTIONS} | WHOLE_CODES
BINARY = (*(name for name, one in {**FUNCTIONS, **BITS}.items() if one.arity == 2), "remainder")


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_every_function(agent: Agent, draw: np.random.Generator, kind: Dtype) -> None:
    """Operands broadcast; each function sees the ends of the range beside -1, 0 and 1."""
    calls, expected = Calls("map_whole"), []
    for name, meaning in meanings(32 if kind == "i32" else 64).items():
        for _ in range(3):
            shape = tuple(draw.integers(1, 9, 3).tolist())
            count = 3 if name == "select" else 2 if name in BINARY else 1
            operands = [some(draw, kind, *(size if draw.random() < 0.8 else 1 for size in shape)) for _ in range(count)]
            if name.startswith("shift") and draw.random() < 0.7:
                operands[1] = np.asarray(draw.integers(-2, 66, operands[1].shape), operands[1].dtype)
            mapped(calls, CODES[name], operands, shape, kind, wide=int(kind == "i64"))
            expected.append(np.broadcast_to(meaning(*operands), shape).astype(NUMPY[kind]))
    same(calls.run(agent, "--threads", 2), expected)


@pytest.mark.parametrize("operation", ["map", "map_whole"])
def test_operands_and_results_of_any_types_are_converted(
    agent: Agent, draw: np.random.Generator, operation: str
) -> None:
    calls, expected = Calls(operation), []
    for given in TYPES:
        for wanted in TYPES:
            x = some(draw, given, int(draw.integers(1, 600)))
            wide = int(draw.integers(0, 2))
            register: Dtype = "f32" if operation == "map" else "i64" if wide else "i32"
            more = {} if operation == "map" else {"wide": wide}
            mapped(calls, CODES["max"], [x, x], x.shape, wanted, **more)
            expected.append(converted(converted(x, register), wanted))
    same(calls.run(agent), expected)


def test_elements_of_any_type_move(agent: Agent, draw: np.random.Generator) -> None:
    for operation in ("take", "gather_values", "turned"):
        calls, expected = Calls("take" if operation == "turned" else operation), []
        for _ in range(CASES):
            kind = TYPES[draw.integers(0, len(TYPES))]
            outer, axis, inner, count = draw.integers(1, 7, 4).tolist()
            x = some(draw, kind, outer, axis, inner)
            if operation == "take":
                places = draw.integers(-1, axis, count).astype(np.int32)
                value = 0 if kind == "bool" else int(some(draw, "i64")) if kind == "i64" else 7
                low, high = np.array([value], "<i8").view("<i4").tolist()
                ints = {f"{name}{i}": fill for name, fill in (("d", 1), ("s", 0), ("t", -1)) for i in range(8)}
                ints |= {"base": 0, "d5": outer, "s5": axis * inner, "d6": count, "s6": inner, "t6": 0, "d7": inner}
                ints |= {"s7": 1, "low": low, "high": high, "dst_start": 0, "dst_step": inner}
                calls.add({"src": x, "table": places}, ints, (outer, count, inner), {"value": value}, kind)
                expected.append(np.where((places < 0)[None, :, None], np.array(value, x.dtype), x[:, places]))
            elif operation == "gather_values":
                places = some(draw, cast(Dtype, draw.choice(["i32", "i64"])), count)
                sizes = {"outer": outer, "axis": axis, "inner": inner, "count": count}
                calls.add({"src": x, "indices": places}, sizes, (outer, count, inner), dtype=kind)
                inside = [max(0, min(axis - 1, int(p) + axis if p < 0 else int(p))) for p in places]
                expected.append(x[:, inside])
            else:
                calls.add({"src": x}, moved((2, 1, 0), x.shape), (inner, axis, outer), dtype=kind)
                expected.append(x.T)
        same(calls.run(agent, "--threads", 2), expected)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_reduce(agent: Agent, draw: np.random.Generator, kind: Dtype) -> None:
    calls, expected = Calls("reduce"), []
    for _ in range(CASES):
        outer, n, inner = int(draw.integers(1, 5)), int(draw.integers(1, 300)), int(draw.choice([1, 1, 3, 40]))
        x, code = some(draw, kind, outer, n, inner), int(draw.integers(0, 9))
        dtype = kind if code not in (4, 5, 6, 7) else cast(Dtype, draw.choice(["i32", "i64"]))
        ints = {"kind": code, "outer": outer, "n": n, "inner": inner}
        calls.add({"src": x}, ints, (outer, inner), {"scale": 1.0}, dtype)
        last = n - 1 - np.argmax(x[:, ::-1], 1), n - 1 - np.argmin(x[:, ::-1], 1)
        with np.errstate(over="ignore"):
            found = [
                x.sum(1, dtype=x.dtype), x.max(1), x.min(1), x.prod(1, dtype=x.dtype), np.argmax(x, 1), np.argmin(x, 1),
                *last, (x * x).sum(1, dtype=x.dtype),
            ][code]  # fmt: skip
        expected.append(found.astype(NUMPY[dtype]))
    same(calls.run(agent, "--threads", 2), expected)


@pytest.mark.parametrize("kind", NUMBERS)
def test_sort(agent: Agent, draw: np.random.Generator, kind: Dtype) -> None:
    """The places, by which the values were chosen."""
    calls, expected = Calls("sort_rows"), []
    for _ in range(CASES):
        rows, n = draw.integers(1, 40, 2).tolist()
        k, largest = int(draw.integers(1, n + 1)), bool(draw.integers(0, 2))
        x = some(draw, kind, rows, n)
        keys = [[_rank(value, largest) for value in row] for row in x]
        order = [sorted(range(n), key=row.__getitem__)[:k] for row in keys]
        ints = {"rows": rows, "n": n, "k": k, "largest": int(largest)}
        calls.add({"src": x, "values": np.zeros((rows, k), x.dtype)}, ints, (rows, k), dtype="i64")
        expected.append(np.array(order, np.int64))
    same(calls.run(agent), expected)


def _rank(value: Any, largest: bool) -> tuple[bool, Any]:
    number = value.item()
    return (True, 0) if number != number else (False, -number if largest else number)


@pytest.mark.parametrize("operation", ["softmax", "reduce", "gather_values", "take", "sort_rows"])
def test_a_buffer_of_another_type_is_refused(agent: Agent, operation: str) -> None:
    """The message says which operation, which buffer and what it holds."""
    calls = Calls(operation)
    given: dict[str, dict[str, Whole | None]] = {
        "softmax": {"src": np.zeros(4, np.int32)},
        "reduce": {"src": np.zeros(4, np.uint8)},
        "gather_values": {"src": np.zeros(4, np.float32), "indices": np.zeros(4, np.float32)},
        "take": {"src": np.zeros(4, np.float32), "table": np.zeros(4, np.float32)},
        "sort_rows": {"src": np.zeros(4, np.float32), "values": np.zeros(4, np.int32)},
    }
    ints = {p.name: int(p.name != "dst_start") for p in CPU_OPERATIONS[operation] if p.kind == "i32"}
    calls.add(given[operation], ints, (4,), {"scale": 1.0})
    error = agent.run(calls.bundle(), {}).error
    assert error.code == "plan_invalid"
    assert operation in error.message
    assert "holds" in error.message
