"""The abstract unit: an executable definition of what may differ between two inputs.

A unit is one class in one file of this package. It states what is protected, enumerates neighbors,
and answers for itself wherever units are told apart: conversion, the ledger, audits. ``index.json``
says which file defines which, so that one is found without loading all; ``make generate`` writes
it.
"""

from __future__ import annotations

import abc
import inspect
import itertools
import math
import pkgutil
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

from tempriv.errors import UsageError, require
from tempriv.privacy.serialization import IndexEntry, read_index, spec_name

Example = tuple[Any, ...]
Pair = tuple[Example, Example]

MAX_LISTED_NEIGHBORS = 512  # of one example, that are compared to find the worst pairs


Relation = Literal["replace-one", "add-or-remove-one", "swap", "move"]
"""How neighbors differ: other values, one person there or not, places traded, other times."""


class ChangeLimits(NamedTuple):
    """How much the readings of a series change: one of them, all together, up and down or not."""

    per_step: float
    total: Fraction
    signed: bool


class Unit(abc.ABC):
    """The relation between two inputs that a guarantee speaks of.

    An example input is a tuple of readings in time order (for ``Person``, a tuple of such series).
    A unit is a frozen dataclass that states ``readings`` and ``sentence`` and implements
    ``_candidates`` and ``_covers``. The rest has defaults that are safe: a unit that does not say
    how it converts does not convert.
    """

    relation: ClassVar[Relation] = "replace-one"
    """How two neighbors differ."""
    beyond: ClassVar[str] = "nothing is guaranteed"
    """What to say of a whole series, where ``of_series`` is None."""
    about_order: ClassVar[bool] = False
    """Readings keep their values: neighbors are two readings, up to ``reach`` apart, exchanged."""
    about_times: ClassVar[bool] = False
    """Readings keep their values: neighbors differ in the times at the end of each row."""
    single_rows: ClassVar[bool] = False
    """The guarantee is about one output row seen by itself, and does not add up over rows."""
    scattered: ClassVar[bool] = False
    """The readings that change together may lie anywhere in the series."""
    counts_people: ClassVar[bool] = False
    """Readings are counts or sums over many people, of which one person changes a little."""

    about_marks: ClassVar[bool] = False
    """Readings are the same: neighbors differ in which of them are landmarks."""
    names_landmarks: ClassVar[bool] = False
    """What is covered depends on which readings a release names as landmarks."""

    @property
    @abc.abstractmethod
    def readings(self) -> int:
        """How many readings at most differ between two neighbors."""

    @property
    @abc.abstractmethod
    def sentence(self) -> str:
        """What is protected, to be read after the word 'protects'."""

    @abc.abstractmethod
    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        """Every neighbor with readings of the alphabet; repeated ones and the example may occur."""

    @abc.abstractmethod
    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        """Whether two inputs of one length are neighbors, given the places where they differ."""

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        """Every neighbor of an example input, each once.

        Parameters:
            example: readings in time order.
            alphabet: the readings that a neighbor may have instead.
        """
        seen = {example}
        for other in self._candidates(example, alphabet):
            if other not in seen:
                seen.add(other)
                yield other

    def are_neighbors(self, example: Example, other: Example) -> bool:
        """Whether the unit covers the difference between two inputs.

        Parameters:
            example: readings in time order.
            other: the input it is compared with.
        """
        if len(example) != len(other):
            return False
        changed = [i for i, (a, b) in enumerate(zip(example, other, strict=True)) if a != b]
        return self._covers(example, other, changed)

    # conversion

    @property
    def width(self) -> int | None:
        """Within how many consecutive steps all readings that differ lie; None: anywhere."""
        return None

    def conversion_factor(self, to: Unit) -> int | None:
        """How many neighbors by this unit must be chained to reach any neighbor by another.

        Parameters:
            to: the unit that a guarantee is restated for.

        Returns:
            The number of links, or None when no chain leads there.

        >>> from tempriv.privacy.units import Event, Window
        >>> Event().conversion_factor(Window(24)), Window(24).conversion_factor(Event())
        (24, 1)
        """
        return self._factor_to_same(to) if isinstance(to, type(self)) else to._factor_from(self)

    def _factor_to_same(self, to: Self) -> int | None:
        """The factor to a unit of the same class."""
        return 1 if self == to else None

    def _factor_from(self, unit: Unit) -> int | None:
        """The factor from a unit of another class, which is asked unless this one knows."""
        return unit._factor_to(self)

    def _factor_to(self, to: Unit) -> int | None:
        """The factor to a unit of another class."""
        return None

    def of_series(self, length: int) -> Unit | None:
        """What a whole series of at most so many readings is; None: nothing protects that.

        Parameters:
            length: readings.

        >>> from tempriv.privacy.units import Swap, Window
        >>> Window(24).of_series(672), Swap(24).of_series(672)
        (WholeSeries(length=672), None)
        """
        from tempriv.privacy.units.replacement import WholeSeries

        return WholeSeries(length)

    def of_person(self, length: int) -> Unit | None:
        """What a whole person is; None: how many series one has is not known.

        Parameters:
            length: readings of a series at most.
        """
        return None

    def covers_series(self, length: int | None) -> bool:
        """Whether everything in a series lies within what is covered.

        Parameters:
            length: readings of the series at most; None: any number.
        """
        if length is None:
            return self.max_length is not None
        whole = self.of_series(length)
        return whole is not None and self.conversion_factor(whole) == 1

    # composition, in the ledger

    @property
    def reach(self) -> int | None:
        """Over how many further steps two readings can change together; None: over any.

        >>> from tempriv.privacy.units import Event, Swap, WholeSeries, Window
        >>> [unit.reach for unit in (Event(), Window(24), Swap(24), WholeSeries(100))]
        [0, 23, 23, None]
        """
        return None if self.width is None else self.width - 1

    @property
    def covered_steps(self) -> int | None:
        """How many consecutive time steps it covers at once; None: steps do not measure it.

        >>> from tempriv.privacy.units import Event, WholeSeries, Window
        >>> [unit.covered_steps for unit in (Event(), Window(24), WholeSeries(100))]
        [1, 24, None]
        """
        return None

    def over_steps(self, steps: int) -> Unit | None:
        """The unit that covers so many consecutive steps instead; None: there is none.

        Parameters:
            steps: how many, at least 1.

        >>> from tempriv.privacy.units import Event, WithinDistance
        >>> Event().over_steps(24), WithinDistance(5.0).over_steps(24)
        (Window(length=24), None)
        """
        return self if steps == self.covered_steps else None

    @property
    def links_when_cut(self) -> int:
        """How many neighbors must be chained when only a part of a step's raw data changes."""
        return 1

    @property
    def blocks(self) -> tuple[int, int] | None:
        """The length and the offset of blocks of steps that no neighbor leaves; None: no blocks."""
        return None

    @property
    def max_length(self) -> int | None:
        """The length of the longest series that it speaks of; None: any length."""
        return None

    @property
    def positions_per_person(self) -> int:
        """At how many unrelated positions neighbors can differ: one in each series of a person."""
        return 1

    @property
    def within_one_series(self) -> bool:
        """Whether two neighbors surely differ in one series only."""
        return True

    @property
    def per_series(self) -> Unit:
        """What is covered within one series."""
        return self

    def unaligned(self) -> Unit:
        """The unit as it adds up over releases whose windows, or landmarks, are not the same."""
        return self

    @property
    def limit_refusal(self) -> str | None:
        """Why a ledger cannot limit the loss of this unit, after ``unit=...: ``; None: it can."""
        return None

    # sensitivity

    def change_limits(self, steps: int, bounds: tuple[float, float]) -> ChangeLimits:
        """How much the readings of a series can change between neighbors.

        Parameters:
            steps: how many consecutive readings change.
            bounds: the least and the greatest reading.

        Raises:
            UsageError: if differences of readings do not describe the unit.
        """
        raise UsageError(
            f"unit={self!r}: must be Event, Window, WholeSeries, Person or Contribution"
        )

    # audits

    def changed_readings(self, length: int) -> int:
        """How many readings of a series of that ``length`` may change."""
        return min(self.readings, length)

    def audit_lengths(self, most: int) -> range:
        """How long a series must be to show what is covered: at least, and all of it.

        Parameters:
            most: readings that an audit can take.
        """
        length = self.changed_readings(most)
        return range(length, length + 1)

    @property
    def audit_grid(self) -> float | None:
        """A coarse grid that tells the extremes apart; None: as the bounds of readings say."""
        return None

    def extreme_rows(self, columns: Sequence[tuple[Any, ...]]) -> tuple[Hashable, ...]:
        """Readings that differ the most, all columns at once.

        Parameters:
            columns: for each column the least and the greatest reading, and a threshold between
                them if there is one.
        """
        points = [
            tuple(dict.fromkeys(x for x in column if column[0] <= x <= column[1]))
            for column in columns
        ]
        if len(points) == 1:
            return points[0]
        return tuple(dict.fromkeys(itertools.zip_longest(*points, fillvalue=points[0][0])))

    def series_of(self, example: Example) -> tuple[Example, ...]:
        """The series that an ``example`` consists of."""
        return (example,)

    def example_of(self, series: Sequence[Example]) -> Example:
        """An example input from as many ``series`` as there are positions for a person."""
        return series[0]

    def patterns(self, extremes: Sequence[Hashable], length: int) -> list[Example]:
        """Series of two values: all the same, alternating, and with the first or last changed.

        Parameters:
            extremes: readings that differ the most.
            length: how many readings a series has.
        """
        changed = self.changed_readings(length)
        series: list[Example] = []
        for a, b in itertools.permutations(extremes, 2):
            series.append((a,) * length)
            series.append(tuple(itertools.islice(itertools.cycle((a, b)), length)))
            series.append((b,) * changed + (a,) * (length - changed))
            series.append((a,) * (length - changed) + (b,) * changed)
        return list(dict.fromkeys(series))

    def worst_pairs(self, extremes: Sequence[Hashable], length: int) -> list[Pair]:
        """Neighboring inputs for audits: what differs most, which is told apart best, first.

        Parameters:
            extremes: readings that differ the most.
            length: how many readings a series has.
        """
        examples = [
            self.example_of([series] * self.positions_per_person)
            for series in self.patterns(extremes, length)
        ]
        pairs: dict[frozenset[Example], Pair] = {}
        few = len(extremes) ** self.changed_readings(length) <= MAX_LISTED_NEIGHBORS
        for example in examples:
            known = (other for other in examples if self.are_neighbors(example, other))
            listed = self.neighbors(example, extremes) if few else ()
            for other in itertools.chain(known, listed):
                if other != example:
                    pairs.setdefault(frozenset((example, other)), (example, other))
        return sorted(pairs.values(), key=_similarity)

    def replaced_steps(self, landmarks: Sequence[int]) -> list[int]:
        """Which readings of a series change together in the worst case.

        Parameters:
            landmarks: 1 for a reading that is a landmark, 0 for another.
        """
        return list(range(self.changed_readings(len(landmarks))))

    def slots(self, example: Example, other: Example) -> list[int] | None:
        """The output rows that an attacker sees, one at a time; None: all of them together.

        Parameters:
            example: an input.
            other: its neighbor.
        """
        return None


def conversion_factor(from_: Unit, to: Unit) -> int | None:
    """How many times neighbors by ``from_`` must be chained to reach any neighbor by ``to``.

    None when no chain does, so that what cannot be converted is refused and never ignored.

    >>> from tempriv.privacy.units import Event, WithinDistance
    >>> conversion_factor(WithinDistance(100.0), Event()) is None
    True
    """
    return from_.conversion_factor(to)


@dataclass(frozen=True, kw_only=True)
class UnitEntry(IndexEntry):
    """Where a unit is defined, and what must be known of it before it is loaded.

    Parameters:
        about_order: as the class says.
        single_rows: as the class says.
    """

    about_order: bool
    single_rows: bool

    @classmethod
    def of(cls, unit: type[Unit]) -> UnitEntry:
        """The entry of a ``unit``."""
        return cls(
            kind=unit.__name__,
            spec_name=spec_name(unit),
            module=unit.__module__,
            about_order=unit.about_order,
            single_rows=unit.single_rows,
        )


INDEX = Path(__file__).with_name("index.json")


def _loaded_units() -> list[type[Unit]]:
    """The units whose modules are loaded, those of other packages too."""
    units = []
    waiting = Unit.__subclasses__()
    while waiting:
        kind = waiting.pop(0)
        waiting[:0] = kind.__subclasses__()
        if not inspect.isabstract(kind):
            units.append(kind)
    return units


def unit_entries() -> tuple[UnitEntry, ...]:
    """All units: those of this package, then those of others that are loaded."""
    own = read_index(INDEX, UnitEntry)
    names = {entry.kind for entry in own}
    others = [UnitEntry.of(kind) for kind in _loaded_units() if kind.__name__ not in names]
    return (*own, *others)


def units_named(names: Collection[str]) -> tuple[type[Unit], ...]:
    """The units that have these names in files; loads no others.

    Parameters:
        names: as ``serialization.spec_names`` lists them.

    >>> [unit.__name__ for unit in units_named(["Near", "Pure"])]
    ['WithinDistance']
    """
    for entry in read_index(INDEX, UnitEntry):
        if entry.spec_name in names:
            entry.load()
    return tuple(kind for kind in _loaded_units() if spec_name(kind) in names)


def all_units() -> tuple[type[Unit], ...]:
    """The classes of all units; loads every one of them."""
    return units_named([entry.spec_name for entry in unit_entries()])


def discover_units() -> list[UnitEntry]:
    """The units that the files of this package define, by name; loads all of them."""
    package = import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    entries = [UnitEntry.of(kind) for kind in _loaded_units()]
    own = [entry for entry in entries if entry.module.startswith(f"{__package__}.")]
    return sorted(own, key=lambda entry: entry.kind)


def cells(row: Any) -> tuple[Any, ...]:
    """The columns of a ``row``, which may be a single value."""
    return row if isinstance(row, tuple) else (row,)


def replacements(
    example: Example, places: Sequence[int], choices: Sequence[Sequence[Any]]
) -> Iterator[Example]:
    """The example with every combination of other readings at some places.

    Parameters:
        example: readings in time order.
        places: which of them are replaced.
        choices: for each place, the readings it may have.
    """
    for values in itertools.product(*choices):
        changed = list(example)
        for place, value in zip(places, values, strict=True):
            changed[place] = value
        yield tuple(changed)


def require_whole(name: str, value: Any, least: int, what: str) -> None:
    """Refuse a ``value`` that is no whole number of ``what``, or below the ``least``.

    Parameters:
        name: the parameter, for the message.
    """
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{name}={value}: must be a whole number of {what} >= {least}",
    )


def links(want: float, have: float) -> int:
    """How many moves of at most ``have`` make one of ``want``."""
    return math.ceil(Fraction(want) / Fraction(have))


def power_of_two_below(x: float) -> float:
    """The largest power of two that is at most ``x``."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def _numbers(example: Any) -> Iterator[float]:
    for part in cells(example):
        if isinstance(part, tuple):
            yield from _numbers(part)
        else:
            yield float(part)


def _similarity(pair: Pair) -> tuple[int, float]:
    """Least for the pair that differs in the most numbers, and by the most."""
    gaps = [abs(x - y) for x, y in zip(*map(_numbers, pair), strict=True)]
    return -sum(gap > 0 for gap in gaps), -math.hypot(*gaps)
