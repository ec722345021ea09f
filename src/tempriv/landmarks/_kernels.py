"""Compiled loops that choose moments: stays of a path, histograms nearest to another."""

from __future__ import annotations

from numba import njit

from tempriv.sampling._kernels import Array

EARTH_RADIUS_METERS = 6_371_008.8  # meters, the mean radius


@njit(cache=True, nogil=True)
def mark_stays(points: Array, seconds: Array, reach: float, lasting: float, marks: Array) -> None:
    """Mark stay points (Li et al. 2008).

    Parameters:
        points: places on the unit sphere.
        seconds: their times.
        reach: the most that places of a stay are apart, as a squared chord.
        lasting: the least seconds of a stay.
        marks: set where there is one.
    """
    n = seconds.size
    first = 0
    while first < n:
        x, y, z = points[first, 0], points[first, 1], points[first, 2]
        last = first
        while last + 1 < n:
            dx, dy, dz = points[last + 1, 0] - x, points[last + 1, 1] - y, points[last + 1, 2] - z
            if dx * dx + dy * dy + dz * dz > reach:
                break
            last += 1
        if seconds[last] - seconds[first] >= lasting:
            for i in range(first, last + 1):
                marks[i] = True
            first = last + 1
        else:
            first += 1


@njit(cache=True, nogil=True)
def nearest_by_transport(start: Array, capacity: Array, added: Array, moved: Array) -> None:
    """Algorithm 1 under the Wasserstein distance: the bin that each step adds one event to.

    Parameters:
        start: the events of each bin.
        capacity: how many it can hold.
        added: the bin of each step, written.
        moved: how much is moved in all after each step, written.
    """
    bins = start.size
    landmarks = 0
    for b in range(bins):
        landmarks += start[b]
    current = start.copy()
    total = landmarks
    for step in range(added.size):
        total += 1
        # as if the new event came before the first bin, then from bin to bin
        whole, below, above = 0, 0, 0
        for b in range(bins):
            below += start[b]
            above += current[b]
            whole += abs(total * below - landmarks * (above + 1))
        best, least = -1, 0
        below, above = 0, 0
        for b in range(bins):
            if current[b] < capacity[b] and (best < 0 or whole < least):
                best, least = b, whole
            below += start[b]
            above += current[b]
            whole += abs(total * below - landmarks * above)
            whole -= abs(total * below - landmarks * (above + 1))
        current[best] += 1
        added[step] = best
        moved[step] = least / total
