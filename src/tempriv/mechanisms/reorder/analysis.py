"""What is known of mechanisms that move readings in time: lags, budgets, and which threshold.

After Ye, Hu, Li, Meng, Zheng and Yan, "Beyond Value Perturbation: Local Differential Privacy in the
Temporal Setting" (2021), with its formulas in a form that loses no digits and its choice of the
threshold put right. Plain numbers only: nothing here is drawn, and no mechanism is needed.

Throughout, k is the window, c0 the threshold, p_j the chance that a reading comes out j steps late,
S(n, r) a Stirling number of the second kind. The free slots of the Threshold mechanism have the
stationary distribution pi(x) = prod over taken slots of #(free slots to the right) / S(k, c0), so
p_0 = S(k-1, c0-1)/S(k, c0), p_1 = S(k-2, c0-1)/S(k, c0), p_{k-1} = S(k-1, c0)/S(k, c0): the sums
of Lemma 4.1 and Theorem 4.2, which cancel in floating point, have these values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]

MAX_TABLE_WINDOW = 4096  # steps; tables of window x threshold floats: 134 MB
KEEP_BITS = 32  # of a chance to keep a reading
FLOAT_ERROR = 1e-12  # a bound on the relative error of everything computed here


def require_window(window: int, least: int = 3, most: int = 1 << 16) -> None:
    """Refuse a window that a mechanism cannot have, or that its memory would not hold.

    Parameters:
        window: what was given.
        least: the least that it may be, in time steps.
        most: the most.
    """
    require(
        isinstance(window, int) and not isinstance(window, bool) and window >= least,
        f"window={window}: must be a whole number of time steps >= {least}",
    )
    require(window <= most, f"window={window}: must be at most {most} time steps")


def require_threshold(window: int, threshold: int) -> None:
    """Refuse a ``threshold`` that leaves no slot of a ``window`` taken, or no choice."""
    _require_table(window)
    require(
        isinstance(threshold, int) and 2 <= threshold <= window - 1,
        f"threshold={threshold}: must be a whole number from 2 to {window - 1} with a window of "
        f"{window}, or leave it out",
    )


def _require_table(window: int) -> None:
    require_window(window)
    require(
        window <= MAX_TABLE_WINDOW,
        f"window={window}: must be at most {MAX_TABLE_WINDOW} for mechanisms with a threshold",
    )


def require_epsilon(epsilon: float) -> None:
    """Refuse an ``epsilon`` that is no budget."""
    require(0 < epsilon < math.inf, f"epsilon={epsilon}: must be a number > 0")


# lags


def even_lags(epsilon: float, window: int) -> tuple[float, float]:
    """p_0 and each of p_1 .. p_{k-1} of Backward and Forward (Equation 4).

    Parameters:
        epsilon: the budget.
        window: time steps.

    >>> first, other = even_lags(2.0, 5)
    >>> round(first / other, 12) == round(math.e, 12), round(first + 4 * other, 12)
    (True, 1.0)
    """
    require_epsilon(epsilon)
    require_window(window, 2)
    fall = math.exp(-epsilon / 2)
    first = 1 / (1 + (window - 1) * fall)
    return first, first * fall


@functools.lru_cache(maxsize=4)
def stirling_ratios(window: int, threshold: int) -> Floats:
    """q[n, r] = S(n, r-1) / S(n, r) for n < window and r <= threshold.

    By q(n, r) = q(n-1, r) (r-1 + q(n-1, r-1)) / (r + q(n-1, r)): all terms are positive, so no
    digits are lost. It is infinite for r > n; what is below 1e-308 becomes 0, and q[n, 0] is 0.
    """
    q = np.full((window, threshold + 1), np.inf)
    q[:, 0] = 0.0
    q[1:, 1] = 0.0
    for n in range(2, window):
        top = min(n - 1, threshold)
        r = np.arange(2.0, top + 1)
        above = q[n - 1, 2 : top + 1]
        q[n, 2 : top + 1] = above * (r - 1 + q[n - 1, 1:top]) / (r + above)
        if n <= threshold:
            q[n, n] = n * (n - 1) / 2
    q.flags.writeable = False
    return q


def first_slot(ratios: Floats) -> tuple[Floats, Floats]:
    """Chances that the first of n slots is free, and taken, for each number r of free ones.

    ``ratios`` is the row n - 1 of ``stirling_ratios``; the two sum to 1, each to full precision.
    """
    r = np.arange(len(ratios), dtype=np.float64)
    r[0] = 1.0  # with ratio 0: never free, always taken
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / (1 + r / ratios), 1 / (1 + ratios / r)


@functools.lru_cache(maxsize=64)
def dispatch(window: int, threshold: int) -> Floats:
    """p_0 .. p_{k-1} of the Threshold mechanism (Theorem 4.2), read-only.

    A pass over the slots from the first to the last: ``free`` is the distribution of how many
    of those that are left are free. Chances below 1e-308 come out as 0.

    Parameters:
        window: time steps.
        threshold: free slots to choose from.

    >>> dispatch(5, 3).round(4).tolist()
    [0.28, 0.12, 0.16, 0.2, 0.24]
    """
    require_threshold(window, threshold)
    ratios = stirling_ratios(window, threshold)
    p = np.empty(window)
    p[0] = first_slot(ratios[window - 1])[0][threshold]
    each = 1 / (threshold + ratios[window - 1, threshold])  # (1 - p_0) / c0
    free = np.zeros(threshold + 1)
    free[threshold] = 1.0
    for j in range(1, window):
        empty, taken = first_slot(ratios[window - j - 1])
        empty *= free
        p[j] = each * empty.sum()
        free *= taken
        free[:-1] += empty[1:]
    p.flags.writeable = False
    return p


# budgets


@dataclass(frozen=True, eq=False)
class ThresholdBudgets:
    """What every threshold of a window costs, as the paper counts it (Theorem 4.3, Figure 4).

    p_1 is the smallest of all p_j, and one of p_0 and p_{k-1} the largest.

    Parameters:
        thresholds: 2 .. k-1.
        first: 2 ln(p_0/p_1) of each, which rises.
        last: 2 ln(p_{k-1}/p_1) of each, which falls.
    """

    thresholds: npt.NDArray[np.int64]
    first: Floats
    last: Floats

    @property
    def derived(self) -> Floats:
        """The greater of the two."""
        return np.maximum(self.first, self.last)


@functools.lru_cache(maxsize=64)
def budgets(window: int) -> ThresholdBudgets:
    """The budgets of all thresholds 2 .. k-1 at once, in O(k^2).

    Parameters:
        window: time steps.

    >>> [round(float(b), 3) for b in budgets(5).derived]
    [3.892, 1.695, 3.584]
    """
    _require_table(window)
    # the row n = k-2 of the Stirling ratios, as part * 2^power: q(n, 2) is about 2^-n
    r = np.arange(window, dtype=np.float64)
    part, power = np.zeros(window), np.zeros(window, dtype=np.int64)
    plain = np.zeros(window)
    for n in range(1, window - 1):
        part[2:n] *= (r[2:n] - 1 + plain[1 : n - 1]) / (r[2:n] + plain[2:n])
        part[n], power[n] = n * (n - 1) / 2, 0
        part[: n + 1], shift = np.frexp(part[: n + 1])
        power[: n + 1] += shift
        plain[: n + 1] = np.ldexp(part[: n + 1], power[: n + 1])
    thresholds = np.arange(2, window)
    first = 2 * np.log(thresholds - 1 + plain[1 : window - 1])
    # at c0 = k-1 whatever slot is not the first is free, so p_{k-1} = p_1
    last = np.zeros(len(thresholds))
    inner = slice(2, window - 1)
    with np.errstate(divide="ignore", over="ignore"):
        last[:-1] = 2 * np.where(
            plain[inner] > 1e-290,
            np.log1p(r[inner] / plain[inner]),
            np.log(r[inner] / part[inner]) - power[inner] * math.log(2),  # too small for a float
        )
    costs = ThresholdBudgets(thresholds, first, last)
    for array in (costs.thresholds, costs.first, costs.last):
        array.flags.writeable = False
    return costs


def derived_epsilon(window: int, threshold: int) -> float:
    """2 max ln(p_0/p_1), ln(p_{k-1}/p_1) (Theorem 4.3).

    A budget of marginal odds: it does not bound what the whole output tells (see ``loss``).

    Parameters:
        window: time steps.
        threshold: free slots to choose from.

    >>> round(derived_epsilon(10, 9), 6) == round(2 * math.log(36), 6)
    True
    """
    require_threshold(window, threshold)
    return float(budgets(window).derived[threshold - 2])


def least_epsilon(window: int) -> tuple[float, int]:
    """The smallest budget that a threshold reaches without dropping readings, and which one.

    Parameters:
        window: time steps.

    >>> epsilon, threshold = least_epsilon(10)
    >>> round(epsilon, 3), threshold
    (3.038, 5)
    """
    derived = budgets(window).derived
    at = int(np.argmin(derived))
    return float(derived[at]), at + 2


def _reach(epsilon: float, window: int) -> tuple[int, int]:
    """The least threshold with ``last`` <= epsilon, the greatest with ``first`` <= epsilon.

    There always are such: 2 ln(p_0/p_1) is 0 at c0 = 2, 2 ln(p_{k-1}/p_1) at c0 = k-1.
    """
    require_epsilon(epsilon)
    known = budgets(window)
    low = int(np.argmax(known.last <= epsilon)) + 2
    high = window - 1 - int(np.argmax(known.first[::-1] <= epsilon))
    return low, high


def feasible_thresholds(epsilon: float, window: int) -> range:
    """The thresholds whose derived budget is at most epsilon; they are consecutive.

    Parameters:
        epsilon: the budget.
        window: time steps.

    >>> feasible_thresholds(5.0, 10), feasible_thresholds(1.0, 10)
    (range(4, 8), range(8, 8))
    """
    low, high = _reach(epsilon, window)
    return range(low, max(low, high + 1))


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold, and what it takes to stay within the budget with it.

    Parameters:
        threshold: free slots to choose from.
        extended: whether readings must be dropped.
    """

    threshold: int
    extended: bool


def choose_threshold(epsilon: float, window: int) -> ThresholdChoice:
    """The threshold of least delay k - c0 (Section IV-D), put right where Algorithm 2 is wrong.

    Where none is feasible, the least whose p_{k-1} is within the budget, with readings dropped at
    lag 0 (Section IV-E). That need not be the cheapest one: it depends on what a drop costs.

    Parameters:
        epsilon: the budget.
        window: time steps.

    >>> choose_threshold(8.0, 10), choose_threshold(1.0, 10)
    (ThresholdChoice(threshold=9, extended=False), ThresholdChoice(threshold=8, extended=True))
    """
    low, high = _reach(epsilon, window)
    return ThresholdChoice(high, False) if low <= high else ThresholdChoice(low, True)


def choose_dual(epsilon: float, window: int) -> ThresholdChoice:
    """The pool of least delay c0 - 1 for the dual mechanism, which has p'_j = p_{k-1-j}.

    Parameters:
        epsilon: the budget.
        window: time steps.

    >>> choose_dual(8.0, 200), choose_threshold(8.0, 200)
    (ThresholdChoice(threshold=50, extended=False), ThresholdChoice(threshold=54, extended=False))
    """
    low, high = _reach(epsilon, window)
    return ThresholdChoice(low, low > high)


def keep_probability(epsilon: float, window: int, threshold: int) -> Fraction:
    """Which part of the readings at lag 0 is released, so that the budget is kept (Section IV-E).

    e^(epsilon/2) p_1/p_0 rounded down to a multiple of 2^-32, or 1. Rounding down only makes p_0
    smaller, which is safe while it stays above e^(-epsilon/2) times the largest p_j: that is
    checked. Both ends are moved in by the error of the floats they were computed with.

    Parameters:
        epsilon: the budget.
        window: time steps.
        threshold: free slots to choose from.

    >>> float(keep_probability(2.0, 6, 4)), keep_probability(6.0, 6, 4)
    (0.652387638..., Fraction(1, 1))
    """
    require_epsilon(epsilon)
    require_threshold(window, threshold)
    known = budgets(window)
    first, last = float(known.first[threshold - 2]), float(known.last[threshold - 2])
    require(
        last <= epsilon * (1 + FLOAT_ERROR),
        f"threshold={threshold}: needs epsilon >= {last:.4g} with a window of {window}, however "
        "many readings are dropped; take a higher threshold or leave it out",
    )
    if first <= epsilon:
        return Fraction(1)
    whole = 1 << KEEP_BITS
    most = math.floor(math.exp((epsilon - first) / 2) * (1 - FLOAT_ERROR) * whole)
    least = math.exp((last - epsilon - first) / 2) * (1 + FLOAT_ERROR) * whole
    require(
        most >= least,
        f"epsilon={epsilon}: too small for a window of {window} and a threshold of {threshold}, "
        f"chances are drawn in parts of 2^-{KEEP_BITS}; take a larger epsilon",
    )
    return Fraction(most, whole)


def algorithm_2(epsilon: float, window: int) -> ThresholdChoice | None:
    """What Algorithm 2 returns if it is followed as printed; None where it returns nothing.

    It stops at two neighbors l < r and tries l first (line 10), so it misses a feasible r; and
    with readings dropped it tests the whole derived budget (line 15), which no threshold meets
    there, so it ends at k-1. For k = 3 no loop is entered.

    Parameters:
        epsilon: the budget.
        window: time steps.

    >>> algorithm_2(8.0, 10), choose_threshold(8.0, 10)
    (ThresholdChoice(threshold=8, extended=False), ThresholdChoice(threshold=9, extended=False))
    """
    require_epsilon(epsilon)
    known = budgets(window).derived

    def _derived(threshold: int) -> float:
        # c0 = 1 would always be k-1 steps late: no budget is enough
        return float(known[threshold - 2]) if threshold >= 2 else math.inf

    low, high = 2, window - 1
    while low < high:
        middle = (low + high) // 2
        if _derived(middle) < epsilon or _derived(middle - 1) > _derived(middle):
            low = middle
        else:
            high = middle
        if low + 1 == high:
            for chosen in (low, high):
                if _derived(chosen) <= epsilon:
                    return ThresholdChoice(chosen, False)
            low, high = high, window - 1
            while low < high:
                middle = (low + high) // 2
                if _derived(middle) <= epsilon:
                    high = middle
                else:
                    low = middle
                if low + 1 == high:
                    return ThresholdChoice(high, True)
    return None


# values and times


def temporal_from_value(epsilon: float) -> float:
    """The loss of a swap if every reading is perturbed by itself within epsilon (Theorem 2.3).

    A swap replaces two readings, each of which costs epsilon.

    >>> temporal_from_value(0.5)
    1.0
    """
    require_epsilon(epsilon)
    return 2 * epsilon


def value_from_temporal(epsilon: float, skewness: float) -> float:
    """What Theorem 2.4 claims: a swap-private mechanism protects each value by this much.

    It is the paper's claim and no guarantee, for it does not hold. Take blocks of three shuffled
    uniformly: every swap inside a block looks the same (epsilon 0). Of the inputs (0, 0, 1) and
    (0, 1, 1), whose skewness is ln 2, the first never gives the output (0, 1, 1) and the second
    does: what is released exactly is not protected. It does not hold for one released slot by
    itself either: blocks of three shuffled with probability in proportion to e^(epsilon cycles)
    are epsilon-private for swaps, and show 0 in the second slot e^epsilon + 1 times likelier for
    the first input, which is more than max(e^(epsilon/2), 2) for every epsilon > 0.

    >>> value_from_temporal(1.0, skewness=math.log(2)) == math.log(2)
    True
    """
    require(0 <= epsilon < math.inf, f"epsilon={epsilon}: must be a number >= 0")
    require(skewness >= 0, f"skewness={skewness}: must be a number >= 0")
    return max(epsilon / 2, skewness)


def skewness(values: Sequence[Hashable] | npt.NDArray[np.generic], window: int) -> float:
    """Log of the largest ratio between how often two values occur in one window (Theorem 2.4).

    The values meant are those of the data. One that is somewhere and not in every window makes
    the ratio, and so the skewness, infinite. It is a property of private data: do not publish it.

    >>> skewness([0, 1, 1, 0, 1, 1], 3) == math.log(2), skewness("aab", 2)
    (True, inf)
    """
    require_window(window, 1)
    require(
        len(values) >= window,
        f"{len(values)} readings: a window of {window} needs at least as many",
        DataError,
    )
    numbers: dict[Hashable, int] = {}
    # nan is not equal to itself, and one value all the same
    codes = np.fromiter(
        (numbers.setdefault("nan" if v != v else (v,), len(numbers)) for v in values),
        dtype=np.int64,
        count=len(values),
    )
    if len(numbers) > window:
        return math.inf  # they do not fit into one window
    most = np.zeros(len(codes) - window + 1, dtype=np.int64)
    least = np.full_like(most, window)
    for code in range(len(numbers)):
        seen = np.concatenate([[0], np.cumsum(codes == code)])
        counts = seen[window:] - seen[:-window]
        np.maximum(most, counts, out=most)
        np.minimum(least, counts, out=least)
    if not least.all():
        return math.inf
    return float(np.log(most / least).max())
