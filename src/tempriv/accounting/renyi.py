"""Renyi divergences of known noise, and what they say about epsilon and delta.

A loss R at order alpha means: E[(P/Q)^alpha under Q] <= e^((alpha - 1) R) for any two neighbors.
Losses of several releases add up order by order, also where each is chosen after seeing those
before, as long as the order was fixed first (Feldman and Zrnic 2021).

rho at an order is R / alpha. For Gaussian noise it is one number for all orders. For a pure
guarantee the worst case is randomized response between two answers, where with u = alpha - 1/2

    (alpha - 1) R = ln cosh(u epsilon) - ln cosh(epsilon / 2),  alpha (alpha - 1) = u^2 - 1/4,

so rho is the slope of ln cosh(epsilon sqrt(s)) between s = 1/4 and s = u^2. That function is
concave (tanh(x) / x falls), so rho falls as the order grows: a rho that was computed at one order
holds at all higher ones, and the largest is epsilon tanh(epsilon / 2), the limit at order 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

from tempriv.errors import require

Conversion = Literal["classic", "sharper"]

GOLDEN = (math.sqrt(5) - 1) / 2


def epsilon_offset(order: float, delta: float, conversion: Conversion = "sharper") -> float:
    """What is added to a loss at an order to make it an epsilon at delta; may be below 0.

    Classic: Mironov 2017, Proposition 3; it even bounds the probability of a larger loss. Sharper:
    Canonne, Kamath and Steinke 2020, Proposition 12 (see also Balle et al. 2020).

    Parameters:
        order: of the divergence, above 1.
        delta: at which the epsilon holds.
        conversion: "classic" or "sharper".

    >>> [round(epsilon_offset(12.081, 1.45e-5, kind), 4) for kind in ("classic", "sharper")]
    [1.0054, 0.6942]
    """
    classic = -math.log(delta) / (order - 1)
    if conversion == "classic":
        return classic
    return classic + math.log1p(-1 / order) - math.log(order) / (order - 1)


def gaussian(noise_ratio: float, order: float) -> float:
    """The loss of Gaussian noise at an ``order``; ``noise_ratio`` is deviation by sensitivity."""
    return order / (2 * noise_ratio**2)


def laplace(noise_ratio: float, order: float) -> float:
    """The loss of Laplace noise (Mironov 2017, Table II).

    Parameters:
        noise_ratio: the scale of the noise divided by the sensitivity.
        order: of the divergence.

    >>> round(laplace(20.0, 4.2), 6)
    0.005136
    """
    near, far, whole = (order - 1) / noise_ratio, order / noise_ratio, 2 * order - 1
    if far > 1:
        # the first term is at least half of the sum
        second = (order - 1) / order * math.exp(-near - far)
        return (near + math.log(order / whole) + math.log1p(second)) / (order - 1)
    # what is linear in 1 / noise_ratio cancels
    grown = order * _curved(near) + (order - 1) * _curved(-far)
    return math.log1p(grown / whole) / (order - 1)


def _curved(x: float) -> float:
    """e^x - 1 - x, without cancellation."""
    if abs(x) > 0.1:
        return math.expm1(x) - x
    term, total = x * x / 2, 0.0
    for i in range(3, 12):
        total += term
        term *= x / i
    return total


def response(epsilon: float, choices: int, order: float) -> float:
    """The loss of randomized response; of two choices, the worst of any pure guarantee.

    Parameters:
        epsilon: of one response.
        choices: how many answers there are.
        order: of the divergence.

    >>> round(response(1.0, 2, 2.0), 6), round(response(1.0, 9, 2.0), 6)
    (0.735326, 0.319762)
    """
    return _growth(epsilon, choices, order) / (order - 1)


def _growth(epsilon: float, choices: int, order: float) -> float:
    """The loss times (order - 1): the logarithm of E[(P/Q)^order under Q]."""
    grown = (order - 1) * epsilon
    # as 1 + a product, so that nothing cancels
    share = -math.expm1(-order * epsilon) / (1 + (choices - 1) * math.exp(-epsilon))
    if grown < 1:
        return math.log1p(math.expm1(grown) * share)
    return grown + math.log(share + math.exp(-grown) * (1 - share))


def rho_of_pure(epsilon: float, order: float = 1.0) -> float:
    """The rho of any release with a pure ``epsilon``, at the ``order`` and all above.

    >>> round(rho_of_pure(1.0), 4), round(rho_of_pure(1.0, order=30.0), 4)
    (0.4621, 0.033)
    """
    if order == 1.0:
        return epsilon * math.tanh(epsilon / 2)
    return response(epsilon, 2, order) / order


def pure_of_rho(rho: float, order: float) -> float:
    """The largest pure epsilon whose rho at the ``order`` is at most ``rho``.

    >>> round(rho_of_pure(pure_of_rho(0.01, 30.0), 30.0), 9)
    0.01
    """
    if rho == 0:
        return 0.0
    # ln cosh x is at most x^2/2 and at least x - ln 2; x tanh(x/2) is at least x - 0.6
    low = math.sqrt(2 * rho)
    high = max(low, rho * order + (math.log(2) / (order - 1) if order > 1 else 0.6))
    while low < (middle := (low + high) / 2) < high:
        if rho_of_pure(middle, order) <= rho:
            low = middle
        else:
            high = middle
    return low


def _least(bound: Callable[[float], float], left: float, right: float) -> float:
    """The place of the least value between two places, by golden section."""
    first, second = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
    at_first, at_second = bound(first), bound(second)
    for _ in range(40):
        if at_first <= at_second:
            right, second, at_second = second, first, at_first
            first = right - GOLDEN * (right - left)
            at_first = bound(first)
        else:
            left, first, at_first = first, second, at_second
            second = left + GOLDEN * (right - left)
            at_second = bound(second)
    return (left + right) / 2


def best_order(bound: Callable[[float], float]) -> tuple[float, float]:
    """The order above 1 at which a ``bound`` is least, and the bound there.

    Any order gives a true bound, so a search that missed the best one would lose a little and
    guarantee nothing wrong.

    >>> order, least = best_order(lambda order: order / 2 + epsilon_offset(order, 1e-6, "classic"))
    >>> round(order, 2), round(least, 2)
    (6.26, 5.76)
    """

    def at(point: float) -> float:
        return bound(1 + math.exp(point))

    # from 1.0001 to past the order that delta = 1e-300 and rho = 1e-15 would take
    points = [i / 4 for i in range(-37, 81)]
    start = min(points, key=at)
    order = 1 + math.exp(_least(at, start - 0.25, start + 0.25))
    return order, bound(order)


@functools.lru_cache(maxsize=1024)
def rho_budget(epsilon: float, delta: float) -> tuple[float, float]:
    """The largest rho that keeps (``epsilon``, ``delta``), and the order at which it does.

    >>> rho, order = rho_budget(1.0, 1e-6)
    >>> round(rho, 5), round(order, 1)
    (0.02436, 22.0)
    """
    require(0 < epsilon < math.inf, f"epsilon={epsilon}: must be a number > 0")
    require(0 < delta < 1, f"delta={delta}: must be > 0 and < 1, such as 1e-6")
    order, least = best_order(lambda order: (epsilon_offset(order, delta) - epsilon) / order)
    return -least, order


def epsilon_of_rho(rho: float, delta: float, order: float = 1.0) -> float:
    """The epsilon at ``delta`` of a ``rho`` that holds at the ``order`` and all above.

    >>> round(epsilon_of_rho(0.02436, 1e-6), 4)
    1.0001
    """
    if rho == 0 or math.isinf(rho):
        return rho

    def at(point: float) -> float:
        tried = 1 + math.exp(point)
        return tried * rho + epsilon_offset(tried, delta)

    # the best order of the classic conversion is 1 + sqrt(ln(1/delta) / rho)
    guess = math.log(-math.log(delta) / rho) / 2
    least = math.log(order - 1) if order > 1 else guess - 3
    best = _least(at, max(guess - 3, least), max(guess + 3, least))
    return max(at(best), 0.0)
