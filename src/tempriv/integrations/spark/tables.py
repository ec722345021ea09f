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
from tempriv.integrations.spark.tasks import OWNED, joined
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
NAMED = {"VARCHAR", "BOOLEAN", "DATE"} | INTEGERS
"""Types of ids and categories; others are not spelled alike everywhere."""

FORMS = {
    "integer": ("bigint",),
    "date": ("date",),
    "datetime": ("timestamp_ntz",),
    "datetime UTC": ("timestamp",),
    "date+hour": ("date", "bigint"),
    "date+time": ("date", "time(6)"),
}

QUOTING = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers that tell which value an expression failed for."""


def column(name: str) -> Column:
    """A column by its name, whatever is in it."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def table_of(frame: DataFrame) -> Table:
    """What can be known of a frame without reading it."""
    kinds = {}
    for name, kind in frame.dtypes:
        require(name not in kinds, f"the frame: column {name!r} stands in it twice", DataError)
        bare = kind.split("(")[0]
        kinds[name] = TYPES.get(kind, bare.upper())  # decimal(5,2) and time(6) go by their names
    return Table(cast(Any, None), "the frame", "", kinds, kinds)


def laid_out(table: Table, passage: ReleaseRun, clock: Clock) -> list[Column]:
    """Ids, times and values, as a task takes them."""
    from pyspark.sql import functions

    series = passage.series
    whose = functions.lit(0).cast("bigint")
    if series.series is not None:
        kind = table.types[series.series]
        require(
            kind in NAMED,
            f"the frame: the series column {series.series!r} holds {kind.lower()}; ids must be "
            "text or whole numbers",
            DataError,
        )
        whole = passage.reading.whole_number_ids
        whose = column(series.series).cast("bigint" if whole else "string")
    values = [_value(table, passage, i).alias(f"v{i}") for i in range(len(series.values))]
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


def _value(table: Table, passage: ReleaseRun, number: int) -> Column:
    from pyspark.sql import functions

    name, form = passage.series.values[number], passage.mechanism.domain
    own, kind = column(name), table.types[name]
    if passage.passthrough is not None:
        return own  # of any kind
    if form.categories is not None:
        require(
            kind in NAMED,
            f"the frame: column {name!r} holds {kind.lower()}; categories must be text",
            DataError,
        )
        listed = functions.array(*map(functions.lit, form.categories[number]))
        place = functions.array_position(listed, own.cast("string"))
        return (place - 1).cast("double")  # null where the value is
    require(
        kind in NUMBERS,
        f"the frame: column {name!r} holds {kind.lower()}, not numbers; for categories use "
        "randomized-response",
        DataError,
    )
    return own.cast("double")


def released_schema(
    frame: DataFrame, passage: ReleaseRun, clock: Clock, owner: bool = False
) -> Any:
    """The columns that come out, with those for the data owner if they are asked for."""
    from pyspark.sql.types import DataType, StructField, StructType

    types = {field.name: field.dataType for field in frame.schema.fields}
    series, found = passage.series, list[tuple[str, Any]]()
    if series.series is not None:
        whole = passage.reading.whole_number_ids
        found.append((series.series, "bigint" if whole else "string"))
    found += zip(clock.names, FORMS[clock.domain], strict=True)
    named = without_landmarks(passage.mechanism.domain).categories is not None
    for name in passage.values:
        if passage.passthrough is not None:
            found.append((name, types[name]))
        else:
            found.append((name, "string" if named else "double"))
    found += [(STATUS, "string")] if passage.mechanism.has_status else []
    found += zip(OWNED.values(), ("bigint", "double"), strict=True) if owner else []
    kinds = [kind if isinstance(kind, DataType) else DataType.fromDDL(kind) for _, kind in found]
    fields = zip(found, kinds, strict=True)
    return StructType([StructField(name, kind, True) for (name, _), kind in fields])


def arrow_kinds(frame: DataFrame, names: Sequence[str]) -> list[pa.DataType]:
    """The types of some columns, as tasks see them."""
    from pyspark.sql.pandas.types import to_arrow_type

    types = {field.name: field.dataType for field in frame.schema.fields}
    return [to_arrow_type(types[name], timezone="UTC") for name in names]


def distinct(frame: DataFrame, name: str) -> list[str]:
    """The different values of a column, as text; rows without one are counted elsewhere."""
    one = column(name).cast("string").alias("s")
    found = frame.select(one).where("s IS NOT NULL").distinct()
    return cast(list[str], computed(found.toArrow).column(0).to_pylist())


def persons_of(frame: DataFrame, series: SeriesTable) -> list[str] | None:
    """Who the series belong to; each to one person, and to none more than declared."""
    if series.person is None or series.series is None:
        return None
    most = series.max_series_per_person or 0
    pairs = frame.select(
        column(series.series).cast("string").alias("s"),
        column(series.person).cast("string").alias("p"),
    ).distinct()
    table = computed(pairs.toArrow)
    owners: dict[str | None, set[str | None]] = {}
    held: dict[str | None, set[str | None]] = {}
    for one, person in zip(*(side.to_pylist() for side in table.columns), strict=True):
        owners.setdefault(one, set()).add(person)
        held.setdefault(person, set()).add(one)
    shared = sum(len(who) != 1 or None in who for who in owners.values())
    require(
        shared == 0,
        f"{shared} series belong to no person or to several; give each series one person",
        DataError,
    )
    busy = sum(len(some) > most for some in held.values())
    require(
        busy == 0,
        f"{busy} person{'s have' if busy > 1 else ' has'} more than {most} series; raise "
        "[[max_series_per_person]], or leave out some of their series",
        DataError,
    )
    return [person for person in held if person is not None]


def kept_aside(frame: DataFrame) -> DataFrame:
    """Computed once, here and now, and never again; the store is encrypted, and Spark's own."""
    return cast("DataFrame", computed(lambda: frame.localCheckpoint(eager=True)))


@contextmanager
def dropped_if_refused(aside: DataFrame) -> Iterator[None]:
    """Whatever goes wrong in here, nothing of what was kept aside stays."""
    try:
        yield
    except BaseException:
        drop(aside)
        raise


def drop(aside: DataFrame) -> None:
    """Give back what ``kept_aside`` keeps; Spark would, but only once it collects garbage."""
    from py4j.protocol import Py4JError

    # a Spark that has ended keeps nothing, and must not hide why all this was refused
    with suppress(Py4JError):
        # the frame's own unpersist is for caches, and leaves checkpoints
        aside._jdf.queryExecution().analyzed().rdd().unpersist(False)


def computed(ask: Callable[[], Any]) -> Any:
    """Ask Spark for something; its messages quote the rows they stumble on, and are not shown."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    quoting = [PySparkLogger.getLogger(name) for name in QUOTING]
    before = [logger.disabled for logger in quoting]
    for logger in quoting:
        logger.disabled = True
    try:
        return ask()
    except PySparkException as problem:
        why = problem.getCondition() or type(problem).__name__
    except Py4JError as problem:
        why = type(problem).__name__
    finally:
        for logger, disabled in zip(quoting, before, strict=True):
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
        one = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([one], names=["batch"])
