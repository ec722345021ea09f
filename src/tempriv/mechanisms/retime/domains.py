"""Numbers taken as they are, or as curves drawn through them, beside times on a public grid."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tempriv.data.series import Bounds
from tempriv.mechanisms.domains import LARGEST, Domain, Floats, Integers, Numbers
from tempriv.mechanisms.retime._kernels import all_within

HUGE = 1e300  # beyond this sums of numbers may be none
NOTHING = int(np.array(np.nan).view(np.int64))
"""Stands for a number that is missing, where whole numbers carry the bits of others."""


def as_bits(values: Floats) -> Integers:
    """Numbers as they are, in 64 bits each, which whole numbers can carry."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def as_numbers(bits: Integers) -> Floats:
    return np.ascontiguousarray(bits).view(np.float64)


@dataclass(frozen=True)
class Timed(Domain):
    """Columns of numbers, taken as they are, and after them columns of times on a public grid.

    Times come out ``finer`` times as fine as they are taken, where they are means of so many.
    """

    values: int
    times: int
    grid: float
    finer: int = 1
    latency: int = 0

    @property
    def columns(self) -> int:
        return self.values + self.times

    def to_grid(self, values: Floats) -> Integers:
        numbers = np.ascontiguousarray(values[:, : self.values])
        if not all_within(numbers.reshape(-1), HUGE):  # to look costs less than to copy
            numbers = np.clip(numbers, -HUGE, HUGE)
        if not self.times:
            return as_bits(numbers)
        most = LARGEST // (2 * self.finer)
        times = np.clip(values[:, self.values :], -most * self.grid, most * self.grid)
        # rounded down: times less than tau apart stay within ceil(tau / grid) steps of the grid
        steps = np.floor(times / self.grid).astype(np.int64)
        return np.concatenate([as_bits(numbers), steps], axis=1)

    def from_grid(self, outputs: Integers) -> Floats:
        if not self.times:
            return as_numbers(outputs)
        times = outputs[:, self.values :]
        told = np.where(times == NOTHING, np.nan, times * (self.grid / self.finer))
        return np.concatenate([as_numbers(outputs[:, : self.values]), told], axis=1)


@dataclass(frozen=True)
class Smoothed(Domain):
    """Bounded numbers on a grid, out of which curves come; their points lie on no grid."""

    numbers: Numbers
    latency: int = field()

    @property
    def columns(self) -> int:
        return self.numbers.columns

    @property
    def bounds(self) -> Bounds:
        """Of what comes in."""
        return self.numbers.bounds

    def to_grid(self, values: Floats) -> Integers:
        return self.numbers.to_grid(values)

    def from_grid(self, outputs: Integers) -> Floats:
        return as_numbers(outputs)
