"""Figures 4 to 6 of the paper on sampling periods: how wrong values are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tempriv.studies.common import ResultTable, Row, Section, Tables, standard_error
from tempriv.studies.sppa.data import SppaDataset
from tempriv.studies.sppa.experiment import (
    CLAMPED,
    ERRORS,
    ETM,
    JOINED,
    MEAN,
    PEGASUS,
    SPPA,
    THEIRS,
    WINDOW,
    SppaMethod,
    SppaSize,
    errors_of,
    interpolations,
    mean_way,
    sampling_ways,
    ways,
)

SETTINGS = ((1.0, 4), (1.0, 8), (3.0, 4), (3.0, 8))  # epsilon and w of Figure 4
MOST_BELOW = 0.642  # the abstract: SPPA is below the best baseline by so much at most


def _lines(
    data: SppaDataset, given: tuple[Any, ...], made: dict[str, SppaMethod], window: int, runs: int
) -> Iterator[tuple[Any, ...]]:
    for name, way in made.items():
        errors = np.array([errors_of(data, way, window, seed) for seed in range(runs)])
        means, spread = map(float, errors.mean(axis=0)), standard_error(errors[:, 0])
        yield (*given, data.name, name, *means, spread, way.protects)


COLUMNS = ("data", "mechanism", *ERRORS, "standard_error", "protects")


def figure_4(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Against tau, which only the noisy period has; the mean of each window has none."""
    lines: list[tuple[Any, ...]] = []
    runs = max(1, size.runs // 2)
    for one in data:
        for epsilon, window in SETTINGS:
            for tau in size.taus:
                made = sampling_ways(one, epsilon, window, tau)
                lines += _lines(one, (epsilon, window, tau), made, window, runs)
            (mean,) = _lines(one, (), {MEAN: mean_way(window)}, window, 1)
            lines += [(epsilon, window, tau, *mean) for tau in size.taus]
    title = "Mean squared error against tau, in sampling periods"
    return ResultTable("figure-4", title, ("epsilon", "window", "tau", *COLUMNS), tuple(lines))


def figure_5(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    lines: list[tuple[Any, ...]] = []
    for one in data:
        for epsilon in size.epsilons:
            made = ways(one, epsilon, WINDOW)
            lines += _lines(one, (epsilon, WINDOW), made, WINDOW, size.runs)
    title = f"Mean squared error against epsilon, w = {WINDOW}, tau = T_s"
    return ResultTable("figure-5", title, ("epsilon", "window", *COLUMNS), tuple(lines))


def figure_6(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    lines: list[tuple[Any, ...]] = []
    for one in data:
        for window in size.windows:
            lines += _lines(one, (1.0, window), ways(one, 1.0, window), window, size.runs)
    title = "Mean squared error against the window, epsilon 1, tau = T_s"
    return ResultTable("figure-6", title, ("epsilon", "window", *COLUMNS), tuple(lines))


def curves(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Every way to draw a curve through a window, within bounds or not, and its mean."""
    lines: list[tuple[Any, ...]] = []
    for one in data:
        for epsilon in (1.0, 3.0):
            made = {**interpolations(one, epsilon, WINDOW), MEAN: mean_way(WINDOW)}
            lines += _lines(one, (epsilon, WINDOW), made, WINDOW, max(3, size.runs))
    title = f"Mean squared error of curves, w = {WINDOW}, tau = T_s"
    return ResultTable("interpolations", title, ("epsilon", "window", *COLUMNS), tuple(lines))


def tables(data: tuple[SppaDataset, ...], size: SppaSize) -> Iterator[ResultTable]:
    yield curves(data, size)
    yield figure_4(data, size)
    yield figure_5(data, size)
    yield figure_6(data, size)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    yield from _on_ranks(tables)
    yield from _on_trends(tables)
    yield from _on_curves(tables["interpolations"])


def _names(table: ResultTable) -> list[str]:
    return table.unique("data")


def _error(table: ResultTable, mechanism: str, **where: Any) -> float:
    return float(table.column("mse", mechanism=mechanism, **where)[0])


def _on_ranks(tables: Tables) -> Iterator[Row]:
    section = Section("SPPA, ETM and PeGaSus (Section 5.3.1, Figs. 5 and 6)")
    for name, varied in (("figure-5", "epsilon"), ("figure-6", "window")):
        table = tables[name]
        for data in _names(table):
            given = sorted(set(table.column(varied, data=data)))
            errors = [
                [_error(table, one, data=data, **{varied: value}) for one in THEIRS]
                for value in given
            ]
            first = sum(sppa < etm for sppa, etm, _ in errors) / len(given)
            what = f"{data}, {name}: share of settings with SPPA below ETM"
            yield section.holds(what, 1, first, f"{name}.csv")
            second = sum(max(sppa, etm) < noisy for sppa, etm, noisy in errors) / len(given)
            what = f"{data}, {name}: share with both below PeGaSus"
            yield section.holds(what, 1, second, f"{name}.csv")
    table = tables["figure-5"]
    below = {
        data: 1
        - _error(table, SPPA, data=data, epsilon=1.0) / _error(table, ETM, data=data, epsilon=1.0)
        for data in _names(table)
    }
    for data, part in below.items():
        what = f"{data}: SPPA is below ETM by, at epsilon 1"
        yield section.ours(what, part, "the paper: up to 0.642, on its own data")
        joined = _error(table, JOINED, data=data, epsilon=1.0)
        part = 1 - _error(table, SPPA, data=data, epsilon=1.0) / joined
        what = f"{data}: SPPA is below ETM with its gaps joined by, at epsilon 1"
        yield section.ours(what, part, "straight lines over empty slots")
    what = "the most that SPPA is below ETM, epsilon 1"
    yield section.holds(what, MOST_BELOW, max(below.values()), "figure-5", 0.15)
    for data in _names(table):
        ratio = _error(table, PEGASUS, data=data, epsilon=1.0) / _error(
            table, SPPA, data=data, epsilon=1.0
        )
        what = f"{data}: squared error of PeGaSus, as a multiple of SPPA's"
        yield section.ours(what, ratio, "it protects values; epsilon 1")


def _on_trends(tables: Tables) -> Iterator[Row]:
    section = Section("Trends (Sections 5.2 and 5.3.1, Figs. 4 to 6)")

    def rises(name: str, mechanism: str, **where: Any) -> list[bool]:
        """For each data set, whether the error is larger at the last setting than at the first."""
        table = tables[name]
        each = [
            table.column("mse", data=one, mechanism=mechanism, **where) for one in _names(table)
        ]
        return [errors[-1] > errors[0] for errors in each]

    up = [rises("figure-4", SPPA, epsilon=epsilon, window=window) for epsilon, window in SETTINGS]
    what = "SPPA: share of data sets and settings in which the error rises with tau"
    yield section.holds(what, 1, float(np.mean(up)), "tau of 2 periods against 0.2")
    for one in THEIRS:
        # "an increase in errors with the rise of epsilon", which its own Theorem 5 contradicts
        what = f"{one}: share of data sets on which the error rises with epsilon"
        share = float(np.mean(rises("figure-5", one)))
        yield section.fails(what, 1, share, "epsilon 3 against 0.5")
    for one in THEIRS:
        what = f"{one}: share of data sets on which the error rises with w"
        share = float(np.mean(rises("figure-6", one)))
        yield section.holds(what, 1, share, "w = 20 against 4")


def _on_curves(table: ResultTable) -> Iterator[Row]:
    section = Section("Squared errors as parts of the variance within windows of w + 2, w = 8")
    for data in _names(table):
        for epsilon in (1.0, 3.0):
            for mechanism in ("printed", "cosine", "cosine, clamped", MEAN):
                (part,) = table.column(
                    "of_window_variance", data=data, epsilon=epsilon, mechanism=mechanism
                )
                what = f"{data}, epsilon {epsilon:g}: {mechanism}"
                yield section.ours(what, part, "interpolations.csv")
    section = Section("What bounds are good for, w = 8")
    for epsilon in (1.0, 3.0):
        for against in ("printed", MEAN):
            ratios = {
                data: _error(table, "cosine, clamped", data=data, epsilon=epsilon)
                / _error(table, against, data=data, epsilon=epsilon)
                for data in _names(table)
            }
            words = "the window mean's" if against == MEAN else "the printed curve's"
            what = f"{CLAMPED}, epsilon {epsilon:g}: its error over {words}, at most"
            taxis = max(ratio for data, ratio in ratios.items() if "taxis" in data)
            yield section.ours(f"{what}, taxis", taxis, "both cities", at_most=1.0)
            worst = max(ratios.values())
            yield section.ours(f"{what}, all data", worst, "interpolations.csv")
    least = min(
        _error(table, "printed", data=data, epsilon=1.0)
        / _error(table, MEAN, data=data, epsilon=1.0)
        for data in _names(table)
    )
    what = "SPPA as printed, epsilon 1: its error over the window mean's, at least"
    yield section.ours(what, least, "above 1: the mean is nearer")
