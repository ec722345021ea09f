"""What a report shows of a release: a few rows, and for its owner how far off they are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import STATUSES, Block, Flags, together
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Locations, OpaqueRows
from tempriv.mechanisms.perturb import held_of_first
from tempriv.mechanisms.reorder.carry import first_of, pool_of
from tempriv.releases.release import Release
from tempriv.report.plots.series import Floats, Trace, numbers_of, trace_of

MAX_SERIES, MAX_ROWS = 4, 600
MIN_CHANGING_SHARE = 0.05  # changes for a step without one


class Excerpt:
    """The first rows of the first few series, of however many blocks."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}

    def add(self, block: Block) -> None:
        """Take the rows of a ``block`` that there is room for."""
        ends = np.cumsum(block.counts)
        for i, name in enumerate(block.ids):
            if name not in self.traces and len(self.traces) == MAX_SERIES:
                return  # series come one after the other: no more rows of those kept
            kept = self.traces.get(name) or _nothing(name, block)
            count = min(MAX_ROWS - len(kept.ticks), int(block.counts[i]))
            rows = slice(int(ends[i] - block.counts[i]), int(ends[i] - block.counts[i]) + count)
            steps = block.starts[i] + np.arange(count)
            ticks = steps if block.times is None else block.times[rows]
            values = _with_gaps(block.values[rows], block.missing[rows])
            status = None
            if kept.status is not None and block.status is not None:
                status = np.append(kept.status, block.status[rows])
            self.traces[name] = Trace(
                name, np.append(kept.ticks, ticks), together([kept.values, values]), status
            )


def _with_gaps(values: npt.NDArray[Any], missing: Flags) -> npt.NDArray[Any]:
    """What stands in the place of a missing value has no meaning: NaN, or None among objects."""
    if values.dtype != object:
        return np.where(missing, np.nan, values)
    filled = values.copy()
    filled[missing] = None
    return filled


def _nothing(name: str, block: Block) -> Trace:
    status = None if block.status is None else block.status[:0]
    values = _with_gaps(block.values[:0], block.missing[:0])
    return Trace(name, np.zeros(0, np.int64), values, status)


class PublicSample:
    """Some released values to show; the private block is never looked at."""

    def __init__(self) -> None:
        self.released = Excerpt()

    def watch(self, private: Block, released: Block) -> None:
        """Take some of the ``released`` rows; the ``private`` ones are never looked at."""
        self.released.add(released)

    @classmethod
    def of(cls, release: Release) -> PublicSample:
        """From a release that is complete, such as one that an earlier run had computed."""
        sample = cls()
        names = release.about["columns"]["series"]
        ids = [None] if names is None else release.table.column(names).unique().to_pylist()
        for name in ids[:MAX_SERIES]:
            trace = trace_of(release, None if name is None else str(name))
            status = None if trace.status is None else trace.status[:MAX_ROWS]
            first = Trace(trace.name, trace.ticks[:MAX_ROWS], trace.values[:MAX_ROWS], status)
            sample.released.traces[trace.name] = first
        return sample


class PrivateSample:
    """Some readings beside what was released for them, and how far apart all of them are.

    For the data owner only. It holds a few rows and sums, however long the table. Of rows that are
    moved whole no value is compared with another: it counts what they are, and how many numbers
    rise or fall from one row to the next.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism, self.domain = mechanism, mechanism.domain.released
        columns = self.domain.columns or 0
        self.sums = np.zeros((1, columns))  # so far, of the series at hand
        self.private, self.released = Excerpt(), Excerpt()
        self.earlier: Block | None = None  # the last readings of the series at hand
        self.rows = 0
        self.compared, self.moved = np.zeros((2, columns), np.int64)
        self.magnitude, self.shift, self.square = np.zeros((3, columns))
        self.statuses = np.zeros(len(STATUSES), np.int64)
        self.steps = np.zeros((0, 3), np.int64)  # that rise, fall or stay, in each column

    def watch(self, private: Block, released: Block) -> None:
        """Take some ``private`` and ``released`` rows, and compare all of them."""
        if isinstance(self.domain, OpaqueRows):
            self._watch_moved(private, released)
            return
        if self.domain.latency:
            self.private.add(private)
            private = self._read_then(private, released)
        compared = ~(private.missing | released.missing)
        readings, outputs = (np.where(compared, block.values, 0.0) for block in (private, released))
        expected = self.mechanism.without_noise(readings)
        if self.mechanism.accumulates:
            expected = self._running(private)
            private = replace(private, values=expected)
        if not self.domain.latency:
            self.private.add(private)
        self.released.add(released)
        if isinstance(self.domain, Locations):
            differences = (
                self.domain.to_grid(outputs) - self.domain.to_grid(expected)
            ) * self.domain.grid
            sizes = np.broadcast_to(np.hypot(*differences.T)[:, None], differences.shape)
        else:
            named = self.mechanism.value_kind in ("categories", "alerts")
            differences = 1.0 * (outputs != expected) if named else outputs - expected
            sizes = np.abs(differences)
        if self.domain.bounds is not None:
            low, high = np.array(self.domain.bounds).T
            self.moved += (compared & ((readings < low) | (readings > high))).sum(axis=0)
        self.rows += len(private)
        self.compared += compared.sum(axis=0)
        self.magnitude += sizes.sum(axis=0, where=compared)
        self.shift += differences.sum(axis=0, where=compared)
        self.square += (differences**2).sum(axis=0, where=compared)

    def _read_then(self, private: Block, released: Block) -> Block:
        """The readings of the steps that came out, which may have come in with earlier blocks."""
        earlier = held_of_first(private, self.earlier)
        private = replace(private, times=None)
        pool, first = pool_of(private, earlier), first_of(private, earlier)
        steps = np.arange(len(released)) - np.repeat(
            np.cumsum(released.counts) - released.counts - released.starts, released.counts
        )
        rows = steps + np.repeat(first - private.starts, released.counts)
        if private.ids:
            last = private.part(len(private.ids) - 1, len(private.ids))
            whole = pool_of(last, earlier if len(private.ids) == 1 else None)
            keep = slice(max(0, len(whole.values) - self.domain.latency), None)
            self.earlier = replace(last, values=whole.values[keep], missing=whole.missing[keep])
        return replace(released, values=pool.values[rows], missing=pool.missing[rows])

    def _watch_moved(self, private: Block, released: Block) -> None:
        self.private.add(private)
        self.released.add(released)
        self.rows += len(private)
        if released.status is not None:
            self.statuses += np.bincount(released.status, minlength=len(STATUSES))
        first = np.zeros(len(private), dtype=np.bool_)
        first[(np.cumsum(private.counts) - private.counts)[private.counts > 0]] = True
        directions = np.zeros((private.values.shape[1], 3), np.int64)
        for i, column in enumerate(private.values.T):
            numbers = numbers_of(_with_gaps(column, private.missing[:, i]))
            if numbers is not None and len(numbers):
                within = ~first[1:]
                changes = np.diff(numbers)[within]
                directions[i] = (changes > 0).sum(), (changes < 0).sum(), (changes == 0).sum()
        self.steps = directions if not len(self.steps) else self.steps + directions

    def rising(self, column: int) -> float:
        """The part of a column's changes that go the way of most; 0 if it hardly ever changes."""
        rise, fall, stay = self.steps[column].tolist() if len(self.steps) else (0, 0, 0)
        return max(rise, fall) / (rise + fall) if rise + fall > MIN_CHANGING_SHARE * stay else 0.0

    def _running(self, private: Block) -> Floats:
        """What running sums are compared with: the exact ones; missing readings add nothing."""
        sums = np.cumsum(np.where(private.missing, 0.0, private.values), axis=0)
        if not private.ids:
            return sums
        first = np.cumsum(private.counts) - private.counts
        earlier = np.concatenate((np.zeros_like(self.sums), sums))[first]
        if private.starts[0] > 0:
            earlier[0] -= self.sums[0]
        sums -= np.repeat(earlier, private.counts, axis=0)
        self.sums = sums[-1:].copy()
        return sums

    def measured(self, column: int) -> tuple[float, float, float]:
        """The size of the error, its mean (the bias), and that mean's standard error.

        The size is a mean as the expected error is one: of magnitudes, or the root of squares.

        Parameters:
            column: its number.
        """
        n = max(int(self.compared[column]), 1)
        mean = self.shift[column] / n
        spread = max(self.square[column] / n - mean**2, 0.0)
        squares = self.mechanism.error_name.startswith("root mean squared")
        size = math.sqrt(self.square[column] / n) if squares else self.magnitude[column] / n
        return float(size), float(mean), math.sqrt(spread / n)
