"""Choose the parts of a farm, and connect them through environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from orchestrator.coordination.client import client_of
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings

from . import processes
from .endpoints import Endpoints
from .parts import services
from .parts.adb_server import AdbServer
from .parts.part import Part
from .parts.ports import Ports
from .parts.redis_server import RedisServer
from .parts.virtual_phones import VirtualPhones


@dataclass(frozen=True)
class Composition:
    """A farm that is ready to be started."""

    parts: tuple[Part, ...]
    environment: dict[str, str]
    endpoints: Endpoints


def compose(
    settings: Settings, profiles: list[str], *, ports: Ports, real_phones: bool, listen: str = ""
) -> Composition:
    """Choose ports and put the parts in their order of start.

    `profiles`: one per virtual phone. `ports` holds those that are chosen. `real_phones`: use the machine's own adb
    server (and its USB phones) instead of a private one. `listen`: address of this machine by which hosts reach it.
    Raises SetupError where this machine lacks a part.
    """
    reach = given = None
    if listen:
        from .reach import given_certificate, reach_of  # as certificates

        reach, given = reach_of(settings, listen, ports), given_certificate(settings, listen)
    server = RedisServer(settings.state, reach, lambda: _host_secrets(settings) if reach else {})
    phones = _phones(settings, profiles, real_phones=real_phones)
    exporter_port, note = _port(ports, "exporter_port", settings, "the metrics", "tell Prometheus")
    pages_port, pages_note = _port(ports, "pages_port", settings, "the pages", "the address says which")
    people_port, people_note = _port(ports, "people_port", settings, "people", "tell them") if reach else (0, "")
    endpoints = Endpoints(
        **_own(settings, phones.server, profiles),
        redis_url=server.url,
        redis_password=SecretStr(server.password),
        redis_ca=server.ca,
        ledger_url=SecretStr(settings.ledger_url),
        hosts_redis_url=reach.redis_url if reach else "",
        files_url=reach.web_url if reach else "",
        exporter_port=exporter_port,
        pages_port=pages_port,
        people_url=f"{settings.url}/" if settings.url else reach.people_url(people_port) if reach else "",
        people_ca=reach.authority.certificate if reach and not given and not settings.url else None,
    )
    parts = [server.part(), *phones.parts]
    parts += [
        services.scheduler(server),
        services.host_worker(server.client, settings.host),
        services.beat(settings.state),
        *([services.web(reach)] if reach else []),
        services.exporter(exporter_port, settings.state, note),
        services.pages(pages_port, settings.state, pages_note),
        *([services.people(reach, people_port, settings.state, given, people_note)] if reach else []),
    ]
    return Composition(tuple(parts), _environment(settings, endpoints), endpoints)


def compose_host(settings: Settings, profiles: list[str], *, real_phones: bool) -> Composition:
    """The parts of a host of another machine's farm; `settings` say where that is. Raises SetupError."""
    phones = _phones(settings, profiles, real_phones=real_phones)
    endpoints = Endpoints(
        **_own(settings, phones.server, profiles),
        redis_url="",
        redis_password=settings.redis_password,
        joined=settings.redis_url,
        exporter_port=0,
    )
    worker = services.host_worker(lambda: client_of(settings, reply_s=1.0), settings.host)
    environment = _environment(settings, endpoints) | {
        "FARM_REDIS_URL": settings.redis_url,
        "FARM_REDIS_USER": settings.redis_user,
        **({"FARM_TLS_CA": str(settings.tls_ca)} if settings.tls_ca else {}),
        "FARM_FILES_URL": settings.files_url,
    }
    return Composition((*phones.parts, worker), environment, endpoints)


def _host_secrets(settings: Settings) -> dict[str, str]:
    from orchestrator.ledger import Ledger  # with all that it loads, most of the supervisor's start

    with Ledger(settings.ledger) as ledger:
        return {row.name: row.secret_sha256 for row in ledger.standing.hosts() if row.secret_sha256}


@dataclass(frozen=True)
class _Phones:
    """This machine's adb server, and the parts that bring its phones."""

    server: AdbServer
    parts: tuple[Part, ...]


def _phones(settings: Settings, profiles: list[str], *, real_phones: bool) -> _Phones:
    owner = settings.host if settings.files_url else ""  # another host may have as many of the same profiles
    adb = AdbServer(settings, real=real_phones, virtual=bool(profiles))
    virtual = VirtualPhones(settings.state, adb, profiles, owner) if profiles else None
    return _Phones(adb, tuple(_phone_parts(adb, virtual)))


def _own(settings: Settings, adb: AdbServer, profiles: list[str]) -> dict[str, Any]:
    """Return what every machine tells of itself."""
    return {
        "pid": os.getpid(),
        "adb_path": adb.path,
        "adb_port": adb.port,
        "adb_socket": adb.socket,
        "host": settings.host,
        "virtual_phones": len(profiles),
    }


def _port(ports: Ports, name: str, settings: Settings, of: str, advice: str) -> tuple[int, str]:
    """A port and what to say of it. Raises SetupError where one that somebody asked for is taken."""
    wanted: int = getattr(settings, name)
    if wanted == 0:
        return ports.take_any(), ""
    if ports.take(wanted):
        return wanted, ""
    if name in settings.model_fields_set:
        raise SetupError(
            f"port {wanted} for {of} (FARM_{name.upper()}) is taken by another process",
            remedy=f"end what listens there (`ss -ltnp sport = :{wanted}`), or set another port (0: a free one)",
        )
    return ports.take_any(), f" (port {wanted} is taken by another process: {advice})"


def _phone_parts(adb: AdbServer, phones: VirtualPhones | None) -> list[Part]:
    server = adb.part()
    if phones is None:
        return [server] if server else []
    own = [replace(server, after_ready=phones.reconnect)] if server else []
    return [*own, phones.part()]


def _environment(settings: Settings, endpoints: Endpoints) -> dict[str, str]:
    """Environment of every part: this one's, the settings, and the mark that tells whose they are."""
    state = settings.state.absolute()
    root = str(Path(__file__).resolve().parents[1])
    return {
        **_driver_caches(state),
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
        "PYTHONUNBUFFERED": "1",
        processes.MARK: str(state),
        "FARM_STATE": str(state),
        "FARM_SERVER": "",
        "FARM_LEDGER_URL": settings.ledger,
        "FARM_REDIS_URL": endpoints.redis_url,
        "FARM_REDIS_PASSWORD": endpoints.redis_password.get_secret_value(),
        "FARM_ADB_PATH": endpoints.adb_path,
        "FARM_ADB_PORT": str(endpoints.adb_port),
        **({"FARM_ADB_SOCKET": str(endpoints.adb_socket)} if endpoints.adb_socket else {}),
        "FARM_HOST": endpoints.host,
        "FARM_EXPORTER_PORT": str(endpoints.exporter_port),
        **({"FARM_TLS_CA": str(endpoints.redis_ca)} if endpoints.redis_ca else {}),
        "FARM_ENGINE_SLOT": str(settings.engine_slot or state / "engine.slot"),
    }


def _driver_caches(state: Path) -> dict[str, str]:
    """Return where this host's drivers keep compiled kernels: virtual phones share its drivers, and so their caches.

    Without it each virtual phone, having a home of its own, would compile everything once more.
    """
    folder = state / "cache" / "drivers"
    folder.mkdir(parents=True, exist_ok=True)
    return {"POCL_CACHE_DIR": str(folder / "pocl"), "MESA_SHADER_CACHE_DIR": str(folder / "mesa")}
