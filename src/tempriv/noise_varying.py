"""Draws whose law differs from row to row, for budgets that do: of a few laws, all of one kind.

They come in one go, without tables, which are long to build for a law of a few rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tempriv.geometric import Rows
from tempriv.keyed_words import Words
from tempriv.noise import (
    PlanarLattice,
    RandomisedResponse,
    accepted_pairs,
    discrete_laplace_varying,
    until_accepted,
)
from tempriv.thresholds import Integers, cells_of


class Varying:
    """For row i the law number ``which[i]``."""

    def __init__(
        self, laws: Sequence[RandomisedResponse] | Sequence[PlanarLattice], which: Integers
    ):
        self.laws, self.which = laws, which

    def sample(self, words: Words) -> Integers:
        """One draw for each row."""
        if isinstance(self.laws[0], RandomisedResponse):
            return self._answers(words)
        return self._places(words)

    def _answers(self, words: Words) -> Integers:
        cuts = [law.cuts for law in self.laws if isinstance(law, RandomisedResponse)]
        shift = cells_of(cuts, self.which, words.take(), words.branch(0).one)
        first = self.laws[0]
        assert isinstance(first, RandomisedResponse)
        return first.replacing(shift, words)

    def _places(self, words: Words) -> Integers:
        laws = [law.rate for law in self.laws if isinstance(law, PlanarLattice)]
        # floats, as any scale is drawn from; the slope leaves room for rounding them
        wide = [float(1 / (rate * PlanarLattice.SLOPE)) for rate in laws]
        slopes = [1 / (rate * Fraction(scale)) for rate, scale in zip(laws, wide, strict=True)]
        scales, rates, rising = (
            np.array([float(one) for one in numbers])[self.which]
            for numbers in (wide, laws, slopes)
        )

        def draw(lanes: Words, rows: Rows) -> tuple[Integers, Rows]:
            pair = [discrete_laplace_varying(scales[rows], lanes.branch(axis)) for axis in (0, 1)]

            def exactly(n: int) -> tuple[Fraction, Fraction]:
                law = self.which[rows[n]]
                return laws[law], slopes[law]

            return accepted_pairs(pair, rates[rows], rising[rows], lanes, exactly)

        return until_accepted(words, draw)
