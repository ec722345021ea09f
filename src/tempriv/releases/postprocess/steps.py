"""Steps that change released values column by column: frozen specs of simple types."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.errors import DataError, extra_packages, require
from tempriv.releases.release import Release

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass
class Values:
    """The numbers of a release, missing ones NaN, and which rows belong together."""

    columns: dict[str, Floats]
    errors: dict[str, float]
    series: list[tuple[str, Integers]]
    times: Integers

    @classmethod
    def of(cls, release: Release) -> Values:
        """The values of a ``release`` of numbers."""
        about, table = release.about, release.table
        made = about["mechanism"]
        require(
            "categories" not in made and "origin" not in made,
            "only releases of numbers can be worked on afterwards, not of categories or places",
            DataError,
        )
        require(
            "budget" not in about,
            "statistics of people have intervals of their own, which this would make wrong",
            DataError,
        )
        require(
            "types" not in about["columns"],
            "rows that were moved in time hold exact values: there is no noise to work on",
            DataError,
        )
        names = about["columns"]["values"]
        arrays = {name: floats_of(table.column(name)) for name in names}
        errors = {entry["column"]: float(entry["error"]) for entry in about["expected_error"]}
        ids = about["columns"]["series"]
        if ids is None:
            series = [("", np.arange(table.num_rows))]
        else:
            known = table.column(ids).to_pylist()
            number = {name: i for i, name in enumerate(dict.fromkeys(known))}
            codes = np.array([number[name] for name in known], dtype=np.int64)
            order = np.argsort(codes, kind="stable")
            cuts = np.flatnonzero(np.diff(codes[order])) + 1
            parts = np.split(order, cuts)
            series = [(str(name), rows) for name, rows in zip(number, parts, strict=True)]
        return cls(arrays, errors, series, _times(about, table, series))


def floats_of(column: Any) -> Floats:
    """A ``column`` as floats, NaN where it is null."""
    numbers = column.cast(pa.float64()).to_numpy()
    return np.array(numbers, dtype=np.float64)


def _times(about: Any, table: Any, series: list[tuple[str, Integers]]) -> Integers:
    """A number for each row, the same for rows at the same time."""
    names = about["columns"]["time"]
    codes = np.zeros(table.num_rows, dtype=np.int64)
    if not names:
        for _, rows in series:
            codes[rows] = np.arange(len(rows))
        return codes
    for name in names:
        seen, code = np.unique(table.column(name).to_numpy(), return_inverse=True)
        codes = codes * len(seen) + code
    return codes


class Step(Protocol):
    """One thing that is done with released values: a frozen spec of simple types."""

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        ...

    @property
    def settles(self) -> bool:
        """Whether doing it a second time changes nothing more."""
        ...

    def change(self, values: Values) -> None:
        """Bring ``values`` up to date; what is missing stays missing."""


def columns_of(step: Any, values: Values) -> list[str]:
    """The columns of ``values`` that a ``step`` changes."""
    if step.columns is None:
        return list(values.columns)
    require_columns(values, step.columns)
    return list(step.columns)


def require_columns(values: Values, wanted: Sequence[str]) -> None:
    """Refuse ``wanted`` columns that ``values`` does not have."""
    for name in wanted:
        known = ", ".join(values.columns)
        require(name in values.columns, f"no value column {name!r}; there are {known}", DataError)


def name_columns(step: Any, sentence: str) -> str:
    """The ``sentence`` of a ``step``, with the columns that it is about."""
    return sentence if step.columns is None else f"{', '.join(step.columns)}: {sentence}"


def names_to_tuple(step: Any) -> None:
    """Make the columns of a ``step`` a tuple, as lists come from JSON and from users."""
    if step.columns is not None:
        names = (step.columns,) if isinstance(step.columns, str) else tuple(step.columns)
        object.__setattr__(step, "columns", names)


@dataclass(frozen=True, kw_only=True)
class Smooth:
    """An average over a window of steps about each, or one that forgets exponentially."""

    window: int | None = None
    weight: float | None = None
    columns: tuple[str, ...] | None = None

    settles: ClassVar[bool] = False

    def __post_init__(self) -> None:
        names_to_tuple(self)
        require(
            (self.window is None) != (self.weight is None),
            "smooth by a window of steps, or by the weight of each new value: give one of them",
        )
        require(
            self.window is None or (isinstance(self.window, int) and self.window >= 2),
            f"window={self.window}: must be a whole number of steps >= 2",
        )
        require(
            self.weight is None or (isinstance(self.weight, (int, float)) and 0 < self.weight < 1),
            f"weight={self.weight}: must be between 0 and 1",
        )

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        if self.window is not None:
            return name_columns(
                self, f"each value is now the average of {self.window} steps about it"
            )
        return name_columns(
            self,
            f"each value now counts {self.weight:g}, and the smoothed one before it the rest",
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        for name in columns_of(self, values):
            column = values.columns[name]
            for _, rows in values.series:
                column[rows] = self._smoothed(column[rows])

    def _smoothed(self, series: Floats) -> Floats:
        known = ~np.isnan(series)
        out = np.full(len(series), np.nan)
        if self.weight is not None:
            weight = float(self.weight)
            steps = itertools.accumulate(
                series[known].tolist(), lambda before, new: before + weight * (new - before)
            )
            out[known] = list(steps)
            return out
        assert self.window is not None
        # sums of numbers on a power-of-two grid are exact, so a constant stays a constant
        sums = np.append(0.0, np.cumsum(np.where(known, series, 0.0)))
        counts = np.append(0, np.cumsum(known))
        at = np.arange(len(series))
        first = np.maximum(at - self.window // 2, 0)
        last = np.minimum(at + (self.window - 1) // 2 + 1, len(series))
        total, count = sums[last] - sums[first], counts[last] - counts[first]
        out[known] = total[known] / count[known]
        return out


@dataclass(frozen=True, kw_only=True)
class RoundTo:
    """The nearest multiple of a step."""

    step: float
    columns: tuple[str, ...] | None = None

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names_to_tuple(self)
        require(
            isinstance(self.step, (int, float)) and 1e-12 <= self.step <= 1e12,
            f"step={self.step}: must be > 0, such as 0.5",
        )

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        return name_columns(
            self, f"rounded to multiples of {self.step:g}, which moves a value by half that at most"
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        # as a fraction of whole numbers, so that multiples of 0.1 come out as they are written
        exact = Fraction(str(self.step))
        for name in columns_of(self, values):
            steps = np.rint(values.columns[name] * exact.denominator / exact.numerator)
            # no minus zero
            values.columns[name] = steps * exact.numerator / exact.denominator + 0.0


@dataclass(frozen=True, kw_only=True)
class NonNegative:
    """Zero instead of anything below it."""

    columns: tuple[str, ...] | None = None

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names_to_tuple(self)

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        return name_columns(
            self, "values below zero were set to zero, so averages over many values are too high"
        )

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        for name in columns_of(self, values):
            column = values.columns[name]
            values.columns[name] = np.where(column < 0, 0.0, column)


@dataclass(frozen=True, kw_only=True)
class Monotone:
    """The nearest series that never falls (isotonic regression), or never rises."""

    decreasing: bool = False
    columns: tuple[str, ...] | None = None

    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names_to_tuple(self)
        require(
            isinstance(self.decreasing, bool),
            f"decreasing={self.decreasing}: must be True or False",
        )

    @property
    def sentence(self) -> str:
        """What is done, for people."""
        never = "rises" if self.decreasing else "falls"
        return name_columns(self, f"each series was replaced by the nearest one that never {never}")

    def change(self, values: Values) -> None:
        """Carry it out on ``values``."""
        with extra_packages("analysis", "series that only rise or fall"):
            from scipy.optimize import isotonic_regression

        for name in columns_of(self, values):
            column = values.columns[name]
            for _, rows in values.series:
                known = rows[~np.isnan(column[rows])]
                if len(known):
                    fit = isotonic_regression(column[known], increasing=not self.decreasing)
                    column[known] = fit.x
