"""How much a query of a series can change between neighbors: computed from query and unit.

A linear query is a matrix A. What may differ between two neighbors (one entry, a window, a whole
trajectory) is a polytope of differences d, and ||A d|| is largest at one of its corners. For
queries that only add (no row of A has both signs) the corner is found directly; others are
enumerated where they are few. Everything else is refused, or bounded from above if asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.privacy.units import Unit

Floats = npt.NDArray[np.float64]
Query = Callable[[Floats], Any] | npt.ArrayLike
SensitivityResult = tuple[float, Floats | None]  # the most, and the difference that makes it

MAX_CORNERS = 1 << 17
CHUNK_NUMBERS = 1 << 22  # numbers held at a time
LINEAR_TOLERANCE = 1e-9  # of what a linear query gives, for floating point
ROUNDING_FACTOR = 1 + 2.0**-40  # a bound stays one in floating point


def occupancy(counts: Floats) -> Floats:
    """How many are there at each step: the ``counts`` themselves."""
    return counts


def running_count(counts: Floats) -> Floats:
    """How many there have been up to each step, from the ``counts`` of each."""
    return np.cumsum(counts)


@dataclass(frozen=True)
class Sensitivity:
    """The most that a query changes between neighbors.

    Parameters:
        l1: in the L1 norm.
        l2: in the L2 norm.
        worst_l1: a difference of the series (of each series, for a person) that changes it by
            ``l1``; None where that is an upper bound only.
        worst_l2: the same for ``l2``.
    """

    l1: float
    l2: float
    worst_l1: tuple[float, ...] | None = field(repr=False)
    worst_l2: tuple[float, ...] | None = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether some difference reaches both."""
        return self.worst_l1 is not None and self.worst_l2 is not None


def sensitivity(
    query: Query,
    unit: Unit,
    length: int,
    *,
    bounds: tuple[float, float] = (0, 1),
    or_bound: bool = False,
) -> Sensitivity:
    """The L1 and L2 sensitivities of a linear query over a series of ``length`` counts.

    Parameters:
        query: a function from an array to an array, or a matrix with a column for each step.
        unit: what may change: ``Event``, ``Window``, ``WholeSeries``, ``Person``, or what one
            person adds to counts (``Contribution``).
        length: how many readings the series has.
        bounds: the least and the greatest reading, for units that replace readings.
        or_bound: whether to take an upper bound where the worst difference cannot be found.

    Returns:
        Both sensitivities, and the differences that reach them.

    Raises:
        UsageError: if the query is not linear, or there are too many differences to try.

    >>> from tempriv.privacy.units import Contribution, Event, WholeSeries
    >>> minutes = 1440
    >>> day = sensitivity(running_count, Contribution(WholeSeries(minutes)), minutes)
    >>> day.l1, round(day.l2, 2)
    (1037520.0, 31565.25)
    >>> minute = sensitivity(running_count, Contribution(Event()), minutes)
    >>> minute.l1, round(minute.l2, 3)
    (1440.0, 37.947)
    """
    require(
        isinstance(length, int) and length >= 1, f"length={length}: must be a whole number >= 1"
    )
    matrix = query_matrix(query, length)
    differences = Differences.of(unit, length, bounds)
    largest = [_largest(matrix, differences, order) for order in (1, 2)]
    if None in largest:
        require(
            or_bound,
            f"unit={unit!r}: there are too many differences over {differences.width} steps to find "
            "the worst of them for this query; give or_bound=True to take an upper bound instead",
        )
    (l1, worst_l1), (l2, worst_l2) = (
        result or (_bound(matrix, differences, order) * ROUNDING_FACTOR, None)
        for order, result in zip((1, 2), largest, strict=True)
    )
    # the series of a person are queried one by one, so their changes stand side by side
    series = unit.positions_per_person
    return Sensitivity(series * l1, math.sqrt(series) * l2, _listed(worst_l1), _listed(worst_l2))


def _listed(worst: Floats | None) -> tuple[float, ...] | None:
    return None if worst is None else tuple(worst.tolist())


def query_matrix(query: Query, length: int) -> Floats:
    """The matrix of a linear query: what it gives for each unit vector, a column each.

    Parameters:
        query: a function from an array to an array, or the matrix itself.
        length: how many readings the series has.

    >>> query_matrix(running_count, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    if not callable(query):
        matrix = np.asarray(query, dtype=np.float64)
        require(
            matrix.ndim == 2 and matrix.shape[1] == length and bool(np.isfinite(matrix).all()),
            f"query: a matrix of shape {matrix.shape} must have a column for each of {length} "
            "steps, and finite numbers",
        )
        return matrix

    def ask(counts: Floats) -> Floats:
        answer = np.array(query(counts), dtype=np.float64)
        require(
            answer.ndim == 1 and bool(np.isfinite(answer).all()),
            "query: must give a flat array of finite numbers",
        )
        return answer

    columns = [ask(step) for step in np.eye(length)]
    probes = list(_probes(length))
    answers = [ask(probe) for probe in probes]
    lengths = {len(answer) for answer in [*columns, *answers]}
    require(len(lengths) == 1, "query: must give as many numbers whatever the counts are")
    matrix = np.stack(columns, axis=1)
    for probe, answer in zip(probes, answers, strict=True):
        scale = np.abs(matrix) @ np.abs(probe) + 1
        linear = bool((np.abs(matrix @ probe - answer) <= LINEAR_TOLERANCE * scale).all())
        require(
            linear,
            "query: must be linear (what it gives for a sum is the sum of what it gives); the "
            "sensitivity of others has to be worked out by hand",
        )
    return matrix


def _probes(length: int) -> Iterator[Floats]:
    """Series on which a query that is not linear shows it: none, all, signs, and mixed sizes."""
    steps = np.arange(length, dtype=np.int64)
    yield np.zeros(length)
    yield np.full(length, 3.0)
    yield np.where(steps % 2 == 0, 1.0, -1.0)
    for factor in (7919, 104_729, 1_299_709):
        yield (((steps + 1) * factor) % 997 - 498).astype(np.float64) / 8


@dataclass(frozen=True)
class Differences:
    """The differences between neighbors: at most ``width`` steps in a row change, each by at most
    ``per_step``, all together by at most ``total``; up only (or down only) unless ``signed``."""

    steps: int
    width: int
    per_step: float
    total: Fraction
    signed: bool

    @classmethod
    def of(cls, unit: Unit, steps: int, bounds: tuple[float, float]) -> Differences:
        """Those of neighbors by a ``unit``, over ``steps`` readings within ``bounds``."""
        width = unit.changed_readings(steps)
        limits = unit.change_limits(width, bounds)
        require(
            unit.max_length is None or steps <= unit.max_length,
            f"length={steps}: must be at most {unit.max_length}, the series that the unit covers",
        )
        return cls(steps, width, *limits)

    @property
    def starts(self) -> range:
        """Where a window can begin."""
        return range(self.steps - self.width + 1)

    @property
    def parts(self) -> tuple[int, float]:
        """How many steps can change in full, and what is then left for one more."""
        full, rest = divmod(self.total, Fraction(self.per_step))
        return int(full), float(rest)

    @property
    def limited(self) -> bool:
        return self.parts[0] < self.width

    def spread(self, order: npt.NDArray[np.int64], start: int) -> Floats:
        """As much as can be on the first steps of an ``order``, in the window from ``start`` on."""
        full, rest = self.parts
        worst = np.zeros(self.steps)
        worst[start + order[:full]] = self.per_step
        worst[start + order[full : full + 1]] = rest
        return worst

    def _changed(self) -> Iterator[dict[int, float]]:
        """Which steps of a window change by how much, at a corner, signs left aside."""
        full, rest = self.parts
        for count in range(max(full, 1) if self.signed else 1, full + 1):
            for places in itertools.combinations(range(self.width), count):
                at = dict.fromkeys(places, self.per_step)
                yield at
                if rest and count == full:
                    others = set(range(self.width)) - set(places)
                    yield from ({**at, place: rest} for place in sorted(others))

    def corners(self) -> Floats:
        """What can be worst within a window, a row each, without those that only mirror one."""
        rows: list[Floats] = []
        for at in self._changed():
            signs = itertools.product((1, -1), repeat=len(at) - 1 if self.signed else 0)
            for sign in signs:
                row = np.zeros(self.width)
                row[list(at)] = list(at.values())
                row[list(at)[1:]] *= sign or 1
                rows.append(row)
        return np.array(rows)

    @property
    def corner_count(self) -> int:
        """At most so many, over all windows."""
        full, rest = self.parts
        if full > 64:
            return 2**64
        last = math.comb(self.width, full) * (1 + (self.width - full if rest else 0))
        fewer = sum(math.comb(self.width, i) for i in range(1, full))
        return (last * 2**full if self.signed else last + fewer) * len(self.starts)


def _norms(columns: Floats, order: int) -> Floats:
    return np.asarray(np.linalg.norm(columns, ord=order, axis=0))


def _largest(matrix: Floats, differences: Differences, order: int) -> SensitivityResult | None:
    """The largest change and a difference that makes it; None if that would take too long."""
    if differences.width == 1:
        norms = _norms(matrix, order)
        at = int(np.argmax(norms))
        worst = np.zeros(differences.steps)
        worst[at] = differences.per_step
        return float(norms[at]) * differences.per_step, worst
    # turning a row's sign around changes no norm
    one_way = not bool(((matrix > 0).any(axis=1) & (matrix < 0).any(axis=1)).any())
    if one_way:
        result = _largest_of_sums(np.abs(matrix), differences, order)
        if result is not None:
            return result
    if differences.corner_count > MAX_CORNERS:
        return None
    return _by_corners(matrix, differences, order)


def _largest_of_sums(
    matrix: Floats, differences: Differences, order: int
) -> SensitivityResult | None:
    """For a matrix without negative numbers: the more changes, and the same way, the worse."""
    if not differences.limited:
        sums = np.pad(np.cumsum(matrix, axis=1), ((0, 0), (1, 0)))
        norms = _norms(sums[:, differences.width :] - sums[:, : -differences.width], order)
        start = int(np.argmax(norms))
        worst = np.zeros(differences.steps)
        worst[start : start + differences.width] = differences.per_step
        return float(norms[start]) * differences.per_step, worst
    # with a total, steps compete: in L1 each counts by itself; in L2 the order is known where
    # columns do not overlap, or where each lies below another
    weights = matrix.sum(axis=0)
    if order == 2:
        ranked = matrix[:, np.argsort(-weights, kind="stable")]
        apart = bool(((matrix > 0).sum(axis=1) <= 1).all())
        nested = bool((ranked[:, :-1] >= ranked[:, 1:]).all())
        if not (apart or nested):
            return None
        if apart:
            weights = _norms(matrix, 2)
    return max(
        (_measured(matrix, worst, order) for worst in _greedy(weights, differences)),
        key=lambda result: result[0],
    )


def _greedy(weights: Floats, differences: Differences) -> Iterator[Floats]:
    for start in differences.starts:
        inside = weights[start : start + differences.width]
        yield differences.spread(np.argsort(-inside, kind="stable"), start)


def _measured(matrix: Floats, worst: Floats, order: int) -> tuple[float, Floats]:
    changed = np.flatnonzero(worst)
    return float(np.linalg.norm(matrix[:, changed] @ worst[changed], ord=order)), worst


def _by_corners(matrix: Floats, differences: Differences, order: int) -> SensitivityResult:
    corners = differences.corners()
    most, where = -1.0, (0, 0)
    step = max(1, CHUNK_NUMBERS // max(len(matrix), 1))
    for start in differences.starts:
        inside = matrix[:, start : start + differences.width]
        for first in range(0, len(corners), step):
            norms = _norms(inside @ corners[first : first + step].T, order)
            at = int(np.argmax(norms))
            if norms[at] > most:
                most, where = float(norms[at]), (start, first + at)
    worst = np.zeros(differences.steps)
    worst[where[0] : where[0] + differences.width] = corners[where[1]]
    return most, worst


def _bound(matrix: Floats, differences: Differences, order: int) -> float:
    """Never less than the truth: changes of single steps add up, and in L2 no direction gains more
    than the largest absolute row sum of A'A (Gershgorin)."""
    weights = _norms(matrix, order)
    added = max(float(weights @ worst) for worst in _greedy(weights, differences))
    if order == 1:
        return added
    full, rest = differences.parts
    square = full * differences.per_step**2 + rest**2
    steps = np.arange(differences.steps)
    near = np.abs(steps[:, None] - steps) < differences.width
    gain = float((np.abs(matrix.T @ matrix) * near).sum(axis=1).max())
    return min(added, math.sqrt(square * gain))
