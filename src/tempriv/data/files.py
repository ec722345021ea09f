"""Files that are whole or not there, and private unless they are meant to be public."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path
from typing import IO

FS_IOC_GETVERSION = 0x80087601  # Linux: how often the number of a file has been used


def open_private(path: Path, flags: int) -> int:
    """Open a file as a descriptor; if it is made, only its owner can read it.

    Parameters:
        path: the file.
        flags: as for ``os.open``; the bytes are never translated.
    """
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def restrict_to_owner(descriptor: int) -> None:
    """Let only the owner read an open file ``descriptor``, whatever the umask; not on Windows."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)


def private_file(path: Path) -> IO[bytes]:
    """A new file at ``path`` that only its owner can read, whatever the umask."""
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    restrict_to_owner(descriptor)
    return os.fdopen(descriptor, "wb")


def write_durably(path: Path, data: bytes) -> None:
    """Replace the file at ``path`` by ``data``; a crash leaves the old one or the new one."""
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


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Up to ``size`` bytes of an open file ``descriptor`` from ``offset`` on."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all ``data`` to a ``descriptor`` at ``offset``; a full disk may take a part."""
    view = memoryview(data)
    while view:
        if hasattr(os, "pwrite"):
            written = os.pwrite(descriptor, view, offset)
        else:
            os.lseek(descriptor, offset, os.SEEK_SET)
            written = os.write(descriptor, view)
        view, offset = view[written:], offset + written


def sync_data(descriptor: int) -> None:
    """Make the bytes of an open file ``descriptor`` survive a power cut."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names of new files in ``path`` survive a power cut; Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def follow_umask(path: Path) -> None:
    """Give the public file at ``path`` the permissions that the user's umask asks for."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def is_dead(owner: str) -> bool:
    """Whether the process with the number ``owner`` that left something behind is surely gone."""
    if not owner.isdigit() or os.name == "nt":  # where the question would stop the process
        return False
    try:
        os.kill(int(owner), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def file_identity(path: Path) -> list[int]:
    """Which file this is, whatever its name, so that a copy is told from the original.

    Parameters:
        path: the file.

    Returns:
        The number of the file, and how often that number has been used before where the file
        system says so (else 0): a number is used again once a file is gone.
    """
    with path.open("rb") as file:
        generation = bytearray(8)
        with contextlib.suppress(ImportError, OSError):
            from fcntl import ioctl

            ioctl(file, FS_IOC_GETVERSION, generation)
        return [os.fstat(file.fileno()).st_ino, int.from_bytes(generation[:4], sys.byteorder)]


def checksum(path: Path) -> str:
    """The BLAKE2b digest of the file at ``path``, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
