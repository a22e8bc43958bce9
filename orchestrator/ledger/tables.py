"""Tables of the ledger. A change here is a script in `migrations/versions/` and one more in SCHEMA_VERSION.

A job's state: waiting -> placed (an attempt began) -> running (a worker claimed it) -> done, or waiting again after a
transient failure; cancelled from any of the first three. `outcome` is set where the state is done. With sequential
sampling the next block of a cell is held until it is decided whether it is needed: then it waits, or its row goes.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Computed,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    select,
)  # fmt: skip
from sqlalchemy.schema import SchemaItem

from orchestrator.model.device import Source
from orchestrator.model.people import COMMON, Door
from orchestrator.model.record import Outcome

from .guard.column_types import Number, Time, Token, Word
from .rows import HostState, JobState

SCHEMA_VERSION = 31

METADATA = MetaData()


def table(name: str, *columns: SchemaItem) -> Table:
    """Return a table of the ledger."""
    return Table(name, METADATA, *columns)


EXPERIMENTS = table(
    "experiments",
    Column("id", String(100), primary_key=True),
    Column("sequence", Number, nullable=False, unique=True),
    Column("spec", Text, nullable=False),
    Column("exclusions", Text, nullable=False),
    Column("submitted_at", Time, nullable=False),
    Column("served_at", Time, nullable=False, default=0.0),
    Column("submitted_by", String(100), nullable=False, default="", server_default=""),
    Column("project", String(60), nullable=False, default=COMMON, server_default=COMMON),
    Column("origin", Text, nullable=False, default="", server_default=""),
)
"""`origin`: JSON of where it was measured, if it was imported from another lab; else empty."""

CHOICES = table(
    "choices",
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("candidates", Text, nullable=False),
    Column("candidate_count", Integer, nullable=False),
)
"""A choice of devices, the same for all experiments: JSON of their serials, and its SHA-256."""

CHOICE_DEVICES = table(
    "choice_devices",
    Column("choice_id", ForeignKey("choices.id"), primary_key=True),
    Column("serial", String(200), primary_key=True),
)
Index("choices_of_device", CHOICE_DEVICES.c.serial, CHOICE_DEVICES.c.choice_id)

LANES = table(
    "lanes",
    Column("id", Integer, primary_key=True),
    Column("experiment", ForeignKey("experiments.sequence"), nullable=False),
    Column("choice_id", ForeignKey("choices.id"), nullable=False),
    Column("changed", Number, nullable=False, default=0, server_default="0"),
    Column("stopped", Text, nullable=False, default="", server_default=""),
    UniqueConstraint("experiment", "choice_id", name="lanes_by_choice"),
)
"""A lane is a choice of devices of one experiment; `changed` numbers the last change of what waits in it. `stopped`:
JSON of why its strategy ended without what it was asked for; empty: it did not."""
Index("lanes_by_change", LANES.c.changed)

TEMPLATES = table(
    "templates",
    Column("id", Integer, primary_key=True),
    Column("experiment", ForeignKey("experiments.sequence"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("cell_id", String(32), nullable=False),
    Column("label", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("experiment", "digest", name="templates_by_content"),
)
"""The jobs' templates: the packed JSON of a cell's blocks without their block and their candidates."""

JOBS = table(
    "jobs",
    Column("id", String(32), primary_key=True),
    Column("experiment", ForeignKey("experiments.sequence"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("template_id", ForeignKey("templates.id"), nullable=False),
    Column("lane_id", ForeignKey("lanes.id"), nullable=False),
    Column("block", Integer, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("state", Word(12, JobState), nullable=False),
    Column("outcome", Word(12, Outcome, empty=True), nullable=False, default=""),
    Column("cause", String(40), nullable=False, default=""),
    Column("attempts", Integer, nullable=False, default=0),
    Column("failures", Integer, nullable=False, default=0),
    Column("token", Token, nullable=False, default=0),
    Column("not_before", Time, nullable=False, default=0.0),
    Column("ended_at", Time),
)
"""A job is a block of its template for the devices of its lane; its experiment is named by number."""
Index("jobs_in_turn", JOBS.c.state, JOBS.c.lane_id, JOBS.c.sequence)
Index("jobs_by_experiment", JOBS.c.experiment, JOBS.c.state, JOBS.c.sequence)
_TRIED = (JOBS.c.state == "waiting") & (JOBS.c.attempts > 0)
Index("jobs_tried", JOBS.c.lane_id, sqlite_where=_TRIED, postgresql_where=_TRIED)

ATTEMPTS = table(
    "attempts",
    Column("job_id", ForeignKey("jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("token", Token, nullable=False, unique=True),
    Column("serial", String(200), nullable=False),
    Column("host", String(200), nullable=False),
    Column("ttl_s", Float, nullable=False),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    Column("outcome", Word(12, Outcome, empty=True), nullable=False, default=""),
    Column("cause", String(40), nullable=False, default=""),
    Column("changed", Number, nullable=False, default=0, server_default="0"),
)
Index("attempts_by_end", ATTEMPTS.c.ended_at)
Index("attempts_by_change", ATTEMPTS.c.changed)

ARCHIVES = table(
    "archives",
    Column("id", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False),
    Column("file", Text, nullable=False),
    Column("made_at", Time, nullable=False),
)
"""Files of `farm ledger archive`, each with the hash that it had when it was written and read again."""

RECORDS = table(
    "records",
    Column("job_id", ForeignKey("jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("token", Token, nullable=False),
    Column("experiment_id", ForeignKey("experiments.id"), nullable=False),
    Column("cell_id", String(32), nullable=False),
    Column("serial", String(200), nullable=False),
    Column("outcome", Word(12, Outcome), nullable=False),
    Column("cause", String(40), nullable=False),
    Column("source", Word(12, Source), nullable=False),
    Column("started_at", Time, nullable=False),
    Column("kept_at", Time, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("archive_id", ForeignKey("archives.id")),
    Column("bytes", Integer, Computed("length(body)")),
)
"""`body` is empty where it was pruned, and `archive_id` then names the archive that holds it, if one does."""
Index("records_by_experiment", RECORDS.c.experiment_id, RECORDS.c.started_at, RECORDS.c.bytes)
Index("records_by_device", RECORDS.c.serial, RECORDS.c.started_at)
Index("records_by_kept_at", RECORDS.c.kept_at)

FIGURES = table(
    "figures",
    Column("job_id", ForeignKey("jobs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("experiment_id", ForeignKey("experiments.id"), nullable=False),
    Column("cell_id", String(32), nullable=False),
    Column("serial", String(200), nullable=False),
    Column("source", Word(12, Source), nullable=False),
    Column("outcome", Word(12, Outcome), nullable=False),
    Column("started_at", Time, nullable=False),
    Column("kept_at", Time, nullable=False),
    Column("median_ms", Float),
    Column("error", Text, nullable=False),
    Column("body", LargeBinary),
    Column("per_layer", LargeBinary),
    Column("predictions", LargeBinary),
    Column("brief", Text),
)
"""A row a record, derived from it (`orchestrator/figures/`); `body` is null where that failed, as `error`
says. `median_ms` is of a block's timed samples, null where it did not go well. `brief`, JSON, is what comparisons need
of the body; null in a row from before it."""
Index("figures_by_result", FIGURES.c.experiment_id, FIGURES.c.serial, FIGURES.c.cell_id, FIGURES.c.started_at)

DEAD_RECORDS = table(
    "dead_records",
    Column("id", String(16), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("reason", Text, nullable=False),
    Column("host", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("set_aside_at", Time, nullable=False),
)
"""The dead records, which can never be of this ledger: the bytes as they came, under their hash."""


def _health(name: str, key: str) -> Table:
    """The losses in a row of each device or host, and its quarantine."""
    return table(
        name,
        Column(key, String(200), primary_key=True),
        Column("failures", Integer, nullable=False),
        Column("failed_at", Time, nullable=False, default=0.0),
        Column("quarantined_at", Time),
        Column("reason", Text, nullable=False, default=""),
    )


DEVICE_HEALTH = _health("device_health", "serial")
HOST_HEALTH = _health("host_health", "host")

HOSTS = table(
    "hosts",
    Column("name", String(200), primary_key=True),
    Column("state", Word(12, HostState), nullable=False),
    Column("since", Time, nullable=False),
    Column("secret_sha256", String(64), nullable=False, default=""),
)
"""The hosts of which people spoke: added, being drained, removed. A host that announces itself needs no row."""

OWNERS = table(
    "owners",
    Column("serial", String(200), primary_key=True),
    Column("host", String(200), nullable=False),
)
"""The host that has a device, as the scheduler has decided where it was announced."""

DEVICE_NOTES = table(
    "device_notes",
    Column("serial", String(200), primary_key=True),
    Column("labels", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("owner", String(100), nullable=False),
)
"""The words of people on devices; `labels`: `KEY=VALUE`, with blanks between them."""

DEVICE_HISTORY = table(
    "device_history",
    Column("id", Integer, primary_key=True),
    Column("serial", String(200), nullable=False),
    Column("host", String(200), nullable=False),
    Column("seen_at", Time, nullable=False),
    *(Column(name, Text, nullable=False) for name in ("model", "build", "drivers")),
    Column("battery_cycles", Integer),
    Column("battery_health", String(40), nullable=False),
)
"""The history of devices: a row for each change, which holds until the next one of the device."""
Index("device_history_by_device", DEVICE_HISTORY.c.serial, DEVICE_HISTORY.c.id)

HOLDS = table(
    "holds",
    Column("id", Integer, primary_key=True),
    Column("serial", String(200), nullable=False),
    Column("who", String(100), nullable=False),
    Column("project", String(60), nullable=False, default="", server_default=""),
    Column("since", Time, nullable=False),
    Column("begins", Time, nullable=False, default=0.0, server_default="0"),
    Column("until", Time),
    Column("note", Text, nullable=False),
    Column("alone", Boolean, nullable=False, default=False, server_default=false()),
)
"""Devices that a person or (`project`, where it is not empty) a project has for a time, which was said at `since`: they
get no work but the holder's own from `begins` until `until`, or until somebody releases them. `alone`: not even that.
`begins` is 0 of what a person took at once; else it was reserved."""
Index("holds_by_device", HOLDS.c.serial)

AUDIT = table(
    "audit",
    Column("id", Integer, primary_key=True),
    Column("at", Time, nullable=False),
    Column("who", String(100), nullable=False),
    Column("door", Word(12, Door), nullable=False),
    Column("act", String(40), nullable=False),
    Column("target", Text, nullable=False),
    Column("said", Text, nullable=False),
    Column("origin", String(100), nullable=False, default="", server_default=""),
    Column("refused", Boolean, nullable=False, default=False, server_default=false()),
)
"""The acts of people, each stored in the transaction that did it (`orchestrator/acts/`), and those that were refused
them. No row is ever changed or removed."""

NIGHTS = table(
    "nights",
    Column("id", String(120), primary_key=True),
    Column("suite", String(60), nullable=False),
    Column("due_at", Time, nullable=False),
    Column("over", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Runs of suites (`orchestrator/nightly/night.py`); `version` counts how often one was replaced."""
Index("nights_by_suite", NIGHTS.c.suite, NIGHTS.c.due_at)

SCHEDULES = table(
    "schedules",
    Column("suite", String(60), primary_key=True),
    Column("file", Text, nullable=False),
    Column("cron", String(100), nullable=False),
    Column("since", Time, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Suites that the farm runs by itself: the suite's file, when it is due, and the suite as it was then."""

QUEUE_RUNS = table(
    "queue_runs",
    Column("id", String(120), primary_key=True),
    Column("name", String(60), nullable=False),
    Column("began_at", Time, nullable=False),
    Column("source", String(100), nullable=False),
    Column("requests", Integer, nullable=False),
    Column("summary", LargeBinary, nullable=False),
    Column("about", LargeBinary, nullable=False),
    Column("request_columns", LargeBinary, nullable=False),
    Column("reading_columns", LargeBinary, nullable=False),
)
"""Queueing experiments that ran on devices (`orchestrator/queueing/kept/`), their requests in packed columns."""
Index("queue_runs_by_time", QUEUE_RUNS.c.began_at)

COUNTED = table(
    "counted",
    Column("what", String(10), primary_key=True),
    Column("outcome", Word(12, Outcome, empty=True), primary_key=True),
    Column("word", String(40), primary_key=True),
    Column("beside", Number, nullable=False),
)
"""Counts of what this farm did beyond what the tables have, by outcome and cause of `attempts`, source of `records`."""

COUNTERS = table(
    "counters",
    Column("name", String(40), primary_key=True),
    Column("value", Number, nullable=False),
)
"""`schema` is the version of these tables, `token` the newest fencing token, `experiment` the newest sequence, `change`
the newest change of the queue, `restored` the token from which they went on when the ledger was last put back."""


def number_of(experiment_id: str) -> ScalarSelect[int]:
    """An experiment's number, by which other tables name it."""
    return select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.id == experiment_id).scalar_subquery()


NAMED_JOBS = JOBS.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment).join(
    TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id
)
"""Jobs with their experiment's name and their template."""
