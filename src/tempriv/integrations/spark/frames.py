"""A Spark frame through a mechanism: the same bits as a file with the same rows and key.

Check, record durably, then run: for a frame this is, in this order,

1. what can be refused is, by its schema, its persons and the budget left, before any work;
2. the driver asks which series there are and takes the key of each from the ``Key``, which refuses
   a second input. Only these keys leave the driver, in a broadcast: Spark encrypts it on disks
   (``spark.io.encryption``), no plan, event log or checkpoint holds it, and it is destroyed after
   the job. The secret that they are derived from stays where it is;
3. one job divides the table by series, sorts it, releases it and keeps the result aside. If a
   ledger is to be charged it must be durable by then: it is written to the session's checkpoint
   directory, which a session on several machines must have. Otherwise it is in Spark's own
   encrypted store (a local checkpoint). Nobody has a name for it yet. A task that is tried again,
   or run twice, has the same rows and the same keys and gives the same bits;
4. the tasks' reports are added up: problems of any part refuse all of it, and what is aside is
   dropped;
5. the ledger is charged, durably. This is the point of no return, as for a file: a crash before it
   has released nothing, one after it loses budget and never privacy. A charge that fails drops
   what is aside, too;
6. the frame is handed out. It has no past: it is never computed again, from other input least of
   all. Without a ledger and a checkpoint directory, Spark may lose a part of it with a machine;
   then reading it fails: release again, with a new key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tempriv.data.clock import Clock
from tempriv.data.duckdb import INTEGERS
from tempriv.data.grid import read_calendar
from tempriv.data.series import ONLY_SERIES, SeriesTable
from tempriv.errors import UsageError, require
from tempriv.integrations.spark import tasks
from tempriv.integrations.spark.accumulate import ByPartition, add_up
from tempriv.integrations.spark.session import require_encryption, survives_machines
from tempriv.integrations.spark.tables import (
    arrow_batches,
    arrow_kinds,
    distinct,
    drop,
    dropped_if_refused,
    kept_aside,
    laid_out,
    persons_of,
    released_schema,
    table_of,
)
from tempriv.integrations.spark.tasks import OWNER_COLUMNS, Renaming, Work
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.privacy import guarantees, serialization
from tempriv.releases.description import with_receipt
from tempriv.releases.owner_file import RELEASE
from tempriv.releases.run import ReleaseRun, check_early
from tempriv.releases.spending import stated_spending
from tempriv.sampling.keys import Key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tempriv.ledger.spending import LandmarkSpending


@dataclass(frozen=True)
class Released:
    """A frame that may be handed out, and ``about``: the description of its release."""

    frame: DataFrame
    about: dict[str, Any]

    @property
    def guarantee(self) -> Any:
        return guarantees.decode(self.about["guarantee"])


class SparkReleaseRun:
    """One pass of a Spark frame through a mechanism under one key; as ``ReleaseRun``.

    ``series`` says how the frame is laid out. Its ``source`` is not read: it may be the path that
    the frame comes from, so that notes beside the file are found.
    """

    def __init__(
        self,
        frame: DataFrame,
        series: SeriesTable,
        mechanism: Mechanism,
        key: Key | None = None,
        pseudonyms: bool = False,
        partitions: int | None = None,
    ):
        require_encryption(frame.sparkSession)
        require(
            series.time is not None and series.duplicates == "refuse",
            "rows of a Spark frame have no order: name the column of times, and drop all but one "
            "of several readings at one time before",
            UsageError,
        )
        require(partitions is None or partitions > 0, f"partitions={partitions}: must be 1 or more")
        self.frame, self.partitions = frame, partitions
        self.owner: Callable[[pa.RecordBatch], None] | None = None
        self.run = ReleaseRun(series, mechanism, key, pseudonyms)
        self.table = table_of(frame)
        self.reading = self.run.reading
        named = [name for name in (series.series, series.person, *series.values) if name]
        self.table.require_columns(named)
        assert series.time is not None
        self.clock = Clock.of(series.time.split("+"), self.table)
        self.reading.clock, self.reading.summary.clock = self.clock, self.clock.kind
        kind = "" if series.series is None else self.table.types[series.series]
        self.reading.whole_number_ids = kind in INTEGERS and not pseudonyms
        if self.run.passthrough is not None:
            self.run.passthrough.kinds = arrow_kinds(frame, series.values)
        self.columns = laid_out(self.table, self.run, self.clock)

    @property
    def key(self) -> Key:
        return self.run.key

    @property
    def guarantee(self) -> Any:
        return self.run.guarantee

    @property
    def mechanism(self) -> Mechanism:
        return self.run.mechanism

    @property
    def spending(self) -> LandmarkSpending | None:
        """What is stated: executors count nothing together."""
        return stated_spending(self.mechanism)

    @property
    def scope(self) -> Scope:
        return self.run.scope

    def about(self, statements: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The description of the release, with the ``statements`` of its curator."""
        return self.run.about(statements)

    def try_linkage(self) -> None:
        """Nothing: readings do not pass by the driver."""

    def sketch_for(self, ledger: Ledger) -> None:
        """Make no sketch of rows for a ``ledger``: they do not pass by here."""

    sketch = None

    def keep_spelling(self, output: Any) -> None:
        """Keep nothing for ``output``: moved values are written anew, as Spark has read them
        already.
        """

    def materialized(self, owner: bool = False, durable: bool = False) -> DataFrame:
        """The released frame, aside, once nothing in it is refused any more.

        Parameters:
            owner: whether columns for the data owner are kept with it.
            durable: whether it is kept through the loss of machines.
        """
        run, summary, context = self.run, self.reading.summary, self.frame.sparkSession
        series = run.series
        summary.persons = persons_of(self.frame, series)
        ids = [ONLY_SERIES] if series.series is None else distinct(self.frame, series.series)
        summary.ids = ids
        published_ids = {name: run.key.pseudonym(name) if run.pseudonyms else name for name in ids}
        secrets = {name: run.key.series(run.digest, name).secret for name in published_ids.values()}
        spark = context.sparkContext
        lent_secrets, names = spark.broadcast(secrets), spark.broadcast(published_ids)
        reports = spark.accumulator({}, ByPartition())
        rows = self.frame.select(self.columns)
        if run.pseudonyms:
            rows = rows.mapInArrow(Renaming(names), rows.schema)
        parts = 1 if series.series is None else self.partitions
        by = ["s"] if parts is None else [parts, "s"]
        work = Work(
            series=replace(series, source=None),
            mechanism=serialization.encode(run.mechanism),
            release_id=run.key.release_id,
            clock=self.clock,
            calendar=None
            if series.calendar is None
            else read_calendar(series.calendar, self.clock),
            whole_number_ids=self.reading.whole_number_ids,
            owner=owner,
            secrets=lent_secrets,
            reports=reports,
            rows_at_once=tasks.BATCH_ROWS,
        )
        divided = rows.repartition(*by).sortWithinPartitions("s", "t")
        schema = released_schema(self.frame, run, self.clock, owner)
        try:
            aside = kept_aside(divided.mapInArrow(work, schema), durable)
        finally:
            lent_secrets.destroy()
            names.destroy()
        with dropped_if_refused(aside):
            add_up(list(reports.value.values()), self.reading, run.times)
            run.require_fitting()
        return aside

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Released rows, part by part, for a file; what its owner keeps goes to ``owner``."""
        marked = self.owner is not None and isinstance(self.run.mechanism.domain, WithLandmarks)
        aside = self.materialized(marked)
        try:
            for batch in arrow_batches(aside):
                if marked and self.owner is not None:
                    self.owner(self._owned(batch))
                yield batch.drop_columns([name for name in OWNER_COLUMNS.values() if marked])
        finally:
            drop(aside)  # before the charge: by then the file has it, or nobody

    def _owned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        series, columns = (
            self.run.series,
            dict(zip(batch.schema.names, batch.columns, strict=True)),
        )
        named = [name for name in (series.series, *self.clock.names) if name]
        kept = {name: columns[name] for name in named}
        kept |= {name: columns[carried] for name, carried in OWNER_COLUMNS.items()}
        kept[RELEASE] = pa.array([self.key.release_id] * batch.num_rows, pa.string())
        return pa.RecordBatch.from_pydict(kept)


def run_of(
    frame: DataFrame,
    mechanism: Mechanism,
    values: str | tuple[str, ...] | list[str],
    key: Key | None = None,
    pseudonyms: bool = False,
    partitions: int | None = None,
    **layout: Any,
) -> SparkReleaseRun:
    """A run that releases ``values`` of a ``frame`` through a ``mechanism``, not started yet.

    The parameters ``key``, ``pseudonyms`` and ``partitions`` are those of
    ``tempriv.integrations.spark.release``; all others are those of ``SeriesTable``.
    """
    names = (values,) if isinstance(values, str) else tuple(values)
    table = SeriesTable(None, values=names, **layout)
    return SparkReleaseRun(frame, table, mechanism, key, pseudonyms, partitions)


def released(run: SparkReleaseRun, ledger: Ledger | None, dataset: str | None) -> Released:
    """Carry out a ``run`` and charge a ``ledger`` for a ``dataset``, if there is one."""
    require((ledger is None) == (dataset is None), "a ledger goes with the name of a dataset in it")
    check_early(ledger, dataset, run.guarantee, run.run.mechanism)
    durable = ledger is not None and survives_machines(run.frame.sparkSession)
    aside = run.materialized(durable=durable)
    receipt = None
    with dropped_if_refused(aside):
        if ledger is not None and dataset is not None:
            release_id = run.key.release_id
            what = dataset, run.guarantee, run.scope, release_id
            ledger.warn_of_repetition(*what, spending=run.spending)
            receipt = ledger.charge(*what, spending=run.spending)
        return Released(aside, with_receipt(run.about(), receipt))
