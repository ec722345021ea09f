"""Compiled loops of the streams that send points by how far they leave the trend (see ``kernels``).

Floating point is sums, products, quotients and square roots only: the same bits on any machine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from numba import njit

from tempriv.mechanisms.w_event._kernels import exponential
from tempriv.sampling._kernels import UNDECIDED, Array, laplace

if TYPE_CHECKING:
    from tempriv.mechanisms.base import KernelRows

ERRORS = 5  # how many of the latest deviations the controller looks at
LARGEST_SCALE = float(1 << 34)  # in grid steps; noise of a greater scale is not drawn


@njit(cache=True, nogil=True)
def logarithm(x: float) -> float:
    """ln ``x`` for x >= 1, by the series of the inverse hyperbolic tangent."""
    halvings = 0
    while x > 1.5:
        x *= 0.5
        halvings += 1
    part = (x - 1.0) / (x + 1.0)
    square, term, total = part * part, part, 0.0
    for i in range(24):
        total += term / (2 * i + 1)
        term *= square
    return 2.0 * total + halvings * 0.6931471805599453


@njit(cache=True, nogil=True)
def controlled(
    gains: Array, errors: Array, first: int, count: int, error: float, gap: int
) -> float:
    """The importance of a new deviation: it, the mean of the last five and the slope, weighted.

    Parameters:
        gains: the weights.
        errors: holds the deviations before it, in a ring.
        first: where the ring begins.
        count: how many deviations there were.
        error: the new one.
        gap: how many steps it comes after the one before.
    """
    total = error
    for i in range(min(count, ERRORS - 1)):
        total += errors[first + (count - 1 - i) % ERRORS]
    importance = gains[0] * error + gains[1] * total / min(count + 1, ERRORS)
    if count > 0:
        importance += gains[2] * (error - errors[first + (count - 1) % ERRORS]) / gap
    return float(importance)


# of a series that sends the points that break its trend
SENT, LAST_STEP, LAST, BEFORE_STEP, BEFORE, SHOWN, SPENT = range(7)
LOWEST, HIGHEST, SHIFT, DEVIATIONS = 7, 8, 9, 10  # as floating-point numbers
BUDGETS = DEVIATIONS + ERRORS
ANY_SLOPE = 1e300
LEAST_IMPORTANCE = 0.01  # a point on the trend; the quotient by its importance must be finite
NUDGE = 0.01
LEAST_SHIFT, MOST_SHIFT = 0.1, 0.9


class BreakPlan(NamedTuple):
    """When points are sent, and with how much of the budget.

    Parameters:
        tolerance: how far off a line readings may be, in grid steps.
        deviation: the unit of importance and of the noise, in grid steps.
        gains: weights of the latest deviation, the mean of the latest five, and their slope.
        reach: theta and mu, which bound the noise.
        whole: the budget of a window, in units.
        top: the scale of the noise for one unit, in grid steps.
        window: how many steps the budget is for.
    """

    tolerance: float
    deviation: float
    gains: Array
    reach: Array
    whole: int
    top: float
    window: int


@njit(cache=True, nogil=True)
def send_breaks(
    begin: int, rows: KernelRows, plan: BreakPlan, noise: Array
) -> tuple[int, int, float]:
    """Send the points that no line from the last one sent reaches within the tolerance.

    A point that takes ``units`` of the budget gets noise of scale top / units within its reach.
    Whole slots: how many were sent, the last two with their steps, what was shown, what the window
    has spent; then, as floating-point numbers, the slopes that are left, the weight of rare budgets
    and the latest deviations; then what each step of the window took, in a ring.

    Parameters:
        begin: the row to begin at.
        rows: the rows of a block.
        plan: what is public of the scheme.
        noise: on points.

    Returns:
        the number of rows; or, before anything of a row is remembered, the row, the same again and
        the scale of a draw that is undecided.
    """
    readings, missing = rows.readings[:, 0], rows.missing[:, 0]
    which, steps, memory, reals = rows.which, rows.steps, rows.memory, rows.reals
    outputs, status = rows.outputs[:, 0], rows.status
    tolerance, deviation, gains, reach, whole, top, window = plan
    for row in range(begin, readings.size):
        own, real = memory[which[row]], reals[which[row]]
        slot = BUDGETS + steps[row] % window
        own[SPENT] -= own[slot]
        own[slot] = 0
        if missing[row]:
            outputs[row] = own[SHOWN]
            continue
        value, sent = readings[row], own[SENT]
        gap = steps[row] - own[LAST_STEP]
        if sent > 0:
            slope = (value - own[LAST]) / gap
            if real[LOWEST] <= slope <= real[HIGHEST]:
                real[LOWEST] = max(real[LOWEST], (value - tolerance - own[LAST]) / gap)
                real[HIGHEST] = min(real[HIGHEST], (value + tolerance - own[LAST]) / gap)
                outputs[row] = own[SHOWN]
                status[row] = 1
                continue
        # the first two have no trend to leave
        importance, off = 1.0, 0.0
        if sent > 1:
            trend = (own[LAST] - own[BEFORE]) / (own[LAST_STEP] - own[BEFORE_STEP])
            off = abs(own[LAST] + trend * gap - value) / deviation
            importance = controlled(gains, real, DEVIATIONS, sent - 2, off, gap)
            importance = max(importance, LEAST_IMPORTANCE)
        shift = real[SHIFT] if sent > 0 else 0.5
        part = 1.0 - exponential(-(shift / importance + (1.0 - shift) * importance))
        left = whole - own[SPENT]
        units = min(math.floor(part * left), left)
        scale = min(top / units, LARGEST_SCALE) if units > 0 else LARGEST_SCALE
        bound = max(1, math.floor(logarithm(reach[0] / importance + reach[1]) * deviation + 0.5))
        drawn = laplace(noise, row, scale)
        if drawn == UNDECIDED:
            return row, row, scale
        # a geometric number modulo the bound is one that is cut off there: from -bound to bound - 1
        drawn = drawn % bound if drawn >= 0 else -1 - (-1 - drawn) % bound
        outputs[row] = value + drawn
        left -= units
        nudge = NUDGE / ((1.0 - shift) * (1.0 - shift))
        if 2 * left > whole:
            shift -= nudge
        elif left * window < whole:
            shift += nudge
        real[SHIFT] = min(max(shift, LEAST_SHIFT), MOST_SHIFT)
        if sent > 1:
            real[DEVIATIONS + (sent - 2) % ERRORS] = off
        own[BEFORE], own[BEFORE_STEP] = own[LAST], own[LAST_STEP]
        own[LAST], own[LAST_STEP] = value, steps[row]
        real[LOWEST], real[HIGHEST] = -ANY_SLOPE, ANY_SLOPE
        own[SENT], own[SHOWN] = sent + 1, outputs[row]
        own[slot] = units
        own[SPENT] += units
    return readings.size, 0, 0.0


# of a series whose samples a line follows
SAMPLES, DUE, SAMPLED, EVERY, TAKEN, STANDS = range(6)
LEVEL, TREND, LEVEL_VARIANCE, COVARIANCE, TREND_VARIANCE, WANDER, SURPRISE = range(6, 13)
IMPORTANCES = 13
UNITS = IMPORTANCES + ERRORS
IMPORTANT = 3.0  # deviations of the noise: what a sample may be off before the next one is sooner
FIRST_WANDER = 0.2  # of the range, in a window
LEAST_WANDER = 1e-5
LEARNS = 0.1
MOST_LEARNT = 4.0
FINER = 1024  # steps of the line to one of the grid of readings


class LinePlan(NamedTuple):
    """When samples are taken, and with how much of the budget.

    Parameters:
        low: the lower bound, in grid steps.
        high: the upper one.
        top: the scale of the noise for one unit, in grid steps.
        least: the fewest units that a sample is taken for.
        window: how many units there are, and how many steps they are for.
        gains: weights of the latest deviation, the mean of the latest five, and their slope.
    """

    low: int
    high: int
    top: float
    least: int
    window: int
    gains: Array


@njit(cache=True, nogil=True)
def sample_the_line(
    begin: int, rows: KernelRows, plan: LinePlan, noise: Array
) -> tuple[int, int, float]:
    """Noisy samples joined by a line; how far they were off it says when the next one is taken.

    A sample that takes ``units`` of the window's budget, which is ``window`` units, gets noise of
    scale top / units. Whole slots: how many samples, when the next is due, when the last was, how
    long to wait, what the window has taken, what stands; then, as floating-point numbers, the line
    (a Kalman filter of level and trend), how much its level wanders in a step, how far the last
    sample was off, and the latest deviations; then what each step of the window took, in a ring.
    Nothing but noisy samples goes into any of them.

    Parameters:
        begin: the row to begin at.
        rows: the rows of a block.
        plan: what is public of the scheme.
        noise: on samples.

    Returns:
        as ``send_breaks``.
    """
    readings, missing = rows.readings[:, 0], rows.missing[:, 0]
    which, steps, memory, reals = rows.which, rows.steps, rows.memory, rows.reals
    outputs, status = rows.outputs[:, 0], rows.status
    low, high, top, least, window, gains = plan
    for row in range(begin, readings.size):
        own, real = memory[which[row]], reals[which[row]]
        slot = UNITS + steps[row] % window
        own[TAKEN] -= own[slot]
        own[slot] = 0
        fresh = real[WANDER] == 0.0
        every = window if fresh else own[EVERY]
        units = min(every, window - own[TAKEN])
        sampled = not missing[row] and steps[row] >= own[DUE] and units >= least
        noisy, scale = 0.0, 1.0
        if sampled:
            scale = top / units
            drawn = laplace(noise, row, scale)
            if drawn == UNDECIDED:
                return row, row, scale
            noisy = float(readings[row] + drawn)
        span = float(high - low)
        if fresh:
            real[LEVEL], real[LEVEL_VARIANCE] = (low + high) / 2, span * span / 4
            real[WANDER] = FIRST_WANDER * span / window
            real[TREND_VARIANCE] = (real[WANDER] / window) ** 2
        else:
            bend = real[WANDER] / window
            real[LEVEL] += real[TREND]
            real[LEVEL_VARIANCE] += (
                2.0 * real[COVARIANCE] + real[TREND_VARIANCE] + real[WANDER] * real[WANDER]
            )
            real[COVARIANCE] += real[TREND_VARIANCE]
            real[TREND_VARIANCE] += bend * bend
        real[LEVEL] = min(max(real[LEVEL], float(low)), float(high))
        if sampled:
            variance = 2.0 * scale * scale + 1.0 / 12.0  # of the noise, and of rounding
            off = noisy - real[LEVEL]
            total = real[LEVEL_VARIANCE] + variance
            gap, count = steps[row] - own[SAMPLED], own[SAMPLES]
            every = window
            if count > 0:  # the first has no line to leave
                error = abs(off) / math.sqrt(variance)
                importance = controlled(gains, real, IMPORTANCES, count - 1, error, gap)
                real[IMPORTANCES + (count - 1) % ERRORS] = error
                if importance > IMPORTANT:
                    every = max(least, math.floor(window * IMPORTANT / importance))
                surprise = off / math.sqrt(total)
                # off twice to the same side: the line is too stiff; now here, now there: it chases
                again = min(max(surprise * real[SURPRISE], -MOST_LEARNT), MOST_LEARNT)
                wander = real[WANDER] * (1.0 + LEARNS * again)
                real[WANDER] = min(max(wander, LEAST_WANDER * span / window), span)
                real[SURPRISE] = surprise
            real[LEVEL] += real[LEVEL_VARIANCE] / total * off
            real[TREND] += real[COVARIANCE] / total * off
            pull = real[COVARIANCE] * real[COVARIANCE] / total
            real[TREND_VARIANCE] = max(real[TREND_VARIANCE] - pull, 0.0)
            real[COVARIANCE] *= variance / total
            real[LEVEL_VARIANCE] *= variance / total
            own[SAMPLES], own[SAMPLED] = count + 1, steps[row]
            own[EVERY], own[DUE] = every, steps[row] + every
            own[slot] = units
            own[TAKEN] += units
        else:
            own[EVERY] = every
            status[row] = 0 if missing[row] else 1
        if sampled or fresh:
            # as it is, within the bounds or not: so an output tells its sample, and an enumeration
            # of outputs that of all samples
            own[STANDS] = math.floor(real[LEVEL] * FINER + 0.5)
        outputs[row] = own[STANDS]
    return readings.size, 0, 0.0
