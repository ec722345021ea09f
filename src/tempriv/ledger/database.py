"""The SQLite file of a ledger: private, durable, recognized before it is touched."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tempriv.data.files import sync_directory
from tempriv.errors import LedgerError, require
from tempriv.sampling.keys import tokens

APPLICATION_ID = 0x74707276  # "tprv"
FORMAT_VERSION = 4
SCHEMA = """
CREATE TABLE datasets (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL);
CREATE TABLE limits (
    id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES datasets, unit TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, total TEXT NOT NULL, UNIQUE (dataset, unit));
CREATE TABLE member_sets (digest BLOB PRIMARY KEY, ids BLOB NOT NULL);
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES datasets, digest BLOB NOT NULL,
    kind TEXT NOT NULL, members BLOB REFERENCES member_sets, start INTEGER, "end" INTEGER,
    step INTEGER, clock TEXT NOT NULL, UNIQUE (dataset, digest));
CREATE INDEX scope_steps ON scopes (dataset, clock, step);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, release TEXT NOT NULL UNIQUE,
    dataset INTEGER NOT NULL REFERENCES datasets, scope INTEGER NOT NULL REFERENCES scopes,
    guarantee TEXT NOT NULL, content TEXT NOT NULL, recorded TEXT NOT NULL, note TEXT,
    totals TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('prepared', 'done')),
    path TEXT, partial TEXT, checksum TEXT, request TEXT);
CREATE INDEX charges_by_scope ON charges (dataset, scope);
CREATE INDEX prepared_outputs ON charges (path, request) WHERE state = 'prepared';
CREATE TABLE sums (
    "limit" INTEGER NOT NULL REFERENCES limits, scope INTEGER NOT NULL REFERENCES scopes,
    epsilon REAL NOT NULL, delta REAL NOT NULL, rho REAL NOT NULL,
    PRIMARY KEY ("limit", scope)) WITHOUT ROWID;
"""
# since version 2: scopes of the same members, and members of small sets by name
GROUPS = """
ALTER TABLE scopes ADD COLUMN first INTEGER;
CREATE TABLE groups (
    first INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, small INTEGER NOT NULL,
    kind TEXT NOT NULL, members BLOB);
CREATE INDEX groups_by_members ON groups (dataset, small, kind, members);
CREATE TABLE small_sets (
    member INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (member, digest)) WITHOUT ROWID;
INSERT INTO groups SELECT min(id), dataset, 0, kind, members FROM scopes
    GROUP BY dataset, kind, members;
UPDATE scopes SET first = (SELECT g.first FROM groups g WHERE g.dataset = scopes.dataset
    AND g.small = 0 AND g.kind = scopes.kind AND g.members IS scopes.members);
CREATE INDEX scopes_in_time ON scopes (first, clock, ifnull("end", 9223372036854775807));
"""
# since version 3: the last tick of a scope's last step, and how its steps lie on the dataset's
EXTENTS = """
ALTER TABLE scopes ADD COLUMN until INTEGER;
ALTER TABLE scopes ADD COLUMN grid INTEGER;
CREATE INDEX scopes_by_number ON scopes (dataset);
CREATE INDEX scope_grids ON scopes (dataset, clock, grid);
CREATE INDEX scopes_until ON scopes (first, clock, ifnull(until, 9223372036854775807));
"""
# since version 4: a secret for digests; and charges in parts, with the landmarks they are about
SECRET = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
LANDMARKS = """
CREATE TABLE marks (
    digest BLOB PRIMARY KEY, members BLOB NOT NULL, counts BLOB NOT NULL, moments BLOB NOT NULL);
CREATE TABLE parts (
    id INTEGER PRIMARY KEY, charge INTEGER NOT NULL REFERENCES charges,
    scope INTEGER NOT NULL REFERENCES scopes, role TEXT NOT NULL, guarantee TEXT NOT NULL,
    draw TEXT, spent TEXT, marks BLOB REFERENCES marks);
CREATE INDEX parts_of_charges ON parts (charge);
CREATE INDEX drawn_marks ON parts (draw) WHERE draw IS NOT NULL;
ALTER TABLE charges ADD COLUMN parted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX parted_charges ON charges (dataset) WHERE parted = 1;
ALTER TABLE scopes ADD COLUMN marks BLOB REFERENCES marks;
ALTER TABLE scopes ADD COLUMN inside INTEGER;
"""
# and which datasets hold the same rows, and what the owner says of it. ``also`` has
# charges that count for another dataset than their own, ``merged`` and ``apart`` pairs of datasets
LINEAGE = """
CREATE TABLE sketches (dataset INTEGER PRIMARY KEY REFERENCES datasets, content BLOB NOT NULL);
CREATE TABLE also (
    charge INTEGER PRIMARY KEY REFERENCES charges, "of" INTEGER NOT NULL REFERENCES charges);
CREATE INDEX also_of ON also ("of");
CREATE TABLE merged (
    dataset INTEGER NOT NULL REFERENCES datasets, other INTEGER NOT NULL REFERENCES datasets,
    alike INTEGER NOT NULL, PRIMARY KEY (dataset, other)) WITHOUT ROWID;
CREATE TABLE apart (
    dataset INTEGER NOT NULL REFERENCES datasets, other INTEGER NOT NULL REFERENCES datasets,
    PRIMARY KEY (dataset, other)) WITHOUT ROWID;
CREATE TABLE records (
    id INTEGER PRIMARY KEY, recorded TEXT NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
    dataset INTEGER NOT NULL REFERENCES datasets, other INTEGER REFERENCES datasets,
    text TEXT NOT NULL, release TEXT);
CREATE INDEX records_by_release ON records (release);
CREATE TABLE forgotten (
    charge INTEGER PRIMARY KEY, release TEXT NOT NULL, dataset INTEGER NOT NULL, scope INTEGER
    NOT NULL, guarantee TEXT NOT NULL, content TEXT NOT NULL, recorded TEXT NOT NULL, note TEXT,
    totals TEXT NOT NULL, "when" TEXT NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL);
"""

VERSION_4 = SECRET + LANDMARKS + LINEAGE

SQLITE_HEADER = b"SQLite format 3\0"
NOT_A_LEDGER = (
    "the file is not a tempriv ledger and was left as it is; name another file, or make a ledger "
    "with `tempriv budget create`"
)
ERROR_REASONS = {
    sqlite3.SQLITE_BUSY: "another process holds it; try again",
    sqlite3.SQLITE_LOCKED: "another process holds it; try again",
    sqlite3.SQLITE_FULL: "the disk is full, so nothing was recorded; make room and try again",
    sqlite3.SQLITE_READONLY: "it is read-only, so nothing was recorded; make it writable",
    sqlite3.SQLITE_NOTADB: "it is damaged or not a ledger; name another file or restore a copy",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a copy",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that it is a file you may read and write",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write, so nothing was recorded; try again",
}


class LedgerFile:
    """One connection to the file; all that is written is written in transactions."""

    def __init__(self, path: Path, busy_seconds: float):
        """Prefer ``open_file`` and ``create_file``."""
        self.path, self.busy_seconds = path, busy_seconds
        self._refuse_other_files()
        with self._refusing():
            self.connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=busy_seconds,
                isolation_level=None,
            )

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        """Problems of SQLite as one sentence."""
        try:
            yield
        except sqlite3.Error as problem:
            # the extended code holds the primary one in its last byte
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            raise LedgerError(
                f"ledger {self.path}: {ERROR_REASONS.get(code, problem)}"
            ) from problem

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.execute(begin)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # a full disk may have rolled back already
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """From the first check to the durable commit nobody else writes."""
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """One state of the ledger, whatever others write meanwhile."""
        return self._transaction("BEGIN")

    def rows(self, query: str, *values: Any) -> list[Any]:
        """The rows of a ``query`` with ``values`` for its placeholders."""
        with self._refusing():
            return self.connection.execute(query, values).fetchall()

    def value(self, query: str, *values: Any) -> Any:
        """The first column of the first row of a ``query``, None if there is none."""
        rows = self.rows(query, *values)
        return rows[0][0] if rows else None

    def execute(self, statement: str, *values: Any) -> int:
        """Run a ``statement``; how many rows it changed."""
        with self._refusing():
            return self.connection.execute(statement, values).rowcount

    def insert(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a ``statement`` once for each of the ``rows``."""
        with self._refusing():
            self.connection.executemany(statement, rows)

    def _refuse_other_files(self) -> None:
        """SQLite takes a file of a few bytes for an empty database and would write over it."""
        try:
            with self.path.open("rb") as file:
                opening = file.read(len(SQLITE_HEADER))
        except OSError as problem:
            reason = ERROR_REASONS[sqlite3.SQLITE_CANTOPEN]
            raise LedgerError(f"ledger {self.path}: {reason}") from problem
        require(opening in (b"", SQLITE_HEADER), f"ledger {self.path}: {NOT_A_LEDGER}", LedgerError)

    def check_format(self) -> None:
        """Refuse what is not a ledger, or one from the future."""
        require(
            self.value("PRAGMA application_id") == APPLICATION_ID,
            f"ledger {self.path}: {NOT_A_LEDGER}",
            LedgerError,
        )
        version = self.value("PRAGMA user_version")
        require(
            version <= FORMAT_VERSION,
            f"ledger {self.path}: made by a newer tempriv (its format is {version}, this one "
            f"knows {FORMAT_VERSION}); upgrade tempriv",
            LedgerError,
        )

    def create_tables(self) -> None:
        """Tables for a file that holds nothing yet; any other file is left as it is."""
        with self.writing():
            used = self.value("SELECT count(*) FROM sqlite_schema")
            if used or self.value("PRAGMA application_id"):
                return
            for statement in (SCHEMA + GROUPS + EXTENTS + VERSION_4).split(";"):
                self.execute(statement)
            self._keep_secret()
            self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    @property
    def outdated(self) -> bool:
        return int(self.value("PRAGMA user_version")) < FORMAT_VERSION

    def upgrade(self) -> bool:
        """Bring the tables of an older file up to date, within a transaction of the caller.

        True if there was anything to do; sums of limits must then be made anew.
        """
        if not self.outdated:
            return False
        version = int(self.value("PRAGMA user_version"))
        for brought, tables in ((2, GROUPS), (3, EXTENTS), (4, VERSION_4)):
            for statement in tables.split(";") if version < brought else ():
                self.execute(statement)
        self._keep_secret()
        self.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        return True

    def _keep_secret(self) -> None:
        """The secret of the ledger, made once; digests under it are of use with the ledger only."""
        self.execute("INSERT OR IGNORE INTO meta VALUES ('secret', ?)", tokens(2))

    @property
    def secret(self) -> bytes:
        """Of 32 bytes, which digests of private rows are keyed by."""
        return bytes(self.value("SELECT value FROM meta WHERE name = 'secret'"))

    def enable_wal(self) -> None:
        """Let readers work beside a writer; where WAL cannot be had, SQLite keeps its old mode.

        SQLite does not wait by itself for the lock that this needs, hence the loop.
        """
        deadline = time.monotonic() + self.busy_seconds
        while True:
            try:
                self.execute("PRAGMA journal_mode = WAL")
                return
            except LedgerError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def default_path() -> Path:
    """The ledger of this user."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    # a relative path must be ignored (XDG base directory specification)
    home = named if named.is_absolute() else Path.home() / ".local" / "share"
    return home / "tempriv" / "ledger.sqlite"


def open_file(path: Path, busy_seconds: float) -> LedgerFile:
    """The file of a ledger that exists at ``path``; others are waited for ``busy_seconds``."""
    require(
        path.exists(),
        f"ledger {path}: there is none; make one with `tempriv budget create`",
        LedgerError,
    )
    file = LedgerFile(path, busy_seconds)
    try:
        for setting in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
            file.execute(f"PRAGMA {setting}")
        file.check_format()
    except LedgerError:
        file.close()
        raise
    return file


def create_file(path: Path, busy_seconds: float) -> LedgerFile:
    """The file of a ledger, new unless it exists; nobody else may read a new one.

    Parameters:
        path: of the file.
        busy_seconds: how long to wait for other processes.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # private from the first byte; SQLite gives its side files the same mode
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            sync_directory(path.parent)
    except OSError as problem:
        raise LedgerError(
            f"ledger {path}: it cannot be created ({problem.strerror}); name another place"
        ) from problem
    with contextlib.closing(LedgerFile(path, busy_seconds)) as file:
        file.create_tables()
        file.check_format()
        file.enable_wal()
    return open_file(path, busy_seconds)
