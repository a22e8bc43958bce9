"""The pages of nights: one that did not run, one that was judged, one under way; names are shown as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from dashboards.web.access import ANYBODY, Access
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
from dashboards.web.pages.nights import morning
from dashboards.web.renderer import Renderer
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown, UnknownName
from orchestrator.nightly import Night

HOSTILE = "<b>the farm</b> did not run"
SUITE = {"name": "s", "experiments": ["e.yaml"], "sides": {"candidate": {"axes": {"tuned": False}}}}
IDS = {"not_run": "s@2026-11-20T02:30:00", "complete": "s@2026-11-21T02:30:00", None: "s@2026-11-22T02:30:00"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as opened:
        for number, (outcome, night_id) in enumerate(IDS.items()):
            told = {
                "night_id": night_id, "suite": SUITE, "file": "s.yaml", "scheduled": True, "due_at": 1000.0 + number,
                "began_at": None if outcome == "not_run" else 1.0, "ends_at": 2000.0, "outcome": outcome,
                "problems": [HOSTILE], "missing": [{"device": "A", "reason": HOSTILE, "cells": 2}],
                "waves": [{"kind": "first", "part": "e", "experiment_id": "e-1", "number": 0, "blocks": 6}],
            }  # fmt: skip
            body = Night.model_validate(told).model_dump_json().encode()
            opened.nights.begin(night_id, "s", 1000.0 + number, body, over=outcome is not None)
        yield opened


def no_farm() -> Redis:
    raise ServiceDown("no farm runs")


def test_nights_are_shown_whatever_became_of_them(ledger: Ledger) -> None:
    contents = Contents(lambda: ledger, Path())
    figures = OwnFigures(lambda: ledger, str)
    pages = Renderer(lambda: ledger, Watch(lambda: ledger, no_farm), Access("t"), PAGES, contents, figures)
    _, listed = pages.main("/nights", {}, ANYBODY)
    assert "did not run" in listed and "under way" in listed and "complete" in listed
    for outcome, night_id in IDS.items():
        page, shown = pages.main(f"/nights/{night_id}", {}, ANYBODY)
        assert HOSTILE not in shown and shown.count("&lt;b&gt;the farm") == 2
        assert page.live == (outcome is None) and "e-1" in shown


def test_a_night_is_told_once_it_was_judged(ledger: Ledger) -> None:
    assert "<html" in morning(ledger, IDS["complete"])
    with pytest.raises(UnknownName, match="not been judged"):
        morning(ledger, IDS[None])
