"""What it costs that a ledger knows the rows of a release again: time, and bytes in its file.

python -m benchmarks.sketches [ROWS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from benchmarks.measure import Row, one_core
from benchmarks.releases import table
from tempriv.data.series import SeriesTable
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file

MEGABYTE = 1e6


def _release(source: Path, folder: Path) -> None:
    series = SeriesTable(source, values=("kwh",), time="time", series="meter")
    run = ReleaseRun(series, Laplace(epsilon=1.0, bounds=(0, 5)))
    with Ledger.create(folder / "ledger.sqlite") as book:
        book.ensure_dataset("meters")
        release_file(run, folder / "out.parquet", ledger=book, dataset="meters", force=True)


def _least(calls: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    """The least seconds of the processor that each call takes; they take turns."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            began = time.process_time()
            call()
            least[number] = min(least[number], time.process_time() - began)
    return least


def rows(count: int = 10_000_000, rounds: int = 3) -> list[Row]:
    source = table("integer", count)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "with"), Path(folder, "without")
        for each in (first, second):
            each.mkdir()

        def without() -> None:
            with mock.patch.object(ReleaseRun, "sketch_for"):
                _release(source, second)

        ours, theirs = _least([lambda: _release(source, first), without], rounds)
        sizes = []
        for each in (first, second):
            with Ledger.open(each / "ledger.sqlite") as book:
                book._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes.append((each / "ledger.sqlite").stat().st_size / MEGABYTE)
    millions = f"{count / 10**6:g} million rows"
    return [
        Row(
            f"release {millions}, its rows sketched for the ledger",
            f"{ours:.2f} s",
            f"without: {theirs:.2f} s",
            ours / theirs,
            "at most 1.1 times",
            ours <= 1.1 * theirs,
        ),
        Row(
            f"ledger after a release of {millions}",
            f"{sizes[0]:.2f} MB",
            f"without: {sizes[1]:.2f} MB",
            None,
            "at most 5 MB more",
            sizes[0] - sizes[1] <= 5,
        ),
    ]


if __name__ == "__main__":
    one_core()
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000):
        print(row)
