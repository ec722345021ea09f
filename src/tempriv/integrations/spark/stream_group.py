"""A group of series of one stream, going on together: what a Spark task does with their readings.

Noise depends on key, mechanism, series and step only, so a batch that is run again gives the same
bits. It must then be the same batch: a keyed digest of everything consumed goes with the state, and
a record beside the key file says what was handed out last. A state that does not lead there (an
old or a deleted checkpoint) and other readings in the place of those handed out are refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tempriv.data.arrow import from_numpy, nulls, take_text, to_numpy
from tempriv.data.files import read_at, sync_data, sync_directory, write_at
from tempriv.data.locks import FileLock
from tempriv.data.series import STATUS, STATUSES, Block, Flags
from tempriv.errors import DataError, KeyReuseError, StateError, require
from tempriv.integrations.spark.stream_state import (
    COUNTED,
    MARK,
    NEVER,
    SERIES,
    TIME,
    GroupCheckpoint,
    Setting,
)
from tempriv.mechanisms.domains import Floats, Integers
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.mechanisms.perturb import limit_of, on_grid, perturb_block
from tempriv.privacy import serialization
from tempriv.releases.blocks import COUNT_STARTS, hides_times
from tempriv.sampling.keystream import StepRange

LARGEST_VALUE = 1e300  # what is past all bounds is still finite


@dataclass
class Group:
    """One group of series under the key of a stream, batch after batch."""

    setting: Setting
    number: int
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._key = self.setting.key()
        self._digest = serialization.digest(self.setting.mechanism)
        self._mark = self._key.again("spark stream", "history").cipher_key("history")
        self._most = limit_of(self.setting.mechanism)
        self._most_landmarks = self.setting.mechanism.most_landmarks

    def advance(self, state: bytes | None, readings: Any) -> tuple[bytes | None, Any]:
        """The next state and the rows that come out, for the readings of one batch.

        Where none of them is next in its series the state stays as it is, and nothing comes out.

        Parameters:
            state: before the batch; None at the beginning.
            readings: of the batch.
        """
        self.counts = dict.fromkeys(COUNTED, 0) | {"readings": len(readings)}
        mechanism = self.setting.mechanism
        if state is None:
            first = self._hash(b"", self.setting.digest.encode(), str(self.number).encode())
            checkpoint = GroupCheckpoint.fresh(self.setting, first, self._carried(readings))
        else:
            checkpoint = GroupCheckpoint.from_bytes(state, self._mark, mechanism.memory_size)
        taken, which = self._take(checkpoint, readings)
        if not len(taken):
            return state, None
        block, touched = self._block(checkpoint, taken, which)
        before, checkpoint.history = (
            checkpoint.history,
            self._consumed(checkpoint.history, block, taken),
        )
        # on the record before anything is out: whatever fails, this batch stands for these steps
        self._record(before, checkpoint.history, fresh=state is None)
        memory = checkpoint.memory[touched]
        runs = [
            StepRange(self._key.again(self._digest, name), start, count)
            for name, start, count in zip(
                block.ids, block.starts.tolist(), block.counts.tolist(), strict=True
            )
        ]
        held = self._held(checkpoint, touched, block)
        out = perturb_block(mechanism, block, runs, memory, held=held)
        times = out.times if mechanism.domain.latency else block.times
        assert times is not None and block.times is not None
        pool = pa.concat_tables([checkpoint.rows, self._carried(taken)])
        checkpoint.memory[touched] = memory
        checkpoint.steps[touched] += block.counts
        checkpoint.last[touched] = block.times[np.cumsum(block.counts) - 1]
        self._keep(checkpoint, pool, which)
        self.counts["released"] = len(out)
        return checkpoint.to_bytes(self._mark), self._released(out, times, pool)

    def _hash(self, *parts: bytes) -> bytes:
        state = hashlib.blake2b(key=self._mark, digest_size=32)
        for part in parts:
            state.update(len(part).to_bytes(8, "big") + part)
        return state.digest()

    def _consumed(self, history: bytes, block: Block, taken: Any) -> bytes:
        """A keyed digest of all that was consumed, in an order of its own, not that of arrival."""
        assert block.times is not None
        marks = to_numpy(_column(taken, MARK), np.int64)
        names = json.dumps(block.ids).encode()
        return self._hash(
            history, names, *(a.tobytes() for a in (block.counts, block.times, marks))
        )

    def _carried(self, readings: Any) -> Any:
        """Of each row what can be asked for later: its time, and itself where rows are moved."""
        return readings.select([TIME, *(self.setting.columns if self.setting.moves else ())])

    def _take(self, checkpoint: GroupCheckpoint, readings: Any) -> tuple[Any, Integers]:
        """The readings that are next in their series, in order, and whose each is."""
        complete = pa.compute.and_(readings[SERIES].is_valid(), readings[TIME].is_valid())
        readings_complete = readings.filter(complete)
        self.counts["unreadable"] += len(readings) - len(readings_complete)
        coded = _column(readings_complete, SERIES).dictionary_encode()
        names = coded.dictionary.to_pylist()
        # by name, so that neither numbers nor digests depend on who came first
        ranks = np.empty(len(names), dtype=np.int64)
        ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        rank = ranks[to_numpy(coded.indices, np.int32)]
        times = to_numpy(_column(readings_complete, TIME), np.int64)
        order = np.lexsort((to_numpy(_column(readings_complete, MARK), np.int64), times, rank))
        which = checkpoint.numbers_of(sorted(names))[rank[order]]
        return self._pass(checkpoint, readings_complete.take(order), which, times[order])

    def _pass(
        self, checkpoint: GroupCheckpoint, rows: Any, which: Integers, times: Integers
    ) -> tuple[Any, Integers]:
        """Rows that are in order of series and time, without those that are not released."""

        def without(dropped: Flags, why: str) -> None:
            """Leave out ``dropped`` rows and count them under ``why``."""
            nonlocal rows, which, times
            if dropped.any():
                self.counts[why] += int(np.count_nonzero(dropped))
                rows = rows.filter(pa.array(~dropped))
                which, times = which[~dropped], times[~dropped]

        repeated = np.zeros(len(which), dtype=np.bool_)
        repeated[1:] = (which[1:] == which[:-1]) & (times[1:] == times[:-1])
        without(repeated | (times <= checkpoint.last[which]), "late")
        if hides_times(self.setting.mechanism):
            # nothing but the number of a reading may stand beside it
            first = times[_firsts(which)]
            begun, last = checkpoint.last[which] != NEVER, checkpoint.last[which]
            first = np.where(
                begun, last + 1, np.where(np.isin(first, COUNT_STARTS), first, COUNT_STARTS[0])
            )
            without(times != first + _ranks(which), "unreadable")
        without(self._refused(rows), "unreadable")
        if self._most_landmarks is not None:
            numbers = self._numbers(rows)
            marks = (numbers[:, -1] != 0) & ~np.isnan(numbers[:, :-1]).all(axis=1)
            past = np.cumsum(marks) - marks
            past = past - past[_firsts(which)] + self._landmarks(checkpoint)[which]
            without(marks & (past >= self._most_landmarks), "beyond")
        if self._most is not None:
            without(checkpoint.steps[which] + _ranks(which) >= self._most, "beyond")
        return rows, which

    def _landmarks(self, checkpoint: GroupCheckpoint) -> Integers:
        mechanism, memory = self.setting.mechanism, checkpoint.memory
        counts = [mechanism.landmarks_so_far(memory[i : i + 1]) for i in range(len(memory))]
        return np.array(counts, dtype=np.int64)

    def _numbers(self, rows: Any) -> Floats:
        """The values of rows, NaN where there is none; what is past all bounds is still finite."""
        values = np.empty((len(rows), len(self.setting.columns)))
        for i, name in enumerate(self.setting.columns):
            column = _column(rows, name)
            values[:, i] = np.where(nulls(column), np.nan, to_numpy(column, np.float64))
        return np.clip(values, -LARGEST_VALUE, LARGEST_VALUE)

    def _refused(self, rows: Any) -> Flags:
        """Rows that the mechanism is not made for, such as a count that is no whole number."""
        refused = np.zeros(len(rows), dtype=np.bool_)
        if self.setting.moves or not len(rows):
            return refused

        def is_refused(values: Floats) -> bool:
            """Whether the mechanism refuses these ``values``."""
            try:
                on_grid(self.setting.mechanism, _block_of(values, (SERIES,) * len(values)))
            except DataError:
                return True
            return False

        values = self._numbers(rows)
        if is_refused(values):
            refused[:] = [is_refused(row[None]) for row in values]
        return refused

    def _block(
        self, checkpoint: GroupCheckpoint, taken: Any, which: Integers
    ) -> tuple[Block, Integers]:
        """The readings as the mechanism takes them, and which series they are of."""
        edges = np.flatnonzero(np.diff(which, prepend=-1))
        touched = which[edges]
        places = np.arange(len(which))[:, None] + len(checkpoint.rows)
        values = places if self.setting.moves else self._numbers(taken)
        block = _block_of(values, tuple(checkpoint.names[i] for i in touched.tolist()))
        block.counts = np.diff(edges, append=len(which))
        block.starts = checkpoint.steps[touched]
        block.times = to_numpy(_column(taken, TIME), np.int64)
        return block, touched

    def _held(self, checkpoint: GroupCheckpoint, touched: Integers, block: Block) -> Block | None:
        """Of the series at hand, the rows that may still come out."""
        if not self.setting.reach:
            return None
        counts = checkpoint.held[touched]
        first = (np.cumsum(checkpoint.held) - checkpoint.held)[touched] - np.cumsum(counts) + counts
        places = np.arange(int(counts.sum())) + np.repeat(first, counts)
        shape = (len(places), block.values.shape[1])
        # where rows are not moved their values are gone, and only the times are asked for
        values: Any = places[:, None] if self.setting.moves else np.zeros(shape)
        times = to_numpy(_column(checkpoint.rows, TIME), np.int64)[places]
        missing = np.zeros(shape, dtype=np.bool_)
        return Block(values, missing, block.ids, counts, np.zeros_like(counts), times)

    def _keep(self, checkpoint: GroupCheckpoint, pool: Any, which: Integers) -> None:
        """Of every series its last rows, as many as can still come out."""
        before = np.repeat(np.arange(len(checkpoint.names)), checkpoint.held)
        series = np.concatenate([before, which])
        order = np.argsort(series, kind="stable")
        counts = np.bincount(series, minlength=len(checkpoint.names))
        remaining = np.repeat(np.cumsum(counts), counts) - np.arange(len(series))
        checkpoint.rows = pool.take(order[remaining <= self.setting.reach])
        checkpoint.held = np.minimum(counts, self.setting.reach)

    def _record(self, before: bytes, after: bytes, fresh: bool) -> None:
        """Note what is about to be handed out; refused where something else was."""
        path = self.setting.records / str(self.number)
        require(
            path.parent.is_dir(),
            f"{path.parent}: no such folder here; it belongs to the key file, and every executor "
            "must see both, as on a disk they share",
            StateError,
        )
        with FileLock(path, math.inf) as lock:
            recorded = read_at(lock.descriptor, 64, 0)
            follows = recorded[32:] == before or (not recorded and fresh)
            require(
                follows or recorded == before + after,
                "the checkpoint does not lead to what was released with this key file: it was "
                "deleted or is an old one, or the readings of the last batch are no longer the "
                "same. Other readings would get the same noise; start a new stream with a new key "
                "file, checkpoint and output",
                KeyReuseError,
            )
            write_at(lock.descriptor, before + after, 0)
            sync_data(lock.descriptor)
        if not recorded:
            sync_directory(path.parent)

    def _released(self, out: Block, times: Integers, pool: Any) -> Any:
        """Released rows as a table."""
        whose = np.repeat(np.arange(len(out.ids)), out.counts)
        columns = {SERIES: take_text(out.ids, whose), TIME: from_numpy(times, pa.int64())}
        shown = without_landmarks(self.setting.mechanism.domain)
        for i, name in enumerate(self.setting.columns):
            if self.setting.moves:
                places = from_numpy(out.values[:, 0], pa.int64(), out.missing[:, 0])
                columns[name] = _column(pool, name).take(places)
            elif i >= out.values.shape[1]:
                continue  # marks of landmarks do not come out
            elif shown.categories is None:
                columns[name] = from_numpy(out.values[:, i], pa.float64(), out.missing[:, i])
            else:
                columns[name] = take_text(shown.categories[i], out.values[:, i], out.missing[:, i])
        if self.setting.mechanism.has_status:
            assert out.status is not None
            columns[STATUS] = take_text(STATUSES, out.status.astype(np.int64))
        return pa.table(columns)


def _column(table: Any, name: str) -> Any:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _block_of(values: Any, ids: tuple[str, ...]) -> Block:
    """Rows of one series, or one row of each."""
    missing = np.isnan(values) if values.dtype == np.float64 else np.zeros(values.shape, np.bool_)
    counts = np.full(len(ids), 1 if len(ids) == len(values) else len(values), dtype=np.int64)
    starts = np.zeros(len(ids), dtype=np.int64)
    return Block(np.where(missing, 0, values), missing, ids, counts, starts)


def _firsts(which: Integers) -> Integers:
    """For each row, where its series begins."""
    edges = np.flatnonzero(np.diff(which, prepend=-1))
    return np.repeat(edges, np.diff(edges, append=len(which)))


def _ranks(which: Integers) -> Integers:
    """For each row, how many of its series stand before it."""
    return np.arange(len(which)) - _firsts(which)
