"""Tell webhooks what has ended: one POST for each end, signed, tried again for a day."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from orchestrator.ledger import Ledger
from orchestrator.ledger.people.webhooks import Due
from orchestrator.model.errors import UnknownName

from .reached import connect

log = logging.getLogger(__name__)
REPLY_S = 5.0
AT_A_TURN = 8
"""Ends that are told in one turn, one after another."""


def tell_webhooks(ledger: Ledger, pages: str, *, here: bool = False) -> None:
    """Note what has ended, and tell what is due. `pages`: the address of the farm's pages, where it is known. `here`:
    also servers of this machine itself."""
    hooks = ledger.people.webhooks
    hooks.notice()
    for each in hooks.due(AT_A_TURN):
        error = _sent(each, _body(ledger, each, pages), here=here)
        if error:
            log.warning("event=webhook_not_told webhook=%s target=%s error=%s", each.webhook, each.target, error)
        hooks.tried(each, error)


def signature(key: str, at: int, body: bytes) -> str:
    """Return what a webhook checks: HMAC-SHA256, in hex, over the Unix time in seconds, a full stop, and the body."""
    return hmac.new(key.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def _body(ledger: Ledger, of: Due, pages: str) -> bytes:
    address = f"{pages}{of.kind}s/{of.target}" if pages else ""
    said: dict[str, Any] = {"event": f"{of.kind}.ended", "id": of.target, "address": address}
    try:
        if of.kind == "experiment":
            row = ledger.experiment(of.target)
            said |= {"name": row.experiment.name, "project": row.project, "counts": dict(row.counts)}
    except UnknownName:
        log.warning("event=webhook_of_nothing target=%s", of.target)  # it was pruned meanwhile
    return json.dumps(said, sort_keys=True).encode()


def _sent(to: Due, body: bytes, *, here: bool) -> str:
    """Return what went wrong; empty: it was taken."""
    at = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "pocketfarm",
        "Farm-Delivery": f"{to.webhook}:{to.kind}:{to.target}",
        "Farm-Signature": f"t={at},v1={signature(to.key, at, body)}",
    }
    try:
        status = _answered(to.url, body, headers, here=here)
    except (OSError, ValueError, http.client.HTTPException) as e:
        return f"{urlsplit(to.url).hostname} cannot be told: {e or type(e).__name__}"
    return "" if 200 <= status < 300 else f"{urlsplit(to.url).hostname} answers {status}"


def _answered(url: str, body: bytes, headers: Mapping[str, str], *, here: bool) -> int:
    """Return the status of the answer, which alone is read. No proxy is asked, and no redirection followed."""
    parts = urlsplit(url)
    made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = made(parts.hostname or "", parts.port, timeout=REPLY_S)
    connection._create_connection = partial(connect, here=here)  # type: ignore[attr-defined]
    try:
        connection.request("POST", f"{parts.path or '/'}{'?' * bool(parts.query)}{parts.query}", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
