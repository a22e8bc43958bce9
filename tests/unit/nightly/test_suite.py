"""Suite files: what is accepted, what a person is told, and when a schedule is due."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from orchestrator.coordination.tasks import queue
from orchestrator.model.errors import SpecError
from orchestrator.nightly import Suite, load
from orchestrator.nightly.schedule import cron_of, following
from orchestrator.system.config import settings

GOOD = """
name: nightly
experiments: [lenet.yaml]
sides: {candidate: {axes: {precision: fp16}}}
devices: {where: memory >= 1 GiB}
margins: {latency: 2 %}
budget: 90 min
schedule: "02:30"
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(SpecError) as caught:
        load(written(tmp_path / "s.yaml", text))
    return str(caught.value)


def test_a_good_file(tmp_path: Path) -> None:
    suite = load(written(tmp_path / "s.yaml", GOOD))
    assert suite.budget == 5400 and suite.margins == {"latency": 0.02} and suite.schedule == "30 2 * * *"
    assert suite.sides.candidate.axes == {"precision": "fp16"} and suite.sides.baseline.axes == {}
    assert Suite.model_validate_json(suite.model_dump_json()) == suite


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("{precision: fp16}", "{precision: fp17}", r"4:\d+: sides.candidate.axes: precision: expec"),
        ("{precision: fp16}", "{colour: red}", "colour: axes are network, backend, precision"),
        ("{axes: {precision: fp16}}", "{driver: v2}", "cannot switch a phone's driver: .*compare"),
        ("latency: 2 %", "speed: 2 %", "there is no metric `speed`: known are latency"),
        ("90 min", "90", "90 has no unit; write e.g. `90 s`"),
        ('"02:30"', '"25:30"', "schedule: expected `02:30`"),
        ('"02:30"', '"every night"', "it has 2 fields"),
        ("[lenet.yaml]", "[]", "experiments: expected 1 values or more"),
        ("where: memory >= 1 GiB", "count: any", "compared device by device"),
        ("budget: 90 min", "rounds: 20\nmost_rounds: 10", "most_rounds 10 is below rounds 20"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError, match=wanted):
        load(written(tmp_path / "s.yaml", GOOD.replace(old, new)))


@pytest.fixture
def berlin() -> Iterator[None]:
    """Local time with a daylight-saving time of known days, on a system without files of zones too."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    time.tzset()
    yield
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


def due(text: str, after: str, times: int = 3) -> list[str]:
    moment, found = datetime.fromisoformat(after).timestamp(), []
    for _ in range(times):
        moment = following(cron_of(text), moment)
        found.append(datetime.fromtimestamp(moment).isoformat(" ", "minutes"))
    return found


@pytest.mark.usefixtures("berlin")
def test_a_schedule_goes_by_the_clock_on_the_wall() -> None:
    assert due("02:30", "2026-11-20 02:30") == ["2026-11-21 02:30", "2026-11-22 02:30", "2026-11-23 02:30"]
    assert due("30 2 * * mon-fri", "2026-11-20 02:31")[:2] == ["2026-11-23 02:30", "2026-11-24 02:30"]
    assert due("*/20 * * * *", "2026-11-20 23:39:59", 2) == ["2026-11-20 23:40", "2026-11-21 00:00"]


@pytest.mark.usefixtures("berlin")
def test_each_day_has_one_night_when_clocks_are_put_forward_and_back() -> None:
    assert due("02:30", "2026-03-28 03:00") == ["2026-03-29 03:30", "2026-03-30 02:30", "2026-03-31 02:30"]
    assert due("02:30", "2026-10-24 03:00") == ["2026-10-25 02:30", "2026-10-26 02:30", "2026-10-27 02:30"]
    moment = datetime(2026, 10, 25, 2, 10, fold=1).timestamp()
    assert following("30 2 * * *", moment) > moment


def test_a_schedule_asks_for_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another part of the process may have made an app of its own the current one, whose settings need a farm."""
    monkeypatch.delenv("FARM_REDIS_URL", raising=False)
    queue.app_of(settings).set_current()
    assert following("30 2 * * *", 0.0) > 0


def test_a_schedule_needs_no_zones_of_the_system() -> None:
    code = "from orchestrator.nightly.schedule import following; print(following('30 2 * * *', 0.0))"
    bare = os.environ | {"PYTHONTZPATH": "", "TZ": "UTC0"}
    assert subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, text=True).stdout == "9000.0\n"
