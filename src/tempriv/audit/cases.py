"""Inputs that audits run on: extreme readings, the neighboring pairs they make, small copies."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tempriv.audit import exact
from tempriv.audit.cases_marked import marked_pairs, marked_rows, over_of
from tempriv.errors import DataError, TemprivError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows, power_of_two_below
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.reorder.distributions import FreeSlots, TieDistribution, WindowDistribution
from tempriv.mechanisms.retime.domains import Smoothed, Timed
from tempriv.privacy.guarantees import Guarantee
from tempriv.privacy.units import Answers, Contribution, Person, Unit, WithinDistance
from tempriv.privacy.units.landmarks import Landmarks
from tempriv.privacy.units.order import BlockSwap, Example, SlotOrigin, Swap
from tempriv.privacy.units.time import TIME, Pace, Timestamps
from tempriv.sampling.distributions import (
    DiscreteGaussian,
    DiscreteLaplace,
    Distribution,
    PlanarLattice,
    Staircase,
    Varying,
)

Pair = tuple[Example, Example]

MOST_PAIRS = 4
MOST_READINGS = 24  # of a series, where readings are independent of each other
MOST_REMEMBERED = 8  # where they are not
MOST_ENUMERATED = 5
MOST_SLOTS = 256  # of a series of which one slot is looked at
MOST_TOLD_APART = 8  # readings that all differ; in longer series those that trade places do
MOST_LISTED = 512
MOST_PATHS = 30_000  # some seconds
PROBES = 30
TAILS = (1e-12, 1e-9, 1e-6)


def unit_of(mechanism: Mechanism) -> Unit:
    promise = mechanism.guarantee
    require(isinstance(promise, Guarantee), "nothing is guaranteed, so there is nothing to audit")
    assert isinstance(promise, Guarantee)
    return promise.unit


def promised_unit(mechanism: Mechanism) -> Unit:
    """The unit of the guarantee, or the mechanism's own where nothing is guaranteed."""
    promise = mechanism.guarantee
    return promise.unit if isinstance(promise, Guarantee) else mechanism.unit


def length_of(mechanism: Mechanism) -> int:
    """How long a series to audit: what the unit covers, and more where readings are remembered."""
    unit = unit_of(mechanism)
    if isinstance(mechanism.domain, OpaqueRows):
        return order_lengths(unit)[-1]
    if isinstance(unit, Pace):
        return min(unit.window + 2, MOST_READINGS)  # the readings that a window is made of
    length = _changed(unit, MOST_READINGS)
    if remembers(mechanism):
        length = MOST_REMEMBERED
    return min(length, limit_of(mechanism) or length)


def _changed(unit: Unit, length: int) -> int:
    """How many readings of a series of that length may change."""
    if isinstance(unit, (Answers, Landmarks)):
        return length
    return min((unit.each if isinstance(unit, Person) else unit).readings, length)


def remembers(mechanism: Mechanism) -> bool:
    """Whether an output depends on more than the reading of its own step."""
    return mechanism.memory_size > 0 or mechanism.takes_whole


def alphabet_of(mechanism: Mechanism) -> tuple[Hashable, ...]:
    """Readings at the edges of what can come in, and at a threshold if there is one."""
    unit, form = unit_of(mechanism), mechanism.domain
    if isinstance(form, OpaqueRows):
        return (0,)  # what is in a row does not matter, but that rows differ
    if isinstance(form, WithLandmarks):
        return marked_rows(alphabet_of(over_of(mechanism)))
    if isinstance(unit, TIME):
        return _times_of(mechanism, unit)
    if isinstance(unit, WithinDistance):
        reach = unit.meters
        half = reach * math.sqrt(0.5) * (1 - 1e-12)
        return ((0.0, 0.0), (reach, 0.0), (0.0, reach), (half, half))
    if form.categories is not None:
        columns: list[tuple[Any, ...]] = [(0, len(names) - 1) for names in form.categories]
    else:
        assert form.bounds is not None
        columns = [_points(mechanism, unit, low, high) for low, high in form.bounds]
    if len(columns) == 1:
        return columns[0]
    if isinstance(unit, Contribution):
        # a person adds to few of the columns
        rows = [tuple(column[0] for column in columns)]
        for i, column in enumerate(columns):
            rows += [(*rows[0][:i], point, *rows[0][i + 1 :]) for point in column[1:]]
        return tuple(rows)
    # all columns at once, since a unit lets them all change
    return tuple(dict.fromkeys(itertools.zip_longest(*columns, fillvalue=columns[0][0])))


def _times_of(mechanism: Any, unit: Timestamps | Pace) -> tuple[Hashable, ...]:
    """Rows of the same values, at times as far apart as the unit covers; usual steps first."""
    coarse = power_of_two_below(unit.tau)
    if isinstance(unit, Timestamps):
        return _far_apart(0.0, unit.tau, coarse)
    usual = (mechanism.period,) if unit.shift is None else (0.0, mechanism.period)
    times = [_far_apart(t, limit, coarse) for t, limit in zip(usual, unit.limits, strict=True)]
    return tuple(((1.0,) * mechanism.columns + both) for both in zip(*times, strict=True))


def _far_apart(time: float, limit: float, grid: float) -> tuple[float, float]:
    """Two times from there on that a grid, or a finer one, puts as far apart as it ever does."""
    high = grid * math.ceil((time + limit) / grid)
    low = high - limit
    while Fraction(high) - Fraction(low) > Fraction(limit):
        low = math.nextafter(low, math.inf)
    return low, high


def _retimed_pairs(
    unit: Timestamps | Pace, alphabet: Sequence[Hashable], length: int
) -> list[Pair]:
    """The times of a window, all as far away as they can be; then of less of it."""
    usual, late = alphabet
    begin = 1 if isinstance(unit, Pace) else 0
    pairs = []
    for changed in dict.fromkeys((min(unit.window, length - begin), 1)):
        after = length - begin - changed
        pairs.append(((usual,) * length, (usual,) * begin + (late,) * changed + (usual,) * after))
    return pairs


def _points(mechanism: Mechanism, unit: Unit, low: float, high: float) -> tuple[float, ...]:
    points = [low, high]
    threshold = getattr(mechanism, "threshold", None)
    if isinstance(unit, Contribution):
        at = low if threshold is None else threshold
        points = [at, *(at + side * unit.per_step for side in (1, -1))]
    elif threshold is not None:
        points.append(threshold)
    return tuple(dict.fromkeys(point for point in points if low <= point <= high))


def worst_pairs(
    mechanism: Mechanism, length: int | None = None, most: int = MOST_PAIRS
) -> list[Pair]:
    """A few neighboring inputs that are far apart: what differs most is told apart best.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> worst_pairs(Laplace(epsilon=1.0, bounds=(0, 5)))
    [((0.0,), (5.0,))]
    """
    unit, alphabet = unit_of(mechanism), alphabet_of(mechanism)
    length = length_of(mechanism) if length is None else length
    if isinstance(mechanism.domain, OpaqueRows):
        return _swapped_pairs(unit, length)[:most]
    if isinstance(unit, TIME):
        return _retimed_pairs(unit, alphabet, length)[:most]
    if isinstance(mechanism.domain, WithLandmarks):
        return marked_pairs(mechanism, alphabet, length)[:most]
    patterns = list(dict.fromkeys(_patterns(alphabet, length, unit)))
    if isinstance(unit, Person):
        patterns = [(pattern,) * unit.max_series for pattern in patterns]
    found: dict[frozenset[Example], Pair] = {}
    few = len(alphabet) ** _changed(unit, length) <= MOST_LISTED
    for one in patterns:
        listed = unit.neighbors(one, alphabet) if few else iter(())
        chosen = (other for other in patterns if unit.are_neighbors(one, other))
        for other in itertools.chain(chosen, listed):
            if other != one:
                found.setdefault(frozenset((one, other)), (one, other))
    return sorted(found.values(), key=_closeness)[:most]


def order_lengths(unit: Unit) -> range:
    """How long a series shows what trading places may tell: at least, and all of it."""
    if isinstance(unit, SlotOrigin):
        # the last slot can have come from any step
        return range(min(unit.window, MOST_SLOTS), min(unit.window, MOST_SLOTS) + 1)
    if isinstance(unit, BlockSwap):
        # a block that ends early is one like any other
        return range(unit.offset + 2, min(unit.offset + unit.block, MOST_READINGS) + 1)
    assert isinstance(unit, Swap)
    return range(min(unit.window, MOST_READINGS - 1), min(unit.window + 1, MOST_READINGS) + 1)


def _swapped_pairs(unit: Unit, length: int) -> list[Pair]:
    """Series in which two readings trade places: far apart, side by side, and in between."""
    last = length - 1
    if isinstance(unit, SlotOrigin):
        far = min(unit.span, last)
        places = [(last - b, last - a) for a, b in ((0, far), (0, 1), (1, far), (0, far // 2))]
    elif isinstance(unit, BlockSwap):
        begin = unit.offset if last > unit.offset else 0
        end = min(begin + unit.block, length) - 1
        middle = (begin + end) // 2
        places = [(begin, end), (middle, middle + 1), (begin, begin + 1), (begin, middle)]
    else:
        assert isinstance(unit, Swap)
        far = min(unit.span, last)
        first = (last - far) // 2
        places = [(first, first + far), (last // 2, last // 2 + 1), (0, 1), (0, far)]
    found: dict[tuple[int, int], Pair] = {}
    for i, j in places:
        if 0 <= i < j <= last:
            one: list[int] = list(range(length))
            if length > MOST_TOLD_APART or isinstance(unit, SlotOrigin):
                one = [0] * length
                one[i], one[j] = 1, 2
            other = list(one)
            other[i], other[j] = one[j], one[i]
            found.setdefault((i, j), (tuple(one), tuple(other)))
    pairs = [pair for pair in found.values() if unit.are_neighbors(*pair)]
    require(bool(pairs), f"{length} readings: too few for two of them to trade places")
    return pairs


def _patterns(alphabet: Sequence[Hashable], length: int, unit: Unit) -> Iterator[Example]:
    """Series of two values: all the same, by turns, and with the first or last ones changed."""
    changed = _changed(unit, length)
    for a, b in itertools.permutations(alphabet, 2):
        yield (a,) * length
        yield tuple(itertools.islice(itertools.cycle((a, b)), length))
        yield (b,) * changed + (a,) * (length - changed)
        yield (a,) * (length - changed) + (b,) * changed


def _numbers(example: Any) -> Iterator[float]:
    if isinstance(example, tuple):
        for part in example:
            yield from _numbers(part)
    else:
        yield float(example)


def _closeness(pair: Pair) -> tuple[int, float]:
    gaps = [abs(x - y) for x, y in zip(*map(_numbers, pair), strict=True)]
    return -sum(gap > 0 for gap in gaps), -math.hypot(*gaps)


@dataclass(frozen=True)
class Small:
    """A case that can be enumerated: the mechanism, on a coarser grid if ``grid`` says so."""

    mechanism: Mechanism
    alphabet: tuple[Hashable, ...]
    length: int
    tail: float
    grid: Any


def small_case(mechanism: Mechanism, length: int | None = None) -> Small | None:
    """The mechanism as it is, or the same spec on a coarse grid; None if that is still too large.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> case = small_case(Laplace(epsilon=1.0, bounds=(0, 5)))
    >>> case.mechanism.epsilon, case.grid, case.alphabet
    (1.0, (4.0,), (0.0, 5.0))
    """
    if isinstance(mechanism.domain, Smoothed):
        return None  # many noises lead to one curve, of which the tails left out are no small part
    made: Any = mechanism
    if isinstance(mechanism.domain, Timed) and getattr(made, "clamp", None) is not None:
        # the clamp only joins outcomes, and is no part of the guarantee
        mechanism = dataclasses.replace(made, clamp=None)
    full, alphabet = length_of(mechanism), alphabet_of(mechanism)
    lengths = [full] if length is None else [length]
    if isinstance(mechanism.domain, OpaqueRows):
        lengths = list(order_lengths(unit_of(mechanism)))[::-1] if length is None else [length]
        _swapped_pairs(unit_of(mechanism), lengths[0])  # or refuse
    elif length is None and remembers(mechanism):
        shortest = 2 if isinstance(mechanism.domain, WithLandmarks) else 3
        lengths = list(range(min(full, MOST_ENUMERATED), min(full, shortest) - 1, -1))
    most, fewer = MOST_PATHS, alphabet[:2]
    if isinstance(mechanism.domain, WithLandmarks):
        most, fewer = 2 * MOST_PATHS, alphabet  # without marks there is nothing to see
    copies = (mechanism, most / 4), (_coarse(mechanism), most)
    for steps, letters in itertools.product(lengths, dict.fromkeys((alphabet, fewer))):
        for tail, (copy, limit) in itertools.product(TAILS, copies):
            if copy is not None and _paths(copy, letters, steps, tail) <= limit:
                grid = None if copy is mechanism else over_of(copy).grid
                return Small(copy, letters, steps, tail, grid)
    return None


def _coarse(mechanism: Any) -> Any:
    """The same spec on about the coarsest grid that tells the edges apart."""
    unit = mechanism.unit
    if isinstance(mechanism.domain, WithLandmarks):
        over = _coarse(mechanism.over)
        return None if over is None else dataclasses.replace(mechanism, over=over)
    if not hasattr(mechanism, "grid") or isinstance(unit, Contribution):
        return None  # counts lie on their grid already
    if isinstance(unit, TIME):
        return dataclasses.replace(mechanism, grid=power_of_two_below(unit.tau))
    for finer in (1, 2):
        grid: Any = tuple(
            power_of_two_below(high - low) / finer for low, high in mechanism.domain.bounds or ()
        )
        if isinstance(unit, WithinDistance):
            grid = min(power_of_two_below(unit.meters), 512.0)
        try:
            return dataclasses.replace(mechanism, grid=grid)
        except TemprivError:
            continue  # both edges round to one number
    return None


def _paths(mechanism: Mechanism, alphabet: Sequence[Hashable], length: int, tail: float) -> float:
    """About how many paths an enumeration takes: inputs, times the outcomes of every draw."""
    unit = mechanism.unit
    series = unit.max_series if isinstance(unit, Person) else 1
    inputs = float(len(alphabet)) ** (length * series)
    if inputs > 2 * MOST_PATHS:
        return inputs
    most = 0.0
    try:
        patterns = dict.fromkeys(_patterns(alphabet, length, unit))
        if isinstance(mechanism.domain, OpaqueRows):
            patterns = {tuple(range(length)): None}  # rows that differ are all there is
        for one in patterns:
            probes = [Probe(number, tail) for number in range(PROBES)]
            for probe in probes:
                with contextlib.suppress(DataError):  # too many landmarks
                    exact._run_series(mechanism, one, probe)
            most = max(most, sum(math.prod(map(float, probe.sizes)) for probe in probes) / PROBES)
    except TooManyOutcomesError:
        return math.inf
    return inputs * most**series


class TooManyOutcomesError(Exception):
    """A single draw has more outcomes than all paths may be."""


class Probe(exact.Outcomes):
    """Takes one path at random; the product of the choices it met is, on average, the number of
    paths there are (Knuth 1975). Long lists of outcomes are not made only to be counted."""

    def __init__(self, number: int, tail: float):
        super().__init__([], tail)
        self._number = number

    def draw(
        self, law: Distribution | Varying, purpose: str, rows: Integers | None = None
    ) -> Integers:
        for one in law.laws if isinstance(law, Varying) else (law,):
            _require_few(one, self._tail)
        if rows is not None and isinstance(law, TieDistribution) and len(rows) > MOST_TOLD_APART:
            raise TooManyOutcomesError  # orders of them
        return super().draw(law, purpose, rows)

    __call__ = draw

    def each(self, law: Distribution, purpose: str) -> exact.RowByRow:
        return self._once(purpose, ProbeRows(self, self._tail, law))

    def scalable(self, purpose: str) -> exact.RowByRow:
        return self._once(purpose, ProbeRows(self, self._tail))

    def pick(self, outcomes: Sequence[tuple[Any, float]]) -> Any:
        place = f"{self._number} {len(self.sizes)}".encode()
        word = int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")
        self.sizes.append(len(outcomes))
        return outcomes[word * len(outcomes) >> 64][0]


class ProbeRows(exact.RowByRow):
    """The same for kernels that ask row by row; asking on which side of a cut is always short."""

    def at(self, row: int) -> int:
        assert self.law is not None
        _require_few(self.law, self._tail)
        return super().at(row)

    def laplace(self, row: int, scale: float) -> int:
        _require_few(DiscreteLaplace(Fraction(scale)), self._tail)
        return super().laplace(row, scale)


def _require_few(law: Distribution, tail: float) -> None:
    reach = 0.0
    if isinstance(law, DiscreteLaplace):
        reach = 2 * float(law.scale) * -math.log(tail)
    elif isinstance(law, DiscreteGaussian):
        reach = 2 * math.sqrt(float(law.variance) * 2 * -math.log(tail))
    elif isinstance(law, PlanarLattice):
        reach = math.pi * (math.log(tail) / float(law.rate)) ** 2
    elif isinstance(law, Staircase):
        reach = 2 * law.width * -math.log(tail) / float(law.epsilon)
    elif isinstance(law, WindowDistribution):
        reach = 2 * law.reach
    elif isinstance(law, FreeSlots):
        reach = math.comb(law.window - 1, law.free - 1)
    if reach > MOST_PATHS:
        raise TooManyOutcomesError
