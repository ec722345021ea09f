"""Spark frames as tables of series: their types, how they are laid out, and how they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from tempriv.data.clock import Clock
from tempriv.data.duckdb import INTEGERS, NUMBERS, Table
from tempriv.data.series import STATUS, SeriesTable
from tempriv.errors import DataError, require
from tempriv.integrations.spark.tasks import OWNER_COLUMNS, joined
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.releases.run import ReleaseRun

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# by the names that they have in DuckDB, which reads tables everywhere else
TYPES = {
    **{"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"},
    **{"float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "string": "VARCHAR"},
    **{"date": "DATE", "timestamp_ntz": "TIMESTAMP", "timestamp": "TIMESTAMP WITH TIME ZONE"},
}
ID_TYPES = {"VARCHAR", "BOOLEAN", "DATE"} | INTEGERS
"""Types of ids and categories; others are not spelled alike everywhere."""

TIME_TYPES = {
    "integer": ("bigint",),
    "date": ("date",),
    "datetime": ("timestamp_ntz",),
    "datetime UTC": ("timestamp",),
    "date+hour": ("date", "bigint"),
    "date+time": ("date", "time(6)"),
}

QUOTING_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers that tell which value an expression failed for."""


def column(name: str) -> Column:
    """A column by its ``name``, whatever is in it."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def table_of(frame: DataFrame) -> Table:
    """What can be known of a ``frame`` without reading it."""
    kinds = {}
    for name, kind in frame.dtypes:
        require(name not in kinds, f"the frame: column {name!r} stands in it twice", DataError)
        bare = kind.split("(")[0]
        kinds[name] = TYPES.get(kind, bare.upper())  # decimal(5,2) and time(6) go by their names
    return Table(cast(Any, None), "the frame", "", kinds, kinds)


def laid_out(table: Table, run: ReleaseRun, clock: Clock) -> list[Column]:
    """Ids, times and values, as a task takes them.

    Parameters:
        table: names and types of its columns.
        run: the run that releases it.
        clock: of its times.
    """
    from pyspark.sql import functions

    series = run.series
    whose = functions.lit(0).cast("bigint")
    if series.series is not None:
        kind = table.types[series.series]
        require(
            kind in ID_TYPES,
            f"the frame: the series column {series.series!r} holds {kind.lower()}; ids must be "
            "text or whole numbers",
            DataError,
        )
        whole = run.reading.whole_number_ids
        whose = column(series.series).cast("bigint" if whole else "string")
    values = [_value(table, run, i).alias(f"v{i}") for i in range(len(series.values))]
    return [whose.alias("s"), _ticks(clock).alias("t"), *values]


def _ticks(clock: Clock) -> Column:
    from pyspark.sql import functions

    first = column(clock.names[0])
    if clock.domain == "integer":
        return first.cast("bigint")
    if len(clock.names) == 1:
        return first
    second = column(clock.names[1])
    hours = clock.domain == "date+hour"
    more = second.cast("bigint") * 3_600_000_000 if hours else functions.time_to_micros(second)
    return functions.unix_date(first).cast("bigint") * 86_400_000_000 + more


def _value(table: Table, run: ReleaseRun, number: int) -> Column:
    from pyspark.sql import functions

    name, form = run.series.values[number], run.mechanism.domain
    values, kind = column(name), table.types[name]
    if run.passthrough is not None:
        return values  # of any kind
    if form.categories is not None:
        require(
            kind in ID_TYPES,
            f"the frame: column {name!r} holds {kind.lower()}; categories must be text",
            DataError,
        )
        listed = functions.array(*map(functions.lit, form.categories[number]))
        position = functions.array_position(listed, values.cast("string"))
        return (position - 1).cast("double")  # null where the value is
    require(
        kind in NUMBERS,
        f"the frame: column {name!r} holds {kind.lower()}, not numbers; for categories use "
        "randomized-response",
        DataError,
    )
    return values.cast("double")


def released_schema(frame: DataFrame, run: ReleaseRun, clock: Clock, owner: bool = False) -> Any:
    """The columns that come out.

    Parameters:
        frame: that is released.
        run: the run that releases it.
        clock: of its times.
        owner: whether those for the data owner are added.
    """
    from pyspark.sql.types import DataType, StructField, StructType

    types = {field.name: field.dataType for field in frame.schema.fields}
    series, columns = run.series, list[tuple[str, Any]]()
    if series.series is not None:
        whole = run.reading.whole_number_ids
        columns.append((series.series, "bigint" if whole else "string"))
    columns += zip(clock.names, TIME_TYPES[clock.domain], strict=True)
    named = without_landmarks(run.mechanism.domain).categories is not None
    for name in run.values:
        if run.passthrough is not None:
            columns.append((name, types[name]))
        else:
            columns.append((name, "string" if named else "double"))
    columns += [(STATUS, "string")] if run.mechanism.has_status else []
    columns += zip(OWNER_COLUMNS.values(), ("bigint", "double"), strict=True) if owner else []
    kinds = [kind if isinstance(kind, DataType) else DataType.fromDDL(kind) for _, kind in columns]
    fields = zip(columns, kinds, strict=True)
    return StructType([StructField(name, kind, True) for (name, _), kind in fields])


def arrow_kinds(frame: DataFrame, names: Sequence[str]) -> list[pa.DataType]:
    """The types of the columns ``names`` of a ``frame``, as tasks see them."""
    from pyspark.sql.pandas.types import to_arrow_type

    types = {field.name: field.dataType for field in frame.schema.fields}
    return [to_arrow_type(types[name], timezone="UTC") for name in names]


def distinct(frame: DataFrame, name: str) -> list[str]:
    """The different values of the column ``name`` of a ``frame``, as text; rows without one are
    counted elsewhere.
    """
    as_text = column(name).cast("string").alias("s")
    rows = frame.select(as_text).where("s IS NOT NULL").distinct()
    return cast(list[str], computed(rows.toArrow).column(0).to_pylist())


def persons_of(frame: DataFrame, series: SeriesTable) -> list[str] | None:
    """Who the ``series`` of a ``frame`` belong to; each to one person, and to none more than
    declared.
    """
    if series.person is None or series.series is None:
        return None
    limit = series.max_series_per_person or 0
    pairs = frame.select(
        column(series.series).cast("string").alias("s"),
        column(series.person).cast("string").alias("p"),
    ).distinct()
    table = computed(pairs.toArrow)
    owners: dict[str | None, set[str | None]] = {}
    series_of_person: dict[str | None, set[str | None]] = {}
    for series_id, person in zip(*(side.to_pylist() for side in table.columns), strict=True):
        owners.setdefault(series_id, set()).add(person)
        series_of_person.setdefault(person, set()).add(series_id)
    shared = sum(len(persons) != 1 or None in persons for persons in owners.values())
    require(
        shared == 0,
        f"{shared} series belong to no person or to several; give each series one person",
        DataError,
    )
    busy = sum(len(series_ids) > limit for series_ids in series_of_person.values())
    require(
        busy == 0,
        f"{busy} person{'s have' if busy > 1 else ' has'} more than {limit} series; raise "
        "[[max_series_per_person]], or leave out some of their series",
        DataError,
    )
    return [person for person in series_of_person if person is not None]


def kept_aside(frame: DataFrame, durable: bool = False) -> DataFrame:
    """Compute a ``frame`` once, here and now, and never again.

    Parameters:
        frame: that is computed.
        durable: whether it is kept in the checkpoint directory of the session, through the loss of
            machines; in Spark's own encrypted store otherwise.
    """
    if durable:
        return cast("DataFrame", computed(lambda: frame.checkpoint(eager=True)))
    return cast("DataFrame", computed(lambda: frame.localCheckpoint(eager=True)))


@contextmanager
def dropped_if_refused(aside: DataFrame) -> Iterator[None]:
    """Keep nothing of ``aside`` if anything goes wrong in here."""
    try:
        yield
    except BaseException:
        drop(aside)
        raise


def drop(aside: DataFrame) -> None:
    """Give back what ``kept_aside`` keeps as ``aside``; Spark would, but only once it collects
    garbage.
    """
    from py4j.protocol import Py4JError

    # a Spark that has ended keeps nothing, and must not hide why all this was refused
    with suppress(Py4JError):
        # the frame's own unpersist is for caches, and leaves checkpoints
        rows = aside._jdf.queryExecution().analyzed().rdd()
        rows.unpersist(False)
        if rows.getCheckpointFile().isDefined():
            context = aside.sparkSession.sparkContext
            assert context._jvm is not None
            folder = context._jvm.org.apache.hadoop.fs.Path(rows.getCheckpointFile().get())
            folder.getFileSystem(context._jsc.hadoopConfiguration()).delete(folder, True)


def computed(job: Callable[[], Any]) -> Any:
    """Do a ``job`` of Spark; its messages quote the rows they stumble on, and are not shown."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    quoting = [PySparkLogger.getLogger(name) for name in QUOTING_LOGGERS]
    were_disabled = [logger.disabled for logger in quoting]
    for logger in quoting:
        logger.disabled = True
    try:
        return job()
    except PySparkException as problem:
        why = problem.getCondition() or type(problem).__name__
    except Py4JError as problem:
        why = type(problem).__name__
    finally:
        for logger, disabled in zip(quoting, were_disabled, strict=True):
            logger.disabled = disabled
    raise DataError(
        f"the frame could not be computed ({why}); see whether it can be written as it is to a "
        "place where nobody else looks"
    ) from None


def arrow_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a frame, part by part; never all of them at once."""
    packed = frame.mapInArrow(_packed, "batch binary")
    rows = computed(lambda: packed.toLocalIterator(prefetchPartitions=True))
    while True:
        row = computed(lambda: next(rows, None))
        if row is None:
            return
        yield from pa.ipc.open_stream(row["batch"])


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches as bytes: Spark hands single rows to the driver, and these are few and large."""
    for batch in joined(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=["batch"])
