"""Cases of running counts and sums."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.counting.binned import WIDTH
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.privacy.units import Contribution, Event, Person, Unit, WholeSeries, Window
from tests.conformance.case_checks import Case, Small
from tests.reference import counting as reference
from tests.reference.value import steps as grid_steps
from tests.support.statistics import COMPILED

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def _changed(unit: Unit, width: int, grid: float) -> tuple[Fraction, int, int]:
    """By how much, in how many steps, of a window of how many; counted by hand."""
    each = unit.each if isinstance(unit, (Person, Contribution)) else unit
    window = {Event: 1}.get(type(each)) or each.length
    if not isinstance(unit, Contribution):
        return Fraction(width), window, window
    by = Fraction(unit.per_step)
    steps = window if unit.total is None else min(window, int(Fraction(unit.total) / by))
    return by / Fraction(grid), steps, window


def _parameters(m: RunningCount, width: int, grid: float, rows: int) -> list[Fraction]:
    """Of the laws that one column draws from, by trying every change."""
    parts = m.unit.max_series if isinstance(m.unit, Person) else 1
    parts *= 1 if isinstance(m.unit, Contribution) else len(m.bounds)
    budget = Fraction(m.epsilon or m.rho) / parts
    by, steps, window = _changed(m.unit, width, grid)

    def law(l1: Fraction | int, l2: Fraction | int) -> Fraction:
        return by * l1 / budget if m.epsilon else by**2 * l2 / (2 * budget)

    if m.method == "increments":
        return [law(steps, steps)]
    if m.method == "binned":
        # of an endless one with so few bits no coefficient is left after these
        column = reference.binned_coefficients(m.horizon or 40, m.plans[0].bits)
        return [law(*reference.norms(reference.toeplitz(column), window, steps))]
    if m.horizon is None:
        b, plan = m.branching, m.plans[0]
        found = []
        for epoch, is_total in reference.epoch_draws(rows, b):
            levels = max(epoch, 1) if b == 2 else epoch + 1
            share = (plan.weight if is_total else 1) / (levels + plan.weight)
            end = b ** (epoch + 1)
            sizes = [end] if is_total else [b**level for level in range(levels)]
            together = Fraction(steps * sum(min(steps, size) for size in sizes), len(sizes))
            found.append(law(steps / share, together / share))
        return found
    if m.method == "square-root":
        matrix = reference.toeplitz(reference.coefficients(m.horizon, m.plans[0].bits))
    else:
        matrix = reference.node_matrix(m.horizon, m.branching)
    return [law(*reference.norms(matrix, window, steps))]


def counting_case(name: str, m: RunningCount, *smalls: Small, tight: bool = True) -> Case:
    bounds, grids = m.bounds, m.grid
    rows = 300 if COMPILED else 100  # of the check against the definition
    rows = rows if m.horizon is None else min(rows, m.horizon)
    counts = isinstance(m.unit, Contribution)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Some of them out of bounds."""
        low, high = np.array(bounds).T
        if counts:
            return rng.integers(low, high + 1, (count, len(bounds))).astype(np.float64)
        return rng.uniform(low - 1, high + 1, (count, len(bounds)))

    def released(values: Floats, drawn: list[Integers]) -> Floats:
        columns, each = [], len(drawn) // len(bounds)
        for c, plan in enumerate(m.plans):
            noise = [one.tolist() for one in drawn[c * each : (c + 1) * each]]
            x = reference.increments(values[:, c].tolist(), bounds[c], grids[c])
            if m.method == "square-root":
                column = reference.coefficients(len(x), plan.bits)
                sums = reference.square_root_sums(x, column, noise[0])
            elif m.method == "binned":
                column = reference.binned_coefficients(len(x), plan.bits)
                matrix = reference.binned_matrix(len(x), column, WIDTH)
                sums = reference.factored_sums(x, matrix, noise[0])
            elif m.method == "increments":
                sums = np.cumsum(np.array(x) + noise[0]).tolist()
            elif m.horizon is None:
                sums = reference.epoch_sums(x, m.branching, noise)
            else:
                sums = reference.tree_sums(x, m.branching, noise[0])
            columns.append(reference.rounded(sums, grids[c], plan.step))
        return np.concatenate(columns, axis=1)

    widths = [
        grid_steps(high, g) - grid_steps(low, g)
        for (low, high), g in zip(bounds, grids, strict=True)
    ]
    return Case(
        name=name,
        mechanism=m,
        readings=readings,
        still=tuple(low for low, _ in bounds),
        released=released,
        parameters=tuple(
            parameter
            for width, grid in zip(widths, grids, strict=True)
            for parameter in _parameters(m, width, grid, rows)
        ),
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        tight=tight,
        independent=False,
    )


BITS = (0.0, 1.0)
COUNTS = (0, 1, 2)


def one(**given: object) -> RunningCount:
    """A column of bits."""
    return RunningCount(**{"bounds": (0, 1), "grid": 1, **given})


CASES: tuple[Case, ...] = (
    counting_case(
        "running sum, square root",
        RunningCount(rho=0.5, bounds=(0, 5), horizon=300, method="square-root"),
    ),
    counting_case(
        "running sum, tree",
        RunningCount(epsilon=1.0, bounds=(-1, 2.3), horizon=1440, method="tree", branching=12),
    ),
    counting_case(
        "running sum, endless",
        RunningCount(epsilon=1.0, bounds=(0, 5), grid=0.25, branching=3, method="tree"),
    ),
    counting_case(
        "running sum, endless, gaussian",
        RunningCount(rho=0.1, bounds=(0, 5), grid=0.5, branching=2, method="tree", unit=Window(3)),
    ),
    counting_case(
        "running sum, increments",
        RunningCount(rho=0.1, bounds=(0, 5), grid=0.5, method="increments", unit=Window(2)),
    ),
    counting_case(
        "square root, event",
        one(rho=4.0, horizon=3, bits=1, method="square-root"),
        Small(BITS, 3, 1e-12),
    ),
    counting_case(
        "square root, window",
        one(rho=32.0, horizon=4, bits=1, method="square-root", unit=Window(2)),
        Small(BITS, 4, 1e-4),
        Small((-3.0, 0.0, 1.0), 2, 1e-13),
        tight=False,
    ),
    counting_case(
        "square root, whole series",
        one(rho=16.0, horizon=3, bits=1, method="square-root", unit=WholeSeries(3)),
        Small(BITS, 3, 1e-7),
        tight=False,
    ),
    counting_case(
        "square root, person",
        one(rho=16.0, horizon=3, bits=1, method="square-root", unit=Person(2, Event())),
        Small(BITS, 2, 1e-4),
        tight=False,
    ),
    counting_case(
        "square root, people",
        RunningCount(
            rho=16.0,
            bounds=(0, 9),
            horizon=3,
            bits=1,
            method="square-root",
            unit=Contribution(WholeSeries(3), total=2, signed=True),
        ),
        Small(COUNTS, 3, 1e-6),
        tight=False,
    ),
    counting_case(
        "square root, two columns",
        RunningCount(
            rho=16.0, bounds=((0, 1), (0, 1)), grid=(1, 1), horizon=3, bits=1, method="square-root"
        ),
        Small(((0, 0), (0, 1), (1, 1)), 2, 1e-4),
        Small(((0, 0), (0, 1), (9, 1)), 1, 1e-13),
        tight=False,
    ),
    counting_case(
        "square root, people in two columns",
        RunningCount(
            rho=24.0,
            bounds=((0, 9), (0, 9)),
            horizon=3,
            bits=1,
            method="square-root",
            unit=Contribution(Window(2)),
        ),
        Small(((0, 0), (0, 1), (1, 1)), 2, 1e-4),
        tight=False,
    ),
    counting_case(
        "running sum, binned",
        RunningCount(rho=0.5, bounds=(0, 5), horizon=200, bits=10, method="binned"),
    ),
    counting_case(
        "binned, event",
        one(rho=4.0, horizon=3, bits=1, method="binned"),
        Small(BITS, 3, 1e-12),
    ),
    counting_case(
        "binned, window",
        one(rho=8.0, horizon=3, bits=1, method="binned", unit=Window(2)),
        Small(BITS, 3, 1e-8),
        tight=False,
    ),
    counting_case(
        "binned, endless",
        one(rho=4.0, bits=1, method="binned"),
        Small(BITS, 3, 1e-10),
        tight=False,
    ),
    counting_case(
        "tree, event",
        one(epsilon=6.0, horizon=4, branching=2, method="tree"),
        Small(BITS, 4, 1e-2),
    ),
    counting_case(
        "tree, three steps",
        one(epsilon=4.0, horizon=3, branching=2, method="tree"),
        Small(BITS, 3, 1e-4),
    ),
    counting_case(
        "tree of threes, event",
        one(epsilon=4.0, horizon=4, branching=3, method="tree"),
        Small(BITS, 4, 1e-2),
    ),
    counting_case(
        "tree, window",
        one(epsilon=10.0, horizon=4, branching=2, method="tree", unit=Window(2)),
        Small(BITS, 4, 1e-2),
    ),
    counting_case(
        "tree, whole series",
        one(epsilon=8.0, horizon=3, branching=2, method="tree", unit=WholeSeries(3)),
        Small(BITS, 3, 1e-4),
    ),
    counting_case(
        "tree, person",
        one(epsilon=8.0, horizon=3, branching=2, method="tree", unit=Person(2, Event())),
        Small(BITS, 2, 1e-2),
    ),
    counting_case(
        "tree, people",
        RunningCount(
            epsilon=8.0,
            bounds=(0, 9),
            horizon=3,
            branching=3,
            method="tree",
            unit=Contribution(WholeSeries(3), total=2),
        ),
        Small(COUNTS, 3, 1e-3),
    ),
    counting_case(
        "tree, two columns",
        one(epsilon=8.0, bounds=((0, 1), (0, 2)), horizon=3, branching=2, method="tree"),
        Small(((0, 0), (0, 2), (1, 2)), 2, 1e-2),
    ),
    counting_case(
        "tree, gaussian, event",
        one(rho=2.0, horizon=3, branching=2, method="tree"),
        Small(BITS, 3, 1e-13),
    ),
    counting_case(
        "tree, gaussian, window",
        one(rho=18.0, horizon=4, branching=3, method="tree", unit=Window(2)),
        Small(BITS, 4, 1e-8),
        tight=False,
    ),
    counting_case(
        "increments, event",
        one(epsilon=3.0, method="increments"),
        Small((-3.0, 0.0, 1.0), 3, 1e-4),
    ),
    counting_case(
        "increments, gaussian, window",
        one(rho=2.0, method="increments", unit=Window(2)),
        Small(BITS, 3, 1e-13),
    ),
    counting_case(
        "endless, event",
        one(epsilon=4.0, branching=2, method="tree"),
        Small(BITS, 4, 1e-2),
        Small(BITS, 3, 1e-4),
    ),
    counting_case(
        "endless, window",
        one(epsilon=8.0, branching=3, method="tree", unit=Window(2)),
        Small(BITS, 4, 1e-2),
    ),
    counting_case(
        "endless, gaussian, event",
        one(rho=2.0, branching=3, method="tree"),
        Small(BITS, 3, 1e-13),
    ),
    counting_case(
        "endless, gaussian, window",
        one(rho=16.0, branching=2, method="tree", unit=Window(2)),
        Small(BITS, 4, 1e-6),
        tight=False,
    ),
)
