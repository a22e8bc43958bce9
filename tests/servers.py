"""Private servers for tests: real ones, in a temporary folder, ended by pid.

    with private_redis(tmp_path) as url: ...
    with private_adb(tmp_path) as port: ...
    with private_postgres(tmp_path) as url: ...

A binary that is missing skips the test at home and fails it in CI (`CI=true`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import pytest

from farm.parts.part import free_port

START_S = 60.0
T = TypeVar("T")


def told_by(processes: Iterable[psutil.Process], ask: Callable[[psutil.Process], T]) -> list[T]:
    """Return the answers of those that have not ended meanwhile: commands of a host come and go."""
    found = []
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            found.append(ask(each))
    return found


def required(binary: str) -> str:
    """Absolute path of a binary; where it is missing: skip at home, fail in CI."""
    path = shutil.which(binary)
    if path is None:
        missing(binary)
    assert path is not None
    return path


def missing(what: str) -> None:
    """Skip at home, fail in CI: what a test needs is not on this machine."""
    verdict = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    verdict(f"{what} is not installed on this machine")


def warn(what: str) -> None:
    """A line in pytest's summary: the test goes on, though warnings are errors elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(what, stacklevel=3)


class Server:
    """One private server process that can be killed and started again."""

    def __init__(self, argv: Sequence[str], log: Path, answers: Callable[[], bool], **options: Any) -> None:
        self._argv, self._log, self._answers, self._options = list(argv), log, answers, options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; its log is in the error where it does not."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._options
            )
        end = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"{self._argv[0]} did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.01)

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, *, kill: bool = False) -> None:
        """End it by its pid; does nothing where it has ended."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill() if kill else self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(START_S)
        self._process = None

    def mend(self) -> None:
        """Start it again where it has died or is stuck, and say so: a test is not to spoil the next."""
        if self.is_alive() and self._answers_within(START_S):
            return
        said = self._log.read_text()[-500:].strip()
        warn(f"the private server `{' '.join(self._argv)[:100]}` had died and is started again; it said: {said}")
        self.stop(kill=True)
        self.start()

    def _answers_within(self, limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while not self._answers():
            if not self.is_alive() or time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True


class RedisServer(Server):
    """A Redis on a unix socket, with an append-only file that outlives its process; `url` names it."""

    def __init__(self, folder: Path, *, persist: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # A unix socket's path has at most 107 bytes, and pytest's folders are long.
        self._short = tempfile.TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True)
        self.socket = Path(self._short.name) / "redis.sock"
        self.url = f"unix://{self.socket}"
        options = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder), "--save", ""]
        options += ["--appendonly", "yes" if persist else "no", "--appendfsync", "everysec"]
        super().__init__([required("redis-server"), *options], folder / "redis.log", self._pings)

    def _pings(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith(b"+PONG")
            except OSError:
                return False

    def close(self) -> None:
        self.stop()
        self._short.cleanup()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self.close)
            self.start()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lru_cache
def adb_key() -> Path:
    """The private key of every adb server of these tests; `adb_key().with_suffix(".pub")` is what phones are told."""
    folder = Path(tempfile.mkdtemp(prefix="adb-key-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([required("adb"), "keygen", str(folder / "adbkey")], check=True, capture_output=True, timeout=60)
    return folder / "adbkey"


@contextmanager
def private_redis(folder: Path) -> Iterator[str]:
    """A real redis-server of our own; yields its `unix://` URL."""
    with RedisServer(folder) as server:
        yield server.url


class PrivateAdb(Server):
    """A real adb server of our own for loopback phones only, on `port`. HOME is `folder`; it has the tests' key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        keys = folder / ".android"
        keys.mkdir(exist_ok=True)
        for key in (adb_key(), adb_key().with_suffix(".pub")):
            shutil.copy(key, keys)
        quiet = {"ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0", "ADB_MDNS_AUTO_CONNECT": "", "HOME": str(folder)}
        environment = {**os.environ, **quiet, "ANDROID_ADB_SERVER_PORT": str(self.port)}
        argv = [required("adb"), "-P", str(self.port), "nodaemon", "server"]
        super().__init__(argv, folder / "adb.log", self._is_served, env=environment)

    def _is_served(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as client:
                client.sendall(b"000chost:version")
                return client.recv(4) == b"OKAY"
        except OSError:
            return False


@contextmanager
def private_adb_server(folder: Path) -> Iterator[PrivateAdb]:
    """A private adb server that outlives tests: `mend()` it before each one that needs it."""
    server = PrivateAdb(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def private_adb(folder: Path) -> Iterator[int]:
    """A private adb server; yields its port."""
    with private_adb_server(folder) as server:
        yield server.port


@contextmanager
def private_postgres(folder: Path, tls: tuple[int, Path, Path] | None = None) -> Iterator[str]:
    """A real PostgreSQL of our own on a unix socket; yields a SQLAlchemy URL. `tls`: loopback port, certificate and
    key, by which it is reached too, and not without TLS."""
    with postgres_server(folder, tls) as server:
        yield server.url


class PostgresServer(Server):
    """A PostgreSQL that tests may kill and start again; `url` is SQLAlchemy's."""

    url: str


@contextmanager
def postgres_server(folder: Path, tls: tuple[int, Path, Path] | None = None) -> Iterator[PostgresServer]:
    """The same as a server."""
    initdb, postgres = required("initdb"), required("postgres")
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as short:
        home, options = Path(short), _other_user(Path(short))
        data = home / "data"
        argv = [initdb, "-D", str(data), "-U", "farm", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(argv, check=True, capture_output=True, cwd=short, **options)
        argv = [postgres, "-D", str(data), "-k", short, "-c", "fsync=off"]
        argv += _over_tls(home, data, *tls) if tls else ["-c", "listen_addresses="]
        folder.mkdir(parents=True, exist_ok=True)
        port = tls[0] if tls else 5432
        log = folder / "postgres.log"
        server = PostgresServer(argv, log, lambda: _postgres_answers(home, port), cwd=short, **options)
        server.url = f"postgresql+psycopg://farm@/postgres?host={short}"
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _other_user(home: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: give the folder to `nobody` there."""
    if os.geteuid() != 0:
        return {}
    shutil.chown(home, "nobody")
    return {"user": "nobody"}


def _over_tls(home: Path, data: Path, port: int, certificate: Path, key: Path) -> list[str]:
    """Options of a server that takes TLS alone on loopback."""
    for source, name in ((certificate, "server.crt"), (key, "server.key")):
        target = home / name
        target.write_bytes(source.read_bytes())
        target.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(target, "nobody")
    (data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
    words = {"listen_addresses": "127.0.0.1", "port": port, "ssl": "on"}
    words |= {"ssl_cert_file": home / "server.crt", "ssl_key_file": home / "server.key"}
    return [part for name, value in words.items() for part in ("-c", f"{name}={value}")]


def _postgres_answers(home: Path, port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(host=str(home), port=port, user="farm", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True
