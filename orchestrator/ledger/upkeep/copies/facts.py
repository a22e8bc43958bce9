"""The facts that a copy of a ledger tells of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """None: a dump of PostgreSQL does not tell before it is put back."""

    form: str
    """`sqlite` or `pg_dump`."""
    version: int | None = None
    """The version of the tables."""
    token: int | None = None
    """The newest fencing token."""
    experiments: int | None = None
    jobs: int | None = None
    records: int | None = None
