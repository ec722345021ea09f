"""A budget for any w consecutive steps of an endless stream, spent in four ways (w-event privacy).

A row of counts or numbers comes in at each step. Two schemes spend by plan: a little on every step,
or all of it on one step in w. Two look whether the row has moved away from the last release, which
costs half of the budget, and publish only then (Kellaris, Papadopoulos, Xiao and Papadias 2014).
Where nothing is published the last release stands again; before the first one that is zero, or the
bound nearest to it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv import noise
from tempriv.errors import require
from tempriv.guarantees import Guarantee, Published, Pure
from tempriv.kernels import Scalable, suited
from tempriv.kernels_budgets import publish_once, publish_or_repeat
from tempriv.mechanisms.forms import Integers, Numbers, bounds_of, positive
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.stream import start
from tempriv.mechanisms.value import change_of, model_of, number_grids
from tempriv.series import Bounds
from tempriv.units import Contribution, Event, Unit, Window

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
    return Numbers(mechanism.bounds, mechanism.grid, isinstance(mechanism.unit, Contribution))


def _changes(mechanism: Any) -> list[Fraction]:
    """For each column what noise is measured by, so that a row costs its epsilon once.

    What one person adds is bounded for the row as a whole; numbers change each within its bounds
    and share epsilon.
    """
    changes = change_of(mechanism.unit, mechanism.form)
    if isinstance(mechanism.unit, Contribution):
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
    low, high = mechanism.form.edges().T
    return np.asarray(np.clip(0, low, high))


def _guarantee(mechanism: Any) -> Guarantee:
    return Guarantee(Pure(mechanism.epsilon), mechanism.unit, model_of(mechanism.unit))


def _errors(mechanism: Any, scales: list[Fraction]) -> tuple[float, ...]:
    return tuple(
        grid * noise.DiscreteLaplace(scale).mean_magnitude
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


@dataclass(frozen=True, kw_only=True)
class UniformBudget:
    """Publishes every step, with a w-th of epsilon each.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - outputs lie on the public grid.

    >>> hourly = UniformBudget(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> hourly.guarantee.loss, round(hourly.errors[0], 2)
    (Pure(epsilon=1.0), 23.99)
    """

    epsilon: float
    bounds: Bounds
    unit: Unit
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = "mean absolute error"

    def __post_init__(self) -> None:
        _set_up(
            self, float(min(self.unit.readings, UNITS)) if isinstance(self.unit, Window) else 1.0
        )
        _require_reach([law.scale for law in self.laws])

    form = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        factor = _within_window(self) / Fraction(self.epsilon)
        return [noise.DiscreteLaplace(change * factor) for change in _changes(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Noise for a w-th of epsilon at every step gives w-event privacy",
            source=f"{SOURCE}, Uniform",
            holds=True,
            remark="It is Laplace noise measured for a window; the simplest scheme, and hard to "
            "beat where rows keep changing or w is small.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, [law.scale for law in self.laws])

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        drawn = [draw(law, f"column {j}") for j, law in enumerate(self.laws)]
        return readings + np.stack(drawn, axis=1)

    start = start


@dataclass(frozen=True, kw_only=True)
class SampleOnce:
    """Publishes one step with all of epsilon, then repeats it for the next w - 1 steps.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - when a row is published depends on no value; a missing one is made up for at the next.

    >>> daily = SampleOnce(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> daily.guarantee.loss, round(daily.errors[0], 2)
    (Pure(epsilon=1.0), 0.85)
    """

    epsilon: float
    bounds: Bounds
    unit: Unit
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = "mean absolute error of a published value, while it is fresh"

    def __post_init__(self) -> None:
        _set_up(self, 1.0)
        _require_reach([law.scale for law in self.laws])

    form = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def slots(self) -> int:
        return len(self.bounds) + 1

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        return [noise.DiscreteLaplace(change / Fraction(self.epsilon)) for change in _changes(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Noise for all of epsilon at one step in w gives w-event privacy",
            source=f"{SOURCE}, Sample",
            holds=True,
            remark="Between two publications nothing new is told; hard to beat where rows change "
            "slowly beside w.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, [law.scale for law in self.laws])

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        origin = _origin(self)
        parts = [draw.each(law, f"column {j}") for j, law in enumerate(self.laws)]
        drawn = SideBySide(parts, len(readings)).joined
        outputs = np.zeros_like(readings)
        suited(publish_once, drawn)(
            readings - origin, track.missing, track.which, track.steps, self.unit.readings, drawn,
            track.memory, outputs, track.status,
        )  # fmt: skip
        return np.asarray(outputs + origin)

    start = start


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
        counted = isinstance(mechanism.unit, Contribution)
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

    def dissimilarity(self, mechanism: Any) -> noise.DiscreteLaplace:
        """Half of epsilon is for looking, once at every step."""
        return noise.DiscreteLaplace(2 * self.row * _within_window(mechanism) / self.epsilon)

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
    mechanism: Any, readings: Integers, draw: Draw, track: Track, absorbing: bool
) -> Integers:
    plan, rows, origin = mechanism.plan, len(readings), _origin(mechanism)
    looks = draw.each(mechanism.laws[0], "dissimilarity")
    sources = [draw.scalable(f"column {j}") for j in range(readings.shape[1])]
    drawn = SideBySide([source.words for source in sources], rows).joined
    outputs = np.zeros_like(readings)
    kernel = suited(publish_or_repeat, looks, drawn)
    at, moved = 0, readings - origin
    while at < rows:
        at, place, scale = kernel(
            at, moved, track.missing, track.which, track.steps, plan.weights, plan.tops,
            plan.least, plan.whole, mechanism.unit.readings, absorbing, looks, drawn, track.memory,
            outputs, track.status,
        )  # fmt: skip
        if at < rows:
            source = sources[place // rows]
            source.settle(place % rows, scale)
            drawn.settled[place] = source.words.settled[place % rows]
    return np.asarray(outputs + origin)


@dataclass(frozen=True, kw_only=True)
class BudgetDistribution:
    """Publishes a row that has moved, with half of what the window has left.

    Half of epsilon is for looking, a w-th of it at every step: how far is the row from the last
    release? If farther than the noise that it would get, it is published.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps, the choice of what to
          publish included;
        - a step too poor for any use is not published.

    >>> watch = BudgetDistribution(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> watch.guarantee.loss, round(watch.errors[0], 2)
    (Pure(epsilon=1.0), 3.96)
    """

    epsilon: float
    bounds: Bounds
    unit: Unit
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a value published when the window has seen none, the least"
    )

    def __post_init__(self) -> None:
        _set_up(self, 4.0)
        require(
            self.unit.readings <= MOST_REMEMBERED,
            f"unit={self.unit!r}: must be a window of at most {MOST_REMEMBERED:,} steps, for what "
            "each took is remembered; BudgetAbsorption takes any",
        )
        _ = self.plan

    form = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def slots(self) -> int:
        return len(self.bounds) + 1 + self.unit.readings

    @functools.cached_property
    def plan(self) -> _Plan:
        return _Plan.of(self, UNITS, UNITS // 2)

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        """Noise on the distance from the last release."""
        return [self.plan.dissimilarity(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Looking for a w-th of epsilon / 2 at every step, and publishing with half of "
            "what other publications within w steps leave of epsilon / 2, gives w-event privacy",
            source=f"{SOURCE}, Budget Distribution",
            holds=True,
            remark="Enumeration finds less than epsilon: halves of halves never add up to all of "
            "it. Frequent changes are published with ever more noise.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        plan = self.plan
        return _errors(self, plan.scales(plan.best))

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        return _publish_or_repeat(self, readings, draw, track, absorbing=False)

    start = start


@dataclass(frozen=True, kw_only=True)
class BudgetAbsorption:
    """Publishes a row that has moved, with the budgets of the steps that went by without.

    Half of epsilon is for looking, as with BudgetDistribution. Of the other half every step owns a
    w-th. A publication takes what the steps before it did not use, up to all of a window; as many
    steps after it, but one, publish nothing.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps, the choice of what to
          publish included.

    >>> watch = BudgetAbsorption(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> watch.guarantee.loss, round(watch.errors[0], 2)
    (Pure(epsilon=1.0), 48.0)
    """

    epsilon: float
    bounds: Bounds
    unit: Unit
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a value published right after another, the most; after a pause "
        "of k steps a k-th"
    )

    def __post_init__(self) -> None:
        _set_up(self, 2.0)
        _ = self.plan

    form = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def slots(self) -> int:
        return len(self.bounds) + 1

    @functools.cached_property
    def plan(self) -> _Plan:
        return _Plan.of(self, self.unit.readings, self.unit.readings)

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        """Noise on the distance from the last release."""
        return [self.plan.dissimilarity(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Looking for a w-th of epsilon / 2 at every step, and publishing with the "
            "budgets, a w-th of epsilon / 2 each, of up to w steps that published nothing, as many "
            "steps after it but one being left out, gives w-event privacy",
            source=f"{SOURCE}, Budget Absorption",
            holds=True,
            remark="Leaving steps out afterwards is what makes it hold: without that a window can "
            "spend nearly twice its half.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, self.plan.scales(1))

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        return _publish_or_repeat(self, readings, draw, track, absorbing=True)

    start = start
