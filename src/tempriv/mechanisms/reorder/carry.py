"""Rows of any kind carried to the slots that an order mechanism decides on.

The mechanism never sees a value. Given how many rows have come in, it names for each output slot
the step of the row that goes there, or none; the rows are then moved whole.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import EMPTY, Block, Flags, together, within
from tempriv.errors import DataError, StateError, require
from tempriv.mechanisms.domains import Integers, OpaqueRows
from tempriv.mechanisms.reorder._kernels import Carriage
from tempriv.sampling.keys import EPOCH
from tempriv.sampling.keystream import StepRange

if TYPE_CHECKING:
    from tempriv.mechanisms.base import Mechanism, NoiseSource, SeriesState

Values = npt.NDArray[Any]
"""Rows of any columns: numbers of one type, or objects."""

PART = 1 << 17
"""Rows of one series decided at a time, so that what is worked on stays in the cache."""

PLAIN = (str, bool, int, float)
MOVABLE = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
KINDS: dict[type, str] = {int: "i", float: "f", bool: "b"}
ONE_ROW = "readings: give one value, or one row of values, per time step"


@dataclass(frozen=True)
class Pool:
    """All rows that may come out.

    Parameters:
        rows: of each series those of earlier blocks, then those of the block at hand.
        first: the place of the first of the latter, for each series.
    """

    rows: Block
    first: Integers


PendingRows = Block | Pool | None
"""The last rows of each series before the block at hand, where it goes on; its counts may be 0.
Or the whole pool, from who can make it at once."""


def rows_of(values: object, series: str, start: int) -> Block:
    """Rows of one series from anything numpy understands; None and masked entries are missing.

    Parameters:
        values: one value or one row of values for each step.
        series: its id.
        start: the step of the first.

    >>> rows_of(["on", None, "off"], "door", 0).missing[:, 0].tolist()
    [False, True, False]
    """
    array = np.ma.asarray(values if isinstance(values, np.ndarray) else _as_they_are(values))
    if array.dtype.kind not in "iufb":
        array = np.ma.asarray(array.astype(object))
    require(1 <= array.ndim <= 2, ONE_ROW, DataError)
    array = array[:, None] if array.ndim == 1 else array
    missing = np.array(np.ma.getmaskarray(array))
    plain = array.data
    if plain.dtype == object:
        missing |= np.array([[value is None for value in row] for row in plain], dtype=np.bool_)
        kinds = {type(value) for value in plain[~missing]}
        strange = sorted(kind.__name__ for kind in kinds if kind not in PLAIN)
        require(
            not strange,
            f"readings of type {', '.join(strange)}: must be numbers, text, truth values or None",
            DataError,
        )
    counts, starts = np.array([len(plain)]), np.array([start])
    return Block(plain, missing, (series,), counts, starts)


def is_flat(values: object) -> bool:
    """Whether ``values`` are one a step, or one alone, and not rows of values."""
    if isinstance(values, np.ndarray):
        return values.ndim < 2
    return is_single(values) or not any(map(_is_row, _listed(values)))


def is_single(values: object) -> bool:
    """Whether ``values`` are one value."""
    return (
        values is None
        or np.isscalar(values)
        or (isinstance(values, np.ndarray) and values.ndim == 0)
    )


def _listed(values: object) -> list[object]:
    assert isinstance(values, Iterable)
    return list(values)


def _as_they_are(values: object) -> Values:
    """A list as an array that keeps 1 apart from 1.0 and "1": numbers of one kind, or objects."""
    given = _listed(values)
    wide = bool(given) and _is_row(given[0])
    require(all(_is_row(row) == wide for row in given), ONE_ROW, DataError)
    rows = [_listed(row) if wide else [row] for row in given]
    width = len(rows[0]) if wide else 1
    require(all(len(row) == width for row in rows), ONE_ROW, DataError)
    plain = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        plain[i] = [_plain(value) for value in row]
    kinds = {type(value) for value in plain.flat}
    if len(kinds) == 1 and kinds <= KINDS.keys():
        numbers = np.array(plain.tolist())  # what fits no number of 64 bits stays an object
        plain = numbers if numbers.dtype.kind == KINDS[kinds.pop()] else plain
    return plain if wide else plain[:, 0]


def _is_row(value: object) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _plain(value: object) -> object:
    if value is np.ma.masked:
        return None
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def is_movable(dtype: np.dtype[np.generic]) -> bool:
    """Whether kernels take numbers of a ``dtype``; all others are moved by numpy."""
    return dtype.isnative and dtype.str[1:] in MOVABLE


def finite(block: Block) -> bool:
    """Whether no number in a ``block`` is NaN or infinite, missing ones aside."""
    values = block.values
    if values.dtype == object:
        there = values[~block.missing]
        return all(not isinstance(value, float) or math.isfinite(value) for value in there)
    return bool((np.isfinite(values) | block.missing).all())


def move_block(
    mechanism: Mechanism,
    block: Block,
    runs: Sequence[StepRange],
    memory: Integers,
    held: PendingRows,
    ending: bool,
) -> Block:
    """The rows that come out while those of the block come in.

    Parameters:
        mechanism: what they pass through.
        block: the rows that come in.
        runs: the steps of each series, with its key.
        memory: what is remembered of each series, brought up to date.
        held: the earlier rows that may still come out.
        ending: whether those come out too that do so after the last row has come in.
    """
    from tempriv.mechanisms.base import KeyedNoise, SeriesState

    form = mechanism.domain
    assert isinstance(form, OpaqueRows)
    further = form.latency if ending else 0
    counts = block.counts
    if further:
        counts = counts + further
        runs = [StepRange(run.key, run.start, run.count + further) for run in runs]
    whole = held if isinstance(held, Pool) else Pool(pool_of(block, held), first_of(block, held))
    pool, first = whole.rows, whole.first
    absent = np.zeros((int(counts.sum()), 1), dtype=np.bool_)
    for end in np.cumsum(counts).tolist() if further else ():
        absent[end - further : end] = True
    out = Block(
        values=np.empty((int(counts.sum()), pool.values.shape[1]), dtype=pool.values.dtype),
        missing=np.empty((int(counts.sum()), pool.values.shape[1]), dtype=np.bool_),
        ids=block.ids,
        counts=counts,
        starts=block.starts,
        status=np.zeros(int(counts.sum()), dtype=np.int8),
    )
    moves = Moves(mechanism, pool, _newest(mechanism, counts, first), out)
    for low, high in moves.cuts():
        state = SeriesState(
            counts if high - low == len(out) else np.array([high - low]),
            block.starts + low,
            absent[low:high],
            memory,
        )
        if high - low < len(out):
            # link by link, not from the first one each time
            key = runs[0].key.at_epoch((int(block.starts[0]) + low) // EPOCH)
            runs = [StepRange(key, int(block.starts[0]) + low, high - low)]
        moves.make(state, KeyedNoise(runs), low)
    return said_of(form.latency, out, pool, first)


def said_of(latency: int, out: Block, pool: Block, first: Integers) -> Block:
    """What comes out of so many steps ago; slots that would lie before a series say nothing.

    Parameters:
        latency: how many steps after its own a slot comes out.
        out: what comes out at each step.
        pool: the rows of each series, with their times.
        first: the place in it of each series' first row that came in with these slots.
    """
    counts, starts = out.counts, out.starts
    if not latency:
        times = None if pool.times is None else pool.times[len(pool.times) - len(out) :]
        return replace(out, times=times)
    late = np.minimum(np.maximum(latency - starts, 0), counts)
    rows = within(counts) if len(late) != 1 or pool.times is not None else None
    shown: slice | Flags = slice(int(late[0]), None) if len(late) == 1 else slice(None)
    if len(late) != 1:
        assert rows is not None
        shown = rows >= np.repeat(late, counts)
    times = None
    if pool.times is not None:
        assert rows is not None
        times = pool.times[(rows + np.repeat(first - latency, counts))[shown]]
    assert out.status is not None
    return Block(
        values=out.values[shown],
        missing=out.missing[shown],
        ids=out.ids,
        counts=counts - late,
        starts=np.maximum(starts - latency, 0),
        times=times,
        status=out.status[shown],
    )


@dataclass(frozen=True)
class Moves:
    """Rows on their way from a pool to their slots.

    Parameters:
        mechanism: what decides on them.
        pool: the rows of each series.
        newest: the place in it of the newest row when each slot comes out; one number for a single
            series, whose slots follow row by row.
        out: the slots.
    """

    mechanism: Mechanism
    pool: Block
    newest: Integers
    out: Block

    @functools.cached_property
    def _gaps(self) -> bool:
        return bool(self.pool.missing.any())

    @functools.cached_property
    def _together(self) -> bool:
        """Whether rows are carried while a kernel decides on them."""
        form = self.mechanism.domain
        values = self.pool.values
        plain = is_movable(values.dtype) and values.flags.c_contiguous and values.shape[1] == 1
        single = len(self.newest) == 1 and len(self.pool) > 0 and not self.mechanism.takes_whole
        return plain and single and isinstance(form, OpaqueRows) and form.latency == 0

    def cuts(self) -> Iterator[tuple[int, int]]:
        """What to decide on at a time: all series, or one long series in parts."""
        size = PART if len(self.newest) == 1 else max(len(self.out), 1)
        for low in range(0, len(self.out), size):
            yield low, min(low + size, len(self.out))

    def make(self, state: SeriesState, noise: NoiseSource, low: int) -> None:
        """Decide on some of the rows, and carry them.

        Parameters:
            state: where their series stand.
            noise: where randomness comes from.
            low: the first of their slots.
        """
        pool, out, part = self.pool, self.out, slice(low, low + len(state.missing))
        assert out.status is not None
        state.status = out.status[part]
        if self._together:
            place = np.uint64(self.newest[0] + low)
            # as their bits: kernels are compiled for a size of values, not for each type
            bits = f"u{pool.values.itemsize}"
            rows = pool.values.reshape(-1).view(bits)
            slots = out.values[part].reshape(-1).view(bits)
            state.carriage = Carriage(rows, place, slots, state.status)
        ages = self.mechanism.perturb(_nothing(len(state.missing)), noise, state)[:, 0]
        if self._gaps or not self._together:
            single = len(self.newest) == 1
            last = self.newest + low + np.arange(len(ages)) if single else self.newest[part]
            places = np.where(ages < 0, 0, last - ages)
        if not self._together:
            state.status[ages < 0] = EMPTY
            if len(pool):
                out.values[part] = pool.values[places]
        gone = out.missing[part]
        gone[:] = (state.status == EMPTY)[:, None]
        if self._gaps:
            gone |= pool.missing[places]
        if gone.any():
            # a slot that is empty was passed by a reading, which nobody is to see
            dtype = out.values.dtype
            nothing = np.array(None if dtype.hasobject else 0, dtype=dtype)
            np.putmask(out.values[part], gone, nothing)


def _newest(mechanism: Mechanism, counts: Integers, first: Integers) -> Integers:
    """The place in the pool of the newest row when each slot comes out.

    One number stands for the first slot of a single series, whose other slots follow row by row.
    """
    if mechanism.takes_whole:
        return np.repeat(first + counts - 1, counts)
    if len(counts) == 1:
        return first
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


def _nothing(rows: int) -> Integers:
    """What the mechanism sees of the readings."""
    return np.zeros((rows, 0), dtype=np.int64)


def first_of(block: Block, held: Block | None) -> Integers:
    """The place of each series' first row of a ``block`` in the pool, after those ``held``."""
    behind = 0 if held is None else held.counts
    return np.asarray(np.cumsum(block.counts + behind) - block.counts, dtype=np.int64)


def pool_of(block: Block, held: Block | None) -> Block:
    """The rows of each series in a ``block`` after those ``held`` of it."""
    if held is None or not len(held):
        return block
    both = held.counts + block.counts
    nth = within(both)
    earlier = nth < np.repeat(held.counts, both)
    here = nth - np.repeat(held.counts - np.cumsum(block.counts) + block.counts, both)
    there = nth + np.repeat(np.cumsum(held.counts) - held.counts, both)
    rows = np.where(earlier, there, len(held.values) + here)
    times = None
    if block.times is not None:
        assert held.times is not None
        times = np.concatenate([held.times, block.times])[rows]
    return Block(
        values=together([held.values, block.values])[rows],
        missing=np.concatenate([held.missing, block.missing])[rows],
        ids=block.ids,
        counts=block.counts,
        starts=block.starts,
        times=times,
    )


def kept(mechanism: Mechanism, held: Block | None, block: Block) -> Block | None:
    """Of the last series of a block, the rows that can still come out.

    Parameters:
        mechanism: what they pass through.
        held: those that could before.
        block: what came in.
    """
    form = mechanism.domain
    reach = form.reach if isinstance(form, OpaqueRows) else form.latency
    if not block.ids or not (isinstance(form, OpaqueRows) or (reach and block.times is not None)):
        return None
    last = block.part(len(block.ids) - 1, len(block.ids))
    if held is not None and last.starts[0] > 0 and len(block.ids) == 1:
        last = pool_of(last, held)
    start = max(0, len(last.values) - reach)
    rows = last.values[start:]
    return Block(
        values=rows.copy(),
        missing=last.missing[start:].copy(),
        ids=last.ids,
        counts=np.array([len(rows)]),
        starts=last.starts,
        times=None if last.times is None else last.times[start:].copy(),
    )


def with_none(values: Values, missing: Flags) -> Values:
    """The ``values``, which are objects, with None where ``missing``."""
    shown = values.copy()
    shown[missing] = None
    return shown


def to_state(block: Block | None) -> list[str]:
    """The held rows of a ``block`` for a saved state: as JSON, which keeps them as they are."""
    if block is None or not len(block):
        return []
    kind = "plain" if block.values.dtype == object else block.values.dtype.str
    rows = with_none(block.values.astype(object), block.missing).tolist()
    return [kind, json.dumps(rows)]


def from_state(saved: list[str], series: str, count: int) -> Block | None:
    """The held rows again; what is not as it was saved is refused.

    Parameters:
        saved: what ``to_state`` gave.
        series: its id.
        count: how many rows there must be.
    """
    if not saved and not count:
        return None
    try:
        kind, text = saved
        rows = json.loads(text)
        missing = np.array([[value is None for value in row] for row in rows], dtype=np.bool_)
        if kind == "plain":
            values = np.empty(missing.shape, dtype=object)
            values[:] = rows
        else:
            filled = [[0 if value is None else value for value in row] for row in rows]
            values = np.array(filled, dtype=np.dtype(kind))
        sound = missing.ndim == 2 and values.shape == missing.shape and len(rows) == count > 0
    except (ValueError, TypeError, RecursionError):
        sound = False
    require(sound, "the stream state is damaged: the rows it holds are not whole", StateError)
    return Block(values, missing, (series,), np.array([len(rows)]), np.array([0]))


def bits(values: Values, missing: Flags) -> npt.NDArray[np.uint64]:
    """Each reading as 64 bits, for a fingerprint: unlike readings have unlike bits, but by chance.

    Numbers of one value are one reading, whatever their kind.

    Parameters:
        values: the readings.
        missing: which of them are missing.
    """
    numbers = np.full(values.shape, np.nan)
    if values.dtype == object:
        apart = ~missing
        for place in zip(*np.nonzero(apart), strict=True):
            value = values[place]
            if isinstance(value, float) or (not isinstance(value, str) and abs(value) < 2**53):
                numbers[place], apart[place] = value, False
    else:
        numbers[~missing] = values[~missing]
        # a float of 2^53 or more may stand for several whole numbers
        large = np.abs(np.nan_to_num(numbers)) >= 2.0**53
        apart = large & ~missing & (values.dtype.kind in "iu")
    coded = (numbers + 0.0).view(np.uint64)  # -0.0 and 0.0 are one reading
    for place in zip(*np.nonzero(apart), strict=True):
        value = values[place]
        text = f"text {value!r}" if isinstance(value, str) else f"number {int(value)}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        coded[place] = int.from_bytes(digest, "big")
    return coded
