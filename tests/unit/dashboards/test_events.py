"""Whoever has a page is told what changed on it since, and not the whole page again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from starlette.requests import Request

from dashboards.web.access import Access
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.events import Events
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
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


def test_a_page_that_nobody_remembers_is_told_whole(ledger: Ledger) -> None:
    _, told = asyncio.run(news_after(ledger, have="0" * 16))
    assert list(told) == ["main"]
