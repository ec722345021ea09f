"""Files that are whole or not there, and private unless they are meant to be public."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO


def private_file(path: Path) -> IO[bytes]:
    """A new file that only its owner can read, whatever the umask."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file in one step; what is there after a crash is the old one or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with private_file(partial) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """All of it: a disk that fills up may take a part without complaint."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def sync_directory(path: Path) -> None:
    """Make the names of new files survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def follow_umask(path: Path) -> None:
    """For what is public: the permissions that the user's umask asks for."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def is_dead(owner: str) -> bool:
    """Whether a process that left something behind, known by its number, is surely gone."""
    if not owner.isdigit():
        return False
    try:
        os.kill(int(owner), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
