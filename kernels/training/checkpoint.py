"""The file of variables that the agent writes (`device_agent/src/run/checkpoint.h`), and the network that it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    except OSError as e:
        raise PlanError(f"{file}: no checkpoint of a training: {e}") from e
    told, found = unsealed(content, str(file), "checkpoint")
    if plan and told["plan"] != plan:
        raise PlanError(f"{file}: it is of plan {told['plan']}, not of {plan}")
    return found


def sealed(head: Mapping[str, Any], variables: Mapping[str, bytes]) -> bytes:
    """Return variables as such a file: what its head tells besides, and its own hash at the end."""
    told = {**head, "variables": [*variables], "bytes": [*map(len, variables.values())]}
    content = json.dumps(told, separators=(",", ":")).encode() + b"\n" + b"".join(variables.values())
    return content + hashlib.sha256(content).hexdigest().encode()


def unsealed(content: bytes, source: str, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what the head of such a file tells, and its variables. Raises PlanError where it is damaged, or has no
    `kind` in its head."""
    try:
        head, rest = content.split(b"\n", 1)
        told = json.loads(head)
        names, sizes, _ = told["variables"], told["bytes"], told[kind]
        whole = len(rest) == sum(sizes) + _DIGITS and len(names) == len(sizes)
    except (ValueError, KeyError, TypeError) as e:
        raise PlanError(f"{source}: no {kind}: its head is not that of one; give a file that was written as one") from e
    if not whole or hashlib.sha256(content[:-_DIGITS]).hexdigest().encode() != content[-_DIGITS:]:
        raise PlanError(f"{source}: damaged: its SHA-256 is not that of its content; take an earlier {kind}")
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return told, {name: rest[start : start + size] for name, start, size in zip(names, starts, sizes, strict=True)}


def trained(graph: Graph, variables: Mapping[str, bytes]) -> Graph:
    """The graph with the weights of a training of it, which `to_onnx` writes."""
    found = {name: each.take(variables[name]) for name, each in variables_of(graph).items() if name in variables}
    return replace(graph, constants={**graph.constants, **found})
