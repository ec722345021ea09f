"""Orders that hide a swap: shuffled blocks, and rows sorted by noisy times."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv import noise
from tempriv.errors import UsageRefusal, require
from tempriv.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.kernels_order import by_key, shuffle
from tempriv.mechanisms import order_losses, order_theory
from tempriv.mechanisms.forms import Floats, Integers, Rows, positive
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.stream import start
from tempriv.order_laws import Ties, Within
from tempriv.units import BlockSwap, Swap

MOST_BLOCK = 1 << 16
MOST_LATENCY = 1 << 17
LEAST_MASS = 0.01  # of the noise, that its cutting must leave: what is outside is drawn again
SAME_TIE = 2.0**-50
"""Far above the chance that rows near a swapped one get the same 63 random bits."""


def whole(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{name}={value}: must be a whole number of time steps >= {least}",
    )
    require(value <= most, f"{name}={value}: must be at most {most} time steps")


@dataclass(frozen=True, kw_only=True)
class BlockShuffle:
    """Shuffles the readings of each block of ``block`` steps, mildly or wholly as epsilon says.

    A permutation is as likely as e^(epsilon cycles), the law of Ewens. Exchanging two readings
    adds or removes one cycle, so it changes the probability of every output by e^epsilon exactly.

    Guarantees:
        - pure epsilon for any two readings of one block that trade places, whatever is known;
        - every reading comes out once, unchanged, and no slot is empty.

    Readings of two blocks are not covered. Blocks begin at step ``offset``, which is public; drawn
    at random and published, any two readings d steps apart are covered but with probability
    d / block (``anywhere``).

    >>> hourly = BlockShuffle(epsilon=1.0, block=24)
    >>> hourly.guarantee.loss, hourly.latency, round(hourly.stays, 3)
    (Pure(epsilon=1.0), 23, 0.106)
    """

    epsilon: float
    block: int
    offset: int = 0

    causal: ClassVar[bool] = False
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean distance in time steps between a reading and its slot"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("block", self.block, 2, MOST_BLOCK)
        whole("offset", self.offset, 0, self.block - 1)

    @property
    def slots(self) -> int:
        return 2 * self.block

    @property
    def latency(self) -> int:
        """How many steps after its slot's own time a row comes out, as a stream."""
        return self.block - 1

    @property
    def unit(self) -> BlockSwap:
        return BlockSwap(self.block, self.offset)

    @property
    def form(self) -> Rows:
        return Rows(2 * self.block - 2, self.latency)

    @property
    def stays(self) -> float:
        """The probability that a reading keeps its slot; no order that hides a swap has more."""
        return 1 / (1 + (self.block - 1) * math.exp(-self.epsilon))

    @property
    def errors(self) -> tuple[float, ...]:
        # a reading that moves is as likely in any other slot: the mean of |i - j| over i != j
        return ((1 - self.stays) * (self.block + 1) / 3,)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="None as a privacy mechanism: the law of permutations by their number of cycles "
            "is Ewens', its use here is our own",
            source="Ewens 1972",
            holds=True,
            remark="The loss is epsilon for every output, as enumeration of small blocks shows.",
        )

    def loss_at(self, distance: int) -> Approximate:
        """For readings so many steps apart, the worst place for them: past any distance in a block.

        Two neighbours may stand in two blocks, and then nothing hides that they traded places.
        """
        return order_losses.block_shuffle(self.epsilon, self.block, distance, same_block=False)

    def anywhere(self, distance: int) -> Approximate:
        """For readings so many steps apart if ``offset`` was drawn at random and published."""
        return order_losses.random_offset(self.epsilon, self.block, distance)

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        steps, absent = track.steps, track.missing[:, 0]
        numbers = np.where(steps < self.offset, steps, (steps - self.offset) % self.block)
        cycles = np.zeros(len(steps), dtype=np.int64)
        numbers[absent] = 0
        for number in np.unique(numbers[numbers > 0]).tolist():
            rows = np.flatnonzero(numbers == number)
            law = noise.RandomisedResponse(Fraction(self.epsilon), number + 1)
            cycles[rows] = draw(law, "cycle", rows)
        ages = np.empty((len(steps), 1), dtype=np.int64)
        shuffle(
            track.counts, track.starts, absent, self.block, self.offset, cycles,
            track.memory, ages[:, 0],
        )  # fmt: skip
        return ages

    def could_remember(self, memory: Integers, step: int) -> bool:
        return bool(((memory >= 0) & (memory < self.block)).all())

    start = start


@functools.lru_cache(maxsize=64)
def staircase(epsilon: float, window: int) -> tuple[noise.Staircase, float]:
    """Odds of e^(epsilon/2) over shifts of up to window - 1, and its mean magnitude, the least."""
    rate, width = Fraction(epsilon) / 2, window - 1
    ratio, fall = math.exp(-rate), -math.expm1(-rate)
    inner = np.arange(1, width + 1)
    # per step of the staircase: its weight, and the sum of weight times place
    weight = inner + (width - inner) * ratio
    first = inner * (inner - 1) / 2
    place = first + ratio * (width * (width - 1) / 2 - first)
    magnitude = 2 * (place + width * weight * ratio / fall) / (2 * weight - fall)
    best = int(np.argmin(magnitude))
    return noise.Staircase(rate, width, int(inner[best])), float(magnitude[best])


def key_law(epsilon: float, window: int, kind: str) -> Any:
    """The noise of one key: at most e^(epsilon/2) between two times less than a window apart."""
    if kind == "laplace":
        return noise.DiscreteLaplace(2 * (window - 1) / Fraction(epsilon))
    return staircase(epsilon, window)[0]


def masses(law: Any, reach: int) -> Floats:
    """The probabilities of 0, 1 .. reach of a law that is symmetric about zero, cut off there."""
    far = np.arange(reach + 1)
    if isinstance(law, noise.DiscreteLaplace):
        weights = np.exp(-far / float(law.scale))
    else:
        steps, place = np.divmod(far, law.width)
        weights = np.exp(-float(law.epsilon) * (steps + (place >= law.inner)))
    return np.asarray(weights / (2 * weights.sum() - weights[0]))


def delta_at(epsilon: float, window: int, kind: str, latency: int) -> float:
    """For the widest swap: both keys' noise may give away on which side it was cut."""
    mass = masses(key_law(epsilon, window, kind), latency // 2)
    return order_losses.cut_noise(mass, window - 1) + SAME_TIE


@functools.lru_cache(maxsize=512)
def least_latency(epsilon: float, window: int, delta: float, kind: str = "staircase") -> int:
    """The least latency with which NoisyOrder keeps delta.

    >>> least_latency(1.0, 10, 1e-6)
    482
    """
    low, high = 2, 2
    while delta_at(epsilon, window, kind, high) > delta:
        low, high = high, 2 * high
        require(
            high <= MOST_LATENCY,
            f"epsilon={epsilon:g}: no latency keeps delta at {delta:g} with a window of {window}; "
            "give a greater delta or epsilon, or a smaller window",
        )
    while high - low > 2:
        middle = (low + high) // 4 * 2
        reached = delta_at(epsilon, window, kind, middle) <= delta
        low, high = (low, middle) if reached else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class NoisyOrder:
    """Puts the rows of a series into the order of their times with noise on them.

    Noise is drawn so that two times less than ``window`` steps apart are told apart by e^epsilon/2
    at most; the rest is sorting, which nobody's secret enters. Equal noisy times are put in a
    random order.

    Guarantees:
        - pure epsilon for any two readings less than ``window`` steps apart that trade places, if
          the series is released whole (``latency`` left out);
        - with ``latency``, a stream: the noise is cut at half of it, and the promise is
          (epsilon, delta) with the delta that this costs, at most the one asked for;
        - every reading comes out once, unchanged, and no slot is empty.

    ``noise`` is "staircase", which moves readings least, or "laplace", whose loss shrinks with the
    distance of the readings.

    >>> whole = NoisyOrder(epsilon=1.0, window=10)
    >>> whole.guarantee.loss
    Pure(epsilon=1.0)
    >>> stream = NoisyOrder(epsilon=4.0, window=4, latency=60, delta=1e-5)
    >>> stream.guarantee.loss.delta < 1e-5
    True
    """

    epsilon: float
    window: int
    latency: int | None = None
    delta: float | None = None
    noise: str = "staircase"

    causal: ClassVar[bool] = False
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean magnitude in time steps of the noise on a reading's time"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        order_theory.require_window(self.window, 2, MOST_LATENCY)
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
        whole("latency", self.latency, 2, MOST_LATENCY)
        if self.delta is None:
            object.__setattr__(self, "delta", 1e-6)
        assert self.delta is not None
        require(
            isinstance(self.delta, (int, float)) and 0 < self.delta < 1,
            f"delta={self.delta}: must be between 0 and 1, such as 1e-6",
        )
        law, reach = key_law(self.epsilon, self.window, self.noise), self.latency // 2
        require(
            law.pmf(0) / masses(law, reach)[0] >= LEAST_MASS,
            f"latency={self.latency}: leaves next to nothing of the noise at "
            f"epsilon={self.epsilon:g}; give a greater latency or epsilon, or a smaller window",
        )
        found = delta_at(self.epsilon, self.window, self.noise, self.latency)
        if found > self.delta:
            least = least_latency(self.epsilon, self.window, self.delta, self.noise)
            raise UsageRefusal(
                f"latency={self.latency}: cuts off so much noise that delta would be {found:.3g}, "
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
    def slots(self) -> int:
        return 0 if self.latency is None else 1 + 3 * (self.latency + 1)

    @property
    def unit(self) -> Swap:
        return Swap(self.window)

    @property
    def form(self) -> Rows:
        latency = self.latency or 0
        return Rows(2 * latency, latency)

    @property
    def law(self) -> Any:
        """The noise on a reading's time."""
        full = key_law(self.epsilon, self.window, self.noise)
        return full if self.latency is None else Within(full, self.latency // 2)

    @property
    def errors(self) -> tuple[float, ...]:
        law = key_law(self.epsilon, self.window, self.noise)
        if self.latency is not None:
            mass = masses(law, self.latency // 2)
            return (float(2 * (mass * np.arange(len(mass))).sum()),)
        if isinstance(law, noise.DiscreteLaplace):
            return (law.mean_magnitude,)
        return (staircase(self.epsilon, self.window)[1],)

    @property
    def guarantee(self) -> Guarantee:
        if self.latency is None:
            return Guarantee(Pure(self.epsilon), self.unit)
        delta = delta_at(self.epsilon, self.window, self.noise, self.latency)
        return Guarantee(Approximate(self.epsilon, delta), self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="None for orders: the staircase law has the least noise for its odds, its use on "
            "times is our own",
            source="Geng and Viswanath 2014",
            holds=True,
            remark="Two readings that trade places move two keys by less than a window, each of "
            "them worth epsilon/2.",
        )

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings so many steps apart that trade places."""
        epsilon = order_losses.noisy_order(self.epsilon, self.window, distance, self.noise)
        if self.latency is None:
            return Approximate(epsilon, 0.0)
        mass = masses(key_law(self.epsilon, self.window, self.noise), self.latency // 2)
        delta = order_losses.cut_noise(mass, distance) + SAME_TIE
        return Approximate(epsilon, min(delta, 1.0))

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        there = np.flatnonzero(~track.missing[:, 0])
        keys, ties = np.zeros((2, len(track.missing)), dtype=np.int64)
        keys[there] = draw(self.law, "key", there)
        ties[there] = draw(Ties(), "tie", there)
        ages = np.empty((len(keys), 1), dtype=np.int64)
        if self.latency is not None:
            by_key(
                track.counts, track.starts, track.missing[:, 0], self.latency, keys, ties,
                track.memory, ages[:, 0],
            )  # fmt: skip
            return ages
        columns = [ties, track.steps + keys, track.which]
        order = np.lexsort(columns)
        while _alike(columns, order):
            # two rows agree to the last of their random bits: more bits for all
            more = draw(Ties(), f"tie {len(columns)}", there)
            columns = [more, *columns]
            order = np.lexsort(columns)
        # everything comes out with the last row
        ages[:, 0] = np.repeat(track.counts - 1, track.counts) - track.steps[order]
        return ages

    def could_remember(self, memory: Integers, step: int) -> bool:
        if self.latency is None:
            return True
        waiting = min(step, self.latency)
        if memory[0] != waiting:
            return False
        steps = memory[1 + 2 * (self.latency + 1) :][:waiting]
        held = (steps >= max(0, step - 2 * self.latency)) & (steps < step)
        return bool(held.all()) and len(np.unique(steps)) == waiting

    start = start


def _alike(columns: list[Integers], order: Integers) -> bool:
    """Whether any two rows cannot be told apart by any column."""
    return bool(np.all([np.diff(column[order]) == 0 for column in columns], axis=0).any())
