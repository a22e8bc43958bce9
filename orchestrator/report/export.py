"""Results as JSON, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from orchestrator.analysis.statistics import Interval, told_of
from orchestrator.figures import QUANTITIES, TOKEN_ENERGIES, Stage
from orchestrator.model.record import Record

from . import wording
from .content import Content
from .parts import answer
from .parts.training import newest

EACH_CHANGE: Any = {"__all__": {"rows": {"__all__": {"comparison": {"changed"}}}}}
"""There may be as many as examples; `farm agreement --json` has them."""


def as_data(content: Content, records: Iterable[Record] | None = None) -> dict[str, Any]:
    """The report as plain data; with `records` these too, in full: all samples, events and provenance."""
    data = content.model_dump(mode="json", exclude={"blocks": True, "agreements": EACH_CHANGE})
    for found, summary in zip(data["summaries"], content.summaries, strict=True):
        found["quantities"] = [
            {
                "metric": told.metric,
                "basis": told.basis,
                "unit": told.unit,
                "value": told.value,
                "interval": _interval(told.interval),
                "not_resolved": wording.in_words(told) or None,
            }
            for told in told_of(summary)
        ]
        others = found.pop("others")
        for each in (each for each in found["quantities"] if each["metric"] in (*others, *TOKEN_ENERGIES)):
            field = QUANTITIES[each["metric"]].field(each["metric"])  # of several sources of power the first one's
            found.setdefault(field, {key: each[key] for key in ("value", "interval", "not_resolved")})
    data["side_by_side"] = list(_side_by_side(content))
    data["usable"], data["closing"] = answer.usable(content), answer.closing(content)
    named = {"experiment": data.pop("experiment_id"), "spec": data.pop("experiment"), **data}
    named["trained"] = [
        {
            **{"serial": block.serial, "cell_id": block.cell_id, **trained.model_dump(mode="json")},
            "stages": [_stage(each) for each in trained.stages],
            "whole": trained.whole and _stage(trained.whole),
        }
        for block, trained in newest(content.blocks)
    ]
    if records is not None:
        named["records"] = [record.model_dump(mode="json") for record in records]
    return named


def _stage(one: Stage) -> dict[str, Any]:
    return {**one.model_dump(mode="json"), "net_power_w": one.net_power_w}


def _side_by_side(content: Content) -> Iterator[dict[str, Any]]:
    """Each two backends that ran the same, with their medians and the ratio of these."""
    for row in answer.rows_of(content):
        for other, one in answer.PAIRS:
            if (found := row.speed_up(one, other)) is not None:
                yield {
                    "serial": row.serial,
                    "source": row.source.value,
                    "workload": row.workload,
                    "rest": row.rest,
                    "backend": one.value,
                    "over": other.value,
                    "ms": row.ms[one],
                    "over_ms": row.ms[other],
                    "speed_up": found.point,
                    "interval": _interval(found.interval),
                    "not_resolved": found.unresolved and str(found.unresolved),
                }


def _interval(found: Interval | None) -> dict[str, float] | None:
    return None if found is None else {"low": found.low, "high": found.high, "level": found.level}
