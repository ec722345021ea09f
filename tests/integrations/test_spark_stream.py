"""A Spark stream: the same bits as embedded streams, whatever is killed, and refused where not."""

from __future__ import annotations

import datetime
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tempriv.errors import BudgetError, KeyReuseError, TemprivError
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.stream import start
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import Contribution, Event, Person
from tempriv.sampling.keys import Key
from tests.conformance.cases import CASES
from tests.integrations.test_spark_groups import ABSORPTION, LAPLACE, SEED, THRESHOLD, secrets_of
from tests.support.paths import ROOT

spark_is_needed = pytest.mark.services
SCHEMA = "who string, t long, v double, note string"
NAMED = {"threshold": THRESHOLD, "absorption": ABSORPTION}
VALUES = {"threshold": ["v", "note"], "absorption": ["v"]}
STARVED = 75  # the exit status of a process that may try again
MARKER = "MARKER-7f3a9c51d2e84b60"  # stands in a private text, to show that a search finds


def readings(files: int, seed: int = 1) -> list[list[tuple[Any, ...]]]:
    """Files of readings of some series: in disorder, late, twice, and some that are none."""
    rng = random.Random(seed)
    found = []
    for number in range(files):
        rows: list[tuple[Any, ...]] = []
        for who in ("ann", "bob", "cy", "dee", "eve"):
            for t in range(4 * number, 4 * number + 4):
                rows.append((who, t, rng.randrange(6) * 1.0, f"{MARKER} {who} {t}"))
        rng.shuffle(rows)
        if number:
            rows += [(None, 1, 1.0, "x"), ("ann", None, 1.0, "x")]
            rows += [("bob", 4 * number - 2, 4.0, "late"), rows[3]]
        found.append(rows)
    return found


def taken(files: list[list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """By definition: within a file by time, each later than all of its series before."""
    series: dict[str, list[tuple[Any, ...]]] = {}
    for rows in files:
        for row in sorted(row for row in rows if None not in row):
            before = series.setdefault(row[0], [])
            if not before or row[1] > before[-1][1]:
                before.append(row)
    return series


def wanted_rows(kind: str, files: list[list[tuple[Any, ...]]]) -> Counter[Any]:
    """What embedded streams release of the files, row by row."""
    found: Counter[Any] = Counter()
    mechanism = NAMED[kind]
    for who, rows in taken(files).items():
        stream = start(mechanism, Key.from_seed(SEED), who)
        if kind == "threshold":
            out = stream.push([[row[2], row[3]] for row in rows]).tolist()
        else:
            out = [[one] for one in stream.push([row[2] for row in rows]).tolist()]
        for row, values in zip(rows, out, strict=True):
            found[(who, row[1], *values)] += 1
    return found


def lay_out(folder: Path, files: list[list[tuple[Any, ...]]]) -> None:
    (folder / "in").mkdir(parents=True)
    for number, rows in enumerate(files):
        columns = list(zip(*rows, strict=True))
        names = ("who", "t", "v", "note")
        kinds = (pa.string(), pa.int64(), pa.float64(), pa.string())
        table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
        path = folder / "in" / f"{number:03}.parquet"
        pyarrow.parquet.write_table(table, path)
        os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark takes them in this order
    key = Key.from_seed(SEED)
    key.save(folder / "key")
    key.close()


def settings(folder: Path) -> dict[str, str]:
    from tempriv.integrations.spark.streams import SETTINGS

    (folder / "events").mkdir(exist_ok=True)
    return {
        **SETTINGS,
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.log.level": "OFF",
        # it starts often and never runs long
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }


def go_on(spark: Any, folder: Path, kind: str) -> Any:
    """Stream what is in a folder, a file a batch, to its end; the query when it ended."""
    from tempriv.integrations.spark import streams as spark_stream

    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    released = spark_stream.stream(
        frame.parquet(str(folder / "in")),
        NAMED[kind],
        series="who",
        time="t",
        values=VALUES[kind],
        key_file=folder / "key",
        groups=3,
    )
    query = spark_stream.write(released, folder / "out", folder / "check", availableNow=True)
    query.awaitTermination()
    return query


def committed(folder: Path) -> set[Path]:
    """The files that readers are to read, by the log of the sink."""
    log = folder / "out" / "_spark_metadata"
    batches = [path for path in log.iterdir() if path.name[0].isdigit()]
    batches.sort(key=lambda path: int(path.name.partition(".")[0]))
    compact = [i for i, path in enumerate(batches) if path.suffix == ".compact"]
    lines: list[str] = []
    for path in batches[compact[-1] if compact else 0 :]:
        lines += path.read_text().splitlines()[1:]
    return {Path(urllib.parse.urlparse(json.loads(line)["path"]).path) for line in lines}


def rows_in(paths: Any) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for path in paths:
        for row in pyarrow.parquet.ParquetFile(path).read().to_pylist():
            row.pop("status", None)
            rows[tuple(row.values())] += 1
    return rows


def orphans(folder: Path) -> Counter[Any]:
    """Rows of files that killed attempts left behind, those that were written to their end."""
    return rows_in(written(folder) - committed(folder))


def begin(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.integrations.test_spark_stream", str(folder), kind],
            cwd=ROOT,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=os.environ | {"XDG_DATA_HOME": str(folder)},
        )


def work_of(folder: Path) -> int:
    """Goes up whenever a batch begins or ends."""
    logs = [folder / "check" / name for name in ("offsets", "commits")]
    return sum(path.name.isdigit() for log in logs if log.is_dir() for path in log.iterdir())


def written(folder: Path) -> set[Path]:
    """Files of released rows that are there to their end, for whoever may read them."""
    found = (folder / "out").glob("*.parquet")
    return {path for path in found if path.read_bytes()[-4:] == b"PAR1"}


def kill_again_and_again(folder: Path, kind: str, kills: int, rng: random.Random) -> int:
    """Run to the end with so many kill -9; how many of them hit a batch at work."""
    number = amid = starved = 0
    while number < kills:
        seen, files = work_of(folder), written(folder)
        process = begin(folder, kind)
        # Java takes long to start: moments are drawn from those at which there is work, from the
        # first on, and never so many batches that no file is left. Every other kill comes when a
        # batch has rows in the folder, which is a short moment
        for _ in range(rng.randint(1, 3)):
            while process.poll() is None and work_of(folder) == seen:
                time.sleep(0.01)
            seen, files = work_of(folder), written(folder)
        if number % 2:
            time.sleep(rng.uniform(0, 0.7))
        else:
            while process.poll() is None and written(folder) == files:
                time.sleep(0.002)
        if process.poll() == STARVED and starved < kills:
            starved += 1
            continue
        assert process.poll() is None, "ended before it was killed: refused, or too few files"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        amid += work_of(folder) % 2
        number += 1
    run_to_the_end(folder, kind)
    return amid


def run_to_the_end(folder: Path, kind: str) -> None:
    for _ in range(3):
        status = begin(folder, kind).wait()
        if status != STARVED:
            break
    assert status == 0, (folder / "said.txt").read_text()[-3000:]


@spark_is_needed
@pytest.mark.parametrize(
    ("kind", "kills"),
    [("absorption", 2), pytest.param("threshold", 10, marks=pytest.mark.long)],
    ids=["2 kills", "10 kills"],
)
def test_kills_lose_nothing_and_change_no_bit(kind, kills, tmp_path):
    pytest.importorskip("pyspark")
    files = readings(5 + 5 * kills)
    for name in ("killed", "whole"):
        lay_out(tmp_path / name, files)
    amid = kill_again_and_again(tmp_path / "killed", kind, kills, random.Random(kills))
    run_to_the_end(tmp_path / "whole", kind)
    killed, whole = (rows_in(committed(tmp_path / name)) for name in ("killed", "whole"))
    wanted = wanted_rows(kind, files)
    assert whole == wanted
    assert killed == wanted
    left = orphans(tmp_path / "killed")
    assert not set(left) - set(wanted)
    if kills >= 10:
        assert amid and left, f"{amid} kills hit a batch, {left.total()} rows: this shows nothing"
    nothing_tells_the_key(tmp_path / "killed", kind)


def nothing_tells_the_key(folder: Path, kind: str) -> None:
    """No file but the key's own holds a key in any form; held readings are found the same way."""
    names = list(taken(readings(1)))
    secrets = secrets_of(folder / "key", NAMED[kind], names)
    places = {name: folder / name for name in ("check", "out", "events", "key.released")}
    found = {
        name: b"\n".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
        for name, place in places.items()
    }
    for name, data in found.items():
        assert data, name
        for secret in secrets:
            assert secret not in data, name
    if kind == "threshold":
        assert MARKER.encode() in found["check"]
    assert str(folder / "key").encode() not in found["check"]  # plans are not kept there either
    assert (folder / "check").stat().st_mode & 0o077 == 0
    assert (folder / "key").stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    pytest.importorskip("pyspark")
    from tempriv.integrations.spark.session import started

    with started("local[2]", settings(tmp_path_factory.mktemp("spark"))) as session:
        yield session


@spark_is_needed
def test_a_deleted_checkpoint_and_other_readings_are_refused(spark, tmp_path):
    files = readings(3)
    lay_out(tmp_path, files)
    query = go_on(spark, tmp_path, "threshold")
    assert rows_in(committed(tmp_path)) == wanted_rows("threshold", files)
    counted = [progress["observedMetrics"]["tempriv"] for progress in query.recentProgress]
    total = {name: sum(one[name] for one in counted) for name in counted[0].asDict()}
    came, late, none = sum(map(len, files)), 4, 4
    assert total == {
        "readings": came,
        "released": came - late - none,
        "late": late,
        "unreadable": none,
        "beyond": 0,
    }
    (tmp_path / "check").rename(tmp_path / "away")
    (tmp_path / "out").rename(tmp_path / "old")
    with pytest.raises(Exception, match="does not lead to what was released"):
        go_on(spark, tmp_path, "threshold")
    assert not rows_in((tmp_path / "out").rglob("*.parquet"))


@spark_is_needed
def test_times_ids_and_values_of_many_kinds(spark, tmp_path):
    from tempriv.integrations.spark import streams as spark_stream

    answers = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    day, moment = datetime.date(2024, 2, 28), datetime.datetime(2024, 2, 28, 23, 59, 59, 5)
    rows = [
        (
            i % 2,
            day + datetime.timedelta(i),
            moment + datetime.timedelta(seconds=i),
            str(i % 6),
            ["no", "yes", "perhaps", None][i % 4],
        )
        for i in range(12)
    ]
    (tmp_path / "in").mkdir()
    names = ("home", "day", "moment", "kwh", "answer")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    table = table.set_column(0, "home", table["home"].cast(pa.int32()))
    table = table.set_column(2, "moment", table["moment"].cast(pa.timestamp("us", "UTC")))
    pyarrow.parquet.write_table(table, tmp_path / "in" / "one.parquet")
    schema = "home int, day date, moment timestamp, kwh string, answer string"
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))

    def rows_of(name: str, mechanism: Any, **layout: Any) -> Any:
        released = spark_stream.stream(frame, mechanism, key_file=tmp_path / name, **layout)
        out = tmp_path / f"{name} out"
        spark_stream.write(
            released, out, tmp_path / f"{name} check", availableNow=True
        ).awaitTermination()
        return released, spark.read.parquet(str(out)).collect()

    released, got = rows_of("numbers", LAPLACE, series="home", time="day", values="kwh")
    assert released.dtypes == [("home", "int"), ("day", "date"), ("kwh", "double")]
    assert sorted(row[:2] for row in got) == sorted(row[:2] for row in rows)
    assert all(isinstance(row.kwh, float) for row in got)
    released, got = rows_of("answers", answers, time="moment", values=["answer"])
    assert released.dtypes == [("moment", "timestamp"), ("answer", "string")]
    assert len(got) == 12 and {row.answer for row in got} <= {"no", "yes", None}
    assert sum(row.answer is None for row in got) == 3
    moved = Threshold(epsilon=1.0, window=3)
    released, got = rows_of("moved", moved, series="home", time="day", values=["moment", "answer"])
    kinds = [("home", "int"), ("day", "date"), ("moment", "timestamp"), ("answer", "string")]
    assert released.dtypes == [*kinds, ("status", "string")]
    moments = {row[2].replace(tzinfo=None) for row in rows}
    assert {row.moment for row in got if row.moment is not None} <= moments
    # the key was made, for its owner only, and serves this stream alone
    assert (tmp_path / "moved").stat().st_mode & 0o077 == 0
    with pytest.raises(KeyReuseError, match="another mechanism"):
        rows_of("moved", LAPLACE, series="home", time="day", values="kwh")


@spark_is_needed
def test_what_cannot_be_meant_is_refused(spark, tmp_path, ledger):
    from tempriv.integrations.spark import streams as spark_stream

    lay_out(tmp_path, readings(1))
    frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    table = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    usual = {"series": "who", "time": "t", "values": "v", "key_file": tmp_path / "key"}

    def refused(sentence: str, frame: Any = frame, mechanism: Any = LAPLACE, **other: Any) -> None:
        with pytest.raises(TemprivError, match=sentence):
            spark_stream.stream(frame, mechanism, **(usual | other))

    whole = next(case.mechanism for case in CASES if case.mechanism.takes_whole)
    refused("must be a stream", frame=table)
    refused("needs a whole series", mechanism=whole)
    refused(
        "cannot be checked", mechanism=Laplace(epsilon=1.0, bounds=(0, 5), unit=Person(2, Event()))
    )
    people = next(c.mechanism for c in CASES if isinstance(c.mechanism.unit, Contribution))
    refused("columns of one stream", mechanism=people)
    refused("groups=0", groups=0)
    refused("goes with the name of a dataset", ledger=ledger)
    refused("no column 'x'", values="x")
    refused("name each only once", values="t")
    refused("set up for 1", values=["v", "note"])
    refused("must be a whole number, a date or a timestamp", time="note", values="v")
    refused("must be text or a whole number", series="v", values="note")
    refused("no such directory", key_file=tmp_path / "none" / "key")
    (tmp_path / "key").chmod(0o644)
    refused("others can read it")
    (tmp_path / "key").chmod(0o600)
    store = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(store)
    spark.conf.set(store, before.replace("RocksDB", "HDFSBacked"))
    refused("must be RocksDB's")
    spark.conf.set(store, before)
    released = spark_stream.stream(frame, LAPLACE, **usual)
    with pytest.raises(TemprivError, match="apart from the output"):
        spark_stream.write(released, tmp_path / "out", tmp_path / "out" / "check")
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(TemprivError, match="others can look into it"):
        spark_stream.write(released, tmp_path / "out", tmp_path / "open")


@spark_is_needed
def test_the_ledger_is_charged_once(spark, tmp_path, ledger):
    from tempriv.integrations.spark import streams as spark_stream

    lay_out(tmp_path, readings(1))
    frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    ledger.create_dataset("homes", epsilon=1.5)
    for _ in range(2):
        spark_stream.stream(
            frame,
            LAPLACE,
            series="who",
            time="t",
            values="v",
            key_file=tmp_path / "secret",
            ledger=ledger,
            dataset="homes",
        )
    assert len(ledger.log("homes")) == 1
    with pytest.raises(BudgetError):
        spark_stream.stream(
            frame,
            LAPLACE,
            series="who",
            time="t",
            values="v",
            key_file=tmp_path / "another",
            ledger=ledger,
            dataset="homes",
        )
    assert not (tmp_path / "another.released").exists()


def main(folder: str, kind: str) -> None:
    """What is killed: one process with a Spark of its own."""
    from tempriv.integrations.spark.session import started

    with started("local[2]", settings(Path(folder))) as session:
        try:
            go_on(session, Path(folder), kind)
        except Exception as problem:
            # ten seconds are all that Spark gives its worker to start, on a busy machine too
            told = str(problem)
            sys.exit(STARVED if "Python worker failed to connect back" in told else told)


if __name__ == "__main__":
    main(*sys.argv[1:])
