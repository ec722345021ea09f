"""Composition in units of Gaussian privacy: parts of one release that are chosen as it goes.

A part is mu-GDP if telling its neighbors apart is no easier than telling N(0, 1) from N(mu, 1)
(Dong, Roth and Su 2022). The squares of mu add up, also where a part is chosen after seeing those
before, as long as its mu was fixed or follows from what they released. Three facts are used:

- noise N(0, sigma^2) on a vector that changes by at most s is s / sigma;
- what is made of it without a look at the data is no worse (so also the noise rounded to a grid);
- a choice whose log ratios lie within some [t - range, t] is ``mu_of_range(range)``. The worst
  such choice has two outcomes (Dong, Durfee and Rogers 2020, Lemma 2), with
  probabilities p and q whose logits differ by the range, and its mu is probit(p) - probit(q). That
  is largest for p = 1 - q, because probit(logistic(x)) has a slope that falls with |x|.

Discrete Gaussian noise is not a rounded Gaussian, but hardly differs: ``discrete_slack`` says how
much, and it is added to what is stated.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from tempriv.errors import require

NORMAL = NormalDist()
TAIL_DEVIATIONS, MASS_DEVIATIONS = 20.0, 10.0
"""Noise is compared with a rounded Gaussian within 20 deviations; of its mass, what lies more than
10 away is given up, so that shifts of up to 10 deviations are covered."""
ROUNDING = 1e-9  # relative, of the functions below; a budget is reduced by it


def normal_cdf(x: float) -> float:
    """P(N(0, 1) <= ``x``), without loss of digits in the lower tail."""
    return math.erfc(-x / math.sqrt(2)) / 2


def delta_of(mu: float, epsilon: float) -> float:
    """The delta of ``mu`` at an ``epsilon`` (Balle and Wang 2018, Theorem 8).

    >>> round(delta_of(1 / 4.2247, 1.0) * 1e6, 3)
    1.0
    """
    if mu == 0:
        return 0.0
    at = epsilon / mu
    lower = normal_cdf(-at - mu / 2)
    lost = math.exp(epsilon + math.log(lower)) if lower > 0 else 0.0
    return max(normal_cdf(mu / 2 - at) - lost, 0.0)


def mu_budget(epsilon: float, delta: float) -> float:
    """The largest mu that keeps (``epsilon``, ``delta``), rounded down.

    >>> round(1 / mu_budget(1.0, 1e-6), 4)
    4.2247
    """
    require(0 < epsilon < math.inf, f"epsilon={epsilon}: must be a number > 0")
    require(0 < delta < 1, f"delta={delta}: must be > 0 and < 1, such as 1e-6")
    low, high = 0.0, 2.0
    while delta_of(high, epsilon) <= delta:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low * (1 - ROUNDING)


def epsilon_of(mu: float, delta: float) -> float:
    """The epsilon of ``mu`` at a ``delta``, rounded up.

    >>> round(epsilon_of(1 / 4.2247, 1e-6), 4)
    1.0
    """
    low, high = 0.0, 1.0
    while delta_of(mu, high) > delta:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if delta_of(mu, middle) > delta else (low, middle)
    return high * (1 + ROUNDING)


def mu_of_range(log_range: float) -> float:
    """The mu of a choice whose log ratios lie within an interval of this length, ``log_range``.

    >>> round(mu_of_range(0.1), 4)
    0.0627
    """
    return -2 * NORMAL.inv_cdf(1 / (1 + math.exp(log_range / 2)))


def range_of_mu(mu: float) -> float:
    """The longest interval whose ``mu_of_range`` is at most ``mu``, rounded down.

    >>> round(range_of_mu(mu_of_range(0.1)), 6)
    0.1
    """
    upper = normal_cdf(-mu / 2)
    return 2 * math.log((1 - upper) / upper) * (1 - ROUNDING)


def discrete_slack(sigma: float, coordinates: int) -> tuple[float, float]:
    """How discrete Gaussian noise differs from a rounded Gaussian: a log ratio and a mass.

    With k within ``TAIL_DEVIATIONS`` the two probabilities of k differ by at most a factor
    e^slack, and further out than ``MASS_DEVIATIONS`` there is no more than the mass. A rounded
    Gaussian has at k its density there times a factor between 1 - 1 / (24 sigma^2) and
    sinh(a/2) / (a/2) with a = k / sigma^2; what is returned is more than twice the logarithm of
    either, which covers the normalizations, 1 + 2 e^(-2 pi^2 sigma^2) at most.

    Parameters:
        sigma: in grid steps, at least 64.
        coordinates: how many numbers get such noise.
    """
    require(sigma >= 64, f"sigma={sigma}: must be at least 64 grid steps to be told as a Gaussian")
    each = (TAIL_DEVIATIONS**2 + 1) / (10 * sigma**2)
    return coordinates * each, coordinates * 4 * normal_cdf(-MASS_DEVIATIONS)


def with_slack(mu: float, epsilon: float, slack: float, mass: float) -> float:
    """The delta at ``epsilon`` of a release that ``mu`` describes but for ``slack`` and ``mass``.

    Outputs P and Q of neighbors are within e^slack of rounded ones P', Q' but for the mass, so
    P(A) <= e^slack P'(A) + mass <= e^slack (e^(epsilon - 2 slack) Q'(A) + delta') + mass.

    >>> round(with_slack(0.2, 1.0, 0.0, 0.0) / delta_of(0.2, 1.0), 6)
    1.0
    """
    if 2 * slack >= epsilon:
        return 1.0
    return min(math.exp(slack) * (delta_of(mu, epsilon - 2 * slack) * (1 + ROUNDING) + mass), 1.0)
