"""How much budget a wanted error takes."""

from __future__ import annotations

import math
from collections.abc import Callable

from tempriv.errors import require
from tempriv.mechanisms.base import Mechanism

LEAST, MOST = 1e-9, 1e9


def budget_for_error(make: Callable[[float], Mechanism], target: float) -> float:
    """The least budget, to four digits, whose expected error is at most the target.

    ``make`` builds the mechanism from its budget (epsilon, or rho).

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> budget_for_error(lambda epsilon: Laplace(epsilon=epsilon, bounds=(0, 5)), 2.0)
    2.5
    """
    require(target > 0, f"target error {target:g}: must be > 0")

    def good(budget: float) -> bool:
        return max(make(budget).errors) <= target

    require(good(MOST), f"target error {target:g}: not to be had at any budget; allow more error")
    low, high = math.log(LEAST), math.log(MOST)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if good(math.exp(middle)) else (middle, high)
    step = 10.0 ** (math.floor(high / math.log(10)) - 3)
    digits = max(0, -round(math.log10(step)))
    found = round(math.floor(math.exp(high) / step) * step, digits)
    while not good(found):
        found = round(found + step, digits)
    return found
