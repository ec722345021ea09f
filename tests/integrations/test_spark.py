"""Spark releases what the embedded release does, to the bit, and keeps the same secrets."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tempriv import release
from tempriv.data.series import SeriesTable
from tempriv.errors import BudgetError, DataError, KeyReuseError, TemprivError, UsageError
from tempriv.integrations import spark as tempriv_spark
from tempriv.integrations.spark import frames as adapter
from tempriv.integrations.spark import session as spark_start
from tempriv.integrations.spark import tasks
from tempriv.integrations.spark.session import started
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms import registry
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, Event, Person
from tempriv.releases.to_file import release_file
from tempriv.sampling.keys import Key
from tests.conformance.cases import CASES
from tests.support.engines import FIRST, in_order, same, table_of

pytestmark = pytest.mark.services

SERIES, ROWS = 5, 24


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(events: Path) -> Iterator[Any]:
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.task.maxFailures": "2",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "600m",
    }
    with started("local[2,2]", settings) as session:
        yield session


@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_a_frame_gets_the_bits_of_a_table(spark, kind):
    case = FIRST[kind]
    series = 1 if isinstance(case.unit, Contribution) else SERIES
    table, layout = table_of(case, series, ROWS)
    expected = release(table, case.mechanism, key=Key.from_seed(5), **layout)
    found = tempriv_spark.released(
        spark.createDataFrame(table), case.mechanism, key=Key.from_seed(5), partitions=3, **layout
    )
    same(in_order(found.frame.toArrow(), layout), in_order(expected.table, layout))
    about, theirs = ({**one.about, "created": None} for one in (found, expected))
    assert about == theirs


# what is true of one release


LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))
LAYOUT = {"series": "home", "time": "day", "values": "kwh"}


def readings(days: int = 4, homes: int = 3) -> pa.Table:
    ids = [f"h{i}" for i in range(homes) for _ in range(days)]
    values = [float((7 * i) % 5) for i in range(len(ids))]
    return pa.table({"home": ids, "day": list(range(days)) * homes, "kwh": values})


def test_times_ids_and_pseudonyms_come_out_as_they_do_of_a_table(spark):
    days = np.arange("2026-01-01", "2026-01-07", dtype="datetime64[D]")
    kinds = {
        "date": pa.array(days),
        "naive": pa.array(days.astype("datetime64[us]")),
        "zoned": pa.array(days.astype("datetime64[us]"), pa.timestamp("us", "UTC")),
    }
    kwh = pa.array([1, None, 3, 4, 5, 0], pa.int16())
    homes = pa.array([4, 12, 4, 12, 4, 12], pa.int32())
    for name, times in kinds.items():
        table = pa.table({"home": homes, name: times, "kwh": kwh})
        layout = {"series": "home", "time": name, "values": "kwh"}
        for pseudonyms in (False, True):
            how = {**layout, "pseudonyms": pseudonyms}
            expected = release(table, LAPLACE, key=Key.from_seed(5), **how)
            frame = spark.createDataFrame(table)
            if name == "naive":  # made of Arrow it would have a zone
                frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
            found = tempriv_spark.released(frame, LAPLACE, key=Key.from_seed(5), **how)
            same(in_order(found.frame.toArrow(), layout), in_order(expected.table, layout))
            assert found.about["times"] == expected.about["times"]
    hours = pa.array([0, 1, 2, 3, 6, 1], pa.int32())
    table = pa.table({"day": pa.array(days[[0, 0, 0, 0, 0, 1]]), "hour": hours, "kwh": kwh})
    layout = {"time": "day+hour", "values": "kwh", "gaps": "null"}
    expected = release(table, LAPLACE, key=Key.from_seed(5), **layout)
    frame = spark.createDataFrame(table)
    found = tempriv_spark.released(frame, LAPLACE, key=Key.from_seed(5), **layout)
    same(in_order(found.frame.toArrow(), layout), in_order(expected.table, layout))
    assert found.about["times"] == expected.about["times"]
    assert found.about["times"]["filled"] == 20  # of 26 hours six were there


def test_long_series_go_on_over_batches(spark, monkeypatch):
    monkeypatch.setattr(tasks, "BATCH_ROWS", 300)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    table = readings(days=3000, homes=2)
    for kind in (Laplace, Threshold, SamplingPeriod):
        mechanism = next(
            one.mechanism for one in CASES if isinstance(one.mechanism, kind) and one.columns == 1
        )
        how = {**LAYOUT, "clip": mechanism.domain.bounds is not None}
        expected = release(table, mechanism, key=Key.from_seed(5), **how)
        frame = spark.createDataFrame(table)
        found = tempriv_spark.release(frame, mechanism, key=Key.from_seed(5), **how)
        same(in_order(found.toArrow(), LAYOUT), in_order(expected.table, LAYOUT))
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_a_task_that_fails_once_gives_the_same_bits_and_counts_once(spark, tmp_path, monkeypatch):
    flag = str(tmp_path / "failed")

    class FailsOnce(tasks.Work):  # in here, so that it goes to the tasks with its code
        def __call__(self, batches):
            for batch in tasks.Work.__call__(self, batches):
                yield batch
                try:
                    Path(flag).touch(exist_ok=False)
                except FileExistsError:
                    continue
                raise RuntimeError("once, after rows have come out")

    table = readings(days=2000)
    expected = release(table, LAPLACE, key=Key.from_seed(5), **LAYOUT)
    monkeypatch.setattr(adapter, "Work", FailsOnce)
    frame = spark.createDataFrame(table)
    found = tempriv_spark.released(frame, LAPLACE, key=Key.from_seed(5), **LAYOUT)
    assert Path(flag).exists()
    same(in_order(found.frame.toArrow(), LAYOUT), in_order(expected.table, LAYOUT))
    assert found.about["rows"] == expected.about["rows"] == 6000


def test_a_frame_is_computed_once(spark, tmp_path):
    pq.write_table(readings(), tmp_path / "in.parquet")
    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    found = tempriv_spark.release(frame, LAPLACE, **LAYOUT)
    first = in_order(found.toArrow(), LAYOUT)
    pq.write_table(readings(days=9), tmp_path / "in.parquet")
    spark.catalog.clearCache()
    same(in_order(found.toArrow(), LAYOUT), first)
    assert "parquet" not in found._jdf.queryExecution().toString().lower(), "it has no past"


def test_a_key_serves_one_frame(spark):
    key, frame = Key.generate(), spark.createDataFrame(readings())
    tempriv_spark.release(frame, LAPLACE, key=key, **LAYOUT)
    with pytest.raises(KeyReuseError, match="already made the noise"):
        tempriv_spark.release(frame, LAPLACE, key=key, **LAYOUT)
    with pytest.raises(KeyReuseError, match="already made the noise"):
        release(readings(), LAPLACE, key=key, **LAYOUT)


def test_the_ledger_is_charged_as_for_a_table_before_there_is_a_frame(spark, ledger, monkeypatch):
    ledger.create_dataset("homes", epsilon=1.5)
    frame = spark.createDataFrame(readings())
    asked = []
    charge = ledger.charge

    def noted(dataset, guarantee, scope, release_id, **more):
        asked.append(scope)
        return charge(dataset, guarantee, scope, release_id, **more)

    monkeypatch.setattr(ledger, "charge", noted)
    found = tempriv_spark.released(frame, LAPLACE, ledger=ledger, dataset="homes", **LAYOUT)
    assert found.about["ledger"]["dataset"] == "homes"
    with pytest.raises(BudgetError):
        tempriv_spark.release(frame, LAPLACE, ledger=ledger, dataset="homes", **LAYOUT)
    assert len(ledger.log("homes")) == 1
    ledger.ensure_dataset("others")
    release(readings(), LAPLACE, ledger=ledger, dataset="others", **LAYOUT)
    scopes = [replace(one, members=tuple(sorted(one.members))) for one in (asked[0], asked[-1])]
    assert scopes[0] == scopes[1]


@pytest.mark.parametrize(
    ("columns", "layout", "sentence"),
    [
        ({"kwh": [1.0, 2.0, 9.0, 3.0]}, {}, "1 value outside the bounds"),
        ({"kwh": [1.0, 2.0, math.nan, 3.0]}, {}, "1 value is NaN"),
        ({"day": [0, 1, 1, 1]}, {}, "1 reading stands at a time"),
        ({"day": [0, 1, 0, None]}, {}, "1 row without a time"),
        ({"home": ["a", "a", "b", None]}, {}, "1 row without a series id"),
        ({"day": [0, 1, 0, 5]}, {}, "different usual steps"),
        ({"day": [0, 1, 0, 5]}, {"step": "1"}, "1 gap in the time grid"),
        ({"kwh": ["1", "2", "3", "4"]}, {}, "holds varchar, not numbers"),
        ({"home": [0.5, 0.5, 1.5, 1.5]}, {}, "ids must be text or whole numbers"),
        ({}, {"duplicates": "first"}, "rows of a Spark frame have no order"),
        ({}, {"time": None}, "rows of a Spark frame have no order"),
        ({}, {"values": "watts"}, "no column 'watts'"),
        ({}, {"partitions": 0}, "partitions=0: must be 1 or more"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_wrong_tables_are_refused_and_not_charged(spark, ledger, columns, layout, sentence):
    ledger.ensure_dataset("homes")
    table = pa.table(
        {"home": ["a", "a", "b", "b"], "day": [0, 1, 0, 1], "kwh": [1.0, 2.0, 3.0, 4.0], **columns}
    )
    how: dict[str, Any] = {"partitions": 7, **LAYOUT, **layout}
    with pytest.raises(TemprivError, match=re.escape(sentence)):
        frame = spark.createDataFrame(table)
        tempriv_spark.release(frame, LAPLACE, ledger=ledger, dataset="homes", **how)
    assert not ledger.log("homes")


def test_duplicates_are_refused_with_a_remedy_that_a_frame_has(spark):
    frame = spark.createDataFrame(pa.concat_tables([readings(), readings().slice(5, 1)]))
    with pytest.raises(DataError, match="1 reading stands at a time") as refused:
        tempriv_spark.release(frame, LAPLACE, **LAYOUT)
    assert str(refused.value).endswith(
        "already has; keep one of each before, by frame.dropDuplicates(['home', 'day'])"
    )
    mended = frame.dropDuplicates(["home", "day"])
    assert tempriv_spark.release(mended, LAPLACE, **LAYOUT).count() == 12


@pytest.mark.parametrize("where", ["reports", "fitting", "ledger", "file"])
def test_nothing_stays_aside_of_what_is_refused(spark, ledger, tmp_path, monkeypatch, where):
    def aside():
        return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())

    def full(*words, **named):
        raise BudgetError("another release was faster")

    ledger.ensure_dataset("homes")
    paid = {"ledger": ledger, "dataset": "homes"}
    table, before = readings(), aside()
    good = tempriv_spark.release(spark.createDataFrame(table), LAPLACE, **paid, **LAYOUT)
    assert len(aside() - before) == 1  # what stays is seen
    before, mechanism, sentence = aside(), LAPLACE, "another release was faster"
    monkeypatch.setattr(ledger, "charge", full)
    if where == "reports":
        table, sentence = pa.concat_tables([table, table.slice(5, 1)]), "1 reading stands at a time"
    if where == "fitting":
        mechanism, sentence = BlockShuffle(epsilon=1.0, block=9), "the longest series has 4"
    frame = spark.createDataFrame(table)
    with pytest.raises(TemprivError, match=sentence):
        if where == "file":
            layout = SeriesTable(None, values=("kwh",), time="day", series="home")
            passage = adapter.SparkReleaseRun(frame, layout, mechanism)
            release_file(passage, tmp_path / "out.csv", **paid)
        tempriv_spark.release(frame, mechanism, **paid, **LAYOUT)
    assert not aside() - before
    assert good.count() == 12


def test_persons_are_looked_at(spark):
    table = readings().append_column("who", pa.array(["ann"] * 8 + ["bob"] * 4))
    frame = spark.createDataFrame(table)
    for most in (1, 2):
        unit = Person(max_series=most, each=Event())
        mechanism = Laplace(epsilon=1.0, bounds=(0, 5), unit=unit)
        how = {**LAYOUT, "person": "who", "max_series_per_person": most}
        if most == 1:
            with pytest.raises(DataError, match="1 person has more than 1 series"):
                tempriv_spark.release(frame, mechanism, **how)
        else:
            tempriv_spark.release(frame, mechanism, **how)


# secrets


def test_no_plan_and_no_file_of_spark_holds_a_key(spark, events, monkeypatch):
    secrets = []
    real = Key.series

    def seen(self, digest, series):
        made = real(self, digest, series)
        secrets.append(made.secret)
        return made

    monkeypatch.setattr(Key, "series", seen)
    key = Key.generate()
    secrets.append(key._secret)
    plans = []
    keep = adapter.kept_aside

    local = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    texts = []

    def look():
        files = [path for folder in (events, local) for path in folder.rglob("*") if path.is_file()]
        assert any("shuffle" in path.name for path in files)
        for path in files:
            with contextlib.suppress(FileNotFoundError):  # Spark removes what it needs no more
                texts.append(path.read_bytes())

    def watched(frame, durable=False):
        plans.append(frame._jdf.queryExecution().toString())
        aside = keep(frame, durable)
        look()  # while tasks still have the keys
        return aside

    monkeypatch.setattr(adapter, "kept_aside", watched)
    found = tempriv_spark.release(spark.createDataFrame(readings(500)), LAPLACE, key=key, **LAYOUT)
    found.count()
    assert len(secrets) == 4 and plans and "MapInArrow" in plans[0]
    plans.append(found._jdf.queryExecution().toString())
    look()
    texts += [plan.encode() for plan in plans]
    for secret in secrets:
        spelled = (secret, secret.hex().encode(), base64.b64encode(secret)[:40])
        assert not any(one in text for one in spelled for text in texts)
    # and the search finds what is there
    assert any(spark.sparkContext.applicationId.encode() in text for text in texts)


def test_what_is_written_aside_is_encrypted(spark):
    marked = pa.array(["private-reading-" * 50] * 4000)
    table = readings(4000, 1).append_column("note", marked)
    mechanism = FIRST[BlockShuffle].mechanism
    frame = spark.createDataFrame(table)
    how = {**LAYOUT, "values": "note"}
    found = tempriv_spark.release(frame, mechanism, **how)
    assert found.where("note like 'private-reading-%'").count() == 4000
    local = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    files = [path for path in local.rglob("*") if path.is_file() and path.suffix != ".index"]
    assert sum(path.stat().st_size for path in files) > 10_000
    assert not any(b"private-reading" in path.read_bytes() for path in files)


def test_a_session_that_writes_in_clear_is_refused(spark, monkeypatch):
    frame = spark.createDataFrame(readings())
    monkeypatch.setattr(spark_start, "ENCRYPTION", "spark.not.set")
    with pytest.raises(UsageError, match="io.encryption"):
        tempriv_spark.release(frame, LAPLACE, **LAYOUT)


def test_a_second_session_is_refused(spark):
    with pytest.raises(UsageError, match="open in this process already"), started("local[1]"):
        pass


# the command


def tempriv(folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tempriv", *map(str, words)],
        cwd=folder,
        env=os.environ | {"XDG_DATA_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )


SPARK = ("--engine", "spark", "--master", "local[2]")


def days_of_homes(folder: Path) -> None:
    rng = np.random.default_rng(11)
    rows = [(f"h{i}", f"2026-01-0{d}", h) for i in range(4) for d in (1, 2) for h in range(24)]
    lines = [
        f"{home},{day},{hour},{rng.random() * 5:.3f},{int(rng.random() < 0.2)}"
        for home, day, hour in rng.permutation(rows).tolist()
    ]
    lines[7] = ",".join([*lines[7].split(",")[:3], "", ""])
    (folder / "in.csv").write_text("\n".join(["home,date,hour,kwh,mark", *lines]) + "\n")


def test_the_command_writes_what_it_writes_without_spark(tmp_path):
    days_of_homes(tmp_path)
    seeded = ("--time", "date+hour", "--series", "home", "--key-seed", 3, "--not-private")
    laplace = ("--mechanism", "laplace", "--epsilon", 1, "--bounds", 0, 5, "--value", "kwh")
    for output, engine in (("spark.csv", SPARK), ("embedded.csv", ("--no-ledger",))):
        done = tempriv(tmp_path, "release", "in.csv", output, *laplace, *seeded, *engine)
        assert done.returncode == 0, done.stderr
    found, expected = (
        sorted((tmp_path / name).read_text().splitlines()) for name in ("spark.csv", "embedded.csv")
    )
    assert found == expected
    # it is charged too; the seed is the one thing wrong with it
    checked = tempriv(tmp_path, "verify", "spark.csv")
    assert checked.stdout.count("WRONG") == 1
    about = json.loads((tmp_path / "spark.csv.release.json").read_text())
    assert about["ledger"]["dataset"] == "in.csv"
    with Ledger.open(tmp_path / "home" / "tempriv" / "ledger.sqlite") as book:
        assert len(book.log("in.csv")) == 1


def test_the_command_takes_a_directory_and_keeps_what_is_the_owners(tmp_path):
    days_of_homes(tmp_path)
    table = pa.csv.read_csv(tmp_path / "in.csv")
    pq.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "parts").mkdir()
    for i in range(3):
        pq.write_table(table.slice(70 * i, 70), tmp_path / "parts" / f"part-{i}.parquet")
    marked = ("--mechanism", "uniform-landmarks", "--epsilon", 1, "--bounds", 0, 5)
    columns = ("--value", "kwh", "--landmarks", "mark", "--time", "date+hour", "--series", "home")
    words = (*marked, *columns, "--key-seed", 3, "--not-private", "--no-ledger", "--json")
    words += ("--landmarks-given",)
    told = []
    for source, output, engine in (
        ("parts", "spark.parquet", SPARK),
        ("in.parquet", "embedded.parquet", ()),
    ):
        done = tempriv(tmp_path, "release", source, output, *words, *engine)
        assert done.returncode == 0, done.stderr
        told.append({**json.loads(done.stdout), "created": None, "output": None})
    assert told[0] == told[1]
    layout = {"series": "home", "time": "date+hour"}
    tables = [pq.read_table(tmp_path / f"{one}.parquet") for one in ("spark", "embedded")]
    same(*(in_order(one.replace_schema_metadata(None), layout) for one in tables))
    owned = [
        sorted((tmp_path / f"{one}.parquet.owner.csv").read_text().splitlines())
        for one in ("spark", "embedded")
    ]
    assert owned[0] == owned[1] and len(owned[0]) == 193
    assert (tmp_path / "spark.parquet.owner.csv").stat().st_mode & 0o077 == 0


def test_a_file_that_cannot_be_read_is_refused_and_not_quoted(tmp_path):
    lines = [f"h1,{i},{i % 5}" for i in range(110_000)]
    lines[105_000] = "h1,105000,secret-9876"  # past what the types are found by
    (tmp_path / "in.csv").write_text("\n".join(["home,day,kwh", *lines]) + "\n")
    laplace = ("--mechanism", "laplace", "--epsilon", 1, "--bounds", 0, 5, "--value", "kwh")
    words = (*laplace, "--time", "day", "--series", "home")
    done = tempriv(tmp_path, "release", "in.csv", "out.csv", *words, *SPARK)
    assert done.returncode == 1 and "could not be computed" in done.stderr
    assert "9876" not in done.stderr + done.stdout
    assert not (tmp_path / "out.csv").exists() and not list(tmp_path.glob(".*partial*"))
    with Ledger.open(tmp_path / "home" / "tempriv" / "ledger.sqlite") as book:
        assert not book.log()


# several machines

CLUSTER = """
import json, os, signal, sys
from pathlib import Path

from pyspark.sql import SparkSession
from tempriv import Laplace
from tempriv.errors import BudgetError, UsageError
from tempriv.integrations import spark as tempriv_spark
from tempriv.integrations.spark import session
from tempriv.ledger.ledger import Ledger

folder = Path(sys.argv[1])
settings = {**session.LOCAL, "spark.authenticate": "true", "spark.authenticate.secret": "s" * 32,
            "spark.network.crypto.enabled": "true", "spark.executor.memory": "512m",
            "spark.local.dir": str(folder / "scratch")}
builder = SparkSession.builder.master("local-cluster[1,1,512]")
for name, value in settings.items():
    builder = builder.config(name, value)
with session._environment("local-cluster"):
    spark = builder.getOrCreate()
rows = [("a", t, float(t % 5)) for t in range(40)]
frame = spark.createDataFrame(rows, "home string, t int, v double")
ledger = Ledger.create(folder / "ledger")
mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
ledger.create_dataset("meters", mechanism.unit, epsilon=1.5)
how = {"series": "home", "time": "t", "values": "v", "ledger": ledger, "dataset": "meters"}
told = {}
try:
    tempriv_spark.release(frame, mechanism, **how)
except UsageError as refusal:
    told["without"] = str(refusal)
spark.sparkContext.setCheckpointDir(str(folder / "kept"))
application = spark.sparkContext.applicationId.encode()
released = tempriv_spark.release(frame, mechanism, **how)
for process in Path("/proc").glob("[0-9]*"):
    words = (process / "cmdline").read_bytes() if (process / "cmdline").exists() else b""
    if b"CoarseGrainedExecutorBackend" in words and application in words:
        os.kill(int(process.name), signal.SIGKILL)
        told["killed"] = True
told["rows"] = released.count()
kept = lambda: sum(path.is_file() for path in (folder / "kept").rglob("part-*"))
told["files"] = kept()
ledger.create_dataset("meters", mechanism.unit, epsilon=5.0, replace=True)

def full(*words, **more):
    told["before the charge"] = kept() > told["files"]
    raise BudgetError("no room")

ledger.charge = full
try:
    tempriv_spark.release(frame, mechanism, **how)
except BudgetError:
    told["left"] = kept() - told["files"]
print(json.dumps(told))
spark.stop()
"""


def test_a_charged_result_outlives_the_machines_that_made_it(tmp_path):
    """On a cluster whose only executor is killed; a result that is not charged is not kept."""
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert "checkpoint directory" in told.pop("without")
    assert told.pop("files") > 0
    assert told == {"killed": True, "rows": 40, "before the charge": True, "left": 0}
