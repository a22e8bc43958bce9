"""The exporter's samples of a filled farm, checked against what was written; it goes on when parts are away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from orchestrator.analysis.statistics import QUANTITIES, Summary, told_of
from orchestrator.ledger import Ledger
from orchestrator.metrics.devices import READING, DeviceFamilies
from orchestrator.model.record import Record
from tests.servers import RedisServer, private_redis, required
from tests.unit.report.records import summarised

from .conftest import Farm
from .content import BLOCKS, PHONES, device, fill, state_settings
from .servers import DASHBOARDS, exporter, get, scraped

PROMETHEUS_GIVES_UP_S = 10.0
"""Its default `scrape_timeout`."""
SUBMITTED, ENDED = "farm_experiment_submitted_timestamp_seconds", "farm_experiment_ended_timestamp_seconds"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(url: str) -> Samples:
    """Every sample by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(get(url))
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """The one sample with this name and these labels (it may have more)."""
    found = [v for (n, each), v in samples.items() if n == name and labels.items() <= dict(each).items()]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


@pytest.fixture(scope="module")
def samples(farm: Farm) -> Samples:
    return scrape(farm.exporter_url)


def test_devices(farm: Farm, samples: Samples) -> None:
    assert value(samples, "farm_device_info", serial="galaxy-s7", source="virtual", gpu="Mali-T880") == 1
    assert value(samples, "farm_device_health", serial="galaxy-s7", health="ready") == 1
    assert value(samples, "farm_device_health", serial="mate-10", health="ready") == 0
    assert value(samples, "farm_device_health", serial="mate-10", health="offline") == 1
    assert value(samples, "farm_device_battery_ratio", serial="galaxy-s7") == pytest.approx(0.35)
    assert value(samples, "farm_device_battery_temperature_celsius", serial="sd888-hdk") == pytest.approx(41.5)
    assert value(samples, "farm_device_battery_current_amperes", serial="sd888-hdk") == pytest.approx(0.35)
    assert value(samples, "farm_device_cpu_frequency_hertz", serial="sd888-hdk") == 1.8e9
    assert value(samples, "farm_device_gpu_temperature_celsius", serial="sd888-hdk") == 44.0
    (at_work, _) = (each.serial for each in farm.content.leased)
    assert value(samples, "farm_device_battery_current_amperes", serial=at_work) == pytest.approx(0.7)
    assert not [labels for name, labels in samples if "gpu_frequency" in name and ("serial", at_work) in labels]
    (hot,) = (device.state.ready_at for device in farm.content.devices if device.state.ready_at is not None)
    assert value(samples, "farm_device_ready_timestamp_seconds", serial="sd888-hdk") == pytest.approx(hot)
    assert not [key for key in samples if key[0] == "farm_device_battery_ratio" and ("serial", "lab-pocl") in key[1]]


def test_a_reading_of_before_is_none_of_now() -> None:
    def shown(age_s: float) -> set[str]:
        found = device("galaxy-s7", 0)
        assert found.state.reading is not None
        old = found.state.reading.model_copy(update={"at": time.time() - age_s})
        state = found.state.model_copy(update={"reading": old})
        families = DeviceFamilies().of([found.model_copy(update={"state": state})])
        return {family.name for family in families if family.samples} & set(READING)

    assert shown(5.0) == set(READING)
    assert shown(60.0) == set()


def test_hosts_leases_and_sessions(farm: Farm, samples: Samples) -> None:
    assert value(samples, "farm_host_up", host="lab") == 1
    assert value(samples, "farm_host_spool_records", host="lab") == 2
    assert value(samples, "farm_host_running_jobs", host="lab") == len(farm.content.leased)
    assert value(samples, "farm_leases", state="claimed") == len(farm.content.leased)
    assert value(samples, "farm_leases", state="waking") == 0
    trained = {"serial": farm.content.leased[0].serial, "stage": "train"}
    figures = [value(samples, f"farm_training_{name}", **trained) for name in ("loss", "error_ratio", "epochs")]
    assert figures == [0.5, 0.25, 12]
    assert value(samples, "farm_sessions", phase="running") == len(farm.content.leased)
    assert value(samples, "farm_stream_records") == 1


def test_queue(farm: Farm, samples: Samples) -> None:
    done, leased = len(farm.content.records + farm.content.streams), len(farm.content.leased)
    assert value(samples, "farm_jobs", state="done", outcome="ok") == done
    assert value(samples, "farm_jobs", state="placed") == leased
    assert value(samples, "farm_attempts_started_total") == done + leased + 3 + 3
    assert value(samples, "farm_attempts_total", outcome="lost", cause="transport_lost") == 3
    assert value(samples, "farm_records_total", outcome="ok", source="virtual") == 2 * BLOCKS * len(PHONES)
    assert value(samples, "farm_device_quarantined_timestamp_seconds", serial="nexus-5") <= time.time()
    assert value(samples, "farm_device_held_timestamp_seconds", serial="mate-10") <= time.time()
    assert value(samples, "farm_host_quarantined_timestamp_seconds", host="attic") <= time.time()


def test_the_queue_of_a_device_and_of_an_experiment(farm: Farm, samples: Samples) -> None:
    """Each job of the farm's content is for one device: both add up to the same."""
    at_work = {each.serial for each in farm.content.leased}
    queued = {each.facts.serial: value(samples, "farm_device_jobs", serial=each.facts.serial, state="waiting")
              for each in farm.content.devices}  # fmt: skip
    assert queued == {serial: 2 * BLOCKS - (serial in at_work) for serial in queued}
    for state in ("waiting", "placed"):
        of_devices = sum(
            at for (name, own), at in samples.items() if name == "farm_device_jobs" and ("state", state) in own
        )
        assert of_devices == value(samples, "farm_experiment_jobs", experiment="first", state=state)
        assert of_devices == value(samples, "farm_jobs", state=state)
    assert {value(samples, "farm_device_jobs", serial=serial, state="placed") for serial in at_work} == {1}


def test_only_experiments_under_way_have_progress(samples: Samples) -> None:
    shown = {dict(labels)["experiment"] for name, labels in samples if name == "farm_experiment_jobs"}
    assert shown == {"first"}
    assert value(samples, "farm_experiment_last_result_timestamp_seconds", experiment="squeeze-nightly") > 0


def test_which_agents_measured(samples: Samples) -> None:
    results = sum(name == "farm_results_blocks" for name, _ in samples)
    assert value(samples, "farm_results_by_agent", agent="0.1.0 abababababab") == results > 0


def test_when_experiments_began_and_ended(farm: Farm, samples: Samples) -> None:
    """The one under way has not ended."""
    began = {dict(labels)["experiment"]: at for (name, labels), at in samples.items() if name == SUBMITTED}
    ended = {dict(labels)["experiment"]: at for (name, labels), at in samples.items() if name == ENDED}
    assert set(began) == {"squeeze-nightly", "first", "streams"} and set(ended) == set(began) - {"first"}
    assert all(began[name] <= at <= time.time() for name, at in ended.items())
    assert began["squeeze-nightly"] <= began["first"] <= ended["squeeze-nightly"] <= ended["streams"]


def test_results_have_the_figures_of_the_report(farm: Farm, samples: Samples) -> None:
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in farm.content.records:
        assert record.runs_on is not None
        cells.setdefault((record.device.serial, record.runs_on.api.value), []).append(record)
    of = {job.job.cell.cell_id: job.job.cell for job in farm.content.jobs}
    for (serial, backend), records in cells.items():
        (summary,) = summarised(records, of)
        labels = {"serial": serial, "backend": backend, "network": "squeezenet_v1_0"}
        _figures_are_those_of_the_report(samples, summary, labels)
        assert value(samples, "farm_results_blocks", **labels) == BLOCKS
        assert value(samples, "farm_results_verdict", verdict="few", **labels) == 1
        assert value(samples, "farm_results_doubts", **labels) == len({doubt.code for doubt in summary.doubts}) > 0
    assert (
        value(samples, "farm_results_doubted", doubt="few_samples") == len(cells) + len(farm.content.streams) / BLOCKS
    )
    assert value(samples, "farm_results_doubted", doubt="resumed") == 0


def _figures_are_those_of_the_report(samples: Samples, summary: Summary, labels: dict[str, str]) -> None:
    """A figure that is not resolved has no sample."""
    assert any(told.value is not None for told in told_of(summary))
    assert "cpu time" in summary.others
    for told in told_of(summary):
        quantity, of = QUANTITIES[told.metric], {**labels, **told.labels}
        if told.value is not None:
            assert value(samples, quantity.family, stat="median", **of) == pytest.approx(told.value * quantity.base)
        else:
            assert not [name for name, own in samples if name == quantity.family and of.items() <= dict(own).items()]


def test_probes_are_answered_without_a_scrape(farm: Farm) -> None:
    for path, kind in (("/metrics", "openmetrics|version=0.0.4|version=1.0.0"), ("/-/healthy", "text/plain")):
        url = farm.exporter_url.replace("/metrics", path)
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as reply:
            assert reply.status == 200 and reply.read() == b""
            assert re.search(kind, reply.headers["Content-Type"])
    assert get(farm.exporter_url.replace("/metrics", "/-/healthy")) == "The exporter is healthy.\n"


def test_a_prometheus_gets_the_same_compressed(farm: Farm) -> None:

    def standing(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith("farm_device_info{")]

    url = farm.exporter_url
    assert standing(scraped(url)) == standing(get(url)) != []


def test_no_label_is_a_job(farm: Farm) -> None:
    text = get(farm.exporter_url)
    assert not [a.job_id for a in farm.content.leased if a.job_id in text]
    assert not [record.job_id for record in farm.content.records if record.job_id in text]


def test_promtool_finds_nothing_to_complain_of(farm: Farm) -> None:
    """Its linter knows Prometheus's conventions: base units, suffixes, help texts."""
    text = get(farm.exporter_url)
    done = subprocess.run([required("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_documented(farm: Farm) -> None:
    page = (DASHBOARDS.parent / "docs" / "metrics.md").read_text()
    names = set(re.findall(r"^# TYPE (farm_\w+)", get(farm.exporter_url), re.MULTILINE))
    told = set(re.findall(r"`(farm_\w+)", page))
    assert {name for name in names - told if not name.startswith("farm_exporter_process_")} == set()
    assert told <= names, "documented, but not exported"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[RedisServer, str]]:
    """An exporter of its own, with a Redis that may be stopped."""
    with RedisServer(tmp_path / "redis") as server:
        with (
            Redis.from_url(server.url, decode_responses=True) as redis,
            Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger,
        ):
            fill(redis, ledger, seed=1)
        with exporter(state_settings(tmp_path, server.url)) as url:
            yield server, url


def until(url: str, part: str, up: float, limit_s: float = 60.0) -> Samples:
    """Scrape until a part is up or away: answers are cached for two seconds."""
    end = time.monotonic() + limit_s
    while True:
        samples = scrape(url)
        if value(samples, "farm_up", part=part) == up:
            return samples
        assert time.monotonic() < end, f"{part} did not become {up}"
        time.sleep(0.3)


def test_goes_on_without_redis_and_finds_it_again(alone: tuple[RedisServer, str]) -> None:
    server, url = alone
    assert value(until(url, "redis", 1), "farm_device_info", serial="galaxy-s7") == 1
    server.stop(kill=True)
    away = until(url, "redis", 0)
    assert not [key for key in away if key[0] == "farm_device_info"], "what was last known is not what is"
    assert value(away, "farm_up", part="ledger") == 1
    assert value(away, "farm_jobs", state="done", outcome="ok") > 0
    assert value(away, "farm_scrape_errors_total", part="redis") >= 1
    server.start()
    until(url, "redis", 1)


def test_a_redis_that_hangs_does_not_cost_a_scrape(alone: tuple[RedisServer, str]) -> None:
    server, url = alone
    until(url, "redis", 1)
    with Redis.from_url(server.url, decode_responses=True) as redis:
        pid = redis.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        hung = until(url, "redis", 0)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert value(hung, "farm_up", part="ledger") == 1
    took = sum(v for (name, _), v in hung.items() if name == "farm_scrape_duration_seconds")
    assert took < PROMETHEUS_GIVES_UP_S
    until(url, "redis", 1)


def test_goes_on_without_the_ledger(tmp_path: Path) -> None:
    with private_redis(tmp_path / "redis") as redis_url:
        settings = state_settings(tmp_path, redis_url)
        settings["FARM_LEDGER_URL"] = f"postgresql+psycopg://farm@/farm?host={tmp_path / 'nowhere'}"
        with exporter(settings) as url:
            samples = scrape(url)
            assert value(samples, "farm_up", part="ledger") == 0
            assert value(samples, "farm_up", part="redis") == 1
            assert value(samples, "farm_leases", state="claimed") == 0
