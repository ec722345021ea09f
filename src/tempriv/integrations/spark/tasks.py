"""What a Spark task does: some whole series, sorted, through the code that releases a file.

A task has the keys of series by name and never the secret that they come from. It hands its rows
on as they come out, with a report at its end; the driver adds the reports up and decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from tempriv.data.arrow import from_text
from tempriv.data.boundary import public_batch
from tempriv.data.clock import Clock
from tempriv.data.series import Integers, SeriesTable
from tempriv.errors import DataError, TemprivError, require
from tempriv.integrations.spark.accumulate import FirstTimes, Report
from tempriv.mechanisms import registry
from tempriv.releases.owner_file import LANDMARK, SPENT
from tempriv.releases.run import ReleaseRun
from tempriv.sampling.keys import Key, SeriesKey

BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 24
"""Batches are joined up to so many: a call for ten thousand rows costs more than its work."""

OWNER_COLUMNS = {name: f"tempriv {name}" for name in (LANDMARK, SPENT)}
"""What stays with the data owner, by the columns that it is carried in."""


class LentKeys:
    """Keys of series by name, each handed out once; for tasks, in the place of a ``Key``."""

    seed = None

    def __init__(self, secrets: Mapping[str, bytes], release_id: str):
        self.release_id = release_id
        self.begun: set[str] = set()
        self._secrets = secrets

    def series(self, spec_digest: str, series: str) -> SeriesKey:
        """The series key of one of the ``series``, for the ``spec_digest`` of the mechanism."""
        require(
            series in self._secrets and series not in self.begun,
            "the table changed while it was read: its series are no longer those that it had at "
            "first; write it to files that stay as they are, and release those",
            DataError,
        )
        self.begun.add(series)
        return SeriesKey(self._secrets[series], 0)


@dataclass(frozen=True, repr=False)
class Work:
    """Releases the rows of one partition; ``secrets`` is a broadcast of the keys of series."""

    series: SeriesTable
    mechanism: dict[str, Any]
    release_id: str
    clock: Clock
    calendar: Integers | None
    whole_number_ids: bool
    owner: bool
    secrets: Any
    reports: Any
    rows_at_once: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        keys = LentKeys(self.secrets.value, self.release_id)
        run = ReleaseRun(self.series, registry.decode(self.mechanism), cast(Key, keys))
        reading, times = run.reading, FirstTimes()
        run.times = cast(Any, times)
        reading.clock, reading.calendar = self.clock, self.calendar
        reading.whole_number_ids = self.whole_number_ids
        reading.sorted_rows = self._prepared(batches, run)
        owned: list[pa.RecordBatch] = []
        if self.owner:
            run.owner = owned.append
        refusal = None
        try:
            for batch in map(public_batch, run.rows()):
                for name, column in OWNER_COLUMNS.items() if owned else ():
                    batch = batch.append_column(column, owned[-1].column(name))
                owned.clear()
                yield batch
        except TemprivError as problem:
            # a task that fails is tried again, and Spark's logs would tell why
            refusal = problem
        summary, task = reading.summary, TaskContext.get()
        assert task is not None
        report = Report(
            series=len(keys.begun),
            rows=summary.rows,
            first=summary.first,
            last=summary.last,
            step=summary.step,
            filled=summary.filled,
            dropped=summary.dropped,
            longest=summary.longest,
            begin=tuple(times.found),
            problems=tuple(reading.problems.counts.items()),
            refusal=refusal,
        )
        self.reports.add({task.partitionId(): report})

    def _prepared(
        self, batches: Iterator[pa.RecordBatch], run: ReleaseRun
    ) -> Iterator[pa.RecordBatch]:
        for batch in joined(batches, self.rows_at_once):
            if run.passthrough is not None and not run.passthrough.kinds:
                run.passthrough.kinds = [field.type for field in list(batch.schema)[2:]]
            if pa.types.is_integer(batch.column(0).type):
                yield batch
            else:
                names = batch.column(0).dictionary_encode()
                columns = [names, *batch.columns[1:]]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def joined(
    batches: Iterable[pa.RecordBatch], row_limit: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The rows of ``batches`` in fewer batches, of ``row_limit`` rows or more."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= row_limit or size >= BATCH_BYTES:
            yield _one(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@dataclass(frozen=True, repr=False)
class Renaming:
    """Puts pseudonyms in the place of ids, before rows are divided and sorted by them.

    Where a row goes and what it stands beside would tell of its name otherwise.
    """

    names: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            codes = batch.column(0).dictionary_encode()
            known = [self.names.value[name] for name in codes.dictionary.to_pylist()]
            columns = [from_text(known).take(codes.indices), *batch.columns[1:]]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
