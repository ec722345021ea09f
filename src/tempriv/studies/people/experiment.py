"""Runs of a summary on tables of people, and what is scored of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tempriv.sampling.keys import Generator, Key, simulation
from tempriv.studies.common import Floats, ResultTable
from tempriv.studies.people.data import (
    CONTACTS_HIGH,
    HOMES_HIGH,
    HOURS,
    PEOPLE,
    PeopleInputs,
    homes,
    resampled,
)
from tempriv.summaries.cells import HOURS as HOUR_NAMES
from tempriv.summaries.estimate import SummaryRow
from tempriv.summaries.exact import exact_of
from tempriv.summaries.measure import PersonVectors
from tempriv.summaries.run import KeyedDraws, estimates_of, measure
from tempriv.summaries.spec import PeopleSummary
from tempriv.summaries.vectors import READING_STEPS

EPSILON, DELTA = 1.0, 1e-6
STATISTICS = ("mean", "total", "q10", "q50", "q75", "q90", "peak")
QUANTILES = ("q50", "q75", "q90")
SCORES = ("mean", *QUANTILES, "peak", "public bounds")
ERRORS, INTERVALS = "people-errors", "people-intervals"


@dataclass(frozen=True, kw_only=True)
class PeopleSize:
    """How much of everything.

    Parameters:
        runs: for errors.
        people: how many people, for errors.
        interval_runs: for intervals.
        interval_people: how many people, for intervals.
    """

    runs: int
    people: tuple[int, ...]
    interval_runs: int
    interval_people: tuple[int, ...]


QUICK = PeopleSize(
    runs=100, people=(PEOPLE, 10_000), interval_runs=50, interval_people=(600, 2_000, 20_000)
)
FULL = PeopleSize(
    runs=400,
    people=(PEOPLE, 10_000, 100_000),
    interval_runs=1_000,
    interval_people=(600, 2_000, 20_000),
)


@dataclass(frozen=True)
class MadeTable:
    """One kind of table.

    Parameters:
        name: of the table.
        high: the public upper bound.
        draw: so many people of it.
    """

    name: str
    high: float
    draw: Callable[[int, Generator], Floats]


def made_tables(inputs: PeopleInputs) -> tuple[MadeTable, ...]:
    """The real contacts of the ``inputs``, and the made-up homes."""

    def contacts(count: int, generator: Generator) -> Floats:
        return resampled(inputs.contacts, count, generator)

    return (
        MadeTable("contacts", CONTACTS_HIGH, contacts),
        MadeTable("lognormal homes", HOMES_HIGH, homes),
    )


@dataclass(frozen=True)
class SummaryOutcome:
    """One run: what was released, and what is true of the people.

    Parameters:
        people: the profiles.
        rows: what was released.
        exact: by cell and statistic.
        spec: of the summary.
    """

    people: Floats
    rows: list[SummaryRow]
    exact: dict[tuple[str, str], float]
    spec: PeopleSummary

    def of(self, name: str) -> Floats:
        """What was released of a statistic, ``name``, in each hour."""
        found = {row.cell: row.value for row in self.rows if row.statistic == name}
        return np.array([found[cell] for cell in HOUR_NAMES])

    def error(self, name: str) -> float:
        """The mean error over hours, as a part of the mean level of the statistic ``name``."""
        true = np.array([self.exact[cell, name] for cell in HOUR_NAMES])
        return float(np.abs(self.of(name) - true).mean() / true.mean())

    def peak_distance(self) -> float:
        """Total variation of peak shares; whoever has no peak counts for the first hour."""
        shares = self.of("peak")
        shares[0] += next(
            row.value for row in self.rows if (row.cell, row.statistic) == ("none", "peak")
        )
        true = np.bincount(self.people.argmax(axis=1), minlength=HOURS) / len(self.people)
        return float(np.abs(shares - true).sum() / 2)


def run_once(table: MadeTable, count: int, run: int) -> SummaryOutcome:
    """One summary of ``count`` people of a ``table``, with the noise of a ``run``."""
    key = Key.from_seed(run)
    people = table.draw(count, simulation(key, f"{table.name} {count}"))
    spec = PeopleSummary(
        epsilon=EPSILON, delta=DELTA, bounds=(0.0, table.high), statistics=STATISTICS
    )
    vectors = PersonVectors(np.rint(people / table.high * READING_STEPS).astype(np.int32))
    place = f"{table.name} {count} {run}"
    (measured,) = measure([vectors], spec, lambda stratum: KeyedDraws(key, "study", place))
    exact = {(cell, name): value for cell, name, value in exact_of(spec, vectors, HOUR_NAMES)}
    return SummaryOutcome(people, estimates_of(spec, measured, HOUR_NAMES), exact, spec)


def public_bounds_error(table: MadeTable, outcome: SummaryOutcome, run: int) -> float:
    """The error of the mean alone, clipped to the public bounds, at the whole budget.

    Parameters:
        table: of the people.
        outcome: of the same people.
        run: of the noise.
    """
    people = outcome.people
    sigma = table.high * np.sqrt(HOURS) / len(people) / outcome.spec.mu
    noise = simulation(Key.from_seed(run), "public bounds").normal(0, sigma, HOURS)
    return float(np.abs(noise).mean() / people.mean())


def error_table(inputs: PeopleInputs, size: PeopleSize) -> ResultTable:
    """Median errors over runs, and how many are above three times the median.

    Parameters:
        inputs: the real people.
        size: how much of everything.
    """
    lines = []
    for table in made_tables(inputs):
        for count in size.people:
            scores = []
            for run in range(size.runs):
                outcome = run_once(table, count, run)
                errors = [outcome.error(name) for name in ("mean", *QUANTILES)]
                errors += [outcome.peak_distance(), public_bounds_error(table, outcome, run)]
                scores.append(errors)
            found = np.array(scores)
            medians = np.median(found, axis=0)
            above = (found > 3 * medians).mean(axis=0)
            lines += [
                (table.name, count, name, float(median), float(share))
                for name, median, share in zip(SCORES, medians, above, strict=True)
            ]
    return ResultTable(
        ERRORS,
        "Median error, as a part of the level; total variation for peaks",
        ("table", "people", "score", "median", "above_three_times"),
        lines,
    )


def interval_table(inputs: PeopleInputs, size: PeopleSize) -> ResultTable:
    """How often intervals of 95 % hold the value of the table, cells and runs pooled.

    Parameters:
        inputs: the real people.
        size: how much of everything.
    """
    lines = []
    for table in made_tables(inputs):
        for count in size.interval_people:
            held: dict[str, list[bool]] = {}
            width: dict[str, list[float]] = {}
            for run in range(size.interval_runs):
                outcome = run_once(table, count, 10_000 + run)
                for row in outcome.rows:
                    true = outcome.exact[row.cell, row.statistic]
                    slack = 1e-9 * max(abs(true), 1.0)
                    within = row.low - slack <= true <= row.high + slack
                    held.setdefault(row.statistic, []).append(within)
                    width.setdefault(row.statistic, []).append(row.high - row.low)
            lines += [
                (table.name, count, name, float(np.mean(held[name])), float(np.median(width[name])))
                for name in held
            ]
    return ResultTable(
        INTERVALS,
        "Share of 95 % intervals that hold the value of the table",
        ("table", "people", "statistic", "held", "median_width"),
        lines,
    )


def tables(inputs: PeopleInputs, size: PeopleSize) -> Iterator[ResultTable]:
    """Errors, and then intervals, of the ``inputs`` at a ``size``."""
    yield error_table(inputs, size)
    yield interval_table(inputs, size)
