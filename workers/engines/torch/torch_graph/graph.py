"""A graph executed by PyTorch: as the engine's program, in double precision as a reference, as a peer on CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from kernels.ir.activations import ACTIVATIONS, activation_of
from kernels.ir.graph import Graph, Node

from .elements import Unsupported, computed, places_of, reduced, taken


class TorchGraph:
    """Constants on the device, once; `__call__` runs the nodes in order, as an exported module would."""

    def __init__(
        self, graph: Graph, device: str, dtype: torch.dtype, stored: torch.dtype | None = None,
        layout: torch.memory_format = torch.contiguous_format,
    ) -> None:  # fmt: skip
        """`stored`: constants and activations are rounded to it, arithmetic and outputs are `dtype`'s. `layout`: of
        images and weights of convolutions.

        Raises Unsupported for an operation without counterpart.
        """
        if missing := sorted({node.op for node in graph.nodes} - set(_OPERATIONS)):
            raise Unsupported(f"no counterpart in PyTorch for {', '.join(missing)}")
        self._graph, self._dtype, self._stored = graph, dtype, stored
        transposed = {node.inputs[1] for node in graph.nodes if node.op == "dense"}
        self._constants = {
            name: self._rounded(
                in_layout(
                    torch.from_numpy(np.ascontiguousarray(array.T if name in transposed else array)).to(device, dtype),
                    layout,
                )
            )
            for name, array in graph.constants.items()
        }
        self._places = {
            node.output: places_of(node, graph.constants[node.inputs[1]], device)
            for node in graph.nodes
            if node.op == "take"
        }
        self._last_use = {name: i for i, node in enumerate(graph.nodes) for name in node.inputs}

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The graph's outputs by name."""
        with torch.inference_mode():
            return self.run(inputs)

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        graph, values = self._graph, {name: self._rounded(value) for name, value in inputs.items()}
        for index, node in enumerate(graph.nodes):
            given = [values.get(name, self._constants.get(name)) if name else None for name in node.inputs]
            if node.op == "take":
                given[1] = self._places[node.output]
            value = _OPERATIONS[node.op](node, given, graph.shapes[node.output])
            values[node.output] = value if node.output in graph.outputs else self._rounded(value)
            for name in node.inputs:
                if self._last_use[name] == index and name not in graph.outputs:
                    values.pop(name, None)
        return {name: values[name] for name in graph.outputs}

    def _rounded(self, value: Tensor) -> Tensor:
        return value if self._stored is None else value.to(self._stored).to(self._dtype)


class _Module(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph, self._inputs = TorchGraph(graph, "cpu", torch.float32), graph.inputs

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self._graph.run(dict(zip(self._inputs, inputs, strict=True))).values())


def exported(graph: Graph) -> torch.export.ExportedProgram:
    """Return the graph as PyTorch exports a module: its outputs in their order. Raises Unsupported."""
    examples = tuple(torch.zeros(graph.shapes[name], dtype=torch.float32) for name in graph.inputs)
    return torch.export.export(_Module(graph).eval(), examples)


def in_layout(value: Tensor, layout: torch.memory_format) -> Tensor:
    """A tensor of four axes in this layout; others have but one."""
    return value.contiguous(memory_format=layout) if value.ndim == 4 else value


def evaluate_wide(graph: Graph, inputs: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs in double precision; on CUDA where there is one."""
    return _evaluate(graph, inputs, torch.float64)


def evaluate_single(graph: Graph, inputs: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs in single precision, TF32 off (PyTorch's default for products; not for convolutions)."""
    torch.backends.cudnn.allow_tf32 = False
    return _evaluate(graph, inputs, torch.float32)


def evaluate_stored_in_half(
    graph: Graph, inputs: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs in double precision of weights and activations that are rounded to half: what storage alone loses."""
    return _evaluate(graph, inputs, torch.float64, torch.float16)


def _evaluate(
    graph: Graph, inputs: Mapping[str, np.ndarray[Any, Any]], dtype: torch.dtype, stored: torch.dtype | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module = TorchGraph(graph, device, dtype, stored)
    placed = {name: torch.from_numpy(array).to(device, dtype) for name, array in inputs.items()}
    return {name: value.cpu().numpy() for name, value in module(placed).items()}


def _activated(x: Tensor, activation: tuple[Any, ...] | None) -> Tensor:
    """Activate a fresh tensor, in place."""
    if activation is None:
        return x
    kind, *bounds = activation
    if kind == "clip":
        return x.clamp_(*bounds)
    if kind == "leaky_relu":
        return functional.leaky_relu_(x, bounds[0])
    if kind == "hard_sigmoid":
        return x.mul_(bounds[0]).add_(bounds[1]).clamp_(0, 1)
    if kind not in _IN_PLACE:
        raise Unsupported(f"no counterpart in PyTorch for the activation {kind}")
    found: Tensor = _IN_PLACE[kind](x)
    return found


_IN_PLACE = {"relu": torch.relu_, "sigmoid": torch.sigmoid_, "hard_swish": functional.hardswish}


def _padded(x: Tensor, pads: tuple[int, ...], value: float = 0.0) -> tuple[Tensor, tuple[int, int]]:
    """Pads (t,l,b,r) that torch takes itself stay with the operation; others are applied before it."""
    top, left, bottom, right = pads
    if (top, left) == (bottom, right):
        return x, (top, left)
    return functional.pad(x, (left, right, top, bottom), value=value), (0, 0)


def _conv(node: Node, inputs: list[Any], _: Any) -> Tensor:
    x, weight, bias, residual = (*inputs, None, None)[:4]
    a = node.attributes
    if a.get("pad_mode") == "reflect":
        top, left, bottom, right = a["pads"]
        x, padding = functional.pad(x, (left, right, top, bottom), "reflect"), (0, 0)
    else:
        x, padding = _padded(x, a["pads"])
    out = functional.conv2d(x, weight, bias, a["strides"], padding, a["dilations"], a["groups"])
    if residual is not None:
        out += residual
    return _activated(out, a.get("activation"))


def _dense(node: Node, inputs: list[Any], _: Any) -> Tensor:
    return _activated(functional.linear(*inputs), node.attributes.get("activation"))


def _ceiling(node: Node, x: Tensor, shape: tuple[int, ...]) -> bool:
    a = node.attributes
    extents = [x.shape[2 + i] + a["pads"][i] + a["pads"][2 + i] - a["kernel"][i] for i in range(2)]
    return any(extents[i] // a["strides"][i] + 1 != shape[2 + i] for i in range(2))


def _max_pool(node: Node, inputs: list[Any], shape: Any) -> Tensor:
    a = node.attributes
    x, padding = _padded(inputs[0], a["pads"], float("-inf"))
    return functional.max_pool2d(x, a["kernel"], a["strides"], padding, ceil_mode=_ceiling(node, inputs[0], shape))


def _average_pool(node: Node, inputs: list[Any], shape: Any) -> Tensor:
    a, x = node.attributes, inputs[0]
    top, left, bottom, right = a["pads"]
    if (top, left) != (bottom, right):
        raise Unsupported(f"{node.name}: an average over pads {a['pads']} that differ by side")
    count, ceiling = bool(a["count_include_pad"]), _ceiling(node, x, shape)
    return functional.avg_pool2d(x, a["kernel"], a["strides"], (top, left), ceiling, count)


def _affine(_: Node, inputs: list[Any], __: Any) -> Tensor:
    x, scale, shift = inputs
    per_channel = (-1,) + (1,) * (x.ndim - 2)
    out: Tensor = x * scale.reshape(per_channel) + shift.reshape(per_channel)
    return out


def _instance_norm(node: Node, inputs: list[Any], _: Any) -> Tensor:
    x, scale, shift = inputs
    out = functional.instance_norm(x, weight=scale, bias=shift, eps=node.attributes["epsilon"])
    return _activated(out, node.attributes.get("activation"))


def _lrn(node: Node, inputs: list[Any], _: Any) -> Tensor:
    a = node.attributes
    return functional.local_response_norm(inputs[0], a["size"], a["alpha"], a["beta"], a["bias"])


def _pad(node: Node, inputs: list[Any], _: Any) -> Tensor:
    top, left, bottom, right = node.attributes["pads"]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[node.attributes["mode"]]
    value = node.attributes["value"] if mode == "constant" else None
    return functional.pad(inputs[0], (left, right, top, bottom), mode, value)


def _resize(node: Node, inputs: list[Any], _: Any) -> Tensor:
    way: tuple[str, str] = (node.attributes["mode"], node.attributes["coordinates"])
    if way == ("nearest", "asymmetric"):
        return functional.interpolate(inputs[0], node.attributes["size"], mode="nearest")
    if way in (("linear", "half_pixel"), ("linear", "align_corners")):
        align = way[1] == "align_corners"
        return functional.interpolate(inputs[0], node.attributes["size"], mode="bilinear", align_corners=align)
    raise Unsupported(f"{node.name}: PyTorch does not resize by {way[0]} with {way[1]}")


def _slice(node: Node, inputs: list[Any], _: Any) -> Tensor:
    a = node.attributes
    out: Tensor = inputs[0].narrow(a["axis"], a["start"], a["stop"] - a["start"])
    return out


def _activation(node: Node, inputs: list[Any], _: Any) -> Tensor:
    return _activated(inputs[0].clone(), activation_of(node))


_OPERATIONS: dict[str, Callable[[Node, list[Any], Any], Tensor]] = {
    **dict.fromkeys(ACTIVATIONS, _activation),
    "conv": _conv,
    "dense": _dense,
    "matmul": lambda _, inputs, __: torch.matmul(*inputs),
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": lambda _, inputs, __: functional.adaptive_avg_pool2d(inputs[0], 1),
    "concat": lambda node, inputs, _: torch.cat(inputs, node.attributes["axis"]),
    "add": lambda node, inputs, _: _activated(inputs[0] + inputs[1], node.attributes.get("activation")),
    "mul": lambda node, inputs, _: _activated(inputs[0] * inputs[1], node.attributes.get("activation")),
    "affine": _affine,
    "instance_norm": _instance_norm,
    "softmax": lambda node, inputs, _: functional.softmax(inputs[0], node.attributes["axis"]),
    "lrn": _lrn,
    "reshape": lambda node, inputs, _: inputs[0].reshape(node.attributes["shape"]),
    "transpose": lambda node, inputs, _: inputs[0].permute(node.attributes["perm"]),
    "slice": _slice,
    "pad": _pad,
    "map": computed,
    "reduce": reduced,
    "take": taken,
    "resize": _resize,
}
