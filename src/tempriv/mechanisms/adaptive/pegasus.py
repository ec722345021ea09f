"""Noise on every reading, smoothed over groups of readings that differ little (PeGaSus).

Chen, Machanavajjhala, Hay and Miklau 2017: a perturber adds noise to each reading, a grouper looks
at the true readings for stretches in which little changes, and a smoother makes one number of the
noisy readings of a stretch so far. Most of epsilon is for the first, the rest for the second; the
third sees nothing private.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.adaptive._pegasus_kernels import (
    HEAD,
    JAMES_STEIN,
    MEAN,
    MEDIAN,
    group_and_smooth,
)
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import (
    FINENESS,
    LARGEST,
    Derived,
    Integers,
    Numbers,
    bounds_of,
    positive,
)
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.value._shared import change_of, model_of, number_grids
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Contribution, Event, Unit, Window
from tempriv.sampling import distributions
from tempriv.sampling._kernels import suited

SMOOTHINGS = {"mean": MEAN, "median": MEDIAN, "james-stein": JAMES_STEIN}
THETA = 5  # changes over the grouper's epsilon, as in the paper's experiments
LARGEST_SCALE = 1 << 34  # in grid steps; greater noise would drown whatever the bounds allow
MOST_MEMBERS = 1 << 16
ROOM = 1 << 62
FAR = 64  # scales: noise gets there once in e^64 draws


@dataclass(frozen=True, kw_only=True)
class _Column:
    """Noises and whole numbers of one column, in grid steps."""

    law: distributions.DiscreteLaplace
    limit: distributions.DiscreteLaplace
    test: distributions.DiscreteLaplace
    theta: int
    low: int
    width: int
    fineness: int  # parts of a grid step that outputs are given in


@dataclass(frozen=True, kw_only=True)
class PeGaSus(Mechanism):
    """Adds noise to every reading and smooths it over groups of readings that differ little.

    A group goes on while the distances of its readings from their mean add up to less than about
    ``theta``; a value released is the mean (or median, or James-Stein estimate) of the noisy
    readings of its group so far. Every column has its own groups.

    Guarantees:
        - pure epsilon for the unit: ``share`` of it for looking at the true readings, the rest for
          noise; a reading takes part in the tests of one group only, also if it closes the group;
        - a released value depends on earlier readings and its own, never on later ones;
        - outputs lie on a public grid, finer than that of the readings; a group has at most
          ``longest`` readings, which are all that is remembered.

    >>> entrance = PeGaSus(epsilon=1.0, bounds=(0, 500), unit=Contribution())
    >>> entrance.guarantee.loss, round(entrance.errors[0], 2)
    (Pure(epsilon=1.0), 1.13)
    >>> calm = PeGaSus(epsilon=1.0, bounds=(0, 500), unit=Contribution(), theta=150)
    >>> [round(one.calm_length) for one in (entrance, calm)]
    [5, 86]
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit = field(default_factory=Event)
    smoothing: str = option(
        "--smoothing",
        "What is made of the noisy readings of a group; mean by default.",
        default="mean",
        type=str,
        metavar="mean|median|james-stein",
    )
    share: float = option(
        "--grouping-share",
        "The part of epsilon for finding groups; 0.2 by default.",
        default=0.2,
    )
    theta: float | None = option(
        "--theta",
        "How far readings of a group may be from their mean, added up; more makes longer groups.",
        default=None,
    )
    longest: int = option(
        "--longest-group",
        "The most readings of a group; 256 by default.",
        default=256,
        type=int,
    )
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="pegasus",
        hides="values",
        purpose="every reading with noise, smoothed while little changes",
        example="--epsilon 1 --bounds 0 5 --value kwh",
        count_example="--epsilon 1 --theta 150 --max-per-step 1 --unit event",
        units=("event", "window"),
        rank=12,
    )
    texts = ReportTexts(
        done="random noise was added to each of them, and they were smoothed over "
        "stretches in which little changed",
        band="± expected error of a value by itself",
        errors="Expected errors of values that are not smoothed, in the unit of the column",
        single="one by itself",
        besides="Where little changes, a value is made of a group of them and is off by "
        "less; where a group goes on over a change, it is late. Errors of neighboring values go "
        "together.",
    )

    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a value by itself; less in a calm group, by the root of its size"
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        each = self.unit.each if isinstance(self.unit, Contribution) else self.unit
        require(
            isinstance(each, (Event, Window)),
            f"unit={self.unit!r}: must be Event() or Window(w), or for counts Contribution of one "
            "of them; groups go on without end",
        )
        require(
            self.smoothing in SMOOTHINGS,
            f"smoothing={self.smoothing!r}: must be one of {', '.join(SMOOTHINGS)}",
        )
        require(
            isinstance(self.share, float) and 0 < self.share < 1,
            f"share={self.share!r}: must be a number between 0 and 1, the part of epsilon for "
            "grouping",
        )
        if self.theta is not None:
            positive("theta", self.theta)
        require(
            isinstance(self.longest, int)
            and not isinstance(self.longest, bool)
            and 2 <= self.longest <= MOST_MEMBERS,
            f"longest={self.longest!r}: must be a whole number of readings from 2 to "
            f"{MOST_MEMBERS:,}",
        )
        reach = len(self.bounds) * float(min(each.readings, 1 << 40)) / self.epsilon
        object.__setattr__(self, "grid", number_grids(self, reach))
        self._require_room()

    def _require_room(self) -> None:
        """Refuse what would not fit into whole numbers of 64 bits."""
        squared = self.longest**2
        sums = squared if self.smoothing == "james-stein" else self.longest
        for one in self.plan:
            numbers = (
                Fraction(2 * squared * one.width),
                2 * one.fineness * sums * (one.width + FAR * one.law.scale),
                one.theta + FAR * one.limit.scale,
            )
            scales = one.law.scale, one.limit.scale, one.test.scale
            farthest = max(abs(one.low), abs(one.low + one.width)) * one.fineness
            require(
                max(numbers) < ROOM and max(scales) <= LARGEST_SCALE and farthest < LARGEST,
                f"groups of {self.longest} on a grid of 2^{one.width.bit_length()} steps, theta "
                "and the noise: must be less to be counted in; choose a coarser grid, shorter "
                "groups or a greater epsilon",
            )

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @property
    def domain(self) -> Derived:
        grids = (grid / one.fineness for grid, one in zip(self.grid, self.plan, strict=True))
        return Derived(self._numbers, tuple(grids))

    @property
    def memory_size(self) -> int:
        return len(self.bounds) * self._slots

    @property
    def _slots(self) -> int:
        """Of a column: the readings of a group, and for the median noisy ones too."""
        return HEAD + self.longest * (2 if self.smoothing == "median" else 1)

    @property
    def _budgets(self) -> tuple[Fraction, Fraction]:
        """What noise on readings takes of epsilon, and what grouping does."""
        grouping = Fraction(self.epsilon) * Fraction(self.share)
        return Fraction(self.epsilon) - grouping, grouping

    @property
    def _changes(self) -> list[Fraction]:
        """For each column, what all that a unit changes adds up to, in grid steps.

        What one person adds is bounded for all columns together; numbers change each within its
        bounds, in every reading of a window, and columns share epsilon.
        """
        if isinstance(self.unit, Contribution):
            return [Fraction(self.unit.most) / Fraction(grid) for grid in self.grid]
        together = len(self.bounds) * self.unit.readings
        return [together * change for change in change_of(self.unit, self._numbers)]

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        """Noise on the readings of each column."""
        perturbing, _ = self._budgets
        return [distributions.DiscreteLaplace(change / perturbing) for change in self._changes]

    @property
    def grouping_laws(
        self,
    ) -> list[tuple[distributions.DiscreteLaplace, distributions.DiscreteLaplace]]:
        """For each column noise on a group's threshold, once, and on every test.

        Replacing one reading by another at a distance R moves the mean of n by R / n, its own
        distance from it by at most R (n - 1) / n and all the others' together by as much: less
        than 2 R. So with 2 R for the sensitivity these are the two noises of the sparse vector
        technique for half of the budget each. Neither shrinks for counts, which all change the
        same way: the sum of distances may go up at one test and down at the next.
        """
        _, grouping = self._budgets
        scales = [change / grouping for change in self._changes]
        return [
            (distributions.DiscreteLaplace(4 * scale), distributions.DiscreteLaplace(8 * scale))
            for scale in scales
        ]

    @functools.cached_property
    def plan(self) -> list[_Column]:
        """What the kernel is handed, for each column."""
        _, grouping = self._budgets
        columns = zip(self.grid, self._numbers.edges().tolist(), self._changes, strict=True)
        found = []
        for (grid, (low, high), change), law, (limit, test) in zip(
            columns, self.laws, self.grouping_laws, strict=True
        ):
            theta = THETA * change / grouping
            if self.theta is not None:
                theta = Fraction(self.theta) / Fraction(grid)
            # so fine that means are not rounded off
            parts = min(max(2.0, float(FINENESS / law.scale)), FINENESS)
            found.append(
                _Column(
                    law=law,
                    limit=limit,
                    test=test,
                    theta=max(1, round(theta)),
                    low=low,
                    width=high - low,
                    fineness=1 << math.ceil(math.log2(parts)),
                )
            )
        return found

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        return Published(
            claim="Noise of scale 1 / epsilon_p on each count, and groups by a threshold with "
            "noise of scale 4 / epsilon_g and tests with noise of scale 8 / epsilon_g, cost "
            "epsilon_p + epsilon_g for one event; whatever is made of noisy counts and groups is "
            "free",
            source="Chen, Machanavajjhala, Hay and Miklau 2017, PeGaSus",
            holds=True,
            remark="For a count that changes by 1; by R, as a number within bounds does, both "
            "noises grow by R, and for w readings by w. The reading that closes a group must not "
            "open the next, or it would pay twice.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * law.mean_magnitude for grid, law in zip(self.grid, self.laws, strict=True)
        )

    @property
    def calm_length(self) -> float:
        """How many readings a group has on average where nothing changes, in the first column.

        Over the thresholds that it may get: it closes at each test with the same chance then.
        """
        first = self.plan[0]
        a, b = float(first.limit.scale), float(first.test.scale)
        quantiles = (np.arange(20_000) + 0.5) / 20_000
        tails = np.log(2 * np.minimum(quantiles, 1 - quantiles))
        thresholds = first.theta + a * np.where(quantiles < 0.5, tails, -tails)
        far = np.exp(-np.abs(thresholds) / b) / 2
        closes = np.maximum(np.where(thresholds > 0, far, 1 - far), 1e-300)
        return float(np.mean(-np.expm1(self.longest * np.log1p(-closes)) / closes))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        outputs = [np.zeros(len(readings), dtype=np.int64) for _ in self.plan]
        for j, one in enumerate(self.plan):
            drawn = noise(one.law, f"column {j}")
            limits = noise.each(one.limit, f"threshold {j}")
            tests = noise.each(one.test, f"test {j}")
            suited(group_and_smooth, limits, tests)(
                np.ascontiguousarray(readings[:, j]),
                one.low,
                one.width,
                drawn,
                np.ascontiguousarray(state.missing[:, j]),
                state.counts,
                one.theta,
                self.longest,
                SMOOTHINGS[self.smoothing],
                one.fineness,
                limits,
                tests,
                state.memory,
                j * self._slots,
                outputs[j],
            )
        return outputs[0][:, None] if len(outputs) == 1 else np.stack(outputs, axis=1)
