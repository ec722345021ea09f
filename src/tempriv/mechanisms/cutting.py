"""Blocks cut as a mechanism can take them: no series in pieces, or not too many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tempriv.mechanisms.stream import joined
from tempriv.series import Block

MOST_MEMORY = 1 << 22
"""How many numbers may be remembered at a time, of the series of a block together."""


def whole_series(blocks: Iterable[Block]) -> Iterator[Block]:
    """No series cut between two blocks, for mechanisms that need all of it."""
    held: list[Block] = []
    for block in blocks:
        if not block.ids:
            continue
        name, width = block.ids[0], block.values.shape[1]
        goes_on = bool(held) and held[0].ids[0] == name
        if held and not goes_on:
            yield joined(held, held[0].ids[0], width)
            held = []
        first, last = (1 if goes_on else 0), len(block.ids) - 1
        if goes_on:
            held.append(block.part(0, 1))
            if last > 0:
                yield joined(held, name, width)
                held = []
        if last > first:
            yield block.part(first, last)
        if last >= first:
            held.append(block.part(last, last + 1))
    if held:
        yield joined(held, held[0].ids[0], held[0].values.shape[1])


def in_parts(blocks: Iterable[Block], slots: int) -> Iterator[Block]:
    """Blocks of so few series that what is remembered of them fits."""
    most = max(1, MOST_MEMORY // max(1, slots))
    for block in blocks:
        for first in range(0, len(block.ids), most):
            yield block.part(first, first + most)


def with_ends(blocks: Iterable[Block]) -> Iterator[tuple[Block, bool]]:
    """Blocks of series that end there, and of one that goes on in the next; which, is told."""
    some = (block for block in blocks if block.ids)
    here = next(some, None)
    while here is not None:
        then = next(some, None)
        last = len(here.ids) - 1
        goes_on = then is not None and then.starts[0] > 0
        if goes_on and last > 0:
            yield here.part(0, last), True
            here = here.part(last, last + 1)
        yield here, not goes_on
        here = then
