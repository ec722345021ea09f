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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.counting._kernels import tree_sums
from tempriv.mechanisms.counting.sensitivity import Changes, Noise, require_drawable
from tempriv.mechanisms.domains import FINENESS, Integers, power_of_two_below
from tempriv.sampling._kernels import at
from tempriv.sampling.distributions import DiscreteGaussian, DiscreteLaplace

LONGEST = 1 << 40
"""Steps that an endless stream can have."""

ONE_LEVEL = 1 << 62
"""A branching that no stream reaches: every increment is a node of its own."""

LOOKED_AT = 1 << 20
"""Steps over which the error of an endless stream is stated and its branching chosen."""


def digits(number: int, base: int) -> list[int]:
    """The digits of a ``number`` in a ``base``, the lowest first."""
    found = []
    while number:
        number, digit = divmod(number, base)
        found.append(digit)
    return found


def all_digits(last: int, base: int) -> int:
    """The digits of 1, 2, ..., ``last`` in a ``base``, added up.

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

    Parameters:
        start: a number of steps.
        stop: another, no smaller.
        base: the branching.

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


def _output_step(noise: Noise) -> int:
    """What released sums are multiples of: fine beside the noise of a node."""
    return max(1, int(power_of_two_below(max(math.sqrt(noise.mean_square) / FINENESS, 1.0))))


def _require_room(largest: int, steps: int, noise: Noise) -> None:
    require_drawable(noise)
    deviation = math.ceil(math.sqrt(noise.mean_square) + 1)
    room = largest * steps + 1000 * deviation * steps.bit_length()
    require(
        room < 2**62,
        "grid: must be coarser for these bounds, or the horizon shorter: sums of 2^62 grid steps "
        "and more do not fit",
    )


@dataclass(frozen=True)
class Tree:
    """How one column of running sums is made of nodes; everything in grid steps.

    Without a horizon there is one level (``ONE_LEVEL``): noise on every increment.

    Parameters:
        branching: how many nodes make one of the level above.
        horizon: the most steps of a series.
        budget: epsilon, or rho.
        concentrated: whether it is rho.
        changes: what the unit changes in the column.
        largest: the largest increment.
    """

    branching: int
    horizon: int | None
    budget: Fraction
    concentrated: bool
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        _require_room(self.largest, self.horizon or LONGEST, self.noise)

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
    def noise(self) -> Noise:
        """Of a node, by the L1 or L2 sensitivity of all nodes together.

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
            return DiscreteGaussian(sensitivity / (2 * self.budget))
        return DiscreteLaplace(sensitivity / self.budget)

    @property
    def memory_size(self) -> int:
        """How many whole numbers are remembered of a series."""
        return 2 + len(self.sizes)

    @functools.cached_property
    def step(self) -> int:
        """What released sums are multiples of."""
        return _output_step(self.noise)

    def variance_at(self, count: int) -> float:
        """The mean square of the noise in the sum of so many increments, the ``count``."""
        return self.noise.mean_square * sum(digits(count, self.branching))

    def variance_between(self, start: int, stop: int) -> float:
        """The same for the difference of the sums of ``start`` and ``stop`` increments.

        Nodes that they share cancel.
        """
        return self.noise.mean_square * digits_between(start, stop, self.branching)

    @property
    def mean_variance(self) -> float:
        """The mean of ``variance_at`` over all steps."""
        steps = self.horizon or LOOKED_AT
        return self.noise.mean_square * all_digits(steps, self.branching) / steps

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """Running sums of ``increments`` in multiples of ``step``.

        ``noise`` is drawn for a ``purpose``; memory begins at slot ``first`` of the ``state``.
        """
        return _rounded_sums(self, increments, noise(self.noise, purpose), state, first)


class EpochNoise(NamedTuple):
    """The noise of an epoch.

    Parameters:
        node: of each of its nodes.
        total: of its total.
    """

    node: Noise
    total: Noise


@dataclass(frozen=True)
class Epochs:
    """As a tree, for streams without an end: every epoch has a tree of its own.

    Epoch 0 ends after ``branching`` steps, epoch i after ``branching``^(i + 1): then a noisy total
    of it replaces its nodes for good (the hybrid mechanism of Chan, Shi and Song 2011 at branching
    2). A step is in its epoch's total and in one node of each of its levels at most; the budget is
    shared as 1 for each level to ``weight`` for the total.

    Parameters:
        branching: of all trees, and of the lengths of epochs.
        budget: epsilon, or rho.
        concentrated: whether it is rho.
        changes: what the unit changes in the column.
        largest: the largest increment.
    """

    branching: int
    budget: Fraction
    concentrated: bool
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        for noise in self.noises[-1]:
            _require_room(self.largest, LONGEST, noise)

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
        """The levels of nodes in an ``epoch``; at branching 2 the top ones are the total itself."""
        return epoch if self.branching == 2 and epoch > 0 else epoch + 1

    @functools.cached_property
    def noises(self) -> list[EpochNoise]:
        """Noise of nodes, and of the total, for each epoch.

        k changed steps of K cost at most k / K of the budget, in whichever epochs they lie: for
        Laplace noise each costs the same; for Gaussian noise a level of nodes of n steps costs in
        proportion to k min(k, n) at most, which grows at least as fast as k.
        """
        return [self._noise(epoch) for epoch in range(len(self._ends))]

    def _noise(self, epoch: int) -> EpochNoise:
        each, steps, levels = self.changes.each, self.changes.steps, self.levels(epoch)
        level = self.budget / (levels + self.weight)
        total = level * self.weight
        if not self.concentrated:
            changed = self.changes.total
            return EpochNoise(DiscreteLaplace(changed / level), DiscreteLaplace(changed / total))
        sizes = [self.branching**height for height in range(levels)]
        in_nodes = Fraction(steps * sum(min(steps, size) for size in sizes), levels)
        in_total = steps * min(steps, self._ends[epoch])
        return EpochNoise(
            DiscreteGaussian(each**2 * in_nodes / (2 * level)),
            DiscreteGaussian(each**2 * in_total / (2 * total)),
        )

    @property
    def memory_size(self) -> int:
        """How many whole numbers are remembered of a series."""
        return 2 + len(self._ends)

    @functools.cached_property
    def step(self) -> int:
        """What released sums are multiples of."""
        return _output_step(self.noises[0].node)

    def variance_at(self, count: int) -> float:
        """The mean square of the noise in the sum of so many increments, the ``count``."""
        return self.variance_between(0, count)

    def variance_between(self, start: int, stop: int) -> float:
        """The same for the difference of the sums of ``start`` and ``stop`` increments.

        Totals and nodes that they share cancel.
        """
        first, last = (bisect.bisect_right(self._ends, count) for count in (start, stop))
        if first == last:
            nodes = digits_between(start, stop, self.branching)
            return nodes * self.noises[last].node.mean_square
        apart = [self.noises[epoch].total.mean_square for epoch in range(first, last)]
        for epoch, count in ((first, start), (last, stop)):
            # the first digit of later epochs counts from one
            nodes = sum(digits(count, self.branching)) - (epoch > 0)
            apart.append(nodes * self.noises[epoch].node.mean_square)
        return math.fsum(apart)

    @property
    def mean_variance(self) -> float:
        """Over the first ``LOOKED_AT`` steps."""
        total, begin, finished = 0.0, 0, 0.0
        for epoch, end in enumerate(self._ends):
            node, total_noise = (noise.mean_square for noise in self.noises[epoch])
            stop = min(end, LOOKED_AT)
            used = all_digits(stop, self.branching) - all_digits(begin, self.branching)
            # the first digit of later epochs counts from one; at the end there is the total only
            used -= stop - begin if epoch else stop == end
            total += finished * (stop - begin) + node * used
            total += total_noise * (stop == end)
            finished += total_noise
            begin = stop
            if stop == LOOKED_AT:
                break
        return total / LOOKED_AT

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """Sums of ``increments`` as of a tree; where an epoch ends, its total has the noise.

        ``noise``, ``purpose``, ``state`` and ``first`` are as there.
        """
        ends = np.array(self._ends)
        counts = state.steps + 1
        epochs = np.searchsorted(ends, counts)
        at_end = counts == ends[epochs]
        drawn = np.zeros(len(increments), dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            names = f"{purpose}, epoch {epoch}", f"{purpose}, total of epoch {epoch}"
            for each, name, ending in zip(self.noises[epoch], names, (False, True), strict=True):
                rows = np.flatnonzero((epochs == epoch) & (at_end == ending))
                if len(rows):
                    drawn[rows] = _some(noise, each, name, rows)
        return _rounded_sums(self, increments, drawn, state, first)


def _rounded_sums(
    nodes: Tree | Epochs, increments: Integers, drawn: Integers, state: SeriesState, first: int
) -> Integers:
    """Running sums from noisy nodes, rounded to the step of outputs."""
    sums = np.empty(len(increments), dtype=np.int64)
    endless = isinstance(nodes, Epochs)
    memory, branching = state.memory, nodes.branching
    tree_sums(increments, state.which, state.steps, branching, endless, drawn, memory, first, sums)
    return (sums + nodes.step // 2) // nodes.step


def _some(noise: NoiseSource, each: Noise, purpose: str, rows: npt.NDArray[np.intp]) -> Integers:
    """The draws of some rows; an audit lists outcomes of no others."""
    drawn = noise.each(each, purpose)
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

    Parameters:
        horizon: the most steps of a series.

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
