"""A release by Spark beside the same job without one: divide, sort, copy the values, keep aside."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from benchmarks.measure import Row, best_of
from benchmarks.releases import table

ROWS = 2_000_000
MOST = 1.5  # times the copy


def rows() -> list[Row]:
    """Nothing where Spark is not installed: it is an extra."""
    if find_spec("pyspark") is None:
        return []
    from tempriv.integrations import spark as tempriv_spark
    from tempriv.integrations.spark.session import started
    from tempriv.mechanisms.reorder.threshold import Threshold
    from tempriv.mechanisms.value.laplace import Laplace

    found = []
    settings = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4"}
    with started("local[1]", settings) as spark:
        frame = spark.read.parquet(str(table("string", ROWS)))
        for name, mechanism in (
            ("Laplace", Laplace(epsilon=1.0, bounds=(0, 5))),
            ("Threshold (k = 20)", Threshold(epsilon=6.0, window=20)),
        ):

            def ours(mechanism: Any = mechanism) -> None:
                tempriv_spark.release(
                    frame, mechanism, series="meter", time="time", values="kwh", partitions=4
                )

            def copied() -> None:
                divided = frame.select("meter", "time", "kwh").repartition(4, "meter")
                inside = divided.sortWithinPartitions("meter", "time")
                inside.mapInArrow(_copied, divided.schema).localCheckpoint(eager=True)

            seconds, theirs = best_of([ours, copied], rounds=3)
            found.append(
                Row(
                    f"Spark release of {ROWS // 10**6} million rows, {name}",
                    f"{seconds:.2f} s",
                    f"the same job, copying the values: {theirs:.2f} s",
                    seconds / theirs,
                    f"at most {MOST} times",
                    seconds / theirs <= MOST,
                )
            )
    return found


def _copied(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches
