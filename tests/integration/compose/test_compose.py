"""compose.yaml, as far as it can be checked without an engine; test_joining.py runs its commands."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from device_agent.build import PHONE_ABIS
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.source_tree import ROOT
from workers.devices.admit import agent_folder

TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KEYS = {
    "build", "command", "depends_on", "device_cgroup_rules", "entrypoint", "environment", "healthcheck", "image",
    "init", "network_mode", "ports", "restart", "stop_grace_period", "volumes",
}  # fmt: skip
each_service = pytest.mark.parametrize("name", SERVICES)


def mounts(name: str) -> list[tuple[str, str]]:
    """(source, target) of each volume."""
    return [(volume.split(":")[0], volume.split(":")[1]) for volume in SERVICES[name].get("volumes", ())]


def test_brings_up_what_it_should() -> None:
    wanted = {
        "redis",
        "postgres",
        "prometheus",
        "alertmanager",
        "grafana",
        "scheduler",
        "beat",
        "exporter",
        "worker",
        "web",
        "people",
    }
    assert wanted <= set(SERVICES)
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "volumes"}


@each_service
def test_service_is_pinned_checked_and_restarted(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= KEYS
    own = "build" in service
    exact = r":v?\d+\.\d+\.\d+" if own else r":v?\d+\.\d+(\.\d+)?@sha256:[0-9a-f]{64}"
    assert re.search(exact + "$", service["image"]), "an exact version, and the digest where others built it"
    if name == "certificates":  # it ends
        assert service["restart"] == "on-failure"
        return
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@each_service
def test_only_loopback_ports_are_published_until_somebody_says_otherwise(name: str) -> None:
    listen = "${FARM_LISTEN_IP:-127.0.0.1}:" if name in ("redis", "web", "people") else "127.0.0.1:"
    assert all(port.startswith(listen) for port in SERVICES[name].get("ports", ()))
    assert "6379" not in str(SERVICES[name].get("ports")), "hosts come by TLS"


@each_service
def test_mounts_exist(name: str) -> None:
    for source, target in mounts(name):
        assert target.startswith("/")
        if source.startswith("."):
            assert (ROOT / source).exists(), source
        elif not source.startswith("/"):
            assert source in COMPOSE["volumes"], source


@pytest.mark.parametrize("abi", PHONE_ABIS)
def test_the_image_takes_the_agents_for_phones(abi: str) -> None:
    """`make agent` puts them where the worker in the image looks, and .dockerignore lets them through."""
    agent = f"device_agent/build/{abi}/pocketfarm-agent"
    assert ignored("device_agent/build-zig/cache/x") and ignored(f"device_agent/build/{abi}/CMakeCache.txt")
    assert ignored("device_agent/build/x86_64/pocketfarm-agent"), "the image builds its own"
    assert not ignored(agent)
    assert "COPY . ." in (ROOT / "Dockerfile").read_text()
    assert agent_folder(Settings()) / abi / "pocketfarm-agent" == ROOT / agent
    assert "FARM_AGENT_DIR" not in TEXT


def test_the_image_takes_all_that_is_shipped() -> None:
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert "device_agent/build.py" in tracked
    assert not [path for path in tracked if ignored(path) and not path.startswith("tests/")]


def ignored(path: str) -> bool:
    """Tell whether .dockerignore keeps a path out of the image: the last line that matches it or its folder decides."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text().split():
        parts = Path(path).parts
        if any(fnmatch("/".join(parts[: n + 1]), line.removeprefix("!")) for n in range(len(parts))):
            verdict = not line.startswith("!")
    return verdict


def test_every_volume_is_used() -> None:
    assert {source for name in SERVICES for source, _ in mounts(name)} >= set(COMPOSE["volumes"])


@each_service
def test_waits_for_services_that_have_a_health(name: str) -> None:
    for other, condition in SERVICES[name].get("depends_on", {}).items():
        wanted = "service_completed_successfully" if other == "certificates" else "service_healthy"
        assert condition == {"condition": wanted}
        assert other == "certificates" or "healthcheck" in SERVICES[other]
    network = SERVICES[name].get("network_mode", "")
    assert not network or network.removeprefix("service:") in SERVICES


def test_variables_are_documented_and_secrets_are_required() -> None:
    asked = dict(re.findall(r"(?<!\$)\$\{(\w+)(:[?-])", TEXT))
    told = set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert set(asked) == told
    assert all(kind == ":?" for name, kind in asked.items() if "PASSWORD" in name)
    assert re.findall(r"^\w*PASSWORD=(.+)$", (ROOT / ".env.example").read_text(), re.MULTILINE) == []


@each_service
def test_our_parts_exist_and_know_their_settings(name: str) -> None:
    service = SERVICES[name]
    if "build" not in service:
        return
    if service["command"][:2] == ["python", "-m"]:
        assert importlib.util.find_spec(service["command"][2]) is not None
    settings = {f"FARM_{field.upper()}" for field in Settings.model_fields}
    assert {key for key in service["environment"] if key.startswith("FARM_")} <= settings


def test_the_image_is_built_from_files_that_are_sent() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY")]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert copied and all((ROOT / source).exists() and source not in ignored for source in copied)
    assert ".env" in ignored, "secrets stay out of images"
    assert any(line.startswith("USER ") and line != "USER root" for line in lines)


def test_the_health_checks_see_what_a_process_list_does_not(tmp_path: Path) -> None:
    """The very commands of scheduler and worker: red until the part has done its work, and red without Redis."""
    checks = {part: SERVICES[part]["healthcheck"]["test"][2:] for part in ("scheduler", "worker")}
    server = RedisServer(tmp_path / "redis", persist=False)
    environment = {**os.environ, "FARM_REDIS_URL": server.url, "FARM_HOST": "lab"}

    def is_healthy(part: str) -> bool:
        return subprocess.run([sys.executable, *checks[part]], env=environment, capture_output=True).returncode == 0

    assert not is_healthy("worker"), "no Redis"
    try:
        server.start()
        with client_of(Settings(redis_url=server.url)) as redis:
            assert not is_healthy("scheduler") and not is_healthy("worker")
            Inventory(redis).announce_waiting({})
            Inventory(redis).announce_host(HostAnnouncement(host="other", worker="w", pid=1))
            assert is_healthy("scheduler") and not is_healthy("worker")
            Inventory(redis).announce_host(HostAnnouncement(host="lab", worker="w", pid=1))
            assert is_healthy("worker")
    finally:
        server.close()


def test_grafana_finds_dashboard_and_data_source() -> None:
    targets = dict(mounts("grafana"))
    provisioning = ROOT / "dashboards" / "grafana" / "provisioning"
    provider = yaml.safe_load((provisioning / "dashboards" / "farm.yml").read_text())["providers"][0]
    assert targets["./dashboards/grafana/boards"] == provider["options"]["path"]
    source = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"][0]
    assert source["uid"] == "prometheus"
    assert source["url"].removeprefix("$") in SERVICES["grafana"]["environment"]
    assert targets["./dashboards/grafana/provisioning"] == "/etc/grafana/provisioning"


def test_prometheus_finds_its_files() -> None:
    targets = {Path(source).name: target for source, target in mounts("prometheus")}
    assert f"--config.file={targets['prometheus.yml']}" in SERVICES["prometheus"]["command"]
    config = yaml.safe_load((ROOT / "dashboards" / "prometheus.yml").read_text())
    folder = Path(targets["prometheus.yml"]).parent
    assert all(targets[name] == str(folder / name) for name in config["rule_files"])
    assert Path(targets["targets.compose.yml"]).name == config["scrape_configs"][0]["file_sd_configs"][0]["files"][0]
    assert (
        Path(targets["alertmanagers.compose.yml"]).name
        == config["alerting"]["alertmanagers"][0]["file_sd_configs"][0]["files"][0]
    )
    (where,) = yaml.safe_load((ROOT / "dashboards" / "targets.compose.yml").read_text())
    assert where["targets"] == [f"exporter:{SERVICES['exporter']['environment']['FARM_EXPORTER_PORT']}"]
    (where,) = yaml.safe_load((ROOT / "dashboards" / "alertmanagers.compose.yml").read_text())
    (port,) = SERVICES["alertmanager"]["ports"]
    assert where["targets"] == [f"alertmanager:{port.rpartition(':')[2]}"]


def test_docker_accepts_it(tmp_path: Path) -> None:
    """Some version of Docker's compose has to be installed; an engine is not needed."""
    command = compose_command()
    text = TEXT if len(command) > 1 else TEXT.replace("name: pocketfarm\n", "")  # version 1 knows no name
    (tmp_path / "compose.yaml").write_text(text)
    (tmp_path / ".env").write_text((ROOT / ".env.example").read_text().replace("PASSWORD=", "PASSWORD=x"))
    done = subprocess.run([*command, "config", "--quiet"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def compose_command() -> list[str]:
    """`docker compose`, or `docker-compose` of version 1."""
    docker, old = shutil.which("docker"), shutil.which("docker-compose")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        return [docker, "compose"]
    if old is None:
        pytest.skip("no `docker compose` and no `docker-compose` on this machine")
    return [old]
