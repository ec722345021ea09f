"""The likeliest steps of origin of released rows, for somebody who sees their true order.

Rows stand in order of value; which steps they were read at is then a hidden increasing sequence,
and its distribution under a mechanism is a product over neighbors in that order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.data.series import EMPTY, RELEASED, REPEATED
from tempriv.errors import DataError, require

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Statuses = npt.NDArray[np.int8]

MIN_PROBABILITY = (
    1e-9  # the chance of what the model rules out, since values may be only nearly in order
)


def numbers_of(values: Any) -> tuple[Floats, Flags]:
    """A column of ``values`` as numbers, and which of them are there."""
    masked = np.ma.asarray(values)
    require(
        masked.ndim == 1 and masked.dtype.kind in "iufbM",
        "values: must be one column of numbers or times, which can be sorted",
        DataError,
    )
    present = ~np.ma.getmaskarray(masked)
    if masked.dtype.kind == "M":
        present = present & ~np.isnat(masked.data)
        # ranks are all that counts
        return np.unique(masked.data, return_inverse=True)[1].astype(np.float64), present
    numbers = np.where(present, masked.data, 0).astype(np.float64)
    return numbers, np.asarray(present & ~np.isnan(numbers), dtype=np.bool_)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What an attacker knows of a mechanism that moves rows: its kind and its parameters.

    ``probabilities`` belong to the lags ``least``, ``least + 1`` and so on, where the lag of a slot
    is its own step less the step of the row in it. A dropped row leaves the slot ``drop_lag`` steps
    after it empty, with probability ``dropped`` where it would otherwise be released. Slots of the
    first ``past`` steps may be empty because they hold rows from before the series. If ``blocks``
    is (length, offset), rows stay within aligned blocks.
    """

    probabilities: tuple[float, ...]
    least: int = 0
    repeats: bool = False
    overwrites: bool = False
    drop_lag: int | None = None
    dropped: float = 0.0
    past: int = 0
    blocks: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require(
            len(self.probabilities) > 0 and min(self.probabilities) >= 0,
            "probabilities: give one >= 0 for each lag",
        )


@dataclass(frozen=True)
class Items:
    """Distinct released rows in order of value: where each was first seen, and all its slots."""

    length: int
    first: Integers
    slots: list[list[int]]
    values: Floats


def items_of(released: Any, repeats: bool, status: Statuses | None, rising: bool | None) -> Items:
    """Slots that repeat a row belong to it; falling values are turned round.

    Parameters:
        released: a value or a masked entry for each slot.
        repeats: whether rows may come out again.
        status: of each slot.
        rising: whether values rise; seen from them by default.
    """
    numbers, present = numbers_of(released)
    states = np.where(present, RELEASED, EMPTY) if status is None else np.asarray(status)
    groups: list[list[int]] = []
    latest: dict[float, int] = {}
    for slot in np.flatnonzero(present).tolist():
        value = float(numbers[slot])
        again = value in latest and (repeats if status is None else int(states[slot]) == REPEATED)
        if again:
            groups[latest[value]].append(slot)
        else:
            latest[value] = len(groups)
            groups.append([slot])
    first = np.array([group[0] for group in groups], dtype=np.int64)
    values = numbers[first]
    if _falls(values) if rising is None else not rising:
        values = -values
    order = np.lexsort((first, values))
    return Items(len(numbers), first[order], [groups[i] for i in order.tolist()], values[order])


def _falls(values: Floats) -> bool:
    """Whether later values are smaller on the whole (Spearman's rank correlation)."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    places = np.arange(len(values))
    return float(((ranks - ranks.mean()) * (places - places.mean())).sum()) < 0


def spread(items: Items, origins: Sequence[int] | Integers) -> Integers:
    """A guess for each slot from one for each item; -1 where there is none.

    Parameters:
        items: rows in order of value.
        origins: the step of each.
    """
    guessed = np.full(items.length, -1, dtype=np.int64)
    for slots, origin in zip(items.slots, origins, strict=True):
        guessed[slots] = int(origin)
    return guessed


class SlotChain:
    """Rows in order of value; the state is the step at which a row was read."""

    def __init__(self, items: Items, known: Known):
        self.known, self.length = known, items.length
        most = known.least + len(known.probabilities) - 1
        low = np.array([max(slots) - most for slots in items.slots])
        high = np.array([min(slots) - known.least for slots in items.slots])
        low, high = np.maximum(low, 0), np.minimum(high, items.length - 1)
        if known.blocks is not None:
            length, offset = known.blocks
            start = items.first - (items.first - offset) % length
            low, high = np.maximum(low, start), np.minimum(high, start + length - 1)
        # equal values taken for one row may lie too far apart to be one
        high = np.maximum(low, high)
        self.order = list(_in_order(low, high))
        self.low, self.high = low[self.order].tolist(), high[self.order].tolist()
        self.slots = [items.slots[i] for i in self.order]
        self.logs = np.log(np.maximum(known.probabilities, MIN_PROBABILITY))
        self.empty = np.ones(items.length + len(known.probabilities), dtype=np.bool_)
        self.rank = np.full(items.length + len(known.probabilities), -1, dtype=np.int64)
        for rank, slots in enumerate(self.slots):
            self.empty[slots] = False
            self.rank[slots] = rank
        # rows that go beyond the end stay inside, unseen; later than all others
        self.rank[items.length :] = len(self.slots) + 1
        self.empty[items.length :] = False
        self.unseen = self._unseen()

    def _unseen(self) -> Floats:
        """For each step the chance that its row is not among those released, given the slots."""
        known, steps = self.known, np.arange(self.length)
        if known.repeats:
            # slots choose rows, so what nobody chose has no factor of its own (Eq. 4)
            return np.ones(self.length)
        tails = np.concatenate([np.cumsum(known.probabilities[::-1])[::-1], [0.0]])
        inside = np.clip(self.length - steps - known.least, 0, len(known.probabilities))
        chances = tails[inside]
        if known.drop_lag is not None:
            lag = known.drop_lag
            chances = chances + np.where(self.empty[steps + lag], known.dropped, 0.0)
        return np.asarray(np.maximum(chances, MIN_PROBABILITY))

    def _missing(self, low: int, high: int, rank: int) -> list[float]:
        """The chance that the rows of steps low .. high - 1 are missing, just before this rank."""
        if high <= low:
            return []
        if not self.known.overwrites:
            return [float(q) for q in self.unseen[low:high]]
        # a row is overwritten by a later one in its slot, and later rows have higher ranks
        lags = np.arange(len(self.known.probabilities))
        seen = self.rank[np.add.outer(np.arange(low, high), lags)] >= rank
        return [float(q) for q in np.maximum(seen @ self.known.probabilities, MIN_PROBABILITY)]

    def _weights(self, rank: int) -> list[float]:
        """The chance of this row's slots from each step that it may have been read at."""
        known, low, high = self.known, self.low[rank], self.high[rank]
        steps = np.arange(low, high + 1)
        total = np.zeros(len(steps))
        for slot in self.slots[rank]:
            lags = np.clip(slot - steps - known.least, 0, len(self.logs) - 1)
            total += self.logs[lags]
        if known.drop_lag is not None:
            # an empty slot that is not the past's says that its row was dropped
            at = steps + known.drop_lag
            total += np.where(self.empty[at] & (at >= known.past), np.log(MIN_PROBABILITY), 0.0)
        return [float(w) for w in np.exp(total - total.max())]

    def likeliest(self) -> list[int]:
        """The step of the largest posterior, item by item as they were given."""
        count = len(self.slots)
        weights = [self._weights(rank) for rank in range(count)]
        forward: list[list[float]] = []
        before, base = [1.0], -1  # as if a row had been read at step -1
        for rank in range(count):
            reached = self._step_up(before, base, rank)
            joint = _scaled([w * g for w, g in zip(weights[rank], reached, strict=True)])
            # an order that no assignment fits: begin afresh
            forward.append(joint or _scaled(weights[rank]))
            before, base = forward[-1], self.low[rank]
        chosen = [0] * count
        after = self._to_the_end(count - 1)
        for rank in range(count - 1, -1, -1):
            both = [f * b for f, b in zip(forward[rank], after, strict=True)]
            best = both if max(both) > 0 else forward[rank]
            chosen[self.order[rank]] = self.low[rank] + best.index(max(best))
            if rank:
                ahead = [w * b for w, b in zip(weights[rank], after, strict=True)]
                after = self._step_down(ahead, rank)
        return chosen

    def _step_up(self, before: list[float], base: int, rank: int) -> list[float]:
        """For each step of this row: all ways that the rows before it and those between went."""
        low, high = self.low[rank], self.high[rank]
        chances = self._missing(max(base, 0), high + 1, rank)
        reached, sofar = [0.0] * (high + 1 - low), 0.0
        for step in range(base, high + 1):
            if step >= low:
                reached[step - low] = sofar
            sofar *= chances[step - max(base, 0)] if step >= 0 else 0.0
            if step - base < len(before):
                sofar += before[step - base]
        return reached

    def _step_down(self, ahead: list[float], rank: int) -> list[float]:
        """For each step of the row before: all ways that this row and those after it went."""
        low, high = self.low[rank], self.high[rank]
        start, stop = self.low[rank - 1], self.high[rank - 1]
        chances = self._missing(start, high + 1, rank)
        reached, sofar = [0.0] * (stop + 1 - start), 0.0
        for step in range(high, start - 1, -1):
            if step <= stop:
                reached[step - start] = sofar
            sofar *= chances[step - start]
            if step >= low:
                sofar += ahead[step - low]
        return _scaled(reached) or [1.0] * len(reached)

    def _to_the_end(self, rank: int) -> list[float]:
        low, high = self.low[rank], self.high[rank]
        chances = self._missing(low + 1, self.length, rank + 1)
        reached, sofar = [1.0], 1.0
        for chance in reversed(chances):
            sofar = max(sofar * chance, 1e-300)
            reached.append(sofar)
        return _scaled(reached[::-1][: high + 1 - low])


def _scaled(values: list[float]) -> list[float]:
    """With a largest of 1; nothing, if all are zero."""
    top = max(values)
    return [value / top for value in values] if top > 0 else []


def _in_order(low: Integers, high: Integers) -> Iterator[int]:
    """Items by value, but one that was surely read before another stands before it.

    Items are given in order of value; ``low`` and ``high`` are the first and last step that each
    may have been read at.
    """
    by_high = np.argsort(high, kind="stable").tolist()
    by_low = np.argsort(low, kind="stable").tolist()
    done = np.zeros(len(low), dtype=np.bool_)
    ready: list[int] = []
    first = opened = 0
    for _ in range(len(low)):
        while done[by_high[first]]:
            first += 1
        horizon = high[by_high[first]]
        while opened < len(low) and low[by_low[opened]] <= horizon:
            heapq.heappush(ready, by_low[opened])
            opened += 1
        item = heapq.heappop(ready)
        done[item] = True
        yield item
