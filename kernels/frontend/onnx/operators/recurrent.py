"""RNN, LSTM and GRU, unrolled: the product with the input at once for all steps, one with the state at each step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c
from kernels.ir.compositions import BACK
from kernels.ir.expressions import Expression, with_operands

from .quantized import dynamic_steps

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_USUAL = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_FUNCTIONS: dict[str, Callable[[float | None, float | None], Expression]] = {
    "Affine": lambda alpha, beta: ("add", ("mul", alpha or 1.0, "a"), beta or 0.0),
    "Elu": lambda alpha, _: c.elu("a", 1.0 if alpha is None else alpha),
    "HardSigmoid": lambda alpha, beta: c.clip(
        ("add", ("mul", alpha or 0.2, "a"), 0.5 if beta is None else beta), 0.0, 1.0
    ),
    "LeakyRelu": lambda alpha, _: c.below("a", ("mul", 0.01 if alpha is None else alpha, "a")),
    "Relu": lambda *_: c.relu("a"),
    "Sigmoid": lambda *_: c.sigmoid("a"),
    "Softplus": lambda *_: c.softplus("a"),
    "Softsign": lambda *_: c.softsign("a"),
    "Tanh": lambda *_: ("tanh", "a"),
    "ThresholdedRelu": lambda alpha, _: ("select", ("less", 1.0 if alpha is None else alpha, "a"), "a", 0.0),
}


def recurrent(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    batch_first = bool(s.attribute("layout", 0))
    x = s.transpose(s.operand(0), (1, 0, 2)) if batch_first else s.operand(0)
    steps, batch, _ = s.shape(x)
    direction = str(s.attribute("direction", "forward"))
    lengths = _lengths(s, steps, batch)
    weights = [to.finite(node, index) for index in (1, 2)]
    size = int(s.attribute("hidden_size", weights[1].shape[-1]))
    turns = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}.get(direction)
    shapes = ((_GATES[node.op] * size, s.shape(x)[2]), (_GATES[node.op] * size, size))
    if turns is None or any(w.shape != (len(turns), *shape) for w, shape in zip(weights, shapes, strict=True)):
        raise ModelError(
            f"node {node.name!r} ({node.op}): weights of {[w.shape for w in weights]} do not fit {direction}"
        )
    ends = [_one_direction(s, x, index, backwards, size, lengths) for index, backwards in enumerate(turns)]
    every = s.concat([s.reshape(states, (steps, 1, batch, size)) for states, _, _ in ends], 1)
    last, cells = (s.concat([s.reshape(end[k], (1, batch, size)) for end in ends], 0) for k in (1, 2))
    s.end(s.transpose(every, (2, 0, 1, 3)) if batch_first else every)
    s.end(s.transpose(last, (1, 0, 2)) if batch_first else last, 1)
    if node.op == "LSTM":
        s.end(s.transpose(cells, (1, 0, 2)) if batch_first else cells, 2)


def _lengths(s: Steps, steps: int, batch: int) -> str | None:
    """Name of the numbers of steps of each sequence (batch, 1); None where all have all."""
    if not s.has(4):
        return None
    name = s.operand(4)
    value = s.value(name)
    if s.shape(name) != (batch,) or (value is not None and not np.all((value >= 0) & (value <= steps))):
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): sequence_lens {name!r} {s.shape(name) if value is None else value}; "
            f"expected {batch} numbers of at most {steps} steps"
        )
    if value is None:
        return s.reshape(name, (batch, 1))
    return None if np.all(value == steps) else s.constant(value.reshape(batch, 1), f"{name}.lengths")


def _one_direction(
    s: Steps, x: str, index: int, backwards: bool, size: int, lengths: str | None
) -> tuple[str, str, str]:
    """States of all steps, the last one, and the last cell. Behind the end of a sequence its state stays, and the
    results are zeros."""
    steps, batch, width = s.shape(x)
    w, r = (s.to.finite(s.node, k)[index].astype(np.float64) for k in (1, 2))
    gates = _GATES[s.node.op]
    bias = s.to.finite(s.node, 3)[index].astype(np.float64) if s.has(3) else np.zeros(2 * gates * size)
    own, other = bias[: gates * size], bias[gates * size :]
    # what GRU adds inside of its reset, when it is applied after the product, stays with the state's product
    apart = s.node.op == "GRU" and bool(s.attribute("linear_before_reset", 0))
    kept = np.concatenate([np.zeros(2 * size), other[2 * size :]]) if apart else np.zeros(gates * size)
    rows = s.tensor(_factor(s, s.reshape(x, (steps * batch, width))))
    products = s.emit("dense", (rows, s.constant(w.T), s.constant(own + other - kept)))
    cell = _Cell(s, index, size, batch, r, kept)
    h, cells = _initial(s, 5, index, batch, size), _initial(s, 6, index, batch, size)
    states = [""] * steps
    for step in reversed(range(steps)) if backwards else range(steps):
        new = cell.step(s.slice(products, 0, step * batch, (step + 1) * batch), h, cells)
        if lengths is None:
            h, cells = new
            states[step] = h
            continue
        goes_on: Expression = ("select", ("less", float(step), "a"), "b", "c")
        states[step] = s.map(goes_on, lengths, new[0], 0.0)
        h = s.map(goes_on, lengths, new[0], h)
        cells = s.map(goes_on, lengths, new[1], cells) if s.node.op == "LSTM" else cells
    return s.concat([s.reshape(state, (1, batch, size)) for state in states], 0), h, cells


IN_EIGHT_BITS = "in_eight_bits"
"""An attribute of our own: the layer's factors are rounded to 8 bits (`rewriting/dynamic.py`)."""


def _factor(s: Steps, x: str) -> str:
    """x as products read it."""
    if not s.attribute(IN_EIGHT_BITS):
        return x
    return s.map(BACK, x, *dynamic_steps(s, x))


def _initial(s: Steps, number: int, index: int, batch: int, size: int) -> str:
    if not s.has(number):
        return s.constant(np.zeros((batch, size)))
    name = s.operand(number)
    value = s.value(name)
    if s.attribute("layout", 0):
        name = s.transpose(name, (1, 0, 2)) if value is None else s.constant(value.transpose(1, 0, 2))
    elif value is not None:
        return s.constant(value[index])
    return s.reshape(s.slice(name, 0, index, index + 1), (batch, size))


class _Cell:
    """One step of one direction."""

    def __init__(self, s: Steps, index: int, size: int, batch: int, r: AnyArray, kept: AnyArray) -> None:
        self.s, self.size, self.batch, self.kept = s, size, batch, kept
        self.r = r
        self.functions = _functions(s, index)
        self.limit: float | None = s.attribute("clip")
        self.peepholes = s.to.finite(s.node, 7)[index].reshape(3, size) if s.has(7) and s.node.op == "LSTM" else None

    def f(self, number: int, of: Expression) -> Expression:
        """An activation of an expression, clipped before where the node says so."""
        inside = of if self.limit is None else c.clip(of, -self.limit, self.limit)
        return with_operands(self.functions[number], {"a": inside})

    def part(self, of: str, gate: int) -> str:
        return self.s.slice(of, 1, gate * self.size, (gate + 1) * self.size)

    def step(self, x: str, h: str, cells: str) -> tuple[str, str]:
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.s.node.op](x, h, cells)

    def _rnn(self, x: str, h: str, cells: str) -> tuple[str, str]:
        return self.s.map(self.f(0, ("add", "a", "b")), x, self.s.matmul(h, self.s.constant(self.r.T))), cells

    def _gru(self, x: str, h: str, cells: str) -> tuple[str, str]:
        s, size = self.s, self.size
        sum_of: Expression = ("add", "a", "b")
        apart = s.attribute("linear_before_reset", 0)
        if apart:  # every gate reads the same
            zr = s.emit("dense", (s.tensor(h), s.constant(self.r.T), s.constant(self.kept)))
        else:
            zr = s.matmul(h, s.constant(self.r[: 2 * size].T))
        z = s.map(self.f(0, sum_of), self.part(x, 0), self.part(zr, 0))
        r = s.map(self.f(0, sum_of), self.part(x, 1), self.part(zr, 1))
        if apart:
            n = s.map(self.f(1, ("add", "a", ("mul", "b", "c"))), self.part(x, 2), r, self.part(zr, 2))
        else:
            inner = s.constant(self.r[2 * size :].T)
            n = s.map(self.f(1, sum_of), self.part(x, 2), s.matmul(s.map(("mul", "a", "b"), r, h), inner))
        return s.map(("add", ("mul", ("sub", 1.0, "a"), "b"), ("mul", "a", "c")), z, n, h), cells

    def _lstm(self, x: str, h: str, cells: str) -> tuple[str, str]:
        s = self.s
        gates = s.map(("add", "a", "b"), x, s.matmul(_factor(s, h), s.constant(self.r.T)))
        i, o, f, n = (self.part(gates, gate) for gate in range(4))
        p = self.peepholes
        peep: Expression = "a" if p is None else ("add", "a", ("mul", "b", "c"))
        i = s.map(self.f(0, peep), i, *(() if p is None else (p[0], cells)))
        f = s.map(self.f(0, peep), f, *(() if p is None else (p[2], cells)))
        if s.attribute("input_forget", 0):
            f = s.map(("sub", 1.0, "a"), i)
        cells = s.map(("add", ("mul", "a", "b"), ("mul", "c", self.f(1, "d"))), f, cells, i, n)
        o = s.map(self.f(0, peep), o, *(() if p is None else (p[1], cells)))
        return s.map(("mul", "a", with_operands(self.functions[2], {"a": "b"})), o, cells), cells


def _functions(s: Steps, index: int) -> list[Expression]:
    usual = _USUAL[s.node.op]
    given = s.attribute("activations")
    names = [str(n.decode() if isinstance(n, bytes) else n) for n in given] if given else [*usual, *usual]
    alphas, betas = list(s.attribute("activation_alpha", ())), list(s.attribute("activation_beta", ()))
    found = []
    for name in names:
        known = {key.lower(): make for key, make in _FUNCTIONS.items()}.get(name.lower())
        if known is None:
            s.node.reject(f"activation {name!r}; supported: {', '.join(_FUNCTIONS)}")
        takes = name.lower() in ("affine", "elu", "hardsigmoid", "leakyrelu", "thresholdedrelu")
        alpha = alphas.pop(0) if takes and alphas else None
        beta = betas.pop(0) if name.lower() in ("affine", "hardsigmoid") and betas else None
        found.append(known(alpha, beta))
    return found[index * len(usual) : (index + 1) * len(usual)]


_DIRECTIONS = {"direction": ("forward", "reverse", "bidirectional")}


OPERATORS = tuple(Operator(name, import_=recurrent, choices=_DIRECTIONS) for name in _GATES)
