"""Experiments that bring code of their own, which runs on the farm's machine or its phones: who may submit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.model.experiment import Experiment
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

BRINGS = Right(Role.ADMINISTER, of="farm")
"""The right to bring code: that to add an engine."""
CODE = (
    ("workload", "command"),
    ("workload", "files"),
    ("workload", "model"),
    ("workloads", "command"),
    ("workloads", "files"),
    ("workloads", "model"),
    ("strategy", "file"),
    ("engine", "models"),
    ("engine", "builds"),
    ("sides", "*", "agent"),
    ("sides", "*", "driver"),
    ("sides", "*", "engine", "*"),
)
"""Fields that name a program, a build, or a model in a format that others read, which may hold code; `*`: any name."""


def beyond_submitting(given: Mapping[str, Any]) -> tuple[Right, str] | None:
    """Return the right that an experiment takes beside that to submit, and why; None: none."""
    experiment: Experiment = given["experiment"]
    data = experiment.model_dump(mode="json", exclude_defaults=True)
    field = next((".".join(path) for path in CODE if _names(data, path)), "")
    return (BRINGS, f"{field} brings code of one's own") if field else None


def _names(value: Any, path: Sequence[str]) -> bool:
    if isinstance(value, list):
        return any(_names(each, path) for each in value)
    if not path or not isinstance(value, dict):
        return not path and bool(value)
    return any(_names(inner, path[1:]) for name, inner in value.items() if path[0] in ("*", name))
