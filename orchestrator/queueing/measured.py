"""Service times from the ledger: what was measured of one cell on one device, instead of a stated distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.errors import NoData, NotComparable
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome, Record

from .spec import Answer, Distribution, LedgerCell, QueueingSpec, RequestClass, Samples, Service

NS_PER_S = 1e9


@dataclass(frozen=True)
class TimesUsed:
    """The source of a class's service times."""

    of_class: str
    server: str | None
    """The group whose own they are; None: every server's."""
    experiment: str
    cell: str
    device: str
    source: str
    samples: int
    what: str = "latencies"
    """The samples: `latencies`, or blocks of answers."""


def fill_times(
    spec: QueueingSpec, ledger: Ledger, find: Callable[[str], ExperimentRow]
) -> tuple[QueueingSpec, list[TimesUsed]]:
    """The spec with the samples that it asks of the ledger; `find` knows experiments by id or name.

    Raises NoData where the ledger has none, NotComparable where they are of several cells or devices.
    """
    used: list[TimesUsed] = []

    def answered(times: Answer, of_class: str) -> Answer:
        """The same with the speeds of measured answers: medians over blocks. Speeds of n texts side by side are those
        of all together: each of n takes n times as long for a token, and alone as `batch` has one of n."""
        assert times.ledger is not None
        row = find(times.ledger.experiment)
        blocks = {(each.job_id, each.attempt): _speeds(each.values) for each in ledger.figures(row.id)}

        def speeds(of: Record) -> tuple[float, ...]:
            return blocks.get((of.job_id, of.attempt), ()) if of.outcome == Outcome.OK else ()

        records, cell = records_of(ledger, row.id, times.ledger, f"class {of_class}", lambda each: bool(speeds(each)))
        prompt_per_s, per_s = (median(own) for own in zip(*map(speeds, records), strict=True))
        texts, most = cell.text.batch if cell.text else 1, spec.batch.size
        if texts > most:
            what = (
                f"class {of_class}: {row.id} has answers of {texts} texts side by side, and `batch` has {most} at most"
            )
            raise NotComparable(what, remedy=f"serve as many, `batch: {{size: {texts}}}`, or name answers of one text")
        each_s = texts / spec.batch.cost(texts)
        device, source = records[0].device, str(records[0].source)
        used.append(
            TimesUsed(of_class, None, row.id, cell.workload.label, device.serial, source, len(records), "blocks")
        )
        known = {"ledger": None, "prompt_token": each_s / prompt_per_s, "token": each_s / per_s}
        return times.model_copy(update=known)

    def of_class(each: RequestClass) -> Service | None:
        if isinstance(each.service, Answer):
            return answered(each.service, each.name) if each.service.ledger is not None else each.service
        return filled(each.service, each.name, None)

    def filled(times: Distribution | None, of_class: str, server: str | None) -> Distribution | None:
        if not isinstance(times, Samples) or times.ledger is None:
            return times
        row = find(times.ledger.experiment)
        records, cell = records_of(ledger, row.id, times.ledger, f"class {of_class}", lambda each: bool(_timed_s(each)))
        values = tuple(value for record in records for value in _timed_s(record))
        serial, source = records[0].device.serial, str(records[0].source)
        used.append(TimesUsed(of_class, server, row.id, cell.workload.label, serial, source, len(values)))
        return Samples(kind="samples", values_s=values)

    classes = tuple(each.model_copy(update={"service": of_class(each)}) for each in spec.classes)
    servers = tuple(
        group.model_copy(update={"service": {of: filled(own, of, group.name) for of, own in group.service.items()}})
        for group in spec.servers
    )
    return spec.model_copy(update={"classes": classes, "servers": servers}), used


def records_of(
    ledger: Ledger, experiment_id: str, of: LedgerCell, who: str, usable: Callable[[Record], bool]
) -> tuple[list[Record], Cell]:
    """Usable blocks of one cell on one device, oldest first, and the cell.

    Raises NoData where there are none, NotComparable where they are of several cells or devices.
    """
    cells = {cell_id: cell for cell_id, cell in ledger.cells(experiment_id).items() if _fits(cell, of)}
    found = [
        record
        for record in ledger.records(experiment_id, outcomes=[Outcome.OK, Outcome.INVALID], serial=of.device)
        if record.cell_id in cells and record.role == "work" and usable(record)
    ]
    if not found:
        raise NoData(
            f"{who}: {experiment_id} has no latencies of {_told(of)}",
            remedy="`farm results` shows what it has (means of several inferences are none); `where` names network, "
            "backend, precision or an axis",
        )
    several = sorted({record.device.serial for record in found}), sorted({record.cell_id for record in found})
    if max(map(len, several)) > 1:
        devices = ", ".join(several[0])
        raise NotComparable(
            f"{who}: {experiment_id} has {len(several[1])} configurations on {devices} that fit {_told(of)}",
            remedy="name one device and one configuration: `device: SERIAL`, `where: {network: ..., backend: ...}`",
        )
    return found, cells[found[0].cell_id]


def _speeds(values: Mapping[str, float]) -> tuple[float, ...]:
    """Tokens a second of prompt and answer, where a block has both."""
    found = values.get("prompt tokens", 0.0), values.get("generated tokens", 0.0)
    return found if all(found) else ()


def _timed_s(record: Record) -> list[float]:
    """Timed latencies in seconds, where the block counts."""
    if record.outcome != Outcome.OK:
        return []
    return [
        sample.duration_ns / NS_PER_S
        for sample in record.samples
        if sample.phase == "timed" and sample.runs == 1 and sample.duration_ns > 0
    ]


def _fits(cell: Cell, of: LedgerCell) -> bool:
    columns = {
        "network": cell.workload.label,
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **{name: str(value) for name, value in cell.options.items()},
    }
    return all(columns.get(name) == str(value) for name, value in of.where.items())


def _told(of: LedgerCell) -> str:
    where = ", ".join(f"{name} {value}" for name, value in of.where.items()) or "any configuration"
    return f"{where} on {of.device or 'any device'}"
