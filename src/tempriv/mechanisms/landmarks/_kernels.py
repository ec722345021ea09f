"""Compiled loops of the landmark schemes (see ``kernels``).

Budgets are whole units of epsilon. Memory of a series: the last release, a number for each column;
then whether there was one, how many landmarks came, what they took together, the most that another
reading took, what is reserved for each later reading, and the sampling rate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from tempriv.sampling._kernels import UNDECIDED, Array, above, laplace

BEGUN, CAME, LANDMARKS, OTHERS, RESERVED, RATE = range(6)  # slots after the last release
SLOTS = 6

NUMBERS, CHOICES, PLACES = range(3)  # what a difference between two releases is

CERTAIN = 1 << 32
"""A sampling rate of one."""


class MarkedRows(NamedTuple):
    """The rows of a block, a series after the other.

    Parameters:
        readings: on the grid, a column for each value.
        missing: which of them are missing.
        marks: 1 at landmarks.
        later: how many landmarks of the series come after each row.
    """

    readings: Array
    missing: Array
    marks: Array
    later: Array


class MarkedSeries(NamedTuple):
    """The series of a block, and where each of them stands.

    Parameters:
        at: the row that comes next, moved on by the kernel.
        ends: the row after the last.
        parts: how many readings count together: the landmarks, and one if there are others.
        others: 1 where there are readings that are no landmarks.
        memory: what is remembered.
        asked: the units that noise is missing for, or of scaled noise its place; -1 for none.
        scales: how wide scaled noise is that is missing.
    """

    at: Array
    ends: Array
    parts: Array
    others: Array
    memory: Array
    asked: Array
    scales: Array


class Sampling(NamedTuple):
    """When readings are sampled.

    Parameters:
        kind: what a difference between two releases is.
        tops: for each column how wide noise is for one unit.
        kappa: from how many times its noise on a difference is a change.
        increase: by which part of what lacks to certainty a change raises the rate, of 2^16.
        decrease: by which part anything else lowers it, of 2^16.
        least: the least rate, of ``CERTAIN``.
        digits: how many binary digits of a part are used.
        whole: all units of a series.
        origin: what stands for a last release before there is one.
    """

    kind: int
    tops: Array
    kappa: float
    increase: int
    decrease: int
    least: int
    digits: int
    whole: int
    origin: Array


class PartNoise(NamedTuple):
    """Noise for the part of epsilon that a row turns out to have.

    Parameters:
        scaled: whether it is Laplace noise, drawn as its scale is found.
        words: where that comes from.
        noisy: otherwise, readings with noise.
        ready: for how many units each of these rows has it.
    """

    scaled: bool
    words: Array
    noisy: Array
    ready: Array


class Spent(NamedTuple):
    """What comes out of each row.

    Parameters:
        outputs: on the grid.
        status: 1 for what is repeated.
        units: how many were spent.
    """

    outputs: Array
    status: Array
    units: Array


@njit(cache=True, nogil=True)
def add_scaled(
    begin: int, readings: Array, units: Array, tops: Array, outputs: Array, noise: Array
) -> tuple[int, int, float]:
    """Laplace noise of scale tops / units where there are units.

    Parameters:
        begin: the row to begin with.
        readings: on the grid.
        units: of each row.
        tops: for each column how wide noise is for one unit.
        outputs: where it goes.
        noise: words for it, column after column.

    Returns:
        The number of rows; or the row, the place and the scale of a draw that is undecided.
    """
    rows, columns = readings.shape
    for row in range(begin, rows):
        if units[row] > 0:
            for j in range(columns):
                scale = tops[j] / units[row]
                drawn = laplace(noise, row + j * rows, scale)
                if drawn == UNDECIDED:
                    return row, row + j * rows, scale
                outputs[row, j] = readings[row, j] + drawn
    return rows, 0, 0.0


@njit(cache=True, nogil=True)
def repeat_last(
    units: Array,
    missing: Array,
    which: Array,
    origin: Array,
    memory: Array,
    outputs: Array,
    status: Array,
) -> None:
    """Where a row took no units, the last release again, and before any the public origin.

    Parameters:
        units: that each row took.
        missing: which values are missing.
        which: the series of each row.
        origin: what stands for a last release before there is one.
        memory: of each series, with its last release.
        outputs: what is released.
        status: of each row.
    """
    rows, columns = outputs.shape
    for row in range(rows):
        own = memory[which[row]]
        if own[columns + BEGUN] == 0:
            for j in range(columns):
                own[j] = origin[j]
        there = False
        for j in range(columns):
            there = there or not missing[row, j]
            if units[row] > 0 and not missing[row, j]:
                own[j] = outputs[row, j]
                own[columns + BEGUN] = 1
            else:
                outputs[row, j] = own[j]
        if units[row] == 0 and there:
            status[row] = 1


@njit(cache=True, nogil=True)
def count_spending(
    units: Array, marks: Array, which: Array, whole: int, columns: int, memory: Array
) -> bool:
    """Note what every row took; whether landmarks and any one other reading stay within a whole.

    Parameters:
        units: that each row took.
        marks: 1 at landmarks.
        which: the series of each row.
        whole: all units of a series.
        columns: how many values a row has.
        memory: of each series, with what was taken.
    """
    for row in range(units.size):
        own = memory[which[row]]
        if marks[row]:
            own[columns + CAME] += 1
            own[columns + LANDMARKS] += units[row]
        elif units[row] > own[columns + OTHERS]:
            own[columns + OTHERS] = units[row]
        if own[columns + LANDMARKS] + own[columns + OTHERS] > whole:
            return False
    return True


@njit(cache=True, nogil=True)
def leading(units: int, digits: int) -> int:
    """The ``units`` rounded down to so many binary ``digits``."""
    left = np.int64(units) >> digits
    shift = 0
    while left > 0:
        left >>= 1
        shift += 1
    return (units >> shift) << shift


@njit(cache=True, nogil=True)
def share_of_skipped(reserved: int, later: int, others: int) -> int:
    """What each later reading gets of a landmark that was not sampled.

    It goes to landmarks to come and to any one other reading: as many parts as readings count
    together, so what they have reserved together does not grow.

    Parameters:
        reserved: the units of the landmark.
        later: how many landmarks come after it.
        others: 1 if there are other readings.
    """
    parts = later + others
    return reserved // parts if parts > 0 else 0


@njit(cache=True, nogil=True)
def adaptive(
    block: MarkedRows,
    series: MarkedSeries,
    sampling: Sampling,
    coins: Array,
    noise: PartNoise,
    spent: Spent,
) -> int:
    """Sample a reading or repeat the last release, by how much releases have been changing.

    Goes on with each series to its end, or to a row whose noise is not there yet.

    Parameters:
        block: what comes in.
        series: where the series stand, and what they wait for.
        sampling: when readings are sampled.
        coins: the draws that decide on it, one for each row.
        noise: what is added to those that are.
        spent: what comes out, and what was spent on it.

    Returns:
        How many series wait.
    """
    readings, missing, marks, later = block
    at, ends, parts, others, memory, asked, scales = series
    kind, tops, kappa, increase, decrease, least, digits, whole, origin = sampling
    scaled, words, noisy, ready = noise
    outputs, status, units = spent
    rows, columns = readings.shape
    waiting = 0
    for s in range(at.size):
        own = memory[s]
        if at[s] < ends[s] and own[columns + RESERVED] == 0:
            own[columns + RESERVED] = whole // parts[s]
            own[columns + RATE] = CERTAIN
            for j in range(columns):
                own[j] = origin[j]
        while at[s] < ends[s]:
            row = at[s]
            there = False
            for j in range(columns):
                there = there or not missing[row, j]
            begun, rate = own[columns + BEGUN] == 1, own[columns + RATE]
            sampled = there
            # a series that waited for noise has been decided on
            if there and begun and rate < CERTAIN and asked[s] < 0:
                sampled = not above(coins, row, rate - 1)
            asked[s] = -1
            taken = np.int64(0)
            if sampled:
                taken = np.int64(leading(own[columns + RESERVED], digits))
                if scaled:
                    for j in range(columns):
                        if not missing[row, j]:
                            scale = tops[j] / taken
                            drawn = laplace(words, row + j * rows, scale)
                            if drawn == UNDECIDED:
                                asked[s], scales[s] = row + j * rows, scale
                                break
                            outputs[row, j] = readings[row, j] + drawn
                elif ready[row] == taken:
                    for j in range(columns):
                        outputs[row, j] = noisy[row, j]
                else:
                    asked[s] = taken
                if asked[s] >= 0:
                    waiting += 1
                    break
                moved = 0.0
                for j in range(columns):
                    if missing[row, j]:
                        outputs[row, j] = own[j]
                        continue
                    apart = float(abs(outputs[row, j] - own[j]))
                    own[j] = outputs[row, j]
                    if kind == PLACES:
                        moved += (apart * taken / tops[j]) ** 2
                    elif kind == CHOICES:
                        moved += min(apart, 1.0) * taken / tops[j] / columns
                    else:
                        moved += apart * taken / tops[j] / columns
                if kind == PLACES:
                    moved = math.sqrt(moved)
                if begun and moved > kappa:
                    own[columns + RATE] = rate + (((CERTAIN - rate) * increase) >> 16)
                elif begun:
                    own[columns + RATE] = max(least, rate - ((rate * decrease) >> 16))
                own[columns + BEGUN] = 1
            else:
                for j in range(columns):
                    outputs[row, j] = own[j]
                status[row] = 1 if there else 0
                if marks[row]:
                    own[columns + RESERVED] += share_of_skipped(
                        own[columns + RESERVED], later[row], others[s]
                    )
            units[row] = taken
            at[s] += 1
    return waiting
