"""Rows sorted by noisy times."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from tempriv.errors import UsageError, require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, OpaqueRows, positive
from tempriv.mechanisms.options import WINDOW, option, shared
from tempriv.mechanisms.reorder import analysis, loss, shares
from tempriv.mechanisms.reorder._kernels import Slots, by_key
from tempriv.mechanisms.reorder.base import ON_TIMES, ReorderMechanism
from tempriv.mechanisms.reorder.distributions import TieDistribution, WindowDistribution
from tempriv.mechanisms.reorder.shuffle import require_steps
from tempriv.privacy.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.privacy.units.order import Swap
from tempriv.sampling import distributions

NoiseKind = Literal["staircase", "laplace"]
KeyDistribution = distributions.Staircase | distributions.DiscreteLaplace

MAX_LATENCY_STEPS = 1 << 17
MIN_KEPT_MASS = 0.01  # of the noise, that its cutting must leave: what is outside is drawn again
TIE_DELTA = 2.0**-50
"""Far above the chance that rows near a swapped one get the same 63 random bits."""


@functools.lru_cache(maxsize=64)
def staircase(epsilon: float, window: int) -> tuple[distributions.Staircase, float]:
    """Odds of e^(``epsilon``/2) over shifts less than a ``window``, and its mean magnitude."""
    rate, width = Fraction(epsilon) / 2, window - 1
    ratio, fall = math.exp(-rate), -math.expm1(-rate)
    inner = np.arange(1, width + 1)
    # per step of the staircase: its weight, and the sum of weight times place
    weight = inner + (width - inner) * ratio
    first = inner * (inner - 1) / 2
    place = first + ratio * (width * (width - 1) / 2 - first)
    magnitude = 2 * (place + width * weight * ratio / fall) / (2 * weight - fall)
    best = int(np.argmin(magnitude))
    return distributions.Staircase(rate, width, int(inner[best])), float(magnitude[best])


def key_distribution(epsilon: float, window: int, kind: str) -> KeyDistribution:
    """The noise of one key: at most e^(epsilon/2) between two times less than a window apart.

    Parameters:
        epsilon: the budget.
        window: time steps.
        kind: ``staircase`` or ``laplace``.
    """
    if kind == "laplace":
        return distributions.DiscreteLaplace(2 * (window - 1) / Fraction(epsilon))
    return staircase(epsilon, window)[0]


def masses(distribution: KeyDistribution, reach: int) -> Floats:
    """The probabilities of 0, 1 .. reach, if larger numbers are drawn again.

    Parameters:
        distribution: of the numbers, symmetric about zero.
        reach: the largest.
    """
    far = np.arange(reach + 1)
    if isinstance(distribution, distributions.DiscreteLaplace):
        weights = np.exp(-far / float(distribution.scale))
    else:
        steps, place = np.divmod(far, distribution.width)
        weights = np.exp(-float(distribution.epsilon) * (steps + (place >= distribution.inner)))
    return np.asarray(weights / (2 * weights.sum() - weights[0]))


def delta_at(epsilon: float, window: int, kind: str, latency: int) -> float:
    """The delta of the widest swap: both keys' noise may give away on which side it was cut.

    Parameters:
        epsilon: the budget.
        window: time steps.
        kind: of noise, ``staircase`` or ``laplace``.
        latency: time steps.
    """
    mass = masses(key_distribution(epsilon, window, kind), latency // 2)
    return loss.cut_noise(mass, window - 1) + TIE_DELTA


@functools.lru_cache(maxsize=512)
def least_latency(epsilon: float, window: int, delta: float, kind: str = "staircase") -> int:
    """The least latency with which NoisyOrder keeps delta.

    Parameters:
        epsilon: the budget.
        window: time steps.
        delta: what may be lost by cutting the noise.
        kind: of noise, ``staircase`` or ``laplace``.

    >>> least_latency(1.0, 10, 1e-6)
    482
    """
    low, high = 2, 2
    while delta_at(epsilon, window, kind, high) > delta:
        low, high = high, 2 * high
        require(
            high <= MAX_LATENCY_STEPS,
            f"epsilon={epsilon:g}: no latency keeps delta at {delta:g} with a window of {window}; "
            "give a greater delta or epsilon, or a smaller window",
        )
    while high - low > 2:
        middle = (low + high) // 4 * 2
        reached = delta_at(epsilon, window, kind, middle) <= delta
        low, high = (low, middle) if reached else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class NoisyOrder(ReorderMechanism):
    """Puts the rows of a series into the order of their times with noise on them.

    Noise is drawn so that two times less than ``window`` steps apart are told apart by e^epsilon/2
    at most; the rest is sorting, which nobody's secret enters. Equal noisy times are put in a
    random order.

    Parameters:
        epsilon: the budget for two readings that trade places.
        window: within how many time steps of each other they are.
        latency: how many time steps after its own a row comes out; None releases a series whole.
        delta: with ``latency``, what may be lost by cutting the noise; 1e-6 by default.
        noise: ``staircase``, which moves readings least, or ``laplace``, whose loss shrinks with
            the distance of the readings.

    Guarantees:
        - pure epsilon for any two readings less than ``window`` steps apart that trade places, if
          the series is released whole (``latency`` left out);
        - with ``latency``, a stream: the noise is cut at half of it, and the guarantee is
          (epsilon, delta) with the delta that this costs, at most the one asked for;
        - every reading comes out once, unchanged, and no slot is empty.

    >>> whole = NoisyOrder(epsilon=1.0, window=10)
    >>> whole.guarantee.loss
    Pure(epsilon=1.0)
    >>> stream = NoisyOrder(epsilon=4.0, window=4, latency=60, delta=1e-5)
    >>> stream.guarantee.loss.delta < 1e-5
    True
    """

    window: int = shared(WINDOW)
    latency: int | None = option(
        "--latency",
        "Rows come out so many steps late; costs a --delta.",
        default=None,
        type=int,
    )
    delta: float | None = None
    noise: str = option(
        "--order-noise",
        "The noise on times; staircase (default) moves readings least.",
        default="staircase",
        type=str,
        metavar="staircase|laplace",
    )

    command = CommandLine(
        name="noisy-order",
        hides="order",
        purpose="exact rows in the order of noisy times; hides any exchange within a window",
        example="--epsilon 4 --window 10 --value pulse",
        units=(),
        on_times=ON_TIMES,
        takes_delta=True,
        rank=19,
    )
    published = Published(
        claim="None for orders: the staircase law has the least noise for its odds, its use on "
        "times is our own",
        source="Geng and Viswanath 2014",
        holds=True,
        remark="Two readings that trade places move two keys by less than a window, each of "
        "them worth epsilon/2.",
    )

    error_name: ClassVar[str] = "mean magnitude in time steps of the noise on a reading's time"
    moves_both_ways: ClassVar[bool] = True
    move_name: ClassVar[str] = "noise on a time"
    move_title: ClassVar[str] = "Noise on the times, in rows"
    done: ClassVar[str] = (
        "the rows were put into the order of their times with random noise on them"
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        analysis.require_window(self.window, 2, MAX_LATENCY_STEPS)
        require(
            self.noise in ("staircase", "laplace"),
            f"noise={self.noise!r}: must be 'staircase' or 'laplace'",
        )
        if self.latency is None:
            require(
                self.delta is None,
                f"delta={self.delta}: must be left out without a latency; a series released whole "
                "needs none",
            )
            return
        require_steps("latency", self.latency, 2, MAX_LATENCY_STEPS)
        if self.delta is None:
            object.__setattr__(self, "delta", 1e-6)
        assert self.delta is not None
        require(
            isinstance(self.delta, (int, float)) and 0 < self.delta < 1,
            f"delta={self.delta}: must be between 0 and 1, such as 1e-6",
        )
        require(
            self._uncut.pmf(0) / masses(self._uncut, self.latency // 2)[0] >= MIN_KEPT_MASS,
            f"latency={self.latency}: leaves next to nothing of the noise at "
            f"epsilon={self.epsilon:g}; give a greater latency or epsilon, or a smaller window",
        )
        cost = delta_at(self.epsilon, self.window, self.noise, self.latency)
        if cost > self.delta:
            least = least_latency(self.epsilon, self.window, self.delta, self.noise)
            raise UsageError(
                f"latency={self.latency}: cuts off so much noise that delta would be {cost:.3g}, "
                f"above {self.delta:g}; latency={least} would do at epsilon={self.epsilon:g} and "
                f"window={self.window}"
            )

    @property
    def takes_whole(self) -> bool:
        return self.latency is None

    @property
    def bounded_memory(self) -> bool:
        return self.latency is not None

    @property
    def memory_size(self) -> int:
        return 0 if self.latency is None else 1 + 3 * (self.latency + 1)

    @property
    def unit(self) -> Swap:
        """What is protected."""
        return Swap(self.window)

    @property
    def domain(self) -> OpaqueRows:
        latency = self.latency or 0
        return OpaqueRows(2 * latency, latency)

    def known_origins(self) -> list[str]:
        if self.latency is None:
            return []
        steps = f"{self.latency} time steps"
        return [f"that each value was read at most {steps} from where it is shown"]

    def move_distribution(self) -> tuple[Integers, Floats]:
        # far more than the share of the noise that is shown
        reach = int(min(12 * self.errors[0] + self.window, 1 << 22))
        half = masses(self._uncut, reach if self.latency is None else self.latency // 2)
        inside = half[0] + 2 * np.cumsum(half[1:])
        reach = int(np.searchsorted(inside, 0.995)) + 1
        return np.arange(-reach, reach + 1), np.append(half[reach:0:-1], half[: reach + 1])

    @property
    def _uncut(self) -> KeyDistribution:
        return key_distribution(self.epsilon, self.window, self.noise)

    @property
    def distribution(self) -> KeyDistribution | WindowDistribution:
        """The noise on a reading's time."""
        if self.latency is None:
            return self._uncut
        return WindowDistribution(self._uncut, self.latency // 2)

    @property
    def errors(self) -> tuple[float, ...]:
        if self.latency is not None:
            mass = masses(self._uncut, self.latency // 2)
            return (float(2 * (mass * np.arange(len(mass))).sum()),)
        if isinstance(self._uncut, distributions.DiscreteLaplace):
            return (self._uncut.mean_magnitude,)
        return (staircase(self.epsilon, self.window)[1],)

    @property
    def guarantee(self) -> Guarantee:
        if self.latency is None:
            return Guarantee(Pure(self.epsilon), self.unit)
        delta = delta_at(self.epsilon, self.window, self.noise, self.latency)
        return Guarantee(Approximate(self.epsilon, delta), self.unit)

    @property
    def delta_reason(self) -> str | None:
        if self.latency is None:
            return None
        return (
            f"a row must be out after {self.latency} steps, so the noise on its time is cut, and "
            "the largest noise shows the order; delta bounds the probability of that"
        )

    def expected_shares(self) -> shares.Shares:
        require(
            self.latency is not None,
            "latency=None: the series is released when it has ended, so its delay is that of its "
            "length; give a latency",
        )
        return shares.noisy_order(self.latency or 0)

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings ``distance`` apart that trade places."""
        epsilon = loss.noisy_order(self.epsilon, self.window, distance, self.noise)
        if self.latency is None:
            return Approximate(epsilon, 0.0)
        mass = masses(self._uncut, self.latency // 2)
        delta = loss.cut_noise(mass, distance) + TIE_DELTA
        return Approximate(epsilon, min(delta, 1.0))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        there = np.flatnonzero(~state.missing[:, 0])
        keys, ties = np.zeros((2, len(state.missing)), dtype=np.int64)
        keys[there] = noise(self.distribution, "key", there)
        ties[there] = noise(TieDistribution(), "tie", there)
        ages = np.empty((len(keys), 1), dtype=np.int64)
        if self.latency is not None:
            slots = Slots(state.counts, state.starts, state.memory, ages[:, 0])
            by_key(slots, state.missing[:, 0], self.latency, keys, ties)
            return ages
        columns = [ties, state.steps + keys, state.which]
        order = np.lexsort(columns)
        while _alike(columns, order):
            # two rows agree to the last of their random bits: more bits for all
            more = noise(TieDistribution(), f"tie {len(columns)}", there)
            columns = [more, *columns]
            order = np.lexsort(columns)
        # everything comes out with the last row
        ages[:, 0] = np.repeat(state.counts - 1, state.counts) - state.steps[order]
        return ages

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether the rows waiting in ``memory`` are as many as at a ``step``, and recent."""
        if self.latency is None:
            return True
        waiting = min(step, self.latency)
        if memory[0] != waiting:
            return False
        steps = memory[1 + 2 * (self.latency + 1) :][:waiting]
        held = (steps >= max(0, step - 2 * self.latency)) & (steps < step)
        return bool(held.all()) and len(np.unique(steps)) == waiting


def _alike(columns: list[Integers], order: Integers) -> bool:
    """Whether any two rows cannot be told apart by any column."""
    return bool(np.all([np.diff(column[order]) == 0 for column in columns], axis=0).any())
