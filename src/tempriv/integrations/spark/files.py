"""Tables in files, as Spark frames with the types that they have in other releases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet

from tempriv.data.duckdb import is_csv, literal, open_table
from tempriv.errors import DataError, require
from tempriv.integrations.spark.session import started
from tempriv.integrations.spark.tables import TYPES, column, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASTS = {ours: theirs for theirs, ours in TYPES.items()} | {"TIME": "time(6)"}

SETTINGS = {
    # what cannot be read as its type is an error, not a missing value; and Spark's log, which
    # would quote it, is off
    "spark.sql.ansi.enabled": "true",
    "spark.log.level": "OFF",
}
"""For a session that reads them."""


@contextlib.contextmanager
def opened(path: Path, master: str, texts: Sequence[str] = ()) -> Iterator[DataFrame]:
    """Open the table at ``path`` in a session of its own on a ``master``; columns in ``texts`` stay
    text.
    """
    with started(master, SETTINGS) as spark:
        yield read_frame(spark, path, texts)


def header_of_parts(path: Path) -> list[str]:
    """The column names of a directory of Parquet files at ``path``, by the first of them."""
    parts = sorted(
        path_of_part
        for path_of_part in path.rglob("*.parquet")
        if not path_of_part.name.startswith((".", "_"))
    )
    require(bool(parts), f"{path}: no .parquet file in it", DataError)
    return list(pa.parquet.read_schema(parts[0]).names)


def is_parquet(path: Path) -> bool:
    """Whether ``path`` is a Parquet file, or a directory of them."""
    return path.is_dir() or path.suffix.lower() in (".parquet", ".pq")


def read_frame(spark: SparkSession, path: Path, texts: Sequence[str] = ()) -> DataFrame:
    """Read a CSV or Parquet file, or a directory of Parquet files.

    A CSV file has no types: those that its beginning shows are taken, and ``texts`` as they stand.

    Parameters:
        spark: the session.
        path: of the file or directory.
        texts: columns that stay text.
    """
    require(path.exists(), f"{path}: no such file or directory", DataError)
    location = str(path.absolute())
    if is_parquet(path):
        return cast("DataFrame", computed(lambda: spark.read.parquet(location)))
    require(is_csv(path), f"{path}: tables are read from .csv or .parquet files", DataError)
    with open_table(path, texts) as table:
        types = dict(table.types)
        dialects = table.rows(
            f'SELECT "Delimiter", "Quote", "Escape" FROM sniff_csv({literal(location)})'
        )
    delimiter, quote, escape = dialects[0]
    marks = (mark if mark not in ("(empty)", "\0", "") else None for mark in (quote, escape))
    quote, escape = marks
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in types)
    # a row that does not fit is an error too, such as one whose text goes on in the next line
    read = spark.read.option("sep", delimiter).option("mode", "FAILFAST")
    read = read.option("quote", quote or '"').option("escape", escape or quote or '"')
    frame = computed(lambda: read.csv(location, header=True, schema=schema, enforceSchema=True))
    for name, kind in types.items():
        require(kind in CASTS, f"{path}: column {name!r} holds {kind.lower()}", DataError)
    return cast(
        "DataFrame",
        frame.select([column(n).cast(CASTS[kind]).alias(n) for n, kind in types.items()]),
    )
