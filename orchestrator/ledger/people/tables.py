"""Tables of people: who they are, what they may, what they show, what they used, and what is told others."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Integer, String, Text

from orchestrator.ledger.guard.column_types import Number, Time, Word
from orchestrator.ledger.tables import table
from orchestrator.model.people import Kind, Role, Use

PEOPLE = table(
    "people",
    Column("name", String(60), primary_key=True),
    Column("kind", Word(12, Kind), nullable=False),
    Column("role", Word(12, Role, empty=True), nullable=False),
    Column("since", Time, nullable=False),
    Column("ended_at", Time),
    Column("password", Text, nullable=False, default="", server_default=""),
    Column("subject", Text, nullable=False, default="", server_default=""),
)
"""The people who may use the farm beside the owner of its machine, and groups. `role`: in the farm; empty: none. A row
stays when somebody leaves: what they did bears their name. `password`: its hash by Argon2; empty: there is none.
`subject`: who they are at the provider by which they log in; empty: they never did."""

GROUPED = table(
    "grouped",
    Column("of_group", ForeignKey("people.name"), primary_key=True),
    Column("person", ForeignKey("people.name"), primary_key=True),
)
"""The people of each group."""

PROJECTS = table(
    "projects",
    Column("name", String(60), primary_key=True),
    Column("since", Time, nullable=False),
    Column("note", Text, nullable=False),
    Column("share", Float, nullable=False, default=1.0, server_default="1"),
    Column("phone_hours", Float, nullable=False, default=0.0, server_default="0"),
    Column("most_waiting", Integer, nullable=False, default=0, server_default="0"),
    Column("storage_gib", Float, nullable=False, default=0.0, server_default="0"),
)
"""The projects; `common` needs no row. `share`: how much of the farm is its beside other projects'. `phone_hours` a
week, `most_waiting` jobs and `storage_gib` are its limits; 0: there is none."""

USAGE = table(
    "usage",
    Column("project", String(60), primary_key=True),
    Column("person", String(100), primary_key=True),
    Column("week", Integer, primary_key=True, autoincrement=False),
    Column("seconds", Float, nullable=False),
    Column("weighted", Float, nullable=False),
)
"""Phone-time that ended in a week (`orchestrator/model/live/usage.py`): plain, and weighted by when in the week."""

MEMBERS = table(
    "members",
    Column("project", String(60), primary_key=True),
    Column("person", ForeignKey("people.name"), primary_key=True),
    Column("role", Word(12, Role), nullable=False),
)

TOKENS = table(
    "tokens",
    Column("id", String(16), primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("person", ForeignKey("people.name"), nullable=False),
    Column("most", Word(12, Role), nullable=False),
    Column("project", String(60), nullable=False),
    Column("note", Text, nullable=False),
    Column("made_at", Time, nullable=False),
    Column("ends_at", Time),
    Column("revoked_at", Time),
    Column("used_at", Time),
    Column("use", Word(12, Use), nullable=False, default=Use.API, server_default=Use.API),
)
"""Tokens of people, under the SHA-256 of their text, which nobody keeps."""

LINKS = table(
    "links",
    Column("id", String(16), primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("target", String(210), nullable=False),
    Column("project", String(60), nullable=False),
    Column("who", String(100), nullable=False),
    Column("note", Text, nullable=False),
    Column("made_at", Time, nullable=False),
    Column("ends_at", Time, nullable=False),
    Column("revoked_at", Time),
    Column("used_at", Time),
)
"""Links by which anybody reads what `target` names, under the SHA-256 of their secret."""

WEBHOOKS = table(
    "webhooks",
    Column("id", String(16), primary_key=True),
    Column("url", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("project", String(60), nullable=False),
    Column("who", String(100), nullable=False),
    Column("made_at", Time, nullable=False),
    Column("ended_at", Time),
    Column("after", Number, nullable=False),
)
"""Addresses that are told what ends: of one project, or (empty) of all, and nights. `key`: what signs; `after`: all
experiments up to this number have been noted."""

DELIVERIES = table(
    "deliveries",
    Column("webhook", ForeignKey("webhooks.id"), primary_key=True),
    Column("event", String(140), primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("tried_at", Time),
    Column("next_at", Time),
    Column("error", Text, nullable=False),
)
"""The ends that each webhook is told, once each. `next_at`: empty where it was told, or is given up."""

ANSWERS = table(
    "answers",
    Column("person", String(100), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request_sha256", String(64), nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", Time, nullable=False),
)
"""Answers of acts that were asked for once under a key, for a day: the same request gets the same one."""
