"""Cases of noise that is smoothed over groups."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.base import SeriesState
from tempriv.privacy.units import Contribution, Event, Window
from tests.conformance.case_checks import Case, Small
from tests.conformance.cases.budgets import readings_of
from tests.reference import pegasus as reference
from tests.reference.budgets import on_grid

Floats = npt.NDArray[np.float64]


def changes_of(mechanism: PeGaSus) -> list[Fraction]:
    """All that neighbors differ by in a column, times the number of columns that share epsilon."""
    unit = mechanism.unit
    if isinstance(unit, Contribution):
        rows = 1 if isinstance(unit.each, Event) else unit.each.length
        most = unit.per_step * rows
        most = most if unit.total is None else min(unit.total, most)
        return [Fraction(most) / Fraction(grid) for grid in mechanism.grid]
    rows = 1 if isinstance(unit, Event) else unit.length
    columns = list(zip(mechanism.bounds, mechanism.grid, strict=True))
    return [
        len(columns) * rows * Fraction(round(high / grid) - round(low / grid))
        for (low, high), grid in columns
    ]


def scales(mechanism: PeGaSus) -> tuple[Fraction, ...]:
    """For each column of the noise on readings, on thresholds and on tests."""
    epsilon, share = Fraction(mechanism.epsilon), Fraction(mechanism.share)
    grouping = share * epsilon
    return tuple(
        scale
        for change in changes_of(mechanism)
        for scale in (change / (epsilon - grouping), 4 * change / grouping, 8 * change / grouping)
    )


def thetas(mechanism: PeGaSus) -> list[int]:
    if mechanism.theta is not None:
        return [round(Fraction(mechanism.theta) / Fraction(grid)) for grid in mechanism.grid]
    grouping = Fraction(mechanism.share) * Fraction(mechanism.epsilon)
    return [max(1, round(5 * change / grouping)) for change in changes_of(mechanism)]


def parts(scale: Fraction) -> int:
    """A grid step is cut into so many that there are 1024 of them to the noise, 2 to 1024."""
    return 2 ** min(10, max(1, math.ceil(math.log2(1024 / scale))))


def released(mechanism: PeGaSus) -> Callable[[Any, list[Any]], Floats]:
    """By definition, from readings and noise."""

    def through(rows: Any, drawn: list[Any]) -> Floats:
        steps = on_grid(rows, mechanism.bounds, mechanism.grid)
        made = []
        for j, grid in enumerate(mechanism.grid):
            column = reference.release(
                [row[j] for row in steps],
                thetas(mechanism)[j],
                mechanism.longest,
                mechanism.smoothing,
                *drawn[3 * j : 3 * j + 3],
            )
            fine = parts(scales(mechanism)[3 * j])
            made.append([float(reference.rounded(x, fine)) * grid for x in column])
        return np.array(made).T.reshape(len(steps), len(made))

    return through


def pegasus_case(name: str, mechanism: PeGaSus, *smalls: Small) -> Case:
    grids = mechanism.grid
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings_of(mechanism),
        still=tuple(
            grid * round(high / grid)
            for (_, high), grid in zip(mechanism.bounds, grids, strict=True)
        ),
        released=released(mechanism),
        parameters=scales(mechanism),
        cost=lambda outcomes, column: grids[column] * np.abs(outcomes),
        smalls=smalls,
        tight=False,
        independent=False,
    )


BITS = (0.0, 1.0)
COUNTED = Contribution(Window(2))

CASES: tuple[Case, ...] = (
    pegasus_case("pegasus, counts", PeGaSus(epsilon=1.0, bounds=(0, 40), unit=Contribution())),
    pegasus_case(
        "pegasus, calm counts by their median",
        PeGaSus(
            epsilon=2.0,
            bounds=(-9, 30),
            unit=Contribution(per_step=2),
            smoothing="median",
            theta=150.0,
            longest=5,
        ),
    ),
    pegasus_case(
        "pegasus, numbers in unlike columns",
        PeGaSus(
            epsilon=9.0,
            bounds=((-1, 2), (5, 6)),
            unit=Window(3),
            smoothing="james-stein",
            share=0.4,
            grid=(2.0**-3, 2.0**-5),
        ),
    ),
    pegasus_case(
        "pegasus, event",
        PeGaSus(epsilon=4.0, bounds=(0, 1), share=0.5, grid=1),
        Small(BITS, 2, 1e-3),
    ),
    pegasus_case(
        "pegasus, three readings",
        PeGaSus(epsilon=15.0, bounds=(0, 1), share=0.8, longest=2, grid=1),
        Small((*BITS, 7.0), 3, 5e-3),
    ),
    pegasus_case(
        "pegasus, window",
        PeGaSus(epsilon=8.0, bounds=(0, 1), unit=Window(2), share=0.5, grid=1),
        Small(BITS, 2, 1e-3),
    ),
    pegasus_case(
        "pegasus, two columns",
        PeGaSus(epsilon=30.0, bounds=((0, 1), (1, 2)), share=0.8, grid=1),
        Small(((0, 1), (1, 2)), 2, 5e-3),
    ),
    pegasus_case(
        "pegasus, few counts",
        PeGaSus(epsilon=30.0, bounds=(0, 9), unit=COUNTED, share=0.8, smoothing="median"),
        Small((0.0, 1.0, 2.0), 3, 5e-3),
    ),
    pegasus_case(
        "pegasus, hard counts",
        PeGaSus(epsilon=8.0, bounds=(0, 99), unit=Contribution(per_step=2), share=0.5),
    ),
    pegasus_case(
        "pegasus, sums in two cells",
        PeGaSus(
            epsilon=30.0,
            bounds=((0, 9), (0, 9)),
            unit=Contribution(per_step=2, signed=True),
            share=0.8,
            smoothing="james-stein",
        ),
        Small(((0, 1), (1, 0)), 2, 5e-3),
    ),
)


# groups that are hard to hide


class OneRow:
    """A source for one row: no noise on it, one outcome for the threshold, the wanted side of a
    test with its probability."""

    def __init__(self, outcome: int, joins: bool):
        self.outcome, self.joins = outcome, joins
        self.probability, self.tested = 1.0, False
        self.asked: Any = None

    def __call__(self, law: Any, purpose: str, rows: Any = None) -> Any:
        return np.zeros(1, dtype=np.int64)

    def each(self, law: Any, purpose: str) -> Any:
        def at(row: int) -> int:
            self.asked = law
            return self.outcome

        def above(row: int, cut: int) -> bool:
            closes = exact.mass_above(law, int(cut)), exact.mass_above(law, -int(cut) - 1)
            self.probability *= closes[self.joins]
            self.tested = True
            return not self.joins

        return SimpleNamespace(at=at, above=above)


def one_row(
    mechanism: Any, before: bytes, reading: int, joins: bool, outcome: int
) -> tuple[OneRow, bytes]:
    memory = np.frombuffer(before, dtype=np.int64).reshape(1, -1).copy()
    one, here = np.ones(1, dtype=np.int64), np.zeros((1, 1), dtype=np.bool_)
    source = OneRow(outcome, joins)
    mechanism.perturb(np.array([[reading]]), source, SeriesState(one, one, here, memory))
    return source, memory.tobytes()


def group_law(
    mechanism: Any, stream: Sequence[int], tail: float, only: str | None = None
) -> dict[str, float]:
    """The law of the groups of a stream: at each reading "j" it joins, "c" it closes, "o" it opens.

    By the mechanism's own code, a row at a time; memories that are alike are one. ``only`` asks for
    the chance of one outcome and follows no other.
    """
    states = {("", np.zeros((1, mechanism.memory_size), dtype=np.int64).tobytes()): 1.0}
    for step, reading in enumerate(stream):
        after: dict[tuple[str, bytes], float] = defaultdict(float)
        for (groups, before), mass in states.items():
            for side in "jc" if only is None or only[step] == "o" else only[step]:
                source, memory = one_row(mechanism, before, reading, side == "j", 0)
                does = groups + (side if source.tested else "o")
                if source.asked is None:
                    after[does, memory] += mass * source.probability
                else:
                    for outcome, probability in source.asked.outcomes(tail):
                        source, memory = one_row(mechanism, before, reading, side == "j", outcome)
                        after[does, memory] += mass * source.probability * probability
                if not source.tested:
                    break
        states = after
    found: dict[str, float] = defaultdict(float)
    for (groups, _), mass in states.items():
        found[groups] += mass
    return dict(found)


HARD = (
    # one reading far above the others: that they join is unlikely, and more so if it is farther
    ((10, 0, 0, 0, 0, 0, 0, 0), 0, "ojjjjjjj"),
    # the distances add up to more with the last reading, but not if the one before it is farther
    ((0, 10, 5, 6), 2, "ojjc"),
)


def loss_of(mechanism: Any, stream: Sequence[int], place: int, groups: str) -> float:
    """Between a stream and the same with one reading changed, by what the groups tell."""
    change = mechanism.unit.per_step
    other = [x + change if i == place else x for i, x in enumerate(stream)]
    one, two = (group_law(mechanism, x, 1e-6, groups)[groups] for x in (stream, other))
    return abs(math.log(one / two))


def hard_groups_are_hidden(case: Case) -> None:
    """By what grouping has of epsilon, to a thousandth: thresholds far away are left out."""
    mechanism = case.mechanism
    for stream, place, groups in HARD:
        found = loss_of(mechanism, stream, place, groups)
        assert found <= 1.001 * mechanism.epsilon * mechanism.share, f"{found} on {stream}"
