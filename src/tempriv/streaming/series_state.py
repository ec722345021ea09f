"""The state of every series of a stream, in arrays: a block touches those of its series only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tempriv.data.series import within
from tempriv.errors import StateError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.stream import MOST_STEPS
from tempriv.streaming._kernels import NEVER, group
from tempriv.streaming.text_buffer import MISSING_LENGTH, TextBuffer, TextSpans

SHARD_SERIES = 256  # series whose state is saved together

DAMAGED = "the state is damaged: it does not say where its series stand"


class SeriesStates:
    """Steps, times and memories of all series, and the cells that can still come out.

    ``rings`` hold the last ``reach`` cells of each series and column, at their step modulo
    ``reach``; their letters are in ``waiting``.

    Parameters:
        mechanism: that the series pass through.
        reach: cells of a series and column that can still come out.
        columns: of text that is carried or held back.
    """

    def __init__(self, mechanism: Mechanism, reach: int, columns: int):
        self.mechanism, self.reach = mechanism, reach
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self.names_digest = ""
        self.steps = np.zeros(0, dtype=np.int64)
        self.first_tick = np.zeros(0, dtype=np.int64)
        self.last_tick = np.zeros(0, dtype=np.int64)
        self.taken = np.zeros(0, dtype=np.int64)
        self.landmarks = np.zeros(0, dtype=np.int64)
        self.fingerprint_sums = np.zeros(0, dtype=np.uint64)
        self.memory = np.zeros((0, mechanism.memory_size), dtype=np.int64)
        self.text = TextBuffer()
        none = TextSpans(np.zeros((0, reach), np.int64), np.zeros((0, reach), np.int32))
        self.rings = [none for _ in range(columns if reach else 0)]
        # of series that a saved state knew: how much they had consumed then, and its marks
        self.saved_steps = np.zeros(0, dtype=np.int64)
        self.saved_fingerprint_sums = np.zeros(0, dtype=np.uint64)
        self.replayed = np.zeros(0, dtype=np.int64)
        self.replayed_tick = np.zeros(0, dtype=np.int64)
        self.replayed_landmarks = np.zeros(0, dtype=np.int64)
        self.replayed_fingerprint_sums = np.zeros(0, dtype=np.uint64)

    ARRAYS = (
        "steps",
        "first_tick",
        "last_tick",
        "taken",
        "landmarks",
        "fingerprint_sums",
        "memory",
        "saved_steps",
        "saved_fingerprint_sums",
        "replayed",
        "replayed_tick",
        "replayed_landmarks",
        "replayed_fingerprint_sums",
    )
    SAVED = ("steps", "first_tick", "last_tick", "taken", "fingerprint_sums")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"SeriesStates({len(self)} series)"

    def numbers_of(self, names: Sequence[str]) -> tuple[Integers, list[str]]:
        """The numbers of the series with these ``names``, and the names that are new."""
        number_of, new_names = self.numbers, []
        numbers = list(map(number_of.get, names))
        if None in numbers:
            for name in names:
                if name in number_of:
                    continue
                new_names.append(name)
                number_of[name] = len(self.names)
                self.names.append(name)
                chained = self.names_digest.encode() + name.encode("utf-8", "surrogatepass")
                self.names_digest = hashlib.blake2b(chained, digest_size=16).hexdigest()
            if len(self.names) > len(self.steps):
                self._grow(len(self.names))
            numbers = list(map(number_of.get, names))
        return np.array(numbers, dtype=np.int64), new_names

    def _grow(self, least: int) -> None:
        capacity = max(least, 2 * len(self.steps), SHARD_SERIES)
        size = len(self.steps)
        for name in self.ARRAYS:
            array = getattr(self, name)
            larger = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
            larger[:size] = array
            setattr(self, name, larger)
        self.last_tick[size:] = NEVER
        self.replayed[size:] = -1
        for i, ring in enumerate(self.rings):
            empty = TextSpans.none(capacity * self.reach)
            wider = TextSpans(empty.at.reshape(capacity, -1), empty.lengths.reshape(capacity, -1))
            wider.at[:size], wider.lengths[:size] = ring.at, ring.lengths
            self.rings[i] = wider

    def keep(
        self, numbers: Integers, counts: Integers, starts: Integers, columns: Sequence[TextSpans]
    ) -> None:
        """Put the last cells of some series into their rings.

        Columns hold the rows of one series after the other, ``counts`` of each from ``starts`` on.

        Parameters:
            numbers: of the series.
            counts: rows of each, one series after the other.
            starts: first step of each.
            columns: of the rows.
        """
        if not self.rings:
            return
        nth = within(counts)
        recent = np.flatnonzero(nth >= np.repeat(counts - self.reach, counts))
        slot = (nth + np.repeat(starts, counts))[recent] % self.reach
        ring_position = np.repeat(numbers, counts)[recent] * self.reach + slot
        for ring, column in zip(self.rings, columns, strict=True):
            ring.at.reshape(-1)[ring_position] = column.at[recent]
            ring.lengths.reshape(-1)[ring_position] = column.lengths[recent]
        if self.text.is_untidy:
            self._tidy()

    def _tidy(self) -> None:
        """Forget the letters of cells that have left the rings."""
        every = TextSpans(
            np.concatenate([ring.at.reshape(-1) for ring in self.rings]),
            np.concatenate([ring.lengths.reshape(-1) for ring in self.rings]),
        )
        at = self.text.keep_only(every).reshape(len(self.rings), -1, self.reach)
        for ring, starts in zip(self.rings, at, strict=True):
            ring.at[:] = starts

    def cells(self, column: int, numbers: Integers, steps: Integers) -> TextSpans:
        """Cells of earlier blocks.

        Parameters:
            column: number of its ring.
            numbers: the series of each cell.
            steps: the step of each cell.
        """
        ring_position, ring = numbers * self.reach + steps % self.reach, self.rings[column]
        return TextSpans(
            ring.at.reshape(-1)[ring_position], ring.lengths.reshape(-1)[ring_position]
        )

    # saving

    def shards(self, numbers: Integers) -> Iterable[tuple[int, bytes]]:
        """All that is saved of the series with these ``numbers`` and those that share their shards,
        as bytes.
        """
        for shard in np.unique(numbers // SHARD_SERIES).tolist():
            low = shard * SHARD_SERIES
            high = min(low + SHARD_SERIES, len(self.names))
            parts = [getattr(self, name)[low:high].tobytes() for name in self.SAVED]
            parts.append(self.memory[low:high].tobytes())
            parts += [part for ring in self.rings for part in self._packed(ring, low, high)]
            body = b"".join(parts)
            yield shard, hashlib.blake2b(body, digest_size=16).digest() + body

    def _packed(self, ring: TextSpans, low: int, high: int) -> list[bytes]:
        """Lengths and letters of the cells in a ring."""
        cells = TextSpans(ring.at[low:high].reshape(-1), ring.lengths[low:high].reshape(-1))
        return [cells.lengths.tobytes(), self.text.gathered(cells)[0].tobytes()]

    def load(self, names: Sequence[str], shards: Iterable[tuple[int, bytes]]) -> None:
        """Load the saved series; anything damaged is refused.

        Parameters:
            names: of the series.
            shards: their states.
        """
        self.numbers_of(names)
        require(len(self.names) == len(names), DAMAGED, StateError)
        loaded = 0
        for shard, data in shards:
            low = shard * SHARD_SERIES
            high = min(low + SHARD_SERIES, len(self.names))
            require(0 <= low < high, DAMAGED, StateError)
            self._unpack(low, high, data)
            loaded += high - low
        require(loaded == len(names), DAMAGED, StateError)
        rows = slice(0, len(names))
        self._refuse_impossible()
        self.saved_steps[rows], self.saved_fingerprint_sums[rows] = (
            self.steps[rows],
            self.fingerprint_sums[rows],
        )

    def _unpack(self, low: int, high: int, data: bytes) -> None:
        body, at = data[16:], 0
        whole = hashlib.blake2b(body, digest_size=16).digest() == data[:16]
        require(whole, DAMAGED, StateError)
        for name in (*self.SAVED, "memory"):
            array = getattr(self, name)[low:high]
            size = array.nbytes
            require(at + size <= len(body), DAMAGED, StateError)
            array[:] = np.frombuffer(body, dtype=array.dtype, count=array.size, offset=at).reshape(
                array.shape
            )
            at += size
        for ring in self.rings:
            count = (high - low) * self.reach
            require(at + 4 * count <= len(body), DAMAGED, StateError)
            lengths = np.frombuffer(body, dtype=np.int32, count=count, offset=at)
            at += 4 * count
            size = int(np.maximum(lengths, 0).sum(dtype=np.int64))
            require(
                at + size <= len(body) and bool((lengths >= MISSING_LENGTH).all()),
                DAMAGED,
                StateError,
            )
            letters = np.frombuffer(body, dtype=np.uint8, count=size, offset=at)
            at += size
            cells = self.text.loaded(letters, lengths)
            ring.at[low:high] = cells.at.reshape(high - low, self.reach)
            ring.lengths[low:high] = lengths.reshape(high - low, self.reach)
        require(at == len(body), DAMAGED, StateError)

    def _refuse_impossible(self) -> None:
        """What no stream can have saved, and what a kernel could be led astray by."""
        count, domain = len(self.names), self.mechanism.domain
        steps, taken = self.steps[:count], self.taken[:count]
        sound = bool(
            ((steps >= 0) & (steps < MOST_STEPS) & (taken == steps)).all()
            and ((self.last_tick >= self.first_tick) | (self.last_tick == NEVER))[:count].all()
        )
        require(sound, DAMAGED, StateError)
        if not isinstance(domain, (OpaqueRows, WithLandmarks)):
            return
        mechanism: Any = self.mechanism
        for number in np.flatnonzero(steps).tolist():
            memory, step = self.memory[number], int(steps[number])
            require(bool(mechanism.could_remember(memory, step)), DAMAGED, StateError)
            self.landmarks[number] = self.mechanism.landmarks_so_far(self.memory[number][None])


@dataclass(frozen=True)
class RecentCells:
    """Cells of a block's series by step: from the block itself, or from the rings before it."""

    series: SeriesStates
    touched: Integers
    starts: Integers
    edges: Integers

    def cells(
        self, columns: Sequence[TextSpans], first: int, which: Integers, steps: Integers
    ) -> list[TextSpans]:
        """Cells from the block or from the rings before it.

        Parameters:
            columns: of the block.
            first: number of the first column's ring.
            which: the series of each cell, among those touched.
            steps: the step of each cell.
        """
        in_block = steps >= self.starts[which]
        inside = (self.edges[which] + steps - self.starts[which])[in_block]
        before = np.flatnonzero(~in_block)
        numbers, earlier = self.touched[which[before]], steps[before]
        recent = []
        for i, column in enumerate(columns):
            spans = TextSpans.none(len(steps))
            spans.at[in_block], spans.lengths[in_block] = column.at[inside], column.lengths[inside]
            if len(before):
                from_rings = self.series.cells(first + i, numbers, earlier)
                spans.at[before], spans.lengths[before] = from_rings.at, from_rings.lengths
            recent.append(spans)
        return recent


def group_by_code(codes: Integers, count: int) -> tuple[Integers, Integers, Integers]:
    """Sort rows by their ``codes``, of which there are ``count``.

    Returns:
        The rows in order, where each code that occurs begins, and how often it occurs.

    >>> [part.tolist() for part in group_by_code(np.array([2, 0, 2]), 3)]
    [[1, 0, 2], [0, 1], [1, 2]]
    """
    edges, order = np.empty(count + 1, np.int64), np.empty(len(codes), np.int64)
    group(codes, edges, order)
    counts = np.diff(edges)
    occurs = counts > 0
    return order, edges[:-1][occurs], counts[occurs]


def output_order(
    line_positions: Integers, which: Integers, before: Integers, after: Integers
) -> Integers:
    """The order of released rows as their lines came in: with each line of a series comes its next
    slot.

    ``line_positions`` has for each line, as it came, its place among all sorted by the series that
    ``which`` says, with so many lines ``before`` and so many rows ``after``; the first lines of a
    series may bring none.

    Parameters:
        line_positions: of each line, as it came, its place among all sorted by series.
        which: the series of each sorted line.
        before: lines of each series.
        after: released rows of each series; its first lines may bring none.
    """
    series_of_line = which[line_positions]
    held_back = before - after
    nth = line_positions - (np.cumsum(before) - before)[series_of_line] - held_back[series_of_line]
    rows = (np.cumsum(after) - after)[series_of_line] + nth
    return np.asarray(rows[nth >= 0], dtype=np.int64)
