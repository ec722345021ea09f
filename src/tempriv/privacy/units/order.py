"""What is protected when readings keep their values and trade their places in time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tempriv.errors import require

Example = tuple[Any, ...]


def _swaps(example: Example, furthest: int) -> Iterator[tuple[int, int, Example]]:
    """The example with two unlike readings exchanged, at most so many steps apart."""
    for i in range(len(example)):
        for j in range(i + 1, min(i + furthest, len(example) - 1) + 1):
            if example[i] != example[j]:
                changed = list(example)
                changed[i], changed[j] = example[j], example[i]
                yield i, j, tuple(changed)


def _exchanged(one: Example, other: Example) -> tuple[int, int] | None:
    """The two places that differ, if their readings are exchanged and nothing else is."""
    if len(one) != len(other):
        return None
    changed = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(changed) != 2:
        return None
    i, j = changed
    return (i, j) if one[i] == other[j] and one[j] == other[i] else None


def _whole(name: str, value: Any, least: int) -> None:
    require(
        isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"{name}={value}: must be a whole number of time steps >= {least}",
    )


@dataclass(frozen=True)
class Swap:
    """Two readings of one released series, less than ``window`` steps apart, trade places.

    >>> list(Swap(2).neighbors((1, 2, 3), alphabet=()))
    [(2, 1, 3), (1, 3, 2)]
    """

    window: int

    def __post_init__(self) -> None:
        _whole("window", self.window, 2)

    @property
    def readings(self) -> int:
        return 2

    @property
    def span(self) -> int:
        """The largest distance of two readings that trade places."""
        return self.window - 1

    @property
    def sentence(self) -> str:
        if self.span == 1:
            return "whether any two readings next to each other traded places"
        return f"whether any two readings up to {self.span} time steps apart traded places"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        for _, _, other in _swaps(example, self.span):
            yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        places = _exchanged(one, other)
        return one == other or (places is not None and places[1] - places[0] <= self.span)


@dataclass(frozen=True)
class BlockSwap:
    """Two readings of one block of ``block`` steps trade places; blocks begin at ``offset``.

    Readings of different blocks are not covered, however near they are. Steps before ``offset``
    are a block of their own.

    >>> list(BlockSwap(2).neighbors((1, 2, 3), alphabet=()))
    [(2, 1, 3)]
    """

    block: int
    offset: int = 0

    def __post_init__(self) -> None:
        _whole("block", self.block, 2)
        _whole("offset", self.offset, 0)
        require(self.offset < self.block, f"offset={self.offset}: must be below {self.block}")

    @property
    def readings(self) -> int:
        return 2

    @property
    def span(self) -> int:
        return self.block - 1

    @property
    def sentence(self) -> str:
        steps = f"{self.block} time steps" + (f" (the first: {self.offset})" if self.offset else "")
        return f"whether any two readings of one block of {steps} traded places"

    def _block(self, place: int) -> int:
        return (place - self.offset) // self.block

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        for i, j, other in _swaps(example, self.span):
            if self._block(i) == self._block(j):
                yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        places = _exchanged(one, other)
        return one == other or (
            places is not None and self._block(places[0]) == self._block(places[1])
        )

    def covers(self, other: BlockSwap) -> bool:
        """Whether each block of the other lies within one of these."""
        apart = (other.offset - self.offset) % other.block
        return self.block % other.block == 0 and apart == 0


@dataclass(frozen=True)
class SlotOrigin:
    """From which of the last ``window`` steps the row in one output slot came.

    Far weaker than ``Swap``: it compares two origins as someone does who looks at the values in a
    single row of the output and at nothing else, not even whether it is said to be repeated.
    Several rows together may tell the origin for certain.

    >>> unit = SlotOrigin(3)
    >>> [unit.slots((1, 2, 3), other) for other in unit.neighbors((1, 2, 3), alphabet=())]
    [[1, 2], [2], [2]]
    """

    window: int

    def __post_init__(self) -> None:
        _whole("window", self.window, 2)

    @property
    def readings(self) -> int:
        return 2

    @property
    def span(self) -> int:
        return self.window - 1

    @property
    def sentence(self) -> str:
        return (
            "whether the values in any one output row, seen by themselves, came from one or "
            f"another of the last {self.window} time steps"
        )

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        return Swap(self.window).neighbors(example, alphabet)

    def are_neighbors(self, one: Example, other: Example) -> bool:
        return Swap(self.window).are_neighbors(one, other)

    def slots(self, one: Example, other: Example) -> list[int]:
        """The slots in which a reading from either of the two places can stand."""
        places = _exchanged(one, other)
        if places is None:
            return []
        return list(range(places[1], min(places[0] + self.window, len(one))))


ORDER = (Swap, BlockSwap, SlotOrigin)
