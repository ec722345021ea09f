"""A budget for any w consecutive steps of an endless stream, spent in four ways (w-event privacy).

A row of counts or numbers comes in at each step. Two schemes spend by plan: a little on every step,
or all of it on one step in w. Two look whether the row has moved away from the last release, which
costs half of the budget, and publish only then (Kellaris, Papadopoulos, Xiao and Papadias 2014).
Where nothing is published the last release stands again; before the first one that is zero, or the
bound nearest to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers, Numbers, bounds_of, positive
from tempriv.mechanisms.value._shared import change_of, model_of, number_grids
from tempriv.mechanisms.w_event._kernels import publish_or_repeat
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Contribution, Event, Window
from tempriv.sampling import distributions
from tempriv.sampling._kernels import Scalable, suited

UNITS = 1 << 40
"""Half of epsilon in whole units, for budgets that are halved again and again."""

LARGEST_SCALE = 1 << 34  # in grid steps; greater noise would drown whatever the bounds allow
LARGEST_LIMIT = 1 << 54  # distances between rows stay whole numbers of 64 bits
MOST_REMEMBERED = 1 << 20

SOURCE = "Kellaris, Papadopoulos, Xiao and Papadias 2014"


def _set_up(mechanism: Any, scale_to_range: float) -> None:
    """Check and complete the fields that all four have."""
    positive("epsilon", mechanism.epsilon)
    object.__setattr__(mechanism, "bounds", bounds_of(mechanism.bounds))
    unit = mechanism.unit
    each = unit.each if isinstance(unit, Contribution) else unit
    require(
        isinstance(each, (Event, Window)),
        f"unit={unit!r}: must be Window(w), or Contribution(Window(w)) for counts; budgets are for "
        "any w consecutive steps",
    )
    columns = len(mechanism.bounds)
    grids = number_grids(mechanism, columns * scale_to_range / mechanism.epsilon)
    object.__setattr__(mechanism, "grid", grids)


def _require_reach(scales: list[Fraction]) -> None:
    require(
        max(scales) <= LARGEST_SCALE,
        f"noise of 2^{int(max(scales)).bit_length()} grid steps: the grid is too fine for this "
        "much of it; choose a coarser grid, or a greater epsilon",
    )


def _numbers(mechanism: Any) -> Numbers:
    return Numbers(mechanism.bounds, mechanism.grid, mechanism.unit.counts_people)


def _changes(mechanism: Any) -> list[Fraction]:
    """For each column what noise is measured by, so that a row costs its epsilon once.

    What one person adds is bounded for the row as a whole; numbers change each within its bounds
    and share epsilon.
    """
    changes = change_of(mechanism.unit, mechanism.domain)
    if mechanism.unit.counts_people:
        return changes
    return [len(changes) * change for change in changes]


def _within_window(mechanism: Any) -> Fraction:
    """How many times as much as one row all rows of a window change together, at most."""
    unit = mechanism.unit
    if isinstance(unit, Contribution):
        return Fraction(unit.most) / Fraction(unit.per_step)
    return Fraction(unit.readings)


def _origin(mechanism: Any) -> Integers:
    """What stands for a last release before there is one, in grid steps."""
    low, high = mechanism.domain.edges().T
    return np.asarray(np.clip(0, low, high))


def _guarantee(mechanism: Any) -> Guarantee:
    return Guarantee(Pure(mechanism.epsilon), mechanism.unit, model_of(mechanism.unit))


def _errors(mechanism: Any, scales: list[Fraction]) -> tuple[float, ...]:
    return tuple(
        grid * distributions.DiscreteLaplace(scale).mean_magnitude
        for grid, scale in zip(mechanism.grid, scales, strict=True)
    )


class SideBySide:
    """The draws of several columns as one, that of column j in row i at i + j * rows."""

    def __init__(self, parts: list[Any], rows: int):
        self.parts, self.rows = parts, rows

    @property
    def joined(self) -> Any:
        """Arrays for a compiled kernel; for an audit, this, which asks the column's own."""
        if len(self.parts) == 1:
            return self.parts[0]
        if all(isinstance(part, np.ndarray) for part in self.parts):
            return np.concatenate(self.parts)
        if all(isinstance(part, Scalable) for part in self.parts):
            return Scalable(*(np.concatenate(arrays) for arrays in zip(*self.parts, strict=True)))
        return self

    def at(self, place: int) -> int:
        return int(self.parts[place // self.rows].at(place % self.rows))

    def laplace(self, place: int, scale: float) -> int:
        return int(self.parts[place // self.rows].laplace(place % self.rows, scale))


@dataclass(frozen=True)
class _Plan:
    """What the two adaptive schemes hand to their common kernel."""

    whole: int  # half of epsilon, in units
    best: int  # the most units that a step can have
    weights: Integers  # of the columns in the distance between two rows
    row: Fraction  # how much one person, or one reading in each column, moves that distance
    changes: list[Fraction]  # for each column, what its noise is measured by
    epsilon: Fraction

    @classmethod
    def of(cls, mechanism: Any, whole: int, best: int) -> _Plan:
        changes = _changes(mechanism)
        # columns count alike: each by what it can change
        weights = [max(1, round(max(changes) / change)) for change in changes]
        moves = [w * change for w, change in zip(weights, changes, strict=True)]
        counted = mechanism.unit.counts_people
        plan = cls(
            whole=whole,
            best=best,
            weights=np.array(weights, dtype=np.int64),
            row=max(moves) if counted else sum(moves, start=Fraction(0)) / len(moves),
            changes=changes,
            epsilon=Fraction(mechanism.epsilon),
        )
        # looking takes no value, so its noise may be greater
        _require_reach([*plan.scales(best), plan.dissimilarity(mechanism).scale / 4])
        require(
            plan.least <= best,
            f"{len(weights)} columns: too many for a grid this fine; choose a coarser grid",
        )
        return plan

    def dissimilarity(self, mechanism: Any) -> distributions.DiscreteLaplace:
        """Half of epsilon is for looking, once at every step."""
        return distributions.DiscreteLaplace(
            2 * self.row * _within_window(mechanism) / self.epsilon
        )

    def scales(self, units: int) -> list[Fraction]:
        """Of the noise on a published row, in grid steps."""
        return [2 * change / self.epsilon * self.whole / units for change in self.changes]

    @property
    def tops(self) -> Any:
        """The scales for one unit, rounded up by more than dividing them can round down."""
        return np.array([float(scale) * (1 + 2.0**-50) for scale in self.scales(1)])

    @property
    def least(self) -> int:
        """With fewer units than these a step is not published: there is too much noise to draw."""
        scales = self.scales(1)
        limit = sum(int(w) * scale for w, scale in zip(self.weights, scales, strict=True))
        return max(1, math.ceil(max(scales) / LARGEST_SCALE), math.ceil(limit / LARGEST_LIMIT))


def _publish_or_repeat(
    mechanism: Any, readings: Integers, noise: NoiseSource, state: SeriesState, absorbing: bool
) -> Integers:
    plan, rows, origin = mechanism.plan, len(readings), _origin(mechanism)
    looks = noise.each(mechanism.laws[0], "dissimilarity")
    sources = [noise.scalable(f"column {j}") for j in range(readings.shape[1])]
    drawn = SideBySide([source.words for source in sources], rows).joined
    outputs = np.zeros_like(readings)
    kernel = suited(publish_or_repeat, looks, drawn)
    at, moved = 0, readings - origin
    while at < rows:
        at, place, scale = kernel(
            at,
            moved,
            state.missing,
            state.which,
            state.steps,
            plan.weights,
            plan.tops,
            plan.least,
            plan.whole,
            mechanism.unit.readings,
            absorbing,
            looks,
            drawn,
            state.memory,
            outputs,
            state.status,
        )
        if at < rows:
            source = sources[place // rows]
            source.settle(place % rows, scale)
            drawn.settled[place] = source.words.settled[place % rows]
    return np.asarray(outputs + origin)
