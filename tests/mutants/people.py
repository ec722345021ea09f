"""Summaries of people with one classic mistake each; the audits must notice every one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tempriv.data.duckdb import open_table
from tempriv.sampling.distributions import DiscreteGaussian
from tempriv.summaries import from_table
from tempriv.summaries.bands import Ladder
from tempriv.summaries.from_table import read_strata
from tempriv.summaries.measure import Measurement
from tempriv.summaries.vectors import READING_STEPS


class PlainCount(Measurement):
    """The number of people is not protected."""

    def run(self):
        known = super().run()
        known.people = float(len(self.people))
        return known


class HalfNoise(Measurement):
    """The mean gets half of its noise."""

    def noisy(self, whole, share, purpose):
        if purpose != "mean":
            return super().noisy(whole, share, purpose)
        draws = self.draws
        self.draws = lambda law, *rest: draws(DiscreteGaussian(law.variance / 4), *rest)
        try:
            return super().noisy(whole, share, purpose)
        finally:
            self.draws = draws


class ClipOfData(Measurement):
    """The clip is the median of the data."""

    def chosen(self, utilities, share, purpose):
        super().chosen(utilities, share, purpose)
        return int(utilities.argmax())


class SteepChoice(Measurement):
    """Utilities of a choice change by two with a person, and are counted as one."""

    def chosen(self, utilities, share, purpose):
        return super().chosen(2 * utilities, share, purpose)


class Unclipped(Measurement):
    """Vectors are not clipped."""

    def clipped_sum(self, center, clip):
        whole = self.basis.coefficients(self.people.vectors, center).astype(np.int64)
        return (whole * self.wanted.grid // clip).sum(axis=0)


class TwiceInACell(Measurement):
    """Each person is counted twice in the first cell of the bands."""

    def measure_bands(self, known, people, share, all_thresholds):
        histogram = Ladder.histogram

        def twice(ladder, vectors):
            counts = histogram(ladder, vectors)
            counts[0] *= 2
            return counts

        Ladder.histogram = twice
        try:
            super().measure_bands(known, people, share, all_thresholds)
        finally:
            Ladder.histogram = histogram


class SpreadOfData(Measurement):
    """Where thresholds lie follows from the data."""

    def measure_bands(self, known, people, share, all_thresholds):
        vectors = self.people.vectors
        kept, known.mean = known.mean, vectors.mean(axis=0) if len(vectors) else known.mean
        super().measure_bands(known, people, share, all_thresholds)
        known.mean = kept


class BinsOfData(Measurement):
    """The bins of the histogram are quantiles of the data."""

    def run(self):
        if len(self.people):
            levels = self.people.vectors.mean(axis=1)
            edges = np.unique(np.quantile(levels, (0.25, 0.5, 0.75)).astype(np.int64))
            self.wanted = replace(self.wanted, edges=tuple((edges + 1).tolist()))
        return super().run()


class ErrorOfData(Measurement):
    """The error that is stated follows from how far people are apart."""

    def run(self):
        known = super().run()
        spread = float(self.people.vectors.std()) / READING_STEPS if len(self.people) else 0.0
        known.mean_sd = known.mean_sd * math.exp(spread)
        return known


MEASUREMENTS = (
    *(PlainCount, HalfNoise, ClipOfData, SteepChoice, Unclipped),
    *(TwiceInACell, SpreadOfData, BinsOfData, ErrorOfData),
)


def groups_of_data(table, spec, layout):
    """The groups are those that occur."""
    with open_table(table) as opened:
        found = opened.rows(f'SELECT DISTINCT "{layout.group}" FROM {opened.scan} ORDER BY 1')
    return read_strata(table, replace(spec, groups=tuple(name for (name,) in found)), layout)


def once_in_each_group(table, spec, layout):
    """A person is in every group that one of their rows names."""
    records = from_table._starts
    from_table._starts = lambda rows: np.arange(rows.num_rows)
    try:
        return read_strata(table, spec, layout)
    finally:
        from_table._starts = records


def filled_by_others(table, spec, layout):
    """A cell without a reading takes the average of other people."""
    fill = from_table.filled

    def by_others(vectors, known):
        means = vectors.sum(axis=0) // np.maximum(known.sum(axis=0), 1)
        return np.where(known, vectors, means).astype(np.int32)

    from_table.filled = by_others
    try:
        return read_strata(table, spec, layout)
    finally:
        from_table.filled = fill


READERS = (groups_of_data, once_in_each_group, filled_by_others)
