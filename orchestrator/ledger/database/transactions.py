"""Transactions on the ledger's tables."""

from __future__ import annotations

import fcntl
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, NoResultFound, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.ledger import schema
from orchestrator.ledger.guard.row_guard import REMEDY, guard
from orchestrator.model.errors import ServiceDown, SetupError, Unreadable
from orchestrator.system.private_files import make_file

from .opening import AtOnce, engine_of

log = logging.getLogger(__name__)
Transaction: TypeAlias = Connection
"""A transaction that rooms above the ledger hand on to its functions."""
Given = ParamSpec("Given")
Found = TypeVar("Found")


class _Together(threading.local):
    """The transaction that this thread has begun, and what ends it."""

    stack: ExitStack | None = None
    connection: Connection | None = None


class Database:
    """Transactions on the ledger's tables. Threads may share it."""

    def __init__(self, url: str) -> None:
        self._url, self._engine = url, engine_of(url)
        self._name = self._engine.url.render_as_string(hide_password=True)
        self.unreadable = 0
        """Rows that were left out so far, each as often as it was asked for."""
        guard(self._engine, self._left_out)
        self._writer = self._engine.execution_options(farm_write=True)
        self._reader = self._engine.execution_options(farm_kept={})
        """Rooms of the ledger keep here what they have counted; a transaction that writes has none of it."""
        self._together, self._at_once = _Together(), AtOnce(self._engine) if self.has_one_writer else None
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
        if self._at_once is not None:
            self._at_once.close()
        self._engine.dispose()

    def finds_at_once(self, query: str) -> bool | None:
        """Return whether a query finds a row, for callers that must not wait, as loops of events; None: who may wait
        has to `read`."""
        return None if self._at_once is None else self._at_once.finds(query)

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
        engine = engine_of(self._url, checked=False)
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


class _Owner(Protocol):
    _database: Database


Begun = Callable[[Database], AbstractContextManager[Connection]]
Act = Callable[Concatenate[Connection, Given], Found]
Method = Callable[Concatenate[_Owner, Given], Found]


def reads(act: Act[Given, Found]) -> Method[Given, Found]:
    """Return the method that calls `act` in a transaction of its owner's database that only reads."""
    return _method(Database.read, act)


def writes(act: Act[Given, Found]) -> Method[Given, Found]:
    """Return the method that calls `act` in a transaction of its owner's database."""
    return _method(Database.write, act)


def _method(begun: Begun, act: Act[Given, Found]) -> Method[Given, Found]:
    def method(self: _Owner, /, *args: Given.args, **named: Given.kwargs) -> Found:
        with begun(self._database) as connection:
            return act(connection, *args, **named)

    method.__doc__ = act.__doc__
    return method
