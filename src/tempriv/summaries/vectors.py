"""A person's vector in whole numbers: transformed, clipped and added up without any rounding error.

How a person's numbers come out must not depend on who else is there, to the last bit: a sum in
floating point, or a matrix product, does. So readings are whole numbers of grid steps, matrices
have whole entries, and a product of them in double precision is exact as long as it stays below
2^53, in whatever order it is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.int32] | npt.NDArray[np.int64]
"""Whole numbers of people, in as few bytes as they need."""

READING_STEPS = 1 << 20
"""Grid steps from the lower to the upper bound of a reading."""
COEFFICIENT_STEPS = 1 << 12
"""Grid steps to 1 in the matrix of a transform."""
CHUNK_PEOPLE = 1 << 14
MAX_CELLS = 1024


@dataclass(frozen=True)
class CellBasis:
    """An orthonormal real Fourier basis over cells, whose higher frequencies are scaled up.

    Profiles are smooth, so their high frequencies are small. Scaled up by sqrt(1 + frequency) they
    take their part of the sensitivity, and less noise is left on them when they are scaled back.
    """

    cells: int

    @functools.cached_property
    def frequencies(self) -> Integers:
        """Of each coefficient: 0, 1, 1, 2, 2 and so on."""
        return (np.arange(self.cells, dtype=np.int64) + 1) // 2

    @functools.cached_property
    def orthonormal(self) -> Floats:
        """A row for each coefficient."""
        n, angle = self.cells, 2 * np.pi * np.arange(self.cells) / self.cells
        rows = [np.full(n, 1 / np.sqrt(n))]
        for i in range(1, n):
            frequency = (i + 1) // 2
            if 2 * frequency == n:
                rows.append(np.cos(frequency * angle) / np.sqrt(n))
                continue
            wave = np.cos if i % 2 else np.sin
            rows.append(wave(frequency * angle) * np.sqrt(2 / n))
        return np.array(rows)

    @functools.cached_property
    def scale(self) -> Floats:
        """What each coefficient is multiplied by."""
        return np.asarray(np.sqrt(1.0 + self.frequencies))

    @functools.cached_property
    def matrix(self) -> Floats:
        """The transform, in whole numbers of ``COEFFICIENT_STEPS``."""
        return np.rint(self.orthonormal * self.scale[:, None] * COEFFICIENT_STEPS)

    @functools.cached_property
    def inverse(self) -> Floats:
        """From scaled coefficients back to cells."""
        return np.asarray(np.linalg.inv(self.matrix / COEFFICIENT_STEPS))

    def coefficients(self, vectors: Vectors, center: Integers) -> Floats:
        """Whole coefficients of ``vectors`` around a ``center``, a row for each person."""
        exact = (vectors - center).astype(np.float64) @ self.matrix.T
        return np.asarray(np.rint(exact / COEFFICIENT_STEPS))


def chunks(count: int) -> Iterator[slice]:
    """Slices of so many people at a time."""
    for first in range(0, count, CHUNK_PEOPLE):
        yield slice(first, min(first + CHUNK_PEOPLE, count))


def squared_norms(coefficients: Floats) -> Integers:
    """The exact squares of the norms of whole ``coefficients``."""
    whole = coefficients.astype(np.int64)
    return np.asarray((whole * whole).sum(axis=1))


def clipped(coefficients: Floats, clip: int, grid: int) -> Integers:
    """Whole vectors of a norm of at most ``grid``: those of norm ``clip`` and more on its edge.

    Parameters:
        coefficients: whole, a row for each person.
        clip: the norm that is kept.
        grid: the steps of the output to it.
    """
    norms = np.sqrt(squared_norms(coefficients).astype(np.float64))
    factor = inner(grid, coefficients.shape[1]) / np.maximum(norms, float(clip))
    out = np.rint(coefficients * factor[:, None]).astype(np.int64)
    while True:
        # what rounding may have pushed over the edge; the guarantee rests on this comparison
        over = (out * out).sum(axis=1) > grid * grid
        if not over.any():
            return np.asarray(out)
        out[over] -= np.sign(out[over])


def inner(grid: int, cells: int) -> float:
    """The norm that clipped vectors have before they are rounded to whole steps.

    >>> inner(1 << 20, 24) / (1 << 20) > 0.99999
    True
    """
    return max(grid - float(np.sqrt(cells)) / 2, grid / 2)
