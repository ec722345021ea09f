"""Running counts and sums: increments come in, noisy sums of all so far come out, one a step."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import DataError, require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.counting.matrix_factorization import (
    MOST_BITS,
    MOST_STEPS,
    SquareRoot,
    default_bits,
)
from tempriv.mechanisms.counting.sensitivity import changes_of
from tempriv.mechanisms.counting.tree import LONGEST, LOOKED_AT, ONE_LEVEL, Epochs, Tree, branchings
from tempriv.mechanisms.domains import (
    FINENESS,
    Derived,
    Integers,
    Numbers,
    bounds_of,
    one_budget,
    power_of_two_below,
)
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.value._shared import LEAST_SHARE, model_of, number_grids
from tempriv.privacy.guarantees import Concentrated, Guarantee, Loss, Published, Pure
from tempriv.privacy.units import Event, Unit

METHODS = ("square-root", "tree", "increments")

Plan = SquareRoot | Tree | Epochs

WIDEST_TREE = 1 << 20
FINEST = 2.0**-34  # of the range
NARROWEST = 2.0**-20  # the same for streams without an end, whose sums grow further


@dataclass(frozen=True, kw_only=True)
class RunningCount(Mechanism):
    """Adds up increments and releases the noisy sum so far at every step.

    Guarantees:
        - pure epsilon (Laplace noise) or rho-zCDP (Gaussian noise) for the unit, for all sums of a
          series together;
        - noise is on whole numbers (of the public grid) before anything is made of them; a missing
          increment counts as zero and comes out missing.

    Give ``epsilon`` or ``rho``. Methods: "square-root" (rho and a horizon; the default there) has
    least noise and remembers the series; "tree" (the default otherwise) remembers a few numbers,
    and without a horizon goes on for good; "increments" puts noise on every increment.
    ``branching`` of a tree and ``bits`` of the square root's coefficients are chosen if left out.

    >>> from tempriv.privacy.units import Contribution
    >>> a_day = RunningCount(rho=0.5, bounds=(0, 100), horizon=1440, unit=Contribution())
    >>> a_day.method_used, round(a_day.errors[0], 2)
    ('square-root', 3.22)
    >>> round(a_day.error_at(60), 2), round(a_day.window_error(1380, 1440), 2)
    (2.83, 3.61)
    """

    bounds: Bounds = shared(BOUNDS)
    epsilon: float | None = None
    rho: float | None = None
    horizon: int | None = option(
        "--horizon",
        "The most steps that a series has.",
        default=None,
        type=int,
    )
    method: str | None = option(
        "--method",
        "How sums are put together; the best one by default.",
        default=None,
        type=str,
        metavar="square-root|tree|increments",
    )
    branching: int | None = None
    bits: int | None = None
    unit: Unit = field(default_factory=Event)
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="running-count",
        hides="counts",
        purpose="the sum of all numbers so far, at every step",
        example="--epsilon 1 --delta 1e-6 --bounds 0 5 --horizon 8760 --value kwh",
        count_example="--epsilon 1 --delta 1e-6 --max-per-step 1 --max-per-person 10",
        noise="either",
        rank=6,
    )
    texts = ReportTexts(
        done="each is the sum of all readings of its series so far, with random noise",
        band="± expected error of a sum",
        errors="Expected errors of sums, in the unit of the column",
        single="one sum",
        besides="Each value is the sum of all readings of its series so far. Where sums "
        "fall although readings cannot be negative, that is the noise and no mistake. What came "
        "between two steps is the difference of their sums, which has an error of its own.",
        measured="Error: of released sum minus true sum, the root of the mean square.",
        outside=False,
    )

    values_are_readings: ClassVar[bool] = False
    accumulates: ClassVar[bool] = True
    per_column: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_budget(self.epsilon, self.rho)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        _whole("horizon", self.horizon, 1, LONGEST)
        _whole("branching", self.branching, 2, WIDEST_TREE)
        _whole("bits", self.bits, 1, MOST_BITS)
        changes_of(self.unit, 1, 1.0, 1)
        limit = limit_of(self)
        require(
            limit is None or limit <= LONGEST,
            f"unit={self.unit!r}: must be shorter, or give a horizon up to 2^40",
        )
        require(
            self.method is None or self.method in METHODS,
            f"method={self.method!r}: must be one of {', '.join(METHODS)}",
        )
        self._require_suits(limit)
        require(
            self._share > LEAST_SHARE,
            f"{self.epsilon or self.rho:g} for {self.unit!r}: must be greater, nothing is left of "
            "it for each column",
        )
        object.__setattr__(self, "grid", self._grids())
        _ = self.plans

    def _require_suits(self, limit: int | None) -> None:
        method = self.method_used
        require(
            method != "square-root" or self.rho is not None,
            "method='square-root': needs rho (Gaussian noise); give rho, or take method='tree'",
        )
        require(
            method != "square-root" or (limit is not None and limit <= MOST_STEPS),
            f"method='square-root': needs a horizon of at most {MOST_STEPS}; give one, or take "
            "method='tree'",
        )
        for name, value, wanted in (
            ("branching", self.branching, "tree"),
            ("bits", self.bits, "square-root"),
        ):
            require(
                value is None or method == wanted,
                f"{name}={value}: must be left out, it goes with method={wanted!r}",
            )

    @property
    def method_used(self) -> str:
        """The method, chosen by noise and horizon if it was left open."""
        limit = limit_of(self)
        if self.method is not None:
            return self.method
        known = limit is not None and limit <= MOST_STEPS
        return "square-root" if self.rho is not None and known else "tree"

    @property
    def _share(self) -> Fraction:
        """Of the budget, for a column of a series: people's counts change in one at a time."""
        parts = 1 if self.unit.counts_people else len(self.bounds)
        parts *= self.unit.positions_per_person
        return Fraction(self.epsilon or self.rho or 0) / parts

    def _grids(self) -> tuple[float, ...]:
        """As given; or so fine that all roundings of a sum together vanish beside its noise."""
        if self.grid is not None or self.unit.counts_people:
            return number_grids(self, 1.0)
        limit = limit_of(self)
        # the noise of one increment, as a part of the range
        least = changes_of(self.unit, 1, 1.0, limit)
        budget = float(self._share)
        scale = least.total / budget if self.epsilon else least.steps / math.sqrt(2 * budget)
        finest = FINEST if limit else NARROWEST
        if self.method_used == "square-root":
            finest = max(finest, 2.0 ** (self._bits - 33) * float(scale))
        part = float(scale) / (FINENESS * min(limit or LOOKED_AT, LOOKED_AT))
        part = min(max(part, finest), 1 / FINENESS)
        return tuple(power_of_two_below((high - low) * part) for low, high in self.bounds)

    @property
    def _bits(self) -> int:
        limit = limit_of(self)
        assert limit is not None
        return default_bits(limit) if self.bits is None else self.bits

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @functools.cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How the sums of each column are made: all in the same way."""
        numbers = self._numbers
        edges = [max(abs(low), abs(high)) for low, high in numbers.edges().tolist()]
        columns = list(zip(numbers.widths, self.grid, edges, strict=True))
        branching = self.branching
        if self.method_used == "tree" and branching is None:
            branching = min(
                branchings(limit_of(self)),
                key=lambda choice: self._plan(choice, *columns[0]).mean_variance,
            )
        return tuple(self._plan(branching, *column) for column in columns)

    def _plan(self, branching: int | None, width: int, grid: float, largest: int) -> Plan:
        limit, share = limit_of(self), self._share
        changes = changes_of(self.unit, width, grid, limit)
        concentrated = self.rho is not None
        if self.method_used == "square-root":
            assert limit is not None
            return SquareRoot(limit, self._bits, share, changes, largest)
        if branching is None:
            return Tree(ONE_LEVEL, limit, share, concentrated, changes, largest)
        if limit is None:
            return Epochs(branching, share, concentrated, changes, largest)
        return Tree(branching, limit, share, concentrated, changes, largest)

    @functools.cached_property
    def domain(self) -> Derived:
        grids = (grid * plan.step for grid, plan in zip(self.grid, self.plans, strict=True))
        return Derived(self._numbers, tuple(grids))

    @property
    def memory_size(self) -> int:
        return sum(plan.memory_size for plan in self.plans)

    @property
    def guarantee(self) -> Guarantee:
        loss: Loss = Pure(self.epsilon) if self.epsilon is not None else Concentrated(self.rho or 0)
        return Guarantee(loss, self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        claim, source, remark = PUBLISHED[
            "epochs" if isinstance(self.plans[0], Epochs) else self.method_used
        ]
        return Published(claim=claim, source=source, holds=True, remark=remark)

    @property
    def error_name(self) -> str:
        steps = limit_of(self) or LOOKED_AT
        return f"root mean squared error of running sums, over {steps:,} steps"

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * math.sqrt(plan.mean_variance)
            for grid, plan in zip(self.grid, self.plans, strict=True)
        )

    def error_at(self, count: int, column: int = 0) -> float:
        """The root mean squared error of the sum of the first ``count`` increments."""
        return self.window_error(0, count, column)

    def window_error(self, start: int, stop: int, column: int = 0) -> float:
        """The same for the sum over steps ``start`` to ``stop`` - 1, as ``window_sum`` gives it."""
        require_window(start, stop, limit_of(self) or LONGEST)
        plan = self.plans[column]
        return float(self.grid[column]) * math.sqrt(plan.variance_between(start, stop))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        sums, first = [], 0
        for column, plan in enumerate(self.plans):
            increments = np.where(state.missing[:, column], 0, readings[:, column])
            sums.append(plan.sums(increments, noise, f"column {column}", state, first))
            first += plan.memory_size
        return np.stack(sums, axis=1)


PUBLISHED = {
    "square-root": (
        "The square root of the matrix of ones as a factor of it, with Gaussian noise, answers "
        "all T running sums with a mean squared error of about (ln T / pi)^2 times that of one",
        "Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023",
        "Coefficients are rounded to public whole numbers here, and noise is measured by those.",
    ),
    "tree": (
        "Noisy sums of the nodes of a tree over time answer all T running sums, with noise for as "
        "many levels as the tree has",
        "Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011 (binary mechanism)",
        "Nodes that no running sum uses are not noised, and are not paid for.",
    ),
    "epochs": (
        "Epochs of growing length, each with a noisy total and a tree of its own, answer running "
        "sums of a stream without an end",
        "Chan, Shi and Song 2011 (hybrid mechanism)",
        "Epochs grow by the branching, not always by 2, and the total gets the share that is best.",
    ),
    "increments": (
        "Noise on every increment makes an error that grows with the square root of time",
        "Chan, Shi and Song 2011 (simple counting mechanism II)",
        "The least noise in single increments, and the most in long sums.",
    ),
}


def _whole(name: str, value: Any, least: int, most: int) -> None:
    require(
        value is None
        or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most),
        f"{name}={value!r}: must be a whole number from {least} to {most}",
    )


def require_window(start: int, stop: int, most: int) -> None:
    require(
        isinstance(start, (int, np.integer))
        and isinstance(stop, (int, np.integer))
        and 0 <= start < stop <= most,
        f"steps {start} to {stop}: must be whole numbers, 0 <= start < stop <= {most}",
    )


def window_sum(released: Any, start: int, stop: int) -> Any:
    """The sum over steps ``start`` to ``stop`` - 1, from released running sums of one series.

    Takes a release or an array, and gives one number (one for each column). Its error is
    ``mechanism.window_error(start, stop)``; it costs no budget, like all that is made of a release.

    >>> window_sum(np.array([1.0, 3.0, 6.0, 10.0]), 1, 3)
    5.0
    """
    about = getattr(released, "about", None)
    require(
        about is None or about["series"] == 1,
        "window_sum: takes running sums of one series; choose it from the release's frame",
    )
    values = np.ma.masked_invalid(released.values if about is not None else released)
    require_window(start, stop, len(values))
    ends = values[[stop - 1] if start == 0 else [start - 1, stop - 1]]
    require(
        not np.ma.getmaskarray(ends).any(),
        f"steps {start} to {stop}: the running sum just before or at the end is missing; choose "
        "steps that were released",
        DataError,
    )
    total = np.asarray(ends[-1] - (0.0 if start == 0 else ends[0]))
    return float(total) if total.ndim == 0 else total
