"""Running counts and sums: increments come in, noisy sums of all so far come out, one a step."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.mechanisms.base import CommandLine, Description, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.counting.binned import MOST_CHANGED, Binned
from tempriv.mechanisms.counting.matrix_factorization import (
    MOST_BITS,
    MOST_STEPS,
    SquareRoot,
    default_bits,
)
from tempriv.mechanisms.counting.sensitivity import changes_of, column_share
from tempriv.mechanisms.counting.tree import LONGEST, LOOKED_AT, ONE_LEVEL, Epochs, Tree, branchings
from tempriv.mechanisms.domains import (
    FINENESS,
    Derived,
    Floats,
    Integers,
    power_of_two_below,
    whole_or_none,
)
from tempriv.mechanisms.numbers import NumberMechanism
from tempriv.mechanisms.options import HORIZON, option, shared
from tempriv.mechanisms.perturb import limit_of
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Event, Unit

METHODS = ("automatic", "square-root", "binned", "tree", "increments")
FACTORED = ("square-root", "binned")

Plan = SquareRoot | Binned | Tree | Epochs

ENDLESS_BITS = 22
ENDLESS_READING_BITS = 16  # leaves room for a fine grid

WIDEST_TREE = 1 << 20
FINEST = 2.0**-34  # of the range
NARROWEST = 2.0**-20  # the same for streams without an end, whose sums grow further


@dataclass(frozen=True, kw_only=True)
class RunningCount(NumberMechanism):
    """Adds up increments and releases the noisy sum so far at every step.

    Parameters:
        bounds: smallest and largest possible increment, for all columns or for each.
        epsilon: the loss for the unit, for Laplace noise; or give rho.
        rho: the loss for the unit, for Gaussian noise.
        horizon: the most time steps of a series; without one it goes on for good.
        method: how sums are put together. "square-root" (rho and a horizon of up to 2^22; the
            default there) has least noise and remembers the series; "binned" (the default for rho
            otherwise) is near it with a thousand numbers, and without a horizon goes on for good;
            "tree" (the default for epsilon) remembers fewer; "increments" puts noise on every
            increment.
        branching: of a tree; chosen if left out.
        bits: of the coefficients of "square-root" and "binned"; chosen if left out.
        unit: what is protected.
        grid: of increments, a power of two; so fine by default that roundings vanish in sums.

    Guarantees:
        - pure epsilon (Laplace noise) or rho-zCDP (Gaussian noise) for the unit, for all sums of a
          series together;
        - noise is on whole numbers (of the public grid) before anything is made of them; a missing
          increment counts as zero and comes out missing.

    >>> from tempriv.privacy.units import Contribution
    >>> a_day = RunningCount(rho=0.5, bounds=(0, 100), horizon=1440, unit=Contribution())
    >>> a_day.method_used, round(a_day.errors[0], 2)
    ('square-root', 3.22)
    >>> round(a_day.error_at(60), 2), round(a_day.window_error(1380, 1440), 2)
    (2.83, 3.61)
    """

    epsilon: float | None = None
    rho: float | None = None
    horizon: int | None = shared(HORIZON, default=None)
    method: str | None = option(
        "--method",
        "How sums are put together; the best one by default.",
        default="automatic",
        type=str,
        metavar="square-root|binned|tree|increments",
    )
    branching: int | None = None
    bits: int | None = None
    unit: Unit = field(default_factory=Event)

    spec_order = (
        "bounds",
        "epsilon",
        "rho",
        "horizon",
        "method",
        "branching",
        "bits",
        "unit",
        "grid",
    )
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

    def _require_settings(self) -> None:
        whole_or_none("horizon", self.horizon, 1, LONGEST)
        whole_or_none("branching", self.branching, 2, WIDEST_TREE)
        whole_or_none("bits", self.bits, 1, MOST_BITS)
        changes_of(self.unit, 1, 1.0, 1)
        limit = limit_of(self)
        require(
            limit is None or limit <= LONGEST,
            f"unit={self.unit!r}: must be shorter, or give a horizon up to 2^40",
        )
        if self.method == "automatic":
            object.__setattr__(self, "method", self._best_method(limit))
        require(
            self.method is None or self.method in METHODS,
            f"method={self.method!r}: must be one of {', '.join(METHODS)}",
        )
        self._require_suits(limit)
        _ = self._share

    def _require_noise(self) -> None:
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
        require(
            method != "binned" or self.rho is not None,
            "method='binned': needs rho (Gaussian noise); give rho, or take method='tree'",
        )
        require(
            method != "binned" or changes_of(self.unit, 1, 1.0, limit).steps <= MOST_CHANGED,
            f"method='binned': needs a unit of at most {MOST_CHANGED} steps; take method='tree'",
        )
        for name, value, wanted in (
            ("branching", self.branching, ("tree",)),
            ("bits", self.bits, FACTORED),
        ):
            require(
                value is None or method in wanted,
                f"{name}={value}: must be left out, it goes with method={wanted[0]!r}",
            )

    def _best_method(self, limit: int | None) -> str | None:
        """What a new spec has as its method: None stands for the choice of 0.8.0 in files."""
        known = limit is not None and limit <= MOST_STEPS
        if self.rho is None or known or self.branching is not None or self.bits is not None:
            return None
        changed = changes_of(self.unit, 1, 1.0, limit).steps
        return "binned" if changed <= MOST_CHANGED else None

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
        """Of the budget, for a column of a series."""
        return column_share(self)

    @property
    def noise_to_range(self) -> float:
        return 1.0

    def _fitting_grids(self) -> tuple[float, ...]:
        """As given; or so fine that all roundings of a sum together vanish beside its noise."""
        if self.grid is not None or self.unit.counts_people:
            return super()._fitting_grids()
        limit = limit_of(self)
        # the noise of one increment, as a part of the range
        least = changes_of(self.unit, 1, 1.0, limit)
        budget = float(self._share)
        scale = least.total / budget if self.epsilon else least.steps / math.sqrt(2 * budget)
        finest = FINEST if limit else NARROWEST
        if self.method_used in FACTORED:
            finest = max(finest, 2.0 ** (self._bits - 33) * float(scale))
        part = float(scale) / (FINENESS * min(limit or LOOKED_AT, LOOKED_AT))
        part = min(max(part, finest), 1 / FINENESS)
        return tuple(power_of_two_below((high - low) * part) for low, high in self.bounds)

    @property
    def _bits(self) -> int:
        limit = limit_of(self)
        if self.bits is not None:
            return self.bits
        if limit is not None and limit <= MOST_STEPS:
            return default_bits(limit)
        return ENDLESS_BITS if self.unit.counts_people else ENDLESS_READING_BITS

    @functools.cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How the sums of each column are made: all in the same way."""
        numbers = self.numbers
        edges = [max(abs(low), abs(high)) for low, high in numbers.edges().tolist()]
        columns = list(zip(numbers.widths, self.grids, edges, strict=True))
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
        if self.method_used == "binned":
            return Binned(limit, self._bits, share, changes, largest)
        if branching is None:
            return Tree(ONE_LEVEL, limit, share, concentrated, changes, largest)
        if limit is None:
            return Epochs(branching, share, concentrated, changes, largest)
        return Tree(branching, limit, share, concentrated, changes, largest)

    @functools.cached_property
    def domain(self) -> Derived:
        grids = (grid * plan.step for grid, plan in zip(self.grids, self.plans, strict=True))
        return Derived(self.numbers, tuple(grids))

    @property
    def memory_size(self) -> int:
        return sum(plan.memory_size for plan in self.plans)

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
            for grid, plan in zip(self.grids, self.plans, strict=True)
        )

    def error_at(self, count: int, column: int = 0) -> float:
        """The root mean squared error of a running sum.

        Parameters:
            count: of how many increments it is.
            column: whose it is.
        """
        return self.window_error(0, count, column)

    def window_error(self, start: int, stop: int, column: int = 0) -> float:
        """The same for the sum of some steps, as ``window_sum`` gives it.

        Parameters:
            start: the first of these steps.
            stop: the step before which they end.
            column: whose it is.
        """
        require_window(start, stop, limit_of(self) or LONGEST)
        plan = self.plans[column]
        return self.grids[column] * math.sqrt(plan.variance_between(start, stop))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Sums of ``readings``, with ``noise``, that go on from the ``state``."""
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
    "binned": (
        "A factorization by the square root over a power of a logarithm answers running sums of a "
        "stream without an end, with a variance below 1.5 times that of a known horizon",
        "Jacobsen and Fawaz 2025; bins of past steps as in Andersson and Pagh 2024",
        "The factor here has coefficients in closed form, rounded to public whole numbers, and "
        "noise is measured by those.",
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


class RunningSums(Protocol):
    """A release of running sums."""

    @property
    def about(self) -> Description:
        """What it says of itself."""

    @property
    def values(self) -> Floats:
        """A row for each step."""


def require_window(start: int, stop: int, most: int) -> None:
    """Refuse steps that are none, or in the wrong order.

    Parameters:
        start: the first of some steps.
        stop: the step before which they end.
        most: how many steps there are.
    """
    require(
        isinstance(start, (int, np.integer))
        and isinstance(stop, (int, np.integer))
        and 0 <= start < stop <= most,
        f"steps {start} to {stop}: must be whole numbers, 0 <= start < stop <= {most}",
    )


def window_sum(
    released: RunningSums | npt.ArrayLike, start: int, stop: int
) -> float | npt.NDArray[np.float64]:
    """The sum over some steps, from released running sums of one series.

    Its error is ``mechanism.window_error(start, stop)``; it costs no budget, like all that is made
    of a release.

    Parameters:
        released: a release of running sums, or an array of them.
        start: the first step.
        stop: the step after the last.

    Returns:
        One number, or one for each column.

    Raises:
        DataError: the running sum before or at the end is missing. UsageError: several series.

    >>> window_sum(np.array([1.0, 3.0, 6.0, 10.0]), 1, 3)
    5.0
    """
    sums = np.ma.masked_invalid(np.asanyarray(getattr(released, "values", released)))
    about: Description = getattr(released, "about", {"series": 1})
    require(
        about["series"] == 1,
        "window_sum: takes running sums of one series; choose it from the release's frame",
    )
    require_window(start, stop, len(sums))
    ends = sums[[stop - 1] if start == 0 else [start - 1, stop - 1]]
    require(
        not np.ma.getmaskarray(ends).any(),
        f"steps {start} to {stop}: the running sum just before or at the end is missing; choose "
        "steps that were released",
        DataError,
    )
    total = np.asarray(ends[-1] - (0.0 if start == 0 else ends[0]))
    return float(total) if total.ndim == 0 else total
