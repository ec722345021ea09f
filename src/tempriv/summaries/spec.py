"""What a summary is: its statistics, its cells, its budget and the guarantee that follows."""

from __future__ import annotations

import functools
import itertools
import math
import re
from dataclasses import dataclass
from typing import ClassVar

from tempriv.accounting.gaussian_privacy import discrete_slack, mu_budget, with_slack
from tempriv.accounting.renyi import rho_budget
from tempriv.errors import require
from tempriv.privacy.guarantees import Approximate, Guarantee, Published
from tempriv.privacy.units.presence import Presence
from tempriv.summaries.bands import MOST_THRESHOLDS
from tempriv.summaries.cells import BY, PROTECT
from tempriv.summaries.measure import NOISE_GRID, Wanted
from tempriv.summaries.vectors import MAX_CELLS, READING_STEPS

STATISTICS = ("mean", "total", "peak", "histogram", "qNN", "share-above=X", "share-between=X:Y")
DEFAULT_STATISTICS = ("mean", "q10", "q50", "q90", "peak")
DEFAULT_BINS = 20
MARGIN = 1e-4  # of epsilon and delta, for what discrete noise differs from Gaussian noise
FEWEST_PEOPLE = 600
"""At epsilon 1 intervals were checked from so many people on; the fewer, the larger epsilon."""


@dataclass(frozen=True)
class SummaryStatistic:
    """One statistic, by its name.

    Parameters:
        name: as it is written.
        kind: ``mean``, ``total``, ``peak``, ``histogram``, ``quantile`` or ``share``.
        low: the share below a quantile, or the least reading of a share.
        high: the greatest reading of a share.

    >>> SummaryStatistic.of("q90").low, SummaryStatistic.of("share-between=70:180").high
    (0.9, 180.0)
    """

    name: str
    kind: str
    low: float = 0.0
    high: float = math.inf

    @classmethod
    def of(cls, text: str) -> SummaryStatistic:
        """The statistic that a ``text`` names."""
        name = text.strip().lower()
        if name in ("mean", "total", "peak", "histogram"):
            return cls(name, name)
        if name == "median":
            return cls("q50", "quantile", 0.5)
        quantile = re.fullmatch(r"q(\d{1,2}(?:\.\d+)?)", name)
        if quantile and float(quantile[1]) > 0:
            return cls(name, "quantile", float(quantile[1]) / 100)
        number = r"([-+]?[\d.]+(?:e[-+]?\d+)?)"
        above = re.fullmatch(rf"share-above={number}", name)
        between = re.fullmatch(rf"share-between={number}:{number}", name)
        if above:
            return cls(name, "share", float(above[1]))
        require(
            between is not None and float(between[1]) < float(between[2]),
            f"statistics={text!r}: must be {', '.join(STATISTICS[:-1])} or {STATISTICS[-1]}",
        )
        assert between is not None
        return cls(name, "share", float(between[1]), float(between[2]))

    @property
    def condition(self) -> str:
        """Whether a reading ``v`` counts, in SQL."""
        if self.high == math.inf:
            return f"v > CAST('{self.low!r}' AS DOUBLE)"
        return f"v BETWEEN CAST('{self.low!r}' AS DOUBLE) AND CAST('{self.high!r}' AS DOUBLE)"


@dataclass(frozen=True, kw_only=True)
class PeopleSummary:
    """Statistics of many people in one release, each whole person protected (central model).

    Each person becomes one bounded vector, an average for each cell of time. Of these vectors come
    the noisy number of people, their mean, quantiles, peaks and shares, in one budget.

    Parameters:
        epsilon: of the whole release.
        delta: of the whole release.
        bounds: the least and the greatest reading; public, others are moved to the nearest.
        statistics: which, by name.
        by: the cells: ``hour-of-day``, ``weekday``, ``hour-of-week``, ``month`` or ``step``.
        protect: what is added or removed: a ``person``, a person's ``day`` or a single ``reading``.
        groups: the declared values of a column of groups; none: all people together.
        bins: edges of the histogram within the bounds; none: 20 bins of one width.
        min_readings: people with fewer readings are left out.
        grid: steps of the grid of noise to the norm of one person.

    >>> hourly = PeopleSummary(epsilon=1.0, delta=1e-6, bounds=(0, 5))
    >>> hourly.guarantee.unit, str(hourly.guarantee.loss)
    (Presence(record='person'), 'epsilon = 1, delta = 1e-06')
    """

    spec_name: ClassVar[str] = "PeopleSummary"

    epsilon: float
    delta: float
    bounds: tuple[float, float]
    statistics: tuple[str, ...] = DEFAULT_STATISTICS
    by: str = "hour-of-day"
    protect: str = "person"
    groups: tuple[str, ...] = ()
    bins: tuple[float, ...] = ()
    min_readings: int = 1
    grid: int = NOISE_GRID

    def __post_init__(self) -> None:
        require(
            isinstance(self.epsilon, (int, float)) and 0 < self.epsilon <= 50,
            f"epsilon={self.epsilon}: must be > 0 and at most 50",
        )
        require(
            isinstance(self.delta, (int, float)) and 1e-15 <= self.delta < 1,
            f"delta={self.delta}: must be > 0 and < 1, such as 1e-6, and at least 1e-15",
        )
        require(
            len(self.bounds) == 2
            and all(isinstance(b, (int, float)) and abs(b) < 1e150 for b in self.bounds)
            and self.bounds[0] < self.bounds[1],
            f"bounds={self.bounds}: must be two finite numbers, the lower first, from what you "
            "know of readings and not from the data",
        )
        require(
            not isinstance(self.statistics, str) and len(self.statistics) > 0,
            f"statistics={self.statistics!r}: must be a list of names, such as mean, q50",
        )
        names = [SummaryStatistic.of(name).name for name in self.statistics]
        require(len(set(names)) == len(names), f"statistics={','.join(names)}: name each only once")
        require(self.by in BY, f"by={self.by!r}: must be one of {', '.join(BY)}")
        require(
            self.protect in PROTECT,
            f"protect={self.protect!r}: must be one of {', '.join(PROTECT)}",
        )
        require(
            len(set(self.groups)) == len(self.groups),
            f"groups={list(self.groups)}: name each only once",
        )
        require(
            isinstance(self.min_readings, int) and self.min_readings >= 1,
            f"min_readings={self.min_readings}: must be a whole number >= 1",
        )
        require(
            isinstance(self.grid, int) and 1 <= self.grid <= NOISE_GRID,
            f"grid={self.grid}: must be from 1 to {NOISE_GRID}",
        )
        require(not self.bins or "histogram" in names, "bins: must be left out without histogram")
        ends = (self.bounds[0], *self.bins, self.bounds[1])
        require(
            all(a < b for a, b in itertools.pairwise(ends)),
            f"bins={list(self.bins)}: must rise, and lie within the bounds",
        )

    @functools.cached_property
    def asked(self) -> tuple[SummaryStatistic, ...]:
        """The statistics, parsed."""
        return tuple(SummaryStatistic.of(name) for name in self.statistics)

    @property
    def shares(self) -> tuple[SummaryStatistic, ...]:
        """Those that count a part of readings."""
        return tuple(statistic for statistic in self.asked if statistic.kind == "share")

    @property
    def edges(self) -> tuple[float, ...]:
        """The inner edges of the histogram."""
        low, high = self.bounds
        width = (high - low) / DEFAULT_BINS
        return self.bins or tuple(low + i * width for i in range(1, DEFAULT_BINS))

    @functools.cached_property
    def mu(self) -> float:
        """The budget in units of Gaussian privacy.

        Where the grid is too coarse for discrete noise to be told as Gaussian noise, by
        zero-concentrated privacy: mu^2 / 2 is then its rho.
        """
        if self.by_concentrated_privacy:
            return math.sqrt(2 * rho_budget(self.epsilon, self.delta)[0]) * (1 - 1e-9)
        return mu_budget(self.epsilon * (1 - MARGIN), self.delta * (1 - MARGIN))

    @functools.cached_property
    def by_concentrated_privacy(self) -> bool:
        """Whether the guarantee is proven by zCDP, and not by Gaussian privacy."""
        mu = mu_budget(self.epsilon * (1 - MARGIN), self.delta * (1 - MARGIN))
        # the largest share of a part is below 1, so this is the least of all deviations
        sigma = self.grid / mu
        if sigma < 64:
            return True
        slack, mass = discrete_slack(sigma, MAX_CELLS * (MOST_THRESHOLDS + 8 + len(self.shares)))
        return with_slack(mu, self.epsilon, slack, mass) > self.delta

    @property
    def guarantee(self) -> Guarantee:
        """What is true of the release."""
        loss = Approximate(float(self.epsilon), float(self.delta))
        return Guarantee(loss, Presence(self.protect), "central")

    @property
    def published(self) -> Published:
        """What the literature says of its parts."""
        return Published(
            "Gaussian noise and bounded-range choices compose as Gaussian privacy",
            "Dong, Roth and Su 2022, Corollary 3.3; Dong, Durfee and Rogers 2020, Lemma 2",
            True,
            "Discrete noise is counted with what it differs from Gaussian noise.",
        )

    def wanted(self, cells: int) -> Wanted:
        """What is measured of people with so many ``cells``."""
        kinds = {statistic.kind for statistic in self.asked}
        low, high = self.bounds
        edges = [round((edge - low) / (high - low) * READING_STEPS) for edge in self.edges]
        mean, quantiles = bool(kinds & {"mean", "total", "quantile"}), "quantile" in kinds
        return Wanted(
            cells=cells,
            mean=mean,
            bands=quantiles,
            spread=mean and not quantiles,
            peak="peak" in kinds and cells > 1,
            edges=tuple(edges) if "histogram" in kinds else (),
            shares=len(self.shares),
            mu=self.mu,
            grid=self.grid,
        )

    def require_cells(self, cells: int) -> None:
        """Refuse statistics that so many ``cells`` of a record cannot have."""
        require(
            cells > 1 or "peak" not in self.statistics,
            f"statistics=peak: needs several cells of a {self.protect}; with by={self.by} and "
            f"protect={self.protect} there is one",
        )
        require(
            cells <= MAX_CELLS,
            f"by={self.by}: makes {cells:,} cells, at most {MAX_CELLS:,} are taken",
        )

    @property
    def enough_people(self) -> int:
        """From so many people in each group on statistics were checked to be of use."""
        return max(10 * round(FEWEST_PEOPLE / 10 * mu_budget(1.0, 1e-6) / self.mu), 10)
