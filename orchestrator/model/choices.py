"""A choices file: what each layer does best, and worst, on each device in each arithmetic; `farm best -o` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kernels.options import LAYER_AXES

from .base import Model
from .device import DeviceFacts, Precision

Which = Literal["best", "worst"]


def _of_layers(own: dict[str, int | str]) -> dict[str, int | str]:
    if unknown := own.keys() - set(LAYER_AXES):
        raise ValueError(f"a layer has no `{min(unknown)}` of its own; it may have {', '.join(LAYER_AXES)}")
    return own


Own = Annotated[dict[str, int | str], Field(min_length=1), AfterValidator(_of_layers)]
"""Axes of one layer, by name: `{"algorithm": "dot", "granularity": 6}`."""


class LayerChoice(Model):
    """One layer on one device."""

    device: str = "*"
    """A serial number, or a pattern of models' names: `SM-G930*`; `*`: any device."""
    layer: str
    precision: Precision | None = Field(default=None, exclude_if=lambda value: value is None)
    """The arithmetic; not given: each that has no entry of its own."""
    best: Own
    worst: Own

    @property
    def key(self) -> tuple[str, str | None]:
        """The devices and the arithmetic that it is for."""
        return self.device, self.precision


class Choices(Model):
    """Choices of layers."""

    schema_version: Literal[1] = 1
    origin: str = Field(min_length=1)
    """The origin: by what they were found."""
    layers: tuple[LayerChoice, ...] = Field(min_length=1)

    def of(self, device: DeviceFacts, precision: Precision, which: Which) -> Mapping[str, Mapping[str, int | str]]:
        """Layer -> its axes on a device: by serial number where it is named, else by model; empty where neither is."""
        fits = [each for each in self.layers if each.precision in (None, precision)]
        own = [each for each in fits if each.device == device.serial]
        found = own or [each for each in fits if fnmatchcase(device.model, each.device)]
        return {each.layer: getattr(each, which) for each in sorted(found, key=lambda each: each.precision is not None)}
