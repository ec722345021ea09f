"""What Python workers do for a Spark stream: readings are packed, released, and unpacked again.

Spark's ``transformWithState`` hands Python one row at a time and asks for the state key by key. So
the readings of a group of series travel as one row, before the shuffle and until they are released.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.data.arrow import to_numpy
from tempriv.integrations.spark.stream_group import Group
from tempriv.integrations.spark.stream_state import COUNTED, Setting, packed, unpacked

GROUP, PACKED = "group", "packed"
PACK_READINGS = 200_000  # readings that are split into groups together

PACKED_SHAPE = f"{GROUP} long, {PACKED} binary"
RELEASED_SHAPE = ", ".join([f"{PACKED} binary", *(f"{name} long" for name in COUNTED)])


def pack(batches: Iterator[Any]) -> Iterator[Any]:
    """Readings of ``batches`` as few rows: those of a group together."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= PACK_READINGS:
            yield _split(waiting)
            waiting = []
    if waiting:
        yield _split(waiting)


def _split(batches: list[Any]) -> Any:
    table = pa.Table.from_batches(batches).combine_chunks()
    # every row has a group: a series that is null is of one too
    which = to_numpy(table[GROUP].chunk(0), np.int64) if len(table) else np.zeros(0, np.int64)
    order = np.argsort(which, kind="stable")
    edges = np.flatnonzero(np.diff(which[order], prepend=-1))
    counts = np.diff(edges, append=len(order))
    table = table.drop_columns([GROUP]).take(order)
    parts = [
        packed(table.slice(low, count))
        for low, count in zip(edges.tolist(), counts.tolist(), strict=True)
    ]
    columns = [pa.array(which[order][edges]), pa.array(parts, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, [GROUP, PACKED])


def unpack(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows that ``batches`` hold packed."""
    for batch in batches:
        for packed_row in batch.column(0).drop_null():
            yield from unpacked(packed_row.as_buffer()).to_batches()


class GroupProcessor:
    """What Spark calls with the packed readings of a group; it carries no secret."""

    def __init__(self, setting: Setting):
        self.setting = setting

    def init(self, handle: Any) -> None:
        """Take hold of the state by Spark's ``handle``."""
        from pyspark.sql.types import BinaryType, StructType

        self._state = handle.getValueState("standing", StructType().add("state", BinaryType()))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Release the packed ``rows`` of the group ``key``; ``timerValues`` are not looked at."""
        from pyspark.sql import Row

        group = Group(self.setting, int(key[0]))
        saved = self._state.get()
        state = None if saved is None else bytes(saved[0])
        readings = pa.concat_tables([unpacked(row[PACKED]) for row in rows])
        after, released = group.advance(state, readings)
        if after is not state:
            self._state.update((after,))
        packed_rows = None if released is None else packed(released)
        yield Row(**{PACKED: packed_rows}, **group.counts)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiry: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Do nothing: no timer of ``key`` is set, so ``timerValues`` and ``expiry`` say nothing."""
        yield from ()

    def close(self) -> None:
        pass
