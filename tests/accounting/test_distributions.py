"""Privacy-loss distributions: the traps of dp-accounting, and each law against its definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad

from tempriv.accounting.composition import (
    exact,
    exact_delta,
    gaussian,
    gaussian_delta,
    optimal,
    renyi,
)
from tempriv.accounting.loss_distribution import (
    AnyRelease,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    GaussianRelease,
    KnownRelease,
    LaplaceRelease,
    ResponseRelease,
    loss_distribution,
)
from tempriv.errors import UsageError

ADDED, REPLACED = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
DELTA = 1e-5


def by_events(accountant, relation, event) -> float:
    return accountant(neighboring_relation=relation).compose(event).get_epsilon(DELTA)


# the traps: each is shown to be there, and not to be reached from here


def test_trap_randomized_response_needs_replace_one():
    event = RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2)
    with pytest.raises(UnsupportedEventError):
        by_events(PLDAccountant, ADDED, event)
    # its parameter is the chance of a uniform answer: half of the time here, so 3 to 1
    assert by_events(PLDAccountant, REPLACED, event) == pytest.approx(math.log(3), abs=1e-3)
    assert exact({ResponseRelease(math.log(3)): 1}, DELTA).epsilon == pytest.approx(
        math.log(3) + math.log1p(-DELTA * 4 / 3), abs=1e-9
    )


def test_trap_randomized_response_many_times_is_counted_once():
    many = SelfComposedDpEvent(RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2), 50)
    counted_once = by_events(PLDAccountant, REPLACED, many)
    assert counted_once == pytest.approx(math.log(3), abs=1e-3)
    right = exact({ResponseRelease(math.log(3)): 50}, DELTA).epsilon
    assert right == pytest.approx(optimal(math.log(3), 0.0, 50, DELTA).epsilon, rel=1e-6)
    assert right > 40


def test_trap_laplace_is_rejected_under_replace_one():
    with pytest.raises(UnsupportedEventError):
        by_events(PLDAccountant, REPLACED, LaplaceDpEvent(noise_multiplier=2.0))
    # by its definition: the loss is 1/2 with probability 1/2, and less else
    epsilon = 0.5 + 2 * math.log1p(-DELTA)
    assert exact({LaplaceRelease(2.0): 1}, DELTA).epsilon == pytest.approx(epsilon, rel=1e-6)


def test_trap_a_gaussian_under_replace_one_has_half_the_noise_or_not():
    event = GaussianDpEvent(noise_multiplier=2.0)
    whole, half = (gaussian(ratio, 1, DELTA).epsilon for ratio in (2.0, 1.0))
    assert by_events(PLDAccountant, ADDED, event) == pytest.approx(whole, rel=1e-4)
    assert by_events(PLDAccountant, REPLACED, event) == pytest.approx(half, rel=1e-4)
    # the other accountant of the same package sees no difference
    same = [by_events(RdpAccountant, relation, event) for relation in (ADDED, REPLACED)]
    assert same[0] == same[1] < half
    assert exact({GaussianRelease(2.0): 1}, DELTA).epsilon == whole


@pytest.mark.parametrize(("count", "delta"), [(10_080, 1e-9), (100_000, 1e-6), (100_000, 1e-9)])
def test_trap_pessimistic_rounding_is_undone_by_fourier_transforms(count, delta):
    """Nothing is rounded for randomized response, and yet delta comes out too small."""
    plan, truth = {ResponseRelease(0.003): count}, optimal(0.003, 0.0, count, delta).epsilon
    assert loss_distribution(plan).get_epsilon_for_delta(delta) < truth - 1e-9
    assert truth <= exact(plan, delta).epsilon <= truth * 1.02


# each law against its definition

Profile = Callable[[float], float]


def laplace(epsilon: float) -> Profile:
    """One release: the loss is epsilon - 2u, where u is exponential and cut off at epsilon."""

    def delta(at: float) -> float:
        if at >= epsilon:
            return 0.0
        return -math.expm1(at) if at <= -epsilon else -math.expm1((at - epsilon) / 2)

    return delta


def two_laplaces(epsilon: float, at: float) -> float:
    """Two releases, by quadrature over the loss of the first."""
    one = laplace(epsilon)
    kinks = [u for u in (epsilon - at / 2, -at / 2) if 0 < u < epsilon]
    inner, _ = quad(
        lambda u: math.exp(-u) / 2 * one(at - epsilon + 2 * u), 0, epsilon, points=kinks or None
    )
    return 0.5 * one(at - epsilon) + math.exp(-epsilon) / 2 * one(at + epsilon) + inner


def enumerated(here: np.ndarray, there: np.ndarray, count: int, at: float) -> float:
    """So many releases of a law with few outcomes, one combination after the other."""
    found = 0.0
    for outcomes in itertools.product(range(len(here)), repeat=count):
        chosen = list(outcomes)
        found += max(here[chosen].prod() - math.exp(at) * there[chosen].prod(), 0.0)
    return found


def response_law(epsilon: float, choices: int) -> tuple[np.ndarray, np.ndarray]:
    weights = np.ones(choices)
    weights[0] = math.exp(epsilon)
    return weights / weights.sum(), np.roll(weights, 1) / weights.sum()


def discrete_law(log_weight: Profile, moved: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    grid = np.arange(-reach, reach + 1)
    here, there = (np.exp([log_weight(x - shift) for x in grid]) for shift in (0, moved))
    return here / here.sum(), there / there.sum()


def assert_just_above(found: float, truth: float, relative: float) -> None:
    assert truth <= found <= truth * (1 + relative) + 1e-12


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
@pytest.mark.parametrize("part", [0.0, 0.4, 1.0, 1.6])
def test_laplace(epsilon, part):
    kind, at = LaplaceRelease(1 / epsilon), part * epsilon
    assert_just_above(exact_delta({kind: 1}, at), laplace(epsilon)(at), 1e-6)
    assert_just_above(exact_delta({kind: 2}, at), two_laplaces(epsilon, at), 1e-6)


@pytest.mark.parametrize("choices", [2, 3, 5])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.3])
def test_randomized_response(choices, at):
    here, there = response_law(0.7, choices)
    truth = enumerated(here, there, 3, at)
    assert_just_above(exact_delta({ResponseRelease(0.7, choices): 3}, at), truth, 1e-9)


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.5, 1), (2.0, 3)])
def test_discrete_laplace(scale, sensitivity):
    here, there = discrete_law(lambda x: -abs(x) / scale, sensitivity, 80)
    kind = DiscreteLaplaceRelease(scale, sensitivity)
    for at in (0.1, 0.6):
        assert_just_above(exact_delta({kind: 1}, at), enumerated(here, there, 1, at), 1e-6)
        assert_just_above(exact_delta({kind: 2}, at), enumerated(here, there, 2, at), 1e-6)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1), (2.5, 2)])
def test_discrete_gaussian(sigma, sensitivity):
    here, there = discrete_law(lambda x: -(x**2) / (2 * sigma**2), sensitivity, 30)
    kind = DiscreteGaussianRelease(sigma, sensitivity)
    for at in (0.1, 1.2):
        assert_just_above(exact_delta({kind: 1}, at), enumerated(here, there, 1, at), 1e-5)
        assert_just_above(exact_delta({kind: 2}, at), enumerated(here, there, 2, at), 1e-5)


def test_any_release_is_the_worst_of_its_promise():
    plan = {AnyRelease(0.3, 1e-4): 4}
    found = exact(plan, 0.01).epsilon
    assert_just_above(found, optimal(0.3, 1e-4, 4, 0.01).epsilon, 1e-6)
    for other in (ResponseRelease(0.3, 5), LaplaceRelease(1 / 0.3)):
        assert exact({other: 4}, 0.01).epsilon < found


def test_unlike_releases_together():
    """A Laplace release after an answer and a Gaussian one, by quadrature over both."""
    ratio, epsilon, at = 2.0, 0.5, 0.8
    here, there = response_law(0.7, 3)

    def given_the_answer(left: float) -> float:
        # the loss of Gaussian noise is normal with this mean and twice the variance
        mean = 1 / (2 * ratio**2)
        inner, _ = quad(
            lambda loss: (
                math.exp(-((loss - mean) ** 2) / (4 * mean))
                / math.sqrt(4 * math.pi * mean)
                * laplace(epsilon)(left - loss)
            ),
            mean - 8,
            mean + 8,
            points=[left - epsilon, left + epsilon, mean],
            limit=200,
        )
        return inner

    losses = np.log(here / there)
    truth = sum(p * given_the_answer(at - loss) for p, loss in zip(here, losses, strict=True))
    plan: dict[KnownRelease, int] = {
        LaplaceRelease(1 / epsilon): 1,
        ResponseRelease(0.7, 3): 1,
        GaussianRelease(ratio): 1,
    }
    assert_just_above(exact_delta(plan, at), truth, 1e-5)


# many releases


def bracketed(epsilon: float, count: int, delta: float, steps: int) -> tuple[float, float]:
    """Epsilon of many Laplace releases with all losses rounded down, and rounded up."""
    noise = np.linspace(0, epsilon, steps + 1)  # in units of the scale; the loss is epsilon - 2 x
    cells = np.exp(-noise[:-1]) / 2 * -np.expm1(-epsilon / steps)
    found = []
    for shift in (1, 0):
        chances = np.zeros(steps + 1)
        chances[0], chances[-1] = 0.5, math.exp(-epsilon) / 2
        chances[shift : steps + shift] += cells
        size = 2 ** math.ceil(math.log2(count * steps + 1))
        many = np.fft.irfft(np.fft.rfft(chances, size) ** count, size)
        losses = count * epsilon - 2 * epsilon / steps * np.arange(size)
        many, losses = many[losses > 0], losses[losses > 0]
        low, high = 0.0, count * epsilon
        while high - low > 1e-6:
            middle = (low + high) / 2
            above = losses > middle
            left = (many[above] * -np.expm1(middle - losses[above])).sum()
            low, high = (middle, high) if left > delta else (low, middle)
        found.append(high)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("epsilon", "count", "delta", "steps"), [(0.05, 1000, 1e-6, 2000), (0.01, 3000, 1e-5, 500)]
)
def test_many_laplace_releases_lie_between_losses_rounded_down_and_up(epsilon, count, delta, steps):
    low, high = bracketed(epsilon, count, delta, steps)
    found = exact({LaplaceRelease(1 / epsilon): count}, delta).epsilon
    assert low < found < high
    assert found == pytest.approx((low + high) / 2, rel=1e-3)


@pytest.mark.parametrize(
    "kind",
    [
        LaplaceRelease(30.0),
        ResponseRelease(0.03, 4),
        DiscreteLaplaceRelease(300.0, 10),
        DiscreteGaussianRelease(30.0),
        GaussianRelease(30.0),
    ],
)
@pytest.mark.parametrize("count", [1, 30, 2000])
def test_exact_is_below_what_renyi_divergences_say(kind, count):
    assert exact({kind: count}, 1e-6).epsilon <= renyi({kind: count}, 1e-6).epsilon * (1 + 1e-9)


def test_a_fine_discrete_gaussian_is_as_good_as_a_continuous_one():
    continuous = gaussian(20.0, 400, 1e-6).epsilon
    found = exact({DiscreteGaussianRelease(1000.0, 50): 400}, 1e-6).epsilon
    assert_just_above(found, continuous, 1e-4)
    with pytest.raises(UsageError, match="count it as GaussianRelease"):
        exact({DiscreteGaussianRelease(1e6): 1}, 1e-6)


def test_delta_and_epsilon_are_each_other_s_inverse():
    for kind in (LaplaceRelease(5.0), ResponseRelease(0.2), GaussianRelease(9.0)):
        plan: dict[KnownRelease, int] = {kind: 100}
        epsilon = exact(plan, 1e-4).epsilon
        assert exact_delta(plan, epsilon) == pytest.approx(1e-4, rel=1e-3)
    assert exact_delta({GaussianRelease(9.0): 100}, 1.0) == pytest.approx(
        gaussian_delta(9.0, 1.0, 100), rel=1e-3
    )
