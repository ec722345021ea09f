"""Keyed sketches of the rows that a release was made from, by which a ledger knows them again.

A sketch keeps a sample of hashes, never an id, a time or a value. What is in the sample is decided
by the rows themselves, so two sketches of the same rows have the same hashes, whatever the file,
the order or the blocks they came in:

- ``rows``: series and time; ``readings``: these and one value;
- ``runs8`` and ``runs24``: so many runs of equal values of one series in a row, without its id and
  its times;
- ``series8`` and ``series24``: the smallest of these of each series, so that one series of many is
  found.

Rows are picked by a fast keyed hash; what is kept of them is AES-256 of it under another key.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block, within
from tempriv.ledger._kernels import pick_rows, pick_sequences
from tempriv.sampling.keys import fingerprints

Words = npt.NDArray[np.uint64]
Levels = npt.NDArray[np.uint8]

MOST_KEPT = 8192
"""How many hashes of a kind are kept; of more, only the smallest part."""

MOST_SERIES = 1 << 15
"""Of how many series the smallest hashes are kept."""

SMALLEST = 4
WIDTHS = (8, 24)
KINDS = ("rows", "readings", *(f"{kind}{width}" for kind in ("runs", "series") for width in WIDTHS))

_TOP = np.uint64(2**64 - 1)
DAY = 86_400_000_000


def _levels(words: Words) -> Levels:
    """How many of the first bits are zero: a part 2**-n of all words has n or more."""
    bits = np.log2(np.maximum(words.astype(np.float64), 1.0))
    return (63 - np.minimum(np.floor(bits), 63)).astype(np.uint8)


def _most(level: int) -> np.uint64:
    return np.uint64(int(_TOP) >> level)


def microseconds_of(clock: str, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Times of a ``clock`` in one unit: whole numbers that may be s, ms or ns since 1970, too.

    >>> ticks = np.array([1_700_000_000, 1_700_000_000_000, 7])
    >>> microseconds_of("integer", ticks).tolist()
    [1700000000000000, 1700000000000000, 7]
    """
    kind = clock.split(" ")[0]
    if kind == "date":
        return ticks * DAY
    if kind != "integer" or len(ticks) == 0:
        return ticks
    size = np.abs(ticks)
    told = ticks.copy()
    seconds = (size >= 315_000_000) & (size < 10**10)
    millis = (size >= 315_000_000_000) & (size < 10**13)
    nanos = size >= 315_000_000_000_000_000
    told[seconds] *= 1_000_000
    told[millis] *= 1000
    told[nanos] //= 1000
    return told


@dataclass
class Sample:
    """Hashes of one kind, sorted, with the level of each; those below ``level`` were left out.

    Parameters:
        hashes: what is kept of each.
        levels: of each.
        level: the lowest that is kept.
    """

    hashes: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    levels: Levels = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    level: int = 0

    @classmethod
    def of(cls, hashes: Words, levels: Levels, level: int) -> Sample:
        """The sample of these ``hashes`` with their ``levels``, each once, from a ``level`` on."""
        kept, first = np.unique(hashes, return_index=True)
        return cls(kept, levels[first], level)

    def from_level(self, level: int) -> Words:
        """The hashes from a ``level`` on."""
        if level <= self.level:
            return self.hashes
        return self.hashes[self.levels >= level]

    def joined(self, other: Sample, most: int) -> Sample:
        """A sample of the rows of both, of at most so many hashes.

        Parameters:
            other: the sample of other rows.
            most: how many to keep.
        """
        level = max(self.level, other.level)
        both = [(s.hashes[s.levels >= level], s.levels[s.levels >= level]) for s in (self, other)]
        hashes, levels = (np.concatenate(parts) for parts in zip(*both, strict=True))
        result = Sample.of(hashes, levels, level)
        while len(result.hashes) > most:
            result.level += 1
            keep = result.levels >= result.level
            result.hashes, result.levels = result.hashes[keep], result.levels[keep]
        return result


@dataclass
class Sketch:
    """What a ledger keeps of the rows of a dataset.

    Parameters:
        samples: hashes, by kind.
        repeated: for each width, the part of sequences that occurred before in the same table.
        named: whether rows had an id and a time.
    """

    samples: dict[str, Sample]
    repeated: tuple[float, ...] = (0.0,) * len(WIDTHS)
    named: bool = False

    def joined(self, other: Sketch) -> Sketch:
        """The sketch of the rows of both; the ``other`` one is of the same dataset."""
        room = dict.fromkeys(KINDS, MOST_KEPT)
        room |= {f"series{width}": SMALLEST * MOST_SERIES for width in WIDTHS}
        room["readings"] = 4 * MOST_KEPT
        samples = {
            kind: self.samples[kind].joined(other.samples[kind], room[kind]) for kind in KINDS
        }
        # readings are those of the rows that are kept
        level = max(samples["rows"].level, samples["readings"].level)
        for kind in ("rows", "readings"):
            samples[kind] = samples[kind].joined(Sample(level=level), room[kind])
        repeated = tuple(map(max, self.repeated, other.repeated))
        return Sketch(samples, repeated, self.named or other.named)

    def added_to(self, before: bytes | None) -> bytes:
        """For the file of the ledger, with what it had ``before`` of the same dataset."""
        return (self if before is None else Sketch.from_bytes(before).joined(self)).to_bytes()

    def to_bytes(self) -> bytes:
        """For the file of the ledger."""
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "repeated": np.array(self.repeated),
            "named": np.array(self.named),
        }
        for kind, sample in self.samples.items():
            arrays |= {
                f"{kind}.hashes": sample.hashes,
                f"{kind}.levels": sample.levels,
                f"{kind}.level": np.array(sample.level),
            }
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """From the ``data`` of ``to_bytes``."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            samples = {
                kind: Sample(
                    arrays[f"{kind}.hashes"],
                    arrays[f"{kind}.levels"],
                    int(arrays[f"{kind}.level"]),
                )
                for kind in KINDS
            }
            return cls(samples, tuple(arrays["repeated"].tolist()), bool(arrays["named"]))


@dataclass
class FreshSketch(Sketch):
    """The sketch of a table that was just read, which knows which reading is of which row.

    Parameters:
        row_hashes: of the rows that are kept.
        row_levels: of each of them.
        reading_hashes: a row for each of these, a column for each of values; 0 where it tells
            nothing, since it is missing, or continues a straight line.
        agreement: for each column, how often two rows have one value, by chance or at one time.
    """

    row_hashes: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    row_levels: Levels = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    reading_hashes: Words = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))
    agreement: tuple[float, ...] = ()


class _Sequences:
    """The sequences of both widths that were seen so far."""

    def __init__(self, keys: Words):
        self._keys = keys
        self.samples = [_Counted() for _ in WIDTHS]
        self._smallest: list[Words] = []
        # of the series that may go on: of each column and width
        self._open: tuple[str, Words] | None = None

    def see(self, part: Block, bits: npt.NDArray[Any], values: npt.NDArray[np.float64]) -> None:
        """Take in the ``values`` of a ``part`` of a table, and ``bits`` that tell them apart."""
        columns, ends = values.shape[1], np.cumsum(part.counts)
        for sample in self.samples:
            sample.expect(values.size)
        most = np.array([_most(sample.level) for sample in self.samples], dtype=np.uint64)
        of_series = np.full((columns, len(ends), len(WIDTHS), SMALLEST), _TOP, dtype=np.uint64)
        picked: list[list[Words]] = [[], []]
        for i in range(columns):
            room = np.empty((2, len(values)), dtype=np.uint64)
            each = (np.ascontiguousarray(array[:, i]) for array in (bits, values, part.missing))
            with np.errstate(over="ignore"):
                counts = pick_sequences(
                    *(*each, ends, self._keys, most, room[0], room[1], of_series[i])
                )
            for words, row, count in zip(picked, room, counts, strict=True):
                words.append(row[:count])
        for sample, words in zip(self.samples, picked, strict=True):
            sample.add(np.concatenate(words))
        self._close_series(part, of_series)

    def _close_series(self, part: Block, of_series: Words) -> None:
        """Keep the smallest hashes of series that ended; the last may go on in the next block."""
        if self._open is not None:
            name, earlier = self._open
            if part.ids[0] == name and part.starts[0] > 0:
                for place in np.ndindex(earlier.shape[:2]):
                    mine = of_series[place[0], 0, place[1]]
                    both = np.unique(np.append(mine, earlier[place]))[:SMALLEST]
                    mine[: len(both)] = both
            else:
                self._smallest.append(earlier[:, None])
        self._open = (part.ids[-1], of_series[:, -1].copy())
        self._smallest.append(of_series[:, :-1])

    def series(self, number: int) -> tuple[Words, Levels, int]:
        """The smallest hashes of a width by its ``number``: hashes, levels, and which are kept."""
        parts = [*self._smallest, *([] if self._open is None else [self._open[1][:, None]])]
        chosen = [part[:, :, number].reshape(-1, SMALLEST) for part in parts]
        groups = np.concatenate(chosen) if chosen else np.zeros((0, SMALLEST), np.uint64)
        groups = groups[groups[:, -1] < _TOP]
        levels, level = _levels(groups[:, 0]), 0
        while np.count_nonzero(levels >= level) > MOST_SERIES:
            level += 1
        groups, levels = groups[levels >= level], levels[levels >= level]
        return groups.ravel(), np.repeat(levels, SMALLEST), level


class _Counted:
    """The hashes of one width, and how often each occurred."""

    def __init__(self) -> None:
        self.level = 0
        self.hashes, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def expect(self, count: int) -> None:
        """Pick fewer where a larger ``count`` comes at once."""
        while count >> self.level > 2 * MOST_KEPT:
            self.level += 1

    def add(self, picked: Words) -> None:
        """Count hashes that were ``picked``."""
        fresh, counts = np.unique(picked, return_counts=True)
        both = np.concatenate([self.hashes, fresh])
        self.hashes, place = np.unique(both, return_inverse=True)
        weights = np.concatenate([self._counts, counts])
        self._counts = np.bincount(place, weights, len(self.hashes)).astype(np.int64)
        while len(self.hashes) > MOST_KEPT:
            self.level += 1
            keep = self.hashes <= _most(self.level)
            self.hashes, self._counts = self.hashes[keep], self._counts[keep]

    @property
    def repeated(self) -> float:
        """The part of sequences that occurred before."""
        total = int(self._counts.sum())
        return 1.0 - len(self.hashes) / total if total else 0.0


class RowSketcher:
    """Makes the sketch of a table from its blocks, in the pass that releases it.

    Parameters:
        secret: of the ledger.
        columns: how many columns of values there are.
        categories: the names that values are numbers of, for each column.
        named: whether the table has a column of ids and one of times.
    """

    def __init__(
        self,
        secret: bytes,
        columns: int,
        categories: Sequence[Sequence[str]] | None = None,
        named: bool = False,
    ):
        self._secret, self._named = secret, named
        self._names_key = self._derived("ids")
        rows = self._words("rows")
        self._row_keys, self._reading_key = rows[:3], rows[3:4]
        self._sequences = _Sequences(self._words("runs"))
        self._codes = None if categories is None else [self._named_values(c) for c in categories]
        self._level = 0
        self._most_rows = max(512, 2 * MOST_KEPT // max(columns, 2))
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._ticks = np.zeros(0, dtype=np.int64)
        self._bits = np.zeros((0, columns), dtype=np.uint64)
        self._missing = np.zeros((0, columns), dtype=np.bool_)
        self._straight = np.zeros((0, columns), dtype=np.bool_)
        self._last_name: tuple[str, np.uint64] | None = None

    def _derived(self, purpose: str) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._secret, digest_size=32).digest()

    def _words(self, purpose: str) -> Words:
        return np.frombuffer(self._derived(purpose), dtype="<u8").astype(np.uint64)

    def _named_values(self, names: Sequence[str]) -> Words:
        key = self._derived("categories")
        return np.array([_hash_of_text(key, name) for name in names], dtype=np.uint64)

    def see(self, block: Block, clock: str | None) -> None:
        """Take in the rows of a private ``block``, whose times are of a ``clock``."""
        if not len(block):
            return
        if block.values.dtype == object:
            values, bits = self._of_any_kind(block.values, block.missing)
        else:
            values = np.asarray(block.values, dtype=np.float64)
            bits = self._bits_of(values)
        part = Block(values, block.missing, block.ids, block.counts, block.starts, block.times)
        self._see_rows(part, bits, values, clock)
        self._sequences.see(part, bits, values)

    def _bits_of(self, values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Values as words: in single precision, which all formats have, and -0 is 0."""
        if self._codes is None:
            with np.errstate(over="ignore"):
                single = values.astype(np.float32)
            single += np.float32(0)
            return single.view(np.uint32)
        bits = np.empty(values.shape, dtype=np.uint64)
        for column, codes in enumerate(self._codes):
            bits[:, column] = codes[np.maximum(values[:, column].astype(np.int64), 0)]
        return bits

    def _of_any_kind(
        self, cells: npt.NDArray[Any], missing: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
        """Cells of rows that are only moved: numbers as ever, text as names of categories."""
        values, bits = np.zeros(cells.shape), np.zeros(cells.shape, dtype=np.uint64)
        for column in range(cells.shape[1]):
            present = ~missing[:, column]
            own = cells[present, column]
            if all(isinstance(cell, (int, float, np.number)) for cell in own):
                values[present, column] = own.astype(np.float64)
                bits[:, column] = self._bits_of(values[:, column : column + 1])[:, 0]
                continue
            names, codes = np.unique([str(cell) for cell in own], return_inverse=True)
            values[present, column] = codes
            bits[present, column] = self._named_values(names.tolist())[codes]
        return values, bits

    def _see_rows(
        self,
        part: Block,
        bits: npt.NDArray[Any],
        values: npt.NDArray[np.float64],
        clock: str | None,
    ) -> None:
        ticks = part.times
        if ticks is None or clock is None:
            ticks = within(part.counts) + np.repeat(part.starts, part.counts)
        told = microseconds_of(clock or "index", ticks)
        while len(part) >> self._level > 2 * self._most_rows:
            self._level += 1
        hashes, rows = np.empty(len(part), np.uint64), np.empty(len(part), np.int64)
        ends = np.cumsum(part.counts)
        with np.errstate(over="ignore"):
            count = pick_rows(
                *(self._name_hashes(part.ids), ends, told, self._row_keys, _most(self._level)),
                *(hashes, rows),
            )
        chosen = rows[:count]
        self._hashes = np.concatenate([self._hashes, hashes[:count]])
        self._ticks = np.concatenate([self._ticks, told[chosen]])
        self._bits = np.concatenate([self._bits, bits[chosen].astype(np.uint64)])
        self._missing = np.concatenate([self._missing, part.missing[chosen]])
        places = chosen - (ends - part.counts)[np.searchsorted(ends, chosen, side="right")]
        straight = _straight(values, ticks, chosen, places)
        self._straight = np.concatenate([self._straight, straight])
        while len(self._hashes) > 2 * self._most_rows:
            self._thin()

    def _thin(self) -> None:
        self._level += 1
        keep = self._hashes <= _most(self._level)
        self._hashes, self._ticks = self._hashes[keep], self._ticks[keep]
        self._bits, self._missing = self._bits[keep], self._missing[keep]
        self._straight = self._straight[keep]

    def _name_hashes(self, ids: Sequence[str]) -> Words:
        hashes = np.empty(len(ids), dtype=np.uint64)
        for i, name in enumerate(ids):
            if self._last_name is None or self._last_name[0] != name:
                self._last_name = (name, _hash_of_text(self._names_key, name))
            hashes[i] = self._last_name[1]
        return hashes

    def finish(self) -> FreshSketch:
        """The sketch of all rows that were seen."""
        while len(self._hashes) > self._most_rows:
            self._thin()
        levels = _levels(self._hashes)
        kept = self._kept("rows", self._hashes)
        readings = np.zeros(self._bits.shape, dtype=np.uint64)
        for column in range(self._bits.shape[1]):
            # without the place of the column: one table may have fewer of them
            word = self._bits[:, column] ^ self._reading_key
            readings[:, column] = self._kept("readings", word, self._hashes)
        readings[self._missing] = 0
        samples = {"rows": Sample.of(kept, levels, self._level)}
        present = readings.ravel() != 0
        each = np.repeat(levels, readings.shape[1])
        samples["readings"] = Sample.of(readings.ravel()[present], each[present], self._level)
        readings[self._straight] = 0
        for number, (width, one) in enumerate(zip(WIDTHS, self._sequences.samples, strict=True)):
            runs = f"runs{width}"
            hashes = self._kept(runs, one.hashes)
            samples[runs] = Sample.of(hashes, _levels(one.hashes), one.level)
            words, of_series, level = self._sequences.series(number)
            samples[f"series{width}"] = Sample.of(self._kept(runs, words), of_series, level)
        return FreshSketch(
            samples,
            tuple(one.repeated for one in self._sequences.samples),
            self._named,
            row_hashes=kept,
            row_levels=levels,
            reading_hashes=readings,
            agreement=tuple(self._agreement(column) for column in range(self._bits.shape[1])),
        )

    def _kept(self, kind: str, words: Words, places: Words | None = None) -> Words:
        """What is kept of a hash: AES of it under a key of its kind."""
        where = np.zeros(len(words), dtype=np.uint64) if places is None else places
        return fingerprints(self._derived(f"kept {kind}"), where, words)

    def _agreement(self, column: int) -> float:
        """How often two rows have one value: any two, or two of different series at one time."""
        present = ~(self._missing[:, column] | self._straight[:, column])
        bits, ticks = self._bits[present, column], self._ticks[present]
        anywhere = _pairs(np.unique(bits, return_counts=True)[1]) / max(
            _pairs(np.array([len(bits)])), 1.0
        )
        together = _pairs(np.unique(ticks, return_counts=True)[1])
        if together < SMALLEST:
            return float(anywhere)
        both = np.stack([ticks.view(np.uint64), bits], axis=1)
        at_once = _pairs(np.unique(both, axis=0, return_counts=True)[1])
        return float(max(anywhere, at_once / together))


def _straight(
    values: npt.NDArray[np.float64],
    ticks: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Which rows lie on the line through the two before, or have none: constants, counters."""
    before, first = np.maximum(rows - 1, 0), np.maximum(rows - 2, 0)
    rise, earlier = values[rows] - values[before], values[before] - values[first]
    slope = rise * (ticks[before] - ticks[first])[:, None]
    old = earlier * (ticks[rows] - ticks[before])[:, None]
    line = np.abs(slope - old) <= 1e-3 * np.maximum(np.abs(slope), np.abs(old))
    return np.asarray(line | (places < 2)[:, None], dtype=np.bool_)


def _pairs(counts: npt.NDArray[np.int64]) -> float:
    return float((counts.astype(np.float64) * (counts - 1.0) / 2).sum())


def _hash_of_text(key: bytes, text: str) -> np.uint64:
    data = text.encode(errors="surrogatepass")
    return np.uint64(
        int.from_bytes(hashlib.blake2b(data, key=key, digest_size=8).digest(), "little")
    )
