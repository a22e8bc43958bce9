"""Make and cache the plans of cells."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import kernels
from kernels.compile import compile_graph
from kernels.errors import PlanError
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, Plan
from kernels.training import compile_training
from orchestrator.model.base import content_hash
from orchestrator.model.choices import Choices
from orchestrator.model.device import Api, DeviceFacts
from orchestrator.model.errors import Unsupported
from orchestrator.model.job import Cell
from orchestrator.model.record import LayerMemory
from workers.engines.models import Models, SingleFlightCache
from workers.files.host_files import HostFiles
from workers.files.kept_folders import note_use, prune, write_whole

from .compiler_options import limits_of, options_of, threads_a_layer, training_options
from .kernel_limits import KernelLimits
from .layer_memory import layer_memory
from .tuned_choices import TunedChoices

MAX_PLANS = 128
"""Plans kept on the host's disk."""


@dataclass(frozen=True)
class StoredPlan:
    """A plan in a folder of this host, as it is pushed."""

    plan: Plan
    folder: Path
    plan_hash: str

    @property
    def files(self) -> dict[str, Path]:
        return {name: self.folder / name for name in ("plan.json", *self.plan.files)}

    @cached_property
    def layer_memory(self) -> tuple[LayerMemory, ...]:
        """Layer by layer, found out once for all blocks."""
        return layer_memory(self.plan)


class Plans:
    """Caches of one host process, shared by its threads; plans also on disk, keyed by everything that shapes them."""

    def __init__(self, state: Path, models: Models | None = None) -> None:
        self._folder = state / "cache" / "plans"
        self._shaders = state / "cache" / "spirv"
        self.models = models or Models(HostFiles(state))
        self._plans: SingleFlightCache[StoredPlan] = SingleFlightCache(64)
        self._tuned = TunedChoices(state)
        self.kernel_limits = KernelLimits(state)

    def agent(self, cell: Cell, device: DeviceFacts) -> Path | None:
        """The build of the agent that a cell names for a device; None: the host's own.

        Raises ModelFileError, FileUnavailable, and Unsupported where there is none for its abi.
        """
        if not cell.agent:
            return None
        if device.abi not in cell.agent:
            raise Unsupported(f"the side has no agent for abi {device.abi}", device=device.serial)
        return self.models.file("", cell.agent[device.abi])

    def plan(self, cell: Cell, device: DeviceFacts, *, cpus: int = 0) -> StoredPlan:
        """The cell compiled for a device, with what tuning found there unless the cell says `tuned: false`.

        `cpus`: cores that the agent may use; 0: all. Raises Unsupported, SpecError and the compiler's errors.
        """
        options, limits = options_of(cell), limits_of(device, cell.backend, cell.precision)
        options = replace(options, layers=self._layers(cell, device))
        limits = replace(limits, kernel_groups=self.kernel_limits.of(device, cell.backend))
        if cell.options.get("tuned", True) and cell.workload.training is None:
            threads = threads_a_layer(cell, cpus)
            graph = partial(self.models.graph, cell.workload, cell.batch)
            options = self._tuned.options(options, limits, device, graph, threads=threads)
        key = content_hash(
            {
                "compiler": compiler_sha256(),
                "workload": cell.workload.model_dump(mode="json"),
                "batch": cell.batch,
                "updates": cell.options.get("updates", "device"),
                "options": asdict(options),
                "limits": asdict(limits),
            }
        )
        make = partial(self._stored, key, cell, options, limits)
        stored = self._plans.get(key, make)
        if not note_use(stored.folder):  # another process has removed it, to make room for its own
            self._plans.drop(key, stored)
            stored = self._plans.get(key, make)
        return stored

    def _layers(self, cell: Cell, device: DeviceFacts) -> Mapping[str, Mapping[str, int | str]]:
        """Axes of layers by the cell's choices file. Raises Unsupported where it has none for the device."""
        name, sha256 = cell.workload.choices, cell.workload.choices_sha256
        which: Any = cell.options.get("choices", "best")
        if name is None or which == "none" or cell.backend == Api.CPU:
            return {}
        found = Choices.model_validate_json(self.models.file(name, sha256).read_bytes())
        own = found.of(device, cell.precision, which)
        if not own:
            known = ", ".join(dict.fromkeys(" in ".join(filter(None, each.key)) for each in found.layers))
            raise Unsupported(
                f"{name} has no choices for it (model {device.model or 'unknown'}) in {cell.precision}; "
                f"it has them for: {known}",
                remedy="write its serial number, a pattern of its model, or `*` as `device` in the file",
                device=device.serial,
            )
        return own

    def _stored(self, key: str, cell: Cell, options: Options, limits: Limits) -> StoredPlan:
        folder = self._folder / key
        try:
            bundle = Bundle.read(folder)
        except PlanError:  # not there yet, or damaged
            graph, training = self.models.graph(cell.workload, cell.batch), cell.workload.training
            updates = cell.options.get("updates")
            if training is None:
                bundle = compile_graph(graph, options, limits, spirv_cache=self._shaders)
            else:
                asked = training_options(training, self.models.training_set(cell.workload)[0].dtype)
                asked = replace(asked, updates="host" if updates == "host" else "device")
                bundle = compile_training(graph, asked, options, limits, spirv_cache=self._shaders)
            store(bundle, folder)
            prune(self._folder, MAX_PLANS)
        return StoredPlan(bundle.plan, folder, bundle.plan.plan_hash)


def store(bundle: Bundle, folder: Path) -> None:
    """Write a bundle as a whole, in the place of a damaged one."""
    shutil.rmtree(folder, ignore_errors=True)
    write_whole(folder, bundle.write)


@cache
def compiler_sha256() -> str:
    """Hash of every source file of the compiler: another compiler, another plan."""
    root = Path(os.fspath(kernels.__path__[0]))
    digest = hashlib.sha256(np.__version__.encode())
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
