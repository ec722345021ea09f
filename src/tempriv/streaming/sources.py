"""Where readings come from. Each kind can say how far it was read, so that a stream goes on there.

A block ends when it is large, or when nothing more has come for a moment: a busy source is read in
large pieces, and a slow one line by line.
"""

from __future__ import annotations

import hashlib
import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tempriv.errors import DataError, StateError, UsageError, require
from tempriv.streaming.batch import Batch, batch_from_records
from tempriv.streaming.csv_reader import parse_batch
from tempriv.streaming.records import RecordFormat

CHUNK_BYTES = 1 << 22  # bytes of a large block, some hundred thousand lines
IDLE_SECONDS = 0.02  # seconds without input after which what has come is released
POLL_SECONDS = 0.2  # seconds between looks at whether to stop
TAIL_BYTES = 1 << 16  # bytes before a position that a file is recognized by

Stopping = Callable[[], bool]


class Source(ABC):
    """Where readings come from. A source owns its positions: plain values that JSON can hold."""

    needs_state: ClassVar[bool] = False
    """Whether it can only be read by a stream that keeps a state."""

    @abstractmethod
    def resume(self, position: Any) -> None:
        """Go on where a commit said.

        Parameters:
            position: as ``batches`` gave it; None is the beginning.

        Raises:
            StateError: what stands before the position is not what was read before.
        """

    @abstractmethod
    def batches(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        """Readings with the position after them, until the end or until asked to stop.

        Parameters:
            stopping: asked between batches; True ends them.
        """

    def acknowledge(self, position: Any) -> None:  # noqa: B027
        """Learn that everything up to a position is durably consumed.

        Parameters:
            position: that of the last committed batch.
        """


def _too_long(record_format: RecordFormat, size: int) -> Batch:
    """A line that is not kept, only counted and reported."""
    require(
        record_format.syntax != "csv" or record_format.columns is not None,
        f"the first line of the input must name its columns; it has more than {CHUNK_BYTES} bytes",
        DataError,
    )
    return batch_from_records(
        [], len(record_format.values), record_format.exact, [f"a line of {size} bytes"]
    )


def _require_no_quotes(record_format: RecordFormat, text: bytes | bytearray) -> None:
    """Of a record that is not held whole nobody knows where a quoted cell ends."""
    require(
        record_format.syntax != "csv" or b'"' not in text,
        f"a row with a quotation mark has more than {CHUNK_BYTES} bytes: perhaps a quoted cell is "
        "not closed. Correct the input, then go on",
        DataError,
    )


def _readable(descriptor: int, seconds: float, otherwise: bool) -> bool:
    """Whether a read returns at once, waiting a moment for it; Windows answers for sockets only."""
    if os.name == "nt":
        return otherwise
    return bool(select.select([descriptor], [], [], seconds)[0])


@dataclass
class PipeSource(Source):
    """Standard input: lines as they arrive. It cannot go back, so it is sent again by its source,
    and readings that were consumed are recognized by their times."""

    descriptor: int
    record_format: RecordFormat

    def resume(self, position: Any) -> None:
        """Begin anew, if ``position`` is that of a pipe."""
        require(
            position is None,
            "this stream has read from another kind of input: go on with the same [[input]]",
            UsageError,
        )

    def batches(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        """Readings as they arrive, until the input ends or ``stopping``."""
        pending = bytearray()
        passed = 0  # bytes of a line that is too long
        ended = False
        while not ended and not stopping():
            if not _readable(self.descriptor, POLL_SECONDS, otherwise=True):
                continue
            due = time.monotonic() + POLL_SECONDS  # of a source that never pauses
            while len(pending) < CHUNK_BYTES and time.monotonic() < due:
                piece = os.read(self.descriptor, CHUNK_BYTES - len(pending))
                if not piece:
                    ended = True
                    break
                pending += piece
                if not _readable(self.descriptor, IDLE_SECONDS, otherwise=False):
                    break
            if passed:
                end = pending.find(b"\n")
                _require_no_quotes(self.record_format, pending if end < 0 else pending[:end])
                passed += len(pending) if end < 0 else end
                del pending[: len(pending) if end < 0 else end + 1]
                if end < 0 and not ended:
                    continue
                yield _too_long(self.record_format, passed), None
                passed = 0
            cut = self.record_format.whole_records(pending)
            if ended and pending[cut:].strip():
                pending += b"\n"
                cut = len(pending)
            if not cut and len(pending) >= CHUNK_BYTES:
                _require_no_quotes(self.record_format, pending)
                passed = len(pending)
                pending.clear()
            if cut:
                text = bytes(pending[:cut])
                del pending[:cut]
                yield parse_batch(self.record_format, text), None


@dataclass
class FileSource(Source):
    """A file of lines, read to its end; or for ever, with ``follow``, as lines are added to it."""

    path: Path
    record_format: RecordFormat
    follow: bool = False
    offset: int = 0
    moved: bool = False
    """Whether another file has taken the name of this one, which was read to its end."""

    def __post_init__(self) -> None:
        require(self.path.exists(), f"{self.path}: no such file", DataError)
        require(
            self.path.is_file(),
            f"{self.path}: not a regular file; for standard input leave out [[input]]",
            DataError,
        )

    def resume(self, position: Any) -> None:
        """Go on at ``position``, if the file still has what was read before it."""
        if position is None:
            return
        require(
            isinstance(position, dict) and "offset" in position,
            "this stream has read from another kind of input: go on with the same [[input]]",
            UsageError,
        )
        self.offset = position["offset"]
        with self.path.open("rb") as file:
            # a copy of a state does not say
            same = position["tail"] in (None, self._tail(file))
        require(
            same,
            f"{self.path}: what was read of it before has changed, or it is another file: the same "
            "noise on other data would publish their difference. Start a new stream with another "
            "[[state]] for other data",
            StateError,
        )
        if position["columns"] is not None:
            self.record_format.take_header(position["columns"])

    def _tail(self, file: Any) -> str:
        """A digest of what stands before the position."""
        first = max(0, self.offset - TAIL_BYTES)
        file.seek(first)
        data = file.read(self.offset - first)
        whole = len(data) == self.offset - first
        return hashlib.blake2b(data, digest_size=16).hexdigest() if whole else "shorter"

    def _position(self, file: Any) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "tail": self._tail(file),
            "columns": self.record_format.columns,
        }

    def batches(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        """Readings of the file, until its end or until ``stopping``."""
        passed = 0  # bytes of a line that is too long
        with self.path.open("rb") as file:
            while not stopping():
                file.seek(self.offset + passed)
                text = file.read(CHUNK_BYTES)
                ending = not self.follow or self.moved
                cut = self.record_format.whole_records(text)
                if passed or (not cut and len(text) == CHUNK_BYTES):
                    end = text.find(b"\n")
                    _require_no_quotes(self.record_format, text if end < 0 else text[:end])
                    passed += len(text) if end < 0 else end
                    if end >= 0 or (not text and ending):
                        self.offset += passed + (end >= 0)
                        yield _too_long(self.record_format, passed), self._position(file)
                        passed = 0
                    if text:
                        continue
                if not cut and text.strip() and ending:
                    text, cut = text + b"\n", len(text) + 1  # the last line of a file that is whole
                if not cut:
                    if ending:
                        return
                    self._require_grown(file)
                    self.moved = self._has_moved(file)  # and what was added until now is read
                    time.sleep(0 if self.moved else IDLE_SECONDS)
                    continue
                batch = parse_batch(self.record_format, text[:cut])
                self.offset = min(self.offset + cut, os.fstat(file.fileno()).st_size)
                yield batch, self._position(file)

    def _require_grown(self, file: Any) -> None:
        require(
            os.fstat(file.fileno()).st_size >= self.offset,
            f"{self.path}: has become shorter than what was read of it; lines may only be added",
            DataError,
        )

    def _has_moved(self, file: Any) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return True
