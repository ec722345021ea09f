"""What all frequency oracles share: from supported values to counts, and reports as bytes.

A report supports some of the values. In each oracle here it supports the true value with
probability ``keep`` and any other one with probability ``other`` (a pure protocol in the words of
Wang, Blocki, Li and Jha 2017). So the support of a value that c of n people have is the
sum of two binomials, of c with ``keep`` and of n - c with ``other``: errors and intervals follow
from these two numbers.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.frequency.estimation import Interval, among_these
from tempriv.mechanisms.domains import positive
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event
from tempriv.sampling.distributions import CategoryFlip, UniformChoice
from tempriv.sampling.keystream import Keystream

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

MOST_VALUES = 1 << 24
SUPPORT_TOLERANCE = 1e-4  # reports; of a number of them that is computed back from an estimate


@dataclass(frozen=True)
class Frequencies:
    """How many of the people have each value: unbiased, so also below 0 or above all of them.

    Attributes:
        counts: the estimated number of people with each value.
        standard_error: of each count.
        low: where the interval for each count begins; at least 0.
        high: where it ends; at most the number of people. An interval holds for one value.
    """

    counts: Floats
    standard_error: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(ABC):
    """How a device reports one of ``size`` values, and how a server counts from many reports.

    Parameters:
        epsilon: what one report may cost, > 0.
        size: how many values there are; they are numbered from 0.

    Guarantees:
        - every report loses at most epsilon about its value, exactly, against anyone.
    """

    epsilon: float
    size: int

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require(
            isinstance(self.size, int)
            and not isinstance(self.size, bool)
            and 2 <= self.size <= MOST_VALUES,
            f"size={self.size}: must be a whole number of values from 2 to {MOST_VALUES}",
        )

    @property
    def guarantee(self) -> Guarantee:
        """Of every device, towards anyone who sees its report."""
        return Guarantee(Pure(self.epsilon), Event())

    @property
    @abstractmethod
    def keep(self) -> float:
        """The probability that a report supports the true value."""

    @property
    @abstractmethod
    def other(self) -> float:
        """The probability that a report supports a value that is not the true one."""

    @property
    def supports_one(self) -> bool:
        """Whether every report supports exactly one value."""
        return False

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """How many bytes a report has."""

    # devices

    @abstractmethod
    def reports(self, values: Any, keystream: Keystream) -> Bytes:
        """Reports of many devices.

        Parameters:
            values: the true value of each device.
            keystream: keyed random numbers, a row for each device.

        Returns:
            A row of bytes for each device.
        """

    @abstractmethod
    def report(self, value: int, keystream: Keystream) -> bytes:
        """The report of one device: the same bytes as ``reports`` gives, several times faster.

        Parameters:
            value: its true value.
            keystream: keyed random numbers, one row.
        """

    @abstractmethod
    def outcomes(self, value: int) -> dict[bytes, float]:
        """Every report of a device with this ``value``, with its probability; for audits."""

    # the server

    @abstractmethod
    def refuse(self, report: bytes) -> None:
        """Raise DataError, with the reason, for a ``report`` that no device sends."""

    @abstractmethod
    def fits(self, rows: Bytes) -> Flags:
        """Which ``rows`` of bytes are reports: those that ``refuse`` does not refuse."""

    @abstractmethod
    def support(self, reports: Bytes | Sequence[bytes]) -> Integers:
        """How many of the ``reports`` support each value.

        Raises:
            DataError: if one of them is no report.
        """

    @abstractmethod
    def simulate_support(self, counts: Any, generator: Any) -> Integers:
        """The support if people report: drawn from the distribution of ``reports``, all at once.

        Parameters:
            counts: how many people truly have each value.
            generator: of ordinary random numbers; nothing is guaranteed.
        """

    def estimate(
        self, support: Any, people: int, confidence: float = 0.95, interval: Interval = "normal"
    ) -> Frequencies:
        """Unbiased counts, their standard errors and intervals.

        Parameters:
            support: how many reports support each value.
            people: how many reported.
            confidence: the probability with which the interval for a value holds.
            interval: ``normal`` is fast and nearly right, ``exact`` holds for any number of people.

        >>> from tempriv.local.frequency.oracles import GRR
        >>> GRR(epsilon=1.0, size=2).estimate([700, 300], people=1000).counts.round().tolist()
        [933.0, 67.0]
        """
        support = np.asarray(support)
        require(
            0 < confidence < 1, f"confidence={confidence}: must be between 0 and 1, such as 0.95"
        )
        require(interval in ("exact", "normal"), f"interval={interval!r}: must be exact or normal")
        require(people >= 1, f"people={people}: without a report there is nothing to estimate")
        require(
            support.shape == (self.size,)
            and support.dtype.kind in "iu"
            and bool(((support >= 0) & (support <= people)).all()),
            f"support: must be {self.size} whole numbers from 0 to people={people}",
            DataError,
        )
        keep, other = self.keep, self.other
        contrast = keep - other
        excess = support - people * other
        counts = excess / contrast
        # the variance is linear in the true count, of which an estimate outside 0 to n says too
        # much
        share = np.clip(counts / people, 0, 1)
        error = np.sqrt(people * self._spread(share)) / contrast
        if interval == "exact":
            ends = [among_these(int(s), people, keep, other, 1 - confidence) for s in support]
            low, high = np.array(ends).T * people
        else:
            # all counts c with (excess - c contrast)^2 <= z^2 Var(support | c), as Wilson (1927)
            # did for one binomial: a quadratic in c
            z = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
            slope = keep * (1 - keep) - other * (1 - other)
            middle = excess * contrast + z * slope / 2
            reach = middle**2 - contrast**2 * (excess**2 - z * people * self._spread(0.0))
            reach = np.sqrt(np.maximum(reach, 0))
            low, high = np.clip(np.stack([middle - reach, middle + reach]) / contrast**2, 0, people)
        return Frequencies(counts, error, low, high)

    def variance(self, people: float, share: float = 0.0) -> float:
        """Of an estimated count.

        Parameters:
            people: how many report.
            share: which part of them has the value.
        """
        require(people > 0, f"people={people}: must be > 0")
        require(0 <= share <= 1, f"share={share}: must be from 0 to 1")
        return float(people * self._spread(share) / (self.keep - self.other) ** 2)

    def _spread(self, share: Any) -> Any:
        """What one person adds to the variance of a support, where a share has the value."""
        others = self.other * (1 - self.other)
        return others + share * (self.keep * (1 - self.keep) - others)


class ResponseOracle(FrequencyOracle):
    """An oracle whose last step is a randomized response among ``choices`` answers."""

    @property
    @abstractmethod
    def choices(self) -> int:
        """How many answers the randomized response has."""

    @functools.cached_property
    def distribution(self) -> CategoryFlip:
        """What the randomized response adds to the answer."""
        return CategoryFlip(Fraction(self.epsilon), self.choices)

    @functools.cached_property
    def keep(self) -> float:
        """The probability that the randomized response keeps its answer."""
        return self.distribution.pmf(0)


# what devices and servers are given


def values_of(values: Any, size: int, keystream: Keystream) -> Integers:
    """True ``values`` below ``size``, one for each row of the ``keystream``."""
    values = np.asarray(values)
    require(
        values.ndim == 1
        and values.dtype.kind in "iu"
        and bool(((values >= 0) & (values < size)).all()),
        f"values: must be whole numbers from 0 to {size - 1}, one for each device",
        DataError,
    )
    require(
        keystream.count == len(values),
        f"keystream of {keystream.count} devices: {len(values)} report",
    )
    return np.asarray(values, dtype=np.int64)


def value_of(value: Any, size: int, keystream: Keystream) -> int:
    """One true ``value`` below ``size``, with one row of ``keystream``."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(
        whole and 0 <= value < size,
        f"value: must be a whole number from 0 to {size - 1}",
        DataError,
    )
    require(keystream.count == 1, f"keystream of {keystream.count} devices: one reports")
    return int(value)


def counts_of(counts: Any, size: int) -> Integers:
    """Checked ``counts`` of the people who truly have each of ``size`` values, for a simulation."""
    counts = np.asarray(counts)
    require(
        counts.shape == (size,) and counts.dtype.kind in "iu" and bool((counts >= 0).all()),
        f"counts: must be {size} whole numbers >= 0",
        DataError,
    )
    return np.asarray(counts, dtype=np.int64)


def shift_of(distribution: CategoryFlip, keystream: Keystream) -> int:
    """``distribution.sample`` for one row of a ``keystream``, several times faster."""
    word, floor = int(keystream.read()[0]), int(distribution.cuts.floors[0])
    if word < floor:
        return 0
    if word <= floor + 1:  # the cut lies there: more digits decide
        return int(distribution.sample(keystream)[0])
    return 1 + uniform_of(UniformChoice(distribution.choices - 1), keystream.substream(1))


def uniform_of(distribution: UniformChoice, keystream: Keystream) -> int:
    """``distribution.sample`` for one row of a ``keystream``, several times faster."""
    word = int(keystream.substream(0).read()[0])
    if word < (1 << 64) // distribution.choices * distribution.choices:
        return word % distribution.choices
    return int(distribution.sample(keystream)[0])


def width(choices: int) -> int:
    """Bytes for one of so many ``choices``."""
    return max(1, ((choices - 1).bit_length() + 7) // 8)


def to_bytes(numbers: Integers, byte_count: int) -> Bytes:
    """A row of ``byte_count`` bytes for each of the ``numbers``, the lowest first."""
    return numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :byte_count]


def from_bytes(rows: Bytes) -> Integers:
    """The number in each of the ``rows`` of bytes, the lowest first."""
    whole = np.zeros((len(rows), 8), dtype=np.uint8)
    whole[:, : rows.shape[1]] = rows
    return whole.view("<i8")[:, 0].astype(np.int64)


def refuse_length(report: Any, byte_count: int) -> None:
    """Refuse a ``report`` that is not ``byte_count`` bytes."""
    require(isinstance(report, bytes), f"{type(report).__name__}: a report is bytes", DataError)
    require(
        len(report) == byte_count,
        f"a report of {len(report)} bytes: must be {byte_count}",
        DataError,
    )


def rows_of(reports: Bytes | Sequence[bytes], byte_count: int) -> Bytes:
    """A row of ``byte_count`` bytes for each of the ``reports``, a matrix or a list."""
    if not isinstance(reports, np.ndarray):
        for report in reports:
            refuse_length(report, byte_count)
        reports = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(-1, byte_count)
    require(
        reports.dtype == np.uint8 and reports.ndim == 2 and reports.shape[1] == byte_count,
        f"reports: must be a matrix of bytes (uint8) with {byte_count} columns",
        DataError,
    )
    return reports


def refuse_above(numbers: Integers, choices: int, subject: str) -> None:
    """Refuse reports together if one of the ``numbers`` is none of the ``choices``; ``subject``
    names it.
    """
    wrong = (numbers < 0) | (numbers >= choices)
    if wrong.any():
        require(
            False,
            f"report {int(wrong.argmax())}: its {subject} must be below {choices}; "
            "leave malformed reports out (refuse says which)",
            DataError,
        )


def support_of(count: float, keep: float, other: float, people: int) -> int | None:
    """How many reports lead to an estimated count; None if no number of them does.

    Parameters:
        count: the estimate.
        keep: probability that a report supports what its device has.
        other: probability that it supports something else.
        people: how many reported.
    """
    support = count * (keep - other) + people * other
    if not math.isfinite(support):
        return None
    whole = round(support)
    near = abs(support - whole) <= SUPPORT_TOLERANCE and 0 <= whole <= people
    return whole if near else None
