"""Exclusive file locks that end with their process, on every operating system."""

from __future__ import annotations

import contextlib
import errno
import os
import time
import warnings
from pathlib import Path
from types import TracebackType

from tempriv.data.files import open_private

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a Python without flock, which _marker is for
    from filelock import BaseFileLock, SoftFileLock, Timeout, lock_descriptor

POLL_SECONDS = 0.005


class FileLock:
    """An exclusive lock on a file, held until ``close`` or the end of the process.

    The kernel keeps the lock (``flock``; ``LockFileEx`` on Windows), so a killed process leaves a
    file but no lock. Only where Python offers neither, a file ``NAME.held`` with the number of the
    process stands for the lock; one whose process is gone is taken over. The content of the file is
    the caller's: ``descriptor`` reads and writes it. A directory can be locked too.

    Parameters:
        path: the file to lock; made if it is missing, readable by its owner only.
        wait_seconds: how long to wait for another holder; ``math.inf`` for as long as it takes.
        create: whether a missing file is made, or refused with ``FileNotFoundError``.

    Raises:
        BlockingIOError: somebody else holds the lock, in this process or in another.
    """

    def __init__(self, path: Path, wait_seconds: float = 0, *, create: bool = True):
        self._marker: BaseFileLock | None = None
        self.descriptor = -1
        is_directory = path.is_dir()
        if is_directory and os.name == "nt":  # where directories cannot be opened
            path, is_directory = path.with_name(path.name + ".lock"), False
        self.path = path
        made = os.O_CREAT if create else 0
        self.descriptor = open_private(path, os.O_RDONLY if is_directory else os.O_RDWR | made)
        try:
            self._acquire(time.monotonic() + wait_seconds)
        except BaseException:
            self.close()
            raise

    def _acquire(self, deadline: float) -> None:
        while not self._try_to_acquire():
            if time.monotonic() >= deadline:
                raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), self.path)
            time.sleep(POLL_SECONDS)

    def _try_to_acquire(self) -> bool:
        try:
            return lock_descriptor(self.descriptor, blocking=False)
        except OSError as problem:
            if problem.errno != errno.ENOSYS:
                raise
        marker = SoftFileLock(self.path.with_name(self.path.name + ".held"))
        try:
            marker.acquire(blocking=False)
        except Timeout:
            return False
        self._marker = marker
        return True

    def close(self) -> None:
        """Release the lock; the file stays."""
        if self._marker is not None:
            with contextlib.suppress(OSError):
                self._marker.release()
            self._marker = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()  # as a file does that nobody uses any more

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
