"""`python -m farm.web.pages --port N`: serve the pages of the farm of `FARM_STATE` until SIGTERM, on loopback, or with
`--name`, `--address`, `--certificate` and `--key` to other machines."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from redis import Redis
from starlette.applications import Starlette
from starlette.types import ASGIApp

from dashboards.api import Sources as ApiSources
from dashboards.api import mounted
from dashboards.web import Pages, make_app
from dashboards.web.access import LOOPBACK, Access, token_of
from farm import endpoints
from farm.access import OwnPhones
from orchestrator.acts import Site
from orchestrator.coordination.client import client_of
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, ServiceDown
from orchestrator.system.config import Settings, settings
from orchestrator.system.process import begin

from .patience import Patient

if TYPE_CHECKING:
    from farm.reach.certificates import Certificate

CONNECTIONS = 400
LOOPBACK_IP = "127.0.0.1"
REPLY_S = 2.0
GIVES_WAY_S = 0.0005
"""The time after which a computing thread gives way to a page's, which returns from the database some thirty times."""


@dataclass(frozen=True)
class Listening:
    """The address at which the pages are served."""

    address: str = LOOPBACK_IP
    port: int = 0
    name: str = ""
    """The name by which other machines reach the pages; empty: this machine alone."""
    certificate: Certificate | None = None

    @property
    def url(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"https://{name}:{self.port}/" if self.name else f"http://{self.address}:{self.port}/"


def app_of(state: Path, listening: Listening) -> Starlette:
    """The pages of the farm of a state folder, whether it runs or not."""
    sources = Sources(state)
    proxied = urlsplit(settings().url).hostname
    own = {each if ":" not in each else f"[{each}]" for each in (listening.name, listening.address, proxied) if each}
    names = LOOPBACK | own
    private = bool(listening.name or proxied) or settings().pages_private
    access = Access(
        token_of(state),
        names=names,
        private=private,
        secure=bool(listening.name),
        shared=sources.shared,
        shared_at_once=sources.shared_at_once,
        people=lambda: sources.ledger().people,
    )
    api = mounted(ApiSources(sources.ledger, sources.redis, sources.site, token_of(state)))
    pages = Pages(sources.ledger, sources.redis, access, sources.site, state, sources.exporter,
                  settings().oidc, settings().prometheus_url)  # fmt: skip
    return make_app(pages, [api])


def serve(state: Path, listening: Listening) -> None:
    """Serve the pages until a signal ends it."""
    sys.setswitchinterval(GIVES_WAY_S)
    server = uvicorn.Server(config_of(app_of(state, listening), listening, settings().proxies))
    server.run()
    if not server.started:
        sys.exit(1)


def config_of(app: ASGIApp, listening: Listening, proxies: str = "") -> uvicorn.Config:
    """Return how pages are served. `proxies`: whose word counts for whom they ask, by which scheme; nobody else's."""
    own = listening.certificate
    config = uvicorn.Config(
        app,
        host=listening.address,
        port=listening.port,
        limit_concurrency=CONNECTIONS,
        http=Patient,
        timeout_graceful_shutdown=1,
        access_log=False,
        server_header=False,
        log_config=None,
        ssl_certfile=str(own.certificate) if own else None,
        ssl_keyfile=str(own.key) if own else None,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[each.strip() for each in proxies.split(",")],
    )
    if own:
        from .renewal import LOOK_S, Renewal

        config.load()
        assert config.ssl is not None
        config.callback_notify, config.timeout_notify = Renewal(own, config.ssl).look, LOOK_S
    return config


class Sources:
    """The ledger and Redis of a state folder: found again where a farm has come up since."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._lock = Lock()
        self._shared = True
        self._ledger: Ledger | None = None
        self._client: tuple[tuple[str, str], Redis] | None = None

    def ledger(self) -> Ledger:
        """Raises ServiceDown where there is none yet, or it is away."""
        with self._lock:
            if self._ledger is None:
                found = self._settings()
                if not found.ledger_url and not found.ledger_file.exists():
                    raise ServiceDown(f"there is no ledger in {self._state} yet", remedy="`farm up` makes one")
                self._ledger = Ledger(found.ledger)
            return self._ledger

    def redis(self) -> Redis:
        """Raises ServiceDown where no farm runs."""
        found = self._settings()
        if not found.redis_url:
            raise ServiceDown(f"no farm runs on {self._state}", remedy="`farm up` starts one")
        key = (found.redis_url, found.redis_password.get_secret_value())
        with self._lock:
            if self._client is None or self._client[0] != key:
                self._client = (key, client_of(found, reply_s=REPLY_S))
            return self._client[1]

    def site(self) -> Site:
        """The farm on which acts are done. Raises ServiceDown where there is no ledger."""
        found = self._settings()
        return Site(found, self.ledger(), self.redis, OwnPhones(found))

    def shared(self) -> bool:
        """Return whether there are people beside the owner; where the ledger is away, as it was known last, or True."""
        if self._ledger is None:
            found = self._settings()
            if not found.ledger_url and not found.ledger_file.exists():
                return False
        with suppress(FarmError):
            self._shared = self.ledger().people.are_let_in()
        return self._shared

    def shared_at_once(self) -> bool | None:
        """The same without waiting; None: it cannot be told so."""
        return None if self._ledger is None else self._ledger.people.are_let_in_at_once()

    def exporter(self) -> str:
        """Its address; empty where no farm runs."""
        found = endpoints.read(self._state)
        return found.exporter_url if found else ""

    def _settings(self) -> Settings:
        return endpoints.settings_for(self._state)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for name, default in (("address", LOOPBACK_IP), ("name", ""), ("certificate", ""), ("key", "")):
        parser.add_argument(f"--{name}", default=default)
    given = parser.parse_args()
    begin()
    serve(settings().state, Listening(given.address, given.port, given.name, _files(given.certificate, given.key)))


def _files(certificate: str, key: str) -> Certificate | None:
    if not certificate:
        return None
    from farm.reach.certificates import Certificate

    return Certificate(Path(certificate), Path(key))


if __name__ == "__main__":
    main()
