"""The matrix: an experiment and the devices -> jobs and exclusions. Pure and exact.

Every cell on every matching device in every block is either a job or an exclusion with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from math import prod
from pathlib import PurePath
from typing import Any

from orchestrator.model import axes
from orchestrator.model.axes import AXES, COMMAND, ENGINE, FRAMES, SIDE
from orchestrator.model.device import Api, Device, Precision
from orchestrator.model.errors import SpecError
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Conditions, Experiment, Measure, Side, Workload
from orchestrator.model.experiment.engine_settings import EngineSettings
from orchestrator.model.experiment.language_model import TEXT_AXES
from orchestrator.model.job import Cell, Job

from . import device_selection, run_order


@dataclass(frozen=True)
class Expansion:
    """The jobs and exclusions of an experiment on the devices of the day."""

    jobs: tuple[Job, ...]
    """The jobs in the order of the design (`sampling.order`), canaries included."""
    exclusions: tuple[Exclusion, ...]
    cells: tuple[Cell, ...]
    """Distinct cells, in the order of the axes, whether or not a device can run them."""
    reserve: tuple[Job, ...] = ()
    """Jobs that may follow by results: one for each choice of devices, held until it is known whether any do."""


@dataclass(frozen=True)
class _Point:
    """One value per axis, as the matrix lists them."""

    workload: Workload
    backend: Api
    precision: Any
    options: dict[str, Any]
    agent: dict[str, str] = field(default_factory=dict)
    driver: str = ""
    driver_sha256: str = ""
    engines: EngineSettings = field(default_factory=EngineSettings)

    def on(self, name: str, side: Side) -> _Point:
        """The same on a side."""
        own = dict(side.axes)
        workload = self.workload
        if "network" in own:
            workload = workload.model_copy(update={"network": own.pop("network")})
        if side.onnx is not None:
            update = {"network": None, "onnx": side.onnx, "onnx_sha256": side.onnx_sha256}
            workload = workload.model_copy(update=update)
        if (files := side.engine_sha256.get(COMMAND)) is not None:
            named = workload.files or PurePath(side.engine[COMMAND]).name  # what counts is their content
            workload = workload.model_copy(update={"files": named, "files_sha256": files})
        return _Point(
            workload,
            Api(str(own.pop("backend", self.backend))),
            Precision(str(own.pop("precision", self.precision))),
            {**self.options, **own, SIDE.name: name},
            side.agent_sha256,
            side.driver or "",
            side.driver_sha256 or "",
            self.engines.model_copy(update={"builds": {**self.engines.builds, **side.engine_sha256}}),
        )

    @property
    def cell(self) -> Cell:
        """The cell that it comes to: options that make no difference fall away."""
        unused = self.unused
        used = {name: value for name, value in self.options.items() if name not in unused}
        name = str(used.get(ENGINE.name))
        if used.get(ENGINE.name) == ENGINE.default:  # cells of before there were others are the same
            del used[ENGINE.name]
        return Cell(
            workload=self.workload, backend=self.backend, precision=self.precision, options=used, agent=self.agent,
            driver=self.driver, driver_sha256=self.driver_sha256, printed=self.engines.result,
            model_files=self.engines.files_of(name, self.workload.label), build=self.engines.builds.get(name, {}),
        )  # fmt: skip

    @property
    def label(self) -> str:
        return Cell.model_construct(**vars(self)).label

    @property
    def conflict(self) -> str:
        """Return why its options cannot run together; empty where they can."""
        return "" if self.workload.command else axes.conflict(self.backend, self.options)

    @property
    def unused(self) -> dict[str, str]:
        """Its options that make no difference, each with the reason."""
        named = self.workload.placeholders if self.workload.command else None
        return axes.unused(self.backend, self.options, named)


def size(experiment: Experiment) -> int:
    """Number of distinct cells x blocks, and canaries: runs per device. Counts without building all of them."""
    matrix, sampling = experiment.matrix, experiment.sampling
    fixed = len(matrix.network or experiment.every_workload) * len(matrix.precision) * sampling.blocks
    sides = 1 if experiment.sides is None else 2
    listed = _options(experiment)
    if experiment.workload.command is not None:
        meant = axes.of_command(experiment.workload.placeholders)
        return sides * fixed * prod(len(values) for name, values in listed.items() if name in meant)
    engines = listed.pop(ENGINE.name, (ENGINE.default,))
    blocks = sides * fixed * sum(_choices(api, engine, listed) for api in matrix.backend for engine in engines)
    return blocks + run_order.canaries(blocks, sampling.canary)


def _choices(api: Api, engine: str, listed: dict[str, tuple[Any, ...]]) -> int:
    """Number of distinct settings of a backend's options that can run with an engine."""
    meant = {
        name: values
        for name, values in listed.items()
        if (known := axes.axis_of(name)) and api in known.backends and axes.has_axis(engine, name)
    }
    ours = [AXES[name] for name in meant if name in AXES]
    bound = {axis.name for axis in ours if axis.decides}.union(*(axis.reads for axis in ours)) & meant.keys()
    free = prod(len(values) for name, values in meant.items() if name not in bound)
    rest = {name: meant[name] for name in sorted(bound)}
    distinct = set()
    for values in product(*rest.values()):
        options = dict(zip(rest, values, strict=True))
        if not axes.conflict(api, options):
            unused = axes.unused(api, options)
            distinct.add(tuple((name, value) for name, value in options.items() if name not in unused))
    return free * len(distinct)


def expand(experiment: Experiment, experiment_id: str, devices: Sequence[Device]) -> Expansion:
    """Expand the matrix over the devices that the experiment selects.

    `count: all` makes a job for each of them that is capable, n for the first n capable ones in order of serial, `any`
    one job with all of them as candidates. Raises SpecError where the selection matches nothing, or fewer than n.
    """
    chosen = _chosen(experiment, devices)
    cells, exclusions = _cells(experiment)
    placed: list[tuple[Cell, tuple[str, ...]]] = []
    for cell in cells:
        capable, lacking = _capable(cell, chosen)
        candidates, unneeded = _candidates(cell, capable, experiment.devices.count)
        placed += [(cell, serials) for serials in candidates]
        exclusions += lacking + unneeded
    sampling, last = experiment.sampling, experiment.placement.last
    slots = run_order.arrange(placed, range(sampling.blocks), sampling.order, experiment_id, last)
    if sampling.canary:
        slots = run_order.with_canaries(slots, sampling.canary, _references(experiment, chosen))
    return Expansion(
        jobs=tuple(_jobs(experiment, experiment_id, slots)),
        exclusions=tuple(exclusions),
        cells=tuple(cells),
        reserve=tuple(_jobs(experiment, experiment_id, _reserve(experiment, placed))),
    )


def _jobs(experiment: Experiment, experiment_id: str, slots: Sequence[run_order.Slot]) -> Iterator[Job]:
    """The jobs of these slots. Those of a cell differ in devices and number alone: what else there is to them, and
    each choice of devices, is checked and written out once."""
    of_cell: dict[tuple[int, str], Job] = {}
    of_choice: dict[tuple[int, str, int], Job] = {}
    for slot in slots:
        cell = (id(slot.cell), slot.role)
        choice = (*cell, id(slot.candidates))
        if choice not in of_choice:
            if cell not in of_cell:
                of_cell[cell] = job(experiment, experiment_id, slot)
                _ = of_cell[cell].text_after_candidates
            of_choice[choice] = of_cell[cell].with_candidates(slot.candidates)
            _ = of_choice[choice].choice
        known = of_choice[choice]
        yield known if known.block == slot.block else known.with_block(slot.block)


def job(experiment: Experiment, experiment_id: str, slot: run_order.Slot) -> Job:
    """The job of one block."""
    work = slot.role == "work"
    return Job(
        experiment_id=experiment_id,
        cell=slot.cell,
        block=slot.block,
        candidates=slot.candidates,
        sampling=experiment.sampling if work else run_order.canary_sampling(experiment.sampling),
        conditions=_conditions(experiment, slot.cell),
        measure=experiment.measure if work else Measure(),
        priority=experiment.priority,
        role=slot.role,
    )


def _conditions(experiment: Experiment, cell: Cell) -> Conditions:
    """The experiment's, with the cores of the cell where they are an axis."""
    cores = cell.options.get("affinity")
    return experiment.conditions.model_copy(update={"affinity": cores}) if cores else experiment.conditions


def _reserve(experiment: Experiment, placed: list[run_order.Place]) -> list[run_order.Slot]:
    if not experiment.may_grow:
        return []
    first: dict[tuple[str, ...], Cell] = {}
    for cell, serials in placed:
        first.setdefault(serials, cell)
    return [run_order.Slot(cell, serials, experiment.sampling.blocks) for serials, cell in first.items()]


def _references(experiment: Experiment, devices: list[Device]) -> dict[str, Cell]:
    """The canary of each device: on the first of the experiment's backends that it has."""
    found: dict[str, Cell] = {}
    for device in devices:
        offered = [facts for backend in experiment.matrix.backend if (facts := device.facts.api(backend)) is not None]
        for facts in offered[:1]:
            plain = Precision.FP32 in facts.precisions or not facts.precisions
            precision = Precision.FP32 if plain else facts.precisions[0]
            found[device.serial] = run_order.canary_cell(facts.api, precision)
    return found


def _chosen(experiment: Experiment, devices: Sequence[Device]) -> list[Device]:
    selection = device_selection.parse(experiment.devices.where)
    ordered = sorted(devices, key=lambda device: device.serial)
    chosen = [device for device in ordered if selection.matches(device)]
    count = experiment.devices.count
    wanted = count if isinstance(count, int) else 1
    if len(chosen) < wanted:
        found = "no device matches" if not chosen else f"{wanted} devices are wanted, {len(chosen)} of all match"
        known = "\n".join(f"    {d.serial}: {selection.why_not(d) or 'matches'}" for d in ordered)
        raise SpecError(
            f"devices.where: {found} `{selection.expression}`; known devices:\n{known or '    none'}",
            remedy="change `devices.where` or `devices.count`, or connect the devices (`farm devices` lists them)",
        )
    return chosen


def _options(experiment: Experiment) -> dict[str, tuple[Any, ...]]:
    """The optional axes that the experiment lists."""
    frames = experiment.sampling.frames
    return experiment.matrix.options | ({FRAMES.name: (frames,)} if frames > 1 else {})


def _workloads(experiment: Experiment) -> list[Workload]:
    workload, networks = experiment.workload, experiment.matrix.network
    if networks is None:
        return [
            each.model_copy(update=dict.fromkeys(TEXT_AXES)) for each in experiment.every_workload
        ]  # a text's are axes
    if workload.kind != "network":
        raise SpecError(
            f"matrix.network: sweeps built-in networks, but the workload has `{workload.kind}`; remove one of them"
        )
    return [workload.model_copy(update={"network": network}) for network in networks]


def _points(experiment: Experiment) -> Iterator[_Point]:
    options, engines = _options(experiment), experiment.engine or EngineSettings()
    lists = (_workloads(experiment), experiment.matrix.backend, experiment.matrix.precision, *options.values())
    for workload, backend, precision, *values in product(*lists):
        point = _Point(workload, backend, precision, dict(zip(options, values, strict=True)), engines=engines)
        yield from [point] if experiment.sides is None else [point.on(*named) for named in experiment.sides]


def cells_of(experiment: Experiment) -> list[Cell]:
    """Distinct cells in the order of the axes, whatever the devices can run."""
    return _cells(experiment)[0]


def _cells(experiment: Experiment) -> tuple[list[Cell], list[Exclusion]]:
    """Distinct cells; a point that comes to an earlier cell is excluded instead of run twice."""
    cells: dict[str, Cell] = {}
    exclusions = []
    for point in _points(experiment):
        cell = point.cell
        if why := point.conflict:
            exclusions.append(Exclusion.of("", point, why))
        elif cell.cell_id in cells:
            exclusions.append(Exclusion.of("", point, _why_once(point.unused, cell.label)))
        else:
            cells[cell.cell_id] = cell
    return list(cells.values()), exclusions


def _why_once(unused: Mapping[str, str], label: str) -> str:
    """Return why a point is not run beside the cell that it comes to. Points whose same axes make no difference have
    the same words, so that people read them in one line."""
    axes_of: dict[str, list[str]] = {}
    for name, why in unused.items():
        axes_of.setdefault(why, []).append(name)
    told = [f"{', '.join(names)}: {why.replace('means', 'mean', 1) if len(names) > 1 else why}"
            for why, names in axes_of.items()]  # fmt: skip
    once = f"run once without {'them' if len(unused) > 1 else 'it'}"
    return "; ".join([*told, once]) if told else f"the same as `{label}`, which is run once"


def _capable(cell: Cell, devices: list[Device]) -> tuple[list[Device], list[Exclusion]]:
    capable, exclusions = [], []
    for device in devices:
        if reason := _lacks(cell, device):
            exclusions.append(Exclusion.of(device.serial, cell, reason))
        else:
            capable.append(device)
    return capable, exclusions


def _lacks(cell: Cell, device: Device) -> str:
    """Return what a cell needs and the device lacks; empty where it can run."""
    facts = device.facts.api(cell.backend)
    engines = {each.name: each for each in device.engines}
    if cell.engine not in engines:
        has = ", ".join(each.name for each in device.engines if not each.missing)
        near = get_close_matches(cell.engine, engines, n=1)
        hint = f": did you mean `{near[0]}`?" if near else f" (it has {has})"
        return f"its host has no engine `{cell.engine}` for it{hint}"
    if cell.workload.kind not in (takes := engines[cell.engine].takes):
        return f"engine {cell.engine} runs no `{cell.workload.kind}` of a workload (it runs: {', '.join(takes)})"
    if why := engines[cell.engine].why_not(cell.backend, cell.precision):
        return why
    if why := engines[cell.engine].why_no_value(cell.options):
        return why
    if engines[cell.engine].brought and device.facts.abi not in cell.build:
        abi, has = device.facts.abi or "ABI", f" (it has {', '.join(sorted(cell.build))})" if cell.build else ""
        return f"engine {cell.engine} has no folder for {abi}{has}: `farm engines add {cell.engine} FOLDER --abi {abi}`"
    if cell.agent and device.facts.abi not in cell.agent:
        return f"the side has no agent for abi {device.facts.abi or '(unknown)'} (it has {', '.join(cell.agent)})"
    if cell.driver and device.facts.kind != "workstation":
        return "the farm cannot choose a phone's driver: a side with one runs on the farm's own machines alone"
    if not device.facts.apis:
        why = f"{device.state.health}: {device.state.reason}" if device.state.reason else str(device.state.health)
        return f"its APIs are not known ({why})"
    if facts is None:
        return f"the device has no {cell.backend} (it has {', '.join(a.api for a in device.facts.apis)})"
    if cell.precision not in facts.precisions:
        offered = ", ".join(facts.precisions)
        return f"the device's {cell.backend} has no {cell.precision} (it has {offered})"
    return ""


def _candidates(cell: Cell, capable: list[Device], count: int | str) -> tuple[list[tuple[str, ...]], list[Exclusion]]:
    """Candidate serials of each job of one block, and who is not needed."""
    serials = [device.serial for device in capable]
    if count == "any":
        return ([tuple(serials)] if serials else []), []
    if count == "all":
        return [(serial,) for serial in serials], []
    assert isinstance(count, int)
    reason = f"devices.count is {count}, and other capable devices come first"
    return [(s,) for s in serials[:count]], [Exclusion.of(s, cell, reason) for s in serials[count:]]
