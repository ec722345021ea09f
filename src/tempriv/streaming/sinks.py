"""Where released lines go. Each kind can tell what it has, so that nothing is there twice."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempriv.data.files import open_private, read_at, restrict_to_owner, sync_data, write_at
from tempriv.errors import StateError, UsageError, require

RECENT_BYTES = 4096  # bytes that an output is recognized by
DEAD_LETTER_START = b'{"why": '  # how a file of what was put aside begins


class Sink(ABC):
    """Where released lines go. A sink owns its positions: plain values that JSON can hold."""

    @property
    @abstractmethod
    def position(self) -> Any:
        """Where the next block goes."""

    @abstractmethod
    def start(self) -> None:
        """Begin a new stream, which must find nothing there."""

    @abstractmethod
    def resume(self, position: Any, pending: bytes) -> bool:
        """Write the block of a commit after its position, unless it is there already.

        Parameters:
            position: as the commit saved it.
            pending: the bytes of the block; perhaps some of them, or all, were written before.

        Returns:
            Whether lines may be there twice, because nobody can tell what a pipe has taken.

        Raises:
            StateError: what is there was not written by this stream.
        """

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write a block; returns when it is durably there.

        Parameters:
            data: whole lines.
        """

    def stop_waiting_when(self, stopping: Callable[[], bool]) -> None:  # noqa: B027
        """Give up waiting for a server that is away once this is true.

        Parameters:
            stopping: whether somebody wants the stream to stop.
        """


@dataclass
class DescriptorSink(Sink):
    """An open file or pipe; a regular file is put back to where it was after a crash."""

    descriptor: int
    size: int = 0
    recent: bytes = b""

    def __post_init__(self) -> None:
        self.regular = stat.S_ISREG(os.fstat(self.descriptor).st_mode)
        self.size = self._size()

    def _size(self) -> int:
        return os.fstat(self.descriptor).st_size if self.regular else 0

    @property
    def position(self) -> dict[str, Any]:
        return {"size": self.size, "recent": base64.b64encode(self.recent).decode()}

    def start(self) -> None:
        require(
            not self._size(),
            "the output holds something already: give a new stream an output of its own",
            StateError,
        )

    def resume(self, position: Any, pending: bytes) -> bool:
        """Put the output back to ``position`` and write the ``pending`` block after it."""
        require(
            isinstance(position, dict) and "size" in position,
            "this stream has written to another kind of output: go on with the same [[output]]",
            StateError,
        )
        self.size, self.recent = position["size"], base64.b64decode(position["recent"])
        if self.regular:
            self._put_back(pending)
        if pending:
            self.write(pending)
        return bool(pending) and not self.regular

    def write(self, data: bytes) -> None:
        """Write ``data``; durable in a regular file when this returns."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]
        if self.regular:
            sync_data(self.descriptor)
        self.size += len(data)
        self.recent = (self.recent + data[-RECENT_BYTES:])[-RECENT_BYTES:]

    def _put_back(self, pending: bytes) -> None:
        """Cut off what was written after the last commit, if it is this stream's own output."""
        require(
            self._size() >= self.size,
            "the output is shorter than what this stream has written before: append to it (>>), "
            "do not replace it (>)",
            StateError,
        )
        written = self._read_from(self.size - len(self.recent), len(self.recent + pending) + 1)
        require(
            written.startswith(self.recent)
            and pending.startswith(written.removeprefix(self.recent)),
            "the output does not end with what this stream has written: it is another file, or "
            "something else was written to it. Give every stream an output of its own",
            StateError,
        )
        os.ftruncate(self.descriptor, self.size)
        os.lseek(self.descriptor, 0, os.SEEK_END)

    def _read_from(self, offset: int, size: int) -> bytes:
        with contextlib.suppress(OSError):
            return read_at(self.descriptor, size, offset)
        # standard output may be open for writing only; its name in /proc opens it again
        name = Path(f"/proc/self/fd/{self.descriptor}")
        require(
            name.exists(),
            "this system does not let the output be read again: name it with [[output]]",
            StateError,
        )
        with name.open("rb") as file:
            file.seek(offset)
            return file.read(size)


@dataclass
class DeadLetterFile:
    """Readings that were not released and why, for their owner: a private file of JSON lines."""

    path: Path
    size: int = 0
    _file: int = -1
    _made: bool = False

    def open(self, size: int, pending: bytes) -> None:
        """Stand at the ``size`` of a commit, with its ``pending`` lines; never over other data."""
        self._made = not self.path.exists()
        self._file = open_private(self.path, os.O_CREAT | os.O_RDWR)
        file_status = os.fstat(self._file)
        require(stat.S_ISREG(file_status.st_mode), f"{self.path}: not a regular file", UsageError)
        # what its owner has removed is done with; the rest comes after what is left
        self.size = min(size, file_status.st_size)
        self._require_own(pending)
        restrict_to_owner(self._file)
        os.ftruncate(self._file, self.size)
        self.write(pending)

    def _require_own(self, pending: bytes) -> None:
        """Up to the position lines of this kind, then nothing but what the commit was about."""
        beginning = read_at(self._file, len(DEAD_LETTER_START), 0)
        ending = read_at(self._file, 1, max(0, self.size - 1))
        after = read_at(self._file, len(pending) + 1, self.size)
        require(
            (not self.size or (beginning == DEAD_LETTER_START and ending == b"\n"))
            and pending.startswith(after),
            f"{self.path}: holds something that this stream has not put aside, and which would be "
            "lost or mixed with private readings; move it away, or name another file with "
            "[[aside]]",
            StateError,
        )

    def write(self, data: bytes) -> None:
        """Append ``data`` durably."""
        if data:
            write_at(self._file, data, self.size)
            sync_data(self._file)
            self.size += len(data)

    def forget(self) -> None:
        """Leave nothing of a stream that was never allowed to start."""
        if self._made and self._file >= 0:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
