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
from typing import ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.adaptive._pegasus_kernels import (
    HEAD,
    JAMES_STEIN,
    MEAN,
    MEDIAN,
    GroupPlan,
    group_and_smooth,
)
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import (
    FINENESS,
    LARGEST,
    Derived,
    Integers,
    is_whole,
    positive,
)
from tempriv.mechanisms.numbers import LARGEST_SCALE, AcceptedUnits, NumberMechanism, laplace_noise
from tempriv.mechanisms.options import option
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Contribution, Event, Unit, Window
from tempriv.sampling._kernels import suited
from tempriv.sampling.distributions import DiscreteLaplace

SMOOTHINGS = {"mean": MEAN, "median": MEDIAN, "james-stein": JAMES_STEIN}
THETA = 5  # changes over the grouper's epsilon, as in the paper's experiments
MOST_MEMBERS = 1 << 16
ROOM = 1 << 62
FAR = 64  # scales: noise gets there once in e^64 draws


@dataclass(frozen=True, kw_only=True)
class ColumnPlan:
    """How one column is noised and grouped, in grid steps.

    Parameters:
        noise: on readings.
        limit: noise on the threshold of a group.
        test: noise on each test.
        group: what the kernel is handed.
    """

    noise: DiscreteLaplace
    limit: DiscreteLaplace
    test: DiscreteLaplace
    group: GroupPlan


@dataclass(frozen=True, kw_only=True)
class PeGaSus(NumberMechanism):
    """Adds noise to every reading and smooths it over groups of readings that differ little.

    A group goes on while the distances of its readings from their mean add up to less than about
    ``theta``; a value released is the mean (or median, or James-Stein estimate) of the noisy
    readings of its group so far. Every column has its own groups.

    Parameters:
        epsilon: the loss for the unit.
        bounds: smallest and largest possible value, for all columns or for each.
        unit: what is protected: a reading, a window of so many time steps, or what a person adds.
        smoothing: what is made of the noisy readings of a group: ``mean``, ``median`` or
            ``james-stein``.
        share: the part of epsilon for finding groups, between 0 and 1.
        theta: how far readings of a group may be from their mean, added up, in the unit of the
            column; chosen by the noise if left out.
        longest: the most readings of a group.
        grid: of readings, a power of two; fine beside the noise by default.

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
    >>> [round(mechanism.calm_length) for mechanism in (entrance, calm)]
    [5, 86]
    """

    epsilon: float
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

    spec_order = ("epsilon", "bounds", "unit", "smoothing", "share", "theta", "longest", "grid")
    command = CommandLine(
        name="pegasus",
        hides="values",
        purpose="every reading with noise, smoothed while little changes",
        example="--epsilon 1 --bounds 0 5 --value kwh",
        count_example="--epsilon 1 --theta 150 --max-per-step 1 --unit event",
        units=("event", "window"),
        rank=12,
    )
    accepted_units = AcceptedUnits(
        (Event, Window),
        "Event() or Window(w), or for counts Contribution of one of them; groups go on without end",
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

    error_name: ClassVar[str] = (
        "mean absolute error of a value by itself; less in a calm group, by the root of its size"
    )

    published: ClassVar[Published] = Published(
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

    def _require_settings(self) -> None:
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
            is_whole(self.longest, 2, MOST_MEMBERS),
            f"longest={self.longest!r}: must be a whole number of readings from 2 to "
            f"{MOST_MEMBERS:,}",
        )

    @property
    def noise_to_range(self) -> float:
        each = self.unit.each if isinstance(self.unit, Contribution) else self.unit
        return len(self.bounds) * float(min(each.readings, 1 << 40)) / self.epsilon

    def _require_noise(self) -> None:
        """Refuse what would not fit into whole numbers of 64 bits."""
        squared = self.longest**2
        sums = squared if self.smoothing == "james-stein" else self.longest
        for plan in self.plans:
            group = plan.group
            numbers = (
                Fraction(2 * squared * group.width),
                2 * group.fineness * sums * (group.width + FAR * plan.noise.scale),
                group.theta + FAR * plan.limit.scale,
            )
            scales = plan.noise.scale, plan.limit.scale, plan.test.scale
            farthest = max(abs(group.low), abs(group.low + group.width)) * group.fineness
            require(
                max(numbers) < ROOM and max(scales) <= LARGEST_SCALE and farthest < LARGEST,
                f"groups of {self.longest} on a grid of 2^{group.width.bit_length()} steps, theta "
                "and the noise: must be less to be counted in; choose a coarser grid, shorter "
                "groups or a greater epsilon",
            )

    @property
    def domain(self) -> Derived:
        columns = zip(self.grids, self.plans, strict=True)
        return Derived(self.numbers, tuple(grid / plan.group.fineness for grid, plan in columns))

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
    def distributions(self) -> list[DiscreteLaplace]:
        """Noise on the readings of each column."""
        return laplace_noise(self.changes, self._budgets[0])

    @property
    def grouping_distributions(self) -> list[tuple[DiscreteLaplace, DiscreteLaplace]]:
        """For each column noise on a group's threshold, once, and on every test.

        Replacing one reading by another at a distance R moves the mean of n by R / n, its own
        distance from it by at most R (n - 1) / n and all the others' together by as much: less
        than 2 R. So with 2 R for the sensitivity these are the two noises of the sparse vector
        technique for half of the budget each. Neither shrinks for counts, which all change the
        same way: the sum of distances may go up at one test and down at the next.
        """
        _, grouping = self._budgets
        scales = [change / grouping for change in self.changes]
        return [(DiscreteLaplace(4 * scale), DiscreteLaplace(8 * scale)) for scale in scales]

    @functools.cached_property
    def plans(self) -> list[ColumnPlan]:
        """What is done to each column."""
        _, grouping = self._budgets
        columns = zip(self.grids, self.numbers.edges().tolist(), self.changes, strict=True)
        noises = zip(self.distributions, self.grouping_distributions, strict=True)
        plans: list[ColumnPlan] = []
        for (grid, (low, high), change), (noise, (limit, test)) in zip(
            columns, noises, strict=True
        ):
            theta = THETA * change / grouping
            if self.theta is not None:
                theta = Fraction(self.theta) / Fraction(grid)
            # so fine that means are not rounded off
            parts = min(max(2.0, float(FINENESS / noise.scale)), FINENESS)
            group = GroupPlan(
                low=low,
                width=high - low,
                theta=max(1, round(theta)),
                longest=self.longest,
                kind=SMOOTHINGS[self.smoothing],
                fineness=1 << math.ceil(math.log2(parts)),
                first=len(plans) * self._slots,
            )
            plans.append(ColumnPlan(noise=noise, limit=limit, test=test, group=group))
        return plans

    @property
    def calm_length(self) -> float:
        """How many readings a group has on average where nothing changes, in the first column.

        Over the thresholds that it may get: it closes at each test with the same chance then.
        """
        first = self.plans[0]
        a, b = float(first.limit.scale), float(first.test.scale)
        quantiles = (np.arange(20_000) + 0.5) / 20_000
        tails = np.log(2 * np.minimum(quantiles, 1 - quantiles))
        thresholds = first.group.theta + a * np.where(quantiles < 0.5, tails, -tails)
        far = np.exp(-np.abs(thresholds) / b) / 2
        closes = np.maximum(np.where(thresholds > 0, far, 1 - far), 1e-300)
        return float(np.mean(-np.expm1(self.longest * np.log1p(-closes)) / closes))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with ``noise``, smoothed over the groups in the ``state``."""
        outputs = np.zeros((len(self.plans), len(readings)), dtype=np.int64)
        for j, plan in enumerate(self.plans):
            drawn = noise(plan.noise, f"column {j}")
            limits = noise.each(plan.limit, f"threshold {j}")
            tests = noise.each(plan.test, f"test {j}")
            suited(group_and_smooth, limits, tests)(
                plan.group,
                np.ascontiguousarray(readings[:, j]),
                np.ascontiguousarray(state.missing[:, j]),
                state.counts,
                drawn,
                limits,
                tests,
                state.memory,
                outputs[j],
            )
        return np.ascontiguousarray(outputs.T)
