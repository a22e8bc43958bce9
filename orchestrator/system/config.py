"""Settings of the farm. Nothing else reads the environment. Secrets come from here and never reach a log."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "FARM_"
HOST_NAME = r"^[A-Za-z0-9_-]+$"


class SignOn(BaseModel):
    """A provider of OpenID Connect by which people log in on the pages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: str
    """Its https:// address, as it calls itself; http:// only on this machine's loopback."""
    client: str
    """The name under which it knows this farm."""
    secret_file: Path | None = None
    """File with the secret that it gave this farm; None: it knows it by PKCE alone."""
    name: str = "email"
    """The claim that is a person's name here; `email` is one that the provider has verified."""
    domains: frozenset[str] = frozenset()
    """Domains of verified e-mail addresses that are let in; empty: all."""
    unknown: bool = False
    """True if whoever it knows is let in, without a role; else only who was added before."""
    groups_claim: str = "groups"
    """The claim that lists somebody's groups there."""
    groups: dict[str, str] = Field(default_factory=dict)
    """A group there -> the group here whose people are those of it, as they log in."""

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str) -> str:
        found = urlsplit(issuer)
        loopback = found.scheme == "http" and found.hostname in ("127.0.0.1", "::1", "localhost")
        if not found.hostname or not (found.scheme == "https" or loopback) or found.query or found.fragment:
            raise ValueError("it is an https:// address without a query")
        return issuer

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).netloc

    def secret(self) -> str | None:
        """Return the secret. Raises OSError."""
        return self.secret_file.read_text().strip() if self.secret_file else None


class Settings(BaseSettings):
    """Every setting can be given as an environment variable `FARM_<NAME>`; `farm up` sets them for its parts."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    state: Path = Path(".farm")
    """Folder for everything that this farm keeps: ledger, spool, caches, logs, artifacts."""
    ledger_url: str = ""
    """SQLAlchemy URL; empty: SQLite in the state folder. PostgreSQL: postgresql+psycopg://user@host/db"""
    redis_url: str = ""
    """redis://, rediss:// or unix:// URL; empty: what `farm up` wrote into the state folder."""
    redis_user: str = ""
    """User of Redis; empty: its default one. A host has its own (`farm host add`)."""
    redis_password: SecretStr = SecretStr("")
    """The password of that user. A host's is also what it shows to fetch files."""
    tls_ca: Path | None = None
    """Certificate (PEM) of the authority that signs those of Redis (rediss://) and of the farm's files; None: the
    system's authorities."""
    files_url: str = ""
    """https:// URL of the farm whose host this machine is, for files of experiments; empty: they are in the state
    folder."""
    listen: str = ""
    """Name or address by which hosts reach a farm whose parts somebody else starts (compose.yaml), on `redis_port` and
    `web_port`; empty: `farm up --listen` says it."""
    redis_port: int = Field(default=6380, ge=1, le=65535)
    """Port on which hosts reach the Redis of `farm up --listen`, by TLS."""
    web_port: int = Field(default=7443, ge=1, le=65535)
    """Port on which hosts reach the files of `farm up --listen`, by HTTPS."""
    people_port: int = Field(default=8443, ge=0, le=65535)
    """Port on which people of other machines reach the pages and the API of `farm up --listen`, by HTTPS; 0: a free
    one."""
    certificate: Path | None = None
    """Certificate with its chain (PEM), for the pages and the API of `farm up --listen`; None: the farm's own authority
    signs one. A file that is renewed counts within a minute."""
    key: Path | None = None
    """The key of that certificate (PEM, without a passphrase)."""
    url: str = ""
    """https:// address by which people reach the pages, where a proxy has it; empty: that of `--listen`."""
    proxies: str = ""
    """Addresses and networks, with commas, of the proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    pages_port: int = Field(default=8420, ge=0, le=65535)
    """Port of the farm's pages, on loopback. 0: a free one."""
    pages_private: bool = False
    """True if looking at the pages takes the farm's token, too: else every user of this machine may look."""
    oidc: SignOn | None = None
    """The provider of OpenID Connect by which people log in, as JSON: `{"issuer": "https://id.lab", "client": "farm"}`
    (docs/howto/a-lab.md)."""
    webhooks_here: bool = False
    """True if webhooks may call servers of this machine itself, by its loopback."""
    prometheus_url: str = ""
    """The URL of the Prometheus that scrapes the farm, for the charts of its pages; empty: they have none."""
    host: str = Field(default_factory=lambda: socket.gethostname().split(".")[0] or "host", pattern=HOST_NAME)
    """Name of this farm host: one adb server and the worker that owns it."""
    adb_path: str = ""
    """Absolute path of the adb binary; empty: the one on PATH."""
    adb_port: int = 5037
    """Port of this host's adb server."""
    adb_socket: Path | None = None
    """Unix socket of this host's adb server, as the private server of `farm up` has; None: it listens on `adb_port`,
    where every user of this machine may use it."""
    exporter_host: str = "127.0.0.1"
    """Address that the metrics exporter listens on; another one only inside a container's own network."""
    exporter_port: int = 9464
    """0: a free port, which the exporter prints."""
    debug: bool = False
    """Show the Python traceback of an error."""
    lease_ttl_s: float = 15.0
    """A lease that is not renewed for this long is reaped."""
    server: str = ""
    """Address of a farm elsewhere, which commands use in place of one here: what `farm login` has checked."""
    token: SecretStr = SecretStr("")
    """The token for that farm; empty: the one of `farm login`."""
    login: Path = Path("~/.config/pocketfarm/login.json")
    """File of `farm login`: a farm elsewhere, and the token for it. It counts where there is no farm here."""
    policy: Literal[
        "fair_share", "ageing", "coolest", "most_charged", "least_energy", "deadline", "same_device", "longest_first"
    ] = "fair_share"
    """The order in which jobs are placed. fair_share: priority, then the experiment that runs least; ageing: a step of
    priority more for each ten minutes of waiting; coolest, most_charged, least_energy: fair_share, with the coolest or
    fullest device, or the one where an inference is expected to take least; deadline: experiments with a deadline
    before others of their priority; same_device: an experiment stays on one device; longest_first: what is expected
    to take longest begins first. An experiment may name another one."""
    tell: dict[str, SecretStr] = Field(default_factory=dict)
    """Addresses by name, as JSON, that suites may name under `tell`: `{"team": "slack://TOKEN/#nights"}`; so that no
    secret stands in a suite's file."""
    project_files_bytes: int = Field(default=50 << 30, ge=0)
    """The most bytes that a project without a limit of its own may keep when it sends files (`PUT /files`)."""
    celery_events: bool = True
    """True if workers send Celery's events and obey its remote control, for Flower, `celery inspect` and the like."""
    tick_s: float = 0.25
    """Period of the scheduler."""
    attempts: int = 3
    """Attempts of a job before a transient failure becomes final."""
    sessions: int = Field(default=32, ge=1, le=400)
    """Sessions that this host holds at the same time."""
    agent_dir: Path | None = None
    """Folder with the built agents, `<abi>/pocketfarm-agent`; None: device_agent/build of the checkout."""
    engines: Path | None = None
    """Folder of engines of one's own, each a Python file, for this host's worker (docs/howto/add-an-engine.md)."""
    wiring: Path | None = None
    """Wiring file: supplies, meters and temperatures of this host's devices; None: `wiring.yaml` in the state folder,
    where it exists."""
    engine_slot: Path | None = None
    """Lock file by which engine runs on this host's own cores take turns."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        found = urlsplit(url)
        if url and (found.scheme != "https" or not found.hostname or found.path.strip("/") or found.query):
            raise ValueError("it is https://NAME or https://NAME:PORT, with nothing behind it")
        return url.rstrip("/")

    @field_validator("proxies")
    @classmethod
    def _are_addresses(cls, proxies: str) -> str:
        for each in filter(None, proxies.split(",")):
            ip_network(each.strip())
        return proxies

    @property
    def ledger(self) -> str:
        return self.ledger_url or f"sqlite:///{self.ledger_file.absolute()}"

    @property
    def ledger_file(self) -> Path:
        """The ledger's file where no `ledger_url` names one."""
        return self.state / "ledger.sqlite"

    @property
    def wiring_file(self) -> Path | None:
        """The wiring file of this host, None where it has none; one that was named must be there."""
        own = self.state / "wiring.yaml"
        return self.wiring or (own if own.is_file() else None)


def settings_now(state: Path | None = None) -> Settings:
    """Return the settings that the environment gives now, of a state folder or of the one that it names.

    They are made again only where a variable changed: to make them takes a millisecond, and pages ask at each request.
    Raises ValidationError.
    """
    return _made(state, tuple(sorted(each for each in os.environ.items() if each[0].upper().startswith(PREFIX))))


@lru_cache(maxsize=8)
def _made(state: Path | None, _environment: tuple[tuple[str, str], ...]) -> Settings:
    return Settings() if state is None else Settings(state=state)


@lru_cache
def settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
