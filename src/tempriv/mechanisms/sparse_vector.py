"""Alerts when a value crosses a threshold, at a cost that counts alerts and not questions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import EMPTY, RELEASED, Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.checks import Check, ReleasedRows
from tempriv.mechanisms.domains import (
    Derived,
    Floats,
    Integers,
    Numbers,
    ValueKind,
    bounds_of,
    positive,
)
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.value._shared import LEAST_SHARE, change_of, model_of, number_grids
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Contribution, Unit, WholeSeries
from tempriv.sampling import distributions
from tempriv.sampling._kernels import sparse_vector, suited

WRONG = 0.05


@dataclass(frozen=True, kw_only=True)
class SparseVector(Mechanism):
    """Tells at every step whether the value is at or above a threshold, up to ``most`` alerts.

    Guarantees:
        - pure epsilon for whole series of any readings, however many steps are asked about;
        - what comes out is one bit a step; after ``most`` alerts nothing does, for good.

    Counts (``Contribution``) all change the same way when a person comes or goes, so they take
    half the noise. ``threshold_share`` of epsilon goes to the threshold; by default the part that
    makes wrong answers rarest.

    >>> alarm = SparseVector(epsilon=1.0, bounds=(0, 1000), threshold=100, most=3,
    ...                      unit=Contribution(WholeSeries(1440)))
    >>> alarm.guarantee.loss, [round(float(law.scale), 2) for law in alarm.laws]
    (Pure(epsilon=1.0), [3.08, 4.44])
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    threshold: float = option(
        "--threshold",
        "Alert at this value and above.",
    )
    most: int = option(
        "--alerts",
        "So many alerts at most, then nothing more.",
        type=int,
    )
    unit: Unit = field(default_factory=lambda: WholeSeries(10**9))
    threshold_share: float | None = None
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="sparse-vector",
        hides="counts",
        purpose="alerts when numbers reach a threshold; alerts cost, waiting does not",
        example="--epsilon 1 --bounds 0 500 --threshold 100 --alerts 5 --value people "
        "--unit series --length 1440",
        count_example="--epsilon 1 --threshold 100 --alerts 5 --max-per-step 1 --max-per-person 10",
        units=("series",),
        rank=5,
    )
    texts = ReportTexts(
        done="each says only whether a reading was at or above a threshold, and random "
        "noise was added to both before they were compared",
        measured="Error: how often the answer was another than that of the reading itself.",
    )

    has_status: ClassVar[bool] = True
    values_are_readings: ClassVar[bool] = False
    value_kind: ClassVar[ValueKind] = "alerts"
    memory_size: ClassVar[int] = 3
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = "distance from the threshold beyond which 1 answer in 20 is wrong"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        require(
            len(self.bounds) == 1,
            f"bounds={self.bounds}: must be one pair, for one column; watch each by itself",
        )
        each = self.unit.each if isinstance(self.unit, Contribution) else self.unit
        require(
            isinstance(each, WholeSeries),
            f"unit={self.unit!r}: must be WholeSeries or Contribution(WholeSeries(...)); alerts "
            "cost the same for any part of a series",
        )
        require(
            isinstance(self.most, int) and not isinstance(self.most, bool) and self.most >= 1,
            f"most={self.most}: must be a whole number of alerts >= 1",
        )
        require(
            self.threshold_share is None
            or (isinstance(self.threshold_share, (int, float)) and 0 < self.threshold_share < 1),
            f"threshold_share={self.threshold_share}: must be between 0 and 1",
        )
        low, high = self.bounds[0]
        require(
            isinstance(self.threshold, (int, float)) and low <= self.threshold <= high,
            f"threshold={self.threshold}: must lie within the bounds {low:g} {high:g}",
        )
        require(
            min(self.split) > LEAST_SHARE,
            f"epsilon={self.epsilon:g} for most={self.most}: must be greater, nothing is left of "
            "it for each alert",
        )
        object.__setattr__(self, "grid", number_grids(self, 1 / self.epsilon))
        _ = self.laws

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @property
    def _limit(self) -> int:
        """The threshold in grid steps: counts are whole, so the next one up is as good."""
        steps = float(self.threshold) / float(self.grid[0])
        return math.ceil(steps) if self.unit.counts_people else round(steps)

    @property
    def domain(self) -> Derived:
        return Derived(self._numbers, (1.0,))

    @property
    def monotone(self) -> bool:
        """Whether all values change the same way between neighbors."""
        return isinstance(self.unit, Contribution) and not self.unit.signed

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """What the threshold takes of epsilon, and what each alert does.

        By default in the ratio 1 : (2 most)^(2/3), without the 2 for monotone values (Lyu, Su and
        Li 2017, Section 4.2).
        """
        share = self.threshold_share
        if share is None:
            share = 1 / (1 + ((1 if self.monotone else 2) * self.most) ** (2 / 3))
        first = Fraction(self.epsilon) * Fraction(share)
        return first, (Fraction(self.epsilon) - first) / self.most

    @property
    def laws(self) -> tuple[distributions.DiscreteLaplace, distributions.DiscreteLaplace]:
        """Noise on the threshold, once, and on every value."""
        change = change_of(self.unit, self._numbers)[0]
        once, alert = self.split
        factor = 1 if self.monotone else 2
        return distributions.DiscreteLaplace(change / once), distributions.DiscreteLaplace(
            factor * change / alert
        )

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        return Published(
            claim="A threshold noised once at sensitivity / epsilon_0, and fresh noise of twice "
            "the sensitivity / epsilon_1 on every value, cost epsilon_0 + c epsilon_1 for c alerts",
            source="Dwork and Roth 2014, Section 3.6; Lyu, Su and Li 2017, Algorithm 1",
            holds=True,
            remark="It is tight. Half the noise on values is enough for monotone values only, and "
            "the guarantee is for the bits: no noisy value may be given beside them.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        a, b = (float(law.scale) for law in self.laws)
        low, high = 0.0, 60 * (a + b)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if _beyond(middle, a, b) > WRONG else (low, middle)
        return (high * self.grid[0],)

    def alert_rate(self, reading: float) -> float:
        """The chance of an alert for a reading, over both noises, while there are alerts left."""
        a, b = (float(law.scale) for law in self.laws)
        wrong = _beyond(abs(reading - self.threshold) / self.grid[0], a, b)
        return wrong if reading < self.threshold else 1 - wrong

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        once, each = self.laws
        limits, values = noise.each(once, "threshold"), noise.each(each, "values")
        alerts = np.zeros(len(readings), dtype=np.int64)
        suited(sparse_vector, limits, values)(
            np.ascontiguousarray(readings[:, 0]),
            state.missing[:, 0],
            state.which,
            self._limit,
            self.most,
            limits,
            values,
            state.memory,
            alerts,
            state.status,
        )
        return alerts[:, None]

    def without_noise(self, readings: Floats) -> Floats:
        return (readings >= self.threshold).astype(np.float64)

    def check_output(self, rows: ReleasedRows) -> list[Check]:
        bits = rows.numbers[:, 0]
        good = bool(np.isin(bits[~np.isnan(bits)], (0.0, 1.0)).all())
        return [Check("every alert is 0 or 1", good, f"{int(np.nansum(bits == 1)):,} alerts")]

    def status_fits(self, rows: ReleasedRows) -> bool:
        """Rows are empty from the last alert of their series on, and none before that."""
        bits = rows.numbers[:, 0]
        alerts = np.cumsum(bits == 1)
        before = np.concatenate(([0], alerts[:-1]))
        # how many of them were before the series began
        start = np.maximum.accumulate(np.where(rows.firsts, before, 0))
        over = before - start >= self.most
        expected = np.where(over, EMPTY, RELEASED)
        return bool((rows.status == expected).all() and np.isnan(bits[over]).all())


def _beyond(distance: float, a: float, b: float) -> float:
    """P(the sum of two independent Laplace numbers exceeds a distance)."""
    if abs(a - b) < 1e-6 * a:
        return (0.5 + distance / (4 * a)) * math.exp(-distance / a)
    ratio = (b / a) ** 2
    return (math.exp(-distance / a) - ratio * math.exp(-distance / b)) / (2 * (1 - ratio))
