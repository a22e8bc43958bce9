"""Progress of an experiment as server-sent events."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import replace
from threading import Lock
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from dashboards.answers.answers import SEES
from dashboards.answers.asked import Asked
from dashboards.answers.reading import Name
from dashboards.answers.turns import Turns
from orchestrator.model.errors import FarmError

from .reading import here

PATH = "/experiments/{id}/progress"
LOOK_S = 1.0
QUIET_S = 10.0
"""The time without news after which a comment is sent: who does not take it is gone."""
LASTS_S = 600.0
"""Then the client asks again, and passes the door again: a token that was revoked does not stream on."""
OPENED = Turns(2)
"""Fifty people whose farm was away for a moment come back in one: who reads meanwhile does not wait for all of them."""


def add_progress(app: FastAPI) -> None:
    """Give the stream its route."""
    app.get(
        PATH, operation_id="progress", tags=["answers"], response_class=StreamingResponse,
        summary="Stream how far an experiment is, each time that it changes, until it is over.",
        description=f"Takes the role `{SEES.least}` ({SEES.of}). Events are JSON: `counts`, `finished`.",
        responses={200: {"content": {"text/event-stream": {}}}},
        openapi_extra={"x-right": vars(SEES)},
    )(progress)  # fmt: skip


async def progress(id: Name, asked: Annotated[Asked, Depends(here)], look: bool = False) -> StreamingResponse:
    """Raises FarmError before it begins. `look`: with devices and reasons, as `farm watch` shows them."""
    tell, key = _looked if look else _told, (asked.sources, look, id, asked.actor.grants.visible)

    def shared() -> str:
        return LOOKS.shared(key, lambda: tell(asked, id))

    def begin() -> str:
        asked.let(SEES, [asked.ledger.place_of(id)], id)
        begun = shared()
        return tell(asked, id) if _is_over(begun) else begun  # it may have been begun again since

    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    events = _events(lambda: LOOKS.fresh(key), shared, await OPENED.of(begin))
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


class _Looks:
    """The latest look at each experiment that is followed: one for all who follow it, however many."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[Hashable, tuple[float, str]] = {}
        """Key -> when the next look is due, and what was seen."""

    def fresh(self, key: Hashable) -> str:
        """Return what was seen last where that is new, or another one looks again at this moment; else nothing."""
        due, seen = self._found.get(key, (0.0, ""))
        return seen if time.monotonic() < due else ""

    def shared(self, key: Hashable, tell: Callable[[], str]) -> str:
        """Return it, or look again."""
        with self._lock:
            if seen := self.fresh(key):
                return seen
            seen = self._found.get(key, (0.0, ""))[1]
            self._found = {each: found for each, found in self._found.items() if found[0] > time.monotonic() - QUIET_S}
            self._found[key] = time.monotonic() + LOOK_S, seen
        now = tell()
        with self._lock:
            self._found[key] = time.monotonic() + LOOK_S / 2, now
        return now


LOOKS = _Looks()


async def _events(fresh: Callable[[], str], tell: Callable[[], str], told: str) -> AsyncIterator[str]:
    clock = asyncio.get_running_loop().time
    began = said = clock()
    yield f"retry: {random.randint(500, 1500)}\n\ndata: {told}\n\n"  # who came at once comes back one by one
    while not _is_over(told) and clock() < began + LASTS_S:
        await asyncio.sleep(LOOK_S)
        try:
            now = fresh() or await run_in_threadpool(tell)
        except FarmError:
            now = told  # the ledger is away: it goes on when that is back
        if now != told:
            told, said = now, clock()
            yield f"data: {told}\n\n"
        elif clock() > said + QUIET_S:
            said = clock()
            yield ": still here\n\n"


def _is_over(told: str) -> bool:
    return bool(json.loads(told)["finished"])


def _told(asked: Asked, name: str, **more: object) -> str:
    row = asked.ledger.experiment(name)
    counts = {"experiment": row.id, "finished": row.finished, "counts": dict(row.counts)}
    return json.dumps({**counts, **more}, sort_keys=True)


def _looked(asked: Asked, name: str) -> str:
    from orchestrator.answers.fleet import Snapshot, take, unnamed
    from orchestrator.coordination.inventory import Inventory
    from orchestrator.coordination.leases import Leases

    redis = asked.sources.redis()
    seen = take(asked.ledger, Inventory(redis), Leases(redis), name)
    if (visible := asked.actor.grants.visible) is not None:  # what phones do for other projects has no name
        rows = asked.ledger.running()
        shown = asked.ledger.listed.among({row.experiment_id for row in rows}, visible)
        theirs = {row.job_id for row in rows if row.experiment_id in shown}
        lanes = [
            replace(lane, progress=unnamed(lane.progress))
            if lane.progress is not None and lane.progress.job_id not in theirs
            else lane
            for lane in seen.lanes
        ]
        seen = replace(seen, lanes=tuple(lanes))
    found = TypeAdapter(Snapshot).dump_python(seen, mode="json")
    return _told(asked, name, look={key: value for key, value in found.items() if key != "at"})
