"""The farm's own certificate authority: it signs the certificates of the servers that hosts connect to.

Every start of a part asks for its certificate, and gets a new one where the old one ends soon or has other names. Keys
never leave the folder.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from orchestrator.model.errors import SetupError
from orchestrator.system.private_files import make_private

AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=397)
RENEW_BEFORE = timedelta(days=30)
SAID_BEFORE = timedelta(days=14)
"""One that somebody else renews, and that ends so soon, is said to: programs that renew have done so a month before."""
EARLIER = timedelta(days=2)
"""Certificates hold from two days ago: clocks of hosts may differ by hours."""


@dataclass(frozen=True)
class Certificate:
    """Files in PEM; the key is the owner's alone."""

    certificate: Path
    key: Path


class Authority:
    """The authority in a folder; made where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self._key = folder / "ca.key"

    def issue(self, name: str, addresses: Iterable[str], folder: Path | None = None) -> Certificate:
        """The certificate `name` for a server at these addresses (names or IP): the one that is there, or a new one.

        `folder`: where it lies, if not beside the authority.
        """
        self._ensure()
        wanted, place = sorted(set(addresses)), folder or self.folder
        make_private(place)
        found = Certificate(place / f"{name}.crt", place / f"{name}.key")
        if not self._holds(found, wanted):
            self._sign(found, name, wanted)
        return found

    def _ensure(self) -> None:
        make_private(self.folder)
        if self._key.exists() and self.certificate.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("pocketfarm's own authority")
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = (
            _builder(name, name, key, AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        _write_key(self._key, key)
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _sign(self, target: Certificate, name: str, addresses: list[str]) -> None:
        authority = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self._key.read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        made = (
            _builder(_name(name), authority.subject, key, LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general(each) for each in addresses]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .sign(signer, hashes.SHA256())
        )
        _write_key(target.key, key)
        target.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _holds(self, found: Certificate, addresses: list[str]) -> bool:
        """Return whether a certificate exists, is this authority's, has these addresses and does not end soon."""
        try:
            known = x509.load_pem_x509_certificate(found.certificate.read_bytes())
            known.verify_directly_issued_by(x509.load_pem_x509_certificate(self.certificate.read_bytes()))
            names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (OSError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            return False
        same = {str(each.value) for each in names} == set(addresses)
        return found.key.exists() and same and known.not_valid_after_utc - datetime.now(UTC) > RENEW_BEFORE


def checked(given: Certificate, name: str = "") -> Certificate:
    """Return files that somebody else renews, if a server at this name or address (empty: any) can use them. Raises
    SetupError."""
    try:
        known = x509.load_pem_x509_certificate(given.certificate.read_bytes())
        key = serialization.load_pem_private_key(given.key.read_bytes(), None)
        names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound) as e:
        told = f"{given.certificate} and {given.key} are no certificate and key for a server: {e}"
        raise SetupError(
            told, remedy="give PEM files: the certificate with its chain, and its key, not encrypted"
        ) from e
    if key.public_key() != known.public_key():
        raise SetupError(f"{given.key} is not the key of {given.certificate}", remedy="give the key that was certified")
    has = {str(each.value) for each in names}
    if name and name not in has and f"*.{name.partition('.')[2]}" not in has:
        told = f"{given.certificate} is for {', '.join(sorted(has))}, and people come to {name}"
        raise SetupError(told, remedy="give one of its names with --listen, or another certificate")
    if known.not_valid_after_utc < datetime.now(UTC):
        raise SetupError(
            f"{given.certificate} ended at {known.not_valid_after_utc:%Y-%m-%d %H:%M} UTC", remedy="renew it"
        )
    return given


def ends_at(certificate: Path) -> datetime:
    """Return when a certificate ends. Raises OSError, ValueError."""
    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + life)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    text = key.private_bytes(encoding, form, serialization.NoEncryption())
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
