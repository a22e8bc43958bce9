"""The split of a network between GPU and CPU that takes least time on one device, measured there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from kernels.compile.cheapest import Division, Tensor, Times, divided, tensors
from kernels.ir.graph import Graph
from kernels.ir.placement import NOTHING, owners, words_of
from kernels.options import Options
from orchestrator.model.device import Api, DeviceFacts, Precision
from orchestrator.model.errors import AgentFault, Unsupported
from orchestrator.system.config import Settings
from workers.engines.pocketfarm.plans.compiler_options import limits_of
from workers.engines.pocketfarm.plans.tuned_choices import TunedChoices
from workers.infer import LOCK_WAIT_S, find_member
from workers.session.session import session

from .bench import Bench, go_on
from .plan_comparison import PASSES, SAMPLES, Change, PlanRun, change_of, samples_of

ROUNDS = 12
"""Runs of the split, of the GPU alone and of the CPU alone: G S C, C S G, G S C ... so that a drift cancels."""
PROFILED = 3
"""Runs of either side alone in which each layer is timed, in turn."""
TRIES = 5
"""Splits that are measured at most, each the cheapest by what was learnt so far of transfers."""

Transfer = tuple[float, float]
"""Milliseconds of any, and of a byte."""
Run = Callable[[str], PlanRun]
"""Value of `on_cpu`, or `CPU`, -> one run in a process of its own."""
CPU = "cpu"
"""All of the network on the CPU, in the words of this module."""


@dataclass(frozen=True)
class Try:
    """A split that was measured once, as it was searched."""

    on_cpu: str
    expected_ms: float
    ms: float


@dataclass(frozen=True)
class Split:
    """The result of the search and the comparison."""

    device: DeviceFacts
    tries: tuple[Try, ...]
    on_cpu: str
    """The fastest of them, as a value of the axis."""
    split_ms: float
    gpu_ms: float
    cpu_ms: float
    over_gpu: Change
    """The change from the GPU alone to the split."""
    over_cpu: Change
    cpu_over_gpu: Change
    """The change from the GPU alone to the CPU alone."""
    times: Mapping[str, Times]
    """The times of the layers that were placed, from which the splits were calculated."""
    transfer_ms: float
    """The time of a transfer, whatever its size; learnt from the splits that were measured."""
    transfer_ms_per_mb: float

    @property
    def gains(self) -> bool:
        """True if both intervals say so."""
        return self.over_gpu.high < 0 and self.over_cpu.high < 0

    @property
    def fastest(self) -> str:
        """`split`, `gpu` or `cpu`, where that is told from the two others beyond noise; empty where it is not."""
        if self.gains:
            return "split"
        if self.over_gpu.low > 0 and self.cpu_over_gpu.low > 0:
            return "gpu"
        return "cpu" if self.over_cpu.low > 0 and self.cpu_over_gpu.high < 0 else ""


def split_on(
    *,
    device: str | None,
    graph: Graph,
    options: Options,
    settings: Settings,
    report: Callable[[str, int, int], None] = lambda *_: None,
) -> Split:
    """Time each layer on both sides, calculate the cheapest split, measure it, and compare it with either side alone.

    `device`: a serial or an adb address; None: this host. `report`: what is done, how much of it, of how much. Raises
    DeviceBusy, Unsupported (also where a network has one layer to place), AgentFault where outputs are wrong, the
    transient errors and those of the compiler.
    """
    api = Api(options.backend)
    member = find_member(device, api, settings)
    limits = limits_of(member.facts, api, Precision(options.precision))
    known = TunedChoices(settings.state)
    gpu = known.options(options, limits, member.facts, lambda: graph)
    cpu = Options("cpu", threads=options.threads)
    with (
        tempfile.TemporaryDirectory(prefix="pocketfarm-split-") as scratch,
        session(member, None, settings.state, go_on, lock_wait_s=LOCK_WAIT_S),
    ):
        bench = Bench(member, graph, gpu, limits, settings.state / "cache" / "spirv", Path(scratch))

        def run(on_cpu: str, samples: int, passes: int) -> PlanRun:
            found = bench.network(cpu if on_cpu == CPU else replace(gpu, on_cpu=on_cpu), samples, passes)
            if found.wrong:
                raise AgentFault(f"with `on_cpu: {on_cpu}` it computes wrongly: {found.wrong[0]}")
            return found

        samples = max(samples_of(run(side, SAMPLES[0], 0)) for side in (NOTHING, CPU))
        search = _Search(graph, lambda on_cpu: run(on_cpu, samples, PASSES), report)
        best = search.best().on_cpu
        rounds: dict[str, list[float]] = {NOTHING: [], best: [], CPU: []}
        for number in range(ROUNDS):
            report("the split, the GPU alone and the CPU alone", number, ROUNDS)
            for on_cpu in rounds if number % 2 == 0 else reversed(rounds):
                rounds[on_cpu].append(median(run(on_cpu, samples, 0).samples_ms))
    fixed, per_byte = search.transfer

    def change(before: str, after: str) -> Change:
        return change_of(list(zip(rounds[before], rounds[after], strict=True)))

    return Split(
        device=member.facts,
        tries=tuple(search.tries),
        on_cpu=best,
        split_ms=median(rounds[best]),
        gpu_ms=median(rounds[NOTHING]),
        cpu_ms=median(rounds[CPU]),
        over_gpu=change(NOTHING, best),
        over_cpu=change(CPU, best),
        cpu_over_gpu=change(NOTHING, CPU),
        times=search.times,
        transfer_ms=fixed,
        transfer_ms_per_mb=per_byte * 1e6,
    )


class _Search:
    """Transfers are free until a split was measured, so none is missed; each that was makes them better known."""

    def __init__(self, graph: Graph, run: Run, report: Callable[[str, int, int], None]) -> None:
        self._graph, self._run, self._report = graph, run, report
        self._tensors = tensors(graph)
        self.tries: list[Try] = []
        self._transfers = [(0.0, 0.0)]
        self._extra: list[tuple[int, int, float]] = []
        report("each layer on both sides", 0, TRIES + 1)
        runs = [(run(NOTHING), run(CPU)) for _ in range(PROFILED)]
        self.times = layer_times(graph, *zip(*runs, strict=True))
        if len(self.times) < 2:
            raise Unsupported(
                f"{graph.name} has one layer to place: there is nothing to split", remedy="compare the two backends"
            )

    def best(self) -> Try:
        """Ends where the cheapest split was measured already, however the splits' extra time is explained: what costs
        more both if transfers cost by number and if they cost by bytes costs more by every mixture of the two."""
        for number in range(TRIES):
            known = {each.on_cpu for each in self.tries}
            divisions = [divided(self.times, self._tensors, partial(_cost, by))[1] for by in self._transfers]
            new = ((words, each) for each in divisions if (words := words_of(self._graph, each.on_cpu)) not in known)
            words, division = next(new, ("", divisions[0]))
            if not words:
                break
            self._report(words, number + 1, TRIES + 1)
            self._measure(words, division)
        return min(self.tries, key=lambda each: each.ms)

    @property
    def transfer(self) -> Transfer:
        """The known cost of one transfer."""
        return self._transfers[0]

    def _measure(self, words: str, division: Division) -> None:
        ms = median(self._run(words).samples_ms)
        self.tries.append(Try(words, division.ms, ms))
        moved = [each.bytes for each in self._tensors if _crosses(each, division)]
        layers = sum(each.cpu if name in division.on_cpu else each.gpu for name, each in self.times.items())
        if moved:
            self._extra.append((len(moved), sum(moved), max(0.0, ms - layers)))
            self._transfers = [fitted(self._extra, each) for each in EXPLAINED_BY]


def _crosses(tensor: Tensor, division: Division) -> bool:
    return any((reader in division.on_cpu) != (tensor.maker in division.on_cpu) for reader in tensor.readers)


def layer_times(graph: Graph, gpu: Sequence[PlanRun], cpu: Sequence[PlanRun]) -> dict[str, Times]:
    """Return times of what is placed as one, by the layer that decides; scaled to a frame's time on either side.

    Of several runs the fastest counts, of each layer too: what else the device does makes no layer faster.
    """
    beside = owners(graph)
    sides = []
    for runs in (gpu, cpu):
        own = dict.fromkeys(dict.fromkeys(beside.values()), 0.0)
        for layer in runs[0].layers_ms.keys() & beside.keys():
            own[beside[layer]] += min(run.layers_ms[layer] for run in runs)
        scale = min(median(run.samples_ms) for run in runs) / (sum(own.values()) or 1.0)
        sides.append({layer: ms * scale for layer, ms in own.items()})
    return {layer: Times(sides[0][layer], sides[1][layer]) for layer in sides[0]}


def _cost(by: Transfer, size: int) -> float:
    fixed, per_byte = by
    return fixed + per_byte * size


EXPLAINED_BY = ((0, 1), (0,), (1,))
"""The number of transfers and their bytes, or one of the two."""


def fitted(extra: Sequence[tuple[int, int, float]], by: tuple[int, ...] = (0, 1)) -> Transfer:
    """A transfer's time from (transfers, bytes, ms of all) of splits: least squares, neither part below zero; of the
    solutions of one split the smallest. `by`: what explains them."""
    rows = np.array(extra, dtype=float)
    units = rows[:, :2].mean(axis=0)
    ways = []
    for columns in (by, (0,), (1,)):
        found = np.zeros(2)
        found[list(columns)] = np.linalg.lstsq((rows[:, :2] / units)[:, columns], rows[:, 2], rcond=None)[0]
        if (found >= 0).all():
            error = np.square(rows[:, :2] / units @ found - rows[:, 2]).sum()
            ways.append((float(error), *map(float, found / units)))
        if columns == by and ways:
            break
    _, fixed, per_byte = min(ways)
    return fixed, per_byte
