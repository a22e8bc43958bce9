"""Samples that phones took while nobody could scrape them come into a real Prometheus, at their own time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from typer.testing import CliRunner

from dashboards.web.charts import boards
from dashboards.web.own_figures import OwnFigures
from farm.cli.app import application
from orchestrator.ledger import Ledger
from orchestrator.metrics.backfill import SLOT_S, merged
from orchestrator.metrics.devices import READING, STATE
from orchestrator.model.power import ClockAnchor
from orchestrator.model.record import Record
from orchestrator.system.config import Settings
from tests.integration.orchestrator import ledgers
from tests.servers import required
from tests.unit.energy.blocks import EXACT, S, load_between, readings
from tests.unit.energy.blocks import record as block
from tests.unit.orchestrator import make

from .servers import get, prometheus

BEGAN = float(round(time.time()) - 5 * 3600)
"""A time beyond what Prometheus holds in its head."""
AHEAD_S = 40.0
END_S = 190.0
TOLD: dict[str, Any] = {"temp_dc": 314, "skin_dc": 335, "cpu_khz": (1_100_000, 1_800_000), "gpu_hz": 585_000_000}
VALUES = {
    "farm_device_battery_temperature_celsius": 31.4,
    "farm_device_skin_temperature_celsius": 33.5,
    "farm_device_battery_voltage_volts": 4.0,
    "farm_device_cpu_frequency_hertz": 1.8e9,
    "farm_device_gpu_frequency_hertz": 5.85e8,
}
CURRENT = "farm_device_battery_current_amperes"
TEMPERATURE, VOLTAGE = "farm_device_battery_temperature_celsius", "farm_device_battery_voltage_volts"
SOURCE = "virtual"
LABELS = {"job": "pocketfarm", "instance": "127.0.0.1:9464"}


def sampled(began: float) -> dict[str, Any]:
    """A block whose phone had been up for 1000 s when it began: its first reading is of that moment."""
    power = readings(load_between(0.5, 3.0), period_s=0.5, end_s=END_S, **TOLD)
    late = tuple(each.model_copy(update={"t_ns": each.t_ns + 1000 * S}) for each in power)
    clock = ClockAnchor(unix_s=began - 10.0, device_ns=990 * S, residual_ns=S // 100)
    return {
        "power": late, "clock": clock, "gauge": EXACT, "clock_ahead_s": AHEAD_S, "started_at": began,
        "ended_at": began + END_S,
    }  # fmt: skip


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger's folder: two old blocks, one of a minute ago, one of an older worker, and one that sampled nothing."""
    folder = tmp_path_factory.mktemp("state")
    with Ledger(Settings(state=folder).ledger) as ledger:
        jobs = [make.job(block=n) for n in range(5)]
        ledger.submit("first-1", make.many(5), jobs)
        unknown = {name: value for name, value in sampled(BEGAN).items() if name != "clock"}
        blocks = (sampled(BEGAN), sampled(BEGAN + 600), sampled(time.time() - 300), unknown, {"started_at": BEGAN})
        for job, fields in zip(jobs, blocks, strict=True):
            ledger.keep(ledgers.record_of(ledgers.begun(ledger, job), **fields))
    return folder


def backfill(state: Path, *more: str) -> str:
    words = ["metrics", "backfill", "--state", str(state), *more]
    done = CliRunner().invoke(application("metrics"), words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_samples_are_at_their_own_times_in_prometheus(state: Path, tmp_path: Path) -> None:
    """Twice the same, and a range that overlaps it: each sample is there once."""
    data = tmp_path / "data"
    data.mkdir()
    promtool = ("--tsdb", str(data), "--promtool", required("promtool"))
    told = json.loads(backfill(state, *promtool, "--json"))
    slots = len({(BEGAN + AHEAD_S + second / 2) // SLOT_S for second in range(int(2 * END_S))})
    again = len({(BEGAN + 600 + AHEAD_S + second / 2) // SLOT_S for second in range(int(2 * END_S))})
    each = slots + again
    assert told == {"records": 2, "samples": 6 * each, "without_clock": 1, "too_new": 1}
    assert json.loads(backfill(state, *promtool, "--json")) == told
    first_alone = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(BEGAN + 60))
    assert json.loads(backfill(state, *promtool, "--until", first_alone, "--json"))["samples"] == 6 * slots
    with prometheus(tmp_path, "http://127.0.0.1:9") as server:
        at = BEGAN + AHEAD_S + 100.0  # under load
        for name, value in {**VALUES, CURRENT: 3.0 / 4.0}.items():
            (found,) = query(server.url, name, at)
            assert found["metric"] == {"__name__": name, "serial": "A", **LABELS}
            assert float(found["value"][1]) == pytest.approx(value)
        (found,) = query(server.url, f"count_over_time({CURRENT}[2h])", BEGAN + 3600)
        assert int(found["value"][1]) == each, "no sample is there twice"
        (stamp,) = query(server.url, f"timestamp({CURRENT})", at)
        assert at - SLOT_S <= float(stamp["value"][1]) <= at
        assert query(server.url, CURRENT, BEGAN + AHEAD_S - 1) == []
        (idle,) = query(server.url, CURRENT, BEGAN + AHEAD_S + 60)
        assert float(idle["value"][1]) == pytest.approx(0.5 / 4.0)


def query(url: str, expression: str, at: float) -> list[dict[str, Any]]:
    reply = json.loads(get(f"{url}/api/v1/query", query=expression, time=str(at)))
    return list(reply["data"]["result"])


def test_the_text_is_openmetrics_with_the_exporters_names(state: Path) -> None:
    """No newest has to wait where there is no database; labels are those that were asked for."""
    text = backfill(state, "--label", 'farm=the "lab"', "--device", "A")
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert set(families) == {*VALUES, CURRENT}
    texts = {name: help_ for name, (help_, _) in (*STATE.items(), *READING.items())}
    assert all(family.documentation == texts[name] and family.type == "gauge" for name, family in families.items())
    times = {float(sample.timestamp) for sample in families[CURRENT].samples}
    assert {frozenset(sample.labels.items()) for sample in families[CURRENT].samples} == {
        frozenset({("serial", "A"), ("farm", 'the "lab"')})
    }
    assert len(times) == len(families[CURRENT].samples) and max(times) > time.time() - 3600
    assert backfill(state, "--device", "A", "--since", "2100-01-01") == "# EOF\n"


def test_charts_without_a_prometheus_draw_the_same_samples(state: Path) -> None:
    """All blocks that tell their time are drawn, the newest too; each at its time, in the panel that asks for it."""
    panels = {each.title: each for each in boards()["device"].panels}
    with Ledger(Settings(state=state).ledger) as ledger:
        own, hours_s = OwnFigures(lambda: ledger, str), 6 * 3600.0
        for title, name in (("Battery temperature", TEMPERATURE), ("Battery voltage", VOLTAGE)):
            assert own.knows(panels[title])
            (line,) = own.lines(panels[title], SOURCE, hours_s)
            assert line.values == pytest.approx([VALUES[name]] * len(line.at)) and list(line.at) == sorted(line.at)
            assert BEGAN + AHEAD_S <= line.at[0] < BEGAN + AHEAD_S + SLOT_S and line.at[-1] > time.time() - 600
            assert own.lines(panels[title], "import", hours_s) == []
            assert len(own.lines(panels[title], SOURCE, 3600.0)[0].at) < len(line.at)
        assert not own.knows(panels["Health"]) and not own.knows(panels["Thermal status"])


def test_what_a_phone_does_not_tell_has_no_sample() -> None:
    bare = readings(lambda _: 1.0, end_s=20.0, voltage_uv=None)
    found = merged([block(bare, clock=ClockAnchor(unix_s=0.0, device_ns=0, residual_ns=0))], LABELS, float("inf"))
    assert list(found._found) == [CURRENT]


def test_two_records_of_one_moment_have_one_sample(tmp_path: Path) -> None:
    """promtool takes a second value at the same time for an error."""
    fields = sampled(BEGAN)
    one = block(**fields)
    other = Record(**{**one.model_dump(), "power": [{**p.model_dump(), "current_ua": 1} for p in one.power]})
    with (tmp_path / "both").open("wb") as file:
        both = merged([one, other], LABELS, float("inf")).write(file)
    with (tmp_path / "alone").open("wb") as file:
        assert merged([one], LABELS, float("inf")).write(file) == both
    assert (tmp_path / "both").read_bytes() == (tmp_path / "alone").read_bytes()


def test_faults_are_told(state: Path, tmp_path: Path) -> None:
    runner = CliRunner()

    def error(*more: str) -> str:
        done = runner.invoke(application(), ["metrics", "backfill", "--state", str(state), *more])
        assert done.exit_code != 0
        return f"{done.output} {done.exception}"

    assert "there is no record of a device 'B'" in error("--device", "B") and "some: A" in error("--device", "B")
    assert "there is no folder" in error("--tsdb", str(tmp_path / "none"))
    assert "no-promtool" in error("--tsdb", str(tmp_path), "--promtool", "no-promtool")
    assert "made no blocks" in error("--tsdb", str(tmp_path), "--promtool", "false")
    assert "NAME=VALUE" in error("--label", "serial=B")
    assert "--json" in error("--json")
