"""Where readings come from. Each kind can say how far it was read, so that a stream goes on there.

A block ends when it is large, or when nothing more has come for a moment: a busy source is read in
large pieces, and a slow one line by line.
"""

from __future__ import annotations

import hashlib
import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tempriv.errors import DataRefusal, StateRefusal, UsageRefusal, require
from tempriv.lines import Lines
from tempriv.streaming.batches import Batch
from tempriv.streaming.csv_blocks import batch_from

CHUNK = 1 << 22  # bytes of a large block, some hundred thousand lines
PAUSE = 0.02  # seconds without input after which what has come is released
WAIT = 0.2  # seconds between looks at whether to stop
TAIL = 1 << 16  # bytes before a position that a file is recognised by

Stopping = Callable[[], bool]


class Input(Protocol):
    """A source of readings."""

    def go_on(self, position: Any) -> None:
        """Go on where a commit said; None is the beginning."""

    def blocks(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        """Readings with the position after them, until the end or until asked to stop."""

    def committed(self, position: Any) -> None:
        """Everything up to here is durably consumed."""


@dataclass
class Pipe:
    """Standard input: lines as they arrive. It cannot go back, so it is sent again by its source,
    and readings that were consumed are recognised by their times."""

    descriptor: int
    lines: Lines

    def go_on(self, position: Any) -> None:
        require(
            position is None,
            "this stream has read from another kind of input: go on with the same --input",
            UsageRefusal,
        )

    def committed(self, position: Any) -> None:
        pass

    def blocks(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        held = bytearray()
        ended = False
        while not ended and not stopping():
            if not select.select([self.descriptor], [], [], WAIT)[0]:
                continue
            due = time.monotonic() + WAIT  # of a source that never pauses
            while len(held) < CHUNK and time.monotonic() < due:
                piece = os.read(self.descriptor, CHUNK - len(held))
                if not piece:
                    ended = True
                    break
                held += piece
                if not select.select([self.descriptor], [], [], PAUSE)[0]:
                    break
            cut = held.rfind(b"\n") + 1
            if ended and held[cut:].strip():
                held += b"\n"
                cut = len(held)
            if not cut and len(held) >= CHUNK:
                raise DataRefusal(f"standard input: a line is longer than {CHUNK} bytes")
            if cut:
                text = bytes(held[:cut])
                del held[:cut]
                yield batch_from(self.lines, text), None


@dataclass
class GrowingFile:
    """A file of lines, read to its end; or for ever, with ``follow``, as lines are added to it."""

    path: Path
    lines: Lines
    follow: bool = False
    offset: int = 0

    def __post_init__(self) -> None:
        require(self.path.is_file(), f"{self.path}: no such file", DataRefusal)

    def go_on(self, position: Any) -> None:
        if position is None:
            return
        require(
            isinstance(position, dict) and "offset" in position,
            "this stream has read from another kind of input: go on with the same --input",
            UsageRefusal,
        )
        self.offset = position["offset"]
        with self.path.open("rb") as file:
            same = self._tail(file) == position["tail"]
        require(
            same,
            f"{self.path}: what was read of it before has changed, or it is another file: the same "
            "noise on other data would publish their difference. Start a new stream with another "
            "--state for other data",
            StateRefusal,
        )
        if position["columns"] is not None:
            self.lines.take_header(position["columns"])

    def committed(self, position: Any) -> None:
        pass

    def _tail(self, file: Any) -> str:
        """A digest of what stands before the position."""
        first = max(0, self.offset - TAIL)
        file.seek(first)
        data = file.read(self.offset - first)
        whole = len(data) == self.offset - first
        return hashlib.blake2b(data, digest_size=16).hexdigest() if whole else "shorter"

    def _position(self, file: Any) -> dict[str, Any]:
        return {"offset": self.offset, "tail": self._tail(file), "columns": self.lines.columns}

    def blocks(self, stopping: Stopping) -> Iterator[tuple[Batch, Any]]:
        with self.path.open("rb") as file:
            while not stopping():
                file.seek(self.offset)
                text = file.read(CHUNK)
                cut = text.rfind(b"\n") + 1
                if not cut and len(text) == CHUNK:
                    raise DataRefusal(f"{self.path}: a line is longer than {CHUNK} bytes")
                if not cut and text.strip() and not self.follow:
                    text, cut = text + b"\n", len(text) + 1  # the last line of a file that is whole
                if not cut:
                    if not self.follow:
                        return
                    self._require_grown(file)
                    time.sleep(PAUSE)
                    continue
                batch = batch_from(self.lines, text[:cut])
                self.offset = min(self.offset + cut, os.fstat(file.fileno()).st_size)
                yield batch, self._position(file)

    def _require_grown(self, file: Any) -> None:
        require(
            os.fstat(file.fileno()).st_size >= self.offset,
            f"{self.path}: has become shorter than what was read of it; lines may only be added",
            DataRefusal,
        )
