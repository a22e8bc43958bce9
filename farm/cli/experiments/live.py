"""The live view of `farm watch`: devices, reasons of waiting, progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.text import Text

from orchestrator.answers import reason_lines
from orchestrator.answers.fleet import now_of
from orchestrator.model.live.waiting import WaitKind
from orchestrator.model.quantity import counted
from orchestrator.model.record import Outcome
from orchestrator.report import wording
from orchestrator.report.listing import Cell, Head, Listing, Row

if TYPE_CHECKING:
    from orchestrator.answers.fleet import Lane, Snapshot

PLAIN_PERIOD_S = 10.0
"""Shortest period of plain lines where standard error is no terminal."""
PLAIN_QUIET_S = 60.0
"""The time without a change after which the plain line is repeated; it doubles each time, up to a limit."""
MAX_PLAIN_QUIET_S = 600.0
PASSING = (WaitKind.BUSY, WaitKind.QUEUED)
"""Reasons that come and go with every job: no news."""
WATCHED_JOBS = 5
WATCHED_JOBS_OF_A_DEVICE = 2
"""Jobs that must have ended before a prediction is worth anything."""
SHOWN_LANES = 40
BAR_COLUMNS = 30
MOODS = {"working": "cyan", "waiting": "yellow", "free": "dim", "held": "yellow", "bad": "red"}
OUTCOME_STYLES = {"ok": "green", "invalid": "yellow", "failed": "red", "lost": "red", "killed": "red"}


class Pace:
    """Predicts the end of the whole and of each device from the jobs that were finished while somebody watched."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[float, int]] = {}

    def all_left_s(self, snapshot: Snapshot) -> float | None:
        """None until enough jobs were seen to end."""
        return self._left_s("", snapshot.at, snapshot.done, snapshot.total, WATCHED_JOBS)

    def left_s(self, lane: Lane, at: float) -> float | None:
        """None until two jobs of this device were seen to end."""
        return self._left_s(lane.device.serial, at, lane.done, lane.total, WATCHED_JOBS_OF_A_DEVICE)

    def _left_s(self, key: str, at: float, done: int, total: int, enough: int) -> float | None:
        since, before = self._first.setdefault(key, (at, done))
        finished = done - before
        if finished < enough or done == total:
            return None
        return (total - done) * (at - since) / finished


def render(snapshot: Snapshot, title: str, pace: Pace) -> RenderableType:
    """The whole view."""
    return Group(_head(snapshot, title, pace.all_left_s(snapshot)), _lanes(snapshot, pace), _waiting(snapshot))


def _head(snapshot: Snapshot, title: str, left_s: float | None) -> RenderableType:
    head = Text(f"{title}  ", style="bold").append(f"{snapshot.done}/{snapshot.total}  ", style="not bold")
    head.append_text(outcomes(snapshot))
    head.append(f"about {_clock(left_s)} left" if left_s is not None else "", style="not bold dim")
    bar = ProgressBar(total=max(1, snapshot.total), completed=snapshot.done, width=BAR_COLUMNS)
    return Group(head, bar, Text())


def outcomes(snapshot: Snapshot) -> Text:
    """Finished jobs by outcome, coloured."""
    text = Text()
    for outcome in Outcome:
        if count := snapshot.counts.get(outcome.value):
            text.append(f"{count} {outcome.value}  ", style=OUTCOME_STYLES.get(outcome.value, "dim"))
    return text


def _clock(seconds: float | None) -> str:
    """`1:05`; empty for what is not known."""
    return "" if seconds is None else "{}:{:02d}".format(*divmod(round(seconds), 60))


def _lanes(snapshot: Snapshot, pace: Pace) -> RenderableType:
    busy_first = sorted(snapshot.lanes, key=lambda lane: (lane.progress is None, lane.device.serial))
    shown = sorted(busy_first[:SHOWN_LANES], key=lambda lane: lane.device.serial)
    rows: list[Row] = [_lane(lane, snapshot, pace.left_s(lane, snapshot.at)) for lane in shown]
    if len(snapshot.lanes) > SHOWN_LANES:
        rows.append(Text(f"... {wording.counted(len(snapshot.lanes) - SHOWN_LANES, 'more device')}"))
    figures = [Head(name, True) for name in ("done", "left", "last ms")]
    return Listing(("device", "", *figures, "job", "now"), rows, header_style="dim")


def _lane(lane: Lane, snapshot: Snapshot, left_s: float | None) -> list[Cell]:
    serial, one = lane.device.serial, lane.progress
    word = wording.source_word(lane.device.facts.source)
    kind = "" if _kind(lane) in serial else f" [dim]{escape(_kind(lane))}[/]"
    return [
        f"{escape(serial)}{kind}",
        f"[yellow]{word}[/]" if word.isupper() else f"[dim]{word}[/]",
        f"{lane.done}/{lane.total}" if lane.total else "",
        _clock(left_s),
        wording.ms(one.last_ms) if one is not None and one.last_ms is not None else "",
        escape(one.label) if one is not None else "",
        _now(lane, snapshot),
    ]


def _kind(lane: Lane) -> str:
    facts = lane.device.facts
    return facts.profile or wording.short_name(facts.model)


def _now(lane: Lane, snapshot: Snapshot) -> str:
    """Return what a device does, and for how long."""
    other = snapshot.at_the_engine
    now = now_of(lane, (_kind(other) or other.device.serial) if other is not None else "")
    head = f"[{MOODS[now.mood]}]{now.word}[/]"
    since = "" if now.since is None else f"[dim]{max(0.0, snapshot.at - now.since):.0f} s[/]"
    return " ".join(filter(None, (head, escape(now.more), since)))


def _waiting(snapshot: Snapshot) -> Text:
    """Return how many jobs wait, and why those wait that several devices may run: the lanes say it of the others."""
    held = snapshot.counts.get("held", 0)
    more = "more may follow, by what these come to" if held else ""
    if not snapshot.waiting:
        return Text(more, style="dim")
    text = Text("; ".join(filter(None, (counted(snapshot.waiting, "job waits", "jobs wait"), more))), style="dim")
    for line in reason_lines(wait for wait in snapshot.waits if len(wait.devices) > 1):
        text.append(f"\n  {line}")
    return text


def plain(snapshot: Snapshot) -> str:
    """One line, where there is no terminal to draw on."""
    busy = sum(lane.progress is not None for lane in snapshot.lanes)
    done = outcomes(snapshot).plain.strip().replace("  ", ", ") or "none yet"
    lanes = wording.counted(len(snapshot.lanes), "device")
    head = f"{snapshot.done}/{snapshot.total} done ({done}); {busy} of {lanes} busy"
    return "; ".join([head, *reason_lines(snapshot.waits)])


Show: TypeAlias = "Callable[[Snapshot], None]"


@contextmanager
def view(console: Console, title: str) -> Iterator[Show]:
    """Gives a function that shows a snapshot: redrawn in place on a terminal, plain lines now and then elsewhere."""
    pace = Pace()
    if not console.is_terminal:
        yield _plain_shower(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as screen:
        yield lambda snapshot: screen.update(render(snapshot, title, pace), refresh=True)


@contextmanager
def stream() -> Iterator[Show]:
    """Gives a function that prints a line of JSON on standard output where a snapshot differs from the last one."""
    shown = ""

    def show(snapshot: Snapshot) -> None:
        nonlocal shown
        if (line := json.dumps(snapshot.data)) != shown:
            shown = line
            print(line, flush=True)

    yield show


@contextmanager
def status_line(console: Console, now: Callable[[], float] = time.monotonic) -> Iterator[Callable[[str], None]]:
    """Gives a function that shows what goes on: in place on a terminal, elsewhere as a line where it has changed."""
    if console.is_terminal:
        with console.status("") as status:
            yield status.update
        return
    shown_at, shown = float("-inf"), ""

    def show(words: str) -> None:
        nonlocal shown_at, shown
        if words not in ("", shown) and now() - shown_at >= PLAIN_PERIOD_S:
            console.print(words, markup=False, soft_wrap=True)
            shown_at, shown = now(), words

    yield show


def _plain_shower(console: Console) -> Show:
    """A line where jobs have ended or wait for something else, and now and then where nothing changes."""
    shown_at, shown = float("-inf"), (-1, frozenset[str]())
    pause_s = PLAIN_QUIET_S

    def show(snapshot: Snapshot) -> None:
        nonlocal shown_at, shown, pause_s
        kinds = frozenset(wait.reason.kind for wait in snapshot.waits if wait.reason.kind not in PASSING)
        changed, quiet_s = (snapshot.done, kinds) != shown, snapshot.at - shown_at
        if quiet_s >= (pause_s if not changed else 0.0 if snapshot.is_over else PLAIN_PERIOD_S):
            console.print(plain(snapshot), markup=False, soft_wrap=True)
            shown_at, shown = snapshot.at, (snapshot.done, kinds)
            pause_s = PLAIN_QUIET_S if changed else min(2 * pause_s, MAX_PLAIN_QUIET_S)

    return show
