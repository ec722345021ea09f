"""make bench: measures, prints the table and writes it as JSON.

python -m benchmarks [--large]   (--large adds a table of 100 million rows: memory)
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import tempfile
from pathlib import Path

from benchmarks import (
    audit,
    budgets,
    collect,
    correlation,
    counting,
    frequency,
    landmark,
    ledger,
    noise,
    order,
    pegasus,
    period,
    releases,
    sequences,
    shapes,
    sketches,
    spark,
    spark_stream,
    streams,
)
from benchmarks.measure import Row, one_core

RESULTS = Path(__file__).with_name("results.json")


def as_markdown(rows: list[Row]) -> str:
    lines = [
        "| work | tempriv | yardstick | ratio | wanted | reached |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        reached = {True: "yes", False: "NO", None: ""}[row.reached]
        lines.append(
            f"| {row.work} | {row.ours} | {row.yardstick} | {ratio} | {row.wanted} | {reached} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--large", action="store_true", help="100 million rows too: memory")
    large = parser.parse_args().large
    one_core()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_DATA_HOME"] = home  # a ledger of its own
        rows = releases.starting() + noise.rows() + budgets.rows() + audit.rows()
        rows += order.rows() + period.rows() + ledger.rows() + counting.rows()
        rows += pegasus.rows() + correlation.rows() + landmark.rows()
        rows += frequency.rows() + sequences.rows() + shapes.rows()
        rows += streams.rows() + spark.rows() + spark_stream.rows() + collect.rows()
        rows += releases.large(10_000_000) + sketches.rows()
        if large:
            rows += releases.large(100_000_000, rounds=1, with_copy=False)
    print(as_markdown(rows))
    machine = {"python": platform.python_version(), "processor": platform.machine()}
    found = {"machine": machine, "rows": [dataclasses.asdict(row) for row in rows]}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
