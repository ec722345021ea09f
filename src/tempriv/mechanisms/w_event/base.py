"""A budget for any w consecutive steps of an endless stream, spent in four ways (w-event privacy).

A row of counts or numbers comes in at each step. Two schemes spend by plan: a little on every step,
or all of it on one step in w. Two look whether the row has moved away from the last release, which
costs half of the budget, and publish only then (Kellaris, Papadopoulos, Xiao and Papadias 2014).
Where nothing is published the last release stands again; before the first one that is zero, or the
bound nearest to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, KernelNoise, LaplaceRows, NoiseSource, ReportTexts
from tempriv.mechanisms.domains import Floats, Integers
from tempriv.mechanisms.numbers import (
    LARGEST_SCALE,
    AcceptedUnits,
    NumberMechanism,
    require_drawable,
)
from tempriv.mechanisms.w_event._kernels import PublishingPlan, publish_or_repeat
from tempriv.privacy.units import Contribution, Event, Window
from tempriv.sampling._kernels import Scalable, suited
from tempriv.sampling.distributions import DiscreteLaplace, ScalableLaplace

if TYPE_CHECKING:
    from tempriv.mechanisms.base import SeriesState

UNITS = 1 << 40
"""Half of epsilon in whole units, for budgets that are halved again and again."""

LARGEST_LIMIT = 1 << 54  # distances between rows stay whole numbers of 64 bits
MOST_REMEMBERED = 1 << 20

SOURCE = "Kellaris, Papadopoulos, Xiao and Papadias 2014"

WINDOWS = AcceptedUnits(
    (Event, Window),
    "Window(w), or Contribution(Window(w)) for counts; budgets are for any w consecutive steps",
)
REPEATING = ReportTexts(
    done="random noise was added to some of them, and the others repeat the last of these",
    band="± expected error of a fresh value",
    errors="Expected errors of fresh values, in the unit of the column",
    single="one fresh value",
    besides="A repeated value has the error of the one that it repeats, and misses "
    "what has changed since. Averages over repeated values are no better than one of them.",
)


def window_command(name: str, purpose: str, rank: int) -> CommandLine:
    """How a mechanism is offered that has a budget for any window.

    Parameters:
        name: as typed after ``--mechanism``.
        purpose: what it is for, in one line.
        rank: its place among those that hide values.
    """
    return CommandLine(
        name=name,
        hides="values",
        purpose=purpose,
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=rank,
    )


def origin_of(mechanism: NumberMechanism) -> Integers:
    """What stands for a last release before there is one, in grid steps.

    Parameters:
        mechanism: one that repeats its last release.
    """
    low, high = mechanism.numbers.edges().T
    return np.asarray(np.clip(0, low, high))


class SideBySide:
    """The draws of several columns as one, that of column j in row i at i + j * rows.

    Parameters:
        parts: the draws of each column.
        rows: how many rows there are.
    """

    def __init__(self, parts: Sequence[KernelNoise | LaplaceRows], rows: int):
        self.parts, self.rows = parts, rows

    @property
    def joined(self) -> KernelNoise | LaplaceRows:
        """Arrays for a compiled kernel; for an audit, this, which asks the column's own."""
        if len(self.parts) == 1:
            return self.parts[0]
        arrays = [part for part in self.parts if isinstance(part, np.ndarray)]
        if len(arrays) == len(self.parts):
            return np.concatenate(arrays)
        keyed = [part for part in self.parts if isinstance(part, Scalable)]
        if len(keyed) == len(self.parts):
            return Scalable(*(np.concatenate(columns) for columns in zip(*keyed, strict=True)))
        return self

    def at(self, place: int) -> int:
        """The draw at a ``place``."""
        return int(self._part(place).at(place % self.rows))

    def above(self, place: int, cut: int) -> bool:
        """Whether the draw at a ``place`` exceeds the ``cut``."""
        return bool(self._part(place).above(place % self.rows, cut))

    def laplace(self, place: int, scale: float) -> int:
        """The draw at a ``place``, at a ``scale``."""
        return int(self._part(place).laplace(place % self.rows, scale))

    def _part(self, place: int) -> Any:  # of a kind that has what is asked for
        return self.parts[place // self.rows]


class ScalableColumns:
    """Laplace noise for a kernel that finds its scale as it goes, in one or more columns.

    Parameters:
        noise: where randomness comes from.
        purposes: what the draws of each column are for.
        rows: how many rows there are.
    """

    def __init__(self, noise: NoiseSource, purposes: Sequence[str], rows: int):
        self.sources = [noise.scalable(purpose) for purpose in purposes]
        self.words = SideBySide([source.words for source in self.sources], rows).joined
        self.rows = rows

    def run(self, kernel: Callable[..., tuple[int, int, float]], *arguments: object) -> None:
        """Carry a kernel to the last row; a draw that floating point leaves open is settled.

        Parameters:
            kernel: takes the row to begin at, the arguments and the words, and gives the row that
                it came to, and the place and scale of a draw that is open.
            arguments: whatever else it takes.
        """
        row = 0
        while row < self.rows:
            row, place, scale = kernel(row, *arguments, self.words)
            if row < self.rows:
                self.settle(place, scale)

    def settle(self, place: int, scale: float) -> None:
        """Draw a number exactly.

        Parameters:
            place: of the draw, as ``SideBySide`` counts.
            scale: of its noise.
        """
        source, row = self.sources[place // self.rows], place % self.rows
        assert isinstance(source, ScalableLaplace), "the outcomes of an audit are never open"
        source.settle(row, scale)
        assert isinstance(self.words, Scalable)
        self.words.settled[place] = source.words.settled[row]


@dataclass(frozen=True)
class AdaptiveBudget:
    """How the two schemes spend that look first; half of epsilon is for looking, half to publish.

    Parameters:
        whole: the half for publishing, in units.
        best: the most units that a step can have.
        weights: of the columns in the distance between two rows.
        looking: noise on this distance, at every step.
        changes: for each column, what its noise is measured by, in grid steps.
        epsilon: of a window.
    """

    whole: int
    best: int
    weights: Integers
    looking: DiscreteLaplace
    changes: list[Fraction]
    epsilon: Fraction

    @classmethod
    def of(cls, mechanism: NumberMechanism, whole: int, best: int) -> AdaptiveBudget:
        """The budget of a mechanism; refused where noise or rows would not fit.

        Parameters:
            mechanism: whose window and epsilon it is.
            whole: half of epsilon, in units.
            best: the most units that a step can have.
        """
        changes, unit = mechanism.row_changes, mechanism.unit
        # columns count alike: each by what it can change
        weights = [max(1, round(max(changes) / change)) for change in changes]
        moves = [weight * change for weight, change in zip(weights, changes, strict=True)]
        # how much one person, or one reading in each column, moves the distance
        move = max(moves) if unit.counts_people else sum(moves, start=Fraction(0)) / len(moves)
        rows = Fraction(unit.readings)
        if isinstance(unit, Contribution):
            rows = Fraction(unit.most) / Fraction(unit.per_step)
        budget = cls(
            whole=whole,
            best=best,
            weights=np.array(weights, dtype=np.int64),
            looking=DiscreteLaplace(2 * move * rows / Fraction(mechanism.budget)),
            changes=changes,
            epsilon=Fraction(mechanism.budget),
        )
        # looking takes no value, so its noise may be greater
        require_drawable([*budget.scales(best), budget.looking.scale / 4])
        require(
            budget.least <= best,
            f"{len(weights)} columns: too many for a grid this fine; choose a coarser grid",
        )
        return budget

    def scales(self, units: int) -> list[Fraction]:
        """Of the noise on a published row that takes so many ``units``, in grid steps."""
        return [2 * change / self.epsilon * self.whole / units for change in self.changes]

    def noise(self, units: int) -> list[DiscreteLaplace]:
        """The noise on a published row that takes so many ``units``."""
        return [DiscreteLaplace(scale) for scale in self.scales(units)]

    @property
    def tops(self) -> Floats:
        """The scales for one unit, rounded up by more than dividing them can round down."""
        return np.array([float(scale) * (1 + 2.0**-50) for scale in self.scales(1)])

    @property
    def least(self) -> int:
        """With fewer units than these a step is not published: there is too much noise to draw."""
        scales = self.scales(1)
        limit = sum(int(w) * scale for w, scale in zip(self.weights, scales, strict=True))
        return max(1, math.ceil(max(scales) / LARGEST_SCALE), math.ceil(limit / LARGEST_LIMIT))

    def plan(self, window: int, absorbing: bool) -> PublishingPlan:
        """What the kernel is handed.

        Parameters:
            window: how many steps epsilon is for.
            absorbing: whether budgets are taken from the steps before.
        """
        return PublishingPlan(self.weights, self.tops, self.least, self.whole, window, absorbing)


def publish_on_change(
    mechanism: NumberMechanism,
    budget: AdaptiveBudget,
    absorbing: bool,
    readings: Integers,
    noise: NoiseSource,
    state: SeriesState,
) -> Integers:
    """Rows that have moved away from the last release, with noise; the others repeat it.

    Parameters:
        mechanism: whose bounds and window it is.
        budget: of the window.
        absorbing: whether budgets are taken from the steps before.
        readings: in grid steps.
        noise: where randomness comes from.
        state: of the series.
    """
    plan, origin = budget.plan(mechanism.unit.readings, absorbing), origin_of(mechanism)
    looks = noise.each(budget.looking, "dissimilarity")
    columns = ScalableColumns(
        noise, [f"column {j}" for j in range(readings.shape[1])], len(readings)
    )
    rows = state.kernel_rows(readings - origin)
    columns.run(suited(publish_or_repeat, looks, columns.words), rows, plan, looks)
    return np.asarray(rows.outputs + origin)
