"""Find our counterpart of a published figure on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from math import fsum, inf
from statistics import fmean, median
from typing import Any, NamedTuple

from kernels.frontend.networks import BUILT_IN
from orchestrator.analysis.best import Best, choose, measured_layers, measured_runs
from orchestrator.analysis.comparison.metrics import METRICS
from orchestrator.analysis.comparison.ratio import Block, Estimate, estimate
from orchestrator.analysis.comparison.rows import nights_of
from orchestrator.analysis.limits import Limit
from orchestrator.analysis.statistics import Mode, block_value_ms, newest_attempts
from orchestrator.figures import NS_PER_MS, BlockFigures
from orchestrator.figures.one_block import frames_per_s, is_short, total_setup_ms
from orchestrator.model.axes import settings
from orchestrator.model.errors import NoData, NotComparable, UnknownName
from orchestrator.model.job import Cell
from orchestrator.model.power import SHORTEST_LOAD_S
from orchestrator.model.quantity import counted
from orchestrator.model.record import DoubtCode, Outcome

from .figure import OurDevice
from .judgement import Bounds

Keys = Mapping[str, Any]


class Ours(NamedTuple):
    """Our counterpart of a published figure, in our units; the reason where there is none."""

    value: float | None
    blocks: Sequence[Block] = ()
    cell: str = ""
    why_not: str = ""


class Finder:
    """The blocks of one experiment that went well, by device and cell."""

    def __init__(
        self, blocks: Iterable[BlockFigures], cells: Mapping[str, Cell], mode: Mode, limits: Sequence[Limit] = ()
    ) -> None:
        self._cells, self._mode, self._limits = cells, mode, limits
        work = [block for block in newest_attempts(blocks) if block.role == "work"]
        ordered = sorted(work, key=lambda block: (block.experiment_id, block.serial, block.started_at, block.token))
        good = [(block, night) for block, night in zip(ordered, nights_of(ordered), strict=True)]
        self._good = [(block, night) for block, night in good if block.outcome is Outcome.OK]
        self.devices = list(dict.fromkeys(OurDevice(b.serial, b.source.value, b.model) for b, _ in self._good))

    def measured(self, metric: str, device: OurDevice, keys: Keys) -> Ours:
        """Return the least figure of the cells that have the keys; of limits the largest."""
        if metric in ("limit", "limit_time"):
            return self._limit(metric, device, keys)
        found = self._least(metric, device, keys)
        if metric == "net_power" and any(block.trained for block, _ in self._good):
            joules, took = self._least("energy", device, keys), self._least("latency", device, keys)
            if joules.value and took.value and joules.cell == took.cell:
                return found._replace(value=1e3 * joules.value / took.value)  # of the energy and time beside it
        return found

    def bounds(self, device: OurDevice) -> Bounds | None:
        """Return the bounds of a device's largest limit; None where no search has found one."""
        memory = {
            block.runs_on.facts.global_bytes
            for block, _ in self._good
            if (block.serial, block.source.value) == device[:2] and block.runs_on and block.runs_on.facts
        }
        own = [one for one in self._limits if one.serial == device.serial and one.over and one.largest]
        if not own or not memory:
            return None
        best = max(own, key=lambda one: one.largest.value if one.largest else 0)
        return Bounds(
            max(memory), best.largest.value if best.largest else 0, best.smallest.value if best.smallest else inf
        )

    def gain(self, metric: str, device: OurDevice, keys: Keys, over: Keys, other: OurDevice) -> tuple[Ours, Ours]:
        """Two figures of which the second over the first says how many times as good it is; of networks with `*` one,
        and the mean of how many times that is with each of all such networks."""
        pattern = str(keys.get("network", ""))
        names = [name for name in BUILT_IN if fnmatchcase(name, pattern)] if "*" in pattern else []
        if not names:
            return self.measured(metric, device, keys), self.measured(metric, other, over)
        pairs = [
            (
                self._least(metric, device, {**keys, "network": one}),
                self._least(metric, other, {**over, "network": one}),
            )
            for one in names
        ]
        had = [(fast, slow) for fast, slow in pairs if fast.value and slow.value]
        if len(had) < len(names):
            of = f"a mean over {counted(len(names), 'network')}, of which ours has {len(had)}"
            return Ours(None, why_not=of), Ours(None)
        rounds = [_by_round(fast, slow) for fast, slow in had]
        shared = [key for key in rounds[0] if all(key in each for each in rounds)]
        means = [rounds[0][key][0]._replace(value=fmean(each[key][1] for each in rounds)) for key in shared]
        mean = fmean((slow.value or 0) / (fast.value or 1) for fast, slow in had)
        ones = [each._replace(value=1.0) for each in means]
        return Ours(1.0, ones, counted(len(names), "network")), Ours(mean, means)

    def best(self, device: OurDevice, keys: Keys, axis: str) -> Best | str:
        """The best value of an axis with all others, or why there is none."""
        own = [block for block, _ in self._good if (block.serial, block.source.value) == device[:2]]
        if "layer" not in keys:
            own = [block for block in own if not _in_parts(block)]
        found = measured_layers(own, self._cells) if "layer" in keys else measured_runs(own, self._cells, self._mode)
        fitting = [one for one in found if _has(one.columns, keys) and axis in one.columns]
        try:
            (best,) = choose(fitting, ("device",), axis, {}) if fitting else (None,)
        except (NotComparable, NoData, UnknownName) as e:
            return str(e)
        if best is None:
            told = (block.per_layer.refused.get(str(keys.get("layer"))) for block in own if block.per_layer)
            of_layer = f" of layer {keys['layer']}" if "layer" in keys else ""
            return next(filter(None, told), f"no {axis} was measured{of_layer}")
        return best if best.runner_up is not None else f"only {axis}={best.best} was measured"

    def _limit(self, metric: str, device: OurDevice, keys: Keys) -> Ours:
        words = {str(keys[name]) for name in ("backend", "precision") if name in keys}
        own = [one for one in self._limits if one.serial == device.serial and words <= set(one.label.split())]
        found = {one.largest.value: (one.label, one.largest) for one in own if one.over and one.largest is not None}
        if not found:
            return Ours(None, why_not="not known yet" if own else "no such limit was searched")
        label, largest = found[max(found)]
        return Ours(float(largest.value) if metric == "limit" else largest.median_ms, cell=label)

    def _least(self, metric: str, device: OurDevice, keys: Keys) -> Ours:
        read = self._reader(metric, str(keys.get("layer", "")))
        found: dict[str, list[Block]] = {}
        cells = {name: cell for name, cell in self._cells.items() if _has(_columns(cell), keys, but=("layer",))}
        why = ""
        for block, night in self._good:
            if (block.serial, block.source.value) == device[:2] and block.cell_id in cells:
                whole = metric in WHOLE and ("layer" not in keys or metric == "share")
                if whole and (parts := _in_parts(block)):
                    why = parts
                    continue
                if metric in LOADED and block.energy and is_short(block.energy):
                    why = f"a load of {block.energy.load_s:.3g} s is too short: energy needs {SHORTEST_LOAD_S:g} s"
                    continue
                value = read(block)
                if value is not None and value > 0:
                    found.setdefault(block.cell_id, []).append(Block(night, block.block, block.started_at, value))
                elif metric in POWERED and any(each.code is DoubtCode.NO_POWER_GAUGE for each in block.doubts):
                    why = f"{device.serial} has no power source"
        if len({cells[name].workload.label for name in found}) > 1:
            return Ours(None, why_not="several networks were measured, and the figure names none")
        if not found:
            return Ours(
                None, why_not=why or ("not measured" if cells else "no configuration of this experiment is that")
            )
        best = min(found, key=lambda name: _median(found[name]))
        return Ours(_median(found[best]), found[best], cells[best].label)

    def _reader(self, metric: str, layer: str) -> Callable[[BlockFigures], float | None]:
        if metric == "share":
            return partial(_share, pattern=layer)
        if metric == "latency":
            return partial(_asked_layers_ms, pattern=layer) if layer else partial(_time_ms, mode=self._mode)
        return READERS[metric]


def ratio(a: Ours, b: Ours) -> Estimate | None:
    """Estimate b over a, by the estimator of `farm compare`; None where blocks are too few for one."""
    return estimate(a.blocks, b.blocks, METRICS["latency"].between) if a.blocks and b.blocks else None


def _time_ms(block: BlockFigures, mode: Mode) -> float | None:
    if block.trained:
        return block.trained.whole.epoch_ms if block.trained.whole else None
    if block.stream:
        rate = frames_per_s(block)
        return 1000 / rate if rate else None
    return block_value_ms(block, mode)


def _layers_ms(block: BlockFigures, pattern: str) -> float | None:
    layers = block.per_layer.layers if block.per_layer else {}
    wanted = pattern.split("|")
    times = [time.mean_ms for name, time in layers.items() if any(fnmatchcase(name, one) for one in wanted)]
    return fsum(times) if times else None


def _asked_layers_ms(block: BlockFigures, pattern: str) -> float | None:
    """None where one of them is not computed as it was asked for."""
    refused = block.per_layer.refused if block.per_layer else {}
    own = (fnmatchcase(name, one) for name in refused for one in pattern.split("|"))
    return None if any(own) else _layers_ms(block, pattern)


def _share(block: BlockFigures, pattern: str) -> float | None:
    own, whole = _layers_ms(block, pattern), _layers_ms(block, "*")
    return 100 * own / whole if own and whole else None


CALL = ("allocate", "descriptors", "record", "input", "readback")
"""Steps of the set-up that depend on an input, in study P's words; weights (`upload`) do not."""


def _call_ms(block: BlockFigures, *, inference: bool) -> float | None:
    steps = fsum(block.setup_ns.get(name, 0) for name in CALL) / NS_PER_MS
    took = block.times.median_ms if block.times else None
    return None if not block.setup_ns or took is None else steps + (took if inference else 0.0)


def _energy_j(block: BlockFigures) -> float | None:
    if block.trained:
        return block.trained.whole.epoch_j if block.trained.whole else None
    of = block.energy and (block.energy.per_inference_j or block.energy.gross_per_inference_j)
    return of.value if of else None


def _net_power_w(block: BlockFigures) -> float | None:
    if block.trained:
        return block.trained.whole.net_power_w if block.trained.whole else None
    if not block.energy or not block.energy.idle_power_w:
        return None
    return block.energy.load_power_w.value - block.energy.idle_power_w.value


def _unit_ms(block: BlockFigures, name: str) -> float | None:
    per_s = block.values.get(name)
    return 1e3 / per_s if per_s else None


def _speed_left(values: Mapping[str, float]) -> float | None:
    return 100 * values["sustained"] / values["plateau"] if values.keys() >= {"sustained", "plateau"} else None


WHOLE = ("latency", "energy", "share")
"""Metrics of which a sum of some layers is no figure of the network."""
LOADED = ("energy", "load_power", "net_power")
POWERED = (*LOADED, "idle_power")


PARTS = (DoubtCode.LAYERS_MISSING, DoubtCode.LAYERS_REFUSED)


def _in_parts(block: BlockFigures) -> str:
    """Return why a block's time is not that of its network as it was asked for; empty where it is."""
    first, more, _ = next((each.detail for each in block.doubts if each.code in PARTS), "").partition("; ")
    return f"{first}, and other layers" if more else first


READERS: Mapping[str, Callable[[BlockFigures], float | None]] = {
    "setup": lambda block: total_setup_ms(block) if block.setup_ns else None,
    "call": partial(_call_ms, inference=True),
    "call_setup": partial(_call_ms, inference=False),
    "psnr": lambda block: block.psnr_db,
    "energy": _energy_j,
    "load_power": lambda block: block.energy.load_power_w.value if block.energy else None,
    "idle_power": lambda block: block.energy.idle_power_w.value if block.energy and block.energy.idle_power_w else None,
    "net_power": _net_power_w,
    "memory": lambda block: float(block.memory.device_peak_bytes) if block.memory else None,
    "token": partial(_unit_ms, name="generated tokens"),
    "prompt_token": partial(_unit_ms, name="prompt tokens"),
    "first_token": lambda block: block.values.get("first token"),
    "plateau_token": partial(_unit_ms, name="plateau"),
    "sustained_token": partial(_unit_ms, name="sustained"),
    "speed_left": lambda block: _speed_left(block.values),
}
"""The readers of each metric's figure from a block, in our units."""


def _columns(cell: Cell) -> dict[str, Any]:
    named = {"network": cell.workload.label, "backend": str(cell.backend), "precision": str(cell.precision)}
    return {**named, **cell.options}


def _has(columns: Mapping[str, Any], keys: Keys, but: Sequence[str] = ()) -> bool:
    full = settings(columns)
    return all(str(full.get(name)) == str(value) for name, value in keys.items() if name not in ("device", *but))


def _median(blocks: Sequence[Block]) -> float:
    return median(block.value for block in blocks)


def _by_round(fast: Ours, slow: Ours) -> dict[tuple[str, int], tuple[Block, float]]:
    """A block of each round that both have, and how many times the first was as fast there."""
    other = {(block.night, block.round): block.value for block in slow.blocks}
    own = {(block.night, block.round): block for block in fast.blocks}
    return {key: (block, other[key] / block.value) for key, block in own.items() if key in other}
