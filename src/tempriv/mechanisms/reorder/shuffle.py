"""Rows shuffled within blocks of time steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tempriv.errors import UsageError, require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, OpaqueRows, positive
from tempriv.mechanisms.options import option
from tempriv.mechanisms.reorder import loss, shares
from tempriv.mechanisms.reorder._kernels import Slots, shuffle
from tempriv.mechanisms.reorder.base import ON_TIMES, ReorderMechanism
from tempriv.privacy.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.privacy.units.order import BlockSwap
from tempriv.sampling import distributions

MAX_BLOCK_STEPS = 1 << 16


def require_steps(name: str, value: object, least: int, most: int) -> None:
    """Refuse what is no number of time steps, or out of range.

    Parameters:
        name: of the field.
        value: what it holds.
        least: the least that it may be.
        most: the most.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}={value}: must be a whole number of time steps >= {least}")
    require(value <= most, f"{name}={value}: must be at most {most} time steps")


@dataclass(frozen=True, kw_only=True)
class BlockShuffle(ReorderMechanism):
    """Shuffles the readings of each block of ``block`` steps, mildly or wholly as epsilon says.

    A permutation is as likely as e^(epsilon cycles), the law of Ewens. Exchanging two readings
    adds or removes one cycle, so it changes the probability of every output by e^epsilon exactly.

    Parameters:
        epsilon: the budget for two readings of a block that trade places.
        block: the time steps of a block.
        offset: the time step, from 0, at which blocks begin.

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

    block: int = option(
        "--block",
        "Time steps in a block, shuffled with each other.",
        type=int,
    )
    offset: int = option(
        "--offset",
        "The step, from 0, at which blocks begin.",
        default=0,
        type=int,
    )

    command = CommandLine(
        name="block-shuffle",
        hides="order",
        purpose="exact rows, shuffled within hours or days; hides any exchange inside a block",
        example="--epsilon 1 --block 24 --value pulse",
        units=(),
        on_times=ON_TIMES,
        rank=18,
    )
    published = Published(
        claim="None as a privacy mechanism: the law of permutations by their number of cycles "
        "is Ewens', its use here is our own",
        source="Ewens 1972",
        holds=True,
        remark="The loss is epsilon for every output, as enumeration of small blocks shows.",
    )

    error_name: ClassVar[str] = "mean distance in time steps between a reading and its slot"
    moves_both_ways: ClassVar[bool] = True
    move_name: ClassVar[str] = "moved by"
    move_title: ClassVar[str] = "How many rows readings are moved"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require_steps("block", self.block, 2, MAX_BLOCK_STEPS)
        require_steps("offset", self.offset, 0, self.block - 1)

    @property
    def memory_size(self) -> int:
        return 2 * self.block

    @property
    def latency(self) -> int:
        """How many steps after its slot's own time a row comes out, as a stream."""
        return self.block - 1

    @property
    def unit(self) -> BlockSwap:
        """What is protected."""
        return BlockSwap(self.block, self.offset)

    @property
    def domain(self) -> OpaqueRows:
        return OpaqueRows(2 * self.block - 2, self.latency)

    @property
    def done(self) -> str:
        return f"the readings in each block of {self.block} rows were put into a random order"

    def known_origins(self) -> list[str]:
        return [f"in which block of {self.block} time steps each value was read"]

    def move_distribution(self) -> tuple[Integers, Floats]:
        far = np.arange(1 - self.block, self.block)
        each = (1 - self.stays) / (self.block - 1)  # any other slot of the block
        moved = each * (self.block - np.abs(far)) / self.block
        return far, np.where(far == 0, self.stays, moved)

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

    def expected_shares(self) -> shares.Shares:
        return shares.block_shuffle(self.block)

    def loss_at(self, distance: int) -> Approximate:
        """For the worst place of two readings: two blocks, where nothing hides that they traded.

        Parameters:
            distance: how many steps they are apart.
        """
        return loss.block_shuffle(self.epsilon, self.block, distance, same_block=False)

    def anywhere(self, distance: int) -> Approximate:
        """What the whole output tells if ``offset`` was drawn at random and published.

        Parameters:
            distance: how many steps the two readings are apart.
        """
        return loss.random_offset(self.epsilon, self.block, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        steps, absent = state.steps, state.missing[:, 0]
        numbers = np.where(steps < self.offset, steps, (steps - self.offset) % self.block)
        cycles = np.zeros(len(steps), dtype=np.int64)
        numbers[absent] = 0
        for number in np.unique(numbers[numbers > 0]).tolist():
            rows = np.flatnonzero(numbers == number)
            joins = distributions.CategoryFlip(Fraction(self.epsilon), number + 1)
            cycles[rows] = noise(joins, "cycle", rows)
        ages = np.empty((len(steps), 1), dtype=np.int64)
        slots = Slots(state.counts, state.starts, state.memory, ages[:, 0])
        shuffle(slots, absent, self.block, self.offset, cycles)
        return ages

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether ``memory`` holds numbers of rows in a block, whatever the ``step``."""
        return bool(((memory >= 0) & (memory < self.block)).all())
