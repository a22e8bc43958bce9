"""`python -m farm.web --address IP --port N --certificate FILE --key FILE`: serve until SIGTERM."""

from __future__ import annotations

import argparse

import uvicorn

from orchestrator.system.config import settings
from orchestrator.system.process import begin

from .app import make_app
from .patience import Patient

CONNECTIONS = 64


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    given = parser.parse_args()
    begin()
    uvicorn.run(
        make_app(settings()),
        host=given.address,
        port=given.port,
        ssl_certfile=given.certificate,
        ssl_keyfile=given.key,
        limit_concurrency=CONNECTIONS,
        http=Patient,
        timeout_graceful_shutdown=2,
        access_log=False,
        server_header=False,
        log_config=None,
        proxy_headers=False,
    )


if __name__ == "__main__":
    main()
