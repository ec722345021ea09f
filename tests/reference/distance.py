"""Distances of two rows of symbols by their definitions, one pair at a time."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence


def dtw(one: Sequence[int], other: Sequence[int]) -> float:
    """The least sum of gaps along a path that leaves out nothing of either."""
    if not one or not other:
        return 0.0 if len(one) == len(other) else math.inf

    @functools.cache
    def upto(i: int, j: int) -> float:
        gap = abs(one[i] - other[j])
        if i == j == 0:
            return gap
        ways = [(i - 1, j), (i, j - 1), (i - 1, j - 1)]
        return gap + min(upto(*way) for way in ways if min(way) >= 0)

    return float(upto(len(one) - 1, len(other) - 1))


def levenshtein(one: Sequence[int], other: Sequence[int]) -> float:
    @functools.cache
    def upto(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        changed = upto(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(changed, upto(i - 1, j) + 1, upto(i, j - 1) + 1)

    return float(upto(len(one), len(other)))


def euclidean(one: Sequence[int], other: Sequence[int]) -> float:
    """What ends first stays at its last symbol."""
    if not one or not other:
        return 0.0 if len(one) == len(other) else math.inf
    length = max(len(one), len(other))
    gaps = (one[min(i, len(one) - 1)] - other[min(i, len(other) - 1)] for i in range(length))
    return math.sqrt(sum(gap**2 for gap in gaps))


def merged(one: Sequence[int]) -> list[int]:
    return [symbol for symbol, _ in itertools.groupby(one)]


ALL = {"dtw": dtw, "levenshtein": levenshtein, "euclidean": euclidean}
