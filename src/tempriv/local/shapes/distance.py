"""How far apart sequences of symbols are, where symbols are numbered from the lowest cell up.

- ``dtw``: dynamic time warping with the gap between symbols as cost and no window. Symmetric; zero
  if and only if both are the same once repeated symbols are merged, so between compressed sequences
  if and only if they are equal. No metric: the triangle inequality fails.
- ``levenshtein``: how many symbols must be put in, left out or exchanged, by the package rapidfuzz.
  A metric. How far apart two symbols are does not count.
- ``euclidean``: the root of the squared gaps, position by position. What ends first stays at its
  last symbol; the paper does not say what it does there. Zero if and only if the longer one repeats
  the last symbol of the shorter; a metric between sequences of one length.

Nothing (a sequence without symbols) is infinitely far from anything but itself, if not by
``levenshtein``. With ``prefix`` a sequence is cut to each candidate's length, as the paper compares
a sequence with candidates for its beginning; that is no longer symmetric.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, extra_packages, require
from tempriv.local.shapes._distance_kernels import put_warped
from tempriv.local.shapes.sequences import Sequences

Floats = npt.NDArray[np.float64]
DistanceKind = Literal["dtw", "levenshtein", "euclidean"]


def distances(
    kind: DistanceKind, sequences: Sequences, candidates: Sequences, *, prefix: bool = False
) -> Floats:
    """A row of distances to all candidates for each sequence.

    Parameters:
        kind: ``dtw``, ``levenshtein`` or ``euclidean``.
        sequences: a row for each.
        candidates: a column for each.
        prefix: whether a sequence is cut to the length of each candidate.

    >>> some = Sequences.of(["acb", "ab"], symbols=3)
    >>> distances("dtw", some, Sequences.of(["acb", "aacbb", "c"], symbols=3)).tolist()
    [[0.0, 0.0, 3.0], [1.0, 1.0, 3.0]]
    >>> distances("dtw", some, Sequences.of(["a", "b"], symbols=3), prefix=True).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    require(
        kind in get_args(DistanceKind),
        f"kind={kind!r}: must be one of {', '.join(get_args(DistanceKind))}",
    )
    require(
        sequences.symbols == candidates.symbols,
        f"sequences of {sequences.symbols} symbols and candidates of {candidates.symbols}: must be "
        "over one alphabet",
        DataError,
    )
    if kind == "dtw":
        return _dtw(sequences, candidates, prefix)
    measure = _levenshtein if kind == "levenshtein" else _euclidean
    if not prefix:
        return measure(sequences, candidates)
    matrix = np.empty((len(sequences), len(candidates)))
    for length in np.unique(candidates.lengths).tolist():
        which = np.flatnonzero(candidates.lengths == length)
        matrix[:, which] = measure(sequences.prefix(length), candidates.take(which))
    return matrix


def ranked_distances(
    kind: DistanceKind, sequences: Sequences, candidates: Sequences, *, prefix: bool = False
) -> Floats:
    """As ``distances``, but candidates that are equally far differ by less than one step.

    They differ by how far their symbols are in place. Edits and warps are whole numbers, and often
    the same for many candidates; the first is no good choice for the nearest then. Parameters are
    those of ``distances``: ``kind``, ``sequences``, ``candidates`` and ``prefix``.

    >>> own, some = Sequences.of(["abcd"], symbols=4), Sequences.of(["dabcd", "abcdc"], symbols=4)
    >>> distances("levenshtein", own, some).tolist()
    [[1.0, 1.0]]
    >>> ranked_distances("levenshtein", own, some).argmin(axis=1).tolist()
    [1]
    """
    matrix = distances(kind, sequences, candidates, prefix=prefix)
    if kind == "euclidean":
        return matrix
    # at most 64 symbols that are at most 63 apart: below 512
    finer = np.minimum(distances("euclidean", sequences, candidates, prefix=prefix), 1023)
    return np.asarray(matrix + finer / 1024)


def _dtw(sequences: Sequences, candidates: Sequences, prefix: bool) -> Floats:
    matrix = np.empty((len(candidates), len(sequences)))
    put_warped(
        np.ascontiguousarray(sequences.matrix().T),
        sequences.lengths,
        candidates.matrix(),
        candidates.lengths,
        sequences.symbols,
        prefix,
        matrix,
    )
    return matrix.T


def _levenshtein(sequences: Sequences, candidates: Sequences) -> Floats:
    with extra_packages("shapes", "Levenshtein distances (but not dtw or euclidean)"):
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    if not len(sequences) or not len(candidates):
        return np.empty((len(sequences), len(candidates)))
    # no distance is above the greater length, which is below 64
    matrix = cdist(
        sequences.texts(), candidates.texts(), scorer=Levenshtein.distance, dtype=np.uint8
    )
    return np.asarray(matrix, dtype=np.float64)


def _euclidean(sequences: Sequences, candidates: Sequences) -> Floats:
    length = int(max(sequences.lengths.max(initial=0), candidates.lengths.max(initial=0)))
    left, right = _extended(sequences, length), _extended(candidates, length)
    # whole numbers far below 2^53: every sum is exact
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
    if length:
        after = length - np.maximum(sequences.lengths[:, None], candidates.lengths)
        squares -= after * (left[:, -1:] - right[:, -1]) ** 2  # beyond the end of both
    matrix: Floats = np.sqrt(squares)
    matrix[(sequences.lengths == 0)[:, None] != (candidates.lengths == 0)] = np.inf
    return matrix


def _extended(sequences: Sequences, length: int) -> Floats:
    """A row of ``length`` symbols for each, the last one again and again after its end."""
    symbols, lengths = sequences.matrix(), sequences.lengths
    if symbols.shape[1] == 0:
        return np.zeros((len(sequences), length))
    places = np.minimum(np.arange(length), np.maximum(lengths - 1, 0)[:, None])
    return np.take_along_axis(symbols, places, axis=1).astype(np.float64)
