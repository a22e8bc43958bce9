"""Choose another driver of OpenCL or Vulkan for the runs of one side: the API's loader is told by its environment.

`OCL_ICD_VENDORS` of ocl-icd (libOpenCL(7)) takes the file of a driver instead of the folder of all; with other loaders,
for which it may be a folder only, the device is not offered and the run refused. Vulkan's loader reads
`VK_DRIVER_FILES`, an older one `VK_ICD_FILENAMES`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.model.device import Api, ApiFacts
from orchestrator.model.errors import Unsupported
from orchestrator.model.job import Cell

from .fleet import Member
from .install import file_sha256
from .probe import probe
from .workstation import CPU_SERIAL, sort_devices

VARIABLES = {Api.OPENCL: ("OCL_ICD_VENDORS",), Api.VULKAN: ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")}


def with_driver(member: Member, cell: Cell) -> Member:
    """The device behind the driver that a cell names, with what that driver offers; as it is where the cell names none.

    Raises Unsupported where the file is not as it was at submission, or offers no such device; DeviceSick.
    """
    if not cell.driver:
        return member
    serial = member.facts.serial
    if member.facts.kind != "workstation" or cell.backend not in VARIABLES:
        raise Unsupported(f"no driver of its {cell.backend} can be chosen", device=serial)
    _check_file(cell, serial)
    chosen = tuple(f"{name}={cell.driver}" for name in VARIABLES[cell.backend])
    probed = probe(member.connection, member.agent, environment=chosen)
    found = _same_device(member, cell, probed.apis)
    told = tuple(found if usual.api == cell.backend else usual for usual in member.facts.apis)
    return replace(
        member,
        facts=member.facts.model_copy(update={"apis": told}),
        environment=(*member.environment, *chosen),
        cache=f"cache-{cell.driver_sha256[:16]}",
    )


def _check_file(cell: Cell, serial: str) -> None:
    try:
        sha256 = file_sha256(Path(cell.driver))
    except OSError as e:
        raise Unsupported(
            f"the side's driver {cell.driver} cannot be read on this host: {e.strerror}",
            remedy="install it at the same path on every host whose devices take part",
            device=serial,
        ) from e
    if sha256 != cell.driver_sha256:
        raise Unsupported(
            f"the side's driver {cell.driver} is another file than at submission",
            remedy="submit anew: two drivers are not one side",
            device=serial,
        )


def _same_device(member: Member, cell: Cell, apis: tuple[ApiFacts, ...]) -> ApiFacts:
    """Return the same device of what the driver offers: by name, else the only one of its kind."""
    on_cpu = member.facts.gpu_vendor == "cpu"
    kinds = sort_devices(apis).items()
    offered = [
        facts for name, own in kinds for facts in own if facts.api == cell.backend and (name == CPU_SERIAL) == on_cpu
    ]
    usual = member.facts.api(cell.backend)
    named = [facts for facts in offered if usual and facts.device_name == usual.device_name] or offered
    if len(named) != 1:
        names = ", ".join(facts.device_name for facts in offered) or "none"
        raise Unsupported(
            f"the side's driver {cell.driver} does not offer this device to {cell.backend}; it offers: {names}",
            remedy="check the library that the file names: `ldd` tells what it lacks",
            device=member.facts.serial,
        )
    return named[0]
