"""Alerts when a value crosses a threshold, at a cost that counts alerts and not questions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tempriv.data.series import EMPTY, RELEASED
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.checks import Check, ReleasedRows
from tempriv.mechanisms.domains import Derived, Floats, Integers, ValueKind, is_whole
from tempriv.mechanisms.numbers import LEAST_SHARE, AcceptedUnits, NumberMechanism
from tempriv.mechanisms.options import option
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Contribution, Unit, WholeSeries
from tempriv.sampling._kernels import sparse_vector, suited
from tempriv.sampling.distributions import DiscreteLaplace

WRONG = 0.05


@dataclass(frozen=True, kw_only=True)
class SparseVector(NumberMechanism):
    """Tells at every step whether the value is at or above a threshold, up to ``most`` alerts.

    Parameters:
        epsilon: the loss for whole series.
        bounds: smallest and largest possible value.
        threshold: alert at this value and above, in the unit of the column.
        most: how many alerts there are, at most.
        unit: what is protected: a whole series of so many readings, or what a person adds to it.
        threshold_share: the part of epsilon for the threshold, between 0 and 1; by default the one
            that makes wrong answers rarest.
        grid: of readings, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for whole series of any readings, however many steps are asked about;
        - what comes out is one bit a step; after ``most`` alerts nothing does, for good.

    Counts (``Contribution``) all change the same way when a person comes or goes, so they take
    half the noise.

    >>> alarm = SparseVector(epsilon=1.0, bounds=(0, 1000), threshold=100, most=3,
    ...                      unit=Contribution(WholeSeries(1440)))
    >>> alarm.guarantee.loss, [round(float(noise.scale), 2) for noise in alarm.distributions]
    (Pure(epsilon=1.0), [3.08, 4.44])
    """

    epsilon: float
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

    spec_order = ("epsilon", "bounds", "threshold", "most", "unit", "threshold_share", "grid")
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
    one_column = "watch each by itself"
    accepted_units = AcceptedUnits(
        (WholeSeries,),
        "WholeSeries or Contribution(WholeSeries(...)); alerts cost the same for any part of a "
        "series",
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
    error_name: ClassVar[str] = "distance from the threshold beyond which 1 answer in 20 is wrong"

    published: ClassVar[Published] = Published(
        claim="A threshold noised once at sensitivity / epsilon_0, and fresh noise of twice "
        "the sensitivity / epsilon_1 on every value, cost epsilon_0 + c epsilon_1 for c alerts",
        source="Dwork and Roth 2014, Section 3.6; Lyu, Su and Li 2017, Algorithm 1",
        holds=True,
        remark="It is tight. Half the noise on values is enough for monotone values only, and "
        "the guarantee is for the bits: no noisy value may be given beside them.",
    )

    def _require_settings(self) -> None:
        require(
            is_whole(self.most, 1, None),
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

    @property
    def noise_to_range(self) -> float:
        return 1 / self.epsilon

    @property
    def _limit(self) -> int:
        """The threshold in grid steps: counts are whole, so the next one up is as good."""
        steps = float(self.threshold) / self.grids[0]
        return math.ceil(steps) if self.unit.counts_people else round(steps)

    @property
    def domain(self) -> Derived:
        return Derived(self.numbers, (1.0,))

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
    def distributions(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """Noise on the threshold, once, and on every value."""
        change, (once, alert) = self.row_changes[0], self.split
        factor = 1 if self.monotone else 2
        return DiscreteLaplace(change / once), DiscreteLaplace(factor * change / alert)

    @property
    def errors(self) -> tuple[float, ...]:
        a, b = (float(noise.scale) for noise in self.distributions)
        low, high = 0.0, 60 * (a + b)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if _beyond(middle, a, b) > WRONG else (low, middle)
        return (high * self.grids[0],)

    def alert_rate(self, reading: float) -> float:
        """The chance of an alert for a ``reading``, over both noises, while any are left."""
        a, b = (float(noise.scale) for noise in self.distributions)
        wrong = _beyond(abs(reading - self.threshold) / self.grids[0], a, b)
        return wrong if reading < self.threshold else 1 - wrong

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Whether ``readings`` reach the threshold, both with ``noise``; ``state`` counts them."""
        once, each = self.distributions
        limits, values = noise.each(once, "threshold"), noise.each(each, "values")
        rows = state.kernel_rows(readings)
        suited(sparse_vector, limits, values)(
            rows.readings[:, 0],
            rows.missing[:, 0],
            rows.which,
            self._limit,
            self.most,
            limits,
            values,
            rows.memory,
            rows.outputs[:, 0],
            rows.status,
        )
        return rows.outputs

    def without_noise(self, readings: Floats) -> Floats:
        """Whether ``readings`` reach the threshold."""
        return (readings >= self.threshold).astype(np.float64)

    def check_output(self, rows: ReleasedRows) -> list[Check]:
        """Whether ``rows`` are bits."""
        bits = rows.numbers[:, 0]
        good = bool(np.isin(bits[~np.isnan(bits)], (0.0, 1.0)).all())
        return [Check("every alert is 0 or 1", good, f"{int(np.nansum(bits == 1)):,} alerts")]

    def status_fits(self, rows: ReleasedRows) -> bool:
        """Whether ``rows`` are empty from the last alert of their series on, and none before."""
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
