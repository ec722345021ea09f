"""Lags, budgets and thresholds of order mechanisms: recomputed exactly, and enumerated."""

from __future__ import annotations

import functools
import itertools
import json
import math
import time
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder import analysis, loss
from tempriv.mechanisms.reorder.analysis import ThresholdChoice
from tests.support.paths import GOLDEN

GOLDEN_FILE = GOLDEN / "order_thresholds.json"
THRESHOLDS = json.loads(GOLDEN_FILE.read_text())


@functools.cache
def stirling(n, r):
    """Row by row, so that large numbers do not recurse."""
    row = [1]
    for size in range(1, n + 1):
        row = [
            0,
            *(c * row[c] + row[c - 1] if c < size else row[c - 1] for c in range(1, size + 1)),
        ]
    return row[r] if 0 <= r < len(row) else 0


def free_sets(window, threshold):
    """Every set of free slots with its stationary probability, from the product formula."""
    for free in itertools.combinations(range(window), threshold):
        weight = math.prod(
            sum(slot > taken for slot in free) for taken in range(window) if taken not in free
        )
        if weight:
            yield free, Fraction(weight, stirling(window, threshold))


# lags


@pytest.mark.parametrize(
    ("window", "threshold"), [(k, c) for k in range(3, 9) for c in range(2, k)]
)
def test_the_lags_are_those_of_the_stationary_chain(window, threshold):
    """Algorithm 1 keeps the law of the free slots, and its lags under that law are ``dispatch``."""
    before, after = dict(free_sets(window, threshold)), defaultdict(Fraction)
    lags = [Fraction(0)] * window
    for free, chance in before.items():
        targets = (0,) if 0 in free else free
        for target in targets:
            lags[target] += chance / len(targets)
            left = sorted({*free, window} - {target})
            after[tuple(slot - 1 for slot in left)] += chance / len(targets)
    assert after == before and sum(before.values()) == 1
    found = analysis.dispatch(window, threshold)
    assert all(
        abs(Fraction(float(p)) - lag) <= 1e-14 * lag for p, lag in zip(found, lags, strict=True)
    )


def theorem_4_2(window, threshold):
    """Lemma 4.1 and Theorem 4.2 as printed, in rationals."""

    @functools.cache
    def g(k, m):
        if m == 1:
            return Fraction(2, k)
        total = Fraction(1)
        for size in range(1, m + 1):
            total -= (
                Fraction(-1, threshold) ** size
                * math.prod(Fraction(k - i, i) for i in range(1, size + 2))
                * math.prod(g(k - i, m - i) for i in range(1, size))
            )
        return m / total

    k, m = window, window - threshold
    p = [1 - g(k, m), g(k, m)]
    for size in range(1, m + 1):
        chain = Fraction(-1, threshold) ** size * math.prod(g(k - i, m - i) for i in range(size))
        p[1] += chain * math.prod(Fraction(k - 1 - i, i) for i in range(1, size + 1))
    for j in range(2, k):
        p.append(Fraction(0))
        for size in range(1, m + 1):
            chain = Fraction(-1, threshold) ** size
            chain *= math.prod(g(k - i, m - i) for i in range(size))
            p[j] -= chain * size * math.prod(Fraction(k - j - i, i + 1) for i in range(1, size))
    return p


@pytest.mark.parametrize(
    ("window", "threshold"),
    [
        *((k, c) for k in range(3, 13) for c in range(2, k)),
        *((50, 2), (50, 17), (100, 99)),
        pytest.param(100, 29, marks=pytest.mark.long),
    ],
)
def test_the_lags_are_those_of_the_paper_in_exact_arithmetic(window, threshold):
    """And keep twelve digits where its sums, in floating point, have none left."""
    exact = theorem_4_2(window, threshold)
    for found, lag in zip(analysis.dispatch(window, threshold), exact, strict=True):
        assert abs(Fraction(float(found)) - lag) < Fraction(1, 10**14) * lag


@pytest.mark.parametrize("window", [500, 1000, 2000])
def test_the_lags_of_long_windows_come_at_once_and_add_up(window):
    for threshold in (3, window // 5, window // 2, window - 1):
        analysis.stirling_ratios.cache_clear()
        analysis.dispatch.cache_clear()
        start = time.perf_counter()
        lags = analysis.dispatch(window, threshold)
        assert time.perf_counter() - start < 0.3 * window / 1000
        assert math.isclose(lags.sum(), 1.0, rel_tol=1e-13)
        assert math.isclose((np.arange(window) * lags).sum(), window - threshold, rel_tol=1e-12)
        assert not lags.flags.writeable


# budgets


def test_the_budgets_of_the_reference_come_out():
    for row in THRESHOLDS["budgets"]:
        window = row["window"]
        derived = analysis.budgets(window).derived
        assert math.isclose(derived.max(), row["most"], rel_tol=1e-12)
        assert math.isclose(derived[-1], row["at_the_end"], rel_tol=1e-12)
        least, at = analysis.least_epsilon(window)
        assert math.isclose(least, row["least"], rel_tol=1e-12) and at == row["at"]


def test_the_thresholds_of_the_reference_come_out():
    for row in THRESHOLDS["choices"]:
        chosen = analysis.choose_threshold(row["epsilon"], row["window"])
        assert chosen == ThresholdChoice(row["threshold"], row["extended"])
        feasible = analysis.feasible_thresholds(row["epsilon"], row["window"])
        assert row["extended"] is (not feasible)


@pytest.mark.parametrize("window", [3, 4, 5, 12, 50, 100])
def test_budgets_are_logs_of_exact_ratios(window):
    for threshold in range(2, window):
        p_0, p_1 = stirling(window - 1, threshold - 1), stirling(window - 2, threshold - 1)
        p_last = stirling(window - 1, threshold)
        known = analysis.budgets(window)
        for found, ratio in (
            (known.first[threshold - 2], Fraction(p_0, p_1)),
            (known.last[threshold - 2], Fraction(p_last, p_1)),
        ):
            exact = 2 * (math.log(ratio.numerator) - math.log(ratio.denominator))
            assert math.isclose(found, exact, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("window", [3, 4, 10, 1000, 2000, 4096])
def test_the_ends_of_the_budgets_are_closed_forms(window):
    """Past a window of 1,076 the ratio at c0 = 2 is no float any more, its logarithm is."""
    derived = analysis.budgets(window).derived
    assert math.isclose(
        derived[0],
        2 * math.log(2 ** (window - 2) - 1) if window < 1000 else 2 * (window - 2) * math.log(2),
        rel_tol=1e-13,
    )
    assert math.isclose(
        derived[-1], 2 * math.log((window - 1) * (window - 2) / 2), rel_tol=1e-13, abs_tol=1e-15
    )


@pytest.mark.parametrize(
    ("window", "least", "at"),
    [
        (5, 1.695, 3),
        (10, 3.038, 5),
        (20, 4.317, 8),
        (50, 5.653, 17),
        (100, 6.728, 29),
        (200, 7.847, 50),
    ],
)
def test_the_least_budgets_that_were_found(window, least, at):
    epsilon, threshold = analysis.least_epsilon(window)
    assert round(epsilon, 3) == least and threshold == at


GRID = [epsilon / 2 for epsilon in range(1, 41)]


@pytest.mark.parametrize(
    "window", [*range(3, 40), 99, 200, pytest.param(341, marks=pytest.mark.long)]
)
def test_the_choice_is_that_of_an_exhaustive_scan(window):
    """Monotony is not used: lags are compared one threshold after the other."""
    odds = {}
    for threshold in range(2, window):
        p = analysis.dispatch(window, threshold)
        assert p[1:].min() == p[1] or math.isclose(p[1:].min(), p[1], rel_tol=1e-12)
        odds[threshold] = 2 * math.log(p.max() / p.min()), 2 * math.log(p[-1] / p[1])
    for epsilon in GRID:
        within = [c for c, (most, _) in odds.items() if most <= epsilon]
        last = [c for c, (_, last) in odds.items() if last <= epsilon]
        expected = (
            ThresholdChoice(max(within), False) if within else ThresholdChoice(min(last), True)
        )
        assert analysis.choose_threshold(epsilon, window) == expected
        expected = (
            ThresholdChoice(min(within), False) if within else ThresholdChoice(min(last), True)
        )
        assert analysis.choose_dual(epsilon, window) == expected
        assert list(analysis.feasible_thresholds(epsilon, window)) == within


def test_the_smallest_windows():
    """k = 3: all lags alike. k = 4: either the first lag or the last is three times the others."""
    assert analysis.dispatch(3, 2) == pytest.approx([1 / 3] * 3, rel=1e-15)
    assert analysis.derived_epsilon(3, 2) == 0
    assert analysis.choose_threshold(1e-9, 3) == ThresholdChoice(2, False)
    assert analysis.choose_dual(1e-9, 3) == ThresholdChoice(2, False)
    assert analysis.keep_probability(1e-9, 3, 2) == 1
    assert analysis.dispatch(4, 2) == pytest.approx(np.array([1, 1, 2, 3]) / 7, rel=1e-15)
    assert analysis.dispatch(4, 3) == pytest.approx(np.array([3, 1, 1, 1]) / 6, rel=1e-15)
    threefold = analysis.derived_epsilon(4, 2)
    assert threefold == pytest.approx(2 * math.log(3), rel=1e-15)
    assert analysis.choose_threshold(threefold, 4) == ThresholdChoice(3, False)
    assert analysis.choose_dual(threefold, 4) == ThresholdChoice(2, False)
    below = math.nextafter(threefold, 0)
    assert analysis.choose_threshold(below, 4) == ThresholdChoice(3, True)
    assert analysis.choose_dual(below, 4) == ThresholdChoice(3, True)


def test_where_algorithm_2_as_printed_is_wrong():
    """One threshold short in more than half of the cases, and the end of the range if it drops.

    Never beyond the budget: what is lost is delay, and readings. For k = 3 it returns nothing.
    """
    feasible, missed, dropping, off, silent = 0, 0, 0, 0, 0
    for window, epsilon in itertools.product(range(3, 61), GRID):
        right = analysis.choose_threshold(epsilon, window)
        printed = analysis.algorithm_2(epsilon, window)
        if not right.extended:
            feasible += 1
            missed += printed != right
            assert (printed is None) == (window == 3)
            assert printed in (None, right, ThresholdChoice(right.threshold - 1, False))
        else:
            dropping += 1
            silent += printed is None
            off += printed not in (None, right)
            assert printed in (None, ThresholdChoice(window - 1, True))
    assert (feasible, missed, dropping, off, silent) == (1814, 1046, 506, 493, 7)


# keeping


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.5, 4.0])
@pytest.mark.parametrize("window", [4, 5, 10, 50, pytest.param(100, marks=pytest.mark.long)])
def test_keeping_stays_within_the_budget_in_exact_arithmetic(epsilon, window):
    """Every pair of lags, with e^(epsilon/2) bounded by rationals from below."""
    chosen = analysis.choose_threshold(epsilon, window)
    keep = analysis.keep_probability(epsilon, window, chosen.threshold)
    assert (keep < 1) is chosen.extended and (keep * 2**32).denominator == 1
    p = theorem_4_2(window, chosen.threshold)
    p[0] *= keep
    # the series of the exponential stops below it
    bound = sum(Fraction(epsilon / 2) ** n / math.factorial(n) for n in range(40))
    if not chosen.extended:
        bound *= 1 + Fraction(1, 10**12)  # budgets that are equal as floats
    assert max(p) <= bound * min(p)
    if chosen.extended:  # no more is dropped than must be: two parts more would be too many
        assert p[0] + p[0] / keep * Fraction(2, 2**32) > bound * p[1]


def test_keeping_is_refused_where_parts_of_2_to_the_32_are_too_coarse():
    """There rounding down would make p_0 the smallest of all, below what the budget allows."""
    assert analysis.choose_threshold(1e-9, 200) == ThresholdChoice(199, True)
    with pytest.raises(UsageError, match="epsilon=1e-09: too small for a window of 200"):
        analysis.keep_probability(1e-9, 200, 199)
    fine = analysis.keep_probability(0.001, 200, 199)
    odds = (1 - (p_0 := analysis.dispatch(200, 199)[0])) / 199 / (p_0 * float(fine))
    assert math.exp(-0.0005) <= odds <= math.exp(0.0005)


def test_a_threshold_that_dropping_cannot_help_is_refused():
    with pytest.raises(UsageError, match="threshold=2: needs epsilon >= 11.08 with a window"):
        analysis.keep_probability(5.0, 10, 2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: analysis.dispatch(2, 2), "window=2: must be a whole number .* >= 3"),
        (lambda: analysis.budgets(2), "window=2: must be a whole number .* >= 3"),
        (lambda: analysis.budgets(4097), "window=4097: must be at most 4096"),
        (lambda: analysis.dispatch(10, 10), "threshold=10: must be a whole number from 2 to 9"),
        (lambda: analysis.derived_epsilon(10, 1), "threshold=1: must be .* from 2 to 9"),
        (lambda: analysis.choose_threshold(0.0, 10), "epsilon=0.0: must be a number > 0"),
        (lambda: analysis.choose_dual(-1.0, 10), "epsilon=-1.0: must be a number > 0"),
        (lambda: analysis.even_lags(math.inf, 10), "epsilon=inf: must be a number > 0"),
        (lambda: analysis.even_lags(1.0, 1), "window=1: must be a whole number .* >= 2"),
        (lambda: analysis.temporal_from_value(math.nan), "epsilon=nan: must be a number > 0"),
        (lambda: loss.backward(1.0, 5, 0), "distance=0: must be a whole number"),
        (lambda: loss.threshold(5, 3, 0, 1), "keep=0: must be a probability > 0"),
        (lambda: loss.noisy_order(1.0, 5, 1, "gauss"), "noise='gauss': must be"),
    ],
)
def test_bad_parameters_get_one_sentence(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_even_lags_of_large_budgets():
    assert analysis.even_lags(5000.0, 10) == (1.0, 0.0)


# values and times


def test_the_skewness_of_data():
    ones = np.array([0, 1, 1, 1, 0, 1, 1, 0, 1])
    counts = [np.bincount(ones[s : s + 4], minlength=2) for s in range(6)]
    expected = max(math.log(max(pair) / min(pair)) for pair in counts)
    assert analysis.skewness(ones, 4) == expected == math.log(3)
    assert analysis.skewness(["a"] * 5, 2) == 0
    assert analysis.skewness([math.nan, 1.0, math.nan, 1.0], 2) == 0
    assert analysis.skewness(range(5), 4) == math.inf
    with pytest.raises(DataError, match="3 readings: a window of 4 needs at least as many"):
        analysis.skewness([1, 2, 1], 4)


def shuffled(values, epsilon):
    """The law of a block shuffled with probability in proportion to e^(epsilon cycles)."""
    law = defaultdict(float)
    for order in itertools.permutations(range(len(values))):
        left, cycles = set(order), 0
        while left:
            at, cycles = left.pop(), cycles + 1
            while (at := order[at]) in left:
                left.remove(at)
        law[tuple(values[i] for i in order)] += math.exp(epsilon * cycles)
    total = sum(law.values())
    return {output: weight / total for output, weight in law.items()}


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
def test_theorem_2_4_does_not_hold(epsilon):
    """A shuffled block is epsilon-private for swaps, and not as the theorem says for values."""
    names = (0, 1, 2)
    for i, j in itertools.combinations(range(3), 2):
        other = list(names)
        other[i], other[j] = other[j], other[i]
        one, two = shuffled(names, epsilon), shuffled(other, epsilon)
        assert max(abs(math.log(one[out] / two[out])) for out in one) <= epsilon + 1e-12
    one, two = shuffled((0, 0, 1), epsilon), shuffled((0, 1, 1), epsilon)
    skewness = max(analysis.skewness(values, 3) for values in ((0, 0, 1), (0, 1, 1)))
    claimed = analysis.value_from_temporal(epsilon, skewness)
    # the whole output tells the two apart for certain
    assert not one.keys() & two.keys()
    # one slot by itself tells more than is claimed
    shows = [sum(p for out, p in law.items() if out[1] == 0) for law in (one, two)]
    odds = shows[0] / shows[1]
    assert odds == pytest.approx(math.exp(epsilon) + 1)
    assert odds > math.exp(claimed) + 1e-9 or epsilon == 0


def test_theorem_2_3_holds_for_randomized_response():
    """Two readings that trade places are two readings replaced."""
    epsilon = 0.7
    keep = 1 / (1 + math.exp(-epsilon))

    def chance(values, output):
        return math.prod(keep if v == o else 1 - keep for v, o in zip(values, output, strict=True))

    worst = max(
        math.log(chance((0, 1), output) / chance((1, 0), output))
        for output in itertools.product((0, 1), repeat=2)
    )
    assert worst == pytest.approx(analysis.temporal_from_value(epsilon))
