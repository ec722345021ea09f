"""What a stream of lines has in files: the keys of its series, and its output so far."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tempriv.errors import StateRefusal, require
from tempriv.files import write_durably
from tempriv.mechanisms.stream import Seen
from tempriv.randomness import EPOCH, Key, SeriesKey, fresh_series_key


class Keyring:
    """The key chain of each series, in a file of its own that only the owner can read."""

    def __init__(self, path: Path | None, seed: int | None, digest: str):
        self.path, self.digest = path, digest
        self.seeded = None if seed is None else Key.from_seed(seed)
        self.chains: dict[str, SeriesKey] = {}
        self.marks: dict[str, bytes] = {}  # secrets of the fingerprints, from each first link
        self._unsaved = False

    def chain(self, series: str) -> SeriesKey:
        """The chain of a series, a fresh one if it is new."""
        if series not in self.chains:
            if self.seeded is not None:
                self.chains[series] = self.seeded.again(self.digest, series)
            else:
                self.chains[series] = fresh_series_key()
            self.marks[series] = Seen.by(self.chains[series]).mark
            self._unsaved = True
        return self.chains[series]

    def keep_from(self, series: str, step: int) -> None:
        """Erase what came before the epoch of this step (a seed can be remade anyway)."""
        chain = self.chains[series]
        if step // EPOCH > chain.epoch:
            self.chains[series] = chain.at_epoch(step // EPOCH)
            self._unsaved = True

    def save(self, always: bool = False) -> None:
        if self.path is not None and (self._unsaved or always):
            links = {
                name: [key.epoch, key.secret.hex(), self.marks[name].hex()]
                for name, key in self.chains.items()
            }
            write_durably(self.path, json.dumps(links).encode())
        self._unsaved = False

    def load(self) -> None:
        assert self.path is not None
        try:
            links = json.loads(self.path.read_bytes())
            for name, (epoch, secret, mark) in links.items():
                self.chains[name] = SeriesKey(bytes.fromhex(secret), epoch)
                self.marks[name] = bytes.fromhex(mark)
            sound = all(len(c.secret) == 32 and c.epoch >= 0 for c in self.chains.values())
            sound = sound and all(len(mark) == 32 for mark in self.marks.values())
        except FileNotFoundError:
            raise StateRefusal(f"{self.path}: the key file of this stream is missing") from None
        except (ValueError, TypeError, AttributeError):
            sound = False
        require(sound, f"{self.path}: the key file of this stream is damaged", StateRefusal)


@dataclass(frozen=True)
class Recent:
    """The last bytes that were written, to recognise the output by."""

    data: bytes = b""

    MOST = 4096

    @property
    def size(self) -> int:
        return len(self.data)

    def after(self, more: bytes) -> Recent:
        return Recent((self.data + more)[-self.MOST :])


class Sink:
    """Where released lines go; a regular file can be put back to where it was."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.regular = stat.S_ISREG(os.fstat(descriptor).st_mode)

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size if self.regular else 0

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def sync(self) -> None:
        if self.regular:
            os.fsync(self.descriptor)

    def put_back(self, offset: int, recent: Recent, pending: bytes) -> None:
        """Cut off what was written after the last commit, if it is this stream's own output."""
        require(
            self.size() >= offset,
            "the output is shorter than what this stream has written before: append to it (>>), "
            "do not replace it (>)",
            StateRefusal,
        )
        # standard output may be open for writing only; its name in /proc opens it again
        with Path(f"/proc/self/fd/{self.descriptor}").open("rb") as file:
            file.seek(offset - recent.size)
            before, after = file.read(recent.size), file.read(len(pending) + 1)
        require(
            Recent().after(before) == recent and pending.startswith(after),
            "the output does not end with what this stream has written: it is another file, or "
            "something else was written to it. Give every stream an output of its own",
            StateRefusal,
        )
        os.ftruncate(self.descriptor, offset)
        os.lseek(self.descriptor, 0, os.SEEK_END)
