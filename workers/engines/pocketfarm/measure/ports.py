"""Push inputs to the device and pull outputs from it, both checked by content."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.plan.port_values import NUMPY, as_port
from orchestrator.model.errors import DeviceSick
from orchestrator.model.event import Event, Output
from workers.connection.base import DeviceConnection
from workers.devices.install import has_file, place_of, put_files
from workers.engines.models import Arrays
from workers.engines.pocketfarm.plans.plan_store import StoredPlan

from .run_request import RunRequest

TOKENS = "tokens"
"""A text's tokens, where a plan generates."""
STATE = "state"
"""Bytes of the checkpoint with what a plan has taken of them."""
CACHE, FILE = "inputs", "data.bin"
FEW, SMALL_BYTES = 8, 65536
"""Outputs that are read in the trip that starts the agent: no more of them, of no more bytes for a frame."""


@dataclass(frozen=True)
class Inputs:
    """The bytes of a plan's input ports, by content: each is a file of the device's cache."""

    contents: Mapping[str, bytes]
    paths: Mapping[str, str]
    """Port name -> where it is on the device, once it was pushed."""
    _identities: Mapping[str, str]

    @classmethod
    def of(cls, connection: DeviceConnection, stored: StoredPlan, inputs: Arrays) -> Inputs:
        if stored.plan.generation:
            contents = {TOKENS: np.asarray(inputs[TOKENS], "<i8").tobytes()}
            contents |= {STATE: np.asarray(inputs[STATE]).tobytes()} if STATE in inputs else {}
            return cls.of_contents(connection, contents)
        contents = {port.name: as_port(port, inputs[port.name]).tobytes() for port in stored.plan.inputs}
        return cls.of_contents(connection, contents)

    @classmethod
    def of_contents(cls, connection: DeviceConnection, contents: Mapping[str, bytes]) -> Inputs:
        identities = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        paths = {name: f"{place_of(connection, CACHE, each)}/{FILE}" for name, each in identities.items()}
        return cls(contents, paths, identities)

    def push(self, connection: DeviceConnection, verified: set[str] | None = None) -> None:
        """Push those that are not there yet, see `put_files`. Raises DeviceSick."""
        verified = set() if verified is None else verified
        for name, content in self.contents.items():
            if has_file(connection, CACHE, self._identities[name], FILE, verified):
                continue
            with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
                file = Path(temporary) / self._identities[name]
                file.write_bytes(content)
                needed = self._identities.values()
                put_files(connection, CACHE, file.name, {FILE: file}, verified=verified, beside=needed)


def push_inputs(connection: DeviceConnection, stored: StoredPlan, inputs: Arrays) -> Mapping[str, str]:
    """Port name -> path on the device, by content."""
    found = Inputs.of(connection, stored, inputs)
    found.push(connection)
    return found.paths


def small_outputs(stored: StoredPlan, request: RunRequest) -> list[str]:
    """Paths of the outputs, where a plan has few bytes of them: then to read them early costs next to nothing."""
    outputs = stored.plan.outputs
    bytes_ = sum(prod(port.shape) * np.dtype(NUMPY[port.dtype]).itemsize for port in outputs)
    small = len(outputs) <= FEW and bytes_ <= SMALL_BYTES
    return [f"{request.folder}/{number}.bin" for number in range(len(outputs))] if small else []


def pull_outputs(
    connection: DeviceConnection,
    stored: StoredPlan,
    request: RunRequest,
    events: list[Event],
    read: Mapping[str, bytes],
) -> dict[str, npt.NDArray[Any]]:
    """Every output of the plan, as often as the inputs had frames: frames x dimensions. Verified by the SHA-256 in its
    event. `read`: files that were read before, by path, perhaps too early. Raises DeviceSick."""
    written = {event.name: event for event in events if isinstance(event, Output)}
    outputs: dict[str, npt.NDArray[Any]] = {}
    for port in stored.plan.outputs:
        if port.name not in written:
            raise DeviceSick(f"the agent wrote no output {port.name!r}", device=connection.serial)
        path = f"{request.folder}/{written[port.name].file.rsplit('/', 1)[-1]}"
        content, sha256 = read.get(path, b""), written[port.name].sha256
        if hashlib.sha256(content).hexdigest() != sha256:
            content = _pulled(connection, path)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DeviceSick(f"output {port.name!r} did not arrive intact", device=connection.serial)
        outputs[port.name] = np.frombuffer(content, NUMPY[port.dtype]).reshape(-1, *port.shape)
    return outputs


def _pulled(connection: DeviceConnection, path: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        file = Path(temporary) / "output.bin"
        connection.pull(path, file)
        return file.read_bytes()
