"""The interface of every peer to the process around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]


class PeerError(Exception):
    """The engine cannot run this model as asked; the message becomes the row."""


@dataclass(frozen=True)
class Model:
    """The model that a peer is given."""

    network: str
    seed: int
    batch: int
    onnx: Path
    """The same network with its weights, opset 17."""
    folder: Path
    """A folder for files of its own."""
    threads: int
    device: str
    """Words that the device's name must contain; empty: the engine's default."""
    precision: Literal["fp32", "fp16"] = "fp32"
    """The precision of weights and activations; an engine that has one only is asked for that one."""


class Engine(Protocol):
    """A loaded model. Only `run` is timed."""

    device: str
    """The device that really computes, in the engine's own words."""
    version: str
    remarks: list[str]
    """Remarks that a reader of the time must know."""
    copies_inside: bool
    """True if `run` takes the input from the host's memory and leaves the result there."""

    def put(self, inputs: Arrays) -> None:
        """Make the input ready for `run`."""
        ...

    def run(self) -> None:
        """One inference, finished when it returns."""
        ...

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        """Outputs of the last run."""
        ...
