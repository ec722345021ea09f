"""Releases of known noise, and the distribution of the privacy loss of many together.

The work is done by dp-accounting, whose neighboring relations are traps: a Gaussian event means
half the noise under REPLACE_ONE, a Laplace event is refused there, randomized response is refused
under ADD_OR_REMOVE_ONE, and its accountant composes it once whatever the count. None of them is
used here. Each kind of release is given by its own law, with noise in units of the sensitivity
under the unit that is protected, and composed by its count.

Losses are rounded onto a grid so that delta only grows ("connect the dots", Doroshenko et al.
2022). The Fourier transforms behind the sums may still lose a little of delta; ``lost`` says how
much, and it is added back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tempriv.accounting import renyi
from tempriv.errors import extra_packages, require

# grid steps in the loss of one release, fewer where there are many releases; and at most so many in
# the standard deviation of the whole
FINEST, COARSEST = 2048, 32
WIDEST = 2**14
# measured: at most 3e-14 of delta, and 3e-17 more per release
LOST, LOST_PER_RELEASE = 1e-13, 1e-15
# beyond it one discrete Gaussian takes seconds, and hardly differs from a continuous one
WIDEST_DISCRETE = 5_000
# e to the power of more is no float
LARGEST_EPSILON = 200


def positive(name: str, value: float) -> None:
    require(
        isinstance(value, (int, float)) and 0 < value < math.inf,
        f"{name}={value}: must be a number > 0",
    )


def whole(name: str, value: int, least: int = 1) -> None:
    require(
        isinstance(value, int) and value >= least,
        f"{name}={value}: must be a whole number >= {least}",
    )


@dataclass(frozen=True)
class LaplaceRelease:
    """Laplace noise; ``noise_ratio`` is its scale divided by the sensitivity (L1)."""

    noise_ratio: float

    def __post_init__(self) -> None:
        positive("noise_ratio", self.noise_ratio)

    @property
    def epsilon(self) -> float:
        return 1 / self.noise_ratio

    def renyi(self, order: float) -> float:
        return renyi.laplace(self.noise_ratio, order)


@dataclass(frozen=True)
class GaussianRelease:
    """Gaussian noise; ``noise_ratio`` is its deviation divided by the sensitivity (L2)."""

    noise_ratio: float

    def __post_init__(self) -> None:
        positive("noise_ratio", self.noise_ratio)

    @property
    def epsilon(self) -> float:
        return math.inf

    def renyi(self, order: float) -> float:
        return renyi.gaussian(self.noise_ratio, order)


@dataclass(frozen=True)
class ResponseRelease:
    """Randomized response: the true one of ``choices`` is e^epsilon times likelier than another."""

    epsilon: float
    choices: int = 2

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("choices", self.choices, least=2)

    def renyi(self, order: float) -> float:
        return renyi.response(self.epsilon, self.choices, order)


@dataclass(frozen=True)
class DiscreteLaplaceRelease:
    """Discrete Laplace noise; scale and sensitivity in steps of the grid."""

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        whole("sensitivity", self.sensitivity)

    @property
    def epsilon(self) -> float:
        return self.sensitivity / self.scale

    def renyi(self, order: float) -> float:
        """As of any pure guarantee; a little more than that of this noise."""
        return renyi.response(self.epsilon, 2, order)


@dataclass(frozen=True)
class DiscreteGaussianRelease:
    """Discrete Gaussian noise: parameter sigma and sensitivity, in steps of the grid."""

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        whole("sensitivity", self.sensitivity)

    @property
    def epsilon(self) -> float:
        return math.inf

    def renyi(self, order: float) -> float:
        """As of continuous noise (Canonne, Kamath and Steinke 2020, Theorem 4)."""
        return renyi.gaussian(self.sigma / self.sensitivity, order)


@dataclass(frozen=True)
class AnyRelease:
    """Whatever keeps (epsilon, delta): the worst of all such releases."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require(0 <= self.delta < 1, f"delta={self.delta}: must be >= 0 and < 1")

    def renyi(self, order: float) -> float:
        require(self.delta == 0, f"{self!r}: has no Renyi divergence; use optimal or exact")
        return renyi.response(self.epsilon, 2, order)


Kind = (
    LaplaceRelease
    | GaussianRelease
    | ResponseRelease
    | DiscreteLaplaceRelease
    | DiscreteGaussianRelease
    | AnyRelease
)
Plan = Mapping[Kind, int]


def check_plan(plan: Plan) -> None:
    require(len(plan) > 0, "plan={}: name at least one release and how many of it there are")
    for count in plan.values():
        whole("count", count)


def check_losses(plan: Plan) -> None:
    """Refuse what has no distribution in floating point."""
    for kind in plan:
        require(
            kind.epsilon <= LARGEST_EPSILON or kind.epsilon == math.inf,
            f"epsilon={kind.epsilon:g}: must be at most {LARGEST_EPSILON} for each release; more "
            "protects nothing",
        )


def lost(plan: Plan) -> float:
    """What the distribution of a plan may lack of its delta."""
    return LOST + LOST_PER_RELEASE * sum(plan.values())


def distribution(plan: Plan) -> Any:
    """The privacy-loss distribution of a plan, an object of dp-accounting."""
    check_losses(plan)
    grid = _grid(plan)
    parts = [_one_kind(kind, count, grid) for kind, count in plan.items()]
    together = parts[0]
    for part in parts[1:]:
        together = together.compose(part)
    return together


def _smooth(kind: Kind) -> bool:
    return not isinstance(kind, (ResponseRelease, AnyRelease))


def _width(kind: Kind) -> float:
    """Epsilon, or where there is none, half the standard deviation of the loss."""
    return kind.epsilon if kind.epsilon < math.inf else math.sqrt(kind.renyi(2.0)) / 2


def _grid(plan: Plan) -> float:
    """The distance of two grid points: an epsilon of the plan divided by a power of two."""
    if len(plan) == 1 and not _smooth(next(iter(plan))):
        return next(iter(plan)).epsilon  # all losses lie on it
    finest = min(
        _width(kind) / 2.0 ** math.ceil(math.log2(max(FINEST / math.sqrt(count), COARSEST)))
        for kind, count in plan.items()
    )
    spread = math.sqrt(math.fsum(count * _width(kind) ** 2 for kind, count in plan.items()))
    return finest * 2.0 ** max(math.ceil(math.log2(spread / WIDEST / finest)), 0)


def _one_kind(kind: Kind, count: int, grid: float) -> Any:
    with extra_packages("analysis", "loss distributions"):
        from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(kind, GaussianRelease):
        # one release of so many times the information
        return pld.from_gaussian_mechanism(
            kind.noise_ratio / math.sqrt(count), value_discretization_interval=grid
        )
    options: dict[str, Any] = {"value_discretization_interval": grid, "use_connect_dots": True}
    if isinstance(kind, LaplaceRelease):
        one = pld.from_laplace_mechanism(kind.noise_ratio, **options)
    elif isinstance(kind, DiscreteLaplaceRelease):
        one = pld.from_discrete_laplace_mechanism(
            1 / kind.scale, sensitivity=kind.sensitivity, **options
        )
    elif isinstance(kind, DiscreteGaussianRelease):
        require(
            kind.sigma <= WIDEST_DISCRETE,
            f"sigma={kind.sigma:g} steps: must be at most {WIDEST_DISCRETE:,}; on so fine a grid "
            "count it as GaussianRelease",
        )
        one = pld.from_discrete_gaussian_mechanism(
            kind.sigma, sensitivity=kind.sensitivity, **options
        )
    else:
        one = _two_answers(kind, grid)
    return one.self_compose(count)


def _two_answers(kind: ResponseRelease | AnyRelease, grid: float) -> Any:
    """Losses epsilon, -epsilon, perhaps 0 and infinity, between points of the grid."""
    with extra_packages("analysis", "loss distributions"):
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    choices = kind.choices if isinstance(kind, ResponseRelease) else 2
    delta = kind.delta if isinstance(kind, AnyRelease) else 0.0
    around = {math.floor(kind.epsilon / grid), math.ceil(kind.epsilon / grid)}
    points = sorted(around | {-point for point in around} | {0})
    rest = math.exp(-kind.epsilon) * (choices - 1) + 1

    def above(loss: float) -> float:
        """The hockey-stick divergence at a loss."""
        if loss >= kind.epsilon:
            return delta
        kept = -math.expm1(loss - kind.epsilon)
        if loss < 0:
            kept -= (choices - 2) * math.exp(-kind.epsilon) * math.expm1(loss)
        if loss < -kind.epsilon:
            kept -= math.exp(-kind.epsilon) * math.expm1(loss + kind.epsilon)
        return delta + (1 - delta) * kept / rest

    deltas = [above(point * grid) for point in points]
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(grid, points, deltas)
    return PrivacyLossDistribution(pmf)
