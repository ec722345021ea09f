"""What releases tell when readings are correlated: budgets and a chain, and the loss of both.

Whatever comes from landmarks, or from a chain that was estimated from private data, is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.correlation.chain import Chain, equal_width, states_of
from tempriv.correlation.growth import shown
from tempriv.correlation.landmarks import LandmarkLoss, landmark_loss
from tempriv.correlation.loss import TemporalLoss, allocate, loss, supremum
from tempriv.data.series import ONLY_SERIES, SeriesTable
from tempriv.errors import TemprivError, require
from tempriv.leakage.budgets import (
    SERIES_COLUMN,
    About,
    Floats,
    ReadingBudgets,
    Spending,
    budgets_of_release,
    reading_epsilon,
)
from tempriv.mechanisms import registry
from tempriv.releases.blocks import whole_series
from tempriv.releases.description import read_about
from tempriv.releases.owner_file import LANDMARK, SPENT

Integers = npt.NDArray[np.int64]

METHODS = ("bridge", "definition5")
"""How the loss of landmarks together is bounded, unless asked otherwise: soundly, and as published.
"""


# where a chain comes from


def estimate_chain(
    table: SeriesTable,
    bounds: tuple[float, float] | None,
    states: int | None,
    categories: tuple[str, ...] | None,
    pseudocount: float = 1.0,
) -> tuple[Chain, tuple[str, int | None]]:
    """Estimate a private chain of how one column of a table goes on.

    States are equally wide bins between public bounds, or the categories.

    Parameters:
        table: the private table.
        bounds: public bounds of the values, with ``states``.
        states: how many equally wide bins they are cut into.
        categories: the names of the states instead.
        pseudocount: added to each count.

    Returns:
        The chain, and the table's clock and step.
    """
    require(
        (categories is None) != (bounds is None or states is None),
        "[[table|from]] needs [[bounds=LOW HIGH]] and [[states=N]], or [[categories=A,B,...]]",
    )
    if categories is not None:
        reading, many = table.read(categories=(categories,)), len(categories)
        edges: tuple[float, ...] = ()
    else:
        assert bounds is not None and states is not None
        reading, many, edges = table.read(), states, equal_width(*bounds, states)

    def series() -> Iterable[Integers]:
        for block in whole_series(reading):
            ends = np.cumsum(block.counts)
            for end, count in zip(ends.tolist(), block.counts.tolist(), strict=True):
                rows = slice(end - count, end)
                values = np.where(block.missing[rows, 0], np.nan, block.values[rows, 0])
                if categories is None:
                    yield states_of(values, edges)
                else:
                    yield np.where(np.isnan(values), -1, np.nan_to_num(values)).astype(np.int64)

    chain = Chain.estimate(series(), many, pseudocount)
    return chain, (reading.summary.clock, reading.summary.step)


def require_same_step(about: About, clock: str, step: int | None) -> None:
    """Refuse a ``clock`` and ``step`` of the chain other than those in ``about`` the release."""
    times = about["times"]
    known = clock == times["clock"] != "index" and step is not None and times["step"] is not None
    require(
        not known or step == times["step"],
        "[[table|from]]: readings follow each other at another pace there than in the release; "
        "give data with the same time step",
    )


# what is lost


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SeriesLeakage:
    """One series: what it spends, and what is lost. ``refused`` says why a method gave nothing."""

    spending: Spending
    loss: TemporalLoss
    together: Mapping[str, LandmarkLoss]
    refused: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReadingRef:
    """A loss and the reading that has it, counted from 0."""

    loss: float
    leak: SeriesLeakage
    step: int
    everywhere: bool = False
    """Whether all of several series have it there."""

    @property
    def words(self) -> str:
        """Which reading it is."""
        spending = self.leak.spending
        which = f"reading {self.step + 1:,} of {len(spending.budgets):,}"
        if self.everywhere:
            return f"{which}, of every series"
        if spending.times is not None:
            which += f", {spending.times[self.step].as_py()}"
        return which if spending.series == ONLY_SERIES else f"{which}, of {spending.series}"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Leakage:
    """The losses of all series of some budgets under one chain."""

    chain: Chain
    budgets: ReadingBudgets
    leaks: tuple[SeriesLeakage, ...]
    limit: float | None
    """However long it goes on, at a constant budget; None if budgets are not, or it is not known.
    """

    def __repr__(self) -> str:
        return f"Leakage({len(self.leaks)} series, private={self.private})"

    @property
    def private(self) -> bool:
        """Whether it belongs to the owner of the data."""
        return self.chain.private or self.budgets.private

    def worst(self, side: str = "total") -> ReadingRef:
        """The largest loss of a ``side`` (backward, forward or total), and its first reading."""
        return _largest([(leak, getattr(leak.loss, side)) for leak in self.leaks])

    def together(self, method: str) -> ReadingRef | None:
        """The largest loss of landmarks and any one other by a ``method``; None if refused."""
        losses = [
            (leak, leak.together[method].total) for leak in self.leaks if method in leak.together
        ]
        return _largest(losses) if len(losses) == len(self.leaks) else None

    @property
    def pictured(self) -> ReadingRef:
        """Of the series to draw: where its landmarks, or else a reading, lose most."""
        joint = [self.together(method) for method in self.methods]
        return next((loss for loss in joint if loss is not None), self.worst())

    @property
    def methods(self) -> tuple[str, ...]:
        """Those that were tried for landmarks."""
        tried = (method for leak in self.leaks for method in (*leak.together, *leak.refused))
        return tuple(dict.fromkeys(tried))

    def why_not(self, method: str) -> str:
        """Why a ``method`` was refused."""
        return next((leak.refused[method] for leak in self.leaks if method in leak.refused), "")

    @property
    def apart(self) -> float:
        """The most that landmarks and any one other reading would lose without correlation."""
        return max(independent_loss(leak.spending) for leak in self.leaks)

    @property
    def sentence(self) -> str:
        """What is lost in one sentence."""
        loss = shown(self.worst().loss)
        return (
            f"{self.budgets.guarantee}; because readings follow each other like this chain, "
            f"everything together tells up to {loss} about one of them (as if epsilon were {loss})"
        )

    @property
    def forever(self) -> str:
        """What is lost at most however long the series goes on, in words."""
        if self.limit is None:
            return ""
        if math.isinf(self.limit):
            return "there is no limit: the longer the series goes on, the more is told"
        return f"it stays at {shown(self.limit)} or below, however long the series goes on"

    @property
    def chances(self) -> str:
        """The same as chances of someone who wavers between two values."""
        most = max(leak.spending.budgets.max() for leak in self.leaks)
        by_one, by_all = success_chance(most), success_chance(self.worst().loss)
        return (
            f"someone who finds two values of a reading equally likely is right at most {by_one} "
            f"of the time after its own release, and {by_all} after all of them"
        )


def success_chance(loss: float) -> str:
    """The chance to be right from even odds after a ``loss``; never rounded to certainty.

    >>> success_chance(1.0), success_chance(40.0)
    ('73.1 %', 'nearly 100 %')
    """
    share = 1 / (1 + math.exp(-loss))
    return "nearly 100 %" if share > 0.999 else f"{100 * share:.3g} %"


def independent_loss(spending: Spending) -> float:
    """Landmarks and the largest other budget of ``spending``, as if readings were independent."""
    marks = spending.landmarks
    if marks is None or not marks.any():
        return float(spending.budgets.max())
    other = spending.budgets[~marks]
    return float(spending.budgets[marks].sum() + other.max(initial=0.0))


def _largest(candidates: list[tuple[SeriesLeakage, Floats]]) -> ReadingRef:
    leak, losses = max(candidates, key=lambda pair: pair[1].max())
    # flat stretches differ in their last digits: the first reading of one is meant
    step = int(np.argmax(losses >= losses.max() * (1 - 1e-9)))
    everywhere = len(candidates) > 1 and all(other is losses for _, other in candidates)
    return ReadingRef(loss=float(losses.max()), leak=leak, step=step, everywhere=everywhere)


def compute_leakage(
    chain: Chain,
    budgets: ReadingBudgets,
    methods: Iterable[str] = METHODS,
    insist: bool = False,
    progress: Callable[[int], None] = lambda series: None,
) -> Leakage:
    """The losses of every series; series that spend alike are computed once.

    ``methods`` are for landmarks. What one of them refuses is noted, or raised if ``insist``.

    Parameters:
        chain: how readings follow each other.
        budgets: what they spend.
        methods: how the loss of landmarks together is bounded.
        insist: raise what a method refuses instead of noting it.
        progress: called with the number of series done.
    """
    done: dict[tuple[bytes, bytes], tuple[Any, ...]] = {}
    leaks = []
    for number, spending in enumerate(budgets.spending):
        marks = (
            np.zeros(0, np.int64)
            if spending.landmarks is None
            else np.flatnonzero(spending.landmarks)
        )
        alike = spending.budgets.tobytes(), marks.tobytes()
        if alike not in done:
            together, refused = {}, {}
            for method in methods if budgets.have_landmarks else ():
                try:
                    together[method] = landmark_loss(chain, spending.budgets, marks, method)  # type: ignore[arg-type]
                except TemprivError as problem:
                    if insist:
                        raise
                    refused[method] = str(problem)
            done[alike] = loss(chain, spending.budgets), together, refused
        losses, together, refused = done[alike]
        leaks.append(
            SeriesLeakage(spending=spending, loss=losses, together=together, refused=refused)
        )
        progress(number + 1)
    return Leakage(chain=chain, budgets=budgets, leaks=tuple(leaks), limit=_limit(chain, budgets))


def _limit(chain: Chain, budgets: ReadingBudgets) -> float | None:
    if budgets.constant is None:
        return None
    try:
        return supremum(chain, budgets.constant)
    except TemprivError:  # a start that has not settled has no one reversed chain
        return None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Correlation:
    """A chain for the reports of a release; ``across`` is for places, see ``distance_factor``."""

    chain: Chain
    across: float | None = None

    def suits_public_pages(self, mechanism: Any) -> bool:
        """Whether everyone may know the chain, and what each reading of a ``mechanism`` spends."""
        return not self.chain.private and reading_epsilon(mechanism, self.across) is not None

    def of(self, output: Path, private: bool) -> Leakage | None:
        """The losses of a release at ``output``; unless ``private``, by what is public, or None."""
        mechanism = registry.decode(read_about(output)["mechanism"])
        if not private and not self.suits_public_pages(mechanism):
            return None
        return compute_leakage(
            self.chain, budgets_of_release(output, self.across, public=not private)
        )


# budgets that keep a target


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Allocation:
    """Both ways of Cao et al. to keep every reading at a target; why there is no constant one."""

    target: float
    quantified: Floats
    constant: float | None
    why_not: str = ""


def allocate_budgets(chain: Chain, target: float, length: int) -> Allocation:
    """Budgets under a ``chain`` that keep so many readings, ``length``, at a ``target`` loss."""
    quantified = allocate(chain, target, length)
    try:
        constant, why_not = float(allocate(chain, target, 1, "upper-bound")[0]), ""
    except TemprivError as problem:
        constant, why_not = None, str(problem)
    return Allocation(target=target, quantified=quantified, constant=constant, why_not=why_not)


# the table


def leakage_table(
    leakage: Leakage, allocations: Mapping[int, Allocation] | None = None
) -> pa.Table:
    """A row for each reading of a ``leakage``; ``allocations`` by the length of a series."""
    parts = []
    for leak in leakage.leaks:
        spending, length = leak.spending, len(leak.spending.budgets)
        columns: dict[str, Any] = {}
        if len(leakage.leaks) > 1 or spending.series != ONLY_SERIES:
            columns[SERIES_COLUMN] = pa.array([spending.series] * length, pa.string())
        if spending.times is not None:
            columns["time"] = spending.times
        columns |= {"reading": np.arange(1, length + 1), SPENT: spending.budgets}
        if spending.landmarks is not None:
            columns[LANDMARK] = spending.landmarks.astype(np.int64)
        columns |= {side: getattr(leak.loss, side) for side in ("backward", "forward", "total")}
        for method in leakage.methods:
            joint = leak.together.get(method)
            empty = pa.nulls(length, pa.float64())
            columns[f"landmarks_{method}"] = empty if joint is None else joint.total
        if allocations is not None:
            kept = allocations[length]
            same = [kept.constant] * length
            columns |= {"kept": kept.quantified, "kept_constant": pa.array(same, pa.float64())}
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)
