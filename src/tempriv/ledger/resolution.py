"""The time steps that a limit speaks of, and what releases with other steps cost there.

"Any 24 consecutive time steps" needs one meaning for all charges of a dataset. The first scope of a
dataset sets it: its steps are those of every limit. A release with other steps is restated for
them: so many consecutive steps of the limit lie within so many of its own, wherever they begin.
Where it is not known how the two go together, the charge is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tempriv.accounting.filters import UNBOUNDED_COST, Cost, cost_of
from tempriv.data.clock import describe_step
from tempriv.errors import BudgetError, require
from tempriv.ledger.scope import LATEST, Scope
from tempriv.privacy import units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee

Statements = tuple[Guarantee | NoGuarantee, ...]
"""What is guaranteed of one charge, each of it true."""

# clocks that tell the same time in other ticks; whole numbers may count anything
TICK_MICROSECONDS = {"date": 24 * 60 * 60 * 1_000_000, "datetime": 1}

# how the steps of a scope lie on those of its dataset, the simplest first
ON_GRID, OFF_GRID, NOT_COMPARABLE = 0, 1, 2


def _time_told(clock: str) -> str:
    """What a ``clock`` tells: clocks of one kind of time differ in ticks and columns only.

    A day of local time may have 23 or 25 hours of UTC. What whole numbers count, only their column
    says.
    """
    kind, _, column = clock.partition(" ")
    if kind not in TICK_MICROSECONDS:
        return clock
    return "UTC" if column.startswith("UTC") else "local"


class StepsReached(NamedTuple):
    """How many steps of a release a part of its raw data lies in.

    Parameters:
        steps: at most so many consecutive ones.
        cut: whether the first or the last of them may be reached in part only.
    """

    steps: int
    cut: bool


@dataclass(frozen=True)
class Resolution:
    """The time steps of a scope.

    Parameters:
        clock: of the scope.
        start: a tick at which a step begins; None: unknown.
        step: the length of a step, in ticks; None: unknown.
    """

    clock: str
    start: int | None
    step: int | None

    @classmethod
    def of(cls, scope: Scope) -> Resolution:
        """The steps of a ``scope``."""
        return cls(scope.clock, scope.start, scope.step)

    @property
    def timed(self) -> bool:
        """Whether it is known how long a step is."""
        return self.step is not None and not self.clock.startswith("index")

    def comparable(self, other: Resolution) -> bool:
        """Whether it is known how many steps of one lie in a step of the ``other``.

        Readings whose steps are unknown are compared with their like only, reading by reading.
        """
        if not (self.timed and other.timed):
            return self.timed == other.timed
        return _time_told(self.clock) == _time_told(other.clock)

    def ticks(self, steps: int, clock: str) -> int:
        """So many of these ``steps`` in ticks of a comparable ``clock``, rounded up."""
        assert self.step is not None
        return -(-steps * self.step * self._scale(self.clock) // self._scale(clock))

    @staticmethod
    def _scale(clock: str) -> int:
        return TICK_MICROSECONDS.get(clock.split(" ")[0], 1)

    def steps_reached(self, other: Resolution, steps: int) -> StepsReached:
        """How many steps of another, comparable resolution so many consecutive ones lie in.

        Parameters:
            other: of a release.
            steps: how many of these steps, wherever they begin.

        >>> hour, day = Resolution("datetime", 0, 3_600_000_000), Resolution("date", 0, 1)
        >>> hour.steps_reached(day, 24), day.steps_reached(hour, 1)
        (StepsReached(steps=2, cut=True), StepsReached(steps=24, cut=False))
        """
        if not self.timed:
            return StepsReached(steps, cut=False)
        assert self.step is not None and other.step is not None
        here = self.step * self._scale(self.clock)
        there = other.step * self._scale(other.clock)
        # where a step of this one can begin within a step of the other: at a rest, and every so
        # many ticks from there; anywhere if the two are not on one clock
        shared, rest = 1, 0
        begun = self._begins_after(other.clock, other.start)
        if begun is not None:
            shared = math.gcd(here, there)
            rest = begun % shared
        latest = there - shared + rest
        return StepsReached(-(-(latest + steps * here) // there), latest > 0)

    def same_steps(self, other: Resolution, grid: int) -> bool:
        """Whether steps of the ``other``, on a ``grid`` of these, are these very steps."""
        if not self.timed:
            return not other.timed
        return grid == ON_GRID and other.timed and self.ticks(1, other.clock) == other.step

    def grid_of(self, scope: Scope) -> int:
        """How the steps of a ``scope`` of the same dataset lie on these."""
        if not self.timed or not self.comparable(Resolution.of(scope)):
            return NOT_COMPARABLE
        if scope.start is None:
            return ON_GRID  # no time before it is outside
        begun = self._begins_after(scope.clock, scope.start)
        assert self.step is not None
        if begun is None or begun % (self.step * self._scale(self.clock)):
            return OFF_GRID
        return ON_GRID

    def _begins_after(self, clock: str, start: int | None) -> int | None:
        """How long after a ``start`` on a comparable ``clock``; None where that is not known."""
        same_column = clock.partition(" ")[2] == self.clock.partition(" ")[2]
        if not same_column or start is None or self.start is None:
            return None
        return self.start * self._scale(self.clock) - start * self._scale(clock)


def steps_covered(
    unit: units.Unit, base: Resolution, release: Resolution | None
) -> StepsReached | None:
    """How many steps of a release lie in what a unit covers in steps of its dataset.

    Parameters:
        unit: of a limit.
        base: the steps of the dataset.
        release: the steps of the release; None: the same.

    Returns:
        None where that is not known; one step for units that steps do not measure.
    """
    covered = unit.covered_steps
    if release is None or covered is None:
        return StepsReached(covered or 1, cut=False)
    return base.steps_reached(release, covered) if base.comparable(release) else None


def cost_over(
    guarantee: Guarantee | NoGuarantee, unit: units.Unit, order: float, steps: StepsReached | None
) -> Cost:
    """The cost of a charge for a limit that covers so many of its steps.

    Parameters:
        guarantee: of the release, for its own steps.
        unit: of the limit, for steps of its dataset.
        order: at which rhos are counted for the limit.
        steps: as ``steps_covered`` says.
    """
    restated = restated_over(guarantee, unit, steps)
    if isinstance(restated, NoGuarantee):
        return UNBOUNDED_COST
    return cost_of(restated, restated.unit, order)


def restated_over(
    guarantee: Guarantee | NoGuarantee, unit: units.Unit, steps: StepsReached | None
) -> Guarantee | NoGuarantee:
    """The guarantee of a charge for a limit that covers so many of its steps.

    Parameters:
        guarantee: of the release, for its own steps.
        unit: of the limit, for steps of its dataset.
        steps: as ``steps_covered`` says.
    """
    if isinstance(guarantee, NoGuarantee) or unit.covered_steps is None:
        return guarantee.for_unit(unit)
    spread = None if steps is None else unit.over_steps(steps.steps)
    if steps is None or spread is None:
        return NoGuarantee(f"its steps cannot be compared with those of {unit!r}")
    restated = guarantee.for_unit(spread)
    if not steps.cut or isinstance(restated, NoGuarantee):
        return restated
    return replace(restated, loss=restated.loss.grouped(guarantee.unit.links_when_cut))


def least_cost(
    statements: Statements,
    unit: units.Unit,
    order: float,
    steps: StepsReached | None,
) -> Cost:
    """The cost of a charge of which several things are guaranteed: the least by any of them.

    Parameters:
        statements: of the charge, each of them true; of pure losses, if there are several.
        unit: of the limit.
        order: at which rhos are counted for the limit.
        steps: as ``steps_covered`` says.
    """
    return min(cost_over(statement, unit, order, steps) for statement in statements)


def widths_of(
    unit: units.Unit, base: Resolution, grids: Mapping[str, int]
) -> dict[str, int | None]:
    """How many ticks after its last a scope is still reached by so many of the dataset's steps.

    None where time does not separate.

    Parameters:
        unit: of the limit, which covers a number of steps.
        base: the steps of the dataset.
        grids: for each clock, how scopes lie on these steps in the worst case.

    >>> base = Resolution("date", 0, 7)
    >>> widths_of(units.Window(3), base, {"date": ON_GRID, "datetime": NOT_COMPARABLE})
    {'date': 14, 'datetime': None}
    >>> widths_of(units.Window(3), base, {"date": OFF_GRID})
    {'date': 20}
    """
    assert unit.covered_steps is not None
    widths: dict[str, int | None] = {}
    for clock, grid in grids.items():
        if unit.reach is None or grid == NOT_COMPARABLE:
            # of readings that have no steps, only their own ticks are known
            alone = unit.reach == 0 and not base.timed
            widths[clock] = 0 if alone else None
        elif grid == ON_GRID:
            widths[clock] = min(base.ticks(unit.covered_steps - 1, clock), LATEST)
        else:
            widths[clock] = min(base.ticks(unit.covered_steps, clock) - 1, LATEST)
    return widths


def require_comparable(
    dataset: str, limit: units.Unit, base: Resolution, release: Resolution
) -> None:
    """Refuse a charge whose steps cannot be compared with those of the dataset's limits.

    Parameters:
        dataset: its name, for the message.
        limit: the unit of the limit.
        base: the steps of the dataset.
        release: the steps of the release.
    """
    require(
        limit.covered_steps is None or base.comparable(release),
        f"dataset {dataset!r} limits the loss of {limit.sentence}, and its first release has "
        f"{_described(base)}, this one {_described(release)}; how many readings of one belong to a "
        "reading of the other is not known, so the two cannot be added up: name the time column "
        "and the step, or charge this release to a dataset of its own",
        BudgetError,
    )


def _described(steps: Resolution) -> str:
    if not steps.timed:
        return "readings at no known step"
    assert steps.step is not None
    kind, _, column = steps.clock.partition(" ")
    of_column = f" (column {column})" if column else ""
    return f"steps of {describe_step(kind, steps.step)}{of_column}"
