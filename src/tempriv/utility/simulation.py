"""Release readings again and again by known seeds, and see how wrong counts and averages come out.

Where a row goes depends on no value, so a mechanism is run on row numbers and its moves are then
played on the readings. What comes out is computed from the readings: it is as private as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.privacy import serialization
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Seen = Literal["stream", "file"]
"""Whether slots are read as they come out, or once all of them are there."""

BATCH_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class TrialReadings:
    """One column of one or more series, one after another; NaN where a reading is missing."""

    values: Floats
    counts: Integers

    def __post_init__(self) -> None:
        require(
            int(self.counts.sum()) == len(self.values) > 0 and bool((self.counts > 0).all()),
            f"{len(self.values)} readings: must be as many as the series have, and at least one",
            DataError,
        )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"TrialReadings({len(self)} rows of {len(self.counts)} series)"

    def some(self, most: int) -> TrialReadings:
        """At most so many of the series, evenly spread over all.

        >>> TrialReadings(np.arange(6.0), np.array([1, 2, 3])).some(2).values.tolist()
        [0.0, 3.0, 4.0, 5.0]
        """
        if len(self.counts) <= most:
            return self
        taken = np.zeros(len(self.counts), dtype=np.bool_)
        taken[np.linspace(0, len(self.counts) - 1, most).round().astype(int)] = True
        return TrialReadings(self.values[np.repeat(taken, self.counts)], self.counts[taken])

    @property
    def starts(self) -> Integers:
        """For each row, the first row of its series."""
        return np.repeat(np.cumsum(self.counts) - self.counts, self.counts)

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        return ~np.isnan(self.values)


# where rows go


def sources(
    mechanism: Any, counts: Integers, runs: int, seed: int, seen: Seen = "stream"
) -> Integers:
    """For each run and slot the number of the row in it, or -1: an array (runs, rows).

    As a stream, the slots of a mechanism with a latency are read that much later.

    Parameters:
        mechanism: that moves rows.
        counts: how many rows each series has.
        runs: how many.
        seed: of the noise.
        seen: whether slots are read as they come out, or once all are there.

    >>> from tempriv.mechanisms.reorder.shuffle import BlockShuffle
    >>> shuffle = BlockShuffle(epsilon=1.0, block=2)
    >>> sorted(sources(shuffle, np.array([2, 2]), 1, seed=1, seen="file")[0].tolist())
    [0, 1, 2, 3]
    >>> sources(shuffle, np.array([2, 2]), 1, seed=1)[0, [0, 2]].tolist()
    [-1, -1]
    """
    latency = int(getattr(mechanism, "latency", None) or 0)
    if isinstance(mechanism, NoisyOrder) and latency:
        # the order is that of the whole series, but for tails that delta counts; far faster
        mechanism = replace(mechanism, latency=None, delta=None)
    rows = int(counts.sum())
    numbers = np.tile(np.arange(rows), runs)
    out = perturb_series(mechanism, numbers, np.tile(counts, runs), seed, "trial")
    slots = out.filled(-1).astype(np.int64).reshape(runs, rows)
    return _delayed(slots, counts, latency) if seen == "stream" and latency else slots


def perturb_series(
    mechanism: Any, values: npt.NDArray[Any], counts: Integers, seed: int, purpose: str
) -> Any:
    """Many series through one mechanism by a known seed, as they are once all of it is out.

    Parameters:
        mechanism: what releases them.
        values: a row for each reading, one series after another.
        counts: how many rows each series has.
        seed: of the noise.
        purpose: what the noise is for, so that different experiments have different noise.

    Returns:
        A masked array with a row for each reading.
    """
    rows = values.reshape(len(values), -1)
    block = Block(
        values=rows,
        missing=np.zeros(rows.shape, dtype=np.bool_),
        ids=tuple(map(str, range(len(counts)))),
        counts=counts,
        starts=np.zeros(len(counts), dtype=np.int64),
    )
    # one chain of keys serves all series, each at steps of its own
    chain = Key.from_seed(seed).series(serialization.digest(mechanism), purpose)
    steps, start = [], 0
    for count in counts.tolist():
        chain = chain.at_epoch(start // EPOCH)
        steps.append(StepRange(chain, start, count))
        start += count + int(mechanism.domain.latency or 0)
    out = perturb_block(mechanism, block, steps, ending=True)
    return np.ma.array(out.values, mask=out.missing)


def _delayed(slots: Integers, counts: Integers, latency: int) -> Integers:
    """What somebody who watches has in the place of each slot: the one of so many steps before."""
    rows = slots.shape[1]
    step = np.arange(rows) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.where(step >= latency, np.roll(slots, latency, axis=1), -1)


# how wrong a task comes out


@dataclass(frozen=True)
class Count:
    """How often a value came up so far, at every step; the readings are 1 where it did, else 0."""

    @property
    def unit(self) -> str:
        return "squared counts"

    def squared_errors(self, readings: TrialReadings, sources: Integers) -> Floats:
        """For each run the mean squared error over all steps.

        As ``tasks.count_error``: repeats are counted again, empty slots never.

        Parameters:
            readings: one column of all series.
            sources: the row in each slot, a row for each run.
        """
        truth = np.where(readings.there, readings.values, 0.0)
        wrong = np.where(sources < 0, 0.0, truth[sources]) - truth
        total = np.cumsum(wrong, axis=1)
        before = readings.starts - 1
        errors = total - np.where(before < 0, 0.0, total[:, before])
        return np.asarray(np.square(errors).mean(axis=1))


@dataclass(frozen=True)
class Average:
    """The mean of the last ``length`` steps, at every step; what is missing is left out."""

    length: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.length, int) and self.length >= 1,
            f"length={self.length}: must be a whole number of steps >= 1",
        )

    @property
    def unit(self) -> str:
        return "squared units of the column"

    def squared_errors(self, readings: TrialReadings, sources: Integers) -> Floats:
        """For each run the mean squared error over the steps that have a true average.

        As ``tasks.average_error``: where nothing is in the window the last average stands in, and
        steps before the first one are left out.

        Parameters:
            readings: one column of all series.
            sources: the row in each slot, a row for each run.
        """
        ends = np.arange(1, len(readings) + 1)
        lows = np.maximum(ends - self.length, readings.starts)
        truth, defined = self.averages(readings.values[None], lows, ends)
        moved = np.where(sources < 0, np.nan, readings.values[sources])
        seen, known = self.averages(moved, lows, ends)
        rows = np.arange(len(readings))
        last = np.maximum.accumulate(np.where(known, rows, -1), axis=1)
        counted = (last >= readings.starts) & defined
        errors = np.take_along_axis(seen, np.maximum(last, 0), axis=1) - truth
        squares = np.where(counted, np.square(errors), 0.0).sum(axis=1)
        return np.asarray(squares / np.maximum(counted.sum(axis=1), 1))

    @staticmethod
    def averages(
        values: Floats, lows: Integers, ends: Integers
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The mean of each stretch of rows, and whether there is one.

        Parameters:
            values: a row for each run.
            lows: the first row of each stretch.
            ends: the row after its last one.
        """
        known = ~np.isnan(values)
        # about the middle, so that differences of long sums keep their digits
        middle = float(values[known].mean()) if known.any() else 0.0

        def over(part: npt.NDArray[Any]) -> Floats:
            """The sum of a ``part`` of the values over each stretch."""
            total = np.zeros((len(part), part.shape[1] + 1))
            np.cumsum(part, axis=1, out=total[:, 1:])
            return np.asarray(total[:, ends] - total[:, lows])

        number = over(known)
        sums = over(np.where(known, values - middle, 0.0))
        return middle + sums / np.maximum(number, 1), number > 0


Task = Count | Average


@dataclass(frozen=True)
class TrialResult:
    """The mean over some runs, and its standard error."""

    cost: float
    standard_error: float


def simulate_task(
    mechanism: Any, task: Task, readings: TrialReadings, runs: int, seed: int, seen: Seen = "stream"
) -> TrialResult:
    """The expected squared error of a task on these readings, by so many releases of them.

    Private: it is computed from the readings. The noise is known, the readings are not changed.

    Parameters:
        mechanism: that moves readings in time.
        task: a count or an average.
        readings: that are released.
        runs: how many releases.
        seed: of their noise.
        seen: whether rows are read as they come out, or once all are there.

    >>> from tempriv.mechanisms.reorder.threshold import Threshold
    >>> always = TrialReadings(np.ones(2000), np.array([2000]))
    >>> result = simulate_task(Threshold(epsilon=5.0, window=10), Count(), always, runs=4, seed=1)
    >>> round(result.cost, 1)  # three readings are always on their way
    9.0
    """
    require(runs >= 2, f"runs={runs}: must be at least 2, to know how far to trust them")
    errors: list[Floats] = []
    at_once = max(1, BATCH_ROWS // len(readings))
    for first in range(0, runs, at_once):
        number = min(at_once, runs - first)
        # runs are told apart by their keys
        slots = sources(mechanism, readings.counts, number, seed * 1_000_003 + first, seen)
        errors.append(task.squared_errors(readings, slots))
    each = np.concatenate(errors)
    return TrialResult(float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))))
