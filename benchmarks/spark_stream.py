"""Spark streams: readings a second in local mode, and where the time goes.

python -m benchmarks.spark_stream [--short]

Each line is one query over the same files, a file a batch; the first batches, in which Java and the
workers warm up, are left out. The yardstick is the same query that copies the readings.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.measure import Row
from tempriv.integrations.spark import streams as stream
from tempriv.integrations.spark.session import started
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.value.laplace import Laplace

LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))
THRESHOLD = Threshold(epsilon=1.0, window=20)
WARM = 2
SCHEMA = "who string, t long, v double"


def lay_out(folder: Path, series: int, each: int, files: int) -> Path:
    """Files of readings of all series, interleaved by time."""
    folder.mkdir()
    names = pa.array([f"meter-{i:06}" for i in range(series)])
    for number in range(files):
        times = np.repeat(np.arange(number * each, (number + 1) * each), series)
        whose = names.take(pa.array(np.tile(np.arange(series), each)))
        table = pa.table({"who": whose, "t": times, "v": (times * 7919 % 5000) / 1000.0})
        path = folder / f"{number:03}.parquet"
        pyarrow.parquet.write_table(table, path)
        os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark takes them in this order
    return folder


def one_by_one(frame: Any, in_pandas: bool) -> Any:
    """What Spark's own interface suggests: a call for each key, with trivial work."""
    from pyspark.sql import Row as SparkRow

    class Counting:
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("count", "count long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            before = self.state.get()
            count = 0 if before is None else before[0]
            for part in rows:
                count += len(part) if in_pandas else 1
                yield part[["who", "t", "v"]] if in_pandas else SparkRow(**part.asDict())
            self.state.update((count,))

        def close(self) -> None:
            pass

    keyed = frame.groupBy("who")
    carry = keyed.transformWithStateInPandas if in_pandas else keyed.transformWithState
    return carry(Counting(), SCHEMA, "append", "None")


def measure(
    spark: Any, source: Path, kind: str, groups: int = 16, **settings: int
) -> tuple[float, dict[str, float]]:
    """Readings a second, and the milliseconds of a batch by what Spark says they went to."""
    for name, value in {"shuffle_partitions": 2, **settings}.items():
        key = {
            "shuffle_partitions": "spark.sql.shuffle.partitions",
            "arrow_rows": "spark.sql.execution.arrow.maxRecordsPerBatch",
        }[name]
        spark.conf.set(key, str(value))
    reading = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frame = reading.parquet(str(source))
    with tempfile.TemporaryDirectory() as home:
        if kind == "copy":
            out = frame
        elif kind in ("rows", "pandas"):
            out = one_by_one(frame, kind == "pandas")
        else:
            mechanism = {"laplace": LAPLACE, "threshold": THRESHOLD}[kind]
            out = stream.stream(
                frame,
                mechanism,
                series="who",
                time="t",
                values="v",
                key_file=Path(home, "key"),
                groups=groups,
            )
        query = stream.write(out, Path(home, "out"), Path(home, "check"), availableNow=True)
        query.awaitTermination()
        progress = list(query.recentProgress)[WARM:]
    took = sum(one["durationMs"]["triggerExecution"] for one in progress)
    parts = {"work": sum(one["durationMs"]["addBatch"] for one in progress) / len(progress)}
    if kind != "copy":
        states = [one["stateOperators"][0] for one in progress]
        parts["state"] = sum(one["commitTimeMs"] for one in states) / len(states)
    parts["batch"] = took / len(progress)
    return 1000 * sum(one["numInputRows"] for one in progress) / took, parts


def rows(short: bool = True) -> list[Row]:
    """For the table of all benchmarks: beside a stream that only copies; none without Spark."""
    found: list[Row] = []
    if find_spec("pyspark") is None:
        return found
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        source = lay_out(Path(folder, "in"), 10_000, 10 if short else 50, WARM + 3)
        copied, _ = measure(spark, source, "copy")
        for kind in ("laplace", "threshold"):
            speed, _ = measure(spark, source, kind)
            found.append(
                Row(
                    f"Spark stream, {kind}, 10,000 series",
                    f"{speed:,.0f} readings/s",
                    f"a stream that copies: {copied:,.0f}",
                    copied / speed,
                    "12,000 readings/s",
                    speed >= 12_000,
                )
            )
    return found


def session() -> Any:
    return started("local[2]", {**stream.SETTINGS, "spark.log.level": "OFF"})


def main() -> None:
    short = "--short" in sys.argv
    rounds = 3 if short else 6
    lines: list[tuple[str, int, int, str, dict[str, Any]]] = [
        ("copy", 10_000, 10, "the readings as they are", {}),
        ("rows", 10_000, 2, "transformWithState, trivial work", {}),
        ("pandas", 10_000, 2, "transformWithStateInPandas, trivial work", {}),
        ("laplace", 10_000, 2, "", {}),
        ("laplace", 10_000, 10, "", {}),
        ("laplace", 1_000, 500, "", {}),
        ("threshold", 10_000, 10, "", {}),
        ("laplace", 10_000, 10, "4 groups", {"groups": 4}),
        ("laplace", 10_000, 10, "256 groups", {"groups": 256}),
        ("laplace", 10_000, 10, "20 shuffle partitions", {"shuffle_partitions": 20}),
        ("laplace", 10_000, 10, "1,000 rows an Arrow batch", {"arrow_rows": 1_000}),
    ]
    print("| query | series | readings of each in a batch | readings/s | ms a batch |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        for kind, series, each, what, settings in lines:
            source = Path(folder, f"{series} {each}")
            if not source.exists():
                lay_out(source, series, each, WARM + rounds)
            began = time.perf_counter()
            speed, parts = measure(spark, source, kind, **settings)
            told = ", ".join(f"{name} {value:.0f}" for name, value in parts.items())
            name = f"{kind}{', ' * bool(what)}{what}"
            print(f"| {name} | {series:,} | {each:,} | {speed:,.0f} | {told} |", flush=True)
            if time.perf_counter() - began > 300:
                print("(a busy machine: stopped here)")
                break


if __name__ == "__main__":
    main()
