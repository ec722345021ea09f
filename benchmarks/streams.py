"""Keyed streams: a file of interleaved series to a file, durably, beside a plain loop."""

from __future__ import annotations

import csv
import os
import tempfile
import time
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks.measure import Row
from tempriv import Laplace, Threshold
from tempriv.streaming import sources
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile

KEYS = 10_000
LINES = 5_000_000
BLOCK = 100_000  # lines that are committed together
WANTED = 700_000  # a second
LOOPED = 200_000
ROUNDS = 3


def write(path: Path) -> None:
    """Every series has a reading at every time, in another order each time."""
    generator = np.random.default_rng(1)
    with path.open("w") as file:
        file.write("who,t,v\n")
        for t in range(LINES // KEYS):
            order, values = generator.permutation(KEYS), generator.random(KEYS) * 5
            rows = zip(order.tolist(), values.tolist(), strict=True)
            file.write("".join(f"k{one},{t},{value:.2f}\n" for one, value in rows))


def release(mechanism: Threshold | Laplace, path: Path, folder: Path) -> int:
    """As ``tempriv stream --input FILE --output FILE --state FILE`` does, from nothing."""
    for old in folder.glob("state*"):
        old.unlink()
    out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_APPEND)
    record_format = RecordFormat("csv", ["v"], "t", "who", None, mechanism.has_status)
    pipeline = StreamPipeline(
        mechanism, record_format, DescriptorSink(out), StateFile(folder / "state")
    )
    with pipeline.locked():
        pipeline.deliver_pending()
        for batch, position in sources.FileSource(path, record_format).batches(lambda: False):
            pipeline.push(batch, position)
        pipeline.finish()
    os.close(out)
    return pipeline.counts.released


def copy(path: Path, folder: Path) -> None:
    """What any program has to do: read the columns and write them."""
    table = pa.csv.read_csv(path, pa.csv.ReadOptions(use_threads=False))
    pa.csv.write_csv(table, folder / "copy.csv")


def line_by_line(path: Path, folder: Path) -> None:
    """A reading at a time, its series in a dictionary; without noise, state or durability."""
    held: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=20))
    with path.open() as source, (folder / "plain.csv").open("w") as target:
        writer = csv.writer(target)
        reader = csv.reader(source)
        writer.writerow(next(reader))
        for number, (who, t, v) in enumerate(reader):
            if number == LOOPED:
                break
            held[who].append(v)
            writer.writerow([who, t, held[who][-1]])


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        path = folder / "in.csv"
        write(path)
        before, sources.CHUNK_BYTES = sources.CHUNK_BYTES, path.stat().st_size * BLOCK // LINES
        try:
            found = [
                _measured(mechanism, path, folder)
                for mechanism in (
                    Threshold(epsilon=6.0, window=20),
                    Laplace(epsilon=1.0, bounds=(0, 5)),
                )
            ]
        finally:
            sources.CHUNK_BYTES = before
    return found


def _measured(mechanism: Threshold | Laplace, path: Path, folder: Path) -> Row:
    best = {name: float("inf") for name in ("ours", "copy", "plain")}
    calls = {
        "ours": lambda: release(mechanism, path, folder),
        "copy": lambda: copy(path, folder),
        "plain": lambda: line_by_line(path, folder),
    }
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    speed, copied = LINES / best["ours"], LINES / best["copy"]
    looped = LOOPED / best["plain"]
    what = f"{type(mechanism).__name__}{', k = 20' * isinstance(mechanism, Threshold)}"
    return Row(
        f"keyed durable stream of {KEYS:,} series, {what}, {BLOCK:,}-line blocks",
        f"{speed / 1e6:.2f} million lines/s",
        f"Arrow copies the file, neither private nor durable: {copied / 1e6:.2f} million/s; a "
        f"plain loop: {looped / 1e6:.2f} million/s",
        speed / copied,
        f">= {WANTED:,} lines/s" if isinstance(mechanism, Threshold) else "",
        speed >= WANTED if isinstance(mechanism, Threshold) else None,
    )
