"""People: their roles, what kinds there are, and the doors by which they come."""

from __future__ import annotations

from enum import StrEnum

COMMON = "common"
"""The project of what names none; every farm has it."""


class Role(StrEnum):
    """The roles, from the least to the most: each may do what those before it may."""

    VIEW = "view"
    SUBMIT = "submit"
    OPERATE = "operate"
    ADMINISTER = "administer"

    def reaches(self, least: Role) -> bool:
        return _RANKS[self] >= _RANKS[least]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Door(StrEnum):
    """The way by which an act came."""

    COMMAND_LINE = "command line"
    PAGE = "page"
    NOTEBOOK = "notebook"
    API = "api"
    SCHEDULE = "schedule"
    """The farm itself, by a suite that somebody has scheduled."""


class Kind(StrEnum):
    """The kinds of people."""

    PERSON = "person"
    SERVICE = "service"
    """A program, such as a build server."""
    GROUP = "group"
    """Several of them: who belongs to it has its roles beside their own."""


class Use(StrEnum):
    """The uses of tokens: one that is for one of them is none for the others."""

    API = "api"
    SESSION = "session"
    """Somebody has logged in on the pages."""
    PASSWORD = "password"  # noqa: S105  (a word)
    """Whoever shows it sets the password of its person, once."""
