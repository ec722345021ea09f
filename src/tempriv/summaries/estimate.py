"""What is published of a stratum, from what was measured of it: values, intervals, sampling errors.

Nothing here sees a person. An interval is for the value of this table, so it counts the noise and
what clipping may have taken away. The sampling error is that of the table itself, had other people
of the same kind been in it; it is estimated from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tempriv.summaries import bands, shrink
from tempriv.summaries.bands import Bands
from tempriv.summaries.measure import Measured
from tempriv.summaries.vectors import READING_STEPS, CellBasis, Floats

NORMAL_95 = 1.959963984540054
CLIP_BIAS, CLIP_BIAS_MOST = 10.0, 0.6
CLIP_DOUBT, CLIP_DOUBT_OF_FEW = 0.5, 17.0
"""What clipping takes from the mean, in clips for each person that is cut: the first times the
share of people who are cut, at most the second; give or take the third, and the fourth times that
share.

Measured, not proven: intervals hold for the tables of the study on people.
"""
PRIOR_DOUBT = 0.25
"""How far intervals of peaks allow for peaks that do not follow the mean."""
ALL, NO_PEAK = "all", "none"


@dataclass(frozen=True)
class SummaryRow:
    """One released number.

    Parameters:
        cell: which cell, bin or ``all``.
        statistic: its name.
        value: the number.
        low: where its 95 % interval begins.
        high: where its 95 % interval ends.
        sampling: its sampling error, a standard deviation; None where there is none.
    """

    cell: str
    statistic: str
    value: float
    low: float
    high: float
    sampling: float | None


class Estimates:
    """Rows of one stratum.

    Parameters:
        measured: what was released.
        cells: the names of its cells.
        bounds: of readings.
    """

    def __init__(self, measured: Measured, cells: Sequence[str], bounds: tuple[float, float]):
        self.measured, self.cells, self.bounds = measured, list(cells), bounds
        self.low, self.unit = bounds[0], (bounds[1] - bounds[0]) / READING_STEPS
        self.number = max(measured.people, 1.0)
        self._bands: Bands | None = None
        if measured.ladder is not None:
            self._bands = self._estimated_bands()

    def _estimated_bands(self) -> Bands:
        known = self.measured
        assert known.bands is not None and known.ladder is not None
        ladder: Floats = np.asarray(known.ladder.steps * self.unit, dtype=np.float64)
        return bands.estimated(
            known.bands,
            known.bands_sd,
            ladder,
            (self.number, known.people_sd),
            self._mean(),
        )

    def _cut(self) -> Floats:
        """The mean of each cell, in clips that were cut from people, in grid steps."""
        known = self.measured
        assert known.reach is not None
        return known.tail / self.number * known.clip * known.reach

    @property
    def _doubt(self) -> float:
        """How far off the correction for clipping may be, in clips for each person that is cut."""
        return CLIP_DOUBT + CLIP_DOUBT_OF_FEW * self.measured.tail / self.number

    def _mean(self) -> tuple[Floats, Floats]:
        """The mean of each cell above the lower bound, and its deviation, as readings are."""
        known = self.measured
        assert known.mean is not None and known.mean_sd is not None
        taken = min(CLIP_BIAS * known.tail / self.number, CLIP_BIAS_MOST)
        mean = np.minimum(known.mean + taken * self._cut(), READING_STEPS)
        spread = np.sqrt(known.mean_sd**2 + (self._doubt * self._cut()) ** 2)
        return np.asarray(mean * self.unit), np.asarray(spread * self.unit)

    def people(self, name: str) -> Iterator[SummaryRow]:
        """The number of people, called ``name``."""
        value = max(self.measured.people, 0.0)
        yield self._row(ALL, name, value, self.measured.people_sd, None, (0.0, math.inf))

    def mean(self) -> Iterator[SummaryRow]:
        """The mean of each cell, and of all."""
        values, spreads = self._means()
        for cell, value, sd, sampling in zip(
            [*self.cells, *self._all], values, spreads, self._sampling(), strict=False
        ):
            yield self._row(cell, "mean", value, sd, sampling, self.bounds)

    def total(self) -> Iterator[SummaryRow]:
        """The sum over people of their averages in each cell, and the sum over cells."""
        values, spreads = self._means()
        count, count_sd = self.number, self.measured.people_sd
        for i, (cell, sampling) in enumerate(
            zip([*self.cells, *self._all], self._sampling(), strict=False)
        ):
            times = len(self.cells) if i == len(self.cells) else 1
            value, sd = values[i] * times, spreads[i] * times
            error = math.hypot(sd * count, value * count_sd)
            extremes = sorted(bound * times * count * 2 for bound in (0.0, *self.bounds))
            whole = (extremes[0], extremes[-1])
            # had other people been in the table, as many of them
            own = None if sampling is None else sampling * times * count
            yield self._row(cell, "total", value * count, error, own, whole)

    @property
    def _all(self) -> list[str]:
        return [ALL] if len(self.cells) > 1 else []

    def _means(self) -> tuple[list[float], list[float]]:
        """The mean of each cell and that of all, and their deviations."""
        known = self.measured
        assert known.left is not None
        above, spreads = self._mean()
        # the average of all cells is the first coefficient
        noise = math.sqrt(known.left[0] / len(self.cells)) * self.unit
        cut = self._doubt * float(self._cut().mean()) * self.unit
        values = self.low + above
        return [*values.tolist(), float(values.mean())], [*spreads.tolist(), math.hypot(noise, cut)]

    def _sampling(self) -> list[float | None]:
        """Sampling errors of the mean of each cell; that of all at most as large as the largest."""
        if self._bands is None:
            return [None] * (len(self.cells) + 1)
        errors = (self._bands.spread / math.sqrt(self.number)).tolist()
        # people differ in level more than in shape, so cells go up and down together
        return [*errors, float(np.mean(errors))]

    def quantile(self, name: str, share: float) -> Iterator[SummaryRow]:
        """Below this lies a ``share`` of people, in each cell."""
        assert self._bands is not None
        found = self._bands
        value, low, high = (
            self.low + found.quantile(share, shift) for shift in (0.0, NORMAL_95, -NORMAL_95)
        )
        own = math.sqrt(share * (1 - share) / self.number)
        least, most = (
            self.low + found.quantile(max(min(share + s * own, 1.0), 0.0)) for s in (-1, 1)
        )
        sampling = (most - least) / 2
        for i, cell in enumerate(self.cells):
            yield SummaryRow(
                cell,
                name,
                float(min(value[i], self.bounds[1])),
                float(min(low[i], self.bounds[1])),
                float(min(high[i], self.bounds[1])),
                float(sampling[i]),
            )

    def peak(self) -> Iterator[SummaryRow]:
        """The share of people whose number is largest in each cell, and of those with no peak."""
        known, count = self.measured, self.number
        assert known.peak is not None
        inside, flat = known.peak[:-1], float(known.peak[-1])
        profile = np.ones(len(inside)) if known.mean is None else known.mean
        counts, spreads = shrink.peak_counts(inside, known.peak_sd, profile)
        spreads = np.sqrt((1 - PRIOR_DOUBT) * spreads**2 + PRIOR_DOUBT * known.peak_sd**2)
        none = min(max(flat / count, 0.0), 1.0)
        shares = shrink.onto_simplex(counts / max(float(counts.sum()), 1.0)) * (1 - none)
        for cell, share, sd in zip(
            [*self.cells, NO_PEAK],
            [*shares.tolist(), none],
            [*(spreads / count).tolist(), known.peak_sd / count],
            strict=True,
        ):
            yield self._share(cell, "peak", share, sd)

    def histogram(self, labels: Sequence[str]) -> Iterator[SummaryRow]:
        """The share of people whose average over cells is in each bin, of these ``labels``."""
        known = self.measured
        assert known.histogram is not None
        shares = shrink.onto_simplex(known.histogram / max(float(known.histogram.sum()), 1.0))
        for label, share in zip(labels, shares.tolist(), strict=True):
            yield self._share(label, "histogram", share, known.histogram_sd / self.number)

    def share(self, name: str, sums: Floats) -> Iterator[SummaryRow]:
        """The share of a person's readings, averaged over people, in each cell and in all."""
        known, basis = self.measured, CellBasis(len(self.cells))
        falls = (np.log1p(basis.frequencies.astype(np.float64)),)
        variance = np.full(len(sums), known.shares_sd**2)
        best, left = shrink.shrunk(basis.orthonormal @ sums, variance, falls)
        around = basis.orthonormal.T @ best / self.number
        sds = np.sqrt((basis.orthonormal.T**2) @ left) / self.number
        values = [*around.tolist(), float(around.mean())]
        spreads = [*sds.tolist(), math.sqrt(left[0] / len(sums)) / self.number]
        for cell, value, sd in zip([*self.cells, *self._all], values, spreads, strict=False):
            number_error = value * known.people_sd / self.number
            clipped = min(max(0.5 + value, 0.0), 1.0)
            yield self._share(cell, name, clipped, math.hypot(sd, number_error))

    def _share(self, cell: str, name: str, share: float, sd: float) -> SummaryRow:
        sampling = math.sqrt(share * (1 - share) / self.number)
        return self._row(cell, name, share, sd, sampling, (0.0, 1.0))

    def _row(
        self,
        cell: str,
        name: str,
        value: float,
        sd: float,
        sampling: float | None,
        within: tuple[float, float],
    ) -> SummaryRow:
        low, high = max(value - NORMAL_95 * sd, within[0]), min(value + NORMAL_95 * sd, within[1])
        return SummaryRow(cell, name, float(value), float(low), float(high), sampling)
