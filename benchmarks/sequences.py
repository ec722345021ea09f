"""Series to sequences and distances between them, beside plain Python, a series or pair a time."""

from __future__ import annotations

import bisect
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.local.shapes.distance import distances
from tempriv.local.shapes.sax import Sax, breakpoints
from tempriv.local.shapes.sequences import Sequences

PEOPLE, LENGTH = 40_000, 300
FEW = 400
SYMBOLS, SEGMENT, LONGEST = 4, 10, 15
WANTED_SECONDS = 0.03
SEQUENCES, CANDIDATES, SHAPE = 20_000, 64, 10
FEW_PAIRS = 4_000
WANTED_PAIRS = 30e6
MANY = 10_000_000
WANTED_MANY, WANTED_MEGABYTES = 12, 3000


def one_series(series: Sequence[float]) -> str:
    """Compressive SAX of a series, by the book."""
    mean, spread = statistics.fmean(series), statistics.pstdev(series)
    scored = [(value - mean) / spread for value in series]
    edges, found = breakpoints(SYMBOLS), ""
    for begin in range(0, len(scored), SEGMENT):
        part = scored[begin : begin + SEGMENT]
        letter = "abcd"[bisect.bisect_right(edges, sum(part) / len(part))]
        if not found.endswith(letter):
            found += letter
    return found[:LONGEST]


def one_pair(one: Sequence[int], other: Sequence[int]) -> int:
    """The DTW distance of a pair, by the book."""
    before = [0] + [10**9] * len(other)
    for a in one:
        row = [10**9]
        for j, b in enumerate(other):
            row.append(abs(a - b) + min(before[j], before[j + 1], row[j]))
        before = row
    return before[-1]


def rows() -> list[Row]:
    return [*coding(), *comparing(), many()]


def coding() -> list[Row]:
    series = np.cumsum(np.random.default_rng(1).normal(size=(PEOPLE, LENGTH)), axis=1)
    sax = Sax(symbols=SYMBOLS, segment=SEGMENT, longest=LONGEST)
    plain = series[:FEW].tolist()
    if sax.sequences(series[:FEW]).texts() != [one_series(one) for one in plain]:
        sys.exit("SAX and the plain loop disagree")
    ours, counted, theirs = best_of(
        [
            lambda: sax.sequences(series),
            lambda: sax.sequences(series).distinct(),
            lambda: [one_series(one) for one in plain],
        ]
    )
    each = theirs / FEW * PEOPLE
    yardstick = f"plain Python, {1e6 * theirs / FEW:.0f} microseconds a series"
    return [
        Row(
            f"SAX: {PEOPLE:,} series of {LENGTH} to codes",
            f"{1e3 * ours:.0f} ms",
            yardstick,
            each / ours,
            f"at most {1e3 * WANTED_SECONDS:.0f} ms",
            ours <= WANTED_SECONDS,
        ),
        Row(
            "the same, and equal ones counted",
            f"{1e3 * counted:.0f} ms",
            yardstick,
            each / counted,
            "",
            None,
        ),
    ]


def comparing() -> list[Row]:
    random = np.random.default_rng(2)
    symbols = [random.integers(0, SYMBOLS, (n, SHAPE)) for n in (SEQUENCES, CANDIDATES)]
    ours, theirs = (Sequences.of(rows.tolist(), symbols=SYMBOLS) for rows in symbols)
    pairs = [
        (one, other)
        for one in symbols[0][: FEW_PAIRS // CANDIDATES].tolist()
        for other in symbols[1].tolist()
    ]
    *times, plain = best_of(
        [
            lambda: distances("dtw", ours, theirs),
            lambda: distances("dtw", ours, theirs, prefix=True),
            lambda: distances("levenshtein", ours, theirs),
            lambda: distances("euclidean", ours, theirs),
            lambda: [one_pair(one, other) for one, other in pairs],
        ]
    )
    known = [one_pair(one, other) for one, other in pairs]
    found = distances("dtw", ours, theirs)[: FEW_PAIRS // CANDIDATES].ravel().tolist()
    if found != known:
        sys.exit("DTW and the plain loop disagree")
    slow = len(pairs) / plain
    table = []
    names = ("DTW", "DTW of prefixes", "Levenshtein (rapidfuzz)", "Euclidean")
    for name, seconds in zip(names, times, strict=True):
        speed = SEQUENCES * CANDIDATES / seconds
        warped = name.startswith("DTW")
        table.append(
            Row(
                f"{name}: {SEQUENCES:,} x {CANDIDATES} sequences of {SHAPE} symbols",
                f"{speed / 1e6:.0f} million pairs/s",
                f"plain Python DTW, {slow / 1e3:.0f} thousand pairs/s",
                speed / slow,
                f"at least {WANTED_PAIRS / 1e6:.0f} million/s" if warped else "",
                speed >= WANTED_PAIRS if warped else None,
            )
        )
    return table


def many() -> Row:
    """Ten million series in a process of its own: its peak of memory is theirs."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sequences"], capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, done.stdout.split())
    return Row(
        f"SAX: {MANY:,} series of {LENGTH} in chunks, equal ones counted",
        f"{seconds:.1f} s, {megabytes:.0f} MB",
        "",
        None,
        f"at most {WANTED_MANY} s and {WANTED_MEGABYTES} MB",
        seconds <= WANTED_MANY and megabytes <= WANTED_MEGABYTES,
    )


def main() -> None:
    sax = Sax(symbols=SYMBOLS, segment=SEGMENT, longest=LONGEST)
    chunk = np.cumsum(np.random.default_rng(3).normal(size=(PEOPLE, LENGTH)), axis=1)
    sax.sequences(chunk[:1])
    began = time.perf_counter()
    # the same series again and again: their making is not what is measured
    found = sax.sequences(chunk for _ in range(MANY // PEOPLE))
    _, counts = found.distinct()
    took = time.perf_counter() - began
    if counts.sum() != MANY:
        sys.exit("series were lost")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    sys.stdout.write(f"{took} {peak}\n")


if __name__ == "__main__":
    main()
