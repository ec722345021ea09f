"""The exponential mechanism over a list of options, drawn exactly."""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.sampling.exact_compare import ExactReal, Integers, decimal_of, is_below
from tempriv.sampling.keystream import Keystream

Floats = npt.NDArray[np.float64]

WORD_VALUES = 2.0**64


def probabilities_of(utilities: Floats, epsilon: float, sensitivity: float) -> Floats:
    """The probability of every option of the exponential mechanism.

    Parameters:
        utilities: of the options, along the last axis.
        epsilon: the privacy loss of one choice.
        sensitivity: the most that a utility changes between neighbors.
    """
    # e^0 for the best, so that nothing overflows
    lacking = utilities.max(axis=-1, keepdims=True) - utilities
    weights = np.exp(-epsilon / (2 * sensitivity) * lacking)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ExponentialChoice:
    """Option i with probability proportional to e^(epsilon utility_i / (2 sensitivity)).

    Drawn exactly: a word decides where floating point is certain, else as many digits as it takes.

    Parameters:
        utilities: of the options.
        epsilon: the privacy loss of one choice.
        sensitivity: the most that a utility changes between neighbors.
    """

    utilities: Floats
    epsilon: float
    sensitivity: float

    @functools.cached_property
    def probabilities(self) -> Floats:
        return probabilities_of(self.utilities, self.epsilon, self.sensitivity)

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return float(self.probabilities[k]) if 0 <= k < len(self.utilities) else 0.0

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return list(enumerate(self.probabilities.tolist()))

    @functools.cached_property
    def _rates(self) -> list[Fraction]:
        best = Fraction(float(self.utilities.max()))
        each = Fraction(self.epsilon) / (2 * Fraction(self.sensitivity))
        return [each * (best - Fraction(utility)) for utility in self.utilities.tolist()]

    def _cut(self, option: int) -> ExactReal:
        """The probability of this option or one before it."""

        def formula() -> Decimal:
            weights = [(-decimal_of(rate)).exp() for rate in self._rates]
            first = sum(weights[: option + 1], start=Decimal(0))
            return first / (first + sum(weights[option + 1 :], start=Decimal(0)))

        return ExactReal(formula)

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        word = keystream.read()
        uniform = word.astype(np.float64) / WORD_VALUES
        below = np.cumsum(self.probabilities)[:-1]
        # each sum is of n terms, each term and each sum rounded a few times
        margin = (len(below) + 64) * 2.0**-50
        chosen = np.searchsorted(below, uniform - margin, side="right")
        last = np.searchsorted(below, uniform + margin, side="right")
        for row in np.flatnonzero(last != chosen).tolist():
            more = functools.partial(keystream.substream(0).read_one, row)
            reached = functools.partial(self._is_below, int(word[row]), more)
            first, end = int(chosen[row]), int(last[row])
            chosen[row] = bisect.bisect_left(range(len(below)), True, first, end, key=reached)
        return chosen.astype(np.int64)

    def _is_below(self, word: int, more: Any, option: int) -> bool:
        return is_below(word, more, self._cut(option))
