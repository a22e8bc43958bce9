"""The address at which other machines reach this farm (`farm up --listen`), its ports, and its certificate."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from farm.parts.ports import Ports
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings

from .certificates import Authority, Certificate, checked


def authority_of(state: Path) -> Authority:
    """The farm's own, in its state folder."""
    return Authority((state / "tls").absolute())


@dataclass(frozen=True)
class Reach:
    """The way by which hosts reach Redis and the farm's web part."""

    address: str
    """A name or an IP address of this machine, as the hosts know it."""
    bind: str
    """The IP address behind it."""
    redis_port: int
    web_port: int
    authority: Authority

    @property
    def redis_url(self) -> str:
        return f"rediss://{in_url(self.address)}:{self.redis_port}/0"

    @property
    def web_url(self) -> str:
        return f"https://{in_url(self.address)}:{self.web_port}"

    def own_url(self, port: int) -> str:
        """Return the address by which this machine reaches one of its ports."""
        return f"https://{in_url(self.bind)}:{port}/"

    def people_url(self, port: int) -> str:
        """Return the address of the pages for people of other machines."""
        return f"https://{in_url(self.address)}:{port}/"

    def certificate(self) -> Certificate:
        """The certificate of all servers of this farm; made or renewed where that is due."""
        return self.authority.issue("farm", {self.address, self.bind, "127.0.0.1", "localhost"})


def given_certificate(settings: Settings, address: str) -> Certificate | None:
    """Return the files that the settings name, for people who come to an address; None: they name none. Raises
    SetupError."""
    if settings.certificate is None and settings.key is None:
        return None
    if settings.certificate is None or settings.key is None:
        raise SetupError("a certificate and its key belong together", remedy="give both: --certificate and --key")
    files = Certificate(settings.certificate.absolute(), settings.key.absolute())
    return checked(files, urlsplit(settings.url).hostname or address)


def reach_of(settings: Settings, address: str, ports: Ports) -> Reach:
    """Raises SetupError where the address is not one of this machine, or a port is taken."""
    bind = bind_of(address)
    for name, port in (("FARM_REDIS_PORT", settings.redis_port), ("FARM_WEB_PORT", settings.web_port)):
        if not ports.take(port):
            raise SetupError(
                f"port {port} ({name}) is taken by another process",
                remedy=f"end what listens there (`ss -ltnp sport = :{port}`), or set {name} to another port",
            )
    return Reach(address, bind, settings.redis_port, settings.web_port, authority_of(settings.state))


def bind_of(address: str) -> str:
    """The IP address behind a name or address of this machine. Raises SetupError where it is none."""
    try:
        bind = str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
        with socket.create_server((bind, 0), family=socket.AF_INET6 if ":" in bind else socket.AF_INET):
            pass
    except OSError as e:
        raise SetupError(
            f"--listen {address}: {e.strerror or e}",
            remedy="give a name or address of this machine (`ip -brief address`)",
        ) from e
    if ipaddress.ip_address(bind).is_unspecified:
        raise SetupError(
            f"--listen {address} says every address, and hosts need one to connect to",
            remedy="give the name or address by which the hosts reach this machine (`ip -brief address`)",
        )
    return bind


def in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
