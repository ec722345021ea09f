"""Frequency oracles: devices that report and a server that counts, beside a loop over devices."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.local.frequency.hashed import OLH, Hadamard
from tempriv.local.frequency.oracles import GRR, OUE
from tempriv.sampling.keys import Key, simulation
from tempriv.sampling.keystream import Keystream, StepRange

PEOPLE = 100_000
SIZE = 1000
ALONE = 1000
LOOPED = 200


def words(count: int) -> Keystream:
    return Keystream([StepRange(Key.from_seed(1).series("bench", "people"), 0, count)], "report")


def one_by_one(values: Any) -> list[int]:
    """Randomized response as one would write it for a device, in floating point."""
    keep = math.e / (math.e + SIZE - 1)
    sent = []
    for value in values:
        said = value
        if random.random() >= keep:
            said = random.randrange(SIZE - 1)
            said += said >= value
        sent.append(said)
    return sent


def bits_by_numpy(values: Any) -> Any:
    """Unary encoding in floating point, a number for every bit."""
    numbers = np.random.default_rng(1).random((len(values), SIZE))
    cuts = np.full((1, SIZE), 1 / (math.e + 1))
    bits = numbers < cuts
    rows = np.arange(len(values))
    bits[rows, values] = numbers[rows, values] < 0.5
    return np.packbits(bits, axis=1)


def hashed_by_numpy(oracle: OLH, reports: Any) -> Any:
    """The definition: for each report, all values' cells, compared with the one it names."""
    wide, values, support = oracle.report_bytes - 1, np.arange(SIZE), np.zeros(SIZE, dtype=int)
    for report in reports:
        a, b = divmod(int.from_bytes(report[:wide].tobytes(), "little"), oracle.prime)
        cells = (a * values + b) % oracle.prime * oracle.cells // oracle.prime
        support += cells == report[-1]
    return support


def rows() -> list[Row]:
    values = np.random.default_rng(1).integers(SIZE, size=PEOPLE)
    oracles = [one(epsilon=1.0, size=SIZE) for one in (GRR, OUE, OLH, Hadamard)]
    grr, _, olh, _ = oracles
    listed, many = values.tolist(), words(PEOPLE)
    *device, loop, bits = best_of(
        [
            *(lambda one=one: one.reports(values, many) for one in oracles),
            lambda: one_by_one(listed),
            lambda: bits_by_numpy(values[: PEOPLE // 10]),
        ],
        rounds=3,
    )
    names = ["a Python loop of floating-point GRR"] * 4
    names[1] = "numpy, a floating-point number for every bit"
    beside = [loop, 10 * bits, loop, loop]
    found = []
    for one, seconds, name, other in zip(oracles, device, names, beside, strict=True):
        wanted = "millions a second" if one is grr else ""
        found.append(
            Row(
                f"{type(one).__name__} reports, {PEOPLE:,} devices, {SIZE:,} values",
                f"{PEOPLE / seconds / 1e6:.2f} million/s",
                f"{name}: {PEOPLE / other / 1e6:.2f} million/s",
                other / seconds,
                wanted,
                PEOPLE / seconds > 2e6 if wanted else None,
            )
        )
    sent = [one.reports(values, many) for one in oracles]
    few = sent[2][:LOOPED]
    *server, plain = best_of(
        [
            *(
                lambda one=one, all_=all_: one.support(all_)
                for one, all_ in zip(oracles, sent, strict=True)
            ),
            lambda: hashed_by_numpy(olh, few),
        ],
        rounds=3,
    )
    plain *= PEOPLE / LOOPED
    for one, seconds in zip(oracles, server, strict=True):
        is_olh = one is olh
        found.append(
            Row(
                f"{type(one).__name__} support, {PEOPLE:,} reports, {SIZE:,} values",
                f"{seconds:.3f} s",
                f"numpy, report by report, extrapolated: {plain:.1f} s" if is_olh else "",
                plain / seconds if is_olh else None,
                "about a second" if is_olh else "",
                seconds < 1 if is_olh else None,
            )
        )
    series = Key.from_seed(2).series("bench", "alone")
    ones = [Keystream([StepRange(series, i, 1)], "report") for i in range(ALONE)]
    smaller = [one(epsilon=1.0, size=50) for one in (GRR, OUE, OLH, Hadamard)]
    alone = best_of(
        [lambda one=one: [one.report(7, own) for own in ones] for one in smaller], rounds=3
    )
    for one, seconds in zip(smaller, alone, strict=True):
        micro = seconds / ALONE * 1e6
        found.append(
            Row(
                f"one {type(one).__name__} report by itself, {one.size} values",
                f"{micro:.0f} microseconds",
                "",
                None,
                "tens of microseconds",
                micro < 100,
            )
        )
    counts = np.bincount(values, minlength=SIZE)
    generator = simulation(Key.from_seed(3), "bench")
    simulated = best_of(
        [lambda one=one: one.simulate_support(counts, generator) for one in oracles], rounds=3
    )
    for one, seconds in zip(oracles, simulated, strict=True):
        found.append(
            Row(
                f"{type(one).__name__} simulated, {PEOPLE:,} people, {SIZE:,} values",
                f"{seconds * 1000:.2f} ms",
                "",
                None,
                "",
                None,
            )
        )
    return found
