"""Running sums from noisy sums of nodes: trees of any branching, and epochs for endless streams.

After n steps the sum is put together from nodes, as many of each level as the digits of n say in
base ``branching``. A node that completes the one above is never used, so one node ends at each step
and one draw a step is all the noise there is.
"""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.counting._kernels import tree_sums
from tempriv.mechanisms.counting.sensitivity import Changes, Law, require_drawable, variance_of
from tempriv.mechanisms.domains import FINENESS, Integers, power_of_two_below
from tempriv.sampling import distributions
from tempriv.sampling._kernels import at

LONGEST = 1 << 40
"""Steps that an endless stream can have."""

ONE_LEVEL = 1 << 62
"""A branching that no stream reaches: every increment is a node of its own."""

LOOKED_AT = 1 << 20
"""Steps over which the error of an endless stream is stated and its branching chosen."""


def digits(number: int, base: int) -> list[int]:
    """The lowest first."""
    found = []
    while number:
        number, digit = divmod(number, base)
        found.append(digit)
    return found


def all_digits(last: int, base: int) -> int:
    """The digits of 1, 2, ..., last, added up.

    >>> all_digits(12, 10)  # 45, then 1 + 0, 1 + 1, 1 + 2
    51
    """
    total, size = 0, 1
    while size <= last:
        whole, rest = divmod(last + 1, base * size)
        digit, part = divmod(rest, size)
        total += (whole * base * (base - 1) + digit * (digit - 1)) // 2 * size + digit * part
        size *= base
    return total


def digits_between(start: int, stop: int, base: int) -> int:
    """Nodes that the sum of ``start`` steps is made of or that of ``stop`` steps is, but not both.

    >>> digits_between(20, 23, 10), digits_between(19, 23, 10)
    (3, 13)
    """
    earlier, later = digits(start, base), digits(stop, base)
    earlier += [0] * (len(later) - len(earlier))
    while earlier and earlier[-1] == later[-1]:
        earlier.pop()
        later.pop()
    if not earlier:
        return 0
    return later[-1] - earlier[-1] + sum(earlier[:-1]) + sum(later[:-1])


def _output_step(law: Law) -> int:
    """What released sums are multiples of: fine beside the noise of a node."""
    return max(1, int(power_of_two_below(max(math.sqrt(variance_of(law)) / FINENESS, 1.0))))


def _rounded(sums: Integers, step: int) -> Integers:
    return (sums + step // 2) // step


def _require_room(largest: int, steps: int, law: Law) -> None:
    require_drawable(law)
    room = largest * steps + 1000 * math.ceil(math.sqrt(variance_of(law)) + 1) * steps.bit_length()
    require(
        room < 2**62,
        "grid: must be coarser for these bounds, or the horizon shorter: sums of 2^62 grid steps "
        "and more do not fit",
    )


@dataclass(frozen=True)
class Tree:
    """How one column of running sums is made of nodes; everything in grid steps.

    Without a horizon there is one level (``ONE_LEVEL``): noise on every increment.
    """

    branching: int
    horizon: int | None
    budget: Fraction  # epsilon, or rho if concentrated
    concentrated: bool
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        _require_room(self.largest, self.horizon or LONGEST, self.law)

    @property
    def sizes(self) -> list[int]:
        """Steps in a node of each level."""
        return _powers(self.branching, self.horizon or 1)

    def _covered(self, size: int) -> int:
        """How many of the changed steps lie in nodes of that size, at the most.

        The last of every ``branching`` nodes is not used, nor is one that ends past the horizon.
        Of all windows the one at the start has most steps in the others, at every level.
        """
        period = self.branching * size
        whole, rest = divmod(self.changes.window, period)
        covered = whole * (period - size) + min(rest, period - size)
        if self.horizon is not None:
            covered = min(covered, (self.horizon // size - self.horizon // period) * size)
        return covered

    @functools.cached_property
    def law(self) -> Law:
        """By the L1 or L2 sensitivity of all nodes together.

        For L2, the squares of what nodes change are largest when the changed steps fill one node
        after the other. That, too, is the window at the start, at every level.
        """
        each, sensitivity = self.changes.each, Fraction(0)
        for size in self.sizes:
            if self.concentrated:
                full, rest = divmod(min(self.changes.steps, self._covered(size)), size)
                sensitivity += each**2 * (full * size**2 + rest**2)
            else:
                sensitivity += min(self.changes.total, each * self._covered(size))
        if self.concentrated:
            return distributions.DiscreteGaussian(sensitivity / (2 * self.budget))
        return distributions.DiscreteLaplace(sensitivity / self.budget)

    @property
    def memory_size(self) -> int:
        return 2 + len(self.sizes)

    @functools.cached_property
    def step(self) -> int:
        return _output_step(self.law)

    def variance_at(self, count: int) -> float:
        """Of the sum of so many increments."""
        return variance_of(self.law) * sum(digits(count, self.branching))

    def variance_between(self, start: int, stop: int) -> float:
        """Of the difference of two running sums: nodes that they share cancel."""
        return variance_of(self.law) * digits_between(start, stop, self.branching)

    @property
    def mean_variance(self) -> float:
        steps = self.horizon or LOOKED_AT
        return variance_of(self.law) * all_digits(steps, self.branching) / steps

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """Running sums in multiples of ``step``, from slot ``first`` of the memory."""
        out = np.empty(len(increments), dtype=np.int64)
        tree_sums(
            increments,
            state.which,
            state.steps,
            self.branching,
            False,
            noise(self.law, purpose),
            state.memory,
            first,
            out,
        )
        return _rounded(out, self.step)


@dataclass(frozen=True)
class Epochs:
    """As a tree, for streams without an end: every epoch has a tree of its own.

    Epoch 0 ends after ``branching`` steps, epoch i after ``branching``^(i + 1): then a noisy total
    of it replaces its nodes for good (the hybrid mechanism of Chan, Shi and Song 2011 at branching
    2). A step is in its epoch's total and in one node of each of its levels at most; the budget is
    shared as 1 for each level to ``weight`` for the total.
    """

    branching: int
    budget: Fraction
    concentrated: bool
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        for law in self.laws[-1]:
            _require_room(self.largest, LONGEST, law)

    @functools.cached_property
    def _ends(self) -> list[int]:
        """After how many steps the epochs end."""
        return _powers(self.branching, LONGEST * self.branching)[1:]

    @property
    def weight(self) -> Fraction:
        """What makes the variance of a total and the mean variance of its tree least, together.

        A tree of L levels uses (branching - 1) / 2 nodes of each on average. With noise that falls
        as the share (its square root, for Gaussian noise) the least of total^-2 + L mean level^-2
        (total^-1 + L mean level^-1) is where total / level is mean^(-1/3) (mean^(-1/2)).
        """
        mean = (self.branching - 1) / 2
        return Fraction(round(64 * mean ** (-1 / 2 if self.concentrated else -1 / 3)), 64)

    def levels(self, epoch: int) -> int:
        """Of nodes in use; at branching 2 the top ones are the total itself."""
        return epoch if self.branching == 2 and epoch > 0 else epoch + 1

    @functools.cached_property
    def laws(self) -> list[tuple[Law, Law]]:
        """Noise of nodes, and of the total, for each epoch.

        k changed steps of K cost at most k / K of the budget, in whichever epochs they lie: for
        Laplace noise each costs the same; for Gaussian noise a level of nodes of n steps costs in
        proportion to k min(k, n) at most, which grows at least as fast as k.
        """
        return [self._laws(epoch) for epoch in range(len(self._ends))]

    def _laws(self, epoch: int) -> tuple[Law, Law]:
        each, steps, levels = self.changes.each, self.changes.steps, self.levels(epoch)
        level = self.budget / (levels + self.weight)
        total = level * self.weight
        if not self.concentrated:
            changed = self.changes.total
            return distributions.DiscreteLaplace(changed / level), distributions.DiscreteLaplace(
                changed / total
            )
        sizes = [self.branching**height for height in range(levels)]
        in_nodes = Fraction(steps * sum(min(steps, size) for size in sizes), levels)
        in_total = steps * min(steps, self._ends[epoch])
        return (
            distributions.DiscreteGaussian(each**2 * in_nodes / (2 * level)),
            distributions.DiscreteGaussian(each**2 * in_total / (2 * total)),
        )

    @property
    def memory_size(self) -> int:
        return 2 + len(self._ends)

    @functools.cached_property
    def step(self) -> int:
        return _output_step(self.laws[0][0])

    def variance_at(self, count: int) -> float:
        """Of the sum of so many increments."""
        return self.variance_between(0, count)

    def variance_between(self, start: int, stop: int) -> float:
        """Of the difference of two running sums: totals and nodes that they share cancel."""
        first, last = (bisect.bisect_right(self._ends, count) for count in (start, stop))
        if first == last:
            nodes = digits_between(start, stop, self.branching)
            return nodes * variance_of(self.laws[last][0])
        apart = [variance_of(self.laws[epoch][1]) for epoch in range(first, last)]
        for epoch, count in ((first, start), (last, stop)):
            # the first digit of later epochs counts from one
            nodes = sum(digits(count, self.branching)) - (epoch > 0)
            apart.append(nodes * variance_of(self.laws[epoch][0]))
        return math.fsum(apart)

    @property
    def mean_variance(self) -> float:
        """Over the first ``LOOKED_AT`` steps."""
        total, begin, finished = 0.0, 0, 0.0
        for epoch, end in enumerate(self._ends):
            nodes, last = self.laws[epoch]
            stop = min(end, LOOKED_AT)
            used = all_digits(stop, self.branching) - all_digits(begin, self.branching)
            # the first digit of later epochs counts from one; at the end there is the total only
            used -= stop - begin if epoch else stop == end
            total += finished * (stop - begin) + variance_of(nodes) * used
            total += variance_of(last) * (stop == end)
            finished += variance_of(last)
            begin = stop
            if stop == LOOKED_AT:
                break
        return total / LOOKED_AT

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """As those of a tree; where an epoch ends, the draw is the noise of its total."""
        ends = np.array(self._ends)
        counts = state.steps + 1
        epochs = np.searchsorted(ends, counts)
        at_end = counts == ends[epochs]
        drawn = np.zeros(len(increments), dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            names = f"{purpose}, epoch {epoch}", f"{purpose}, total of epoch {epoch}"
            for law, name, ending in zip(self.laws[epoch], names, (False, True), strict=True):
                rows = np.flatnonzero((epochs == epoch) & (at_end == ending))
                if len(rows):
                    drawn[rows] = _some(noise, law, name, rows)
        out = np.empty(len(increments), dtype=np.int64)
        tree_sums(
            increments,
            state.which,
            state.steps,
            self.branching,
            True,
            drawn,
            state.memory,
            first,
            out,
        )
        return _rounded(out, self.step)


def _some(noise: NoiseSource, law: Law, purpose: str, rows: npt.NDArray[np.intp]) -> Integers:
    """The draws of some rows; an audit lists outcomes of no others."""
    drawn = noise.each(law, purpose)
    if isinstance(drawn, np.ndarray):
        return np.asarray(drawn[rows])
    return np.array([at(drawn, row) for row in rows.tolist()], dtype=np.int64)


def _powers(base: int, most: int) -> list[int]:
    found = [1]
    while found[-1] * base <= most:
        found.append(found[-1] * base)
    return found


def branchings(horizon: int | None) -> list[int]:
    """Those worth trying: for each number of levels the least that has no more of them.

    >>> branchings(1440)
    [1441, 38, 12, 7, 5, 4, 3, 2]
    """
    if horizon is None:
        return list(range(2, 33))
    found: list[int] = []
    levels = 1
    while not found or found[-1] > 2:
        base = max(2, round(horizon ** (1 / levels)) - 2)
        while base**levels <= horizon:
            base += 1
        if base not in found:
            found.append(base)
        levels += 1
    return found
