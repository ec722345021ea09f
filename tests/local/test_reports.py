"""Reports of many people: how they are collected, and what they say of all of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tempriv as tp
from tempriv.audit.exact import distribution
from tempriv.errors import DataError, TemprivError
from tempriv.local.frequency.estimation import (
    _at_least,
    estimate,
    estimate_counts,
    estimate_release,
)
from tempriv.local.frequency.longitudinal import (
    collect,
    instant_for,
    other_probability,
    response_of,
    standard_error_of_average,
)
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key

pytest_plugins = ["tests.support.statistics"]

NAMES = ("a", "b", "c", "d")
FRESH = tp.RandomizedResponse(epsilon=1.0, categories=("no", "yes"))


def memo(forever=1.0, instant=0.7, choices=2):
    return MemoizedResponse(
        epsilon_forever=forever, epsilon_instant=instant, categories=NAMES[:choices]
    )


@pytest.mark.parametrize("choices", [2, 3, 10])
@pytest.mark.parametrize(("once", "forever"), [(0.1, 0.2), (0.5, 4.0), (3.9, 4.0)])
def test_the_second_response_for_a_wanted_single_report(once, forever, choices):
    second = instant_for(once, forever, choices)
    names = tuple(map(str, range(choices)))
    mechanism = MemoizedResponse(epsilon_forever=forever, epsilon_instant=second, categories=names)
    assert once * (1 - 1e-9) <= mechanism.epsilon_once <= once


def test_a_second_response_cannot_undercut_the_permanent_one():
    with pytest.raises(TemprivError, match="must be < epsilon_forever"):
        instant_for(2.0, 1.0, 2)


# devices


@pytest.mark.parametrize("mechanism", [FRESH, memo()], ids=["fresh", "memoised"])
@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        ([[0, 2]], "none of the 2 categories"),
        ([[-1, 0]], "none of the 2 categories"),
        ([[0.0, 1.0]], "none of the 2 categories"),
        ([0, 1], "a row of answers for each person"),
    ],
)
def test_answers_that_do_not_fit_are_refused(mechanism, truth, sentence):
    with pytest.raises(DataError, match=sentence):
        collect(mechanism, np.array(truth), Key.from_seed(1))


def test_a_key_serves_one_collection():
    key = Key.from_seed(3)
    collect(memo(), np.zeros((2, 2), int), key)
    with pytest.raises(TemprivError, match="already made the noise"):
        collect(memo(), np.ones((2, 2), int), key)


def test_fresh_reports_are_those_of_the_mechanism(rng):
    truth = rng.integers(0, 2, size=(3, 8))
    collected = collect(FRESH, truth, Key.from_seed(9))
    key = Key.from_seed(9)
    for i in range(3):
        streamed = FRESH.start(key, f"person {i}").push([("no", "yes")[t] for t in truth[i]])
        assert streamed.tolist() == [("no", "yes")[r] for r in collected[i]]


# estimates


def two_binomials(n, true, keep, other):
    """The law of the number of reports of an answer that so many of n people have."""
    ours = stats.binom.pmf(np.arange(true + 1), true, keep)
    return np.convolve(ours, stats.binom.pmf(np.arange(n - true + 1), n - true, other))


@pytest.mark.parametrize("mechanism", [FRESH, memo(2.0, 1.0, 3)], ids=["fresh", "memoised"])
@pytest.mark.parametrize("true", [0, 3, 12])
def test_estimates_and_their_variances_are_unbiased(mechanism, true):
    """Exactly, over every number of reports of one category."""
    response, n = response_of(mechanism), 12
    law = two_binomials(n, true, response.keep, other_probability(response))
    counts = np.zeros((n + 1, response.choices), dtype=int)
    counts[:, 0] = np.arange(n + 1)
    counts[:, 1] = n - counts[:, 0]
    found = estimate_counts(counts, mechanism, interval="normal")
    shares, errors = found.fractions[:, 0], found.standard_errors[:, 0]
    mean = law @ shares
    assert mean == pytest.approx(true / n, abs=1e-12)
    assert law @ errors**2 == pytest.approx(law @ (shares - mean) ** 2, rel=1e-9)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_variances_for_a_larger_population_are_unbiased_too(fraction):
    response, n = response_of(FRESH), 9
    reported = (
        other_probability(response) + (response.keep - other_probability(response)) * fraction
    )
    law = stats.binom.pmf(np.arange(n + 1), n, reported)
    counts = np.stack([n - np.arange(n + 1), np.arange(n + 1)], axis=1)
    found = estimate_counts(counts, FRESH, interval="normal", whose="a larger population")
    shares = found.fractions[:, 1]
    assert law @ shares == pytest.approx(fraction, abs=1e-12)
    variance = law @ (shares - fraction) ** 2
    assert law @ found.standard_errors[:, 1] ** 2 == pytest.approx(variance, rel=1e-9)


def coverage(mechanism, n, interval, confidence):
    """The exact chance that the interval holds the true share, for every true share."""
    response = response_of(mechanism)
    counts = np.zeros((n + 1, response.choices), dtype=int)
    counts[:, 0] = np.arange(n + 1)
    counts[:, 1] = n - counts[:, 0]
    found = estimate_counts(counts, mechanism, confidence=confidence, interval=interval)
    chances = []
    for true in range(n + 1):
        held = (found.low[:, 0] <= true / n) & (true / n <= found.high[:, 0])
        chances.append(two_binomials(n, true, response.keep, other_probability(response)) @ held)
    return np.array(chances)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("mechanism", [FRESH, memo(3.0, 2.0, 4)], ids=["fresh", "memoised"])
def test_exact_intervals_hold_as_often_as_stated(mechanism, confidence):
    chances = coverage(mechanism, 40, "exact", confidence)
    assert chances.min() >= confidence - 1e-9
    # and are not so wide that this says nothing: tails of alpha / 2 are used up on average
    assert chances.mean() < 1 - (1 - confidence) / 4


def test_the_check_sees_intervals_that_are_too_short():
    """Normal intervals of few reports are: which is why they are called approximate."""
    rare = tp.RandomizedResponse(epsilon=4.0, categories=NAMES)
    assert coverage(rare, 40, "normal", 0.95).min() < 0.93
    assert coverage(rare, 40, "exact", 0.95).min() >= 0.95 - 1e-9


def test_intervals_for_a_larger_population_hold_as_often_as_stated():
    response, n = response_of(FRESH), 40
    counts = np.stack([n - np.arange(n + 1), np.arange(n + 1)], axis=1)
    found = estimate_counts(counts, FRESH, whose="a larger population", confidence=0.9)
    for fraction in np.linspace(0, 1, 41):
        reported = (
            other_probability(response) + (response.keep - other_probability(response)) * fraction
        )
        held = (found.low[:, 1] <= fraction) & (fraction <= found.high[:, 1])
        assert stats.binom.pmf(np.arange(n + 1), n, reported) @ held >= 0.9 - 1e-12


@pytest.mark.parametrize("people", [1, 7, 300, 5000])
def test_the_tail_of_two_binomials(people, rng):
    for _ in range(20):
        true, count = rng.integers(0, people + 1, size=2)
        keep, other = sorted(rng.uniform(0.01, 0.99, size=2))[::-1]
        law = two_binomials(people, int(true), keep, other)
        tail = _at_least(int(count), people, int(true), keep, other)
        assert tail == pytest.approx(law[count:].sum(), rel=1e-6, abs=1e-14)


def test_certain_reports_leave_no_doubt():
    sure = distributions.CategoryFlip(Fraction(800), 2)
    found = estimate_counts([[3, 7]], sure)
    assert found.fractions.tolist() == found.low.tolist() == found.high.tolist() == [[0.3, 0.7]]


@pytest.mark.parametrize("mechanism", [FRESH, memo(2.0, 2.0, 3)], ids=["fresh", "memoised"])
def test_shares_of_many_people_are_found(rng, mechanism):
    """Every share within six standard errors, and intervals at 1 - 1e-9 hold: 3,000 people."""
    choices = response_of(mechanism).choices
    truth = rng.integers(0, choices, size=(3000, 5)) * rng.integers(0, 2, size=(3000, 5))
    reports = collect(mechanism, truth, Key.from_seed(12))
    found = estimate(reports, mechanism, confidence=1 - 1e-9)
    true = np.stack([(truth == one).mean(axis=0) for one in range(choices)], axis=1)
    assert (np.abs(found.fractions - true) < 6 * found.standard_errors).all()
    assert ((found.low <= true) & (true <= found.high)).all()
    assert found.standard_errors.max() < 0.06
    np.testing.assert_allclose(found.fractions.sum(axis=1), 1)
    np.testing.assert_allclose(found.counts, 3000 * found.fractions)


def test_missing_reports_are_left_out(rng):
    reports = rng.integers(0, 2, size=(50, 3))
    masked = np.ma.array(reports, mask=np.zeros((50, 3), bool))
    masked[:20, 1] = np.ma.masked
    found = estimate(masked, FRESH)
    assert found.reports.tolist() == [50, 30, 50]
    alone = estimate(reports[20:, 1:2], FRESH)
    np.testing.assert_array_equal(found.fractions[1], alone.fractions[0])


@pytest.mark.parametrize(
    "mechanism",
    [tp.RandomizedResponse(epsilon=1.0, categories=NAMES[:2]), memo(), memo(1.0, None)],
    ids=["fresh", "memoised", "as it is"],
)
def test_a_release_is_counted_as_its_reports_are(rng, mechanism):
    import polars as pl

    people, days = 30, 4
    frame = pl.DataFrame(
        {
            "who": np.repeat([f"p{i}" for i in range(people)], days),
            "day": np.tile(np.arange(days), people),
            "at": [None if i % 17 == 3 else NAMES[i % 2] for i in range(people * days)],
        }
    )
    release = tp.release(frame, mechanism, values="at", time="day", series="who")
    found = estimate_release(release)
    assert (found.times, found.categories) == ((0, 1, 2, 3), NAMES[:2])
    out = pl.from_arrow(release.table)
    for day in range(days):
        answers = out.filter(pl.col("day") == day)["at"].drop_nulls()
        counts = [[(answers == "a").sum(), (answers == "b").sum()]]
        assert found.reports[day] == len(answers)
        expected = estimate_counts(counts, mechanism)
        np.testing.assert_array_equal(found.fractions[day], expected.fractions[0])
        np.testing.assert_array_equal(found.low[day], expected.low[0])


def test_releases_without_times_or_categories_are_refused():
    import polars as pl

    frame = pl.DataFrame({"day": [0, 1], "at": ["no", "yes"], "level": [0.5, 1.0]})
    with pytest.raises(DataError, match="has no times"):
        estimate_release(tp.release(frame, FRESH, values="at"))
    numbers = tp.Laplace(epsilon=1.0, bounds=(0, 2))
    with pytest.raises(DataError, match="one column of categories"):
        estimate_release(tp.release(frame, numbers, values="level", time="day"))


def test_shares_are_cut_off_for_showing_only():
    found = estimate_counts([[95, 5]], FRESH, interval="normal")
    assert found.fractions[0, 0] > 1 and found.fractions[0, 1] < 0
    shown = found.clipped()
    assert shown.fractions.tolist() == [[1.0, 0.0]]
    assert shown.low.min() >= 0 and shown.high.max() <= 1
    assert found.fractions[0, 0] > 1


def test_intervals_say_how_they_were_made():
    counts = [[40, 60]]
    assert "two binomial laws" in estimate_counts(counts, FRESH).method
    assert "normal" in estimate_counts(counts, FRESH, interval="normal").method
    larger = estimate_counts(counts, FRESH, whose="a larger population")
    assert "Clopper" in larger.method and "95 %" in larger.method


@pytest.mark.parametrize(
    ("counts", "given", "sentence"),
    [
        ([[1, 2, 3]], {}, "counts of all 2 categories"),
        ([[0, 0]], {}, "too few reports"),
        ([[1, 0]], {"whose": "a larger population"}, "too few reports"),
        ([[-1, 5]], {}, "counts of all 2 categories"),
        ([[1, 2]], {"confidence": 1.0}, "confidence=1.0"),
        ([[1, 2]], {"interval": "wide"}, "interval='wide'"),
        ([[1, 2]], {"whose": "all"}, "whose='all'"),
    ],
)
def test_counts_that_cannot_be_meant_are_refused(counts, given, sentence):
    with pytest.raises(TemprivError, match=sentence):
        estimate_counts(counts, FRESH, **given)


def test_reports_that_cannot_be_meant_are_refused():
    with pytest.raises(DataError, match="none of the 2 categories"):
        estimate(np.array([[0], [2]]), FRESH)
    with pytest.raises(DataError, match="none of the 2 categories"):
        estimate(np.array([[0.0], [1.0]]), FRESH)
    two = tp.RandomizedResponse(epsilon=1.0, categories=(("a", "b"), ("c", "d")))
    with pytest.raises(TemprivError, match="one column at a time"):
        estimate(np.array([[0]]), two)
    with pytest.raises(TemprivError, match="must be RandomizedResponse"):
        estimate(np.array([[0]]), tp.Laplace(epsilon=1.0, bounds=(0, 1)))


@pytest.mark.parametrize("instant", [None, 0.9])
@pytest.mark.parametrize("reports", [1, 3])
def test_the_error_of_averages_is_that_of_averages(instant, reports):
    """Against the variance over every outcome of one person of each kind."""
    mechanism, fraction, people = memo(1.2, instant, 3), 0.3, 100

    def variance(truth):
        outcomes = distribution(mechanism, (truth,) * reports, 0.0)
        means = {o: np.mean([report == (0,) for report in o[0]]) for o in outcomes}
        mean = sum(p * means[o] for o, p in outcomes.items())
        return sum(p * (means[o] - mean) ** 2 for o, p in outcomes.items())

    mixed = fraction * variance(0) + (1 - fraction) * variance(1)
    contrast = mechanism.keep - other_probability(mechanism)
    expected = math.sqrt(mixed / people) / contrast
    error = standard_error_of_average(mechanism, people, reports, fraction)
    assert error == pytest.approx(expected, rel=1e-9)


def test_more_reports_help_only_so_far():
    errors = [standard_error_of_average(memo(), 1000, n, 0.5) for n in (1, 10, 1000, 100_000)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-2] < 1.01 * errors[-1]
    assert standard_error_of_average(memo(), 4000, 10, 0.5) == pytest.approx(errors[1] / 2)
