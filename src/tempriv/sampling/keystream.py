"""Random words for the steps of many series: AES-256 in counter mode at (stream, step).

The key of a word is that of its series, epoch and purpose, so a row gets the same word however rows
are cut into blocks and whatever other rows are read with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv.errors import KeyReuseError, require
from tempriv.sampling.keys import EPOCH, SeriesKey

# a counter block is a 96-bit stream number and a 32-bit block number, two words to a block
STREAM_BYTES, BLOCK_BYTES = 12, 4
CIPHER_BYTES = STREAM_BYTES + BLOCK_BYTES
SUBSTREAM_BITS = 12

_ZEROS = memoryview(bytes(8 * (EPOCH + 2)))


class StepRange(NamedTuple):
    """Consecutive steps of one series within a block: the chain link is that of its first step."""

    key: SeriesKey
    start: int
    count: int  # type: ignore[assignment]


@dataclass(frozen=True)
class StepRanges(Sequence[StepRange]):
    """Runs of many series in columns, for callers with thousands of them.

    ``ciphers`` gives those of a purpose, one for each link: to find thousands of them link by link
    costs as much as to use them.
    """

    links: list[SeriesKey]
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    ciphers: Callable[[str], list[Any]]

    def __len__(self) -> int:
        return len(self.links)

    def __getitem__(self, which: Any) -> Any:
        return StepRange(self.links[which], int(self.starts[which]), int(self.counts[which]))

    @property
    def within_epochs(self) -> bool:
        """Whether no run crosses an epoch, nor is empty."""
        last = self.starts + self.counts - 1
        same = (self.starts // EPOCH == self.epochs) & (last // EPOCH == self.epochs)
        return bool((same & (self.counts > 0)).all())


def _within_epochs(runs: Sequence[StepRange]) -> list[tuple[SeriesKey, int, int]]:
    """The runs cut where an epoch ends: links, first steps within their epochs, and counts."""
    pieces = []
    for key, start, left in runs:
        epoch, first = divmod(start, EPOCH)
        if key.epoch == epoch and 0 < left <= EPOCH - first:
            pieces.append((key, first, left))
            continue
        while left > 0:
            key = key.at_epoch(start // EPOCH)
            count = min(left, EPOCH - start % EPOCH)
            pieces.append((key, start % EPOCH, count))
            start, left = start + count, left - count
    return pieces


def blocks_of_runs(runs: Sequence[StepRange], most: int) -> Iterator[Sequence[StepRange]]:
    """The ``runs`` in groups of at most ``most`` steps, cutting a run where a group is full."""
    if isinstance(runs, StepRanges) and int(runs.counts.sum()) <= most:
        yield runs
        return
    group: list[StepRange] = []
    room = most
    for run in runs:
        while run.count > room:
            group.append(StepRange(run.key, run.start, room))
            run = StepRange(run.key, run.start + room, run.count - room)
            yield group
            group, room = [], most
        group.append(run)
        room -= run.count
    yield group


MAX_CACHED_STREAMS = 8  # kept whole for a purpose, 8 bytes a row each
SHORT_RUN_STEPS = 64
"""Runs of at most so many steps on average read their words from ciphers that are kept."""

CHUNK_ROWS = 1 << 15  # whose streams are read at a time

DENSE_RATIO = 16
"""Words for so many rows in a row cost less than for one row by itself."""


class Keystream:
    """Random words for the rows of a block: ``read(stream_index)`` gives one word to every row.

    ``rows`` narrows to some of the rows, ``substream`` opens streams that nothing else shares; a
    row gets the same word of a stream whatever other rows are read with it.

    Parameters:
        runs: the steps of each series, in the order of the rows.
        purpose: what the words are for; words of unlike purposes are independent.

    >>> from tempriv.sampling.keys import Key
    >>> run = StepRange(Key.from_seed(7).series("spec", "a series"), 0, 4)
    >>> keystream = Keystream([run], "noise")
    >>> bool(keystream.rows(np.array([2])).read()[0] == keystream.read()[2])
    True
    """

    def __init__(self, runs: Sequence[StepRange], purpose: str):
        self._purpose = purpose
        self._ciphers: Callable[[str], list[Any]] | None = None
        if isinstance(runs, StepRanges) and runs.within_epochs:
            self._ciphers = runs.ciphers
            self._links, counts = runs.links, runs.counts.tolist()
            self._starts = (runs.starts % EPOCH).tolist()
        else:
            pieces = _within_epochs(runs)
            self._links = [link for link, _, _ in pieces]
            self._starts = [start for _, start, _ in pieces]
            counts = [count for _, _, count in pieces]
        self._offsets = [0, *itertools.accumulate(counts)]
        self._rows: npt.NDArray[np.intp] | None = None  # all of them
        self._stream = 0
        self._cache: dict[tuple[bytes, type], npt.NDArray[Any]] | None = None
        self.count = self._offsets[-1]

    def _like(self, rows: npt.NDArray[np.intp] | None, stream: int) -> Keystream:
        other = object.__new__(Keystream)
        other.__dict__.update(self.__dict__)
        other._rows, other._stream = rows, stream
        other.count = self.count if rows is None else len(rows)
        return other

    def substream(self, number: int) -> Keystream:
        """Streams of their own; substreams of substreams too, to a depth of seven.

        Parameters:
            number: which substream, from 0.
        """
        stream = (self._stream << SUBSTREAM_BITS) + number + 1
        most = (1 << SUBSTREAM_BITS) - 1
        require(0 <= number < most, f"substream {number}: too many", KeyReuseError)
        deepest = 8 * STREAM_BYTES - SUBSTREAM_BITS
        require(stream >> deepest == 0, "substreams too deep", KeyReuseError)
        return self._like(self._rows, stream)

    def rows(self, rows: npt.NDArray[np.intp]) -> Keystream:
        """The same words for some of the ``rows``, given by rising position."""
        if len(rows) == self.count:
            return self
        return self._like(rows if self._rows is None else self._rows[rows], self._stream)

    def cached(self) -> Keystream:
        """The same words, kept in memory for callers that read some of the rows again and again."""
        if self._cache is not None:
            return self
        other = self._like(self._rows, self._stream)
        other._cache = {}
        return other

    def read_one(self, row: int, stream_index: int) -> int:
        """The word of a single ``row`` in the stream ``stream_index``."""
        return int(self.rows(np.array([row])).read(stream_index)[0])

    def read(self, stream_index: int = 0) -> npt.NDArray[np.uint64]:
        """One word for every row, from the stream ``stream_index``."""
        return self._words(stream_index, np.uint64)

    def read_half(self, stream_index: int) -> npt.NDArray[np.uint32]:
        """Half a word for every row: twice as fast.

        Parameters:
            stream_index: a stream from which no whole words are read.
        """
        return self._words(stream_index, np.uint32)

    def _words(self, stream_index: int, kind: type) -> npt.NDArray[Any]:
        prefix = self._prefix(self._stream, stream_index)
        if self._rows is None:
            return self._read_all(prefix, kind)
        if self._cache is not None and len(self._rows) > 1:
            if (prefix, kind) not in self._cache and len(self._cache) < MAX_CACHED_STREAMS:
                self._cache[prefix, kind] = self._read_all(prefix, kind)
            if (prefix, kind) in self._cache:
                return np.asarray(self._cache[prefix, kind][self._rows])
        if DENSE_RATIO * len(self._rows) >= self._offsets[-1]:
            return np.asarray(self._read_all(prefix, kind)[self._rows])
        return self._read_rows(self._rows, np.frombuffer(prefix, dtype=">u4"), kind)

    def read_streams(self, count: int) -> npt.NDArray[np.uint64]:
        """Words of the first ``count`` streams, a row of them for each; ciphers are asked once."""
        rows = np.arange(self._offsets[-1]) if self._rows is None else self._rows
        words = np.empty((len(rows), count), dtype=np.uint64)
        packed = b"".join(self._prefix(self._stream, index) for index in range(count))
        prefixes = np.frombuffer(packed, dtype=">u4").reshape(count, 3)
        piece, step = self._places(rows)
        for low in range(0, len(rows), CHUNK_ROWS):
            part = slice(low, low + CHUNK_ROWS)
            where = np.repeat(piece[part], count)
            counters = np.empty((len(where), 4), dtype=">u4")
            counters[:, :3] = np.tile(prefixes, (len(where) // count, 1))
            counters[:, 3] = np.repeat(step[part] // 2, count)
            both = self._ciphered(where, counters, np.uint64).reshape(-1, count, 2)
            words[part] = both[np.arange(len(both)), :, step[part] % 2]
        return words

    def read_substreams(
        self, rows: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp], count: int
    ) -> npt.NDArray[np.uint64]:
        """One word each for some rows, from a substream for each.

        Parameters:
            rows: positions of rows, rising, maybe repeated.
            numbers: the substream of each.
            count: how many substreams there are.
        """
        packed = b"".join(self._prefix(self.substream(i)._stream, 0) for i in range(count))
        prefixes = np.frombuffer(packed, dtype=">u4").reshape(count, 3)
        places = rows if self._rows is None else self._rows[rows]
        return self._read_rows(places, prefixes[numbers], np.uint64)

    def _prefix(self, stream: int, index: int) -> bytes:
        require(0 <= index < 1 << SUBSTREAM_BITS, f"stream {index}: too many", KeyReuseError)
        return ((stream << SUBSTREAM_BITS) + index).to_bytes(STREAM_BYTES, "big")

    def _read_all(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        if 0 < self._offsets[-1] <= SHORT_RUN_STEPS * len(self._links):
            return self._read_short(prefix, kind)
        # a run may start in the middle of a counter block: read the block whole, some words too
        # early, and let the run before it overwrite those
        width = np.dtype(kind).itemsize
        extra = CIPHER_BYTES // width - 1
        out: npt.NDArray[Any] = np.empty(self._offsets[-1] + extra, dtype=kind)
        view = memoryview(out.data).cast("B")
        for i in range(len(self._links) - 1, -1, -1):
            start, low, high = self._starts[i], self._offsets[i], self._offsets[i + 1]
            counter = prefix + (start // (extra + 1)).to_bytes(BLOCK_BYTES, "big")
            low += extra - start % (extra + 1)
            cipher = self._links[i].stream_cipher(self._purpose, counter)
            cipher.update_into(_ZEROS[: width * (high + extra - low)], view[width * low :])
        return out[extra:]

    def _read_short(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        """The same where runs are many and short: counters of all of them, a cipher for each."""
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        starts = np.array(self._starts, dtype=np.int64)
        ends = starts + np.diff(self._offsets)
        blocks = -(-ends // each) - starts // each
        edges = np.concatenate(([0], np.cumsum(blocks)))
        counters = np.empty((int(edges[-1]), 4), dtype=">u4")
        counters[:, :3] = np.frombuffer(prefix, dtype=">u4")
        counters[:, 3] = np.arange(len(counters)) + np.repeat(starts // each - edges[:-1], blocks)
        words = self._ciphered(np.repeat(np.arange(len(blocks)), blocks), counters, kind)
        first = each * edges[:-1] + starts % each - self._offsets[:-1]
        return np.asarray(words[np.arange(self._offsets[-1]) + np.repeat(first, ends - starts)])

    def _read_rows(
        self, rows: npt.NDArray[np.intp], prefixes: npt.NDArray[np.uint32], kind: type
    ) -> npt.NDArray[Any]:
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        piece, step = self._places(rows)
        counters = np.empty((len(rows), 4), dtype=">u4")
        counters[:, :3] = prefixes
        counters[:, 3] = step // each
        words = self._ciphered(piece, counters, kind).reshape(-1, each)
        return np.asarray(words[np.arange(len(rows)), step % each])

    def _places(
        self, rows: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
        """The piece of each row, and its step within the epoch."""
        piece = np.searchsorted(self._offsets, rows, side="right") - 1
        first = np.array(self._starts, dtype=np.int64) - np.array(self._offsets[:-1])
        return piece, rows + first[piece]

    def _ciphered(
        self, piece: npt.NDArray[np.intp], counters: npt.NDArray[Any], kind: type
    ) -> npt.NDArray[Any]:
        """Counter mode at scattered counters is the block cipher on the counters themselves.

        ``piece`` says by which link's key, in runs of equal ones.
        """
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        words: npt.NDArray[Any] = np.empty((len(counters) + 1) * each, dtype=kind)
        if not len(counters):
            return words[:0]
        read, write = memoryview(counters.data).cast("B"), memoryview(words.data).cast("B")
        edges = np.flatnonzero(np.diff(piece, prepend=-1))
        links, which = self._links, piece[edges].tolist()
        if self._ciphers is None or len(which) < len(links):
            ciphers = [links[i].block_cipher(self._purpose) for i in which]
        else:
            ciphers = self._ciphers(self._purpose)
        places = (CIPHER_BYTES * np.append(edges, len(counters))).tolist()
        for cipher, (low, high) in zip(ciphers, itertools.pairwise(places), strict=True):
            cipher(read[low:high], write[low:])
        return words[:-each]
