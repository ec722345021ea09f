"""How common each answer is among many people, from what their devices reported.

An answer is reported truly with probability p, and as each of the others with probability q. So
the share s of reports of a category has mean q + (p - q) f, where f is the share of the truth, and
(s - q) / (p - q) is an unbiased estimate of f. It may fall below 0 or above 1 by chance; cutting it
off there is for showing only, as it would shift every average over such estimates.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, extra_packages, require
from tempriv.local.frequency.longitudinal import other_probability, response_of
from tempriv.mechanisms import registry
from tempriv.releases.release import Release

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Interval = Literal["exact", "normal"]
Whose = Literal["these people", "a larger population"]

REACH_DEVIATIONS = (
    9  # standard deviations; by Bernstein, less than 1e-17 of a binomial distribution lies beyond
)


@dataclass(frozen=True)
class Estimate:
    """Shares of the truth, a row for each time step and a column for each category.

    Intervals hold for one share each, with probability ``confidence`` at least if they are exact,
    about that if they are normal. ``reports`` says how many there were at each step.
    """

    fractions: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    reports: Integers
    confidence: float
    interval: Interval
    whose: Whose
    categories: tuple[str, ...] | None = None
    times: tuple[Any, ...] | None = None

    @property
    def counts(self) -> Floats:
        """How many of those who reported have each answer."""
        return self.fractions * self.reports[:, None]

    @property
    def method(self) -> str:
        """How the intervals were made, in a sentence."""
        made = {
            ("exact", "these people"): "exact, from the sum of two binomial laws (those who have "
            "the answer and report it, those who have not and do)",
            ("exact", "a larger population"): "exact, from the binomial law of the reports "
            "(Clopper and Pearson 1934)",
            ("normal", "these people"): "by the normal approximation",
            ("normal", "a larger population"): "by the normal approximation",
        }[self.interval, self.whose]
        return f"{100 * self.confidence:g} % intervals for the share among {self.whose}, {made}"

    def clipped(self) -> Estimate:
        """The same moved into 0 to 1, for showing: averages of clipped shares are biased."""
        parts = {name: np.clip(getattr(self, name), 0, 1) for name in ("fractions", "low", "high")}
        return replace(self, **parts)


def estimate(
    reports: Any,
    mechanism: Any,
    *,
    confidence: float = 0.95,
    interval: Interval = "exact",
    whose: Whose = "these people",
) -> Estimate:
    """Shares at each time step, from the reports of many people.

    Parameters:
        reports: a row of category numbers for each person; masked ones (numpy.ma) are left out.
        mechanism: what made them: a RandomizedResponse, a MemoizedResponse, or a distribution.
        confidence: the probability with which the interval for a share holds.
        interval: ``exact``, or by the ``normal`` approximation.
        whose: what the shares are of: those who reported, or a population that they were drawn
            from at random.

    >>> from tempriv.mechanisms.value.randomized_response import RandomizedResponse
    >>> asked = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    >>> reports = np.repeat([[1], [0]], [450, 550], axis=0)
    >>> found = estimate(reports, asked)
    >>> [round(float(x[0, 1]), 3) for x in (found.fractions, found.low, found.high)]
    [0.392, 0.332, 0.452]
    """
    response = response_of(mechanism)
    masked = np.ma.atleast_2d(np.ma.asarray(reports))
    require(masked.ndim == 2, "give a row of reports for each person", DataError)
    present = ~np.ma.getmaskarray(masked)
    numbers = np.where(present, masked.data, 0)
    require(
        numbers.dtype.kind in "iu"
        and bool((present <= ((numbers >= 0) & (numbers < response.choices))).all()),
        f"a report is none of the {response.choices} categories, numbered from 0; mask what is "
        "missing (numpy.ma)",
        DataError,
    )
    counts = np.stack(
        [((numbers == category) & present).sum(axis=0) for category in range(response.choices)],
        axis=1,
    )
    return estimate_counts(counts, mechanism, confidence=confidence, interval=interval, whose=whose)


def estimate_release(
    release: Release,
    *,
    confidence: float = 0.95,
    interval: Interval = "exact",
    whose: Whose = "these people",
) -> Estimate:
    """Shares at each time, from a release of categories with a series for each person.

    How the reports were made is in the release's own description.

    Parameters:
        release: of one column of categories, with times.
        confidence, interval, whose: as for ``estimate``.
    """
    columns, table = release.about["columns"], release.table
    require(
        columns["time"] is not None,
        "the release has no times: nothing says which reports belong together",
        DataError,
    )
    require(
        len(columns["values"]) == 1 and "categories" in release.about["mechanism"],
        "give a release of one column of categories",
        DataError,
    )
    value, names = columns["values"][0], release.about["mechanism"]["categories"][0]
    grouped = table.group_by([*columns["time"], value]).aggregate([(value, "count")])
    rows = grouped.select([*columns["time"], value, f"{value}_count"]).to_pylist()
    times = sorted({tuple(row[name] for name in columns["time"]) for row in rows})
    step_of_time = {time: i for i, time in enumerate(times)}
    counts = np.zeros((len(times), len(names)), dtype=np.int64)
    for row in rows:
        if row[value] is not None:
            step = step_of_time[tuple(row[name] for name in columns["time"])]
            counts[step, names.index(str(row[value]))] += row[f"{value}_count"]
    mechanism = registry.decode(release.about["mechanism"])
    estimated = estimate_counts(
        counts, mechanism, confidence=confidence, interval=interval, whose=whose
    )
    time_labels = tuple(time[0] if len(time) == 1 else time for time in times)
    return replace(estimated, times=time_labels, categories=tuple(names))


def estimate_counts(
    counts: Any,
    mechanism: Any,
    *,
    confidence: float = 0.95,
    interval: Interval = "exact",
    whose: Whose = "these people",
) -> Estimate:
    """Shares at each time step, from how often each category was reported.

    Parameters:
        counts: a row for each time step, a column for each category.
        mechanism, confidence, interval, whose: as for ``estimate``.
    """
    response = response_of(mechanism)
    counts = np.atleast_2d(np.asarray(counts, dtype=np.int64))
    require(0 < confidence < 1, f"confidence={confidence}: must be between 0 and 1, such as 0.95")
    require(interval in ("exact", "normal"), f"interval={interval!r}: must be exact or normal")
    require(
        whose in ("these people", "a larger population"),
        f"whose={whose!r}: must be 'these people' or 'a larger population'",
    )
    require(
        counts.ndim == 2 and counts.shape[1] == response.choices and bool((counts >= 0).all()),
        f"give the counts of all {response.choices} categories for each time step",
        DataError,
    )
    totals = counts.sum(axis=1)
    require(
        bool((totals >= (1 if whose == "these people" else 2)).all()),
        "a time step has too few reports to say anything",
        DataError,
    )
    keep, other = response.keep, other_probability(response)
    shares = counts / totals[:, None]
    fractions = (shares - other) / (keep - other)
    if whose == "these people":
        # linear in the share, so that an unbiased estimate put in gives an unbiased variance
        variances = (other * (1 - other) + (shares - other) * (1 - keep - other)) / totals[:, None]
    else:
        variances = shares * (1 - shares) / (totals[:, None] - 1)
    errors = np.sqrt(variances) / (keep - other)
    if interval == "normal":
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * errors
        low, high = fractions - reach, fractions + reach
    else:
        find = among_these if whose == "these people" else _in_population
        ends = [
            [find(int(count), int(total), keep, other, 1 - confidence) for count in row]
            for row, total in zip(counts, totals, strict=True)
        ]
        low, high = np.array(ends).transpose(2, 0, 1)
    return Estimate(fractions, errors, low, high, totals, confidence, interval, whose)


@functools.lru_cache(maxsize=1 << 16)
def among_these(
    count: int, people: int, keep: float, other: float, alpha: float
) -> tuple[float, float]:
    """The interval of shares that explain a count with more than alpha / 2 on either side.

    The more people have the answer, the more reports of it: both tails are monotone.

    Parameters:
        count: reports of an answer.
        people: reports in all.
        keep: probability that someone with the answer reports it.
        other: probability that someone without it does.
        alpha: probability that the interval misses the share.
    """
    guess = round((count - people * other) / (keep - other))
    low = _first(
        people, guess, lambda true: _at_least(count, people, true, keep, other) > alpha / 2
    )
    # few reports of an answer are many reports of the rest, by those who do not have it
    without = _first(
        people,
        people - guess,
        lambda without: _at_least(people - count, people, without, 1 - other, 1 - keep) > alpha / 2,
    )
    return low / people, max(people - without, low) / people


def _first(most: int, guess: int, holds: Callable[[int], bool]) -> int:
    """The smallest of 0 .. most for which it holds, if from one on it always does; else most."""
    guess, reach = min(max(guess, 0), most), 1
    while guess - reach > 0 and holds(guess - reach):
        reach *= 2
    low, reach = max(guess - reach, 0), 1
    while guess + reach < most and not holds(guess + reach):
        reach *= 2
    high = min(guess + reach, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _at_least(count: int, people: int, true: int, keep: float, other: float) -> float:
    """P(at least ``count`` reports of an answer that ``true`` of the people have)."""
    first, with_answer = _binomial(true, keep)
    others_first, without_answer = _binomial(people - true, other)
    # what the others must report at least, beside each number that these do
    missing = np.clip(
        count - first - np.arange(len(with_answer)) - others_first, 0, len(without_answer)
    )
    tails = np.append(np.cumsum(without_answer[::-1])[::-1], 0.0)
    return float(with_answer @ tails[missing])


def _binomial(trials: int, probability: float) -> tuple[int, Floats]:
    """Where a binomial distribution begins, but for a negligible part, and its probabilities."""
    with extra_packages("analysis", "intervals of shares"):
        from scipy.special import gammaln, xlog1py, xlogy

    reach = (
        REACH_DEVIATIONS * math.sqrt(trials * probability * (1 - probability)) + REACH_DEVIATIONS**2
    )
    low = max(math.floor(trials * probability - reach), 0)
    k = np.arange(low, min(math.ceil(trials * probability + reach), trials) + 1)
    ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    return low, np.exp(ways + xlogy(k, probability) + xlog1py(trials - k, -probability))


@functools.lru_cache(maxsize=1 << 16)
def _in_population(
    count: int, people: int, keep: float, other: float, alpha: float
) -> tuple[float, float]:
    """Clopper and Pearson's interval for the share of reports, restated for that of the truth."""
    with extra_packages("analysis", "intervals of shares"):
        from scipy.stats import beta

    low = 0.0 if count == 0 else float(beta.ppf(alpha / 2, count, people - count + 1))
    high = 1.0 if count == people else float(beta.isf(alpha / 2, count + 1, people - count))
    return (low - other) / (keep - other), (high - other) / (keep - other)
