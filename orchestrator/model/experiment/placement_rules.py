"""The way in which the jobs of an experiment come to devices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import parse_date

PolicyName = Literal[
    "fair_share", "ageing", "coolest", "most_charged", "least_energy", "deadline", "same_device", "longest_first"
]
"""The policies of placement; `FARM_POLICY` is one too."""


def _several(value: object) -> object:
    """A single value is a list of one."""
    return value if isinstance(value, list | tuple) else (value,)


class PlacementRules(Model):
    """The rules that the experiment wants otherwise than the farm."""

    policy: PolicyName | None = None
    """The policy by which its jobs are placed; none: the farm's (`FARM_POLICY`)."""
    deadline: Annotated[float, BeforeValidator(parse_date, json_schema_input_type=float | str), Field(gt=0)] | None = (
        None
    )
    """Local time at which it is to be over, e.g. `2026-12-01 08:00`, with the policy `deadline`: before others of its
    priority, the earliest first."""

    last: dict[str, Annotated[tuple[int | str | bool, ...], BeforeValidator(_several)]] = Field(
        default_factory=dict, exclude_if=lambda value: not value
    )
    """Values of axes: `{engine: ncnn, backend: vulkan}`. The configurations that have one of each run behind all others
    of their device: what crashes a driver then spoils nothing."""

    @rule
    def _deadline_with_its_policy(self) -> None:
        if (self.policy == "deadline") != (self.deadline is not None):
            raise ValueError("give `policy: deadline` and `deadline: 2026-12-01 08:00` together, or neither")
