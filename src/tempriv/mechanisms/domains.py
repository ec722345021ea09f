"""What readings are (numbers, categories, places) and the public grid they are put on.

Whatever comes in, what goes to the mechanism lies within the declared bounds: the guarantee does
not rest on anyone having checked the data before.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block, Bounds, Categories, Flags
from tempriv.errors import DataError, require

if TYPE_CHECKING:  # what only verify needs is loaded by it
    from tempriv.mechanisms.checks import Check, Columns

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Grid = float | tuple[float, ...] | None
"""What may be given for the grid of numbers: for all columns, for each, or nothing."""

FINENESS = 1024
"""Grid steps to the noise scale (or the range, if smaller): rounding adds < 1e-6 of the error."""

LARGEST = 2**52  # grid numbers stay exact as floats
TOO_FINE = "grid: too fine for bounds this far from zero; choose a coarser grid"
EARTH_RADIUS = 6_371_008.8  # meters, the mean radius
ROUNDING_DEGREES = 6e-8  # places are written to seven decimals


ValueKind = Literal["numbers", "categories", "places", "rows", "alerts"]


class Domain(ABC):
    """What readings are: their way onto the public grid, and the way of outputs off it."""

    if TYPE_CHECKING:  # fields of some domains, where a property would stand in their way

        @property
        def kind(self) -> ValueKind:
            """What released values are."""

        @property
        def columns(self) -> int | None:
            """How many columns it is set up for; None takes any number of them."""

        @property
        def bounds(self) -> Bounds | None:
            """What values a column may have, for numbers."""

        @property
        def categories(self) -> Categories | None:
            """What values a column may have, for categories."""

        @property
        def latency(self) -> int:
            """How many steps after its own the output of a step comes."""

        @property
        def marked(self) -> bool:
            """Whether the last column says which rows are landmarks, and does not come out."""

    else:
        kind = "numbers"
        bounds = categories = None
        latency = 0
        marked = False

    @property
    def released(self) -> Domain:
        """The domain of what comes out."""
        return self

    @abstractmethod
    def to_grid(self, values: Floats) -> Integers:
        """Readings as whole numbers within the declared bounds.

        Parameters:
            values: a row for each reading; what stands where one is missing is never looked at.
        """

    @abstractmethod
    def from_grid(self, outputs: Integers) -> Floats:
        """Released values of whole numbers; sees nothing private.

        Parameters:
            outputs: what a mechanism made of readings.
        """

    def missing_after(self, missing: Flags) -> Flags:
        """Which outputs are missing.

        Parameters:
            missing: which readings are.
        """
        return missing

    def require_marks(self, block: Block) -> None:
        """Refuse readings whose marks as landmarks are missing, where there are marks.

        Parameters:
            block: readings, as they came in.
        """
        return

    def check_values(self, columns: Columns) -> Check | None:
        """Whether released values are such as can come out, for ``tempriv verify``.

        Parameters:
            columns: released values as Arrow columns.

        Returns:
            None if values lie on no grid.
        """
        return None


def positive(name: str, value: object) -> None:
    """Refuse what is no number above zero.

    Parameters:
        name: of the argument.
        value: what was given for it.
    """
    require(
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 < value <= sys.float_info.max,
        f"{name}={value}: must be > 0",
    )


def is_whole(value: object, least: int, most: int | None) -> bool:
    """Whether a value is a whole number within some range.

    Parameters:
        value: what was given.
        least: the smallest that is good.
        most: the largest; None for no limit.
    """
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and least <= value
        and (most is None or value <= most)
    )


def whole_or_none(name: str, value: object, least: int, most: int) -> None:
    """Refuse what is neither None nor a whole number within some range.

    Parameters:
        name: of the argument.
        value: what was given for it.
        least: the smallest that is good.
        most: the largest.
    """
    require(
        value is None or is_whole(value, least, most),
        f"{name}={value!r}: must be a whole number from {least} to {most}",
    )


def floats_of(given: Any, count: int) -> tuple[float, ...]:
    """As many numbers as asked for, or NaN for each if something else was given.

    Parameters:
        given: what was given.
        count: how many numbers it should be.
    """
    try:
        numbers = tuple(map(float, given))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    return numbers if len(numbers) == count else (math.nan,) * count


def gains_of(given: object, example: str) -> tuple[float, ...]:
    """The three weights of a controller.

    Parameters:
        given: what was given for them.
        example: such as ``(0.9, 0.1, 0)``, for a refusal.
    """
    gains = floats_of(given, 3)
    require(
        all(0 <= gain <= 1e6 for gain in gains),
        f"gains={given!r}: must be three numbers from 0 to a million, such as {example}",
    )
    return gains


def one_budget(epsilon: float | None, rho: float | None) -> None:
    """For mechanisms that take either noise: refuse none and both.

    Parameters:
        epsilon: for Laplace noise.
        rho: for Gaussian noise.
    """
    require(
        epsilon is not None or rho is not None,
        "epsilon=None: must be a number > 0, for Laplace noise; or rho=None: must be one, for "
        "Gaussian noise",
    )
    for name, value in (("epsilon", epsilon), ("rho", rho)):
        if value is not None:
            positive(name, value)
    require(
        epsilon is None or rho is None,
        f"epsilon={epsilon}: must be left out when rho is given; noise is Laplace's or Gauss's",
    )


def power_of_two_below(x: float) -> float:
    """The largest power of two that is no larger than ``x``."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def bounds_of(given: Any) -> Bounds:
    """One (low, high) pair, or a pair for each column, as a tuple of pairs.

    Parameters:
        given: what was given for bounds.

    >>> bounds_of((0, 5))
    ((0.0, 5.0),)
    """
    try:
        if not isinstance(given[0], (list, tuple)):
            given = (given,)
        pairs = tuple((float(low), float(high)) for low, high in given)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError):
        pairs = ()
    require(bool(pairs), f"bounds={given!r}: must be (low, high), or such a pair for each column")
    for low, high in pairs:
        require(
            math.isfinite(low) and math.isfinite(high) and low < high,
            f"bounds={low:g} {high:g}: must be two finite numbers, the lower first",
        )
        require(
            1e-150 < high - low < 1e150 and max(abs(low), abs(high)) < 1e150,
            f"bounds={low:g} {high:g}: must be numbers between 1e-150 and 1e150 apart; use another "
            "unit of measurement",
        )
    return pairs


def grids_of(given: Grid, bounds: Bounds, scale_to_range: float) -> tuple[float, ...]:
    """The grid of each column: as given, or fine enough to vanish beside the noise.

    Parameters:
        given: what was given for it.
        bounds: of the columns.
        scale_to_range: the size of the noise as a part of the range.
    """
    if given is None:
        return tuple(
            power_of_two_below((high - low) * min(1.0, scale_to_range) / FINENESS)
            for low, high in bounds
        )
    grids = tuple(given) if isinstance(given, (list, tuple)) else (given,) * len(bounds)
    require(
        len(grids) == len(bounds),
        f"grid={given}: must be one for all columns, or one for each of the {len(bounds)}",
    )
    for grid, (low, high) in zip(grids, bounds, strict=True):
        power_of_two(grid)
        require(max(abs(low), abs(high)) / grid < LARGEST, TOO_FINE)
        require(
            high - low >= grid and round(high / grid) > round(low / grid),
            f"grid={grid:g}: must be finer for the bounds {low:g} {high:g}",
        )
    return tuple(float(grid) for grid in grids)


def power_of_two(grid: float) -> None:
    """Refuse a ``grid`` that is no power of two."""
    positive("grid", grid)
    require(math.frexp(grid)[0] == 0.5, f"grid={grid:g}: must be a power of two, such as 0.25")


@dataclass(frozen=True)
class Numbers(Domain):
    """Bounded numbers, one or more columns, each on a grid of its own.

    Parameters:
        bounds: smallest and largest possible value of each column.
        grids: of the columns.
        exact: whether readings must lie on the grid as they come. Counts must: rounding would
            change every cell of a row and so add to what one person changes.
    """

    bounds: Bounds = field()
    grids: tuple[float, ...]
    exact: bool = False

    def __post_init__(self) -> None:
        require(
            all(
                grid > 0 and abs(edge) / grid < LARGEST
                for pair, grid in self._columns()
                for edge in pair
            ),
            TOO_FINE,
        )

    def _columns(self) -> Sequence[tuple[tuple[float, float], float]]:
        return list(zip(self.bounds, self.grids, strict=True))

    @property
    def columns(self) -> int:
        return len(self.bounds)

    def edges(self) -> Integers:
        """The bounds in grid steps, a row for each column."""
        return np.array(
            [[round(low / grid), round(high / grid)] for (low, high), grid in self._columns()]
        )

    @property
    def widths(self) -> list[int]:
        """What one reading can change, in grid steps: the sensitivity, rounding included."""
        return [int(high - low) for low, high in self.edges()]

    def to_grid(self, values: Floats) -> Integers:
        """The ``values`` in grid steps, within the bounds."""
        low, high = self.edges().T
        # clipping twice: as floats, so that the conversion cannot overflow, and as integers,
        # because only the integers' range is what the noise was measured for
        grids = np.array(self.grids)
        require(
            not self.exact or not (np.clip(values, low * grids, high * grids) % grids).any(),
            f"a count is no multiple of {', '.join(f'{grid:g}' for grid in self.grids)}, the grid: "
            "count events with tempriv.aggregate, which keeps to it",
            DataError,
        )
        rounded = np.rint(np.clip(values, low * grids, high * grids) / grids).astype(np.int64)
        return np.asarray(np.clip(rounded, low, high))

    def from_grid(self, outputs: Integers) -> Floats:
        """What ``outputs`` stand for."""
        return np.asarray(outputs * np.array(self.grids))

    def check_values(self, columns: Columns) -> Check:
        """Whether all values of ``columns`` are such as can come out."""
        return _on_grid(columns, self.grids)


def _on_grid(columns: Columns, grids: Sequence[float]) -> Check:
    from tempriv.mechanisms.checks import Check

    steps = [
        np.asarray(column.drop_null()) / grid for column, grid in zip(columns, grids, strict=True)
    ]
    return Check(
        "every value lies on the public grid",
        all(bool((np.isfinite(step) & (step == np.rint(step))).all()) for step in steps),
        f"grid {', '.join(f'{grid:g}' for grid in grids)}",
    )


@dataclass(frozen=True)
class FromNumbers(Domain):
    """Something made of numbers.

    Parameters:
        numbers: what comes in.
    """

    numbers: Numbers

    @property
    def columns(self) -> int:
        return self.numbers.columns

    @property
    def bounds(self) -> Bounds:
        """Of what comes in."""
        return self.numbers.bounds

    def to_grid(self, values: Floats) -> Integers:
        """The ``values`` in grid steps, within the bounds."""
        return self.numbers.to_grid(values)


@dataclass(frozen=True)
class Derived(FromNumbers):
    """Something made of numbers, such as alerts or running sums, on a grid of its own.

    Parameters:
        numbers: what comes in.
        grids: of the columns that come out.
    """

    grids: tuple[float, ...]

    def from_grid(self, outputs: Integers) -> Floats:
        """What ``outputs`` stand for."""
        return np.asarray(outputs * np.array(self.grids))

    def check_values(self, columns: Columns) -> Check:
        """Whether all values of ``columns`` are such as can come out."""
        return _on_grid(columns, self.grids)


@dataclass(frozen=True)
class Categorical(Domain):
    """Categories by number, one or more columns; what is none of them counts as the last.

    Parameters:
        categories: of each column.
    """

    categories: Categories = field()

    kind = "categories"

    @property
    def columns(self) -> int:
        return len(self.categories)

    @property
    def sizes(self) -> Integers:
        """How many categories each column has."""
        return np.array([len(column) for column in self.categories])

    def to_grid(self, values: Floats) -> Integers:
        """The ``values`` in grid steps, within the bounds."""
        known = (values >= 0) & (values < self.sizes)
        return np.asarray(np.where(known, values, self.sizes - 1).astype(np.int64))

    def from_grid(self, outputs: Integers) -> Floats:
        """What ``outputs`` stand for."""
        return outputs.astype(np.float64)

    def check_values(self, columns: Columns) -> Check:
        """Whether all values of ``columns`` are such as can come out."""
        from tempriv.mechanisms.checks import Check

        known = all(
            set(column.unique().to_pylist()) <= {*names, None}
            for column, names in zip(columns, self.categories, strict=True)
        )
        return Check("every value is one of the categories", known, "checked all")


def numbers_of(names: npt.ArrayLike, categories: Categories) -> Floats:
    """Categories by number: -1 for an unknown one, masked for None or where names are masked.

    Parameters:
        names: of one column, or a row of them for each time step.
        categories: of the columns.
    """
    rows: npt.NDArray[np.object_] = np.ma.array(names, dtype=object, ndmin=1)
    rows = rows[:, None] if rows.ndim == 1 else rows
    require(
        rows.ndim == 2, "readings: give one value, or one row of values, per time step", DataError
    )
    codes = [{name: i for i, name in enumerate(column)} for column in categories]
    require(
        rows.shape[1] == len(codes),
        f"{rows.shape[1]} value columns, but there are categories for {len(codes)}",
        DataError,
    )
    data = np.ma.getdata(rows)
    numbers = [[codes[j].get(str(name), -1) for j, name in enumerate(row)] for row in data]
    absent = np.array([[name is None for name in row] for row in data], dtype=np.bool_)
    missing = np.ma.getmaskarray(rows) | absent.reshape(rows.shape)
    masked: Floats = np.ma.array(
        np.array(numbers, dtype=np.float64).reshape(rows.shape), mask=missing
    )
    return masked


def names_of(block: Block, categories: Categories) -> npt.NDArray[np.object_]:
    """The names of released categories, None where missing.

    Parameters:
        block: released rows.
        categories: of its columns.
    """
    names = np.empty(block.values.shape, dtype=object)
    for j, column in enumerate(categories):
        known = np.array([*column, None], dtype=object)
        names[:, j] = known[np.where(block.missing[:, j], -1, block.values[:, j].astype(np.int64))]
    return names


@dataclass(frozen=True)
class OpaqueRows(Domain):
    """Whole rows, of any number of columns of any kind, that are moved in time and never changed.

    Parameters:
        reach: how many steps after it came in a row can still come out.
        latency: how many steps after its own the slot of a step comes out.
    """

    reach: int
    latency: int = 0

    kind = "rows"
    columns = None

    def to_grid(self, values: Floats) -> Integers:
        """Nothing of ``values``: which row goes where does not depend on what is in it."""
        return np.zeros((len(values), 0), dtype=np.int64)

    def from_grid(self, outputs: Integers) -> Floats:
        """Not known of ``outputs`` before rows are carried."""
        raise NotImplementedError("rows are carried by tempriv.mechanisms.reorder.carry")

    def missing_after(self, missing: Flags) -> Flags:
        """Not known of ``missing`` rows before they are carried."""
        raise NotImplementedError("rows are carried by tempriv.mechanisms.reorder.carry")


@dataclass(frozen=True)
class Locations(Domain):
    """Latitude and longitude in degrees, on a lattice of meters about a public origin.

    The projection is equirectangular: meters are true at the origin's latitude, and within 1 % of
    true some 60 kilometers north or south of it at middle latitudes.

    Parameters:
        origin: a public place, its latitude and longitude in degrees.
        grid: of the lattice, in meters.
    """

    origin: tuple[float, float]
    grid: float

    kind = "places"
    bounds = ((-90.0, 90.0), (-180.0, 180.0))
    columns = 2

    @property
    def _meters_per_degree(self) -> Floats:
        north = math.radians(EARTH_RADIUS)
        return np.array([north, north * math.cos(math.radians(self.origin[0]))])

    def to_grid(self, values: Floats) -> Integers:
        """The ``values`` in grid steps, within the bounds."""
        low, high = np.array(self.bounds).T
        degrees = np.clip(values, low, high) - np.array(self.origin)
        degrees[:, 1] = (degrees[:, 1] + 180) % 360 - 180  # the short way round
        steps = np.rint(degrees * self._meters_per_degree / self.grid)
        return np.asarray(steps.astype(np.int64))

    def from_grid(self, outputs: Integers) -> Floats:
        """What ``outputs`` stand for."""
        meters = np.asarray(outputs * self.grid, dtype=np.float64)
        return np.asarray(np.round(self.degrees(meters), 7))  # a centimetre

    def degrees(self, meters: Floats) -> Floats:
        """Latitude and longitude of places.

        Parameters:
            meters: north and east of the origin.
        """
        return np.asarray(meters / self._meters_per_degree + np.array(self.origin))

    def check_values(self, columns: Columns) -> Check:
        """Whether all values of ``columns`` are such as can come out."""
        from tempriv.mechanisms.checks import Check

        places = np.stack([column.drop_null().to_numpy() for column in columns], axis=1)
        off = np.abs(self.from_grid(self.to_grid(places)) - places)
        return Check(
            "every place lies on the lattice",
            bool((off < ROUNDING_DEGREES).all()),
            f"grid {self.grid:g} meters",
        )

    def missing_after(self, missing: Flags) -> Flags:
        """Those ``missing`` in part too: half a location is none."""
        return np.repeat(missing.any(axis=1, keepdims=True), 2, axis=1)
