"""The file of variables that the agent writes (`device_agent/src/run/checkpoint.h`), and the network that it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernels.errors import PlanError
from kernels.ir.graph import Graph

from .variables import variables_of

_DIGITS = 64


def read_checkpoint(file: Path, *, plan: str = "") -> dict[str, bytes]:
    """Every variable's content, by its buffer. `plan`: the hash of the plan that it must be of.

    Raises PlanError for a file that is damaged, no checkpoint, or another plan's.
    """
    try:
        content = file.read_bytes()
        head, rest = content.split(b"\n", 1)
        told = json.loads(head)
        names, sizes = told["variables"], told["bytes"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise PlanError(f"{file}: no checkpoint of a training: {e}") from e
    whole = len(rest) == sum(sizes) + _DIGITS and len(names) == len(sizes)
    if not whole or hashlib.sha256(content[:-_DIGITS]).hexdigest().encode() != content[-_DIGITS:]:
        raise PlanError(f"{file}: damaged: its SHA-256 is not that of its content; take an earlier checkpoint")
    if plan and told["plan"] != plan:
        raise PlanError(f"{file}: it is of plan {told['plan']}, not of {plan}")
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return {name: rest[start : start + size] for name, start, size in zip(names, starts, sizes, strict=True)}


def trained(graph: Graph, variables: Mapping[str, bytes]) -> Graph:
    """The graph with the weights of a training of it, which `to_onnx` writes."""
    found = {name: each.take(variables[name]) for name, each in variables_of(graph).items() if name in variables}
    return replace(graph, constants={**graph.constants, **found})
