"""Whoever has a page is told what changed on it since, and not the whole page again."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import local

import pytest
from redis import Redis
from starlette.requests import Request

from dashboards.web.access import Access, Visitor
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.events import Events
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
from dashboards.web.page import Page
from dashboards.web.renderer import Renderer
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown
from tests.unit.orchestrator import make


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as opened:
        yield opened


def no_farm() -> Redis:
    raise ServiceDown("no farm runs")


def asked(path: str, query: str = "") -> Request:
    return Request(
        {"type": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(), "headers": []}
    )


async def news_after(ledger: Ledger, have: str = "") -> tuple[bytes, dict[str, object]]:
    """A page of the fleet, and the first event after a job was submitted; `have`: of what state, instead of its own."""
    access, watch = Access("t"), Watch(lambda: ledger, no_farm)
    contents, figures = Contents(lambda: ledger, Path()), OwnFigures(lambda: ledger, str)
    renderer = Renderer(lambda: ledger, watch, access, PAGES, contents, figures)
    page = bytes((await renderer.shown(asked("/"))).body)
    ledger.submit("first-1", make.many(1), [make.job("first-1")])
    await asyncio.sleep(watch.pause_s)
    (name,) = re.findall(rb'data-hash="(\w+)"', page)
    stream = await Events(renderer, watch, access).stream(asked("/events", f"page=/&have={have or name.decode()}"))
    async for text in stream.body_iterator:  # type: ignore[attr-defined]
        if told := re.search(r"^data: (.*)$", text, re.MULTILINE):
            return page, json.loads(told[1])
    raise AssertionError("the stream ended")


def test_the_first_event_tells_what_changed_since_the_page_was_sent(ledger: Ledger) -> None:
    page, told = asyncio.run(news_after(ledger))
    assert b"0 wait" in page and list(told) == ["parts"]
    assert list(told["parts"]) == ["l-facts"] and "1 wait" in told["parts"]["l-facts"]  # type: ignore[call-overload, index]


@dataclass
class Costly(Renderer):
    """Renders as ever, and notes what is made when, as if it took so long."""

    ledger: Ledger
    cost_s: dict[str, float]
    made: list[tuple[float, str]] = field(default_factory=list)
    spent: local = field(default_factory=local)

    def __post_init__(self) -> None:
        self.watch, contents = Watch(lambda: self.ledger, no_farm), Contents(lambda: self.ledger, Path())
        figures = OwnFigures(lambda: self.ledger, str)
        super().__init__(lambda: self.ledger, self.watch, Access("t"), PAGES, contents, figures)

    def main(self, address: str, query: Mapping[str, str], visitor: Visitor) -> tuple[Page, str]:
        self.made.append((time.monotonic(), address))
        self.spent.s = self.thread_time() + self.cost_s[address]
        return super().main(address, query, visitor)

    def thread_time(self) -> float:
        return float(getattr(self.spent, "s", 0.0))


def test_pages_that_are_watched_take_a_third_of_a_core(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """However many watch the same one, whenever they came: after the first time, each waits for what all take."""
    chosen = Random(seed)
    cost_s = {each: chosen.uniform(0.12, 0.15) for each in chosen.sample(["/", "/queue", "/experiments", "/hosts"], 2)}
    renderer = Costly(ledger, cost_s)
    monkeypatch.setattr("dashboards.web.events.time", renderer)
    watchers = [each for each in cost_s for _ in range(3)]

    async def watch(address: str, events: Events) -> None:
        await asyncio.sleep(chosen.uniform(0.0, 0.5))
        stream = await events.stream(asked("/events", f"page={address}"))
        async for _ in stream.body_iterator:  # type: ignore[attr-defined]
            pass

    async def watched() -> None:
        events = Events(renderer, renderer.watch, Access("t"))
        with suppress(TimeoutError):
            async with asyncio.timeout(3.5):
                await asyncio.gather(*(watch(each, events) for each in watchers))

    asyncio.run(watched())
    began = max(next(when for when, what in renderer.made if what == address) for address in cost_s)
    share = (renderer.made[-1][0] - began) / (3 * sum(cost_s.values()))
    for address in cost_s:
        times = sum(when >= began and what == address for when, what in renderer.made)
        assert times <= share + 3, "one is under way at each end, and one before all were known"


def test_a_page_that_nobody_remembers_is_told_whole(ledger: Ledger) -> None:
    _, told = asyncio.run(news_after(ledger, have="0" * 16))
    assert list(told) == ["main"]
