"""Answer over HTTP: metrics as text, health probes (`/-/healthy`) and HEAD without a scrape."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, gzip_accepted

from .exposition import Exposition

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

HEALTHY = "/-/healthy"
"""The health probe's path, as of Prometheus' servers. It says that the exporter answers; `farm_up` tells of parts."""
QUICK = 1
"""The level of gzip: a Prometheus always asks for it, and its default takes ten times as long for a quarter less."""


def application(registry: CollectorRegistry, library: WSGIApplication) -> WSGIApplication:
    """Answers a GET and probes itself; the library says no to other methods."""
    exposition = Exposition()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        healthy, method = environ["PATH_INFO"] == HEALTHY, environ["REQUEST_METHOD"]
        if not healthy and method not in ("GET", "HEAD"):
            return library(environ, start_response)
        headers = [("Content-Type", "text/plain" if healthy else CONTENT_TYPE_PLAIN_0_0_4)]
        text = b"The exporter is healthy.\n" if healthy else b""
        if not healthy and method == "GET":
            text = exposition.text(registry.collect())
            if gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
                text = gzip.compress(text, QUICK)
                headers.append(("Content-Encoding", "gzip"))
        start_response("200 OK", headers)
        return [] if method == "HEAD" else [text]

    return answer
