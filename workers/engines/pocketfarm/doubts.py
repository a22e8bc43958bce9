"""Find doubts about a block that only our own engine can have: in the agent's events, and in how its plan was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.model.event import Event, Output, Sample, Warning
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode, LayerMemory, OutputCheck
from workers.engines.models import rounding_doubts

IN_THE_AGENTS_WORDS = (DoubtCode.NOT_WARM, DoubtCode.LAYERS_MISSING)
"""A warm-up that never became stable; a recording of some layers."""
DOUBTS = {
    code.value: code.remedy
    for code in (
        *(DoubtCode.NON_FINITE_OUTPUT, DoubtCode.DIVERGED, *IN_THE_AGENTS_WORDS, DoubtCode.AGENT_WARNING),
        *(DoubtCode.ROUNDING, DoubtCode.LAYERS_REFUSED, DoubtCode.PARTLY_COMPARED),
    )
}


def own_doubts(
    cell: Cell, events: Sequence[Event], layers: Iterable[LayerMemory], checks: Iterable[OutputCheck]
) -> Iterator[Doubt]:
    """Yield the doubts in a fixed order."""
    for event in events:
        if isinstance(event, Output) and not event.finite:
            yield Doubt(code=DoubtCode.NON_FINITE_OUTPUT, detail=event.name)
    lost = next((event for event in events if isinstance(event, Sample) and event.stage and event.loss is None), None)
    if lost is not None:
        yield Doubt(code=DoubtCode.DIVERGED, detail=f"{lost.stage}, from epoch {(lost.epoch or 0) + 1} on")
    for event in events:
        if not isinstance(event, Warning) or event.code == DoubtCode.NO_POWER_GAUGE:
            continue
        if event.code in IN_THE_AGENTS_WORDS:
            yield Doubt(code=DoubtCode(event.code), detail=event.message[:500])
        else:
            yield Doubt(code=DoubtCode.AGENT_WARNING, detail=f"{event.code}: {event.message}"[:500])
    yield from rounding_doubts(checks)
    refused = [f"{each.layer}, {each.refused}" for each in layers if each.refused]
    if refused and "granularity" in cell.options:  # the network is not the one that was asked for
        yield Doubt(code=DoubtCode.LAYERS_REFUSED, detail="; ".join(refused)[:500])
