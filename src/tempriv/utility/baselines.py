"""Changing values instead of their times, at a budget that hides a swap: what to compare with.

Two readings that trade places are two readings replaced (Ye et al. 2021, Theorem 2.3), so noise
that keeps epsilon/2 for each reading keeps epsilon for any swap, at any distance. The paper
compares with randomized response and Laplace noise at this budget (Section V-A2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.utility.simulation import Average, Count, Task, TrialReadings


def value_baseline(
    epsilon: float,
    *,
    categories: Sequence[str] | None = None,
    bounds: tuple[float, float] | None = None,
) -> RandomizedResponse | Laplace:
    """Randomized response for categories, Laplace noise for numbers, at epsilon/2 for each reading.

    Parameters:
        epsilon: what a swap may cost.
        categories: the values, or
        bounds: of the numbers; one of the two.

    Guarantees:
        - pure epsilon/2 for any single reading, which implies pure epsilon for ``Swap(window)``
          whatever the window; the values that come out are not those that went in.

    >>> from tempriv.privacy.guarantees import Guarantee, Pure
    >>> from tempriv.privacy.units.order import Swap
    >>> response = value_baseline(2.0, categories=("up", "not up"))
    >>> response.guarantee.loss, response.guarantee.implies(Guarantee(Pure(2.0), Swap(10)))
    (Pure(epsilon=1.0), True)
    """
    require(
        (categories is None) != (bounds is None),
        "a value baseline: give categories or bounds, one of them",
    )
    if categories is not None:
        return RandomizedResponse(epsilon=epsilon / 2, categories=(tuple(categories),))
    assert bounds is not None
    return Laplace(epsilon=epsilon / 2, bounds=(bounds,))


def expected_error(
    mechanism: RandomizedResponse | Laplace, task: Task, readings: TrialReadings
) -> float:
    """The mean squared error of a task on values with this noise, exactly.

    A count is corrected for what randomized response turns round, which is known: without that it
    is off by as much again at every step.

    Parameters:
        mechanism: that changes the values.
        task: a count or an average.
        readings: that it is for; their number decides, not their values.

    >>> readings = TrialReadings(np.array([1.0, 0.0, 1.0]), np.array([3]))
    >>> response = value_baseline(2.0, categories=("up", "not up"))
    >>> round(expected_error(response, Count(), readings), 3)
    1.841
    """
    ends, starts = np.arange(1, len(readings) + 1), readings.starts
    lows = starts if isinstance(task, Count) else np.maximum(ends - task.length, starts)
    seen = np.concatenate([[0], np.cumsum(readings.there)])
    number = (seen[ends] - seen[lows]).astype(np.float64)
    if isinstance(mechanism, RandomizedResponse):
        require(
            isinstance(task, Count) and len(mechanism.categories[0]) == 2,
            "randomized response: is for counts of one value, against all others",
        )
        turned = mechanism.errors[0]
        return float(number.mean() * turned * (1 - turned) / (1 - 2 * turned) ** 2)
    require(isinstance(task, Average), "Laplace noise: is for averages of numbers")
    return float((variance(mechanism) / number[number > 0]).mean())


def variance(mechanism: Laplace) -> float:
    """Of the noise on one value: 2 q / (1-q)^2 grid steps squared, with q = e^(-1/scale).

    Parameters:
        mechanism: whose noise it is.
    """
    scale, grid = float(mechanism.distributions[0].scale), mechanism.grids[0]
    return float(grid**2 / (2 * np.sinh(0.5 / scale) ** 2))


def task_of(kind: str, length: int) -> Task:
    """The task of this name: count, or average over so many steps.

    Parameters:
        kind: ``count`` or ``average``.
        length: steps of an average.

    >>> task_of("average", 7)
    Average(length=7)
    """
    require(kind in ("count", "average"), f"task={kind!r}: must be count or average")
    return Count() if kind == "count" else Average(length)
