"""What goes wrong on the way between devices and a server, on purpose and by a seed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from tempriv.collect.protocol.assignment import assignment_hash
from tempriv.errors import require
from tempriv.local.frequency.base import Flags, Integers
from tempriv.sampling.keys import Key

REORDER_BATCHES = 16  # batches that may overtake each other
DELAY_BATCHES = 128  # batches that a delayed one lets pass, at most
DELAY_SHARE = 0.1  # of all batches, where any are
Item = TypeVar("Item")


@dataclass(frozen=True)
class Fate:
    """What happens to a batch at one try."""

    lost_there: bool
    lost_back: bool
    copies: int


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Which faults there are; each is decided by the seed, whatever the order of requests.

    ``loss`` is the part of batches that get lost, and the part of replies; ``duplicate`` the part
    that arrive twice; ``gone`` the part of devices that never answer. With ``reorder`` batches
    overtake each other. With ``delay`` some leave after up to FAR batches of the same question that
    were drawn later; none waits until the question is closed, so none comes late by this.

    >>> Faults(seed=1, loss=0.5).fate("q", batch=0, attempt=0)
    Fate(lost_there=True, lost_back=True, copies=1)
    >>> list(Faults().in_order("q", "abc")), Faults(seed=2, gone=0.5).gone_of(np.arange(4)).tolist()
    (['a', 'b', 'c'], [True, True, False, True])
    """

    seed: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    gone: float = 0.0
    reorder: bool = False
    delay: bool = False

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "gone"):
            value = getattr(self, name)
            require(0 <= value < 1, f"{name}={value:g}: must be a part, from 0 to below 1")

    @property
    def sentence(self) -> str:
        """Those that are on."""
        on = []
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name != "seed" and value:
                on.append(option.name if value is True else f"{option.name} {value:g}")
        return ", ".join(on) or "none"

    def _numbers(self, *where: str | int) -> list[float]:
        """Four numbers from 0 to 1 that belong to a place."""
        chain = Key.from_seed(self.seed).again("faults", " ".join(map(str, where)))
        words = np.frombuffer(chain.cipher_key("numbers"), dtype=np.uint64)
        return [int(word) / (1 << 64) for word in words]

    def fate(self, question: str, batch: int, attempt: int) -> Fate:
        """Return what happens to a ``batch`` of answers to ``question`` at this ``attempt``."""
        there, back, twice, _ = self._numbers("fate", question, batch, attempt)
        return Fate(there < self.loss, back < self.loss, 2 if twice < self.duplicate else 1)

    def gone_of(self, numbers: Integers) -> Flags:
        """Return which devices with these ``numbers`` are gone for good."""
        name = Key.from_seed(self.seed).again("faults", "gone").cipher_key("name")[:16].hex()
        return np.asarray(assignment_hash(name, numbers) < np.uint64(int(self.gone * 2.0**64)))

    def in_order(self, question: str, items: Iterable[Item]) -> Iterator[Item]:
        """Return ``items`` for ``question`` as they leave: some late; few wait at a time."""
        waiting: list[tuple[float, int, Item]] = []
        for index, item in enumerate(items):
            heapq.heappush(waiting, (index + self._late(question, index), index, item))
            while waiting and waiting[0][0] <= index:
                yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]

    def _late(self, question: str, index: int) -> float:
        if not (self.reorder or self.delay):
            return 0.0
        near, delayed, far, _ = self._numbers("order", question, index)
        batches = near * REORDER_BATCHES if self.reorder else 0.0
        return batches + (far * DELAY_BATCHES if self.delay and delayed < DELAY_SHARE else 0.0)
