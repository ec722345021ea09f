"""How common each of many values is, when every device protects its own answer.

An oracle says how a device reports one of ``size`` values (0 to size - 1) and how a server makes
counts of many reports. All four lose at most epsilon, exactly; they differ in error and size of a
report. ``choose`` takes the one with the least variance. OUE and OLH are those of Wang,
Blocki, Li and Jha 2017 ("Locally differentially private protocols for frequency estimation").
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.errors import DataError, require
from tempriv.local.frequency import base
from tempriv.local.frequency._kernels import PIECES_PER_WORD, unary_bits
from tempriv.local.frequency.base import Bytes, Flags, FrequencyOracle, Integers, ResponseOracle
from tempriv.local.frequency.hashed import OLH, Hadamard
from tempriv.sampling.exact_compare import ExactReal, decimal_of, is_below
from tempriv.sampling.keystream import Keystream


@dataclass(frozen=True, kw_only=True)
class GRR(ResponseOracle):
    """Generalized randomized response: the value, or any of the others instead.

    A report is the number of a value, in as few bytes as it takes, the lowest first.

    >>> from tempriv.sampling.keystream import StepRange
    >>> from tempriv.sampling.keys import Key
    >>> asked = GRR(epsilon=1.0, size=5)
    >>> key = Key.from_seed(1).series("question", "person")
    >>> keystream = Keystream([StepRange(key, 0, 1)], "report")
    >>> asked.report(3, keystream)
    b'\\x03'
    """

    @property
    def supports_one(self) -> bool:
        """Always: a report names one value."""
        return True

    @property
    def choices(self) -> int:
        return self.size

    @functools.cached_property
    def other(self) -> float:
        return self.distribution.pmf(1)

    @property
    def report_bytes(self) -> int:
        return base.width(self.size)

    # devices

    def reports(self, values: Any, keystream: Keystream) -> Bytes:
        """The value or another one for each of the ``values``, by a row of ``keystream``."""
        values = base.values_of(values, self.size, keystream)
        return self._encoded(values, self.distribution.sample(keystream))

    def report(self, value: int, keystream: Keystream) -> bytes:
        """The report of one ``value``, by one row of ``keystream``."""
        value = base.value_of(value, self.size, keystream)
        reported = (value + base.shift_of(self.distribution, keystream)) % self.size
        return reported.to_bytes(self.report_bytes, "little")

    def _encoded(self, values: Integers, shifts: Integers) -> Bytes:
        reported = values + shifts
        reported[reported >= self.size] -= self.size
        return base.to_bytes(reported, self.report_bytes)

    def outcomes(self, value: int) -> dict[bytes, float]:
        """Every report for a ``value`` with its probability."""
        shifts, masses = zip(*self.distribution.outcomes(0.0), strict=True)
        rows = self._encoded(np.full(self.size, value), np.array(shifts))
        return {row.tobytes(): mass for row, mass in zip(rows, masses, strict=True)}

    # the server

    def refuse(self, report: bytes) -> None:
        """Refuse a ``report`` of a value that is none."""
        base.refuse_length(report, self.report_bytes)
        value = int.from_bytes(report, "little")
        require(value < self.size, f"value {value}: must be below {self.size}", DataError)

    def fits(self, rows: Bytes) -> Flags:
        """Which ``rows`` of bytes are values."""
        return base.from_bytes(rows) < self.size

    def support(self, reports: Bytes | Sequence[bytes]) -> Integers:
        """How many of the ``reports`` there are of each value."""
        values = base.from_bytes(base.rows_of(reports, self.report_bytes))
        base.refuse_above(values, self.size, "value")
        return np.bincount(values, minlength=self.size).astype(np.int64)

    def simulate_support(self, counts: Any, generator: Any) -> Integers:
        """The support by people with these ``counts`` of values, drawn by ``generator``."""
        counts = base.counts_of(counts, self.size)
        # to keep with p and else take another is to keep with p - q and else take any
        kept = generator.binomial(counts, self.keep - self.other)
        others = generator.multinomial(
            int((counts - kept).sum()), np.full(self.size, 1 / self.size)
        )
        return np.asarray(kept + others, dtype=np.int64)


# bits of every byte, the lowest first
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
BATCH_WORDS = 1 << 16
LANES = 4094  # of the branches that one branch has; the last is for further digits
MOST_OUTCOMES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class OUE(FrequencyOracle):
    """Optimized unary encoding: a bit for each value, 1 with probability 1/2 for the true one.

    For the others 1 has probability 1 / (e^epsilon + 1) (Wang et al. 2017). A report is the bits,
    eight to a byte, that of the lowest value lowest; what is left of the last byte is 0.

    >>> asked = OUE(epsilon=1.0, size=100)
    >>> asked.report_bytes, round(math.sqrt(asked.variance(10_000)))
    (13, 192)
    """

    keep = 0.5

    @functools.cached_property
    def other(self) -> float:
        return 1 / (1 + math.exp(min(self.epsilon, 700.0)))

    @functools.cached_property
    def _cut(self) -> ExactReal:
        weight = Fraction(self.epsilon)

        def formula() -> Any:
            less = (-decimal_of(weight)).exp()
            return less / (1 + less)

        return ExactReal(formula)

    @functools.cached_property
    def _pieces(self) -> tuple[int, int]:
        """The first and last 16 digits of numbers that may lie on either side of the cut."""
        low, high = self._cut.bounds(64)
        return low >> 48, high >> 48

    @property
    def report_bytes(self) -> int:
        return (self.size + 7) // 8

    # devices

    def reports(self, values: Any, keystream: Keystream) -> Bytes:
        """The bits for each of the ``values``, by a row of ``keystream``."""
        return self._drawn(base.values_of(values, self.size, keystream), keystream)

    def report(self, value: int, keystream: Keystream) -> bytes:
        """The report of one ``value``, by one row of ``keystream``."""
        value = base.value_of(value, self.size, keystream)
        return self._drawn(np.array([value]), keystream).tobytes()

    def _drawn(self, values: Integers, keystream: Keystream) -> Bytes:
        count = -(-self.size // PIECES_PER_WORD)
        out = np.zeros((len(values), self.report_bytes), dtype=np.uint8)
        batch = max(BATCH_WORDS // min(count, LANES), 1)
        for low in range(0, len(values), batch):
            rows = np.arange(low, min(low + batch, len(values)))
            for start in range(0, count, LANES):
                many = min(LANES, count - start)
                # all words of a device at once: its key is set up once
                taken = keystream.substream(start // LANES).read_substreams(
                    np.repeat(rows, many), np.tile(np.arange(many), len(rows)), many
                )
                self._fill(
                    out, rows, PIECES_PER_WORD * start, values, taken.reshape(-1, many), keystream
                )
        return out

    def _fill(
        self, out: Bytes, rows: Any, first: int, values: Integers, taken: Any, keystream: Keystream
    ) -> None:
        """Bits from the first on of some rows."""
        ties = np.empty(PIECES_PER_WORD * taken.size, dtype=np.int64)
        low, high = self._pieces
        part = out[rows[0] : rows[-1] + 1]
        tied = unary_bits(taken, values[rows], first, self.size, low, high, part, ties)
        for tie in ties[:tied].tolist():
            row, bit = divmod(tie, self.size)
            number, place = divmod(bit - first, PIECES_PER_WORD)
            piece = int(taken[row, number]) >> 16 * place & 0xFFFF
            part[row, bit >> 3] |= self._settled(piece, int(rows[row]), bit, keystream) << (bit & 7)

    def _settled(self, piece: int, row: int, bit: int, keystream: Keystream) -> bool:
        """Whether a number with these first 16 digits is below the cut, by further digits."""
        further = keystream.substream(LANES).substream(bit // LANES).substream(bit % LANES)
        prefix = piece << 48 | further.read_one(row, 0) >> 16
        return is_below(prefix, lambda depth: further.read_one(row, depth + 1), self._cut)

    def outcomes(self, value: int) -> dict[bytes, float]:
        """Every report for a ``value`` with its probability."""
        require(
            1 << self.size <= MOST_OUTCOMES,
            f"size={self.size}: too many reports to list, at most 16 values",
        )
        ones, outcomes = np.full(self.size, self.other), {}
        ones[value] = self.keep
        for bits in itertools.product((0, 1), repeat=self.size):
            chances = zip(ones.tolist(), bits, strict=True)
            mass = math.prod(p if bit else 1 - p for p, bit in chances)
            outcomes[np.packbits(bits, bitorder="little").tobytes()] = mass
        return outcomes

    # the server

    def refuse(self, report: bytes) -> None:
        """Refuse a ``report`` with bits behind the last value."""
        base.refuse_length(report, self.report_bytes)
        require(
            report[-1] >> (self.size - 1) % 8 + 1 == 0,
            f"a bit behind the last of {self.size} is set: it must be 0",
            DataError,
        )

    def fits(self, rows: Bytes) -> Flags:
        """Which ``rows`` of bytes have no bits behind the last value."""
        return np.asarray(rows[:, -1].astype(np.int64) < 1 << (self.size - 1) % 8 + 1)

    def support(self, reports: Bytes | Sequence[bytes]) -> Integers:
        """How many of the ``reports`` have the bit of each value set."""
        rows = base.rows_of(reports, self.report_bytes)
        base.refuse_above(rows[:, -1].astype(np.int64), 1 << (self.size - 1) % 8 + 1, "last byte")
        # how often each byte occurs in a column, times its bits
        counts = [np.bincount(column, minlength=256) @ BITS for column in rows.T.copy()]
        return np.concatenate(counts)[: self.size].astype(np.int64)

    def simulate_support(self, counts: Any, generator: Any) -> Integers:
        """The support by people with these ``counts`` of values, drawn by ``generator``."""
        counts = base.counts_of(counts, self.size)
        true = generator.binomial(counts, self.keep)
        return np.asarray(true + generator.binomial(counts.sum() - counts, self.other), np.int64)


ORACLES: dict[str, type[FrequencyOracle]] = {
    "grr": GRR,
    "oue": OUE,
    "olh": OLH,
    "hadamard": Hadamard,
}
"""As messages name them."""


def name_of(oracle: FrequencyOracle) -> str:
    """The name of an ``oracle`` in messages.

    >>> name_of(GRR(epsilon=1.0, size=2))
    'grr'
    """
    return next(name for name, kind in ORACLES.items() if type(oracle) is kind)


SMALL_REPORT_BYTES = 16
MOST_HASHES = 10**10
"""Pairs of report and value that a server hashes for OLH, in ten to twenty seconds."""


def choose(
    epsilon: float, size: int, people: int | None = None, one_shot: bool = False
) -> FrequencyOracle:
    """The oracle with the least variance for values that few people have.

    GRR is better than OUE below 3 e^epsilon + 2 values; Hadamard is better than both for a small
    epsilon and some values, such as 6 to 32 at epsilon 1/2.

    Parameters:
        epsilon: what one report may cost.
        size: how many values there are.
        people: how many will report, if that is known.
        one_shot: a question over many values at once, whose reports must be small. Then OLH may be
            taken too, unless ``people`` times values is more than a server should hash.

    >>> choose(1.0, 10), choose(1.0, 11), choose(0.5, 8)
    (GRR(epsilon=1.0, size=10), OUE(epsilon=1.0, size=11), Hadamard(epsilon=0.5, size=8))
    >>> choose(1.0, 4096, people=10_000, one_shot=True)
    OLH(epsilon=1.0, size=4096)
    >>> choose(1.0, 4096, people=10_000_000, one_shot=True)
    Hadamard(epsilon=1.0, size=4096)
    """
    require(people is None or people >= 1, f"people={people}: must be at least 1")
    kinds: tuple[type[FrequencyOracle], ...] = (GRR, OUE, Hadamard)
    oracles = [kind(epsilon=epsilon, size=size) for kind in kinds]
    if one_shot:
        oracles = [oracle for oracle in oracles if oracle.report_bytes <= SMALL_REPORT_BYTES]
        if (people or 0) * size <= MOST_HASHES:
            oracles.append(OLH(epsilon=epsilon, size=size))
    least = min(oracle.variance(1) for oracle in oracles)
    # of two values GRR and Hadamard are the same, but for rounding
    return next(oracle for oracle in oracles if oracle.variance(1) <= least * (1 + 1e-9))
