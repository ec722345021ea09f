"""Looking after a stream: how it stands, stopping it, and beginning again after a loss.

A copy holds no keys and nothing that keys were used on: an old state that went on with its old
keys would put the same noise on other readings. What begins again from a copy is a new release,
with new keys and a charge of its own, which only remembers the times that are past.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tempriv.data.files import sync_directory
from tempriv.errors import LedgerError, StateError, UsageError, require
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.perturb import guarantee_of_run
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.meaning import meaning_of
from tempriv.sampling.keys import Key, new_id
from tempriv.streaming.keys import Keyring
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.series_state import SeriesStates
from tempriv.streaming.sinks import Sink
from tempriv.streaming.state_file import (
    COMMIT_DIGITS,
    DATABASE_ERRORS,
    Checkpoint,
    StateFile,
    companion,
    now,
    open_readonly,
    read_about,
    read_checkpoint,
    running_process,
    shard_checksum,
    sum_of_checksums,
)

ENDINGS = ("", "-wal", "-shm", ".key", ".lock", ".aside.jsonl")
# of a position: for the stream only
PRIVATE_POSITION_KEYS = {"tail", "columns", "recent", "mark", "begun", "removed"}


@dataclass(frozen=True)
class StreamStatus:
    """How a stream stands; nothing in it depends on a value."""

    process: int | None
    mechanism: str
    guarantee: str
    dataset: str | None
    series: int
    counts: dict[str, int]
    input: Any
    output: Any
    commit: int
    everything_out: bool
    saved: float
    copied: float | None
    files: dict[str, int]

    @property
    def age(self) -> float:
        """Seconds since the state was last saved."""
        return max(0.0, now() - self.saved)


@dataclass(frozen=True)
class StopResult:
    """A stream that was asked to stop, and has."""

    process: int
    seconds: float
    status: StreamStatus


@dataclass(frozen=True)
class CopySummary:
    """What a copy remembers of a stream."""

    series: int
    held_back: int
    saved: float
    dataset: str | None


# looking


def status(path: Path) -> StreamStatus:
    """How the stream with its state at ``path`` stands at its last commit; reads only, also while
    it runs.
    """
    about, checkpoint, ((series,),) = _read(path, "SELECT COUNT(*) FROM series")
    mechanism = _mechanism(about)
    guarantee = _guarantee(mechanism, about["seed"])
    files = [companion(path, ending) for ending in ENDINGS]
    return StreamStatus(
        process=running_process(path),
        mechanism=type(mechanism).__name__,
        guarantee=meaning_of(mechanism, guarantee, None)["headline"],
        dataset=about.get("dataset"),
        series=series,
        counts=checkpoint.counts,
        input=_public_position(checkpoint.input),
        output=_position_after(checkpoint),
        commit=checkpoint.commit,
        everything_out=not checkpoint.pending or _last_commit_out(path) >= checkpoint.commit,
        saved=checkpoint.at,
        copied=about.get("copied"),
        files={file.name: file.stat().st_size for file in files if file.exists()},
    )


def _read(path: Path, *queries: str) -> tuple[Any, ...]:
    """One moment of a state, however long it is read and whatever is written meanwhile."""
    _require_state(path)
    for _ in range(5):
        before = _version(path)
        try:
            return _read_once(path, queries)
        except StateError:
            # a stream that starts just now may change a file that seemed to be left alone
            if _version(path) == before:
                raise
    return _read_once(path, queries)


def _require_state(path: Path) -> None:
    require(path.is_file(), f"{path}: no such state", StateError)


def _version(path: Path) -> tuple[int, ...]:
    try:
        file_status = path.stat()
    except FileNotFoundError:
        return ()
    return (
        file_status.st_mtime_ns,
        file_status.st_size,
        file_status.st_ino,
        companion(path, "-wal").exists(),
    )


def _read_once(path: Path, queries: Sequence[str]) -> tuple[Any, ...]:
    with open_readonly(path) as db:
        try:
            db.execute("BEGIN")
            about, checkpoint = read_about(db, path), read_checkpoint(db, path)
            return about, checkpoint, *(db.execute(query).fetchall() for query in queries)
        except DATABASE_ERRORS:
            raise StateError(f"{path}: not the state of a stream, or damaged") from None


def _mechanism(about: dict[str, Any]) -> Mechanism:
    return registry.decode(about["mechanism"])


def _guarantee(mechanism: Mechanism, seed: int | None) -> Guarantee | NoGuarantee:
    return mechanism.guarantee if seed is None else guarantee_of_run(mechanism, Key.from_seed(seed))


def _position_after(checkpoint: Checkpoint) -> Any:
    """Where the output stands with the block of the last commit."""
    position, pending = _public_position(checkpoint.output), checkpoint.pending
    if isinstance(position, dict) and "size" in position:
        position["size"] += len(pending)
    if isinstance(position, dict) and "lines" in position:
        header = bool(pending) and not checkpoint.output["begun"]
        position["lines"] += pending.count(b"\n") - header
    return position


def _public_position(position: Any) -> Any:
    """A position without what only serves to recognize the place."""
    if not isinstance(position, dict):
        return position
    return {name: value for name, value in position.items() if name not in PRIVATE_POSITION_KEYS}


def _last_commit_out(path: Path) -> int:
    """The last commit whose output is known to be out; -1 if nothing is known."""
    try:
        summary = companion(path, ".lock").read_bytes()[:COMMIT_DIGITS].strip()
    except OSError:
        return -1
    return int(summary) if summary.isdigit() else -1


# stopping


def stop(path: Path, wait: float) -> StopResult:
    """Ask the process that runs a stream to stop, and wait until it has.

    Parameters:
        path: of the stream's state.
        wait: seconds.
    """
    require(wait >= 0, f"wait={wait:g}: must be a number of seconds")
    _require_state(path)
    process = running_process(path)
    if process is None:
        raise StateError(f"{path}: no stream is running on this state; there is nothing to stop")
    require(
        hasattr(os, "pidfd_open"),
        f"{path}: process {process} cannot be stopped from another on this system; press Ctrl-C "
        "where it runs",
        LedgerError,
    )
    began = time.monotonic()
    # held on to before it is looked at: a number alone could be another process by now
    try:
        handle = os.pidfd_open(process)
    except OSError:
        handle = -1
    try:
        if running_process(path) is not None:
            require(
                handle >= 0 and _uses(process, companion(path, ".lock")),
                f"{path}: the stream runs where this command cannot reach it (another user, "
                "machine or container); stop it there",
                LedgerError,
            )
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            gone = select.select([handle], [], [], wait)[0]
            require(
                bool(gone),
                f"{path}: process {process} has been asked to stop and is still busy after "
                f"{wait:g} s; perhaps nobody reads its output. It stops when its block is out; "
                "asked once more, it stops at once, and its next run hands the block out",
                LedgerError,
            )
    finally:
        if handle >= 0:
            os.close(handle)
    return StopResult(process, time.monotonic() - began, status(path))


def _uses(process: int, file: Path) -> bool:
    """Whether a process has a file open."""
    file_status = file.stat()
    try:
        for opened in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                opened_status = opened.stat()
                if (opened_status.st_dev, opened_status.st_ino) == (
                    file_status.st_dev,
                    file_status.st_ino,
                ):
                    return True
    except OSError:
        pass
    return False


# copies


@dataclass(frozen=True)
class _Snapshot:
    """What may be known of a stream by the one that begins after it."""

    about: dict[str, Any]
    checkpoint: Checkpoint
    pipeline: StreamPipeline

    @property
    def series(self) -> SeriesStates:
        """All series at their beginning, after the last times that they had.

        Steps, memories and rows held back belong to the old keys, and so does what replays are
        compared with; none of it goes on.
        """
        saved, series = self.pipeline.series, len(self.pipeline.series)
        fresh = SeriesStates(saved.mechanism, saved.reach, len(saved.rings))
        fresh.numbers_of(saved.names)
        fresh.last_tick[:series] = fresh.first_tick[:series] = saved.last_tick[:series]
        return fresh

    def summary(self) -> CopySummary:
        return CopySummary(
            series=len(self.pipeline.series),
            held_back=self.checkpoint.counts.get("waiting", 0),
            saved=self.about.get("copied") or self.checkpoint.at,
            dataset=self.about.get("dataset"),
        )


FINGERPRINT_KEYS = ("tail", "mark")  # of positions, in a file and in Redis


class _NullSink(Sink):
    """The output of a stream that is only looked at."""

    position = None

    def start(self) -> None:
        pass

    def resume(self, position: Any, pending: bytes) -> bool:
        """Accept any ``position`` and ``pending`` block."""
        return False

    def write(self, data: bytes) -> None:
        """Refuse to write ``data``."""
        raise AssertionError("a stream that is looked at releases nothing")


def _load_snapshot(path: Path) -> _Snapshot:
    """Everything of a state, checked as if its stream went on."""
    about, checkpoint, named, shards = _read(
        path,
        "SELECT name FROM series ORDER BY number",
        "SELECT number, data FROM shards WHERE typeof(data) = 'blob'",
    )
    names = [str(name) for (name,) in named]
    mechanism, layout = _mechanism(about), about["layout"]
    form: Literal["csv", "jsonl"] = layout["form"]
    record_format = RecordFormat(
        form,
        layout["values"],
        "+".join(layout["time"]) or None,
        layout["series"],
        mechanism.domain.categories,
        mechanism.has_status,
        isinstance(mechanism.domain, WithLandmarks),
    )
    pipeline = StreamPipeline(mechanism, record_format, _NullSink(), step=about.get("step"))
    pipeline.series.load(names, shards)
    require(
        pipeline.series.names_digest == checkpoint.names,
        f"{path}: the state is damaged: it does not know the names of its series",
        StateError,
    )
    checksums = sum(shard_checksum(number, data) for number, data in shards)
    require(
        sum_of_checksums(checksums) == checkpoint.shards,
        f"{path}: the state is damaged: some of it is of another moment",
        StateError,
    )
    return _Snapshot(about, checkpoint, pipeline)


def back_up(path: Path, copy: Path) -> CopySummary:
    """Write the ``copy`` of the state at ``path`` that a new beginning needs, while the stream runs
    or not.
    """
    _require_new(copy)
    snapshot = _load_snapshot(path)
    about = {**snapshot.about, "file": None, "keys": None, "copied": snapshot.summary().saved}
    _write(copy, about, snapshot)
    return snapshot.summary()


def restore(copy: Path, path: Path) -> CopySummary:
    """Make a state at ``path`` that goes on after a ``copy`` as a new release, with new keys."""
    _require_state(copy)
    require(
        running_process(copy) is None,
        f"{copy}: its stream is running, so nothing is lost; tempriv stream backup copies it",
        LedgerError,
    )
    _require_new(path)
    snapshot = _load_snapshot(copy)
    require(
        snapshot.about["seed"] is None,
        f"{copy}: its noise comes from [[key_seed]] {snapshot.about['seed']} and would be the same "
        "again; start the experiment anew",
        UsageError,
    )
    about = {key: value for key, value in snapshot.about.items() if key != "file"}
    about |= {"release": new_id(), "copied": snapshot.summary().saved}
    keyring = Keyring(
        companion(path, ".key"), None, serialization.digest(snapshot.pipeline.mechanism)
    )
    try:
        keyring.open()
        keyring.add(snapshot.pipeline.series.names)
        keyring.close()
        _write(path, {**about, "keys": keyring.name}, snapshot)
    except BaseException:
        companion(path, ".key").unlink(missing_ok=True)
        raise
    return snapshot.summary()


def _require_new(path: Path) -> None:
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    require(not path.is_dir(), f"{path}: is a directory; name a new file")
    existing = [file for file in (companion(path, ending) for ending in ENDINGS) if file.exists()]
    if existing:
        raise UsageError(f"{existing[0]}: exists already; choose another name")


def _position_without_fingerprints(position: Any) -> Any:
    """Where to go on reading, without what the readings before it are recognized by.

    Who has a copy and nothing else could try out what the last reading was.
    """
    if not isinstance(position, dict):
        return position
    return {name: None if name in FINGERPRINT_KEYS else value for name, value in position.items()}


def _write(path: Path, about: dict[str, Any], snapshot: _Snapshot) -> None:
    """A whole new state, or none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    state_file, series = StateFile(partial), snapshot.series
    checkpoint = Checkpoint(
        commit=1,
        input=_position_without_fingerprints(snapshot.checkpoint.input),
        output=None,
        aside_size=0,
        counts={},
        names=series.names_digest,
        started=False,
        at=now(),
        pending=b"",
        aside=b"",
    )
    try:
        shards = series.shards(np.arange(len(series)))
        state_file.create(about, checkpoint, list(enumerate(series.names)), shards)
        state_file.close()
        partial.rename(path)
    except BaseException:
        state_file.remove()
        raise
    sync_directory(path.parent)
