"""The exporter: `python -m orchestrator.metrics` serves /metrics until it is told to end."""

from __future__ import annotations

import sys
import threading
from importlib.metadata import version

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.process_collector import ProcessCollector

from orchestrator.system.config import Settings
from orchestrator.system.process import asked_to_end, begin

from .collector import FarmCollector, Part
from .exposition import application
from .parts import LedgerPart, RedisPart


def serve(settings: Settings, stop: threading.Event) -> int:
    """Serve until `stop`; prints the address. Exit status 1 where the port is taken."""
    registry, redis = CollectorRegistry(), RedisPart(settings)
    parts: dict[str, Part] = {"redis": redis, "ledger": LedgerPart(settings, redis.reasons)}
    registry.register(FarmCollector(parts, version("pocketfarm")))
    ProcessCollector(namespace="farm_exporter", registry=registry)
    try:
        server, thread = start_http_server(settings.exporter_port, settings.exporter_host, registry)
    except OSError as e:
        print(
            f"exporter: {settings.exporter_host}:{settings.exporter_port}: {e.strerror}\n"
            "  remedy: give another port with FARM_EXPORTER_PORT",
            file=sys.stderr,
        )
        return 1
    if (library := server.get_app()) is not None:
        server.set_app(application(registry, library))
    print(f"exporter: http://{settings.exporter_host}:{server.server_port}/metrics", flush=True)
    stop.wait()
    server.shutdown()
    server.server_close()
    thread.join()
    return 0


def main() -> int:
    """Run in the foreground; SIGTERM and SIGINT end it."""
    begin()
    return serve(Settings(), asked_to_end())


if __name__ == "__main__":
    sys.exit(main())
