"""What each of many releases may cost, or what they add up to, by every method beside each other.

Noise is compared by its standard deviation for one number, in units of the sensitivity: that of
Laplace noise is sqrt(2) / epsilon, and a pure guarantee is taken to be kept by Laplace noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from typing import ClassVar

from tempriv.accounting import composition
from tempriv.accounting.filters import order_of
from tempriv.accounting.loss_distribution import AnyRelease, LaplaceRelease
from tempriv.accounting.renyi import epsilon_of_rho, pure_of_rho, rho_budget, rho_of_pure
from tempriv.errors import UsageError, require

MAX_RELEASES = 1_000_000
MAX_EPSILON = 100
# loss distributions of more Laplace releases take minutes; optimal composition says nearly the same
MAX_EXACT_RELEASES = 50_000
# the longest month and year there are, so that what is planned for one holds for each
PERIOD_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 31 * 86_400,
    "year": 366 * 86_400,
}


class Noise(StrEnum):
    """What noise a method is about, as tables and files name it."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last: list[str]) -> str:
        return name.capitalize()  # distributions are named after people

    ANY_PURE = "any pure"
    LAPLACE = auto()
    GAUSSIAN = auto()


@dataclass(frozen=True)
class MethodResult:
    """By one method: what each release may cost, and what all of them come to.

    ``deviation`` is that of the noise of one release, ``against_sum`` how many times that of the
    method of sums it is. ``adaptive`` says whether it holds where costs are chosen as one goes.
    """

    spec_name: ClassVar[str] = "Way"

    method: str
    noise: Noise
    epsilon: float | None
    rho: float | None
    deviation: float
    against_sum: float
    total: float
    adaptive: bool


def count_within(releases: int, per: str | None = None, within: str | None = None) -> int:
    """How many releases fall within a time, at so many per another; always whole releases.

    Parameters:
        releases: how many there are in each period.
        per: the period, such as "day"; None: there is one period.
        within: how long, such as "90 days"; None with ``per`` only.

    >>> count_within(1440, per="day", within="week"), count_within(1, per="week", within="36 hours")
    (10080, 1)
    """
    require(
        isinstance(releases, int) and releases >= 1,
        f"releases={releases}: must be a whole number >= 1",
    )
    require(
        (per is None) == (within is None),
        "say both how often (such as per day) and for how long (such as within a week), or neither",
    )
    # times that are not whole are filled: the part of a day still holds all releases of a day
    count = releases
    if per is not None and within is not None:
        count = releases * math.ceil(_seconds("within", within) / _seconds("per", per))
    require(
        count <= MAX_RELEASES,
        f"{count:,} releases: must be at most {MAX_RELEASES:,}; plan for a shorter time, or for "
        "fewer",
    )
    return count


def _seconds(name: str, text: str) -> int:
    match = re.fullmatch(rf"(\d*)\s*({'|'.join(PERIOD_SECONDS)})s?", text.strip().lower())
    if match is None or match[1].strip("0") == "" != match[1]:
        periods = ", ".join(PERIOD_SECONDS)
        raise UsageError(
            f"{name}={text!r}: must be one of {periods}, or so many, such as '90 days'"
        )
    return int(match[1] or 1) * PERIOD_SECONDS[match[2]]


TotalFunction = Callable[[float, int, float], float]

TOTAL_BY_METHOD: dict[tuple[str, Noise], TotalFunction] = {
    ("advanced composition", Noise.ANY_PURE): (
        lambda each, count, delta: composition.advanced(each, 0.0, count, delta).epsilon
    ),
    ("optimal composition", Noise.ANY_PURE): (
        lambda each, count, delta: composition.optimal(each, 0.0, count, delta).epsilon
    ),
    ("Renyi", Noise.ANY_PURE): (
        lambda each, count, delta: composition.renyi({AnyRelease(each): count}, delta).epsilon
    ),
    ("Renyi", Noise.LAPLACE): (
        lambda each, count, delta: (
            composition.renyi({LaplaceRelease(1 / each): count}, delta).epsilon
        )
    ),
    ("exact", Noise.LAPLACE): (
        lambda each, count, delta: (
            composition.exact({LaplaceRelease(1 / each): count}, delta).epsilon
        )
    ),
}


def budget_per_release(
    count: int, epsilon: float, delta: float, quick: bool = False
) -> tuple[MethodResult, ...]:
    """What each of so many releases may cost, for all to keep (epsilon, delta).

    Without delta only the sum says anything.

    Parameters:
        count: how many releases.
        epsilon: of all of them together.
        delta: of all of them together.
        quick: whether to leave out loss distributions, which take seconds.

    >>> for result in budget_per_release(1440, 1.0, 1e-6, quick=True)[:3]:
    ...     print(result.method, f"{result.epsilon:.6f}", result.adaptive)
    sum 0.000694 True
    advanced composition 0.004843 False
    optimal composition 0.006245 False
    """
    _check(count, delta)
    _check_epsilon("epsilon", epsilon)
    results = [_pure("sum", epsilon / count, epsilon, True)]
    if delta == 0:
        return tuple(results)

    rho, _ = rho_budget(epsilon, delta)
    start = max(epsilon / count, pure_of_rho(rho / count, 1.0))

    def solved(method: str, noise: Noise, adaptive: bool) -> MethodResult:
        def excess(each: float) -> float:
            # nothing at all where delta alone is enough
            return math.log(
                max(TOTAL_BY_METHOD[method, noise](each, count, delta) / epsilon, 1e-300)
            )

        return _pure(method, _largest(excess, start, 1e-9), epsilon, adaptive, noise)

    def excess_of_delta(each: float) -> float:
        return math.log(composition.exact_delta({LaplaceRelease(1 / each): count}, epsilon) / delta)

    results += [
        solved("advanced composition", Noise.ANY_PURE, False),
        solved("optimal composition", Noise.ANY_PURE, False),
        _pure("zCDP", pure_of_rho(rho / count, 1.0), epsilon, True),
        solved("Renyi", Noise.ANY_PURE, True),
        _pure("ledger", _ledger_each(count, epsilon, delta), epsilon, True),
        solved("Renyi", Noise.LAPLACE, True),
    ]
    if count <= MAX_EXACT_RELEASES and not quick:
        each = _largest(excess_of_delta, start, 1e-5)
        results.append(_pure("exact", each, epsilon, False, Noise.LAPLACE))
    results += [
        _gaussian("zCDP", math.sqrt(count / (2 * rho)), epsilon, True),
        _gaussian("exact", composition.gaussian_noise(epsilon, delta, count), epsilon, False),
        _gaussian(
            "ledger", math.sqrt(count / (2 * rho_budget(epsilon, delta / 2)[0])), epsilon, True
        ),
    ]
    return _compared(results)


def totals_by_method(
    count: int, each: float, delta: float, quick: bool = False
) -> tuple[MethodResult, ...]:
    """What so many releases of this epsilon come to; Gaussian noise of the same deviation.

    Parameters:
        count: how many releases.
        each: the epsilon of each release.
        delta: of all of them together.
        quick: whether to leave out loss distributions, which take seconds.

    >>> results = totals_by_method(1000, 0.05, 1e-6)
    >>> [round(result.total, 2) for result in results if result.noise == "Laplace"]
    [8.73, 8.2]
    """
    _check(count, delta)
    _check_epsilon("each", each)
    results = [_pure("sum", each, count * each, True)]
    if delta == 0:
        return tuple(results)
    ratio = math.sqrt(2) / each
    rho = count / (2 * ratio**2)

    def by(method: str, noise: Noise, adaptive: bool) -> MethodResult:
        return _pure(
            method, each, TOTAL_BY_METHOD[method, noise](each, count, delta), adaptive, noise
        )

    results += [
        by("advanced composition", Noise.ANY_PURE, False),
        by("optimal composition", Noise.ANY_PURE, False),
        _pure("zCDP", each, epsilon_of_rho(count * rho_of_pure(each), delta), True),
        by("Renyi", Noise.ANY_PURE, True),
        _pure("ledger", each, _ledger_total(count, each, delta), True),
        by("Renyi", Noise.LAPLACE, True),
    ]
    if count <= MAX_EXACT_RELEASES and not quick:
        results.append(by("exact", Noise.LAPLACE, False))
    results += [
        _gaussian("zCDP", ratio, epsilon_of_rho(rho, delta), True),
        _gaussian("exact", ratio, composition.gaussian(ratio, count, delta).epsilon, False),
        _gaussian("ledger", ratio, epsilon_of_rho(rho, delta / 2), True),
    ]
    return _compared(results)


def _check(count: int, delta: float) -> None:
    require(
        isinstance(count, int) and 1 <= count <= MAX_RELEASES,
        f"count={count}: must be a whole number from 1 to {MAX_RELEASES:,}",
    )
    # beyond that, floating point loses too much of delta in loss distributions
    least = 1e-12 * (1 + count / 100)
    require(
        delta == 0 or least <= delta < 1,
        f"delta={delta}: must be 0, or from {least:.2g} (for {count:,} releases) to below 1",
    )


def _check_epsilon(name: str, epsilon: float) -> None:
    require(
        0 < epsilon <= MAX_EPSILON,
        f"{name}={epsilon}: must be an epsilon > 0 and at most {MAX_EPSILON}",
    )


def _pure(
    method: str, each: float, total: float, adaptive: bool, noise: Noise = Noise.ANY_PURE
) -> MethodResult:
    return MethodResult(method, noise, each, None, math.sqrt(2) / each, 1.0, total, adaptive)


def _gaussian(method: str, ratio: float, total: float, adaptive: bool) -> MethodResult:
    return MethodResult(
        method, Noise.GAUSSIAN, None, 1 / (2 * ratio**2), ratio, 1.0, total, adaptive
    )


def _compared(results: list[MethodResult]) -> tuple[MethodResult, ...]:
    most = results[0].deviation
    return tuple(replace(result, against_sum=result.deviation / most) for result in results)


def _ledger_each(count: int, epsilon: float, delta: float) -> float:
    """By the better of both rules, each with its half of delta."""
    rho, order = rho_budget(epsilon, delta / 2)
    return max(epsilon / count, pure_of_rho(rho / count, order))


def _ledger_total(count: int, each: float, delta: float) -> float:
    """The smallest limit that accepts them all."""

    def fits(limit: float) -> bool:
        rho, _ = rho_budget(limit, delta / 2)
        return count * rho_of_pure(each, order_of(limit, delta)) <= rho

    low, high = 0.0, count * each
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _largest(excess: Callable[[float], float], start: float, tolerance: float) -> float:
    """A number whose excess is at most 0, and not less than -tolerance.

    Along straight lines over its logarithm; an end that stays twice counts for half (Illinois).
    """
    low = high = start
    below = above = excess(start)
    while below > 0:
        high, above, low = low, below, low / 1.2
        below = excess(low)
    while above <= 0:
        low, below, high = high, above, high * 1.2
        above = excess(high)
    best, stayed = below, 0
    while best < -tolerance and high > low * (1 + 1e-15):
        aim = -tolerance / 2
        share = min(max((aim - below) / (above - below), 0.001), 0.999)
        middle = low * (high / low) ** share
        value = excess(middle)
        if value <= 0:
            low, below, best = middle, value, value
            above, stayed = (above / 2, 1) if stayed == 1 else (above, 1)
        else:
            high, above = middle, value
            below, stayed = (below / 2, -1) if stayed == -1 else (below, -1)
    return low
