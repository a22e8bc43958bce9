"""Base class of every model of the farm."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Frozen data that may cross a process; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def content_hash(value: BaseModel | dict[str, Any]) -> str:
    """Hash a value's canonical JSON: the identity of jobs, cells and plans (SHA-256, 16 hex digits)."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return hash_of_text(canonical_json(data))


def canonical_json(data: dict[str, Any]) -> bytes:
    """The one text of a value that is hashed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_of_text(*parts: bytes) -> str:
    """The identity of what has this canonical text, given in parts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]
