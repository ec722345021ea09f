"""Draws for made-up tables, from uniform numbers alone.

How numpy draws from other distributions may change between its versions; the tables must not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tempriv.sampling.keys import Generator

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def uniform(generator: Generator, low: float, high: float, *shape: int) -> Floats:
    """Uniform numbers.

    Parameters:
        generator: the source.
        low: the least number.
        high: the greatest.
        shape: of the array.
    """
    drawn: Floats = low + (high - low) * generator.random(shape)
    return drawn


def normal(generator: Generator, mean: float, deviation: float, *shape: int) -> Floats:
    """Normal numbers, by the method of Box and Muller.

    Parameters:
        generator: the source.
        mean: of the numbers.
        deviation: the standard deviation.
        shape: of the array.
    """
    radius = np.sqrt(-2 * np.log1p(-generator.random(shape)))
    drawn: Floats = radius * np.cos(2 * math.pi * generator.random(shape))
    return mean + deviation * drawn


def lognormal(generator: Generator, deviation: float, *shape: int) -> Floats:
    """Factors with median 1.

    Parameters:
        generator: the source.
        deviation: the standard deviation of the logarithm.
        shape: of the array.
    """
    factors: Floats = np.exp(normal(generator, 0.0, deviation, *shape))
    return factors


def happens(generator: Generator, share: float, *shape: int) -> npt.NDArray[np.bool_]:
    """True with a probability.

    Parameters:
        generator: the source.
        share: the probability.
        shape: of the array.
    """
    return generator.random(shape) < share


def choose(generator: Generator, weights: Sequence[float] | Floats, *shape: int) -> Integers:
    """Places in a list.

    Parameters:
        generator: the source.
        weights: of the places; they need not add up to 1.
        shape: of the array.
    """
    edges = np.cumsum(weights)
    # rounding never leads beyond the last place
    sought = edges[-1] * generator.random(shape)
    places: Integers = np.searchsorted(edges[:-1], sought, side="right").astype(np.int64)
    return places
