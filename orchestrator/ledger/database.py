"""The database under the ledger: SQLite (one host) or PostgreSQL, opened and checked."""

from __future__ import annotations

import fcntl
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    BigInteger,
    Connection,
    Dialect,
    Engine,
    Executable,
    bindparam,
    case,
    create_engine,
    event,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoResultFound,
    NoSuchModuleError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.model.errors import ServiceDown, SetupError, Unreadable
from orchestrator.model.live.lease import LARGEST_TOKEN
from orchestrator.system.private_files import make_file, make_private

from . import schema
from .guard.row_guard import REMEDY, guard
from .tables import ATTEMPTS, COUNTERS, EXPERIMENTS, JOBS, LANES, RECORDS

log = logging.getLogger(__name__)
V = TypeVar("V")
Transaction: TypeAlias = Connection
"""A transaction that rooms above the ledger hand on to its functions."""

BUSY_MS = 10_000
"""The time for which a SQLite writer waits for another."""
SWITCH_RETRY_S = 0.01
SYNCHRONOUS = "FULL"
"""A commit is on the disk when it returns: by then the receipt lets a host drop its copy of a record. WAL with
less may roll back after a power cut, fencing tokens too."""
POOL, BEYOND = 16, 24
"""Connections that a process keeps, and those that it opens for a moment: the threads of the pages, forty, ask at the
same time, and to open one costs more than what is asked."""
AT_ONCE = 512
"""Values that one statement names: a database has a limit."""
CONNECT_S = 10
"""The time that PostgreSQL may take to answer at first, unless the URL says `connect_timeout`."""


class _Together(threading.local):
    """The transaction that this thread has begun, and what ends it."""

    stack: ExitStack | None = None
    connection: Connection | None = None


class Database:
    """Transactions on the ledger's tables. Threads may share it."""

    def __init__(self, url: str) -> None:
        self._url, self._engine = url, _engine(url)
        self._name = self._engine.url.render_as_string(hide_password=True)
        self.unreadable = 0
        """Rows that were left out so far, each as often as it was asked for."""
        guard(self._engine, self._left_out)
        self._writer = self._engine.execution_options(farm_write=True)
        self._reader = self._engine.execution_options(farm_kept={})
        """Rooms of the ledger keep here what they have counted; a transaction that writes has none of it."""
        self._together = _Together()
        self.before_close: list[Callable[[], None]] = []
        """Calls that end the work of others with it."""
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for end in self.before_close:
            end()
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads. Raises ServiceDown where the database is away."""
        if self._together.connection is not None:
            yield self._together.connection
            return
        with self._translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes, alone on SQLite from its start. Raises ServiceDown where the database is away."""
        mine = self._together
        if mine.stack is None:
            with self._begun(self._writer) as connection:
                yield connection
            return
        if mine.connection is None:
            mine.connection = mine.stack.enter_context(self._begun(self._writer))
        yield mine.connection

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of all that this thread writes meanwhile, and reads after its first write: it is stored
        whole when it is left, or not at all where that raises."""
        mine = self._together
        if mine.stack is not None:
            raise RuntimeError("a transaction inside another one")
        with ExitStack() as mine.stack:
            try:
                yield
            finally:
                mine.stack = mine.connection = None

    @property
    def has_one_writer(self) -> bool:
        return self._engine.dialect.name == "sqlite" and self._engine.url.database not in (None, "", ":memory:")

    @contextmanager
    def unchecked(self) -> Iterator[Callable[[], AbstractContextManager[Connection]]]:
        """Give what begins transactions in which a row may name one that is not there yet (SQLite). One process at a
        time has it; another waits."""
        lock = Path(f"{self._engine.url.database}.coming")
        make_file(lock)
        engine = _engine(self._url, checked=False)
        guard(engine, self._left_out)
        try:
            with lock.open() as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                yield partial(self._begun, engine.execution_options(farm_write=True))
        finally:
            engine.dispose()

    def vacuum(self) -> None:
        """Give the room of deleted rows back to the disk (SQLite: nobody else writes meanwhile) or to new rows
        (PostgreSQL). Raises ServiceDown."""
        bare = {"farm_bare": True} if self._engine.dialect.name == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        with self._translated(), self._engine.execution_options(**bare).connect() as connection:
            connection.exec_driver_sql("VACUUM")

    @contextmanager
    def _begun(self, engine: Engine) -> Iterator[Connection]:
        with self._translated(), engine.begin() as connection:
            yield connection

    def _left_out(self) -> None:
        self.unreadable += 1

    def _prepare(self) -> None:
        """Make the tables where there are none, upgrade older ones. Raises SetupError where it does not know them."""
        with self._readable(), self.read() as connection:
            found = schema.fault(connection)
        if found is schema.EMPTY:
            self._make_tables()
            with self.read() as connection:
                found = schema.fault(connection)
        if found is schema.OUTDATED:
            with self.write() as connection:
                before, after = schema.upgrade(connection)
            log.warning("event=ledger_upgraded ledger=%s from=%d to=%d", self._name, before, after)
            with self.read() as connection:
                found = schema.fault(connection)
        if found is not None:
            raise SetupError(f"the ledger {self._name} cannot be used: {found.what}", remedy=found.remedy)

    def _make_tables(self) -> None:
        try:
            with self.write() as connection:
                schema.create(connection)
        except (IntegrityError, ProgrammingError):
            return  # another process made them at the same moment

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except ServiceDown as e:
            if type(e.__cause__) is not DatabaseError:  # its classes say what is away, itself that this is no database
                raise
            raise SetupError(f"{self._name} is no ledger: {e.__cause__.orig}", remedy=schema.REMEDY) from e
        except DatabaseError as e:
            raise SetupError(f"{self._name} is no ledger: {e.orig}", remedy=schema.REMEDY) from e

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Pass errors of one statement on; every other fault is the store's: away, read-only, full, damaged."""
        try:
            yield
        except (DataError, IntegrityError, ProgrammingError):
            raise
        except NoResultFound as e:
            raise Unreadable(f"a row that the ledger {self._name} must have is not there", remedy=REMEDY) from e
        except (DBAPIError, PoolTimeout, MemoryError) as e:
            raise ServiceDown(
                f"the ledger {self._name} does not answer: {getattr(e, 'orig', None) or repr(e)}",
                remedy="check that the database runs, that it may be written and that its disk has space",
            ) from e


JUMP = 10_000_000
"""The numbers that a lost counter skips beyond the newest value that is known: some may have gone to records that
have not come yet."""
_IS_IT = COUNTERS.c.name == bindparam("name_")
_COUNTED = update(COUNTERS).where(_IS_IT).values(value=COUNTERS.c.value + bindparam("by")).returning(COUNTERS.c.value)
_COUNTED_ON = _COUNTED.where(COUNTERS.c.value.between(0, literal(LARGEST_TOKEN + JUMP, BigInteger)))
_HELD_IN = {
    "token": (ATTEMPTS.c.token, JOBS.c.token, RECORDS.c.token),
    "experiment": (EXPERIMENTS.c.sequence, JOBS.c.experiment, LANES.c.experiment),
    "change": (ATTEMPTS.c.changed, LANES.c.changed),
}
"""The columns that hold a counter's values."""


def count_up(connection: Connection, name: str, by: int = 1) -> int:
    """The next value of a counter, in the caller's transaction: no value is ever given twice, nor those between."""
    asked = {"name_": name, "by": by}
    found = connection.execute(_COUNTED_ON, asked).scalar_one_or_none()
    if found is None:
        jump(connection, name)
        found = connection.execute(_COUNTED, asked).scalar_one()
    return int(found)


def jump(connection: Connection, name: str, beyond: int = 0) -> None:
    """Let a counter that was lost, or is behind what rows hold or behind `beyond`, go on far beyond; another stays."""
    most = literal(LARGEST_TOKEN, BigInteger)
    newest = (func.coalesce(func.max(case((held.between(0, most), held))), 0) for held in _HELD_IN[name])
    known = max(beyond if beyond <= LARGEST_TOKEN else 0, *(connection.scalar(select(each)) or 0 for each in newest))
    is_lost = ~COUNTERS.c.value.between(literal(known, BigInteger), literal(LARGEST_TOKEN + JUMP, BigInteger))
    if connection.execute(update(COUNTERS).where(_IS_IT, is_lost).values(value=known + JUMP), {"name_": name}).rowcount:
        log.error("event=counter_lost name=%s: it goes on from %d", name, known + JUMP)


def execute_many(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """The statement once for each row; all rows have the same keys, and strings, numbers, bytes or None as values.

    What SQLAlchemy does for each row of `execute` costs as much as the statement itself, and such values need none of
    it: here the driver gets the rows. Raises what `execute` raises.
    """
    if rows:
        sql, prepared = _compiled(connection.dialect, statement, tuple(rows[0]))
        connection.exec_driver_sql(sql, [prepared(row) for row in rows])


def parts(values: Iterable[V]) -> Iterator[list[V]]:
    """Yield values for `IN`: sorted, as many at once as one statement may name; none of no values."""
    ordered = sorted(values)  # type: ignore[type-var]
    return (padded(ordered[start : start + AT_ONCE]) for start in range(0, len(ordered), AT_ONCE))


def padded(values: Collection[V]) -> list[V]:
    """Pad values for `IN` by the last one to a power of two: the same set, and few texts of a statement.

    SQLite and PostgreSQL's driver keep what they have prepared for some hundred texts a connection. A text for each
    number of values would fill that with statements of many kilobytes that seldom come again. More than `AT_ONCE` stay
    as many as they are: a database has a limit.
    """
    found = list(values)
    more = (1 << (len(found) - 1).bit_length()) - len(found) if 0 < len(found) <= AT_ONCE else 0
    return found + found[-1:] * more


@lru_cache(maxsize=64)
def _compiled(
    dialect: Dialect, statement: Executable, keys: tuple[str, ...]
) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    """The text of a statement, and what makes the driver's parameters of a row with these keys."""
    made: Any = statement.compile(dialect=dialect, column_keys=list(keys))  # type: ignore[attr-defined]
    said = {name: value for name, value in made.construct_params(_check=False).items() if name not in keys}
    if made.positional:
        order = tuple(made.positiontup)
        return str(made), lambda row: tuple([row[name] if name in row else said[name] for name in order])
    return str(made), lambda row: {**said, **row}


def _make_private(file: Path) -> None:
    """A new ledger, and the folder that is made for it, are this user's alone."""
    if not file.parent.exists():
        make_private(file.parent)
    if str(file) != ":memory:" and not file.exists():
        make_file(file)


def _engine(url: str, *, checked: bool = True) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            _make_private(Path(parsed.database))
        if parsed.get_backend_name() == "postgresql":
            told = {"connect_timeout": str(CONNECT_S), "client_encoding": "utf8"}  # a database in C has no encoding
            parsed = parsed.set(query={**told, **parsed.query})
        pool = {} if parsed.database in (None, "", ":memory:") else {"pool_size": POOL, "max_overflow": BEYOND}
        engine = create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite", **pool)
    except (ArgumentError, NoSuchModuleError, ImportError) as e:
        raise SetupError(
            f"the ledger's URL cannot be used: {e}",
            remedy="FARM_LEDGER_URL is sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE",
        ) from e
    except OSError as e:
        raise SetupError(
            f"the ledger's folder cannot be made: {e}",
            remedy="give a folder that you may write with --state or FARM_STATE",
        ) from e
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", partial(_configure_sqlite, checked=checked))
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _record: Any, *, checked: bool) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says, see _begin_sqlite
    try:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged text costs its row alone
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        _use_write_ahead_log(connection)
        for pragma in (f"synchronous={SYNCHRONOUS}", f"foreign_keys={'ON' if checked else 'OFF'}"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # the pool does not know it yet
        raise


def _use_write_ahead_log(connection: Any) -> None:
    """The first connections to a new file switch it at the same moment. This switch turns a reader into a writer, for
    which SQLite does not wait however long its `busy_timeout` is: it is tried again here."""
    deadline = time.monotonic() + BUSY_MS / 1e3
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(SWITCH_RETRY_S)


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the write lock at once: a reader that turns writer cannot wait and would fail."""
    options = connection.get_execution_options()
    if options.get("farm_write", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif not options.get("farm_bare", False):
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN")  # takes no lock: nothing can be in its way, and SQLAlchemy takes three times as long
