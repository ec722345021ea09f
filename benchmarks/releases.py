"""Whole commands: a release of a large table beside DuckDB's own sorted copy, and starting up."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks.measure import Row, command

DATA = Path(__file__).with_name("_data")
SERIES = 10_000

COPY = """
import duckdb, sys
con = duckdb.connect()
con.execute("SET threads = 1; SET enable_progress_bar = false")
con.execute(f"SET temp_directory = '{sys.argv[3]}'")
con.execute(f"COPY (SELECT * FROM '{sys.argv[1]}' ORDER BY meter, time) TO '{sys.argv[2]}'")
"""


def table(kind: str, rows: int) -> Path:
    """Readings of ten thousand meters, interleaved by time; made once and kept."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"{kind}_{rows}.parquet"
    if not path.exists():
        name = {
            "string": f"'meter-' || lpad(((i * 7919) % {SERIES})::VARCHAR, 5, '0')",
            "integer": f"(i * 7919) % {SERIES}",
        }[kind]
        duckdb.execute("SET enable_progress_bar = false")
        duckdb.sql(
            f"COPY (SELECT {name} AS meter, TIMESTAMP '2024-01-01' + to_hours(i // {SERIES}) AS "
            f"time, (hash(i) % 5000) / 1000.0 AS kwh FROM range({rows}) AS t(i)) TO '{path}'"
        )
    return path


def release(source: Path, output: Path, *more: str) -> tuple[float, float]:
    """The whole command, as typed."""
    words = ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5", "--time", "time"]
    arguments = ["release", str(source), str(output), "--force", "--value", "kwh", *words, *more]
    return command([sys.executable, "-m", "tempriv", *arguments])


def large(rows: int, rounds: int = 3, with_copy: bool = True) -> list[Row]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        out, spill = Path(folder) / "out.parquet", Path(folder) / "spill"
        for kind, most in (("string", 1.2), ("integer", 2.2)):
            source = table(kind, rows)
            ours, theirs, memory = float("inf"), float("inf"), 0.0
            for _ in range(rounds):
                if with_copy:
                    copied = command(
                        [sys.executable, "-c", COPY, str(source), str(out), str(spill)]
                    )
                    theirs = min(theirs, copied[0])
                seconds, peak = release(source, out, "--series", "meter")
                ours, memory = min(ours, seconds), max(memory, peak)
            work = f"release {rows // 10**6} million rows, {kind} ids"
            if with_copy:
                found.append(
                    Row(
                        work,
                        f"{ours:.2f} s",
                        f"DuckDB sorts and writes it: {theirs:.2f} s",
                        ours / theirs,
                        f"at most {most} times",
                        ours / theirs <= most,
                    )
                )
            found.append(
                Row(
                    f"{work}: peak memory",
                    f"{memory:.0f} MB ({ours:.1f} s)",
                    "",
                    None,
                    "at most 1,200 MB",
                    memory <= 1200,
                )
            )
    return found


def starting() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.csv"
        small.write_text("time,kwh\n" + "".join(f"{i},{i % 5}\n" for i in range(1000)))
        output = Path(folder) / "out.csv"
        found = []
        for work, run, most in (
            (
                "warm start of tempriv mechanisms",
                lambda: command([sys.executable, "-m", "tempriv", "mechanisms"]),
                1.0,
            ),
            ("warm release of 1,000 rows", lambda: release(small, output), 2.0),
        ):
            run()
            seconds = statistics.median(run()[0] for _ in range(5))
            found.append(
                Row(work, f"{seconds:.2f} s", "", None, f"under {most:g} s", seconds < most)
            )
    return found
