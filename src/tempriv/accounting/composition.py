"""What several releases come to together, by every method; and what an epsilon means.

Three questions decide which method may be used.

- Is only (epsilon, delta) known of each release? Then ``basic``, ``advanced``, ``optimal``.
- Is the noise known? Then ``renyi``, and sharper still ``exact``, by privacy-loss distributions.
- Will what a release costs, or how many there are, depend on earlier outputs? Then only methods
  with ``adaptive`` set hold: sums, and Renyi divergences at an order that was fixed first. The
  others hold for a plan that is fixed in advance; what is asked in it may still depend on earlier
  answers.

All losses here are between neighbors by the unit that you protect. Noise is given in units of
the sensitivity under that unit, so that no other neighboring relation can slip in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tempriv.accounting import renyi as divergences
from tempriv.accounting.loss_distribution import (
    GaussianRelease,
    Plan,
    check_plan,
    loss_distribution,
    lost_delta,
    require_count,
    require_positive,
)
from tempriv.accounting.renyi import Conversion
from tempriv.errors import require
from tempriv.privacy.guarantees import Approximate


@dataclass(frozen=True)
class Composition:
    """What several releases come to: (epsilon, delta), and by which method.

    ``adaptive`` says whether it also holds where the cost of each release is chosen after seeing
    those before. Otherwise number and costs must be fixed in advance.
    """

    epsilon: float
    delta: float
    method: str
    adaptive: bool
    order: float | None = None

    @property
    def loss(self) -> Approximate:
        return Approximate(self.epsilon, min(self.delta, 1.0))


def _check(epsilon: float, delta: float, count: int) -> None:
    require(0 <= epsilon < math.inf, f"epsilon={epsilon}: must be a number >= 0")
    require(0 <= delta < 1, f"delta={delta}: must be >= 0 and < 1")
    require_count("count", count)


def _check_target(delta: float) -> None:
    require(0 < delta < 1, f"delta={delta}: must be > 0 and < 1, such as 1e-6")


def basic(epsilon: float, delta: float, count: int) -> Composition:
    """Epsilons and deltas added up.

    Parameters:
        epsilon: of each release.
        delta: of each release.
        count: how many releases.

    >>> basic(0.05, 1e-8, 1440).epsilon
    72.0
    """
    _check(epsilon, delta, count)
    return Composition(count * epsilon, min(count * delta, 1.0), "sum", adaptive=True)


def advanced(epsilon: float, delta: float, count: int, slack: float) -> Composition:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010, Theorem III.3).

    Parameters:
        epsilon: of each release.
        delta: of each release.
        count: how many releases.
        slack: what is added to delta for a smaller epsilon.

    >>> round(advanced(0.05, 1e-8, 1440, slack=1e-7).epsilon, 4)
    14.4642
    """
    _check(epsilon, delta, count)
    require(0 < slack < 1, f"slack={slack}: must be > 0 and < 1, such as 1e-7")
    spread = math.sqrt(2 * count * -math.log(slack)) * epsilon
    drift = count * epsilon * math.expm1(epsilon) if epsilon < 700 else math.inf
    total = min(count * delta + slack, 1.0)
    return Composition(spread + drift, total, "advanced composition", adaptive=False)


def optimal(epsilon: float, delta: float, count: int, target_delta: float) -> Composition:
    """The least epsilon at ``target_delta`` that follows from (epsilon, delta) for each release.

    Kairouz, Oh and Viswanath 2015 (see also Murtagh and Vadhan 2016): the worst case gives
    everything away with probability delta and is randomized response else. Let A and B be the
    probabilities of i true answers or more on the two neighbors, and r what delta leaves of the
    target. A - e^epsilon B <= r must hold for every i: the least epsilon is the largest
    ln((A - r) / B).

    Parameters:
        epsilon: of each release.
        delta: of each release.
        count: how many releases.
        target_delta: of all of them together.

    >>> round(optimal(0.05, 1e-8, 1440, target_delta=1.45e-5).epsilon, 4)
    11.1599
    """
    _check(epsilon, delta, count)
    _check(epsilon, target_delta, count)
    gone = -math.expm1(count * math.log1p(-delta))
    left = -math.expm1(math.log1p(-target_delta) - count * math.log1p(-delta))
    require(
        left >= 0,
        f"target_delta={target_delta}: must be at least {gone:.6g}, the probability that one of "
        f"{count} releases of delta={delta:g} gives everything away",
    )
    true = np.arange(count + 1)  # answers
    steps = np.log((count + 1 - true[1:]) / true[1:]) + epsilon
    # probabilities of so many true answers; scaled at the end, where rounding has added up
    chances = np.concatenate([[0.0], np.cumsum(steps)])
    chances -= np.logaddexp.reduce(chances)
    on_one = np.logaddexp.accumulate(chances[::-1])[::-1]
    on_other = np.logaddexp.accumulate((chances - (2 * true - count) * epsilon)[::-1])[::-1]
    rest = math.log(left) if left > 0 else -math.inf
    above = on_one > rest
    bounds = on_one[above] - on_other[above] + np.log1p(-np.exp(rest - on_one[above]))
    # what rounding can have taken off
    margin = 1e-13 + 1e-15 * count
    least = min(float(bounds.max(initial=0.0)) + margin, count * epsilon)
    return Composition(least, target_delta, "optimal composition", adaptive=False)


def renyi(
    plan: Plan, delta: float, conversion: Conversion = "sharper", order: float | None = None
) -> Composition:
    """Renyi divergences added up and converted once, at the best order unless one is given.

    A best order depends on the plan, so it is fixed in advance with it. From then on costs may be
    chosen as one goes, up to the same sum at that order.

    Parameters:
        plan: kinds of release, and how many there are of each.
        delta: of all of them together.
        conversion: "classic" or "sharper", how a divergence becomes an epsilon.
        order: of the divergence, above 1; None: the best for this plan.

    >>> day = {GaussianRelease(noise_ratio=89.08): 1440}
    >>> classic = renyi(day, 1.45e-5, conversion="classic")
    >>> round(classic.epsilon, 4), round(classic.order, 3)
    (2.1016, 12.081)
    >>> round(renyi(day, 1.45e-5).epsilon, 4)
    1.7768
    """
    check_plan(plan)
    _check_target(delta)
    require(
        conversion in ("classic", "sharper"),
        f"conversion={conversion!r}: must be classic or sharper",
    )
    require(order is None or order > 1, f"order={order}: must be > 1")

    def bound(order: float) -> float:
        spent = math.fsum(count * release.renyi(order) for release, count in plan.items())
        return spent + divergences.epsilon_offset(order, delta, conversion)

    best, epsilon = divergences.best_order(bound) if order is None else (order, bound(order))
    return Composition(max(epsilon, 0.0), delta, f"Renyi, {conversion} conversion", True, best)


def gaussian_delta(noise_ratio: float, epsilon: float, count: int = 1) -> float:
    """The exact delta of so many Gaussian releases at epsilon (Balle and Wang 2018, Theorem 8).

    Parameters:
        noise_ratio: the standard deviation of the noise divided by the sensitivity.
        epsilon: of all of them together.
        count: how many releases.

    >>> f"{gaussian_delta(3.7306316, 1.0):.3e}"
    '1.000e-05'
    """
    require_positive("noise_ratio", noise_ratio)
    _check(epsilon, 0.0, count)
    shift = math.sqrt(count) / noise_ratio
    most = _normal_below(shift / 2 - epsilon / shift)
    # e^epsilon has no float past this; a larger delta is the safe side
    return max(
        most - math.exp(min(epsilon, 700.0)) * _normal_below(-shift / 2 - epsilon / shift), 0
    )


def _normal_below(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def gaussian_loss_above(noise_ratio: float, epsilon: float, count: int = 1) -> float:
    """The probability that the loss of so many Gaussian releases is more than epsilon.

    Parameters:
        noise_ratio: the standard deviation of the noise divided by the sensitivity.
        epsilon: of all of them together.
        count: how many releases.

    >>> f"{gaussian_loss_above(3.7306316, 1.0):.2e}"
    '1.61e-04'
    """
    require_positive("noise_ratio", noise_ratio)
    require_count("count", count)
    shift = math.sqrt(count) / noise_ratio
    return _normal_below(shift / 2 - epsilon / shift)


def gaussian(noise_ratio: float, count: int, delta: float) -> Composition:
    """The exact epsilon of so many Gaussian releases.

    Parameters:
        noise_ratio: the standard deviation of the noise divided by the sensitivity.
        count: how many releases.
        delta: of all of them together.

    >>> round(gaussian(noise_ratio=89.08, count=1440, delta=1.45e-5).epsilon, 4)
    1.6289
    """
    _check_target(delta)
    high = 1.0
    while gaussian_delta(noise_ratio, high, count) > delta:
        high *= 2
    epsilon = 0.0
    if gaussian_delta(noise_ratio, 0.0, count) > delta:
        epsilon = _smallest(lambda e: gaussian_delta(noise_ratio, e, count) <= delta, 0.0, high)
    return Composition(epsilon, delta, "exact, Gaussian noise", adaptive=False)


def gaussian_noise(epsilon: float, delta: float, count: int = 1) -> float:
    """The least noise ratio at which so many Gaussian releases keep (epsilon, delta).

    Parameters:
        epsilon: of all of them together.
        delta: of all of them together.
        count: how many releases.

    >>> round(gaussian_noise(1.0, 1e-5), 4)
    3.7306
    """
    require_positive("epsilon", epsilon)
    _check_target(delta)
    require_count("count", count)
    high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    # one release of so many times the information
    return math.sqrt(count) * _smallest(lambda r: gaussian_delta(r, epsilon) <= delta, 0.0, high)


def _smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number that holds, from where none does to where all do; never less than it."""
    while low < (middle := (low + high) / 2) < high:
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def exact(plan: Plan, delta: float) -> Composition:
    """The epsilon of a plan by the distribution of its privacy loss (dp-accounting).

    Losses are put on a grid so that the result is never below the truth, and what its Fourier
    transforms may lose of delta is taken off before. It comes out at most 1e-4 too large, in tests.

    Parameters:
        plan: kinds of release, and how many there are of each.
        delta: of all of them together.

    >>> from tempriv.accounting.loss_distribution import LaplaceRelease
    >>> round(exact({LaplaceRelease(noise_ratio=20.0): 1000}, delta=1e-6).epsilon, 2)
    8.2
    """
    check_plan(plan)
    _check_target(delta)
    gaussians = {
        release: count for release, count in plan.items() if isinstance(release, GaussianRelease)
    }
    if len(gaussians) == len(plan):
        information = math.fsum(count / kind.noise_ratio**2 for kind, count in gaussians.items())
        return gaussian(1 / math.sqrt(information), 1, delta)
    require(
        delta >= 2 * lost_delta(plan),
        f"delta={delta}: too small for {sum(plan.values()):,} releases in floating point; must be "
        f"at least {2 * lost_delta(plan):g}, or use renyi",
    )
    epsilon = float(loss_distribution(plan).get_epsilon_for_delta(delta - lost_delta(plan)))
    require(
        math.isfinite(epsilon),
        f"delta={delta}: too small, the releases give everything away with a larger probability",
    )
    return Composition(epsilon, delta, "exact", adaptive=False)


def exact_delta(plan: Plan, epsilon: float) -> float:
    """The delta of a ``plan`` at ``epsilon``, by the same distribution.

    >>> from tempriv.accounting.loss_distribution import ResponseRelease
    >>> f"{exact_delta({ResponseRelease(1.0): 2}, 1.0):.4f}"
    '0.3378'
    """
    check_plan(plan)
    _check(epsilon, 0.0, 1)
    delta = float(loss_distribution(plan).get_delta_for_epsilon(epsilon))
    return min(max(delta, 0.0) + lost_delta(plan), 1.0)


def odds_after(odds: float, epsilon: float) -> tuple[float, float]:
    """Between what the ``odds`` of a bet can lie once a release of this ``epsilon`` was seen.

    >>> low, high = odds_after(1.0, math.log(3))
    >>> round(low, 4), round(high, 4)
    (0.3333, 3.0)
    """
    require_positive("odds", odds)
    _check(epsilon, 0.0, 1)
    factor = math.exp(min(epsilon, 700.0))
    return odds / factor, odds * factor


def advantage(epsilon: float, delta: float = 0.0) -> float:
    """The largest total variation between neighbors: how much better than chance any attack is.

    It is reached: by randomized response that gives everything away with probability delta.

    Parameters:
        epsilon: of the guarantee.
        delta: of the guarantee.

    >>> round(advantage(1.0), 4)
    0.4621
    """
    _check(epsilon, delta, 1)
    return math.tanh(epsilon / 2) * (1 - delta) + delta


def success_cap(epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of telling two equally likely neighbors apart.

    Parameters:
        epsilon: of the guarantee.
        delta: of the guarantee.

    >>> round(success_cap(1.0), 4)
    0.7311
    """
    return (1 + advantage(epsilon, delta)) / 2


def tail_bound(delta: float, margin: float) -> float:
    """The largest probability of a loss above epsilon + margin, where (epsilon, delta) holds.

    With L the loss and S = {L > epsilon + margin}: Q(S) <= e^-(epsilon + margin) P(S), so
    P(S) <= e^epsilon Q(S) + delta gives P(S) (1 - e^-margin) <= delta. Without a margin nothing
    follows: delta alone does not bound the probability of a loss above epsilon.

    Parameters:
        delta: of the guarantee.
        margin: how far above epsilon.

    >>> round(tail_bound(1e-5, margin=0.5) / 1e-5, 3)
    2.541
    """
    _check(0.0, delta, 1)
    require_positive("margin", margin)
    return min(delta / -math.expm1(-margin), 1.0)
