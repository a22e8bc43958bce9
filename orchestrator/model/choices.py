"""A choices file: what each layer does best, and worst, on each device; `farm best -o` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kernels.options import LAYER_AXES

from .base import Model
from .device import DeviceFacts

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
    best: Own
    worst: Own


class Choices(Model):
    """Choices of layers."""

    schema_version: Literal[1] = 1
    origin: str = Field(min_length=1)
    """By what they were found."""
    layers: tuple[LayerChoice, ...] = Field(min_length=1)

    def of(self, device: DeviceFacts, which: Which) -> Mapping[str, Mapping[str, int | str]]:
        """Layer -> its axes on a device: by serial number where it is named, else by model; empty where neither is."""
        own = [each for each in self.layers if each.device == device.serial]
        found = own or [each for each in self.layers if fnmatchcase(device.model, each.device)]
        return {each.layer: getattr(each, which) for each in found}
