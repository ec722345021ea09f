"""Releases the bundled sample through Spark, and again on this machine: the same bits.

Run it with ``python examples/spark_release.py``, after ``pip install 'tempriv[spark]'``.
"""

import tempfile
from pathlib import Path

import tempriv
from tempriv import Key, Laplace, Ledger
from tempriv.datasets import METERS
from tempriv.integrations.spark.session import started

mechanism = Laplace(epsilon=1.0, bounds=(0, 5))

with tempfile.TemporaryDirectory() as folder, started("local[2]") as spark:
    meters = spark.read.csv(str(METERS), header=True, inferSchema=True)
    with Ledger.create(Path(folder) / "ledger.sqlite") as ledger:
        ledger.create_dataset("meters", epsilon=2.0)
        private = tempriv.spark.release(
            meters,
            mechanism,
            series="home",
            time="time",
            values="energy_kWh",
            ledger=ledger,
            dataset="meters",
        )
        private.orderBy("home", "time").show(5)
        print("spent so far:", ledger.show("meters").totals[0].spent)

    # a seeded key protects nothing, but shows that both engines draw the same noise
    by_spark = tempriv.spark.release(
        meters, mechanism, series="home", time="time", values="energy_kWh", key=Key.from_seed(1)
    ).toArrow()
    here = tempriv.release(
        METERS, mechanism, series="home", time="time", values="energy_kWh", key=Key.from_seed(1)
    ).table
    order = [("home", "ascending"), ("time", "ascending")]
    same = by_spark.sort_by(order)["energy_kWh"].equals(here.sort_by(order)["energy_kWh"])
    print("the same bits as on this machine:", same)
