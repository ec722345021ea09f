"""What all frequency oracles share: from supported values to counts, and reports as bytes.

A report supports some of the values. In each oracle here it supports the true value with
probability ``keep`` and any other one with probability ``other`` (a pure protocol in the words of
Wang, Blocki, Li and Jha 2017). So the support of a value that c of n people have is the
sum of two binomials, of c with ``keep`` and of n - c with ``other``: errors and intervals follow
from these two numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.frequency.estimation import Interval, among_these
from tempriv.mechanisms.domains import positive
from tempriv.sampling.distributions import CategoryFlip, UniformChoice
from tempriv.sampling.keystream import Keystream

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

MOST_VALUES = 1 << 24


class PureProtocol(Protocol):
    """Reports that support the true value and any other one with two fixed probabilities."""

    @property
    def size(self) -> int: ...

    @property
    def keep(self) -> float: ...

    @property
    def other(self) -> float: ...


@dataclass(frozen=True)
class Frequencies:
    """How many of the people have each value: unbiased, so also below 0 or above all of them.

    An interval holds for one value; it lies within 0 and the number of people.
    """

    counts: Floats
    standard_error: Floats
    low: Floats
    high: Floats


def check(epsilon: float, size: int) -> None:
    positive("epsilon", epsilon)
    require(
        isinstance(size, int) and not isinstance(size, bool) and 2 <= size <= MOST_VALUES,
        f"size={size}: must be a whole number of values from 2 to {MOST_VALUES}",
    )


def spread(one: PureProtocol, share: Any) -> Any:
    """What one person adds to the variance of a support, where ``share`` of them have the value."""
    others = one.other * (1 - one.other)
    return others + share * (one.keep * (1 - one.keep) - others)


def variance(one: PureProtocol, people: float, share: float) -> float:
    """Of the estimated count of a value that this share of the people have."""
    require(people > 0, f"people={people}: must be > 0")
    require(0 <= share <= 1, f"share={share}: must be from 0 to 1")
    return float(people * spread(one, share) / (one.keep - one.other) ** 2)


def estimated(
    one: PureProtocol, support: Any, people: int, confidence: float, interval: Interval
) -> Frequencies:
    """Unbiased counts, their standard errors and intervals, from the support of each value."""
    support = np.asarray(support)
    require(0 < confidence < 1, f"confidence={confidence}: must be between 0 and 1, such as 0.95")
    require(interval in ("exact", "normal"), f"interval={interval!r}: must be exact or normal")
    require(people >= 1, f"people={people}: without a report there is nothing to estimate")
    require(
        support.shape == (one.size,)
        and support.dtype.kind in "iu"
        and bool(((support >= 0) & (support <= people)).all()),
        f"support: must be {one.size} whole numbers from 0 to people={people}",
        DataError,
    )
    contrast = one.keep - one.other
    excess = support - people * one.other
    counts = excess / contrast
    # the variance is linear in the true count, of which an estimate outside 0 to n says too much
    share = np.clip(counts / people, 0, 1)
    error = np.sqrt(people * spread(one, share)) / contrast
    if interval == "exact":
        found = [among_these(int(s), people, one.keep, one.other, 1 - confidence) for s in support]
        low, high = np.array(found).T * people
    else:
        # all counts c with (excess - c contrast)^2 <= z^2 Var(support | c), as Wilson (1927)
        # did for one binomial: a quadratic in c
        z = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
        slope = one.keep * (1 - one.keep) - one.other * (1 - one.other)
        middle = excess * contrast + z * slope / 2
        reach = middle**2 - contrast**2 * (excess**2 - z * people * spread(one, 0.0))
        reach = np.sqrt(np.maximum(reach, 0))
        low, high = np.clip(np.stack([middle - reach, middle + reach]) / contrast**2, 0, people)
    return Frequencies(counts, error, low, high)


# what devices and servers are given


def values_of(values: Any, size: int, keystream: Keystream) -> Integers:
    """True values, a row of words for each."""
    found = np.asarray(values)
    require(
        found.ndim == 1
        and found.dtype.kind in "iu"
        and bool(((found >= 0) & (found < size)).all()),
        f"values: must be whole numbers from 0 to {size - 1}, one for each device",
        DataError,
    )
    require(
        keystream.count == len(found), f"words for {keystream.count} devices: {len(found)} report"
    )
    return found.astype(np.int64)


def value_of(value: Any, size: int, keystream: Keystream) -> int:
    """One true value, with one row of words."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(
        whole and 0 <= value < size,
        f"value: must be a whole number from 0 to {size - 1}",
        DataError,
    )
    require(keystream.count == 1, f"words for {keystream.count} devices: one reports")
    return int(value)


def counts_of(counts: Any, size: int) -> Integers:
    """How many people truly have each value, for a simulation."""
    found = np.asarray(counts)
    require(
        found.shape == (size,) and found.dtype.kind in "iu" and bool((found >= 0).all()),
        f"counts: must be {size} whole numbers >= 0",
        DataError,
    )
    return found.astype(np.int64)


def shift_of(law: CategoryFlip, keystream: Keystream) -> int:
    """``law.sample`` for one row, several times faster."""
    word, floor = int(keystream.read()[0]), int(law.cuts.floors[0])
    if word < floor:
        return 0
    if word <= floor + 1:  # the cut lies there: more digits decide
        return int(law.sample(keystream)[0])
    return 1 + uniform_of(UniformChoice(law.choices - 1), keystream.substream(1))


def uniform_of(law: UniformChoice, keystream: Keystream) -> int:
    """``law.sample`` for one row, several times faster."""
    word = int(keystream.substream(0).read()[0])
    if word < (1 << 64) // law.choices * law.choices:
        return word % law.choices
    return int(law.sample(keystream)[0])


def width(choices: int) -> int:
    """Bytes for one of so many numbers."""
    return max(1, ((choices - 1).bit_length() + 7) // 8)


def to_bytes(numbers: Integers, wide: int) -> Bytes:
    """A row of bytes for each number, the lowest first."""
    return numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :wide]


def from_bytes(rows: Bytes) -> Integers:
    whole = np.zeros((len(rows), 8), dtype=np.uint8)
    whole[:, : rows.shape[1]] = rows
    return whole.view("<i8")[:, 0].astype(np.int64)


def refuse_length(report: Any, wide: int) -> None:
    require(isinstance(report, bytes), f"{type(report).__name__}: a report is bytes", DataError)
    require(
        len(report) == wide,
        f"a report of {len(report)} bytes: must be {wide}",
        DataError,
    )


def rows_of(reports: Bytes | Sequence[bytes], wide: int) -> Bytes:
    """A row of bytes for each report, of a matrix or a list of reports."""
    if not isinstance(reports, np.ndarray):
        for report in reports:
            refuse_length(report, wide)
        reports = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(-1, wide)
    require(
        reports.dtype == np.uint8 and reports.ndim == 2 and reports.shape[1] == wide,
        f"reports: must be a matrix of bytes (uint8) with {wide} columns",
        DataError,
    )
    return reports


def refuse_above(numbers: Integers, choices: int, what: str) -> None:
    """Refuse all reports together if one of them is none of the choices."""
    wrong = (numbers < 0) | (numbers >= choices)
    if wrong.any():
        require(
            False,
            f"report {int(wrong.argmax())}: its {what} must be below {choices}; "
            "leave malformed reports out (refuse says which)",
            DataError,
        )
