"""Each assertion accepts the right law and rejects what it says it detects, above and below."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.support.statistics import (
    ALPHA,
    LEAST_EXPECTED,
    POWER,
    Blunt,
    assert_cells,
    assert_mean,
    assert_proportion,
    assert_rare,
    binomial_region,
    cells_detect,
    chi_square_critical,
    counted,
    cumulant,
    joined,
    mean_detects,
    mean_region,
    proportion_detects,
)

pytest_plugins = ["tests.support.statistics"]

DRAWS = 1_000_000
TIMES = 300
# of 300 trials at power 0.99 fewer than this many are rejected with probability below ALPHA
LEAST_REJECTED = int(stats.binom(TIMES, POWER).ppf(ALPHA))


def rejections(trial, samples):
    rejected = 0
    for sample in samples:
        try:
            trial(sample)
        except AssertionError:
            rejected += 1
    return rejected


def test_the_number_of_rejections_asked_for_is_close_to_all():
    assert LEAST_REJECTED > 0.9 * TIMES


def test_seeds_come_from_the_name_of_the_test(seed, request):
    assert request.node.name == "test_seeds_come_from_the_name_of_the_test"
    assert seed == 37042885457890


def test_another_name_is_another_seed(seed):
    assert seed != 37042885457890


# exact binomial


@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-4, 0.999])
@pytest.mark.parametrize("draws", [DRAWS, 20_000])
def test_a_proportion_is_rejected_with_at_most_alpha(draws, probability):
    low, high = binomial_region(draws, probability, ALPHA)
    law = stats.binom(draws, probability)
    assert law.cdf(low - 1) <= ALPHA / 2
    assert law.sf(high) <= ALPHA / 2
    # and no more narrowly than that: one count less on either side would be too much
    assert law.cdf(low) > ALPHA / 2
    assert law.sf(high - 1) > ALPHA / 2


@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-3])
def test_a_proportion_accepts_the_right_distribution(rng, probability):
    detects = 1.01 * proportion_detects(DRAWS, probability)

    def trial(count):
        assert_proportion(count, DRAWS, probability, detects=detects)

    assert rejections(trial, rng.binomial(DRAWS, probability, TIMES)) == 0


@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-3])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_proportion_rejects_what_it_states(rng, probability, direction):
    detects = 1.01 * proportion_detects(DRAWS, probability)
    wrong = probability * (1 + direction * detects)

    def trial(count):
        assert_proportion(count, DRAWS, probability, detects=detects)

    assert rejections(trial, rng.binomial(DRAWS, wrong, TIMES)) >= LEAST_REJECTED


def test_a_proportion_detects_one_percent_of_a_half():
    assert proportion_detects(DRAWS, 0.5) < 0.01
    assert proportion_detects(20_000, 0.5) < 0.07


def test_a_proportion_refuses_to_state_too_much():
    with pytest.raises(Blunt, match="the smallest is 0.2"):
        assert_proportion(1000, DRAWS, 0.001, detects=0.1)


def test_a_rare_event_is_accepted_as_rare_and_rejected_when_frequent(rng):
    def trial(count):
        assert_rare(count, DRAWS, 1e-8, detects=2e-5)

    assert rejections(trial, rng.binomial(DRAWS, 1e-8, TIMES)) == 0
    assert rejections(trial, rng.binomial(DRAWS, 2e-5, TIMES)) >= LEAST_REJECTED
    with pytest.raises(Blunt):
        assert_rare(0, DRAWS, 1e-8, detects=1e-6)


# chi-square


def test_a_chi_square_of_two_cells_is_rejected_with_at_most_alpha():
    for draws, probability in [(DRAWS, 1e-4), (20_000, 0.005), (1000, 0.1), (200, 0.5)]:
        expected = draws * probability
        assert math.isclose(expected, LEAST_EXPECTED)
        count = np.arange(draws + 1)
        statistic = (count - expected) ** 2 * (1 / expected + 1 / (draws - expected))
        rejected = statistic > chi_square_critical(2, ALPHA)
        assert stats.binom(draws, probability).pmf(count[rejected]).sum() <= ALPHA


@pytest.mark.parametrize("cells", [5, 20, 60, 200])
def test_a_chi_square_of_many_cells_is_rejected_with_at_most_alpha(cells):
    # cells as independent Poisson counts of 100, so that (count - 100)^2 is a whole number and the
    # law of the sum is a convolution. With the total free it is rejected more often than a
    # multinomial, and 100 in every cell is the least that is let through
    size = 1 << 18
    count = np.arange(1000)
    law = np.zeros(size)
    np.add.at(
        law, np.minimum((count - 100) ** 2, size - 1), stats.poisson(LEAST_EXPECTED).pmf(count)
    )
    total = np.fft.irfft(np.fft.rfft(law) ** cells, size)
    edge = math.floor(chi_square_critical(cells, ALPHA) * LEAST_EXPECTED) + 1
    assert edge < size // 2
    assert total[edge:].sum() <= ALPHA


def tilted(probabilities, size):
    """A deviation of root mean square ``size`` with rising odds; of the other sign if negative."""
    slope = np.linspace(-1, 1, len(probabilities))
    slope -= slope @ probabilities
    slope /= math.sqrt(probabilities @ slope**2)
    return probabilities * (1 + size * slope)


@pytest.mark.parametrize("cells", [2, 10, 60])
def test_a_chi_square_accepts_the_right_distribution(rng, cells):
    probabilities = np.full(cells, 1 / cells)
    detects = 1.01 * cells_detect(DRAWS, cells)

    def trial(counts):
        assert_cells(counts, probabilities, detects=detects)

    assert rejections(trial, rng.multinomial(DRAWS, probabilities, TIMES)) == 0


@pytest.mark.parametrize("cells", [2, 10, 60])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_chi_square_rejects_what_it_states(rng, cells, direction):
    probabilities = rng.dirichlet(np.full(cells, 20.0))
    detects = 1.01 * cells_detect(DRAWS, cells)
    wrong = tilted(probabilities, direction * detects)
    deviation = math.sqrt(((wrong - probabilities) ** 2 / probabilities).sum())
    assert math.isclose(deviation, detects)

    def trial(counts):
        assert_cells(counts, probabilities, detects=detects)

    assert rejections(trial, rng.multinomial(DRAWS, wrong, TIMES)) >= LEAST_REJECTED


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("least_expected", [100, 130])
def test_a_chi_square_rejects_what_it_states_where_the_small_cells_hold_it(
    rng, least_expected, direction
):
    small = least_expected / DRAWS
    probabilities = np.array([small] * 5 + [0.5 - 5 * small, 0.5])
    detects = 1.01 * cells_detect(DRAWS, len(probabilities))
    # all of the deviation in the five smallest cells
    change = np.array([1.0] * 5 + [0.0, -5.0]) * direction
    change *= detects / math.sqrt((change**2 / probabilities).sum())
    wrong = probabilities + change
    assert wrong.min() > 0

    def trial(counts):
        assert_cells(counts, probabilities, detects=detects)

    assert rejections(trial, rng.multinomial(DRAWS, wrong, TIMES)) >= LEAST_REJECTED


def test_a_chi_square_refuses_small_cells_and_overstatement():
    with pytest.raises(Blunt, match="join cells"):
        assert_cells([99, 999_901], [99e-6, 1 - 99e-6], detects=0.1)
    with pytest.raises(Blunt, match="the smallest is 0.00"):
        assert_cells([500_000, 500_000], [0.5, 0.5], detects=0.001)
    with pytest.raises(AssertionError, match="sum to"):
        assert_cells([500_000, 500_000], [0.5, 0.4], detects=0.1)


def test_joined_cells_hold_enough_and_lose_nothing(rng):
    law = stats.randint(-50, 51)
    edges, probabilities = joined([(k, law.pmf(k)) for k in range(-50, 51)], 20_000, most=10)
    sample = rng.integers(-70, 71, 10_000)
    assert counted(sample, edges).sum() == len(sample)
    assert probabilities.sum() == pytest.approx(1)
    for edge, below in zip(edges, np.cumsum(probabilities), strict=False):
        assert law.cdf(edge) == pytest.approx(below)
    assert counted(np.array([edges[0], edges[0] + 1]), edges).tolist()[:2] == [1, 1]


# the mean of a scale family


def exponential_like(scale):
    """The cumulant of G / 100 for a geometric variable with P(G >= g) = e^(-g / scale)."""
    # E e^(tG) = (1 - r) / (1 - r e^t)
    return lambda t: math.log(math.expm1(-1 / scale) / math.expm1(t / 100 - 1 / scale))


def geometric_means(rng, scale, times):
    """Means of G / 100; the sum of geometric variables is negative binomial."""
    return rng.negative_binomial(DRAWS, -math.expm1(-1 / scale), times) / DRAWS / 100


def test_a_mean_detects_one_percent_of_the_scale():
    assert mean_detects(exponential_like, 100, DRAWS) < 0.01
    assert mean_detects(exponential_like, 100, 20_000) < 0.08


@pytest.mark.parametrize("draws", [DRAWS, 20_000])
def test_a_mean_is_rejected_with_at_most_alpha_and_missed_with_at_most_the_rest(draws):
    low, high = mean_region(exponential_like(100), draws, ALPHA)

    def outside(scale):
        law = stats.nbinom(draws, -math.expm1(-1 / scale))
        return law.cdf(math.ceil(low * 100 * draws) - 1), law.sf(math.floor(high * 100 * draws))

    assert max(outside(100)) <= ALPHA / 2
    # Chernoff's bound gives away little: the exact chance is within a factor of 100
    assert min(outside(100)) >= ALPHA / 200
    detects = mean_detects(exponential_like, 100, draws)
    assert outside(100 * (1 - detects))[0] >= POWER
    assert outside(100 * (1 + detects))[1] >= POWER


def test_a_mean_accepts_the_right_distribution(rng):
    def trial(mean):
        assert_mean(mean, DRAWS, exponential_like, 100, detects=0.01)

    assert rejections(trial, geometric_means(rng, 100, TIMES)) == 0


@pytest.mark.parametrize("wrong", [99, 101])
def test_a_mean_rejects_a_scale_that_is_one_percent_off(rng, wrong):
    def trial(mean):
        assert_mean(mean, DRAWS, exponential_like, 100, detects=0.01)

    assert rejections(trial, geometric_means(rng, wrong, TIMES)) >= LEAST_REJECTED


@pytest.mark.parametrize("wrong", [0.99, 1, 1.01])
def test_a_mean_of_finitely_many_values_tells_one_percent_of_the_spread(rng, wrong):
    # squares of a rounded normal law, whose cumulant is added up
    points = np.arange(-400, 401)

    def family(spread):
        return cumulant((points / 20) ** 2, np.exp(-((points / (20 * spread)) ** 2) / 2))

    weights = np.exp(-((points / (20 * wrong)) ** 2) / 2)
    counts = rng.multinomial(DRAWS, weights / weights.sum(), TIMES)

    def trial(count):
        assert_mean(count @ (points / 20) ** 2 / DRAWS, DRAWS, family, 1, detects=0.01)

    rejected = rejections(trial, counts[: TIMES // 3] if wrong == 1 else counts)
    assert rejected == 0 if wrong == 1 else rejected >= LEAST_REJECTED


def test_a_mean_refuses_to_state_too_much():
    with pytest.raises(Blunt, match="the smallest is 0.0"):
        assert_mean(1, 20_000, exponential_like, 100, detects=0.01)
