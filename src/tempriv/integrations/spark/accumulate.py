"""What tasks say of their parts of a table, and what is true of all of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tempriv.data.reader import TableReader
from tempriv.data.series import Block
from tempriv.errors import DataError, TemprivError, require
from tempriv.releases.blocks import TimeDisclosure


class FirstTimes:
    """The first and the last of the times at which series begin."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def see(self, block: Block) -> None:
        """Note the times at which series of a ``block`` begin."""
        if block.times is not None:
            begins = (block.starts == 0) & (block.counts > 0)
            first = block.times[(np.cumsum(block.counts) - block.counts)[begins]]
            extremes = [*self.found, *first.tolist()]
            self.found = [min(extremes), max(extremes)] if extremes else []


@dataclass(frozen=True)
class Report:
    """What one task says of its part of the table: counts and times, no ids and no values."""

    series: int
    rows: int
    first: int | None
    last: int | None
    step: int | None
    filled: int
    dropped: int
    longest: int
    begin: tuple[int, ...]
    problems: tuple[tuple[str, int], ...]
    refusal: TemprivError | None


class ByPartition:
    """Reports by the number of their part: one that comes twice, by a retry, counts once."""

    def zero(self, value: dict[int, Report]) -> dict[int, Report]:
        """An empty ``value``: no reports."""
        return {}

    def addInPlace(  # noqa: N802  (Spark's name)
        self, reports: dict[int, Report], more: dict[int, Report]
    ) -> dict[int, Report]:
        """Add ``more`` to ``reports``, by the number of their part."""
        reports.update(more)
        return reports


def add_up(reports: list[Report], reading: TableReader, times: TimeDisclosure) -> None:
    """Put together what is true of the whole table; refused if a part of it is.

    Parameters:
        reports: of all parts.
        reading: takes sums and problems.
        times: sees when series begin.
    """
    summary, problems = reading.summary, reading.problems
    for report in reports:
        for kind, count in report.problems:
            problems.add(kind, count)
    series = reading.series
    keys = [name for name in (series.series, *(series.time or "").split("+")) if name]
    problems.refuse(f"keep one of each before, by frame.dropDuplicates({keys})")
    for report in reports:
        if report.refusal is not None:
            raise report.refusal
    require(sum(report.rows for report in reports) > 0, "the table has no rows", DataError)
    require(
        sum(report.series for report in reports) == len(summary.ids),
        "the table changed while it was read: some of its series are gone; write it to files "
        "that stay as they are, and release those",
        DataError,
    )
    steps = {report.step for report in reports if report.step is not None}
    require(
        len(steps) < 2,
        "parts of the table have different usual steps between readings; name the grid's step "
        "by [[step]], or take readings in order, whatever their times, by [[grid=index]]",
        DataError,
    )
    summary.step = min(steps, default=None)
    for report in reports:
        summary.rows += report.rows
        summary.filled += report.filled
        summary.longest = max(summary.longest, report.longest)
        if report.first is not None and report.last is not None:
            summary.cover(report.first, report.last)
    begin = np.array([tick for report in reports for tick in report.begin], dtype=np.int64)
    ones = np.ones(len(begin), dtype=np.int64)
    no_values = np.zeros((len(begin), 1))
    ids = tuple("" for _ in begin)
    times.see(Block(no_values, no_values > 0, ids, ones, 0 * ones, begin))
