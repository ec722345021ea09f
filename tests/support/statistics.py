"""Statistical assertions that say what they can miss.

Each states its alpha, the chance that it rejects the right law, and the deviation it detects, which
it rejects with probability ``POWER`` at least, above and below. Both are computed from the number
of draws: an assertion that states more than its draws can show fails as ``Blunt`` before it looks
at the data. Seeds come from the test's name, so a verdict never changes by itself.

A test module asks for the fixtures with ``pytest_plugins = ["tests.support.statistics"]``.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence

import numba
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

ALPHA = 1e-9  # of each assertion; a few hundred of them stay below a millionth together
POWER = 0.99

COMPILED = not numba.config.DISABLE_JIT
DRAWS = 1_000_000 if COMPILED else 20_000

LEAST_EXPECTED = 100
# the chi-square law is a limit: at a hundredth of alpha its tail, with 100 expected in a cell,
# stays below alpha (computed in test_statistics)
CHI_SQUARE_RESERVE = 100

Cumulant = Callable[[float], float]
"""log E e^(t X) of a statistic X of one draw, for |t| <= 0.3; so X must be measured in units of its
spread, and its tails fall at least as fast as e^-x."""

TILTS = np.geomspace(1e-5, 0.3, 80).tolist()


class Blunt(Exception):
    """A stated deviation that so few draws cannot detect."""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A number of the test's own, from its name."""
    name = f"{request.node.path.stem}::{request.node.name}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest(), "big")


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def stated(deviation: float) -> float:
    """A deviation stated for a million draws; plain kernels are slow and draw 50 times fewer."""
    return deviation if COMPILED else 8 * deviation


def _smallest(is_detected: Callable[[float], bool], most: float = 0.99) -> float:
    """The smallest deviation that is detected, by halving; infinite if none is."""
    if not is_detected(most):
        return math.inf
    low, high = 0.0, most
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high


def _state(detects: float, is_detected: Callable[[float], bool], draws: int) -> None:
    if not is_detected(detects):
        raise Blunt(
            f"{draws} draws do not detect a deviation of {detects:g} with power {POWER}; "
            f"the smallest is {_smallest(is_detected):.3g}"
        )


@functools.cache
def binomial_region(draws: int, probability: float, alpha: float) -> tuple[int, int]:
    """Counts from low to high are accepted; each side rejects with at most alpha / 2, exactly."""
    law = stats.binom(draws, probability)
    low, high = int(law.ppf(alpha / 2)), int(law.isf(alpha / 2))
    while low > 0 and law.cdf(low - 1) > alpha / 2:
        low -= 1
    while law.sf(high) > alpha / 2:
        high += 1
    return low, high


def proportion_detects(draws: int, probability: float, alpha: float = ALPHA) -> float:
    """The smallest relative deviation of a probability that its count detects."""
    return _smallest(lambda d: _proportion_detects(draws, probability, alpha, d))


@functools.cache
def _proportion_detects(draws: int, probability: float, alpha: float, deviation: float) -> bool:
    low, high = binomial_region(draws, probability, alpha)

    def missed(other: float) -> float:
        law = stats.binom(draws, other)
        return float(law.cdf(high) - law.cdf(low - 1))

    # a probability cannot pass 1, so from 1 / (1 + deviation) on only too small is possible
    sides = [probability * (1 - deviation)]
    if probability * (1 + deviation) <= 1:
        sides.append(probability * (1 + deviation))
    return all(missed(other) <= 1 - POWER for other in sides)


def assert_proportion(
    count: int, draws: int, probability: float, *, detects: float, alpha: float = ALPHA
) -> None:
    """Exact binomial test, two-sided; detects a relative deviation of the probability."""
    _state(detects, lambda d: _proportion_detects(draws, probability, alpha, d), draws)
    low, high = binomial_region(draws, probability, alpha)
    assert low <= count <= high, (
        f"{count} of {draws} where {probability * draws:.1f} are expected: outside {low} to {high}"
    )


def assert_rare(
    count: int, draws: int, probability: float, *, detects: float, alpha: float = ALPHA
) -> None:
    """Exact binomial test of an event too rare to be missed; detects the probability ``detects``.

    Only too often can be told: the other side needs draws from the tail itself.
    """
    high = int(stats.binom(draws, probability).isf(alpha))
    if stats.binom(draws, detects).cdf(high) > 1 - POWER:
        raise Blunt(f"{draws} draws do not detect a probability of {detects:g}")
    assert count <= high, f"{count} of {draws} where at most {high} are accepted"


def chi_square_critical(cells: int, alpha: float) -> float:
    return float(stats.chi2.isf(alpha / CHI_SQUARE_RESERVE, cells - 1))


@functools.cache
def _cells_detect(draws: int, cells: int, alpha: float, deviation: float) -> bool:
    critical = chi_square_critical(cells, alpha)
    return bool(stats.ncx2.sf(critical, cells - 1, draws * deviation**2) >= POWER)


def cells_detect(draws: int, cells: int, alpha: float = ALPHA) -> float:
    """The smallest root of sum (q - p)^2 / p that a chi-square test detects."""
    return _smallest(lambda d: _cells_detect(draws, cells, alpha, d))


def assert_cells(
    counts: Sequence[int] | npt.NDArray[np.int64],
    probabilities: Sequence[float] | npt.NDArray[np.float64],
    *,
    detects: float,
    alpha: float = ALPHA,
) -> None:
    """Chi-square test over cells of at least 100 expected.

    Detects cell probabilities q with sqrt(sum (q - p)^2 / p) >= ``detects``: a root mean square
    of the relative deviation, in whatever pattern.
    """
    observed, expected = np.asarray(counts), np.asarray(probabilities, dtype=float)
    draws = int(observed.sum())
    assert len(observed) == len(expected)
    assert math.isclose(expected.sum(), 1, abs_tol=1e-9), f"cells sum to {expected.sum()!r}"
    if expected.min() * draws < LEAST_EXPECTED:
        raise Blunt(f"{expected.min() * draws:.3g} expected in a cell: join cells to have 100")
    _state(detects, lambda d: _cells_detect(draws, len(expected), alpha, d), draws)
    statistic = float((((observed - draws * expected) ** 2) / (draws * expected)).sum())
    critical = chi_square_critical(len(expected), alpha)
    assert statistic <= critical, f"chi-square of {statistic:.1f} above {critical:.1f}"


def joined(
    outcomes: Iterator[tuple[int, float]] | Sequence[tuple[int, float]], draws: int, most: int = 60
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Upper edges of neighboring integers joined into cells, and the cells' probabilities.

    Every cell but the ends holds at least 1 / most of the mass and 100 expected; the ends take up
    what the outcomes leave out.
    """
    least = max(1 / most, 1.2 * LEAST_EXPECTED / draws)
    edges, masses, mass = [], [], 0.0
    for outcome, probability in sorted(outcomes):
        mass += probability
        if mass >= least:
            edges.append(outcome)
            masses.append(mass)
            mass = 0.0
    masses[-1] = 1 - math.fsum(masses[:-1])
    return np.array(edges[:-1], dtype=np.int64), np.array(masses)


def counted(sample: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many fall into the cells: up to the first edge, then up to the second, ..., the rest."""
    cell = np.searchsorted(edges, sample, side="left")
    return np.bincount(cell, minlength=len(edges) + 1).astype(np.int64)


def cumulant(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> Cumulant:
    """Of a statistic with finitely many values."""
    probabilities = weights / weights.sum()
    return lambda t: math.log1p(float(probabilities @ np.expm1(t * values)))


def _mean_edge(law: Cumulant, side: int, exponent: float) -> float:
    """An edge that the mean passes with at most e^(-draws exponent), by Chernoff.

    Every tilt gives an edge that is valid; the tightest is taken.
    """
    edges = [(exponent + law(side * t)) / t for t in TILTS]
    return side * min(edges)


@functools.cache
def mean_region(law: Cumulant, draws: int, alpha: float) -> tuple[float, float]:
    """Means that are accepted; each side rejects with at most alpha / 2, for any finite draws."""
    exponent = math.log(2 / alpha) / draws
    return _mean_edge(law, -1, exponent), _mean_edge(law, 1, exponent)


@functools.cache
def _mean_detects(
    family: Callable[[float], Cumulant], scale: float, draws: int, alpha: float, deviation: float
) -> bool:
    low, high = mean_region(family(scale), draws, alpha)
    exponent = -math.log(1 - POWER) / draws
    above = _mean_edge(family(scale * (1 + deviation)), -1, exponent)
    below = _mean_edge(family(scale * (1 - deviation)), 1, exponent)
    return above > high and below < low


def mean_detects(
    family: Callable[[float], Cumulant], scale: float, draws: int, alpha: float = ALPHA
) -> float:
    """The smallest relative deviation of the scale that the mean detects."""
    return _smallest(lambda d: _mean_detects(family, scale, draws, alpha, d))


def assert_mean(
    mean: float,
    draws: int,
    family: Callable[[float], Cumulant],
    scale: float,
    *,
    detects: float,
    alpha: float = ALPHA,
) -> None:
    """Test of a mean whose law is a family in one scale; detects a relative deviation of the scale.

    ``family(scale)`` gives the cumulant of one draw's statistic. Alpha and power hold by Chernoff's
    bound for any number of draws, without a normal approximation.
    """
    _state(detects, lambda d: _mean_detects(family, scale, draws, alpha, d), draws)
    low, high = mean_region(family(scale), draws, alpha)
    assert low <= mean <= high, f"a mean of {mean:.6g}, outside {low:.6g} to {high:.6g}"
