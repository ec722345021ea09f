"""Releases of known noise, and the distribution of the privacy loss of many together.

The work is done by dp-accounting, whose neighboring relations are traps: a Gaussian event means
half the noise under REPLACE_ONE, a Laplace event is refused there, randomized response is refused
under ADD_OR_REMOVE_ONE, and its accountant composes it once whatever the count. None of them is
used here. Each kind of release is given by its own distribution, with noise in units of the
sensitivity under the unit that is protected, and composed by its count.

Losses are rounded onto a grid so that delta only grows ("connect the dots", Doroshenko et al.
2022). The Fourier transforms behind the sums may still lose a little of delta; ``lost_delta`` says
how much, and it is added back.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.accounting import renyi
from tempriv.errors import extra_packages, require

# grid steps in the loss of one release, fewer where there are many releases; and at most so many in
# the standard deviation of the whole
MAX_GRID_STEPS, MIN_GRID_STEPS = 2048, 32
MAX_DEVIATION_STEPS = 2**14
# measured: at most 3e-14 of delta, and 3e-17 more per release
LOST_DELTA, LOST_DELTA_PER_RELEASE = 1e-13, 1e-15
# beyond it one discrete Gaussian takes seconds, and hardly differs from a continuous one
MAX_DISCRETE_SIGMA_STEPS = 5_000
# e to the power of more is no float
MAX_EPSILON = 200


def require_positive(name: str, value: float) -> None:
    """Refuse a ``value`` of the parameter ``name`` that is no number above 0."""
    require(
        isinstance(value, (int, float)) and 0 < value < math.inf,
        f"{name}={value}: must be a number > 0",
    )


def require_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a ``value`` of the parameter ``name`` that is no whole number from ``least`` on."""
    require(
        isinstance(value, int) and value >= least,
        f"{name}={value}: must be a whole number >= {least}",
    )


class KnownRelease(abc.ABC):
    """A release whose noise is known, so that the distribution of its privacy loss is."""

    steady: ClassVar[bool] = False
    """Whether the loss takes a few values, all of which lie on a grid of epsilon."""

    @property
    def width(self) -> float:
        """Epsilon, or where there is none, half the standard deviation of the loss."""
        return math.sqrt(self.renyi(2.0)) / 2 if self.pure_loss == math.inf else self.pure_loss

    @property
    def pure_loss(self) -> float:
        """Epsilon; infinite where there is none."""
        return math.inf

    @abc.abstractmethod
    def renyi(self, order: float) -> float:
        """The Renyi divergence at an ``order``."""

    @abc.abstractmethod
    def _distribution(self, grid: float) -> Any:
        """The distribution of the loss on a grid, an object of dp-accounting."""

    def _composed(self, count: int, grid: float) -> Any:
        """The distribution of the loss of so many."""
        return self._distribution(grid).self_compose(count)


def _pld() -> Any:
    with extra_packages("analysis", "loss distributions"):
        from dp_accounting.pld import privacy_loss_distribution
    return privacy_loss_distribution


def _options(grid: float) -> dict[str, Any]:
    return {"value_discretization_interval": grid, "use_connect_dots": True}


@dataclass(frozen=True)
class LaplaceRelease(KnownRelease):
    """Laplace noise; ``noise_ratio`` is its scale divided by the sensitivity (L1)."""

    noise_ratio: float

    def __post_init__(self) -> None:
        require_positive("noise_ratio", self.noise_ratio)

    @property
    def epsilon(self) -> float:
        return 1 / self.noise_ratio

    @property
    def pure_loss(self) -> float:
        return self.epsilon

    def renyi(self, order: float) -> float:
        """The Renyi divergence at an ``order``."""
        return renyi.laplace(self.noise_ratio, order)

    def _distribution(self, grid: float) -> Any:
        return _pld().from_laplace_mechanism(self.noise_ratio, **_options(grid))


@dataclass(frozen=True)
class GaussianRelease(KnownRelease):
    """Gaussian noise; ``noise_ratio`` is its deviation divided by the sensitivity (L2)."""

    noise_ratio: float

    def __post_init__(self) -> None:
        require_positive("noise_ratio", self.noise_ratio)

    def renyi(self, order: float) -> float:
        """The Renyi divergence at an ``order``."""
        return renyi.gaussian(self.noise_ratio, order)

    def _distribution(self, grid: float) -> Any:
        return _pld().from_gaussian_mechanism(self.noise_ratio, value_discretization_interval=grid)

    def _composed(self, count: int, grid: float) -> Any:
        # one release of so many times the information
        return GaussianRelease(self.noise_ratio / math.sqrt(count))._distribution(grid)


@dataclass(frozen=True)
class ResponseRelease(KnownRelease):
    """Randomized response: the true one of ``choices`` is e^epsilon times likelier than another."""

    steady: ClassVar[bool] = True

    epsilon: float
    choices: int = 2

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require_count("choices", self.choices, least=2)

    @property
    def pure_loss(self) -> float:
        return self.epsilon

    def renyi(self, order: float) -> float:
        """The Renyi divergence at an ``order``."""
        return renyi.response(self.epsilon, self.choices, order)

    def _distribution(self, grid: float) -> Any:
        return _two_answers(self.epsilon, 0.0, self.choices, grid)


@dataclass(frozen=True)
class DiscreteLaplaceRelease(KnownRelease):
    """Discrete Laplace noise; scale and sensitivity in steps of the grid."""

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_count("sensitivity", self.sensitivity)

    @property
    def epsilon(self) -> float:
        return self.sensitivity / self.scale

    @property
    def pure_loss(self) -> float:
        return self.epsilon

    def renyi(self, order: float) -> float:
        """At an ``order``, as of any pure guarantee; a little more than that of this noise."""
        return renyi.response(self.epsilon, 2, order)

    def _distribution(self, grid: float) -> Any:
        return _pld().from_discrete_laplace_mechanism(
            1 / self.scale, sensitivity=self.sensitivity, **_options(grid)
        )


@dataclass(frozen=True)
class DiscreteGaussianRelease(KnownRelease):
    """Discrete Gaussian noise: parameter sigma and sensitivity, in steps of the grid."""

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        require_positive("sigma", self.sigma)
        require_count("sensitivity", self.sensitivity)

    def renyi(self, order: float) -> float:
        """At an ``order``, as of continuous noise (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        return renyi.gaussian(self.sigma / self.sensitivity, order)

    def _distribution(self, grid: float) -> Any:
        require(
            self.sigma <= MAX_DISCRETE_SIGMA_STEPS,
            f"sigma={self.sigma:g} steps: must be at most {MAX_DISCRETE_SIGMA_STEPS:,}; on so fine "
            "a grid count it as GaussianRelease",
        )
        return _pld().from_discrete_gaussian_mechanism(
            self.sigma, sensitivity=self.sensitivity, **_options(grid)
        )


@dataclass(frozen=True)
class AnyRelease(KnownRelease):
    """Whatever keeps (epsilon, delta): the worst of all such releases."""

    steady: ClassVar[bool] = True

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(0 <= self.delta < 1, f"delta={self.delta}: must be >= 0 and < 1")

    @property
    def pure_loss(self) -> float:
        return self.epsilon

    def renyi(self, order: float) -> float:
        """The Renyi divergence at an ``order``; refused where delta is not 0."""
        require(self.delta == 0, f"{self!r}: has no Renyi divergence; use optimal or exact")
        return renyi.response(self.epsilon, 2, order)

    def _distribution(self, grid: float) -> Any:
        return _two_answers(self.epsilon, self.delta, 2, grid)


Plan = Mapping[KnownRelease, int]


def check_plan(plan: Plan) -> None:
    """Refuse a ``plan`` without releases, or with counts that are none."""
    require(len(plan) > 0, "plan={}: name at least one release and how many of it there are")
    for count in plan.values():
        require_count("count", count)


def lost_delta(plan: Plan) -> float:
    """What the distribution of a ``plan`` may lack of its delta."""
    return LOST_DELTA + LOST_DELTA_PER_RELEASE * sum(plan.values())


def loss_distribution(plan: Plan) -> Any:
    """The privacy-loss distribution of a ``plan``, an object of dp-accounting."""
    for release in plan:
        require(
            release.pure_loss <= MAX_EPSILON or release.pure_loss == math.inf,
            f"epsilon={release.pure_loss:g}: must be at most {MAX_EPSILON} for each release; more "
            "protects nothing",
        )
    grid = _grid(plan)
    parts = [release._composed(count, grid) for release, count in plan.items()]
    return functools.reduce(lambda whole, part: whole.compose(part), parts)


def _grid(plan: Plan) -> float:
    """The distance of two grid points: an epsilon of the plan divided by a power of two."""
    first = next(iter(plan))
    if len(plan) == 1 and first.steady:
        return first.pure_loss
    steps = {
        release: max(MAX_GRID_STEPS / math.sqrt(count), MIN_GRID_STEPS)
        for release, count in plan.items()
    }
    finest = min(release.width / 2.0 ** math.ceil(math.log2(steps[release])) for release in plan)
    spread = math.sqrt(math.fsum(count * release.width**2 for release, count in plan.items()))
    return finest * 2.0 ** max(math.ceil(math.log2(spread / MAX_DEVIATION_STEPS / finest)), 0)


def _two_answers(epsilon: float, delta: float, choices: int, grid: float) -> Any:
    """Losses epsilon, -epsilon, perhaps 0 and infinity, between points of the grid."""
    with extra_packages("analysis", "loss distributions"):
        from dp_accounting.pld import pld_pmf

    around = {math.floor(epsilon / grid), math.ceil(epsilon / grid)}
    points = sorted(around | {-point for point in around} | {0})
    rest = math.exp(-epsilon) * (choices - 1) + 1

    def above(loss: float) -> float:
        """The hockey-stick divergence at a loss."""
        if loss >= epsilon:
            return delta
        kept = -math.expm1(loss - epsilon)
        if loss < 0:
            kept -= (choices - 2) * math.exp(-epsilon) * math.expm1(loss)
        if loss < -epsilon:
            kept -= math.exp(-epsilon) * math.expm1(loss + epsilon)
        return delta + (1 - delta) * kept / rest

    deltas = [above(point * grid) for point in points]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(grid, points, deltas)
    return _pld().PrivacyLossDistribution(pmf)
