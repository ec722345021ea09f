"""The compiled loop of PeGaSus: groups of readings that differ little, smoothed (see ``kernels``).

All is done in whole numbers, so no rounding decides what joins a group.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from tempriv.sampling._kernels import Array, above, at

MEAN, MEDIAN, JAMES_STEIN = 0, 1, 2

HEAD = 8
"""Slots before the readings of a group: see ``group_and_smooth``."""


@njit(cache=True, nogil=True)
def rounded_down(part: int, whole: int) -> int:
    """The floor of ``part`` / ``whole``, which is above 0: guessed, and settled by integers.

    A division of integers takes several times as long.
    """
    guess = int(part / whole)
    rest = part - guess * whole
    while rest < 0:
        guess -= 1
        rest += whole
    while rest >= whole:
        guess += 1
        rest -= whole
    return guess


@njit(cache=True, nogil=True)
def smoothed(kind: int, size: int, total: int, latest: int, ordered: Array, fineness: int) -> int:
    """What stands for the latest of ``size`` noisy readings, in ``fineness`` parts of a grid step.

    Halves are rounded up. James and Stein's rule moves the mean towards the latest by its part of
    the group, 1 / size.

    Parameters:
        kind: of smoothing.
        size: how many readings there are.
        total: their sum.
        latest: the last of them.
        ordered: all of them as they rise, for the median.
        fineness: parts of a grid step.
    """
    if size == 1:
        return fineness * latest
    if kind == MEDIAN:
        middle = size // 2
        lower = middle if size % 2 else middle - 1
        return int(fineness // 2 * (ordered[lower] + ordered[middle]))
    part, whole = total, size
    if kind == JAMES_STEIN:
        part, whole = (size - 1) * total + size * latest, size * size
    return rounded_down(2 * fineness * part + whole, 2 * whole)


@njit(cache=True, nogil=True)
def insert(ordered: Array, size: int, value: int) -> None:
    """Put a ``value`` into its place among ``size`` of the ``ordered``, which rise."""
    place = size
    while place > 0 and ordered[place - 1] > value:
        ordered[place] = ordered[place - 1]
        place -= 1
    ordered[place] = value


class GroupPlan(NamedTuple):
    """How one column is grouped and smoothed.

    Parameters:
        low: the lower bound, in grid steps.
        width: the range, in grid steps.
        theta: what distances from the mean of a group may add up to, in grid steps.
        longest: the most readings of a group.
        kind: of smoothing.
        fineness: parts of a grid step that outputs are given in.
        first: the first slot of the column in the memory.
    """

    low: int
    width: int
    theta: int
    longest: int
    kind: int
    fineness: int
    first: int


@njit(cache=True, nogil=True)
def group_and_smooth(
    plan: GroupPlan,
    readings: Array,
    missing: Array,
    counts: Array,
    noise: Array,
    limits: Array,
    tests: Array,
    memory: Array,
    outputs: Array,
) -> None:
    """Noisy readings smoothed over groups of true ones (Chen et al. 2017, deviation-based grouper).

    A reading joins the open group if the sum of distances from the mean would stay below the
    noisy threshold, by a noisy test; one that fails closes the group and stands by itself, so that
    it takes part in one group's tests and no more. Readings are low .. low + width.

    Slots, from ``first``: 0 how many readings are in the open group, none if it is closed; 1 its
    noisy threshold, from the first test on; 2 their sum; 3 how many are above their mean and 4 the
    sum of those; 5 the greatest that is not above and 6 the least that is; 7 the sum of noisy
    readings; then the readings; and, for the median, noisy readings in order. All less ``low``.

    Parameters:
        plan: of the column.
        readings: in grid steps.
        missing: which of them are.
        counts: how many there are in each series, one after the other.
        noise: on readings.
        limits: noise on thresholds.
        tests: noise on tests.
        memory: of each series.
        outputs: are written, in parts of a grid step.
    """
    low, width, theta, longest, kind, fineness, first = plan
    row = 0
    for series in range(counts.size):
        own = memory[series, first : first + HEAD]
        members = memory[series, first + HEAD : first + HEAD + longest]
        ordered = memory[series, first + HEAD + longest :]
        # whatever a state says, it stays within its slots
        size = min(max(own[0], 0), longest - 1)
        for _ in range(counts[series]):
            here = row
            row += 1
            if missing[here]:
                continue
            reading = readings[here] - low
            latest = reading + noise[here]
            if size == 0:
                size = 1
                own[2], own[3], own[4] = reading, 0, 0
                own[5], own[6], own[7] = reading, width + 1, latest
            else:
                if size == 1:
                    own[1] = theta + at(limits, here)
                more, total = size + 1, own[2] + reading
                count, high, below, beyond = own[3], own[4], own[5], own[6]
                if more * below > total or more * beyond <= total:
                    # the mean has passed a reading: look at each
                    mean = total // more
                    count, high, below, beyond = 0, 0, 0, width + 1
                    for i in range(size):
                        member = members[i]
                        if member > mean:
                            count += 1
                            high += member
                            beyond = min(beyond, member)
                        else:
                            below = max(below, member)
                if more * reading > total:
                    count += 1
                    high += reading
                    beyond = min(beyond, reading)
                else:
                    below = max(below, reading)
                # as much lies above the mean as below; in full steps nothing of the test is lost
                deviation = rounded_down(2 * (more * high - count * total), more)
                if above(tests, here, own[1] - deviation - 1):
                    outputs[here] = fineness * (low + latest)
                    _forget(own, members, ordered, size, kind)
                    size = 0
                    continue
                size = more
                own[2], own[3], own[4], own[5], own[6] = total, count, high, below, beyond
                own[7] += latest
            members[size - 1] = reading
            if kind == MEDIAN:
                insert(ordered, size - 1, latest)
            made = smoothed(kind, size, own[7], latest, ordered, fineness)
            outputs[here] = fineness * low + made
            if size == longest:
                _forget(own, members, ordered, size, kind)
                size = 0
        own[0] = size


@njit(cache=True, nogil=True)
def _forget(own: Array, members: Array, ordered: Array, size: int, kind: int) -> None:
    """Nothing of a closed group stays."""
    own[1:] = 0
    members[:size] = 0
    if kind == MEDIAN:
        ordered[:size] = 0
