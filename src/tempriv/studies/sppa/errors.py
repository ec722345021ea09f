"""Figures 4 to 6 of the paper on sampling periods: how wrong values are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
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
    data: SppaDataset,
    setting: tuple[Any, ...],
    methods: dict[str, SppaMethod],
    window: int,
    runs: int,
) -> Iterator[tuple[Any, ...]]:
    for name, way in methods.items():
        errors = np.array([errors_of(data, way, window, seed) for seed in range(runs)])
        means, spread = map(float, errors.mean(axis=0)), standard_error(errors[:, 0])
        yield (*setting, data.name, name, *means, spread, way.protects)


COLUMNS = ("data", "mechanism", *ERRORS, "standard_error", "protects")


def figure_4(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Against tau, which only the noisy period has; the mean of each window has none.

    Parameters:
        data: the data sets.
        size: how much of everything.
    """
    lines: list[tuple[Any, ...]] = []
    runs = max(1, size.runs // 2)
    for dataset in data:
        for epsilon, window in SETTINGS:
            for tau in size.taus:
                methods = sampling_ways(dataset, epsilon, window, tau)
                lines += _lines(dataset, (epsilon, window, tau), methods, window, runs)
            (mean,) = _lines(dataset, (), {MEAN: mean_way(window)}, window, 1)
            lines += [(epsilon, window, tau, *mean) for tau in size.taus]
    title = "Mean squared error against tau, in sampling periods"
    return ResultTable("figure-4", title, ("epsilon", "window", "tau", *COLUMNS), tuple(lines))


def _table(
    name: str,
    title: str,
    data: tuple[SppaDataset, ...],
    settings: Sequence[tuple[float, int]],
    methods: Callable[[SppaDataset, float, int], dict[str, SppaMethod]],
    runs: int,
) -> ResultTable:
    lines = tuple(
        line
        for dataset, (epsilon, window) in itertools.product(data, settings)
        for line in _lines(
            dataset, (epsilon, window), methods(dataset, epsilon, window), window, runs
        )
    )
    return ResultTable(name, title, ("epsilon", "window", *COLUMNS), lines)


def figure_5(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Errors on all ``data`` against epsilon, in a ``size``."""
    title = f"Mean squared error against epsilon, w = {WINDOW}, tau = T_s"
    settings = [(epsilon, WINDOW) for epsilon in size.epsilons]
    return _table("figure-5", title, data, settings, ways, size.runs)


def figure_6(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Errors on all ``data`` against the window, in a ``size``."""
    title = "Mean squared error against the window, epsilon 1, tau = T_s"
    settings = [(1.0, window) for window in size.windows]
    return _table("figure-6", title, data, settings, ways, size.runs)


def curves(data: tuple[SppaDataset, ...], size: SppaSize) -> ResultTable:
    """Every way to draw a curve through a window of ``data``, and its mean, in a ``size``."""

    def methods(dataset: SppaDataset, epsilon: float, window: int) -> dict[str, SppaMethod]:
        """All curves and the mean for a ``dataset``, an ``epsilon`` and a ``window``."""
        return {**interpolations(dataset, epsilon, window), MEAN: mean_way(window)}

    title = f"Mean squared error of curves, w = {WINDOW}, tau = T_s"
    settings = [(1.0, WINDOW), (3.0, WINDOW)]
    return _table("interpolations", title, data, settings, methods, max(3, size.runs))


def tables(data: tuple[SppaDataset, ...], size: SppaSize) -> Iterator[ResultTable]:
    """The tables of Figures 4 to 6 and of all curves, from ``data``, in a ``size``."""
    yield curves(data, size)
    yield figure_4(data, size)
    yield figure_5(data, size)
    yield figure_6(data, size)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of errors, from ``tables``."""
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
            settings = sorted(set(table.column(varied, data=data)))
            errors = [
                [_error(table, mechanism, data=data, **{varied: value}) for mechanism in THEIRS]
                for value in settings
            ]
            first = sum(sppa < etm for sppa, etm, _ in errors) / len(settings)
            what = f"{data}, {name}: share of settings with SPPA below ETM"
            yield section.holds(what, 1, first, f"{name}.csv")
            second = sum(max(sppa, etm) < noisy for sppa, etm, noisy in errors) / len(settings)
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
        """For each data set, whether the error is larger at the last setting than at the first.

        Parameters:
            name: of the table.
            mechanism: its name.
            where: values of other columns.
        """
        table = tables[name]
        each = [
            table.column("mse", data=data, mechanism=mechanism, **where) for data in _names(table)
        ]
        return [errors[-1] > errors[0] for errors in each]

    up = [rises("figure-4", SPPA, epsilon=epsilon, window=window) for epsilon, window in SETTINGS]
    what = "SPPA: share of data sets and settings in which the error rises with tau"
    yield section.holds(what, 1, float(np.mean(up)), "tau of 2 periods against 0.2")
    for method in THEIRS:
        # "an increase in errors with the rise of epsilon", which its own Theorem 5 contradicts
        what = f"{method}: share of data sets on which the error rises with epsilon"
        share = float(np.mean(rises("figure-5", method)))
        yield section.fails(what, 1, share, "epsilon 3 against 0.5")
    for method in THEIRS:
        what = f"{method}: share of data sets on which the error rises with w"
        share = float(np.mean(rises("figure-6", method)))
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
            whose = "the window mean's" if against == MEAN else "the printed curve's"
            what = f"{CLAMPED}, epsilon {epsilon:g}: its error over {whose}, at most"
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
