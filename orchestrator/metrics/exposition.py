"""Write metrics as Prometheus' text, what is as before from memory, and answer with it over HTTP.

The text is that of the client library (`generate_latest`), byte by byte: it writes whatever is new, and what it wrote
is kept. A family that is the same object as before is a block of kept text; of a gauge each series' name and labels are
kept, and only values are written anew.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric, Sample
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, gzip_accepted
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from orchestrator.model.foreign import cleaned

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


SPARE = 2
"""Series that are gone are forgotten when so many times the present ones are kept."""

Labels = tuple[str, ...]
_by_library_number: Callable[[float], str] = floatToGoString
PLAIN_BELOW = 1e6
"""The bound below which Python and the library write the same."""


class _Kept(NamedTuple):
    family: Metric
    text: str


class Exposition:
    """Writes the families of one exporter; a family that was given once must not be changed. Threads may share it."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Kept] = {}
        self._series: dict[str, dict[Labels, str]] = {}
        self._lock = threading.Lock()

    def text(self, families: Iterable[Metric]) -> bytes:
        """All of these families."""
        with self._lock:
            return "".join(map(self._block, families)).encode()

    def _block(self, family: Metric) -> str:
        known = self._blocks.get(family.name)
        if known is None or known.family is not family:
            text = self._gauge(family) if _is_plain_gauge(family) else _by_library(family, family.samples)
            known = self._blocks[family.name] = _Kept(family, text)
        return known.text

    def _gauge(self, family: Metric) -> str:
        series = self._series.setdefault(family.name, {})
        try:
            lines = _lines(family, series)
        except KeyError:
            self._learn(family, series)
            lines = _lines(family, series)
        return _by_library(family, ()) + "".join(lines)

    def _learn(self, family: Metric, series: dict[Labels, str]) -> None:
        """Keep name and labels of the series that are new."""
        if len(series) > SPARE * len(family.samples):
            series.clear()
        fresh = {key: each for each in family.samples if (key := tuple(each.labels.values())) not in series}
        lines = _by_library(family, list(fresh.values())).split("\n")[2:-1]
        series.update(zip(fresh, (line.rpartition(" ")[0] for line in lines), strict=True))


def _lines(family: Metric, series: Mapping[Labels, str]) -> list[str]:
    """Raises KeyError where a series is new."""
    return [f"{series[tuple(each.labels.values())]} {_number(each.value)}\n" for each in family.samples]


def _number(value: float) -> str:
    plain = float(value)
    return repr(plain) if -PLAIN_BELOW < plain < PLAIN_BELOW else _by_library_number(plain)


def _is_plain_gauge(family: Metric) -> bool:
    return family.type == "gauge" and all(sample.timestamp is None for sample in family.samples)


class _Only(Collector):
    """A family with these samples."""

    def __init__(self, family: Metric, samples: Sequence[Sample]) -> None:
        self._family = Metric(family.name, family.documentation, family.type)
        self._family.samples = [
            each._replace(labels={name: cleaned(text) for name, text in each.labels.items()}) for each in samples
        ]

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _by_library(family: Metric, samples: Sequence[Sample]) -> str:
    return generate_latest(_Only(family, samples)).decode()


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
