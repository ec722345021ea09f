"""Where a server keeps everything: SQLite in a file, or PostgreSQL; one writer, commits in groups.

Jobs wait in one line. Whatever waits is done in one transaction, on disk before anyone is told: a
single answer and a batch of a thousand cost one wait for the disk together with all others.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from tempriv.collect.server import schema
from tempriv.data.locks import FileLock
from tempriv.errors import LedgerError, StateError, require
from tempriv.local.frequency.base import Integers
from tempriv.local.wire import MessageError

Result = TypeVar("Result")
Job = Callable[[Connection], Result]

TRANSACTION_JOBS = 64  # jobs of one transaction at most, so that nobody waits long
ADVISORY_LOCK = 0x74656D70  # of PostgreSQL, by number
LOCK_TRIES, LOCK_PAUSE_SECONDS = 50, 0.2  # for that lock, and seconds between
HAS_LOCK = text(
    "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database "
    "WHERE locktype = 'advisory' AND granted AND datname = current_database() "
    f"AND classid = 0 AND objid = {ADVISORY_LOCK} AND pid = :pid"
)
POOL: dict[str, Any] = {"pool_size": 24, "max_overflow": 24}  # as many as requests have threads
PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "busy_timeout = 10000")


class StoreError(StateError):
    """The store cannot be used at the moment."""


class Database:
    """The database of one server, and the one thread that writes to it.

    Guarantees:
        - what a job returned is on disk when its future is done;
        - a job that fails changes nothing, and keeps no other from being done;
        - one server at a time uses a store.
    """

    def __init__(self, url: str):
        self.url = url
        self.is_sqlite = url.startswith("sqlite:")
        self._engine: Engine | None = None
        self._jobs: queue.SimpleQueue[tuple[Job[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._held: Any = None
        self._holder = 0  # the process of the database that has the lock
        self.on_rollback: Callable[[], None] = lambda: None
        """Called when a transaction was lost with all that its jobs had done."""
        self.on_commit: Callable[[], None] = lambda: None
        """Called when one is on disk."""

    def __repr__(self) -> str:
        return f"Store({'SQLite' if self.is_sqlite else 'PostgreSQL'})"

    @property
    def path(self) -> Path | None:
        """Of the SQLite file."""
        name = make_url(self.url).database if self.is_sqlite else None
        return None if name is None else Path(name)

    def open(self) -> None:
        """Ready for use; nothing happens if it is already."""
        if self._thread is not None:
            return
        require(
            self.is_sqlite or self.url.startswith(("postgresql:", "postgres:")),
            "[[url|store]]: must be sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        )
        try:
            self._engine = self._connected()
            self._hold()
            with self._engine.begin() as db:
                schema.migrate(db)
        except SQLAlchemyError as problem:
            self.close()
            kind = type(getattr(problem, "orig", problem)).__name__
            raise StateError(f"the store cannot be used ({kind}); is its address right?") from None
        except BaseException:
            self.close()
            raise
        self._thread = threading.Thread(target=self._write, name="tempriv writer", daemon=True)
        self._thread.start()

    def _connected(self) -> Engine:
        if not self.is_sqlite:
            url = make_url(self.url).set(drivername="postgresql+psycopg")
            return create_engine(url, pool_pre_ping=True, hide_parameters=True, **POOL)
        require(
            self.path is not None and self.path.name not in ("", ":memory:"),
            "[[url|store]]: sqlite:///FILE needs the name of a file",
        )
        assert self.path is not None
        require(self.path.parent.is_dir(), f"{self.path.parent}: no such directory")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        engine = create_engine(
            make_url(self.url),
            hide_parameters=True,
            connect_args={"check_same_thread": False},
            **POOL,
        )

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, record: Any) -> None:
            """Set up a new ``connection`` to SQLite; its ``record`` is not looked at."""
            connection.isolation_level = None  # transactions are begun below, also around tables
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            """Begin a transaction on a ``connection`` at once, for SQLite waits at its beginning
            only.
            """
            mode = connection.get_execution_options().get("sqlite_begin", "BEGIN IMMEDIATE")
            connection.exec_driver_sql(mode)

        return engine

    def _hold(self) -> None:
        """Keep other servers off: two would close the same question twice."""
        taken = LedgerError("another server is using this store; stop it first")
        if self.is_sqlite:
            assert self.path is not None
            try:
                self._held = FileLock(self.path.with_name(self.path.name + ".lock"))
            except BlockingIOError:
                raise taken from None
            return
        assert self._engine is not None
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        # of a server that was killed the database takes notice a moment later
        for _ in range(LOCK_TRIES):
            if connection.execute(text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})")).scalar():
                self._held = connection
                self._holder = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                return
            time.sleep(LOCK_PAUSE_SECONDS)
        connection.close()
        raise taken

    def _keep_hold(self, db: Connection) -> None:
        """A lock goes with its connection: write only while it is there, or after it is again."""
        if self.is_sqlite or db.execute(HAS_LOCK, {"pid": self._holder}).scalar():
            return
        with contextlib.suppress(SQLAlchemyError):
            self._held.close()
        self._hold()
        self.on_rollback()  # another server may have been here meanwhile

    def close(self) -> None:
        """Do what was asked for before, then stop."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if isinstance(self._held, FileLock):
            self._held.close()
        elif self._held is not None:
            with contextlib.suppress(SQLAlchemyError):  # it goes with the connection anyway
                self._held.execute(text(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})"))
            self._held.close()
        self._held = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    # reading

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A look at what was committed."""
        assert self._engine is not None
        with self._engine.connect().execution_options(sqlite_begin="BEGIN") as db:
            yield db

    # writing

    def submit(self, job: Job[Result]) -> Future[Result]:
        """Queue ``job`` for the writing thread; its result is on disk when the future is done."""
        require(self._thread is not None, "the store is closed", StoreError)
        future: Future[Result] = Future()
        self._jobs.put((job, future))
        return future

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    def _write(self) -> None:
        while (first := self._jobs.get()) is not None:
            group, last = [first], False
            while len(group) < TRANSACTION_JOBS and not last:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                last = job is None
                if job is not None:
                    group.append(job)
            self._do_together(group)
            if last:
                return

    def _do_together(self, group: Sequence[tuple[Job[Any], Future[Any]]]) -> None:
        assert self._engine is not None
        # whoever has gone away meanwhile asked for nothing
        group = [(job, future) for job, future in group if future.set_running_or_notify_cancel()]
        done: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._engine.begin() as db:
                self._keep_hold(db)
                for job, future in group:
                    try:
                        with db.begin_nested():
                            done.append((future, job(db), None))
                    except MessageError as reason:  # before it changed anything
                        done.append((future, None, reason))
                    except OperationalError:
                        raise
                    except Exception as problem:
                        self.on_rollback()
                        done.append((future, None, problem))
            self.on_commit()
        except Exception as problem:
            self.on_rollback()
            kind = type(getattr(problem, "orig", problem)).__name__
            lost = StoreError(f"the store cannot be written now ({kind}); try again later")
            done = [(future, None, lost) for _, future in group]
        for future, result, failure in done:
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)


# statements over many devices, in the words of each database: numbers go in as one value, for a
# statement with thousands of them would be read anew each time


def _all(db: Connection, numbers: Integers) -> tuple[str, Any]:
    """A table of numbers in their order, and what to give for it."""
    if db.dialect.name == "sqlite":
        return "json_each(?)", str(numbers.tolist())
    return "unnest(%s::bigint[]) WITH ORDINALITY AS given(value, key)", numbers.tolist()


def placeholder(db: Connection) -> str:
    """Return what stands for a value in a statement to ``db``."""
    return "?" if db.dialect.name == "sqlite" else "%s"


def execute(db: Connection, query: str, *values: Any) -> Any:
    """Run ``query`` by the driver of ``db`` itself, for what happens with every batch."""
    cursor = db.connection.cursor()
    return cursor.execute(query, values)


def secrets_of(db: Connection, numbers: Integers) -> list[bytes | None]:
    """Return the digest of each secret in ``db`` by ``numbers``; None if not enrolled, or
    withdrawn.
    """
    table, values = _all(db, numbers)
    query = (
        f"SELECT secret FROM {table} LEFT JOIN devices ON number = value AND withdrawn_at IS NULL "
        "ORDER BY key"
    )
    return [row[0] for row in execute(db, query, values).fetchall()]


def answered_of(db: Connection, scope: int, numbers: Integers) -> set[int]:
    """Return which of these ``numbers`` have answered in a ``scope``, by ``db``."""
    table, values = _all(db, numbers)
    # so that one looks for each number, not for each that has answered
    query = f"SELECT device FROM answered WHERE scope = {int(scope)} AND device IN "
    query += f"(SELECT value FROM {table})"
    return {row[0] for row in execute(db, query, values).fetchall()}


def add_answered(db: Connection, scope: int, numbers: Integers) -> bool:
    """Note in ``db`` that different ``numbers`` answered in a ``scope``; change nothing and return
    False if one has.
    """
    table, values = _all(db, numbers)
    query = f"INSERT INTO answered SELECT {int(scope)}, value FROM {table}"
    query += " WHERE true ON CONFLICT DO NOTHING"
    execute(db, "SAVEPOINT noted")
    conflict = execute(db, query, values).rowcount < len(numbers)
    if conflict:
        execute(db, "ROLLBACK TO SAVEPOINT noted")
    execute(db, "RELEASE SAVEPOINT noted")
    return not conflict


def add_uploads(db: Connection, scope: int, numbers: Integers, rows: Sequence[bytes]) -> None:
    """Keep the report ``rows`` of devices with these ``numbers`` in a ``scope`` of ``db``."""
    mark = placeholder(db)
    db.exec_driver_sql(
        f"INSERT INTO uploads VALUES ({mark}, {mark}, {mark})",
        [(scope, number, row) for number, row in zip(numbers.tolist(), rows, strict=True)],
    )
