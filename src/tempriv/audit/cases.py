"""Inputs that audits run on: extreme readings, the neighboring pairs they make, small copies."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tempriv.audit import exact
from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Integers, OpaqueRows, power_of_two_below
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.reorder.distributions import FreeSlots, TieDistribution, WindowDistribution
from tempriv.mechanisms.retime.domains import Smoothed, Timed
from tempriv.privacy.guarantees import Guarantee
from tempriv.privacy.units.base import Pair, Unit, cells
from tempriv.privacy.units.order import MAX_DISTINCT_READINGS
from tempriv.sampling.distributions import (
    DiscreteGaussian,
    DiscreteLaplace,
    Distribution,
    PlanarLattice,
    Staircase,
    Varying,
)

MAX_PAIRS = 4
MAX_READINGS = 24  # of a series, where readings are independent of each other
MAX_REMEMBERED_READINGS = 8  # where they are not
MAX_ENUMERATED_READINGS = 5
MAX_PATHS = 30_000  # some seconds
PROBES = 30
TAILS = (1e-12, 1e-9, 1e-6)


def unit_of(mechanism: Mechanism) -> Unit:
    """The unit of a ``mechanism``'s guarantee; refused where nothing is guaranteed."""
    guarantee = mechanism.guarantee
    if not isinstance(guarantee, Guarantee):
        raise UsageError("nothing is guaranteed, so there is nothing to audit")
    return guarantee.unit


def claimed_unit(mechanism: Mechanism) -> Unit:
    """The unit of the guarantee, or that of the ``mechanism`` where nothing is guaranteed."""
    guarantee = mechanism.guarantee
    return guarantee.unit if isinstance(guarantee, Guarantee) else mechanism.unit


def length_of(mechanism: Mechanism) -> int:
    """How long a series to audit: what the unit covers, more if the ``mechanism`` remembers."""
    length = unit_of(mechanism).audit_lengths(MAX_READINGS)[-1]
    if isinstance(mechanism.domain, OpaqueRows) or unit_of(mechanism).about_times:
        return length
    if remembers(mechanism):
        length = MAX_REMEMBERED_READINGS
    return min(length, limit_of(mechanism) or length)


def remembers(mechanism: Mechanism) -> bool:
    """Whether an output of the ``mechanism`` depends on more than the reading of its step."""
    return mechanism.memory_size > 0 or mechanism.takes_whole


def alphabet_of(mechanism: Mechanism) -> tuple[Hashable, ...]:
    """Readings at the edges of what a ``mechanism`` takes, and at a threshold if there is one."""
    domain = mechanism.domain
    if isinstance(domain, OpaqueRows):
        return (0,)  # what is in a row does not matter, but that rows differ
    if isinstance(domain, WithLandmarks):
        return _marked_rows(alphabet_of(over_of(mechanism)))
    return unit_of(mechanism).extreme_rows(_extremes(mechanism))


def _extremes(mechanism: Any) -> list[tuple[Any, ...]]:
    """For each column the least and the greatest reading, and a threshold; or what is usual."""
    domain = mechanism.domain
    if domain.categories is not None:
        return [(0, len(names) - 1) for names in domain.categories]
    if domain.bounds is None:
        return [(1.0,)] * getattr(mechanism, "columns", 0) + [(getattr(mechanism, "period", 0.0),)]
    threshold = getattr(mechanism, "threshold", None)
    return [(*bounds, *(() if threshold is None else (threshold,))) for bounds in domain.bounds]


def worst_pairs(
    mechanism: Mechanism, length: int | None = None, most: int = MAX_PAIRS
) -> list[Pair]:
    """A few neighboring inputs that are far apart: what differs most is told apart best.

    Parameters:
        mechanism: what is audited.
        length: how many readings a series has; None: as many as show what the unit covers.
        most: how many pairs.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> worst_pairs(Laplace(epsilon=1.0, bounds=(0, 5)))
    [((0.0,), (5.0,))]
    """
    unit, alphabet = unit_of(mechanism), alphabet_of(mechanism)
    length = length_of(mechanism) if length is None else length
    if isinstance(mechanism.domain, WithLandmarks):
        return _marked_pairs(mechanism, alphabet, length)[:most]
    return unit.worst_pairs(alphabet, length)[:most]


def over_of(mechanism: Any) -> Any:
    """The mechanism for single values of a landmark scheme; any other ``mechanism`` is its own."""
    return getattr(mechanism, "over", mechanism)


def _marked_rows(readings: Sequence[Any]) -> tuple[Hashable, ...]:
    """Every reading without a mark, and then with one."""
    return tuple((*cells(row), mark) for mark in (0, 1) for row in readings)


def _marked_pairs(mechanism: Mechanism, alphabet: Sequence[Any], length: int) -> list[Pair]:
    """What changes together, with landmarks that are first, last, in between, and none."""
    half = len(alphabet) // 2
    low, high = alphabet[0][:-1], alphabet[half - 1 if half == 2 else 1][:-1]
    most = mechanism.most_landmarks
    few = length // 2 if most is None else min(most, length // 2)
    pairs = []
    for marks in (
        [1] * few + [0] * (length - few),
        [0] * (length - few) + [1] * few,
        [int(i % 2 == 1 and i // 2 < few) for i in range(length)],
        [0] * length,
    ):
        changed = unit_of(mechanism).replaced_steps(marks)
        example = tuple((*low, mark) for mark in marks)
        other = tuple((*(high if i in changed else low), mark) for i, mark in enumerate(marks))
        pairs.append((example, other))
    return list(dict.fromkeys(pairs))


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

    Parameters:
        mechanism: what is audited.
        length: how many readings a series has; None: as many as can be enumerated.

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
        unit = unit_of(mechanism)
        lengths = [*unit.audit_lengths(MAX_READINGS)][::-1] if length is None else [length]
        unit.worst_pairs((), lengths[0])  # or refuse
    elif length is None and remembers(mechanism):
        shortest = 2 if isinstance(mechanism.domain, WithLandmarks) else 3
        lengths = list(range(min(full, MAX_ENUMERATED_READINGS), min(full, shortest) - 1, -1))
    most, fewer = MAX_PATHS, alphabet[:2]
    if isinstance(mechanism.domain, WithLandmarks):
        most, fewer = 2 * MAX_PATHS, alphabet  # without marks there is nothing to see
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
    if not hasattr(mechanism, "grid") or unit.counts_people:
        return None  # counts lie on their grid already
    for finer in (1, 2):
        grid: Any = unit.audit_grid or tuple(
            power_of_two_below(high - low) / finer for low, high in mechanism.domain.bounds or ()
        )
        try:
            return dataclasses.replace(mechanism, grid=grid)
        except TemprivError:
            continue  # both edges round to one number
    return None


def _paths(mechanism: Mechanism, alphabet: Sequence[Hashable], length: int, tail: float) -> float:
    """About how many paths an enumeration takes: inputs, times the outcomes of every draw."""
    unit = mechanism.unit
    series = unit.positions_per_person
    inputs = float(len(alphabet)) ** (length * series)
    if inputs > 2 * MAX_PATHS:
        return inputs
    most = 0.0
    try:
        patterns = unit.patterns(alphabet, length)
        if isinstance(mechanism.domain, OpaqueRows):
            patterns = [tuple(range(length))]  # rows that differ are all there is
        for pattern in patterns:
            probes = [Probe(number, tail) for number in range(PROBES)]
            for probe in probes:
                with contextlib.suppress(DataError):  # too many landmarks
                    exact._run_series(mechanism, pattern, probe)
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
        self, distribution: Distribution | Varying, purpose: str, rows: Integers | None = None
    ) -> Integers:
        """As its base for a ``distribution``, ``purpose`` and ``rows``; no long list is made."""
        for part in (
            distribution.distributions if isinstance(distribution, Varying) else (distribution,)
        ):
            _require_few(part, self._tail)
        if (
            rows is not None
            and isinstance(distribution, TieDistribution)
            and len(rows) > MAX_DISTINCT_READINGS
        ):
            raise TooManyOutcomesError  # orders of them
        return super().draw(distribution, purpose, rows)

    __call__ = draw

    def each(self, distribution: Distribution, purpose: str) -> exact.RowByRow:
        """As its base for a ``distribution`` and a ``purpose``, but no long list is made."""
        return self._once(purpose, ProbeRows(self, self._tail, distribution))

    def scalable(self, purpose: str) -> exact.RowByRow:
        """As its base for a ``purpose``, but no long list is made."""
        return self._once(purpose, ProbeRows(self, self._tail))

    def pick(self, outcomes: Sequence[tuple[Any, float]]) -> Any:
        """One of the ``outcomes`` by a hash, and their number into the sizes."""
        place = f"{self._number} {len(self.sizes)}".encode()
        word = int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")
        self.sizes.append(len(outcomes))
        return outcomes[word * len(outcomes) >> 64][0]


class ProbeRows(exact.RowByRow):
    """The same for kernels that ask row by row; asking on which side of a cut is always short."""

    def at(self, row: int) -> int:
        """As its base for a ``row``, unless its outcomes are too many."""
        assert self.distribution is not None
        _require_few(self.distribution, self._tail)
        return super().at(row)

    def laplace(self, row: int, scale: float) -> int:
        """As its base for a ``row`` and a ``scale``, unless outcomes are too many."""
        _require_few(DiscreteLaplace(Fraction(scale)), self._tail)
        return super().laplace(row, scale)


def _require_few(distribution: Distribution, tail: float) -> None:
    reach = 0.0
    if isinstance(distribution, DiscreteLaplace):
        reach = 2 * float(distribution.scale) * -math.log(tail)
    elif isinstance(distribution, DiscreteGaussian):
        reach = 2 * math.sqrt(float(distribution.variance) * 2 * -math.log(tail))
    elif isinstance(distribution, PlanarLattice):
        reach = math.pi * (math.log(tail) / float(distribution.rate)) ** 2
    elif isinstance(distribution, Staircase):
        reach = 2 * distribution.width * -math.log(tail) / float(distribution.epsilon)
    elif isinstance(distribution, WindowDistribution):
        reach = 2 * distribution.reach
    elif isinstance(distribution, FreeSlots):
        reach = math.comb(distribution.window - 1, distribution.free - 1)
    if reach > MAX_PATHS:
        raise TooManyOutcomesError
