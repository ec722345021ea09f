"""The statistics without noise, for the data owner's eyes and for studies: never for a release."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tempriv.summaries.cells import bins_of
from tempriv.summaries.from_table import Strata
from tempriv.summaries.measure import PersonVectors, averages, peaks
from tempriv.summaries.run import NUMBER_NAMES
from tempriv.summaries.spec import PeopleSummary, SummaryStatistic
from tempriv.summaries.vectors import READING_STEPS

Exact = dict[tuple[str, str, str], float]
"""Values by group, cell and statistic."""


def exact_rows(spec: PeopleSummary, strata: Strata) -> Exact:
    """The exact statistics of a table, as private as it is.

    Parameters:
        spec: the summary.
        strata: what was read of the table.
    """
    found: Exact = {}
    for people, label, cells in zip(strata.people, strata.labels, strata.names, strict=True):
        if len(people):
            for cell, name, value in exact_of(spec, people, cells):
                found[label or "all", cell, name] = value
    return found


def exact_of(
    spec: PeopleSummary, people: PersonVectors, cells: Sequence[str]
) -> list[tuple[str, str, float]]:
    """Cell, statistic and value of all statistics of some ``people``.

    Parameters:
        spec: the summary.
        people: of one stratum, at least one.
        cells: the names of its cells.
    """
    found = [("all", NUMBER_NAMES[spec.protect], float(len(people)))]
    number = 0
    for statistic in spec.asked:
        number += statistic.kind == "share"
        values = _values(spec, statistic, people, number - 1)
        names = [*cells, "all"]
        if statistic.kind == "peak":
            names = [*cells, "none"]
        elif statistic.kind == "histogram":
            names = list(bins_of(spec.edges, spec.bounds))
        found += [
            (name, statistic.name, float(value)) for name, value in zip(names, values, strict=False)
        ]
    return found


def _values(
    spec: PeopleSummary, statistic: SummaryStatistic, people: PersonVectors, number: int
) -> list[float]:
    low, high = spec.bounds
    unit, vectors = (high - low) / READING_STEPS, people.vectors
    if statistic.kind == "quantile":
        return list(low + np.quantile(vectors, statistic.low, axis=0) * unit)
    if statistic.kind == "peak":
        cells = vectors.shape[1]
        return list(np.bincount(peaks(vectors), minlength=cells + 1) / len(people))
    if statistic.kind == "histogram":
        steps = np.array(
            [round((edge - low) / (high - low) * READING_STEPS) for edge in spec.edges]
        )
        bins = np.searchsorted(steps, averages(vectors), side="right")
        return list(np.bincount(bins, minlength=len(steps) + 1) / len(people))
    if statistic.kind == "share":
        shares = people.shares[number].mean(axis=0) / READING_STEPS
        return [*shares.tolist(), float(shares.mean())]
    means = low + vectors.mean(axis=0) * unit
    if statistic.kind == "total":
        totals = means * len(people)
        return [*totals.tolist(), float(totals.sum())]
    return [*means.tolist(), float(means.mean())]
