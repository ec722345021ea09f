"""Rows shuffled within blocks of time steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, OpaqueRows, positive
from tempriv.mechanisms.options import option
from tempriv.mechanisms.reorder import loss, shares
from tempriv.mechanisms.reorder._kernels import shuffle
from tempriv.mechanisms.reorder.base import ReorderMechanism
from tempriv.privacy.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.privacy.units.order import BlockSwap
from tempriv.sampling import distributions

MOST_BLOCK = 1 << 16
ALL_ONCE = "Every reading came out once, and no row is empty."


def whole(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{name}={value}: must be a whole number of time steps >= {least}",
    )
    require(value <= most, f"{name}={value}: must be at most {most} time steps")


@dataclass(frozen=True, kw_only=True)
class BlockShuffle(ReorderMechanism):
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
        on_times="moves readings in time and keeps their values as they are",
        rank=18,
    )

    causal: ClassVar[bool] = False
    error_name: ClassVar[str] = "mean distance in time steps between a reading and its slot"
    moves_both_ways: ClassVar[bool] = True
    move_name: ClassVar[str] = "moved by"
    move_title: ClassVar[str] = "How many rows readings are moved"
    fate: ClassVar[str] = ALL_ONCE
    empty_rows: ClassVar[tuple[int, int]] = (0, 0)

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("block", self.block, 2, MOST_BLOCK)
        whole("offset", self.offset, 0, self.block - 1)

    @property
    def memory_size(self) -> int:
        return 2 * self.block

    @property
    def latency(self) -> int:
        """How many steps after its slot's own time a row comes out, as a stream."""
        return self.block - 1

    @property
    def unit(self) -> BlockSwap:
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

    @property
    def published(self) -> Published:
        return Published(
            claim="None as a privacy mechanism: the law of permutations by their number of cycles "
            "is Ewens', its use here is our own",
            source="Ewens 1972",
            holds=True,
            remark="The loss is epsilon for every output, as enumeration of small blocks shows.",
        )

    def expected_shares(self) -> shares.Shares:
        """What to expect of a reading in the middle of a long stream."""
        return shares.block_shuffle(self.block)

    def loss_at(self, distance: int) -> Approximate:
        """For readings so many steps apart, the worst place for them: past any distance in a block.

        Two neighbors may stand in two blocks, and then nothing hides that they traded places.
        """
        return loss.block_shuffle(self.epsilon, self.block, distance, same_block=False)

    def anywhere(self, distance: int) -> Approximate:
        """For readings so many steps apart if ``offset`` was drawn at random and published."""
        return loss.random_offset(self.epsilon, self.block, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        steps, absent = state.steps, state.missing[:, 0]
        numbers = np.where(steps < self.offset, steps, (steps - self.offset) % self.block)
        cycles = np.zeros(len(steps), dtype=np.int64)
        numbers[absent] = 0
        for number in np.unique(numbers[numbers > 0]).tolist():
            rows = np.flatnonzero(numbers == number)
            law = distributions.CategoryFlip(Fraction(self.epsilon), number + 1)
            cycles[rows] = noise(law, "cycle", rows)
        ages = np.empty((len(steps), 1), dtype=np.int64)
        shuffle(
            state.counts,
            state.starts,
            absent,
            self.block,
            self.offset,
            cycles,
            state.memory,
            ages[:, 0],
        )
        return ages

    def could_remember(self, memory: Integers, step: int) -> bool:
        return bool(((memory >= 0) & (memory < self.block)).all())
