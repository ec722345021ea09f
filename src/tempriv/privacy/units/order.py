"""What is protected when readings keep their values and trade their places in time."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.errors import require
from tempriv.privacy.units.base import Example, Pair, Relation, Unit, require_whole

MAX_AUDITED_SLOTS = 256  # of a series of which one slot is looked at
MAX_DISTINCT_READINGS = 8  # in longer series only those that trade places differ


def _swap(example: Example, i: int, j: int) -> Example:
    changed = list(example)
    changed[i], changed[j] = example[j], example[i]
    return tuple(changed)


def _swapped(example: Example, other: Example, changed: Sequence[int]) -> tuple[int, int] | None:
    """The two places that differ, if their readings are exchanged and nothing else is."""
    if len(changed) != 2:
        return None
    i, j = changed
    return (i, j) if example[i] == other[j] and example[j] == other[i] else None


class OrderUnit(Unit):
    """Two readings of one series trade places; their values are published as they are."""

    relation: ClassVar[Relation] = "swap"
    beyond: ClassVar[str] = "values are published as they are"
    about_order: ClassVar[bool] = True

    @property
    def readings(self) -> int:
        return 2

    def of_series(self, length: int) -> None:
        """None for any ``length``: readings are published as they are."""

    @property
    def span(self) -> int:
        """The largest distance of two readings that trade places, in steps."""
        return self.width - 1

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Within how many consecutive steps two readings may trade places."""

    def _trade(self, i: int, j: int) -> bool:
        """Whether readings at two places, not further apart than the span, may trade them."""
        return True

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for i in range(len(example)):
            for j in range(i + 1, min(i + self.span, len(example) - 1) + 1):
                if self._trade(i, j):
                    yield _swap(example, i, j)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        places = _swapped(example, other, changed)
        return not changed or (
            places is not None and places[1] - places[0] <= self.span and self._trade(*places)
        )

    def _audited_places(self, length: int) -> list[tuple[int, int]]:
        """Places to trade in an audit: far apart, side by side, and in between."""
        last = length - 1
        far = min(self.span, last)
        first = (last - far) // 2
        return [(first, first + far), (last // 2, last // 2 + 1), (0, 1), (0, far)]

    def worst_pairs(self, extremes: Sequence[Hashable], length: int) -> list[Pair]:
        """Series of that ``length`` in which two readings trade places.

        Readings are numbers that differ: what the ``extremes`` are does not matter.
        """
        pairs = []
        for i, j in dict.fromkeys(self._audited_places(length)):
            if 0 <= i < j < length:
                example: Example = tuple(range(length))
                if length > MAX_DISTINCT_READINGS or self.single_rows:
                    example = tuple({i: 1, j: 2}.get(place, 0) for place in range(length))
                pairs.append((example, _swap(example, i, j)))
        pairs = [pair for pair in pairs if self.are_neighbors(*pair)]
        require(bool(pairs), f"{length} readings: too few for two of them to trade places")
        return pairs


class WindowUnit(OrderUnit):
    """The two lie within ``window`` consecutive steps, at least 2."""

    window: int

    def __post_init__(self) -> None:
        require_whole("window", self.window, 2, "time steps")

    @property
    def width(self) -> int:
        return self.window


@dataclass(frozen=True)
class Swap(WindowUnit):
    """Two readings of one released series, less than ``window`` steps apart, trade places.

    Parameters:
        window: within how many consecutive steps, at least 2.

    >>> list(Swap(2).neighbors((1, 2, 3), alphabet=()))
    [(2, 1, 3), (1, 3, 2)]
    """

    window: int

    @property
    def sentence(self) -> str:
        if self.span == 1:
            return "whether any two readings next to each other traded places"
        return f"whether any two readings up to {self.span} time steps apart traded places"

    def _factor_to_same(self, to: Swap) -> int | None:
        return self._factor_to(to)

    def _factor_to(self, to: Unit) -> int | None:
        if not to.about_order or to.reach is None:
            return None  # a value may be replaced by one that is nowhere near
        # there by short swaps, and back again for what was carried along
        return 2 * -(-to.reach // self.span) - 1

    def audit_lengths(self, most: int) -> range:
        """A window, and one reading more, up to ``most`` readings."""
        return range(min(self.window, most - 1), min(self.window + 1, most) + 1)


@dataclass(frozen=True)
class BlockSwap(OrderUnit):
    """Two readings of one block of ``block`` steps trade places; blocks begin at ``offset``.

    Readings of different blocks are not covered, however near they are. Steps before ``offset``
    are a block of their own.

    Parameters:
        block: how many steps a block has, at least 2.
        offset: the step at which the first whole block begins, below ``block``.

    >>> list(BlockSwap(2).neighbors((1, 2, 3), alphabet=()))
    [(2, 1, 3)]
    """

    block: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_whole("block", self.block, 2, "time steps")
        require_whole("offset", self.offset, 0, "time steps")
        require(self.offset < self.block, f"offset={self.offset}: must be below {self.block}")

    @property
    def width(self) -> int:
        return self.block

    @property
    def blocks(self) -> tuple[int, int]:
        return self.block, self.offset

    @property
    def sentence(self) -> str:
        steps = f"{self.block} time steps" + (f" (the first: {self.offset})" if self.offset else "")
        return f"whether any two readings of one block of {steps} traded places"

    def _trade(self, i: int, j: int) -> bool:
        return (i - self.offset) // self.block == (j - self.offset) // self.block

    def _factor_to_same(self, to: BlockSwap) -> int | None:
        """Whether each block of the other lies within one of these: no swap leaves a block."""
        aligned = (to.offset - self.offset) % to.block == 0
        return 1 if self.block % to.block == 0 and aligned else None

    def audit_lengths(self, most: int) -> range:
        """Blocks of any length, up to ``most`` readings: one that ends early is like any other."""
        return range(self.offset + 2, min(self.offset + self.block, most) + 1)

    def _audited_places(self, length: int) -> list[tuple[int, int]]:
        begin = self.offset if length - 1 > self.offset else 0
        end = min(begin + self.block, length) - 1
        middle = (begin + end) // 2
        return [(begin, end), (middle, middle + 1), (begin, begin + 1), (begin, middle)]


@dataclass(frozen=True)
class SlotOrigin(WindowUnit):
    """From which of the last ``window`` steps the row in one output slot came.

    Far weaker than ``Swap``: it compares two origins as someone does who looks at the values in a
    single row of the output and at nothing else, not even whether it is said to be repeated.
    Several rows together may tell the origin for certain.

    Parameters:
        window: how many steps a row may have come from, at least 2.

    >>> unit = SlotOrigin(3)
    >>> [unit.slots((1, 2, 3), other) for other in unit.neighbors((1, 2, 3), alphabet=())]
    [[1, 2], [2], [2]]
    """

    single_rows: ClassVar[bool] = True

    window: int

    @property
    def sentence(self) -> str:
        return (
            "whether the values in any one output row, seen by themselves, came from one or "
            f"another of the last {self.window} time steps"
        )

    def _factor_to_same(self, to: SlotOrigin) -> int | None:
        return 1 if to.window <= self.window else None

    def slots(self, example: Example, other: Example) -> list[int]:
        """The slots in which a reading from either of the two places can stand.

        Parameters:
            example: an input.
            other: its neighbor.
        """
        if len(example) != len(other):
            return []
        changed = [i for i, (a, b) in enumerate(zip(example, other, strict=True)) if a != b]
        places = _swapped(example, other, changed)
        if places is None:
            return []
        return list(range(places[1], min(places[0] + self.window, len(example))))

    def audit_lengths(self, most: int) -> range:
        """As many readings as the last slot can have come from, also if more than ``most``."""
        length = min(self.window, MAX_AUDITED_SLOTS)
        return range(length, length + 1)

    def _audited_places(self, length: int) -> list[tuple[int, int]]:
        last = length - 1
        far = min(self.span, last)
        return [(last - b, last - a) for a, b in ((0, far), (0, 1), (1, far), (0, far // 2))]
