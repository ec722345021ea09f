"""Protects a Spark stream of meter readings, stops it, and goes on as more readings come.

Run it with ``python examples/spark_streaming.py`` (it needs ``pip install 'tempriv[spark]'``; Java
comes with that). What it writes is in a folder that is gone at the end.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

import tempriv as tp
from tempriv.datasets import METERS
from tempriv.integrations.spark.session import started
from tempriv.integrations.spark.streams import SETTINGS, stream, write

folder = Path(tempfile.mkdtemp())
(folder / "arriving").mkdir()


def arrive(name: str, first: int, last: int) -> None:
    """Some hours of readings of all homes come in as a file, whole from the start."""
    table = pyarrow.csv.read_csv(METERS)
    rows = table.sort_by("time").slice(first, last - first)
    times = rows["time"].cast(pyarrow.timestamp("us", "UTC"))
    rows = rows.set_column(rows.column_names.index("time"), "time", times)
    pyarrow.parquet.write_table(rows, folder / name)
    os.rename(folder / name, folder / "arriving" / name)  # noqa: PTH104


mechanism = tp.Laplace(epsilon=1.0, bounds=(0, 5))
print(mechanism.guarantee.sentence)

# as many state partitions as there are cores: each costs something in every batch
with started("local[2]", {**SETTINGS, "spark.sql.shuffle.partitions": "2"}) as spark:

    def run() -> dict:
        """Release all that has come, as a job that is started now and then would."""
        schema = "home string, time timestamp, energy_kWh double"
        readings = spark.readStream.schema(schema).parquet(str(folder / "arriving"))
        released = stream(
            readings,
            mechanism,
            series="home",
            time="time",
            values="energy_kWh",
            key_file=folder / "meters.key",
        )
        query = write(released, folder / "released", folder / "checkpoint", availableNow=True)
        query.awaitTermination()
        counts = [p["observedMetrics"]["tempriv"].asDict() for p in query.recentProgress]
        return {name: sum(one[name] for one in counts) for name in ("readings", "released", "late")}

    def rows() -> int:
        return spark.read.parquet(str(folder / "released")).count()

    arrive("one.parquet", 0, 500)
    print("first run:", run(), "rows in the folder:", rows())
    arrive("two.parquet", 490, 800)  # ten of them for the second time
    print("second run:", run(), "rows in the folder:", rows())

    # a lost checkpoint: other readings might get the noise of those that are out
    shutil.rmtree(folder / "checkpoint")
    (folder / "released").rename(folder / "old")
    try:
        run()
    except Exception as problem:
        sentence = next(line for line in str(problem).splitlines() if "tempriv.errors" in line)
        print("refused:", sentence.split("KeyReuse: ")[1])

shutil.rmtree(folder)
