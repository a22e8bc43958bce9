"""Two sides that are compared: what each has otherwise than the experiment says."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from orchestrator.model import problem
from orchestrator.model.base import Model
from orchestrator.model.device import OURS, Api

from .matrix import Matrix

SideName = Literal["baseline", "candidate"]
BASELINE, CANDIDATE = "baseline", "candidate"
_UNSWITCHABLE = ("os", "firmware")
DRIVER_FILES = {".icd": Api.OPENCL, ".json": Api.VULKAN}
"""The endings of files by which a driver tells a loader where it is."""


class Side(Model):
    """One side; without any field it is the experiment as it stands."""

    axes: dict[str, int | str | bool] = Field(default_factory=dict)
    """Values of axes instead of those of the matrix: `{precision: fp16}`, `{tuned: false}`."""
    onnx: str | None = None
    """Another ONNX file, relative to the file that says so."""
    onnx_sha256: str | None = None
    """Filled in at submission."""
    agent: str | None = None
    """Another build of the agent: a folder with `<abi>/pocketfarm-agent`, as `make agent` leaves it."""
    agent_sha256: dict[str, str] = Field(default_factory=dict)
    """Filled in at submission: by abi."""
    engine: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Other builds of engines, by name: `{command: builds/next}` runs the workload's command beside the files of that
    folder instead of `workload.files`; `pocketfarm` is the same as `agent`; of an engine that `farm engines add`
    brought a folder with one for each ABI."""
    engine_sha256: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Filled in at submission: by engine, the files of its build; of an engine that a person brought its builds."""
    driver: str | None = None
    """Another driver of the side's backend, on devices of this machine: the file that names it to the loader of OpenCL
    (`NAME.icd`) or of Vulkan (`NAME.json`)."""
    driver_sha256: str | None = None
    """Filled in at submission: of that file."""

    @model_validator(mode="before")
    @classmethod
    def _switchable(cls, data: object) -> object:
        for name in _UNSWITCHABLE if isinstance(data, dict) else ():
            if name in data:  # type: ignore[operator]
                raise ValueError(
                    f"the farm cannot switch a phone's {name}: give the phones that have the other one names of "
                    "their own, or compare the nights before and after the update: `farm compare NAME~1-10 NAME`"
                )
        return data

    @model_validator(mode="before")
    @classmethod
    def _our_build(cls, data: object) -> object:
        """Our own engine's build is its agent."""
        engine = data.get("engine") if isinstance(data, dict) else None
        if not isinstance(engine, dict) or OURS.name not in engine:
            return data
        if data.get("agent") is not None:  # type: ignore[attr-defined]
            raise ValueError(f"give either `agent` or `engine: {{{OURS.name}: FOLDER}}`: both are the agent's build")
        others = {name: folder for name, folder in engine.items() if name != OURS.name}
        return {**data, "engine": others, "agent": engine[OURS.name]}  # type: ignore[dict-item]

    @field_validator("driver")
    @classmethod
    def _of_a_loader(cls, driver: str | None) -> str | None:
        if driver is not None and PurePath(driver).suffix not in DRIVER_FILES:
            raise ValueError(
                f"{driver} is no file of a driver: an OpenCL driver's ends in .icd, a Vulkan driver's in .json. The "
                "farm cannot switch a phone's driver: compare the nights before and after the update"
            )
        return driver

    @field_validator("axes")
    @classmethod
    def _of_the_matrix(cls, axes: dict[str, int | str | bool]) -> dict[str, int | str | bool]:
        """Read the axes as the matrix does."""
        return {name: _value(name, value) for name, value in axes.items()}


class Sides(Model):
    """Every configuration is run on both sides, next to each other in each round."""

    baseline: Side = Side()
    candidate: Side

    @property
    def overridden(self) -> frozenset[str]:
        """Axes that at least one side sets: by these, configurations of both sides differ."""
        return frozenset({*self.baseline.axes, *self.candidate.axes})


def _value(name: str, value: Any) -> Any:
    try:
        (found,) = Matrix.model_validate({name: [value]}).listed(name) or (value,)
    except ValidationError as e:
        error = e.errors(include_url=False)[0]
        known = ", ".join(name for name in Matrix.model_fields if name != "of_engines")
        why = f"axes are {known}" if error["type"] == "extra_forbidden" else problem.describe(error)
        raise ValueError(f"{name}: {why}") from e
    return getattr(found, "value", found)
