"""Records as an experiment leaves them, made to order, and what statistics and reports make of their figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import PrivateAttr

from orchestrator.analysis.comparison.one_thread import with_gains
from orchestrator.analysis.statistics import Mode, Summary, newest_attempts, summarise
from orchestrator.figures import BlockFigures, figures_of
from orchestrator.model.device import Api, ApiFacts, DeviceFacts, Precision, Source
from orchestrator.model.event import Layer, Memory, Phase, Power, Sample, Setup
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.model.job import Cell
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.record import Doubt, DoubtCode, Outcome, Provenance, Record, RunsOn
from orchestrator.report.content import Content, build

MS = 1_000_000


def cell(backend: Api = Api.OPENCL, precision: Precision = Precision.FP32, network: str = "lenet") -> Cell:
    return Cell(workload=Workload(network=network), backend=backend, precision=precision)


def experiment(name: str = "first", description: str = "") -> Experiment:
    return Experiment(name=name, description=description, workload=Workload(network="lenet"))


def record(
    of: Cell,
    timed_ms: Sequence[float],
    *,
    block: int = 0,
    serial: str = "phone-1",
    token: int = 1,
    outcome: Outcome = Outcome.OK,
    source: Source = Source.VIRTUAL,
    model: str = "SM-G930F",
    driver: str = "PoCL 3.1",
    detail: str = "",
    reasons: tuple[str, ...] = (),
) -> Record:
    """A record of one block: one warm-up that is slower than everything, then the timed samples."""
    durations = [int(value * MS) for value in (10 * max(timed_ms, default=1.0), *timed_ms)]
    starts = [sum(durations[:i]) for i in range(len(durations))]
    samples = tuple(
        Sample(seq=i, t_ns=s, index=i, phase="timed" if i else "warmup", start_ns=s, duration_ns=d)
        for i, (s, d) in enumerate(zip(starts, durations, strict=True))
    )
    facts = ApiFacts(
        api=of.backend, version="OpenCL 3.0", device_name="pthread-x", driver=driver, library="libOpenCL.so"
    )
    return Record(
        experiment_id="e-1",
        job_id=f"{serial}-{of.cell_id}-{block}",
        cell_id=of.cell_id,
        block=block,
        attempt=1,
        token=token,
        worker="w",
        device=DeviceFacts(serial=serial, host="h", kind="phone", source=source, model=model),
        source=source,
        outcome=outcome,
        reasons=reasons,
        started_at=1000.0 + token,
        ended_at=1001.0 + token,
        runs_on=RunsOn(api=of.backend, precision=of.precision, facts=facts),
        setup=(
            Setup(seq=0, t_ns=0, step="context", start_ns=0, duration_ns=2 * MS),
            Setup(seq=1, t_ns=0, step="build", start_ns=0, duration_ns=30 * MS),
            Setup(seq=2, t_ns=0, step="build", start_ns=0, duration_ns=10 * MS),
        ),
        samples=samples,
        layers=(Layer(seq=0, t_ns=0, index=0, layer="conv1", program="conv_direct", duration_ns=3 * MS),),
        power=(Power(seq=0, t_ns=0, current_ua=-500_000, voltage_uv=4_000_000),) * 2,
        memory=Memory(seq=0, t_ns=0, device_bytes=1, device_peak_bytes=2**20, vm_hwm_bytes=2**22, vm_rss_bytes=1),
        provenance=Provenance(program_hash=of.cell_id, agent_sha256="f" * 64, fingerprint="brand/model:8.0"),
        doubts=(Doubt(code=DoubtCode.VIRTUAL_DEVICE, detail=detail),),
    )


def powered(
    of: Record,
    idle_w: float,
    load_w: float,
    *,
    each_s: float = 30.0,
    calibrated: bool = True,
    noise: Sequence[float] = (),
) -> Record:
    """The record with rests of this power before and after a load whose inferences fill it; a reading every 0.1 s."""
    start_ns, step_ns = 10**12 + of.token * 10**11, int(each_s * 1e9)
    ends = [start_ns + (i + 1) * step_ns for i in range(3)]
    names = ("idle_before", "load", "idle_after")
    phases = tuple(
        Phase(seq=i, t_ns=end, phase=name, start_ns=end - step_ns, end_ns=end)
        for i, (name, end) in enumerate(zip(names, ends, strict=True))
    )
    times = range(start_ns, ends[-1] + 1, 100 * MS)
    jitter = [noise[i % len(noise)] if noise else 0.0 for i in range(len(times))]
    watts = [(load_w if ends[0] <= t < ends[1] else idle_w) + extra for t, extra in zip(times, jitter, strict=True)]
    power = tuple(
        Power(seq=i, t_ns=t, current_ua=-round(w / 4 * 1e6), voltage_uv=4_000_000, status="Discharging")
        for i, (t, w) in enumerate(zip(times, watts, strict=True))
    )
    timed = [sample.duration_ns for sample in of.samples if sample.phase == "timed"]
    starts = [ends[0] + i * (step_ns // len(timed)) for i in range(len(timed))]
    samples = tuple(
        Sample(seq=i, t_ns=s, index=i, phase="timed", start_ns=s, duration_ns=d)
        for i, (s, d) in enumerate(zip(starts, timed, strict=True))
    )
    gauge = GaugeCalibration(refresh_ns=100 * MS, gain_uncertainty=0.02, absolute=True, method="meter x")
    return of.model_copy(
        update={"phases": phases, "power": power, "samples": samples, "gauge": gauge if calibrated else None}
    )


def trained(
    of: Record,
    stages: Mapping[str, tuple[int, float, float]],
    *,
    idle_w: float,
    gap_s: float = 0.0,
    rest_s: float = 30.0,
) -> Record:
    """The record as of a training: of each stage its epochs, the seconds of one, and the power above idle; an epoch
    begins `gap_s` after the one before, at the same power."""
    start_ns = now_ns = 10**12 + of.token * 10**11 + int(rest_s * 1e9)
    samples, edges = [], [(start_ns, 0.0)]
    for name, (epochs, each_s, net_w) in stages.items():
        edges.append((now_ns, net_w))
        for epoch in range(epochs):
            samples.append(
                Sample(seq=len(samples), t_ns=now_ns, index=len(samples), phase="timed", start_ns=now_ns,
                       duration_ns=int(each_s * 1e9), stage=name, epoch=epoch, loss=1.0)
            )  # fmt: skip
            now_ns += int((each_s + gap_s) * 1e9)
    end_ns, rest_ns = now_ns, int(rest_s * 1e9)
    spans = (("idle_before", start_ns - rest_ns, start_ns), ("load", start_ns, end_ns),
             ("idle_after", end_ns, end_ns + rest_ns))  # fmt: skip
    watts = [(at, idle_w + (next(w for edge, w in reversed(edges) if edge <= at) if start_ns <= at < end_ns else 0.0))
             for at in range(start_ns - rest_ns, end_ns + rest_ns + 1, 20 * MS)]  # fmt: skip
    phases = [Phase(seq=0, t_ns=end, phase=name, start_ns=start, end_ns=end) for name, start, end in spans]  # type: ignore[arg-type]
    power = [Power(seq=0, t_ns=at, current_ua=-round(w / 4 * 1e6), voltage_uv=4_000_000, status="Discharging")
             for at, w in watts]  # fmt: skip
    gauge = GaugeCalibration(refresh_ns=20 * MS, gain_uncertainty=0.02, absolute=True, method="meter x")
    return of.model_copy(
        update={"phases": tuple(phases), "power": tuple(power), "samples": tuple(samples), "gauge": gauge}
    )


def figures(records: Iterable[Record], cells: Mapping[str, Cell], mode: Mode = "steady") -> list[BlockFigures]:
    """Return figures as the ledger keeps them beside the records."""
    return [figures_of(each, cells[each.cell_id], sustained=mode == "sustained") for each in records]


def summarised(records: Iterable[Record], cells: Mapping[str, Cell], mode: Mode = "steady") -> list[Summary]:
    """Return summaries as reports have them."""
    blocks = figures(records, cells, mode)
    return with_gains(summarise(blocks, cells, mode=mode), blocks, cells)


class Whole(Content):
    """A report's content with the raw records behind it."""

    _records: tuple[Record, ...] = PrivateAttr(())

    @property
    def records(self) -> tuple[Record, ...]:
        """The record that counts of each job, oldest first."""
        return self._records


def built(name: str, of: Experiment, *, cells: Mapping[str, Cell], records: Sequence[Record], **more: Any) -> Whole:
    content = build(name, of, cells=cells, blocks=figures(records, cells, of.sampling.mode), **more)
    whole = Whole(**{field: getattr(content, field) for field in Content.model_fields})
    whole._records = tuple(sorted(newest_attempts(records), key=lambda each: (each.started_at, each.job_id)))
    return whole


def steps_of(spent_ms: Mapping[str, float], *, cached: bool = False) -> tuple[Setup, ...]:
    """Set-up events of these steps; `cached`: what was built was found in a cache."""
    return tuple(
        Setup(seq=i, t_ns=0, step=step, start_ns=0, duration_ns=int(ms * MS), cached=cached and step == "build")  # type: ignore[arg-type]
        for i, (step, ms) in enumerate(spent_ms.items())
    )
