"""Numbers taken as they are, or as curves drawn through them, beside times on a public grid."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tempriv.mechanisms.domains import LARGEST, Domain, Floats, FromNumbers, Integers
from tempriv.mechanisms.retime._kernels import all_within

MAX_NUMBER = 1e300  # beyond this sums of numbers may be none
NOTHING = int(np.array(np.nan).view(np.int64))
"""Stands for a number that is missing, where whole numbers carry the bits of others."""


def as_bits(values: Floats) -> Integers:
    """Numbers as they are, in 64 bits each, which whole numbers can carry.

    Parameters:
        values: the numbers.
    """
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def as_numbers(bits: Integers) -> Floats:
    """The numbers again.

    Parameters:
        bits: what ``as_bits`` made of them.
    """
    return np.ascontiguousarray(bits).view(np.float64)


@dataclass(frozen=True)
class Timed(Domain):
    """Columns of numbers, taken as they are, and after them columns of times on a public grid.

    Parameters:
        values: how many columns of numbers there are.
        times: how many columns of times.
        grid: of times.
        finer: how many times as fine times come out, where they are means of so many.
        latency: how many steps after its own the output of a step comes.
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
        """The bits of ``values``, and times on their grid."""
        numbers = np.ascontiguousarray(values[:, : self.values])
        if not all_within(numbers.reshape(-1), MAX_NUMBER):  # to look costs less than to copy
            numbers = np.clip(numbers, -MAX_NUMBER, MAX_NUMBER)
        if not self.times:
            return as_bits(numbers)
        most = LARGEST // (2 * self.finer)
        times = np.clip(values[:, self.values :], -most * self.grid, most * self.grid)
        # rounded down: times less than tau apart stay within ceil(tau / grid) steps of the grid
        steps = np.floor(times / self.grid).astype(np.int64)
        return np.concatenate([as_bits(numbers), steps], axis=1)

    def from_grid(self, outputs: Integers) -> Floats:
        """The numbers and times that ``outputs`` stand for."""
        if not self.times:
            return as_numbers(outputs)
        times = outputs[:, self.values :]
        released = np.where(times == NOTHING, np.nan, times * (self.grid / self.finer))
        return np.concatenate([as_numbers(outputs[:, : self.values]), released], axis=1)


@dataclass(frozen=True)
class Smoothed(FromNumbers):
    """Bounded numbers on a grid, out of which curves come; their points lie on no grid.

    Parameters:
        numbers: what comes in.
        latency: how many steps after its own the output of a step comes.
    """

    latency: int = field()

    def from_grid(self, outputs: Integers) -> Floats:
        """The numbers whose bits ``outputs`` are."""
        return as_numbers(outputs)
