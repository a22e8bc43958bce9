"""Another machine joins the farm of compose.yaml: its own commands, run here but for folders, ports and users.

No engine is needed: what compose would start in containers are processes of this machine.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPSHandler, build_opener

import psutil
import psycopg
import pytest
from redis.exceptions import AuthenticationError

from farm.join import Join
from farm.parts.part import free_port
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.people import Kind, Role
from orchestrator.system.config import Settings
from tests.chaos.running_farm import READY_S, environment
from tests.servers import Server, required
from tests.waiting import eventually

from .test_compose import SERVICES


@dataclass(frozen=True)
class Stack:
    """The paths, password and ports that compose gives its services, in folders of the test."""

    root: Path
    password: str
    plain: int
    redis: int
    web: int
    people: int

    def words(self, command: list[str]) -> list[str]:
        """A command of compose.yaml on this machine."""
        here = {
            "$$": "$", "${FARM_LISTEN:-localhost}": "127.0.0.1", "/tls": str(self.root / "tls"),
            "/data": str(self.root / "data"), "6379": str(self.plain), "6380": str(self.redis), "7443": str(self.web),
            "8443": str(self.people), "0.0.0.0": "127.0.0.1", "/var/lib/pocketfarm": str(self.root / "state"),
        }  # fmt: skip
        any_of = re.compile("|".join(rf"\b{each}\b" if each.isdigit() else re.escape(each) for each in here))
        words = [any_of.sub(lambda found: here[found[0]], word) for word in command]
        start = {"python": [sys.executable], "farm": [sys.executable, "-m", "farm.cli"]}
        return [*start.get(words[0], [words[0]]), *words[1:]]

    def health(self, service: str) -> bool:
        kind, *command = SERVICES[service]["healthcheck"]["test"]
        argv = self.words(["sh", "-c", *command] if kind == "CMD-SHELL" else command)
        return subprocess.run(argv, env=self.environment(), capture_output=True, timeout=60).returncode == 0

    def environment(self) -> dict[str, str]:
        return {
            **environment(), "FARM_STATE": str(self.root / "state"), "FARM_LISTEN": "127.0.0.1",
            "FARM_REDIS_URL": f"redis://127.0.0.1:{self.plain}/0", "FARM_REDIS_PASSWORD": self.password,
            "FARM_REDIS_PORT": str(self.redis), "FARM_WEB_PORT": str(self.web),
            "FARM_PEOPLE_PORT": str(self.people),
        }  # fmt: skip

    def server(self, service: str) -> Server:
        log = self.root / f"{service}.log"
        command = self.words(SERVICES[service]["command"])
        port: int = getattr(self, service)

        def answers() -> bool:  # a check of its health starts an interpreter
            return _listens(port) and self.health(service)

        return Server(command, log, answers, env=self.environment(), cwd=self.root)

    def farm(self, *words: str) -> str:
        argv = [sys.executable, "-m", "farm.cli", *words]
        return subprocess.run(
            argv, env=self.environment(), check=True, capture_output=True, timeout=60, text=True
        ).stdout


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """A stack with the certificates made."""
    required("redis-server")
    (tmp_path / "data").mkdir()
    made = Stack(tmp_path, secrets.token_hex(24), *(free_port() for _ in range(4)))
    command = made.words(SERVICES["certificates"]["command"])
    subprocess.run(command, env=made.environment(), check=True, capture_output=True, timeout=60)
    return made


@contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_a_host_joins_by_tls_with_a_user_of_its_own(stack: Stack) -> None:
    """People log in meanwhile. It waits for the farm, then announces itself by TLS; Redis knows its user after a
    restart, too; `ps` shows no password."""
    with running(stack.server("redis")) as redis:
        stack.farm("ledger", "check")
        with running(stack.server("web")):
            join = stack.root / "lab2.join"
            stack.farm("host", "add", "lab2", "--out", str(join))
            _lets_in_the_first_administrator(stack)
            redis.stop()
            assert not stack.health("redis")
            told = Join.model_validate_json(join.read_bytes())
            assert (told.redis_url, told.files_url) == (
                f"rediss://127.0.0.1:{stack.redis}/0", f"https://127.0.0.1:{stack.web}",
            )  # fmt: skip
            with joined(stack, join) as log:
                eventually(lambda: "waiting" in log.read_text() and "Connection refused" in log.read_text(), READY_S)
                redis.start()
                words = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
                assert not [each for each in words if stack.password in each]
                own = Settings(redis_url=f"redis://127.0.0.1:{stack.plain}/0", redis_password=stack.password)
                with client_of(own) as client:
                    eventually(lambda: [each.host for each in Inventory(client).hosts()] == ["lab2"], READY_S)
                    assert {each["user"] for each in client.client_list()} >= {"host-lab2"}
        for refused in (Settings(redis_url=own.redis_url), own.model_copy(update={"redis_user": "host-lab2"})):
            with client_of(refused) as client, pytest.raises(AuthenticationError):
                client.ping()


def _lets_in_the_first_administrator(stack: Stack) -> None:
    """Let anna in by a link of one use, over the certificate of the farm's own authority."""
    with running(stack.server("people")):
        with Ledger(f"sqlite:///{stack.root}/state/ledger.sqlite") as ledger:
            ledger.people.add("anna", Kind.PERSON)
            ledger.people.grant("anna", Role.ADMINISTER)
        address, _, token = stack.farm("people", "password", "anna").split()[-1].partition("/password#")
        assert address == f"https://127.0.0.1:{stack.people}" and token
        trusted = ssl.create_default_context(cafile=str(stack.root / "tls" / "ca.crt"))
        jar = HTTPCookieProcessor()
        browser = build_opener(HTTPSHandler(context=trusted), jar)
        assert urlsplit(browser.open(f"{address}/people").url).path == "/sign-in"
        words = {"token": token, "password": "many words in a row", "again": "many words in a row"}
        assert browser.open(f"{address}/password", urlencode(words).encode()).url == f"{address}/"
        assert b"anna" in browser.open(f"{address}/people").read()
        assert all(each.secure for each in jar.cookiejar)
        with pytest.raises(HTTPError, match="403"):
            build_opener(HTTPSHandler(context=trusted)).open(f"{address}/password", urlencode(words).encode())


@contextmanager
def joined(stack: Stack, join: Path) -> Iterator[Path]:
    """`farm up --join` on another state folder; its log."""
    command = [sys.executable, "-m", "farm.cli", "up", "--state", str(stack.root / "lab2"), "--join", str(join)]
    log = stack.root / "up.log"
    with running(Server([*command, "--virtual", "1"], log, lambda: True, env=environment())):
        yield log


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that another user reaches: every session of pytest closes the folders above `tmp_path`."""
    with TemporaryDirectory(prefix="pg-") as name:
        yield Path(name)


def test_the_ledger_is_reached_by_tls_alone_that_the_authority_proves(stack: Stack, home: Path) -> None:
    """The very command and URL; the image's entry point, which gives up root's rights, has a stand-in of two lines."""
    bin_, user = Path(required("postgres")).parent, "nobody" if os.geteuid() == 0 else ""
    port = free_port()
    if user:
        shutil.chown(home, user)
    as_user = ["setpriv", f"--reuid={user}", "--clear-groups"] * bool(user)
    initdb = [str(bin_ / "initdb"), "-D", str(home / "data"), "-U", "farm", "-A", "trust", "--no-sync"]
    subprocess.run([*as_user, *initdb], check=True, capture_output=True, cwd=home)
    (home / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
    (home / "docker-entrypoint.sh").write_text(
        f'#!/bin/sh\nexec {" ".join(as_user)} "$@" -D {home}/data -k {home} -c listen_addresses=127.0.0.1 -p {port}\n'
    )
    (home / "docker-entrypoint.sh").chmod(0o755)
    command = stack.words(SERVICES["postgres"]["command"])
    command[-1] = (
        command[-1].replace("/var/lib/postgresql", str(home)).replace("-o postgres", f"-o {user}" * bool(user))
    )
    url = SERVICES["scheduler"]["environment"]["FARM_LEDGER_URL"].replace("postgresql+psycopg", "postgresql")
    url = stack.words([url.replace("@postgres/farm", f"@127.0.0.1:{port}/postgres")])[0]

    def encrypted() -> bool:
        try:
            with psycopg.connect(url, connect_timeout=5) as found:
                row = found.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
                return row == (True,)
        except psycopg.OperationalError:
            return False

    paths = {**os.environ, "PATH": f"{home}:{bin_}:{os.environ['PATH']}"}
    with running(Server(command, stack.root / "postgres.log", encrypted, cwd=home, env=paths)):
        other = stack.root / "other"
        stack.farm("host", "certificate", "x", "--out", str(other), "--state", str(stack.root / "another"))
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(url.replace(str(stack.root / "tls"), str(other)))
