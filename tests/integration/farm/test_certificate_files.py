"""A certificate that somebody else renews, in the place of one of the farm's own authority."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from starlette.applications import Starlette

from farm.reach import certificates, given_certificate
from farm.reach.certificates import Authority, Certificate
from farm.web import pages
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings
from tests.waiting import eventually

from .test_http_api import served


def shown(port: int, authority: Path) -> int:
    """The serial number of the certificate that a new connection is shown, which the authority has signed."""
    context = ssl.create_default_context(cafile=authority)
    plain = socket.create_connection(("127.0.0.1", port), 10)
    with context.wrap_socket(plain, server_hostname="localhost") as line:
        return x509.load_der_x509_certificate(line.getpeercert(True) or b"").serial_number


def put(at: Certificate, certificate: Certificate, key: Certificate) -> None:
    shutil.copyfile(certificate.certificate, at.certificate)
    shutil.copyfile(key.key, at.key)


def test_a_renewed_certificate_counts_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Files that are half written, or do not belong together, change nothing: those before them go on."""
    monkeypatch.setattr("farm.web.renewal.LOOK_S", 0)
    authority, own = Authority(tmp_path / "ca"), Certificate(tmp_path / "own.crt", tmp_path / "own.key")
    first, second = (authority.issue(name, ["localhost"]) for name in ("first", "second"))
    serials = [x509.load_pem_x509_certificate(each.certificate.read_bytes()).serial_number for each in (first, second)]
    put(own, first, first)
    config = pages.config_of(Starlette(), pages.Listening(certificate=own))
    assert config.callback_notify is not None
    with served(config) as port:
        assert shown(port, authority.certificate) == serials[0]
        put(own, second, first)
        asyncio.run(config.callback_notify())  # type: ignore[arg-type]
        assert shown(port, authority.certificate) == serials[0] and "is not the key of" in caplog.text
        own.certificate.write_text("half of it")
        asyncio.run(config.callback_notify())  # type: ignore[arg-type]
        assert shown(port, authority.certificate) == serials[0] and "no certificate" in caplog.text
        put(own, second, second)
        eventually(lambda: shown(port, authority.certificate) == serials[1])


def test_files_that_no_server_can_use_are_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "ca")
    fine, wild, other = (
        authority.issue(name, names) for name, names in (("a", ["farm.lab"]), ("b", ["*.lab"]), ("c", ["farm.lab"]))
    )
    monkeypatch.setattr(certificates, "LIFE", timedelta(days=-1))
    over = authority.issue("d", ["farm.lab"])
    for own in (fine, wild):
        settings = Settings(state=tmp_path, certificate=own.certificate, key=own.key)
        assert given_certificate(settings, "farm.lab") == own
    assert given_certificate(settings.model_copy(update={"url": "https://x.lab:9"}), "farm.lab") == wild
    assert given_certificate(Settings(state=tmp_path), "farm.lab") is None
    for certificate, key, name, why in (
        (fine.certificate, other.key, "farm.lab", "is not the key of"),
        (fine.certificate, None, "farm.lab", "belong together"),
        (fine.certificate, fine.key, "other.lab", "is for farm.lab, and people come to other.lab"),
        (wild.certificate, wild.key, "a.b.lab", "is for *.lab"),
        (over.certificate, over.key, "farm.lab", "ended at"),
        (tmp_path / "none", fine.key, "farm.lab", "No such file"),
        (fine.key, fine.certificate, "farm.lab", "no certificate and key"),
    ):
        with pytest.raises(SetupError, match=re.escape(why)):
            given_certificate(Settings(state=tmp_path, certificate=certificate, key=key), name)


@pytest.mark.parametrize("given", [{"url": "http://farm.lab"}, {"url": "https://farm.lab/x"}, {"proxies": "farm.lab"}])
def test_addresses_that_are_none_are_no_settings(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"https://NAME|IPv4 or IPv6"):
        Settings(**given)  # type: ignore[arg-type]
