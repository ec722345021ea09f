"""The keys of a stream's series, in a file of its own that only its owner can read.

Each series has a record of fixed size, in the order of their numbers, so that a new series costs
one append and a past epoch's key is overwritten where it stood. A record never straddles a sector.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.files import open_private, read_at, sync_directory, write_at
from tempriv.errors import StateError, require
from tempriv.sampling.keys import EPOCH, Key, SeriesKey, fresh_series_key
from tempriv.sampling.keystream import StepRanges

Integers = npt.NDArray[np.int64]

RECORD_BYTES = 128
MAGIC = b"tempriv stream keys 1\n"
BODY_BYTES = 8 + 32  # epoch and secret, before their check


class Keyring:
    """A chain for each series, by number; and the mark that what was consumed is known by.

    Without a path nothing is kept. With a seed all of it can be made again by anyone.
    """

    def __init__(self, path: Path | None, seed: int | None, digest: str):
        self.path, self.digest = path, digest
        self._seeded = None if seed is None else Key.from_seed(seed)
        self.chains: list[SeriesKey] = []
        self._epochs = np.zeros(0, dtype=np.int64)
        self._ciphers: dict[str, list[Any]] = {}  # of each purpose, by number; None is not made yet
        fresh = fresh_series_key() if self._seeded is None else self._seeded.again(digest, "")
        self.mark = fresh.cipher_key("fingerprint")
        self._file = -1

    def __repr__(self) -> str:
        return f"Keyring({len(self.chains)} series)"

    def open(self) -> None:
        """The file of a stream that has one already, or a new one."""
        if self.path is None:
            return
        is_new = not self.path.exists()
        self._file = open_private(self.path, os.O_CREAT | os.O_RDWR)
        if is_new:
            write_at(self._file, _sealed(MAGIC + self.mark), 0)
            os.fsync(self._file)
            sync_directory(self.path.parent)

    @property
    def name(self) -> str:
        """What a state knows its keys by."""
        return hashlib.blake2b(b"name", key=self.mark, digest_size=16).hexdigest()

    def load(self, count: int, name: str | None) -> None:
        """Load the keys of so many series; keys of more were never used.

        Parameters:
            count: how many series.
            name: of the keys, as the state knows them.
        """
        assert self.path is not None
        require(
            self.path.exists(),
            f"{self.path}: the key file of this stream is missing",
            StateError,
        )
        self.open()
        head = self._record(0)
        require(
            head.startswith(MAGIC) and len(head) == len(MAGIC) + 32,
            f"{self.path}: the key file of this stream is damaged",
            StateError,
        )
        self.mark = head[len(MAGIC) :]
        require(
            self.name == name,
            f"{self.path}: does not belong to the state beside it; the noise of another stream "
            "would be used again",
            StateError,
        )
        for number in range(count):
            body = self._record(1 + number)
            require(
                len(body) == BODY_BYTES,
                f"{self.path}: the key file of this stream is damaged",
                StateError,
            )
            self.chains.append(SeriesKey(body[8:], int.from_bytes(body[:8], "big")))
        # a series that was met in a block that was never committed is met anew
        os.ftruncate(self._file, RECORD_BYTES * (1 + count))

    @property
    def epochs(self) -> Integers:
        """The link that each chain stands at."""
        if len(self._epochs) < len(self.chains):
            more = [chain.epoch for chain in self.chains[len(self._epochs) :]]
            self._epochs = np.concatenate([self._epochs, np.array(more, dtype=np.int64)])
        return self._epochs

    def _record(self, number: int) -> bytes:
        data = read_at(self._file, RECORD_BYTES, RECORD_BYTES * number)
        size = int.from_bytes(data[:2], "big")
        body, check = data[2 : 2 + size], data[2 + size : 2 + size + 16]
        sound = (
            len(data) == RECORD_BYTES and hashlib.blake2b(body, digest_size=16).digest() == check
        )
        return body if sound else b""

    def add(self, names: Sequence[str]) -> None:
        """Keys for series with these ``names`` that come next by number, kept before any noise is
        made.
        """
        fresh = []
        for name in names:
            chain = (
                fresh_series_key()
                if self._seeded is None
                else self._seeded.again(self.digest, name)
            )
            fresh.append(chain)
        if self._file >= 0 and fresh:
            data = b"".join(map(_link, fresh))
            write_at(self._file, data, RECORD_BYTES * (1 + len(self.chains)))
            os.fsync(self._file)
        self.chains += fresh

    def runs(self, numbers: Integers, starts: Integers, counts: Integers) -> StepRanges:
        """The keys and steps of what some series draw next.

        Parameters:
            numbers: of the series.
            starts: first step of each.
            counts: steps of each.
        """
        series_numbers = numbers.tolist()
        links = [self.chains[number] for number in series_numbers]
        ciphers = functools.partial(self._ciphers_of, series_numbers)
        return StepRanges(links, starts, counts, self.epochs[numbers], ciphers)

    def _ciphers_of(self, numbers: list[int], purpose: str) -> list[Any]:
        ciphers = self._ciphers.setdefault(purpose, [])
        ciphers += [None] * (len(self.chains) - len(ciphers))
        for number in numbers:
            if ciphers[number] is None:
                ciphers[number] = self.chains[number].block_cipher(purpose)
        return [ciphers[number] for number in numbers]

    def keep_from(self, number: int, step: int) -> None:
        """Erase the keys of series ``number`` before the epoch of a ``step``."""
        chain = self.chains[number] = self.chains[number].at_epoch(step // EPOCH)
        self.epochs[number] = chain.epoch
        for ciphers in self._ciphers.values():
            ciphers[number : number + 1] = [None] * (number < len(ciphers))
        if self._file >= 0:
            write_at(self._file, _link(chain), RECORD_BYTES * (1 + number))

    def close(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1


def _link(chain: SeriesKey) -> bytes:
    return _sealed(chain.epoch.to_bytes(8, "big") + chain.secret)


def _sealed(body: bytes) -> bytes:
    check = hashlib.blake2b(body, digest_size=16).digest()
    return (len(body).to_bytes(2, "big") + body + check).ljust(RECORD_BYTES, b"\0")
