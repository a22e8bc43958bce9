"""The addresses that the farm's machine calls for somebody else: not its own, nor those of its link."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""The IPv6 addresses that stand for those of IPv4 (RFC 6052)."""
METADATA = ipaddress.ip_address("fd00:ec2::254")
"""A cloud gives its machines their secrets here; elsewhere at an address of the link."""


class NotReached(OSError):
    """The reason why an address is not called."""


def connect(address: tuple[str, int], timeout: float | None, _source: object = None, *, here: bool) -> socket.socket:
    """Connect to a name's first address that answers, of those that may be called; as `socket.create_connection` has
    its arguments. The address that is checked is the one that is called, whatever the name says later.

    `here`: the machine's own addresses may be called. Raises NotReached, OSError.
    """
    error: OSError = NotReached(f"{address[0]} has no address")
    for kind, what, protocol, _, found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        ip = ipaddress.ip_address(str(found[0]).partition("%")[0])
        if why := why_not(ip, here=here):
            error = NotReached(why)
            continue
        opened = socket.socket(kind, what, protocol)
        try:
            opened.settimeout(timeout)
            opened.connect(found)
            return opened
        except OSError as e:
            opened.close()
            error = e
    raise error


def why_not(ip: Ip, *, here: bool) -> str:
    """Return why an address is not called; empty: it is."""
    for each in _meant(ip):
        if each.is_loopback and not here:
            return f"{ip} is this machine itself: FARM_WEBHOOKS_HERE=true lets it be called"
        if each.is_link_local or each.is_multicast or each.is_unspecified or each == METADATA:
            return f"{ip} is of the link, of a group or of none: webhooks are not sent there"
    return ""


def _meant(ip: Ip) -> Iterator[Ip]:
    yield ip
    if isinstance(ip, ipaddress.IPv6Address):
        yield from (each for each in (ip.ipv4_mapped, ip.sixtofour) if each is not None)
        if ip in TRANSLATED:
            yield ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
