"""Random words for the steps of many series: AES-256 in counter mode at (lane, step).

The key of a word is that of its series, epoch and purpose, so a row gets the same word however rows
are cut into blocks and whatever it is taken together with.
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

# a counter block is a 96-bit lane and a 32-bit block number, two words to a block
LANE_BYTES, BLOCK_BYTES = 12, 4
CIPHER_BYTES = LANE_BYTES + BLOCK_BYTES
BRANCH_BITS = 12

_ZEROS = memoryview(bytes(8 * (EPOCH + 2)))


class StepRange(NamedTuple):
    """Consecutive steps of one series within a block: the chain link is that of its first step."""

    key: SeriesKey
    start: int
    count: int  # type: ignore[assignment]


@dataclass(frozen=True)
class StepRanges(Sequence[StepRange]):
    """Runs of many series in columns, for who has thousands of them.

    ``ciphers`` gives those of a purpose, one for each link, to who keeps them together: to find
    thousands of them link by link costs as much as to use them.
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
    """The runs in groups of at most so many steps, cutting a run where a group is full."""
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


MOST_LANES = 8  # that are kept whole for a purpose, 8 bytes a row each
SHORT = 64
"""Runs of so many steps on average take their words from ciphers that are kept."""

MANY_ROWS = 1 << 15  # whose lanes are taken at a time

DENSE = 16
"""Words for so many rows in a row cost less than for one row by itself."""


class Keystream:
    """Random words for the rows of a block: ``take(lane)`` gives one word to every row.

    ``only`` narrows to some of the rows, ``branch`` opens lanes that nothing else shares; a row
    gets the same word in a lane whatever it is taken together with.
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
        self._lane = 0
        self._known: dict[tuple[bytes, type], npt.NDArray[Any]] | None = None
        self.count = self._offsets[-1]

    def _like(self, rows: npt.NDArray[np.intp] | None, lane: int) -> Keystream:
        other = object.__new__(Keystream)
        other.__dict__.update(self.__dict__)
        other._rows, other._lane = rows, lane
        other.count = self.count if rows is None else len(rows)
        return other

    def branch(self, number: int) -> Keystream:
        """Lanes of their own; branches of branches too, to a depth of seven."""
        lane = (self._lane << BRANCH_BITS) + number + 1
        require(0 <= number < (1 << BRANCH_BITS) - 1, f"branch {number}: too many", KeyReuseError)
        require(lane >> (8 * LANE_BYTES - BRANCH_BITS) == 0, "branches too deep", KeyReuseError)
        return self._like(self._rows, lane)

    def only(self, rows: npt.NDArray[np.intp]) -> Keystream:
        """The same words for some of the rows, given by rising position."""
        if len(rows) == self.count:
            return self
        return self._like(rows if self._rows is None else self._rows[rows], self._lane)

    def remembered(self) -> Keystream:
        """The same words, for who comes back often for some of the rows: lanes are kept whole."""
        if self._known is not None:
            return self
        other = self._like(self._rows, self._lane)
        other._known = {}
        return other

    def one(self, row: int, lane: int) -> int:
        """The word of a single row."""
        return int(self.only(np.array([row])).take(lane)[0])

    def take(self, lane: int = 0) -> npt.NDArray[np.uint64]:
        """One word for every row."""
        return self._words(lane, np.uint64)

    def take_half(self, lane: int) -> npt.NDArray[np.uint32]:
        """Half a word for every row, from a lane that gives no whole ones: twice as fast."""
        return self._words(lane, np.uint32)

    def _words(self, lane: int, kind: type) -> npt.NDArray[Any]:
        prefix = self._prefix(self._lane, lane)
        if self._rows is None:
            return self._take_all(prefix, kind)
        if self._known is not None and len(self._rows) > 1:
            if (prefix, kind) not in self._known and len(self._known) < MOST_LANES:
                self._known[prefix, kind] = self._take_all(prefix, kind)
            if (prefix, kind) in self._known:
                return np.asarray(self._known[prefix, kind][self._rows])
        if DENSE * len(self._rows) >= self._offsets[-1]:
            return np.asarray(self._take_all(prefix, kind)[self._rows])
        return self._take(self._rows, np.frombuffer(prefix, dtype=">u4"), kind)

    def take_lanes(self, count: int) -> npt.NDArray[np.uint64]:
        """Words of the first lanes, a row of them for each: a cipher is asked once for all."""
        rows = np.arange(self._offsets[-1]) if self._rows is None else self._rows
        found = np.empty((len(rows), count), dtype=np.uint64)
        prefixes = b"".join(self._prefix(self._lane, lane) for lane in range(count))
        lanes = np.frombuffer(prefixes, dtype=">u4").reshape(count, 3)
        piece, step = self._places(rows)
        for low in range(0, len(rows), MANY_ROWS):
            part = slice(low, low + MANY_ROWS)
            where = np.repeat(piece[part], count)
            counters = np.empty((len(where), 4), dtype=">u4")
            counters[:, :3] = np.tile(lanes, (len(where) // count, 1))
            counters[:, 3] = np.repeat(step[part] // 2, count)
            both = self._ciphered(where, counters, np.uint64).reshape(-1, count, 2)
            found[part] = both[np.arange(len(both)), :, step[part] % 2]
        return found

    def take_branches(
        self, rows: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp], count: int
    ) -> npt.NDArray[np.uint64]:
        """One word each for some rows (rising, maybe repeated), from the branch of that number."""
        prefixes = b"".join(self._prefix(self.branch(i)._lane, 0) for i in range(count))
        lanes = np.frombuffer(prefixes, dtype=">u4").reshape(count, 3)
        places = rows if self._rows is None else self._rows[rows]
        return self._take(places, lanes[numbers], np.uint64)

    def _prefix(self, branch: int, lane: int) -> bytes:
        require(0 <= lane < 1 << BRANCH_BITS, f"lane {lane}: too many", KeyReuseError)
        return ((branch << BRANCH_BITS) + lane).to_bytes(LANE_BYTES, "big")

    def _take_all(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        if 0 < self._offsets[-1] <= SHORT * len(self._links):
            return self._take_short(prefix, kind)
        # a run may start in the middle of a counter block: take the block whole, some words too
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

    def _take_short(self, prefix: bytes, kind: type) -> npt.NDArray[Any]:
        """The same where runs are many and short: counters of all of them, a cipher for each."""
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        starts = np.array(self._starts, dtype=np.int64)
        ends = starts + np.diff(self._offsets)
        blocks = -(-ends // each) - starts // each
        edges = np.concatenate(([0], np.cumsum(blocks)))
        counters = np.empty((int(edges[-1]), 4), dtype=">u4")
        counters[:, :3] = np.frombuffer(prefix, dtype=">u4")
        counters[:, 3] = np.arange(len(counters)) + np.repeat(starts // each - edges[:-1], blocks)
        found = self._ciphered(np.repeat(np.arange(len(blocks)), blocks), counters, kind)
        first = each * edges[:-1] + starts % each - self._offsets[:-1]
        return np.asarray(found[np.arange(self._offsets[-1]) + np.repeat(first, ends - starts)])

    def _take(
        self, rows: npt.NDArray[np.intp], lanes: npt.NDArray[np.uint32], kind: type
    ) -> npt.NDArray[Any]:
        each = CIPHER_BYTES // np.dtype(kind).itemsize
        piece, step = self._places(rows)
        counters = np.empty((len(rows), 4), dtype=">u4")
        counters[:, :3] = lanes
        counters[:, 3] = step // each
        found = self._ciphered(piece, counters, kind).reshape(-1, each)
        return np.asarray(found[np.arange(len(rows)), step % each])

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
        found: npt.NDArray[Any] = np.empty((len(counters) + 1) * each, dtype=kind)
        if not len(counters):
            return found[:0]
        read, write = memoryview(counters.data).cast("B"), memoryview(found.data).cast("B")
        edges = np.flatnonzero(np.diff(piece, prepend=-1))
        links, which = self._links, piece[edges].tolist()
        if self._ciphers is None or len(which) < len(links):
            ciphers = [links[one].block_cipher(self._purpose) for one in which]
        else:
            ciphers = self._ciphers(self._purpose)
        places = (CIPHER_BYTES * np.append(edges, len(counters))).tolist()
        for cipher, (low, high) in zip(ciphers, itertools.pairwise(places), strict=True):
            cipher(read[low:high], write[low:])
        return found[:-each]
