"""The farm's own authority: what it signs is trusted by it alone, and renewed in time."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.doctor import Verdict, _certificates
from farm.reach import certificates
from farm.reach.certificates import Authority, Certificate, ends_at
from orchestrator.system.config import Settings


def handshake(server: Certificate, trusted: Path, name: str) -> str:
    """Connect to a server with this certificate under this name; empty, or why not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            context.wrap_socket(theirs, server_side=True).close()
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        ssl.create_default_context(cafile=trusted).wrap_socket(ours, server_hostname=name).close()
    except ssl.SSLError as e:
        return str(e)
    finally:
        ours.close()
        thread.join()
    return ""


def test_only_its_own_authority_and_addresses_are_trusted(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "tls"), Authority(tmp_path / "other")
    own = authority.issue("farm", ["farm.lab", "127.0.0.1"])
    other.issue("farm", ["farm.lab"])
    assert handshake(own, authority.certificate, "farm.lab") == handshake(own, authority.certificate, "127.0.0.1") == ""
    assert "certificate verify failed" in handshake(own, other.certificate, "farm.lab")
    assert "mismatch" in handshake(own, authority.certificate, "evil.lab")
    for key in (own.key, authority.folder / "ca.key"):
        assert key.stat().st_mode & 0o777 == 0o600


def test_a_certificate_is_kept_until_it_ends_or_has_to_say_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "tls")
    first = authority.issue("farm", ["a", "b"]).certificate.read_bytes()
    assert authority.issue("farm", ["b", "a"]).certificate.read_bytes() == first
    assert authority.issue("farm", ["a", "c"]).certificate.read_bytes() != first
    monkeypatch.setattr(certificates, "LIFE", timedelta(days=20))
    soon = authority.issue("farm", ["a"]).certificate
    settings = Settings(state=tmp_path)
    assert {each.name: each.verdict for each in _certificates(settings)} == {
        "certificate ca": Verdict.OK,
        "certificate farm": Verdict.WARNING,
    }
    monkeypatch.undo()
    assert ends_at(authority.issue("farm", ["a"]).certificate) - datetime.now(UTC) > timedelta(days=300)
    assert handshake(Certificate(soon, soon.with_suffix(".key")), authority.certificate, "a") == ""
    assert {each.verdict for each in _certificates(settings)} == {Verdict.OK}
