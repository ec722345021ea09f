"""Oracles whose reports have a few bytes however many values there are.

OLH hashes the value to few cells and reports the cell by randomized response; which hash, a device
draws at random and says. Hadamard reports one entry of the value's column of a Hadamard matrix;
which row, it draws and says. Both draw before they look at the value, so only the last step can
give anything away.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.errors import DataError, require
from tempriv.local.frequency import base
from tempriv.local.frequency._kernels import hashed_support
from tempriv.local.frequency.base import Bytes, Flags, Integers, ResponseOracle
from tempriv.sampling import distributions
from tempriv.sampling.keystream import Keystream

MOST_CELLS = 1 << 15
FINENESS = 16  # cells of a sixteenth of the prime at least: collisions within 1/1024 of 1 / cells
MOST_OUTCOMES = 1 << 20
BATCH_PEOPLE = 1 << 18

PUBLIC_BRANCH = 2  # substream of public draws; a response takes stream 0 and substreams 0 and 1


@functools.cache
def prime_from(least: int) -> int:
    """The smallest prime that is not below ``least``.

    >>> prime_from(1000), prime_from(2)
    (1009, 2)
    """
    prime = least
    while any(prime % divisor == 0 for divisor in range(2, math.isqrt(prime) + 1)):
        prime += 1
    return prime


@dataclass(frozen=True, kw_only=True)
class OLH(ResponseOracle):
    """Optimized local hashing: a random hash, and the cell of the value by randomized response.

    e^epsilon + 1 cells, rounded, have the least variance (Wang et al. 2017). The hash
    of v is the cell of (a v + b) mod P, where a and b are uniform below the prime P >= size and
    cells are stretches of equal length, but for one (Carter and Wegman 1979). As two different
    values take every pair of places equally often, they collide with one probability, which is
    known exactly: the estimator assumes nothing else, and is unbiased.

    A report is a P + b and then the cell, each in as few bytes as it takes, the lowest first.

    >>> asked = OLH(epsilon=1.0, size=1000)
    >>> asked.cells, asked.prime, asked.report_bytes
    (4, 1009, 4)
    """

    @functools.cached_property
    def cells(self) -> int:
        return min(round(math.exp(min(self.epsilon, 20.0))) + 1, MOST_CELLS)

    @functools.cached_property
    def prime(self) -> int:
        return prime_from(max(self.size, FINENESS * self.cells))

    @property
    def choices(self) -> int:
        return self.cells

    @functools.cached_property
    def _hashes(self) -> distributions.UniformChoice:
        return distributions.UniformChoice(self.prime**2)

    @functools.cached_property
    def _starts(self) -> Integers:
        """Where each cell begins, and the prime."""
        return -(-np.arange(self.cells + 1) * self.prime // self.cells)

    @functools.cached_property
    def collision(self) -> float:
        """The probability that two different values have one cell."""
        lengths = np.diff(self._starts).tolist()
        return float(Fraction(sum(n * n for n in lengths), self.prime**2))

    @functools.cached_property
    def other(self) -> float:
        return self.collision * self.keep + (1 - self.collision) * self.distribution.pmf(1)

    @functools.cached_property
    def _widths(self) -> tuple[int, int]:
        return base.width(self.prime**2), base.width(self.cells)

    @property
    def report_bytes(self) -> int:
        return sum(self._widths)

    # devices

    def reports(self, values: Any, keystream: Keystream) -> Bytes:
        """A random hash and a randomized cell for each of the ``values``, by a row of
        ``keystream``.
        """
        values = base.values_of(values, self.size, keystream)
        hashes = self._hashes.sample(keystream.substream(PUBLIC_BRANCH))
        return self._encoded(values, hashes, self.distribution.sample(keystream))

    def report(self, value: int, keystream: Keystream) -> bytes:
        """The report of one ``value``, by one row of ``keystream``."""
        value = base.value_of(value, self.size, keystream)
        number = base.uniform_of(self._hashes, keystream.substream(PUBLIC_BRANCH))
        multiplier, offset = divmod(number, self.prime)
        cell = (multiplier * value + offset) % self.prime * self.cells // self.prime
        reported = (cell + base.shift_of(self.distribution, keystream)) % self.cells
        wide, narrow = self._widths
        return number.to_bytes(wide, "little") + reported.to_bytes(narrow, "little")

    def _cell(self, values: Integers, hashes: Integers) -> Integers:
        multiplier, offset = np.divmod(hashes, self.prime)
        return (multiplier * values + offset) % self.prime * self.cells // self.prime

    def _encoded(self, values: Integers, hashes: Integers, shifts: Integers) -> Bytes:
        cells = (self._cell(values, hashes) + shifts) % self.cells
        wide, narrow = self._widths
        return np.hstack([base.to_bytes(hashes, wide), base.to_bytes(cells, narrow)])

    def outcomes(self, value: int) -> dict[bytes, float]:
        """Every report for a ``value`` with its probability."""
        many = self.prime**2 * self.cells
        require(
            many <= MOST_OUTCOMES,
            f"{many} reports of size={self.size} at epsilon={self.epsilon}: too many to list",
        )
        hashes, shifts = (part.ravel() for part in np.indices((self.prime**2, self.cells)))
        rows = self._encoded(np.full(many, value), hashes, shifts)
        mass = [self.distribution.pmf(shift) / self.prime**2 for shift in range(self.cells)]
        return {row.tobytes(): mass[shift] for row, shift in zip(rows, shifts, strict=True)}

    # the server

    def refuse(self, report: bytes) -> None:
        """Refuse a ``report`` whose hash or cell is none."""
        base.refuse_length(report, self.report_bytes)
        number, cell = (int.from_bytes(part, "little") for part in self._parts(report))
        most = self.prime**2
        require(number < most, f"hash {number}: must be below {most}", DataError)
        require(cell < self.cells, f"cell {cell}: must be below {self.cells}", DataError)

    def fits(self, rows: Bytes) -> Flags:
        """Which ``rows`` have a hash and a cell that there are."""
        hashes, cells = (base.from_bytes(part) for part in np.split(rows, self._widths[:1], 1))
        return np.asarray((hashes >= 0) & (hashes < self.prime**2) & (cells < self.cells))

    def _parts(self, report: bytes) -> tuple[bytes, bytes]:
        return report[: self._widths[0]], report[self._widths[0] :]

    def support(self, reports: Bytes | Sequence[bytes]) -> Integers:
        """How many ``reports`` have the cell that each value has in the report's own hash."""
        rows = base.rows_of(reports, self.report_bytes)
        wide = self._widths[0]
        hashes, cells = base.from_bytes(rows[:, :wide]), base.from_bytes(rows[:, wide:])
        base.refuse_above(hashes, self.prime**2, "hash")
        base.refuse_above(cells, self.cells, "cell")
        return self._supported(hashes, cells)

    def _supported(self, hashes: Integers, cells: Integers) -> Integers:
        support = np.zeros(self.size, dtype=np.int64)
        multiplier, offset = np.divmod(hashes, self.prime)
        lows, highs = self._starts[cells], self._starts[cells + 1]
        hashed_support(multiplier, offset, lows, highs, self.prime, support)
        return support

    def simulate_support(self, counts: Any, generator: Any) -> Integers:
        """The support by people with these ``counts`` of values, drawn by ``generator``."""
        # supports of different values depend on each other through the hashes, so a hash is drawn
        # for every person
        counts = base.counts_of(counts, self.size)
        ends, support = np.cumsum(counts), np.zeros(self.size, dtype=np.int64)
        for start in range(0, int(ends[-1]), BATCH_PEOPLE):
            people = np.arange(start, min(start + BATCH_PEOPLE, int(ends[-1])))
            hashes = generator.integers(self.prime**2, size=len(people))
            cells = self._cell(np.searchsorted(ends, people, side="right"), hashes)
            # to keep with p and else take another is to keep with p - q and else take any
            replaced = generator.random(len(people)) >= self.keep - self.distribution.pmf(1)
            cells[replaced] = generator.integers(self.cells, size=int(replaced.sum()))
            support += self._supported(hashes, cells)
        return support


def signed_sums(tallies: Integers) -> Integers:
    """Sum over rows j of ``tallies[j]`` times the entry (j, v) of the Hadamard matrix, for each v.

    By halves (the fast Walsh-Hadamard transform).

    >>> signed_sums(np.array([1, 0, 2, 0])).tolist()
    [3, 3, -1, -1]
    """
    sums, half = tallies.copy(), 1
    while half < len(sums):
        pairs = sums.reshape(-1, 2, half)
        low, high = pairs[:, 0].copy(), pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = low + high, low - high
        half *= 2
    return sums


def _odd(rows: Any, values: Any) -> Integers:
    """1 where the matrix has -1: row and value have an odd number of binary ones in common."""
    return np.asarray(np.bitwise_count(np.bitwise_and(rows, values)) & 1, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Hadamard(ResponseOracle):
    """Hadamard response: a random row, and the sign there of the value's column, or its opposite.

    The matrix of Sylvester, of the next power of two (``order``), row 0 left out as it has the
    same sign everywhere. The sign is true with probability e^epsilon / (e^epsilon + 1): one bit of
    randomized response (as in Bassily and Smith 2015, with a random matrix there). Two different
    columns agree in order/2 - 1 of the order - 1 rows.

    A report is 2 (row - 1), plus 1 for a minus, in as few bytes as it takes, the lowest first.

    >>> asked = Hadamard(epsilon=1.0, size=1000)
    >>> asked.order, asked.report_bytes
    (1024, 2)
    """

    @functools.cached_property
    def order(self) -> int:
        return 1 << (self.size - 1).bit_length()

    @property
    def choices(self) -> int:
        return 2

    @functools.cached_property
    def _rows(self) -> distributions.UniformChoice:
        return distributions.UniformChoice(self.order - 1)

    @functools.cached_property
    def other(self) -> float:
        agree = (self.order // 2 - 1) / (self.order - 1)
        return agree * self.keep + (1 - agree) * self.distribution.pmf(1)

    @property
    def report_bytes(self) -> int:
        return base.width(2 * (self.order - 1))

    # devices

    def reports(self, values: Any, keystream: Keystream) -> Bytes:
        """A random row and a randomized sign for each of ``values``, by a row of ``keystream``."""
        values = base.values_of(values, self.size, keystream)
        rows = self._rows.sample(keystream.substream(PUBLIC_BRANCH))
        return self._encoded(values, rows, self.distribution.sample(keystream))

    def report(self, value: int, keystream: Keystream) -> bytes:
        """The report of one ``value``, by one row of ``keystream``."""
        value = base.value_of(value, self.size, keystream)
        row = base.uniform_of(self._rows, keystream.substream(PUBLIC_BRANCH))
        minus = ((row + 1 & value).bit_count() & 1) ^ base.shift_of(self.distribution, keystream)
        return (2 * row + minus).to_bytes(self.report_bytes, "little")

    def _encoded(self, values: Integers, rows: Integers, flips: Integers) -> Bytes:
        """Rows are counted from 0 here, which stands for the matrix's row 1."""
        return base.to_bytes(2 * rows + (_odd(rows + 1, values) ^ flips), self.report_bytes)

    def outcomes(self, value: int) -> dict[bytes, float]:
        """Every report for a ``value`` with its probability."""
        rows, flips = (part.ravel() for part in np.indices((self.order - 1, 2)))
        reports = self._encoded(np.full(len(rows), value), rows, flips)
        mass = [self.distribution.pmf(flip) / (self.order - 1) for flip in (0, 1)]
        return {row.tobytes(): mass[flip] for row, flip in zip(reports, flips, strict=True)}

    # the server

    def refuse(self, report: bytes) -> None:
        """Refuse a ``report`` of a row or sign that is none."""
        base.refuse_length(report, self.report_bytes)
        number, most = int.from_bytes(report, "little"), 2 * (self.order - 1)
        require(number < most, f"row and sign {number}: must be below {most}", DataError)

    def fits(self, rows: Bytes) -> Flags:
        """Which ``rows`` of bytes name a row and sign that there are."""
        return base.from_bytes(rows) < 2 * (self.order - 1)

    def support(self, reports: Bytes | Sequence[bytes]) -> Integers:
        """How many ``reports`` have the sign that each value has in the report's row."""
        signs = base.from_bytes(base.rows_of(reports, self.report_bytes))
        most = 2 * (self.order - 1)
        base.refuse_above(signs, most, "row and sign")
        return self._supported(np.bincount(signs, minlength=most).reshape(-1, 2))

    def _supported(self, signs: Integers) -> Integers:
        """From how many reports say plus and minus in each row."""
        tallies = np.append(0, signs[:, 0] - signs[:, 1])
        support = (int(signs.sum()) + signed_sums(tallies)[: self.size]) // 2
        return support.astype(np.int64)

    def simulate_support(self, counts: Any, generator: Any) -> Integers:
        """The support by people with these ``counts`` of values, drawn by ``generator``."""
        counts = base.counts_of(counts, self.size)
        many = self.order - 1
        rows, even = np.arange(1, self.order), np.full(many, 1 / many)
        true = np.zeros((many, 2), dtype=np.int64)
        for value in np.flatnonzero(counts).tolist():
            people = int(counts[value])
            # how many fall into each row, by rows or by people, whichever are fewer
            if people > many:
                fallen = generator.multinomial(people, even)
            else:
                fallen = np.bincount(generator.integers(many, size=people), minlength=many)
            odd = _odd(rows, value)
            true[:, 1] += fallen * odd
            true[:, 0] += fallen * (1 - odd)
        kept = generator.binomial(true, self.keep)
        return self._supported(kept + (true - kept)[:, ::-1])
