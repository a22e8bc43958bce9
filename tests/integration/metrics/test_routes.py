"""The routes of alerts, in a real Alertmanager that the command of compose.yaml starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest

from farm.parts.part import free_port
from tests.integration.compose.test_compose import SERVICES
from tests.servers import Server, required
from tests.unit.history.test_morning import Hook, serving
from tests.waiting import eventually

from .conftest import Farm
from .servers import DASHBOARDS, get, ready
from .test_alerts import RULES

ROUTES = DASHBOARDS / "alertmanager.yml"


def receiver(rule: dict[str, Any]) -> str:
    """Whoever should hear of it: what is of a suite or an experiment is a night's."""
    of_night = re.search(r"\$labels\.(suite|experiment)", rule["annotations"]["summary"])
    return "nights" if of_night else {"critical": "now", "warning": "today"}[rule["labels"]["severity"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_goes_where_it_should(rule: dict[str, Any]) -> None:
    labels = (f"alertname={rule['alert']}", f"severity={rule['labels']['severity']}")
    command = [required("amtool"), "config", "routes", "test", f"--config.file={ROUTES}", *labels]
    assert subprocess.check_output(command, text=True).split() == [receiver(rule)]


def command(folder: Path, port: int) -> list[str]:
    """The command of compose.yaml, but for folders, port and the name of the program."""
    service = SERVICES["alertmanager"]
    here = {
        "$$": "$", "/etc/alertmanager/routes.yml": str(folder / "routes.yml"),
        "/alertmanager/": f"{folder}/", "path=/alertmanager": f"path={folder}",
        "exec alertmanager": f"exec {required('prometheus-alertmanager')} --web.listen-address=127.0.0.1:{port}",
    }  # fmt: skip
    any_of = re.compile("|".join(map(re.escape, here)))
    return [*service["entrypoint"], any_of.sub(lambda found: here[found[0]], service["command"][0])]


@dataclass(frozen=True)
class Alertmanager:
    url: str
    hook: type[Hook]

    def heard(self) -> set[tuple[str, str]]:
        """Receiver and alert."""
        found: list[Any] = [*self.hook.got]
        return {(each["receiver"], alert["labels"]["alertname"]) for each in found for alert in each["alerts"]}


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """An Alertmanager with the shipped routes at a quicker pace; what it tells comes to `heard`."""
    folder, port, hook = tmp_path_factory.mktemp("alertmanager"), free_port(), type("H", (Hook,), {"got": []})
    (folder / "routes.yml").write_text(re.sub(r"(group_\w+): \d+[ms]", r"\1: 1s", ROUTES.read_text()))
    with serving(HTTPServer(("127.0.0.1", 0), hook)) as here:
        address = f"http://127.0.0.1:{here}/hook?to=a&b=c"
        environment = {**os.environ, "FARM_ALERTS_URL": address}
        server = Server(command(folder, port), folder / "log", lambda: ready(port), env=environment)
        server.start()
        try:
            assert (folder / "alertmanager.yml").read_text().count(f'"{address}"') == 3
            yield Alertmanager(f"http://127.0.0.1:{port}", hook)
        finally:
            server.stop()


def test_what_fires_is_told(farm: Farm, alertmanager: Alertmanager) -> None:
    """Alerts go from the farm's exporter by Prometheus and Alertmanager to whoever listens."""
    known = farm.prometheus.alertmanagers.read_text()
    try:
        target = alertmanager.url.removeprefix("http://")
        farm.prometheus.alertmanagers.write_text((DASHBOARDS / "alertmanagers.compose.yml").read_text().replace(
            "alertmanager:9093", target))  # fmt: skip
        fires = {each["metric"]["alertname"] for each in farm.prometheus.wait_for('ALERTS{alertstate="firing"}')}
        expected = {(receiver(rule), rule["alert"]) for rule in RULES if rule["alert"] in fires}
        assert {each for each, _ in expected} >= {"now", "today"}
        eventually(lambda: expected <= alertmanager.heard())
    finally:
        farm.prometheus.alertmanagers.write_text(known)


@pytest.mark.parametrize(
    ("cause", "follows", "stays"),
    [
        ({"alertname": "PartDown", "part": "ledger"}, {"alertname": "ScrapeErrors", "part": "ledger"},
         {"alertname": "ScrapeErrors", "part": "redis"}),
        ({"alertname": "SchedulerSilent"}, {"alertname": "QueueStuck"}, {"alertname": "DeadLetters"}),
    ],
)  # fmt: skip
def test_a_cause_silences_what_follows_from_it(
    alertmanager: Alertmanager, cause: dict[str, str], follows: dict[str, str], stays: dict[str, str]
) -> None:
    body = json.dumps([{"labels": each} for each in (cause, follows, stays)]).encode()
    url = f"{alertmanager.url}/api/v2/alerts"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).close()

    def states() -> list[str]:
        state = {tuple(sorted(each["labels"].items())): each["status"]["state"] for each in json.loads(get(url))}
        return [state.get(tuple(sorted(each.items())), "") for each in (cause, follows, stays)]

    eventually(lambda: states() == ["active", "suppressed", "active"])


def test_without_an_address_nobody_is_told(tmp_path: Path) -> None:
    (tmp_path / "routes.yml").write_text(ROUTES.read_text())
    port = free_port()
    server = Server(
        command(tmp_path, port), tmp_path / "log", lambda: ready(port), env={**os.environ, "FARM_ALERTS_URL": ""}
    )
    server.start()
    server.stop()
    text = (tmp_path / "alertmanager.yml").read_text()
    assert "webhook" not in text and text.count("- name: ") == 3
