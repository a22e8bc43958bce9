"""Answer health probes (`/-/healthy`) and HEAD without a scrape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

HEALTHY = "/-/healthy"
"""As Prometheus' own servers have it. It says that the exporter answers; `farm_up` says which parts of the farm do."""


def with_probes(metrics: WSGIApplication) -> WSGIApplication:
    """The application, which knows GET only, with answers to probes before it."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        healthy, head = environ["PATH_INFO"] == HEALTHY, environ["REQUEST_METHOD"] == "HEAD"
        if not healthy and not head:
            return metrics(environ, start_response)
        start_response("200 OK", [("Content-Type", "text/plain" if healthy else CONTENT_TYPE_LATEST)])
        return [] if head else [b"The exporter is healthy.\n"]

    return answer
