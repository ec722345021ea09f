"""The state of a stream in one SQLite file: everything advances together, or nothing does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempriv.data.files import file_identity, open_private, read_at, sync_directory, write_at
from tempriv.data.locks import FileLock
from tempriv.errors import LedgerError, StateError, require

VERSION = 1
DATABASE_ERRORS = (
    sqlite3.DatabaseError,
    UnicodeDecodeError,
)  # the latter of what SQLite says of damage
LOCK_WAIT_SECONDS = 0.2  # whoever only looks whether a state is in use has its lock for a moment
COMMIT_DIGITS = 20  # digits at the start of the lock file: the last commit whose output is out

# a block of many series is several megabytes, all of which the next one replaces: large pages, and
# many commits before they are moved from the log to their place
PRAGMAS = (
    "page_size = 32768",
    "synchronous = FULL",
    "secure_delete = FAST",
    "busy_timeout = 10000",
    "wal_autocheckpoint = 2048",
)

TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE series (number INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE shards (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE standing (
    one INTEGER PRIMARY KEY CHECK (one = 1), told TEXT NOT NULL, pending BLOB NOT NULL,
    aside BLOB NOT NULL, digest BLOB NOT NULL
);
"""


@dataclass(frozen=True)
class Checkpoint:
    """What a commit says beside the series: how far everything is, and what was to be handed out.

    ``output`` and ``aside`` are where the pending bytes go, ``input`` is where reading goes on;
    ``names`` is a digest of the names of all series.
    """

    commit: int
    input: Any
    output: Any
    aside_size: int
    counts: dict[str, int]
    names: str
    started: bool
    at: float
    pending: bytes
    aside: bytes
    shards: str = ""  # a digest of all, by the store: some of another moment are no state


class StateFile:
    """The state file of one stream, its lock, and whatever is saved there."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = -1
        self._db: sqlite3.Connection | None = None
        self._about = ""  # a digest of what the stream was started with
        self._saved: int | None = None  # the last commit, by this process as far as it knows
        self._shards: dict[int, int] = {}
        self._all_shards = 0

    @property
    def key_path(self) -> Path:
        return companion(self.path, ".key")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from using this state; tells them who does."""
        lock = companion(self.path, ".lock")
        made = not lock.exists()
        with self._take(lock) as lock_file:
            try:
                write_at(lock_file.descriptor, f"{os.getpid():20d}".encode(), COMMIT_DIGITS)
                self._lock = lock_file.descriptor
                yield
            except BaseException:
                if made and not read_at(lock_file.descriptor, COMMIT_DIGITS, 0).strip(b"\0"):
                    _unlink(lock)  # nothing was ever handed out
                raise
            finally:
                self.close()

    def _take(self, lock: Path) -> FileLock:
        with contextlib.suppress(BlockingIOError):
            lock_file = FileLock(lock, LOCK_WAIT_SECONDS)
            # one that has gone meanwhile keeps nobody off: its stream was not allowed to start
            if os.fstat(lock_file.descriptor).st_nlink:
                return lock_file
            lock_file.close()
        raise LedgerError(
            f"{self.path}: another stream is using this state; wait for it to end, or stop "
            f"it with: tempriv stream stop {self.path}"
        )

    @property
    def exists(self) -> bool:
        """Whether there is anything; a kill while it is made leaves a file without tables."""
        if not self.path.exists() or self.path.stat().st_size == 0:
            return False
        with open_readonly(self.path) as db:
            try:
                return bool(db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])
            except DATABASE_ERRORS:
                return True

    def create(
        self,
        about: dict[str, Any],
        checkpoint: Checkpoint,
        names: Sequence[tuple[int, str]] = (),
        shards: Iterable[tuple[int, bytes]] = (),
    ) -> None:
        """Make a new state, private from its first byte, with its first commit.

        Parameters:
            about: what the stream was started with.
            checkpoint: of the first commit.
            names: numbers and names of series.
            shards: states of series.
        """
        with contextlib.suppress(FileExistsError):
            os.close(open_private(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        db = self._open()
        db.execute("PRAGMA journal_mode = WAL")
        about = {"file": file_identity(self.path), **about}
        self._about = _digest_of_about(about)
        with self._writing():
            for table in TABLES.split(";"):
                db.execute(table)
            db.execute(f"PRAGMA user_version = {VERSION}")
            rows = [(name, json.dumps(value)) for name, value in about.items()]
            db.executemany("INSERT INTO about VALUES (?, ?)", rows)
            self._save(checkpoint, names, shards)
        if self._lock >= 0:
            self.mark_written(0)  # whatever stream had this name before
        sync_directory(self.path.parent)

    def _open(self) -> sqlite3.Connection:
        # noticed by its own program only, so autocommit is off but for the commits below
        self._db = sqlite3.connect(self.path, isolation_level=None)
        try:
            for setting in PRAGMAS:
                self._db.execute(f"PRAGMA {setting}")
        except DATABASE_ERRORS:
            sentence = f"{self.path}: not the state of a stream, or damaged"
            raise StateError(sentence) from None
        return self._db

    def about(self) -> dict[str, Any]:
        """What the stream was started with; refused if this is no state, or a copy of one."""
        fields = read_about(self._open(), self.path)
        self._about = _digest_of_about(fields)
        return fields

    def require_own(self, about: dict[str, Any]) -> None:
        """Refuse a copy: ``about`` must name the file that its stream has written to."""
        require(
            about.get("file") == file_identity(self.path),
            f"{self.path}: was copied or put back from a copy, and the stream may have gone on "
            "since: other readings in the place of those would get the same noise. Go on with: "
            f"tempriv stream restore {self.path} NEW.state",
            StateError,
        )

    def names(self) -> list[str]:
        assert self._db is not None
        return [str(row[0]) for row in self._rows("SELECT name FROM series ORDER BY number")]

    def shards(self) -> Iterable[tuple[int, bytes]]:
        rows = self._rows("SELECT number, data FROM shards WHERE typeof(data) = 'blob'")
        return list(self._sealed(rows))

    @property
    def shards_digest(self) -> str:
        return sum_of_checksums(self._all_shards)

    def _sealed(self, shards: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, data in shards:
            checksum = shard_checksum(number, data)
            self._all_shards += checksum - self._shards.get(number, 0)
            self._shards[number] = checksum
            yield number, data

    def _rows(self, query: str) -> list[Any]:
        assert self._db is not None
        try:
            return self._db.execute(query).fetchall()
        except DATABASE_ERRORS:
            raise StateError(f"{self.path}: the state is damaged") from None

    def checkpoint(self) -> Checkpoint:
        assert self._db is not None
        checkpoint = read_checkpoint(self._db, self.path)
        self._saved = checkpoint.commit
        out = read_at(self._lock, COMMIT_DIGITS, 0).strip()
        require(
            not out.isdigit() or int(out) <= checkpoint.commit,
            f"{self.path}: is older than what this stream has written; other readings in the "
            "place of those would get the same noise. Use the latest state, or go on with: "
            f"tempriv stream restore {self.path} NEW.state",
            StateError,
        )
        return checkpoint

    def commit(
        self,
        checkpoint: Checkpoint,
        names: Sequence[tuple[int, str]] = (),
        shards: Iterable[tuple[int, bytes]] = (),
    ) -> None:
        """Save in one transaction, on disk when this returns.

        Parameters:
            checkpoint: how far everything is.
            names: numbers and names of new series.
            shards: states of series that changed.
        """
        with self._writing():
            self._save(checkpoint, names, shards)

    def _save(
        self,
        checkpoint: Checkpoint,
        names: Sequence[tuple[int, str]],
        shards: Iterable[tuple[int, bytes]],
    ) -> None:
        db = self._db
        assert db is not None
        db.executemany("INSERT INTO series VALUES (?, ?)", names)
        db.executemany("INSERT OR REPLACE INTO shards VALUES (?, ?)", self._sealed(shards))
        fields = {
            "shards": self.shards_digest,
            "commit": checkpoint.commit,
            "input": checkpoint.input,
            "output": checkpoint.output,
            "aside_size": checkpoint.aside_size,
            "counts": checkpoint.counts,
            "names": checkpoint.names,
            "started": checkpoint.started,
            "at": checkpoint.at,
            "about": self._about,
        }
        text = json.dumps(fields)
        digest = _digest(text, checkpoint.pending, checkpoint.aside)
        db.execute(
            "INSERT OR REPLACE INTO standing VALUES (1, ?, ?, ?, ?)",
            (text, checkpoint.pending, checkpoint.aside, digest),
        )
        self._saved = checkpoint.commit

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """All of it or nothing."""
        db = self._db
        assert db is not None
        try:
            db.execute("BEGIN IMMEDIATE")
            # whoever deletes the lock of a running stream can start another beside it
            require(
                self._saved is None or self._last_commit() == self._saved,
                f"{self.path}: another stream has written to this state; nothing more is released "
                "here, or both would use the same noise",
                StateError,
            )
            yield
            db.execute("COMMIT")
        except BaseException as problem:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            if isinstance(problem, DATABASE_ERRORS):
                raise StateError(
                    f"{self.path}: cannot be written ({problem}); what is out has been saved. Make "
                    "room or mend the disk, and run the same command again"
                ) from None
            raise

    def _last_commit(self) -> Any:
        assert self._db is not None
        row = self._db.execute("SELECT told FROM standing").fetchone()
        return None if row is None else json.loads(row[0])["commit"]

    def mark_written(self, commit: int) -> None:
        """Note beside the state that the output of a commit is out: an older state is no use now.

        A kill leaves this in place; it need not survive a power cut, which the output tells of.
        """
        write_at(self._lock, f"{commit:{COMMIT_DIGITS}d}".encode(), 0)

    def remove(self) -> None:
        """Leave nothing of a stream that was never allowed to start."""
        self.close()
        for end in ("", "-wal", "-shm", ".key", ".lock"):
            _unlink(companion(self.path, end))

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _unlink(path: Path) -> None:
    with contextlib.suppress(PermissionError):  # Windows keeps what is open
        path.unlink(missing_ok=True)


def companion(path: Path, ending: str) -> Path:
    """The file beside the state at ``path`` that has its name and an ``ending``."""
    return path.with_name(path.name + ending)


@contextlib.contextmanager
def open_readonly(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the state at ``path``, which another process may be writing, to read it only."""
    require(path.exists(), f"{path}: no such state", StateError)
    # a state that nobody has open is left as it is, without files beside it
    alone = "" if companion(path, "-wal").exists() else "&immutable=1"
    name = f"{path.absolute().as_uri()}?mode=ro{alone}"
    db = sqlite3.connect(name, uri=True, isolation_level=None)
    try:
        yield db
    finally:
        db.close()


def read_about(db: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """What a state says of its stream; anything else than a state is refused.

    Parameters:
        db: the open state.
        path: its name, for the refusal.
    """
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        rows = db.execute("SELECT name, value FROM about").fetchall()
        fields = {str(name): json.loads(value) for name, value in rows}
        sound = version == VERSION and {"mechanism", "layout", "release"} <= fields.keys()
    except (sqlite3.DatabaseError, ValueError, TypeError):
        sound, fields = False, {}
    require(sound, f"{path}: not the state of a stream, or damaged", StateError)
    return fields


def read_checkpoint(db: sqlite3.Connection, path: Path) -> Checkpoint:
    """Where a stream stood at its last commit; anything damaged is refused.

    Parameters:
        db: the open state.
        path: its name, for the refusal.
    """
    try:
        row = db.execute("SELECT told, pending, aside, digest FROM standing").fetchone()
        text, pending, aside, digest = row
        fields = json.loads(text)
        about = fields.pop("about")
        checkpoint = Checkpoint(**fields, pending=bytes(pending), aside=bytes(aside))
        sound = (
            bytes(digest) == _digest(text, checkpoint.pending, checkpoint.aside)
            and about == _digest_of_about(read_about(db, path))
            and isinstance(checkpoint.commit, int)
            and isinstance(checkpoint.aside_size, int)
            and isinstance(checkpoint.counts, dict)
            and all(isinstance(count, int) for count in checkpoint.counts.values())
        )
    except (sqlite3.DatabaseError, ValueError, TypeError):
        sound = False
    require(sound, f"{path}: not the state of a stream, or damaged", StateError)
    return checkpoint


def shard_checksum(number: int, data: bytes) -> int:
    """The checksum of a shard, from its ``number`` and the digest that its ``data`` begins with."""
    shard_name = number.to_bytes(8, "big", signed=True)
    return int.from_bytes(hashlib.blake2b(shard_name + data[:16], digest_size=16).digest(), "big")


def sum_of_checksums(checksums: int) -> str:
    """The sum of ``checksums`` as text: a commit pays only for the shards that it changes."""
    return f"{checksums % (1 << 128):032x}"


def _digest(text: str, pending: bytes, aside: bytes) -> bytes:
    total = hashlib.blake2b(digest_size=16)
    for part in (text.encode(), pending, aside):
        total.update(len(part).to_bytes(8, "big") + part)
    return total.digest()


def _digest_of_about(about: dict[str, Any]) -> str:
    text = json.dumps(about, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def running_process(path: Path) -> int | None:
    """The process that is using the state at ``path``, if any."""
    lock = companion(path, ".lock")
    if not lock.exists():
        return None
    try:
        FileLock(lock, create=False).close()
    except BlockingIOError:
        with lock.open("rb", buffering=0) as file:  # Windows lets nobody read its first byte
            file.seek(COMMIT_DIGITS)
            process = file.read(20).strip()
        return int(process) if process.isdigit() else None
    return None


def now() -> float:
    return time.time()
