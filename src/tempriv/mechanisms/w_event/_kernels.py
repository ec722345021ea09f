"""Compiled loops of the streams that decide at each step whether to publish (see ``kernels``).

Draws of several columns stand one after the other: that of column j in row i is at i + j * rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from numba import njit

from tempriv.sampling._kernels import UNDECIDED, Array, above, at, laplace

if TYPE_CHECKING:
    from tempriv.mechanisms.base import KernelRows


class PublishingPlan(NamedTuple):
    """When a row is published, and with how much of a budget.

    Parameters:
        weights: of the columns in the distance between two rows.
        tops: the scale of the noise in each column for one unit of the budget.
        least: the fewest units that a row is published for.
        whole: all units of a window.
        window: how many steps they are for.
        absorbing: whether a step takes the units of steps before it that published nothing.
    """

    weights: Array
    tops: Array
    least: int
    whole: int
    window: int
    absorbing: bool


@njit(cache=True, nogil=True)
def publish_or_repeat(
    begin: int, rows: KernelRows, plan: PublishingPlan, changes: Array, noise: Array
) -> tuple[int, int, float]:
    """Publish a row where it has moved away from the last release by more than its noise would.

    A step that takes ``units`` of the budget gets noise of scale tops / units. Slots: the last
    release, a number for each column; then what the last ``window`` steps took together and each of
    them took, in a ring; or, if absorbing, the first step whose budget is not spoken for.

    Parameters:
        begin: the row to begin at.
        rows: the rows of a block.
        plan: what is public of the budget.
        changes: noise on how far each row has moved.
        noise: on what is published, column after column.

    Returns:
        the number of rows; or, before anything of a row is remembered, the row, the place and the
        scale of a draw that is undecided.
    """
    readings, missing, which, steps, memory, _, outputs, status = rows
    weights, tops, least, whole, window, absorbing = plan
    count, columns = readings.shape
    for row in range(begin, count):
        own = memory[which[row]]
        slot, spent = columns, 0
        if absorbing:
            units = min(steps[row] - own[slot] + 1, window)
        else:
            slot = columns + 1 + steps[row] % window
            spent = own[columns] - own[slot]
            units = (whole - spent) // 2
        distance, limit, there = 0, 0.0, False
        for j in range(columns):
            if not missing[row, j]:
                distance += weights[j] * abs(readings[row, j] - own[j])
                limit += weights[j] * tops[j]
                there = True
        published = there and units >= least
        if published:
            published = above(changes, row, math.floor(limit / units) - distance)
        if published:
            for j in range(columns):
                if not missing[row, j]:
                    scale = tops[j] / units
                    drawn = laplace(noise, row + j * count, scale)
                    if drawn == UNDECIDED:
                        return row, row + j * count, scale
                    outputs[row, j] = readings[row, j] + drawn
            for j in range(columns):
                if missing[row, j]:
                    outputs[row, j] = own[j]
                else:
                    own[j] = outputs[row, j]
        else:
            units = 0
            status[row] = 1 if there else 0
            for j in range(columns):
                outputs[row, j] = own[j]
        if not absorbing:
            own[slot] = units
            own[columns] = spent + units
        elif published:
            own[slot] = steps[row] + units
    return count, 0, 0.0


@njit(cache=True, nogil=True)
def publish_once(rows: KernelRows, window: int, noise: Array) -> None:
    """Publish a row and then none for the rest of a window.

    Slots: the last release, a number for each column; then the first step that may publish.

    Parameters:
        rows: the rows of a block.
        window: how many steps there are from one published row to the next.
        noise: on what is published, column after column.
    """
    readings, missing, which, steps, memory, _, outputs, status = rows
    count, columns = readings.shape
    for row in range(count):
        own = memory[which[row]]
        due, there = steps[row] >= own[columns], False
        for j in range(columns):
            if not missing[row, j]:
                there = True
                if due:
                    own[j] = readings[row, j] + at(noise, row + j * count)
            outputs[row, j] = own[j]
        if due and there:
            own[columns] = steps[row] + window
        elif there:
            status[row] = 1


ERRORS = 5  # how many of the latest errors the controller looks at
LONGEST = 2.0**40  # an interval past any series


@njit(cache=True, nogil=True)
def exponential(x: float) -> float:
    """e to the ``x`` by sums and products alone, so with the same bits on any machine."""
    part = min(max(x, -700.0), 700.0)
    halvings = 0
    while abs(part) > 0.125:
        part *= 0.5
        halvings += 1
    term, total = 1.0, 1.0
    for i in range(1, 14):
        term *= part / i
        total += term
    for _ in range(halvings):
        total *= total
    return total


class FilterPlan(NamedTuple):
    """How samples are filtered, and how far apart they are.

    Parameters:
        samples: how many there are.
        variances: of the noise, and of a step of the process.
        floor: the least estimate that an error is compared with.
        gains: weights of the latest error, the mean of the latest five, and their slope.
        set_point: the error to aim at.
        stretch: how fast intervals grow.
    """

    samples: int
    variances: Array
    floor: float
    gains: Array
    set_point: float
    stretch: float


@njit(cache=True, nogil=True)
def sample_and_filter(rows: KernelRows, plan: FilterPlan, noise: Array) -> None:
    """Noisy samples through a Kalman filter; how far the filter was off sets the next sample.

    Whole slots: 0 how many samples, 1 when the next is due, 2 when the last was; real ones: 3 the
    estimate, 4 its variance, 5 the interval, then the latest errors. Nothing but noisy samples goes
    into them.

    Parameters:
        rows: the rows of a block.
        plan: of samples and filter.
        noise: on samples.
    """
    readings, missing = rows.readings[:, 0], rows.missing[:, 0]
    which, steps, memory, reals = rows.which, rows.steps, rows.memory, rows.reals
    outputs, status = rows.outputs[:, 0], rows.status
    samples, variances, floor, gains, set_point, stretch = plan
    for row in range(readings.size):
        own, real = memory[which[row]], reals[which[row]]
        prior, variance = real[3], real[4] + variances[1]
        if missing[row] or own[0] >= samples or steps[row] < own[1]:
            if own[0] > 0:
                real[4] = variance
            status[row] = 0 if missing[row] else 1
        elif own[0] == 0:
            real[3] = readings[row] + at(noise, row)
            real[4] = variances[0]
            real[5] = 1.0
            own[0], own[1], own[2] = 1, steps[row] + 1, steps[row]
        else:
            gain = variance / (variance + variances[0])
            real[3] = prior + gain * (readings[row] + at(noise, row) - prior)
            real[4] = (1.0 - gain) * variance
            error = abs(real[3] - prior) / max(abs(real[3]), floor)
            count = own[0] - 1  # of errors before this one
            slope = 0.0
            if count > 0:
                before = real[6 + (count - 1) % ERRORS]
                slope = (error - before) / (steps[row] - own[2])
            real[6 + count % ERRORS] = error
            total = 0.0
            for i in range(min(count + 1, ERRORS)):
                total += real[6 + i]
            mean = total / min(count + 1, ERRORS)
            off = gains[0] * error + gains[1] * mean + gains[2] * slope
            longer = stretch * (1.0 - exponential((off - set_point) / set_point))
            real[5] = min(max(1.0, real[5] + longer), LONGEST)
            own[0] += 1
            own[1], own[2] = steps[row] + math.floor(real[5]), steps[row]
        outputs[row] = math.floor(real[3] + 0.5)
