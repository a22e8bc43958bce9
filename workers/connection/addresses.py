"""The ways to reach a phone, by the address that adb's server gives it; needs no client of adb."""

from __future__ import annotations

import re

_MDNS = re.compile(r"\._adb[\w-]*\._tcp\b")
_HOST_PORT = re.compile(r"(?P<host>\[[\da-fA-F:.]+(?:%\w+)?\]|[^:\s]+):\d{1,5}")
_OWN = re.compile(r"127\.[\d.]+|localhost|\[::1\]")


def by_call(address: str) -> bool:
    """Return whether adb's server called the phone, at `host:port` or by a name of mDNS, and can call it again."""
    return _MDNS.search(address) is not None or _host(address) is not None


def over_network(address: str) -> bool:
    """Return whether the phone is reached by radio or cable of a network, which switching its radios may cut: neither
    by USB, nor as an emulator or tunnel of this host."""
    host = _host(address)
    return _MDNS.search(address) is not None or (host is not None and not _OWN.fullmatch(host))


def _host(address: str) -> str | None:
    match = _HOST_PORT.fullmatch(address)
    return match["host"] if match else None
