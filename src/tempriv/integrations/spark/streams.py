"""A mechanism over a Spark stream: many series, each going on through failures and restarts.

Series are divided into groups. A group has one state in Spark's store, and its readings of a batch
pass through the mechanism in one call (``stream_group``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempriv.data.series import ONLY_SERIES, STATUS, require_columns
from tempriv.errors import StateError, require
from tempriv.integrations.spark.session import require_encryption
from tempriv.integrations.spark.stream_state import COUNTED, MARK, SERIES, TIME, Setting
from tempriv.integrations.spark.stream_tasks import (
    GROUP,
    PACKED,
    PACKED_SHAPE,
    RELEASED_SHAPE,
    GroupProcessor,
    pack,
    unpack,
)
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import OpaqueRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks, without_landmarks
from tempriv.mechanisms.perturb import guarantee_of_run
from tempriv.privacy.units import Person
from tempriv.releases.run import warn_if_weak
from tempriv.releases.spending import stated_spending
from tempriv.sampling.keys import Key

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""What a Spark session needs for ``stream``; a restart with other settings goes on as it began."""

OBSERVED = "tempriv"
"""Under this name the numbers of each batch are in the progress of a query."""

WHOLE_NUMBER_TYPES = ("tinyint", "smallint", "int", "bigint")


def stream(
    frame: DataFrame,
    mechanism: Mechanism,
    *,
    time: str,
    values: str | Sequence[str],
    series: str | None = None,
    key_file: str | Path,
    groups: int = 16,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    accept_weak: bool = False,
) -> DataFrame:
    """The stream of released rows of a stream of readings; private until it is written.

    The noise comes from the key in ``key_file``, which is made if there is none; every executor
    must see it. One key file serves one query with one checkpoint. Series are kept in so many
    ``groups``, each with one state. With a ``ledger`` the whole stream is charged once.

    Parameters:
        frame: a stream of readings.
        mechanism: that every series passes through.
        time: the column of times.
        values: the columns that are released.
        series: the column of ids.
        groups: into how many series are divided.
        dataset: its name in the ledger.
        accept_weak: say that an epsilon above 10, which protects practically nothing, is meant;
            otherwise there is a ``WeakGuaranteeWarning``.

    Guarantees:
        - the noise of a reading depends on the key, the mechanism, its series and its number
          there only: a batch or a task that is run again gives the same bits;
        - a reading not later than all of its series before, or that is none, is counted and not
          released, and nothing that is in a reading stops the stream;
        - a checkpoint that does not lead to what was released is refused, and so are other
          readings in the place of those of the last batch.
    """
    from pyspark.sql import functions

    columns = (values,) if isinstance(values, str) else tuple(values)
    setting = Setting(
        mechanism=mechanism,
        layout=(series, time, *columns),
        columns=tuple(f"value {i}" for i in range(len(columns))),
        groups=groups,
        key_file=Path(key_file).absolute(),
    )
    require((ledger is None) == (dataset is None), "a ledger goes with the name of a dataset in it")
    warn_if_weak(mechanism, None, accept_weak)
    _require_possible(frame, setting, series, time, columns)
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    whose = functions.lit(ONLY_SERIES)
    if series is not None:
        # what is no text counts as null: whose the reading is nobody can say
        whose = functions.try_validate_utf8(functions.col(f"`{series}`").cast("string"))
    into, back = _clock(kinds[time].typeName())
    numbers = [_number(mechanism, i, name) for i, name in enumerate(columns)]
    # with what is null, or rows with nulls in other places would have one mark
    marked = functions.xxhash64(*numbers, *(number.isNull() for number in numbers))
    readings = frame.select(
        functions.pmod(functions.xxhash64(whose), functions.lit(groups)).alias(GROUP),
        whose.alias(SERIES),
        into(functions.col(f"`{time}`")).cast("long").alias(TIME),
        marked.alias(MARK),
        *(number.alias(name) for number, name in zip(numbers, setting.columns, strict=True)),
    )
    _open(setting, ledger, dataset)
    released = (
        readings.mapInArrow(pack, PACKED_SHAPE)
        .groupBy(GROUP)
        .transformWithState(GroupProcessor(setting), RELEASED_SHAPE, "append", "None")
        .observe(
            OBSERVED,
            *(functions.coalesce(functions.sum(n), functions.lit(0)).alias(n) for n in COUNTED),
        )
        .select(PACKED)
        .mapInArrow(unpack, _shape(setting, [kinds[name] for name in columns]))
    )
    shown = [] if series is None else [functions.col(SERIES).cast(kinds[series]).alias(series)]
    shown += [back(functions.col(TIME)).cast(kinds[time]).alias(time)]
    told_of = columns[:-1] if isinstance(mechanism.domain, WithLandmarks) else columns
    inner = (functions.col(f"`{name}`") for name in setting.columns)
    shown += [column.alias(name) for column, name in zip(inner, told_of, strict=False)]
    return released.select(*shown, *([STATUS] if mechanism.has_status else []))


def write(
    released: DataFrame, output: str | Path, checkpoint: str | Path, **trigger: Any
) -> StreamingQuery:
    """Start to write a released stream to a folder of Parquet files, each row once.

    Each row is there once for who reads the folder with Spark, which keeps to its
    ``_spark_metadata``. The checkpoint holds readings and is private. ``trigger`` is as in Spark:
    ``availableNow=True``, or ``processingTime="10 seconds"``.

    Parameters:
        released: as ``stream`` gave it.
        output: the folder.
        checkpoint: a folder for Spark's own notes.
    """
    private = Path(checkpoint).absolute()
    public = Path(output).absolute()
    require(
        not (private.is_relative_to(public) or public.is_relative_to(private)),
        f"checkpoint={checkpoint}: must be a folder apart from the output; it holds readings",
    )
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    require(
        private.stat().st_mode & 0o077 == 0,
        f"{checkpoint}: others can look into it, and it holds readings; chmod 700",
        StateError,
    )
    writer = released.writeStream.format("parquet").outputMode("append")
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.option("checkpointLocation", str(private)).start(str(public))


def _require_possible(
    frame: DataFrame,
    setting: Setting,
    series: str | None,
    time: str,
    columns: tuple[str, ...],
) -> None:
    mechanism, kinds = setting.mechanism, dict(frame.dtypes)
    require(
        frame.isStreaming, "frame: must be a stream (spark.readStream); for a table use release"
    )
    require(
        not mechanism.takes_whole,
        f"{type(mechanism).__name__}: needs a whole series before it can release any of it; use "
        "release on a table",
    )
    require(
        not isinstance(mechanism.unit, Person),
        "unit=Person: must be another; which series are whose cannot be checked in a stream",
    )
    require(
        not mechanism.unit.counts_people or series is None,
        "counts of several groups are columns of one stream, not series: a person may be in more "
        "than one of them, and the guarantee is for all of them together",
    )
    require(setting.groups >= 1, f"groups={setting.groups}: must be >= 1")
    require_columns(frame.columns, [*([series] if series else []), time, *columns], "frame")
    names = [*([series] if series else []), time, *columns]
    names += [STATUS] if mechanism.has_status else []
    require(len(set(names)) == len(names), f"columns {', '.join(names)}: name each only once")
    require(
        mechanism.domain.columns in (None, len(columns)),
        f"{len(columns)} value columns, but the mechanism is set up for "
        f"{mechanism.domain.columns}: give bounds (or categories) for each column",
    )
    require(
        kinds[time] in (*WHOLE_NUMBER_TYPES, "date", "timestamp"),
        f"time={time!r}: is {kinds[time]}; must be a whole number, a date or a timestamp",
    )
    require(
        series is None or kinds[series] in (*WHOLE_NUMBER_TYPES, "string"),
        f"series={series!r}: must be text or a whole number; cast it",
    )
    store = frame.sparkSession.conf.get("spark.sql.streaming.stateStore.providerClass", "")
    require(
        str(store).endswith("RocksDBStateStoreProvider"),
        "spark.sql.streaming.stateStore.providerClass: must be RocksDB's; set all of "
        "tempriv.integrations.spark.streams.SETTINGS when the session is built",
    )
    require_encryption(frame.sparkSession)


def _open(setting: Setting, ledger: Ledger | None, dataset: str | None) -> None:
    """Have the key, the charge, and the folder of records; they belong to one stream."""
    path = setting.key_file
    if not path.exists():
        require(path.parent.is_dir(), f"{path.parent}: no such directory")
        fresh = Key.generate()
        fresh.save(path)
        fresh.close()
    require(
        path.stat().st_mode & 0o077 == 0,
        f"{path}: others can read it, and with it take the noise off; chmod 600",
        StateError,
    )
    if ledger is not None and dataset is not None:
        key = Key.load(path)  # to name it and no more
        everyone = Scope(
            kind="series", members=None, start=None, end=None, step=None, clock="index"
        )
        try:
            guarantee = guarantee_of_run(setting.mechanism, key)
            what = dataset, guarantee, everyone, key.release_id
            spending = stated_spending(setting.mechanism)
            ledger.warn_of_repetition(*what, spending=spending)
            # once for the whole stream: the same id spends nothing again
            ledger.charge(*what, spending=spending)
        finally:
            key.close()
    setting.bind()


def _clock(kind: str) -> tuple[Any, Any]:
    """From times to whole numbers and back."""
    from pyspark.sql import functions

    if kind == "date":
        return functions.unix_date, functions.date_from_unix_date
    if kind == "timestamp":
        return functions.unix_micros, functions.timestamp_micros
    return lambda column: column, lambda column: column


def _number(mechanism: Mechanism, number: int, name: str) -> Column:
    """A value as a number, that of its category, or as it is where rows are moved."""
    from pyspark.sql import functions

    column, form = functions.col(f"`{name}`"), mechanism.domain
    if isinstance(form, OpaqueRows):
        return column
    is_mark = isinstance(form, WithLandmarks) and number == form.columns - 1
    if form.categories is None or is_mark:
        return column.try_cast("double")  # what is no number counts as missing
    names = functions.array(*map(functions.lit, form.categories[number]))
    return functions.array_position(names, column.cast("string")).cast("double") - 1


def _shape(setting: Setting, kinds: list[Any]) -> Any:
    """What comes out of the packed rows."""
    from pyspark.sql.types import DoubleType, LongType, StringType, StructType

    mechanism = setting.mechanism
    shape = StructType().add(SERIES, StringType()).add(TIME, LongType())
    number = StringType() if without_landmarks(mechanism.domain).categories else DoubleType()
    marked = isinstance(mechanism.domain, WithLandmarks)
    for name, kind in zip(setting.columns[: len(kinds) - marked], kinds, strict=False):
        shape = shape.add(name, kind if setting.moves else number)
    return shape.add(STATUS, StringType()) if mechanism.has_status else shape
