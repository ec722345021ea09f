"""Released totals and their released parts, changed as little as possible so that they add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tempriv.errors import DataError, extra_packages, require
from tempriv.releases.postprocess.steps import (
    Floats,
    Values,
    columns_of,
    name_columns,
    names_to_tuple,
    require_columns,
)


@dataclass(frozen=True, kw_only=True)
class ColumnTotals:
    """Parts and their total in one row, changed as little as possible so that they add up."""

    total: str
    parts: tuple[str, ...]

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        require(
            len(self.parts) >= 1 and self.total not in self.parts,
            f"parts={list(self.parts)}: must be columns other than the total, at least one",
        )
        require(len(set(self.parts)) == len(self.parts), "parts: name each only once")

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        return (
            f"{self.total} and {', '.join(self.parts)} were changed as little as possible so that "
            "the first is the sum of the others, except where one of them is missing"
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        require_columns(values, [self.total, *self.parts])
        weights = _weights(values, [*self.parts, self.total])
        parts = np.stack([values.columns[name] for name in self.parts], axis=1)
        total = values.columns[self.total]
        off = total - parts.sum(axis=1)
        known = ~np.isnan(off)
        parts[known] += np.outer(off[known], weights[:-1])
        total[known] = parts[known].sum(axis=1)
        for i, name in enumerate(self.parts):
            values.columns[name] = parts[:, i]


def _weights(values: Values, names: Sequence[str]) -> Floats:
    """What part of a mismatch each column takes: its noise's part of the variance."""
    variances = np.array([values.errors[name] ** 2 for name in names])
    if variances.sum() == 0:
        variances = np.ones(len(names))
    return np.asarray(variances / variances.sum())


@dataclass(frozen=True, kw_only=True)
class SeriesTotals:
    """Series and the series of their total, changed as little as possible so that they add up."""

    total: str
    columns: tuple[str, ...] | None = None

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names_to_tuple(self)

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        return name_columns(
            self,
            f"series were changed as little as possible so that series {self.total} is the sum of "
            "all others, except at times where one of them is missing",
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        ids = [name for name, _ in values.series]
        require(
            self.total in ids and len(ids) >= 2,
            f"no series {self.total!r} that could be the total of others",
            DataError,
        )
        moments, places = np.unique(values.times, return_inverse=True)
        for name in columns_of(self, values):
            column = values.columns[name]
            square = np.full((len(moments), len(ids)), np.nan)
            for i, (_, rows) in enumerate(values.series):
                square[places[rows], i] = column[rows]
            last = ids.index(self.total)
            parts = np.delete(square, last, axis=1)
            off = square[:, last] - parts.sum(axis=1)
            known = ~np.isnan(off)
            parts[known] += off[known, None] / len(ids)
            square[known, last] = parts[known].sum(axis=1)
            square[:, [i for i in range(len(ids)) if i != last]] = parts
            for i, (_, rows) in enumerate(values.series):
                column[rows] = square[places[rows], i]


@dataclass(frozen=True, kw_only=True)
class WindowTotals:
    """A column and another with its sums over the last ``window`` steps, made to add up.

    Sums may stand in every row or in some, such as the last hour of each day.
    """

    total: str
    part: str
    window: int

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(self.total != self.part, "the part and its sums must be two columns")
        require(
            isinstance(self.window, int) and self.window >= 2,
            f"window={self.window}: must be a whole number of steps >= 2",
        )

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        return (
            f"{self.part} and {self.total} were changed as little as possible so that the second "
            f"is the sum of the last {self.window} values of the first, except where one of these "
            "is missing"
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        require_columns(values, [self.total, self.part])
        weights = _weights(values, [self.part, self.total])
        part, total = values.columns[self.part], values.columns[self.total]
        for _, rows in values.series:
            part[rows], total[rows] = self._fitted(part[rows], total[rows], weights)

    def _fitted(self, part: Floats, total: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Weighted least squares: minimize |x - part|^2 / v + |sums of x - total|^2 / w."""
        with extra_packages("analysis", "sums of columns"):
            from scipy.linalg import solveh_banded

        window, n = self.window, len(part)
        known = ~np.isnan(part)
        counts = np.append(0, np.cumsum(known))
        ends = np.arange(n)
        starts = np.maximum(ends - window + 1, 0)
        active = (
            (ends >= window - 1) & ~np.isnan(total) & (counts[ends + 1] - counts[starts] == window)
        )
        if not active.any():
            return part, total
        # row i meets row i + d in the windows that end from i + d to i + window - 1
        ratio = weights[0] / weights[1] if weights[1] else 1e12
        ended = np.append(0, np.cumsum(active))
        summed = np.append(0.0, np.cumsum(np.where(active, total, 0.0)))
        bands = np.zeros((window, n))
        stop = np.minimum(ends + window, n)
        for d in range(min(window, n)):
            meet = ended[stop[: n - d]] - ended[ends[: n - d] + d]
            bands[d, : n - d] = ratio * meet
        bands[0] += 1.0
        right = np.where(known, part, 0.0) + ratio * (summed[stop] - summed[ends])
        solution = solveh_banded(bands, right, lower=True)
        fitted = np.where(known, solution, np.nan)
        sums = np.append(0.0, np.cumsum(np.where(known, solution, 0.0)))
        return fitted, np.where(active, sums[ends + 1] - sums[starts], total)


def totals(
    total: str,
    parts: Sequence[str] | None = None,
    window: int | None = None,
    columns: tuple[str, ...] | None = None,
) -> ColumnTotals | SeriesTotals | WindowTotals:
    """The step that makes ``total`` add up: over ``parts``, a ``window``, or ``columns``."""
    if parts is None:
        require(window is None, "window: goes with the column that the sums are of, in parts")
        return SeriesTotals(total=total, columns=columns)
    require(columns is None, "columns: the parts are named already; leave it out")
    parts = (parts,) if isinstance(parts, str) else tuple(parts)
    if window is None:
        return ColumnTotals(total=total, parts=parts)
    require(len(parts) == 1, "window: goes with one column, the one that the sums are of")
    return WindowTotals(total=total, part=parts[0], window=window)
