"""Push inputs to the device and pull outputs from it, both checked by content."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrator.errors import DeviceSick
from orchestrator.model.event import Event, Output
from workers.connection.base import DeviceConnection
from workers.devices.install import put_files
from workers.plans.plan_store import Arrays, StoredPlan

from .agent_process import RunRequest

_DTYPES = {"f32": "<f4", "f16": "<f2", "i32": "<i4", "u8": "|u1"}


def push_inputs(connection: DeviceConnection, stored: StoredPlan, inputs: Arrays) -> dict[str, str]:
    """Port name -> path on the device, by content."""
    paths: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        for port in stored.plan.inputs:
            content = np.ascontiguousarray(inputs[port.name], dtype=_DTYPES[port.dtype]).tobytes()
            identity = hashlib.sha256(content).hexdigest()
            file = Path(temporary) / identity
            file.write_bytes(content)
            paths[port.name] = f"{put_files(connection, 'inputs', identity, {'data.bin': file})}/data.bin"
    return paths


def pull_outputs(
    connection: DeviceConnection, stored: StoredPlan, request: RunRequest, events: list[Event]
) -> dict[str, npt.NDArray[Any]]:
    """Every output of the plan, as often as the inputs had frames: frames x dimensions. Verified by the SHA-256 in its
    event. Raises DeviceSick."""
    written = {event.name: event for event in events if isinstance(event, Output)}
    outputs: dict[str, npt.NDArray[Any]] = {}
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        for port in stored.plan.outputs:
            if port.name not in written:
                raise DeviceSick(f"the agent wrote no output {port.name!r}", device=connection.serial)
            file = Path(temporary) / "output.bin"
            connection.pull(f"{request.outputs}/{written[port.name].file.rsplit('/', 1)[-1]}", file)
            content = file.read_bytes()
            if hashlib.sha256(content).hexdigest() != written[port.name].sha256:
                raise DeviceSick(f"output {port.name!r} did not arrive intact", device=connection.serial)
            outputs[port.name] = np.frombuffer(content, _DTYPES[port.dtype]).reshape(-1, *port.shape)
    return outputs
