"""The fleet: every device with its state, what it runs or why it waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dashboards.web.look import Look
from dashboards.web.page import Asked, Page
from orchestrator.answers.fleet import Lane, Mood, Now, now_of
from orchestrator.model.device import DeviceState
from orchestrator.report import wording

MOODS: dict[Mood, str] = {
    "working": "working",
    "waiting": "waiting",
    "free": "free",
    "held": "held",
    "bad": "not well",
}
HOT_C = 40.0
FLAT_PERCENT = 20.0


@dataclass(frozen=True)
class Row:
    """One device."""

    lane: Lane
    now: Now
    kind: str
    job_id: str
    label: str
    """The label of the block that it works on."""
    held: str
    """The person who holds it, and until when."""

    @property
    def serial(self) -> str:
        return self.lane.device.serial

    @property
    def state(self) -> DeviceState:
        return self.lane.device.state

    @property
    def source(self) -> str:
        return wording.source_word(self.lane.device.facts.source)

    @property
    def is_hot(self) -> bool:
        return (self.state.battery_temp_c or 0.0) >= HOT_C

    @property
    def is_flat(self) -> bool:
        return self.state.battery_percent is not None and self.state.battery_percent < FLAT_PERCENT


def rows_of(look: Look) -> list[Row]:
    """Every device, by serial."""
    engine = next((lane for lane in look.lanes if lane.shares_the_host and lane.measures), None)
    name = (kind_of(engine) or engine.device.serial) if engine else ""
    return [row_of(look, lane, name) for lane in look.lanes]


def row_of(look: Look, lane: Lane, engine: str = "") -> Row:
    serial, one = lane.device.serial, lane.progress
    running, hold = look.running.get(serial), look.holds.get(serial)
    return Row(
        lane=lane,
        now=now_of(lane, engine),
        kind=kind_of(lane),
        job_id=one.job_id if one else running.job_id if running else "",
        label=one.label if one else running.label if running else "",
        held=hold.text if hold else "",
    )


def kind_of(lane: Lane) -> str:
    """`Pixel 7`, `pixel_7`."""
    return wording.short_name(lane.device.facts.model) or lane.device.facts.profile


def fleet(asked: Asked) -> Page:
    """`?show=` one of the moods, `?q=` part of a serial, kind, host or label."""
    look = asked.look()
    every = rows_of(look)
    counts = Counter(row.now.mood for row in every)
    show, q = asked.query.get("show", ""), asked.query.get("q", "").strip()
    shown = [row for row in every if (show not in MOODS or row.now.mood == show) and _matches(row, q)]
    data = {
        "rows": shown,
        "total": len(every),
        "show": show if show in MOODS else "",
        "q": q,
        "moods": [(mood, name, counts[mood]) for mood, name in MOODS.items() if counts[mood] or mood == show],
        "open": {word: look.counts.get(word, 0) for word in ("running", "placed", "waiting", "held")},
    }
    return Page("fleet.html.j2", "Fleet", "fleet", data)


def _matches(row: Row, q: str) -> bool:
    facts = row.lane.device.facts
    texts = (row.serial, row.kind, facts.host, facts.model, row.label, row.source)
    return all(any(word in text.lower() for text in texts) for word in q.lower().split())
