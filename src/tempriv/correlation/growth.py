"""How a loss grows through a chain, one step forward or back: the candidates of its matrices.

The recursion of Cao et al. 2017, a_t = L(a_{t-1}) + epsilon_t; see ``_kernels.grown``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

from tempriv.correlation._kernels import candidates, frontier, grown, one_sided
from tempriv.correlation.chain import (
    MIN_PROBABILITY,
    STATIONARY_TOLERANCE,
    Chain,
    Flags,
    Floats,
    Integers,
    followers,
)
from tempriv.errors import require

MAX_ENTRIES = 3e8
"""Entries that are looked at to find the candidates of reversed matrices: some half a minute."""
MAX_TABLES = 100_000
ROUNDING = 2.0**-52


@dataclass(frozen=True, eq=False)
class Growth:
    """Candidates (q, d) of one matrix or more; ``tables[t]`` says which holds at step t.

    Steps past the last of ``tables`` have that one: the chain has settled by then.
    """

    highs: Floats
    lows: Floats
    bounds: Integers
    tables: Integers

    def at(self, length: int) -> Integers:
        """The table of each of the first ``length`` steps."""
        return self.tables[np.minimum(np.arange(length), len(self.tables) - 1)]

    def losses(self, budgets: Floats) -> Floats:
        """The loss at each step, for the ``budgets`` that they spend."""
        losses = np.empty(len(budgets))
        which = self.at(len(budgets))
        one_sided(self.highs, self.lows, self.bounds, which, budgets, losses)
        return losses

    def worst(self) -> Growth:
        """One table for every step: the candidates of all together."""
        highs, lows = self.highs.copy(), self.lows.copy()
        kept = frontier(highs, lows, len(highs))
        ends, zero = np.array([0, kept]), np.zeros(1, dtype=np.int64)
        return Growth(highs[:kept], lows[:kept], ends, zero)

    def of(self, loss: float) -> float:
        """L(loss), by the first table."""
        return float(grown(self.highs, self.lows, self.bounds[0], self.bounds[1], loss))

    def supremum(self, epsilon: float) -> float:
        """The loss that constant budgets tend to: the largest fixed point a = L(a) + epsilon.

        With X = e^a - 1, Y = e^epsilon - 1 and b = 1 + d - q e^epsilon it solves
        d X^2 + b X - Y = 0 for one candidate (as in Cao et al.); b and Y are divided by
        e^epsilon here, which overflows. Each a - L(a) only rises, so the largest over the
        candidates is that of their maximum.
        """
        if epsilon == 0:
            return 0.0
        if not len(self.highs):
            return epsilon
        q, d = self.highs, self.lows
        fall, rest = math.exp(-epsilon), -math.expm1(-epsilon)
        b = (1 + d) * fall - q - 4 * ROUNDING
        root = np.sqrt(b * b + 4 * d * rest * fall)
        falling = b > 0
        # X / e^epsilon, in that one of two equal forms where the root and b do not cancel
        first = 2 * rest * fall / np.where(falling, b + root, 1.0)
        second = np.where(d > 0, (root - b) / np.where(d > 0, 2 * d, 1.0), math.inf)
        scaled = float(np.max(np.where(falling, first, second)))
        small = scaled * math.exp(epsilon) if epsilon < 600 else math.inf
        loss = math.log1p(small) if small < 1 else epsilon + math.log(fall + scaled)
        return max(epsilon, loss * (1 + 2.0**-40))


def _growth(matrices: list[tuple[Floats, Flags, float]], first: int) -> Growth:
    """Tables of some matrices, that of step ``first`` first; each with how far it may be off."""
    pairs = [candidates(np.ascontiguousarray(m), possible, off) for m, possible, off in matrices]
    sizes = np.cumsum([0] + [len(highs) for highs, _ in pairs])
    tables = np.concatenate([np.zeros(first), np.arange(len(pairs))]).astype(np.int64)
    highs = np.concatenate([highs for highs, _ in pairs])
    lows = np.concatenate([lows for _, lows in pairs])
    return Growth(highs, lows, sizes.astype(np.int64), tables)


@functools.lru_cache(maxsize=16)
def forward_growth(chain: Chain) -> Growth:
    """What later steps of a ``chain`` add, seen from one. States that never occur count too."""
    slack = 4 * chain.states * ROUNDING
    return _growth([(chain.matrix, np.ones(chain.states, dtype=np.bool_), slack)], 0)


@functools.lru_cache(maxsize=16)
def backward_growth(chain: Chain, length: int | None = None) -> Growth:
    """Seen from a step, what earlier ones add; by the reversed matrix of each step.

    Reversed matrices of a start that is not stationary are made until the chain has settled. If it
    has not after ``length`` steps there are as many tables; without a length that is refused. Once
    a possible state is too unlikely to compute with, nothing counts as forgotten from there on:
    L(a) = a, which is never too little.
    """
    everything = np.ones(chain.states, dtype=np.bool_)
    nothing_forgotten = (np.eye(2), np.ones(2, dtype=np.bool_), 0.0)
    slack = 4 * chain.states * ROUNDING
    if chain.is_homogeneous:
        if chain.backward is None:
            reached = everything if chain.start is None else chain.shares > 0
            if np.any(chain.shares[reached] < MIN_PROBABILITY):
                return _growth([nothing_forgotten], 0)
            slack += 4 * chain.distance(chain.shares)
        return _growth([(*chain.reversed_at(1), slack)], 0)
    most = min(MAX_TABLES, int(MAX_ENTRIES / chain.states**3))
    if length is None and chain.settled is not None:
        later = chain.shares @ _power_of_two(chain.matrix, most.bit_length())
        _require_settled(chain.distance(later) <= STATIONARY_TOLERANCE, most)
    matrices: list[tuple[Floats, Flags, float]] = []
    shares, reached, settled = chain.shares, chain.shares > 0, False
    while not settled and (length is None or len(matrices) + 1 < max(2, length)):
        _require_settled(len(matrices) < most, most)
        away = chain.distance(shares)
        # B_t = B shares_{t-1} / shares_t entry by entry, and neither is farther away later
        off = slack * (1 + len(matrices)) + (4 * away if away <= STATIONARY_TOLERANCE else 0.0)
        matrices.append((*chain.reversed_at(1, shares), off))
        shares = np.asarray(shares @ chain.matrix)
        reached = followers(reached, chain.matrix)
        settled = away <= STATIONARY_TOLERANCE
        if np.any(shares[reached] < MIN_PROBABILITY):
            matrices[-1], settled = nothing_forgotten, True
    return _growth(matrices, 1)


def _power_of_two(matrix: Floats, doublings: int) -> Floats:
    """So many times squared."""
    for _ in range(doublings):
        matrix = matrix @ matrix
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix


def _require_settled(settled: bool, steps: int) -> None:
    require(
        settled,
        f"start: the reversed chain still changes after {steps} steps; give a stationary start, a "
        "backward matrix, or a short series",
    )


def growths(chain: Chain, length: int) -> tuple[Growth, Growth]:
    """Backward and forward growth of a ``chain``, for a series of ``length`` steps."""
    fixed = chain.is_homogeneous
    return backward_growth(chain, None if fixed else length), forward_growth(chain)


def as_budgets(budgets: Any) -> Floats:
    """The ``budgets`` checked: finite numbers, none negative; zero where nothing is released."""
    numbers = np.array(budgets, dtype=np.float64)
    require(
        numbers.ndim == 1 and len(numbers) > 0,
        "budgets: must be a list of numbers, one for each step",
    )
    fine = bool(np.all(np.isfinite(numbers) & (numbers >= 0)))
    require(fine, "budgets: must be numbers >= 0; 0 where nothing is released")
    return numbers


def as_epsilon(name: str, value: float) -> float:
    """The ``value`` of the argument ``name``, checked: a finite number, not negative."""
    fine = math.isfinite(value) and value >= 0
    require(fine, f"{name}={value}: must be a number >= 0")
    return float(value)


def shown(loss: float, digits: int = 4) -> str:
    """A loss as text, of so many digits, rounded up: what is read is never less than what is lost.

    >>> shown(1.82171), shown(0.000123456, 3), shown(math.inf)
    ('1.822', '0.000124', 'infinite')
    """
    if math.isinf(loss):
        return "infinite"
    exactly = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(loss)))
    return f"{exactly.normalize():f}"
