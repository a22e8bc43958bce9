"""The one key that virtual phones trust: the RSA key of the farm's own adb server (AOSP, libcrypto_utils)."""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOKEN_BYTES: Final = 20
_MODULUS_BYTES: Final = 256
_LAYOUT = struct.Struct(f"<II{_MODULUS_BYTES}s{_MODULUS_BYTES}sI")
"""Words of the modulus, its Montgomery constant, modulus, R squared, exponent."""
_SHA1_HEAD = bytes.fromhex("3021300906052b0e03021a05000414")
"""The bytes that PKCS #1 puts before a SHA-1 digest; adb signs the token as if it were one."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An RSA key of 2048 bits."""

    modulus: int
    exponent: int

    def verifies(self, token: bytes, signature: bytes) -> bool:
        """Return whether this key's owner signed exactly this token (RSASSA-PKCS1-v1_5: every byte is compared)."""
        if len(signature) != _MODULUS_BYTES or len(token) != TOKEN_BYTES:
            return False
        block = pow(int.from_bytes(signature, "big"), self.exponent, self.modulus).to_bytes(_MODULUS_BYTES, "big")
        tail = b"\0" + _SHA1_HEAD + token
        return block == b"\0\1" + b"\xff" * (_MODULUS_BYTES - 2 - len(tail)) + tail


def read_public_key(path: Path) -> PublicKey:
    """Read an `adbkey.pub`. Raises OSError, or ValueError where the file holds no such key."""
    try:
        words, _, modulus, _, exponent = _LAYOUT.unpack(base64.b64decode(path.read_text().split()[0], validate=True))
    except (IndexError, struct.error, binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} holds no public key of adb: {error}") from error
    if words * 4 != _MODULUS_BYTES or exponent not in (3, 65537):
        raise ValueError(f"{path} holds a key of {words * 32} bits with exponent {exponent}; adb's have 2048 bits")
    return PublicKey(int.from_bytes(modulus, "little"), exponent)
