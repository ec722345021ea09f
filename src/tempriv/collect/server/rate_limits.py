"""How much a caller may ask for: sizes of requests, and how many of them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_CALLERS = 1 << 16  # that are remembered


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """What a server takes from one caller.

    Rates are requests a second on average; ``burst`` times as many may come at once. A batch counts
    as one request. ``failures`` is how many wrong tokens an address may try in a minute.
    """

    body: int = 1 << 20  # bytes
    batch_body: int = 1 << 24
    batch: int = 4096  # answers
    device_rate: float = 20.0
    staff_rate: float = 200.0
    address_rate: float = 2000.0
    burst: float = 5.0
    failures: int = 60


@dataclass
class Rates:
    """Buckets that fill again with time, one for each caller."""

    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[tuple[str, str], tuple[float, float]] = field(default_factory=OrderedDict)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def allows(self, kind: str, who: str, rate: float, burst: float, cost: float = 1.0) -> bool:
        """Whether one more is allowed; it is counted if so.

        Parameters:
            kind: of the limit.
            who: is limited.
            rate: that is allowed, per second.
            burst: that is allowed at once.
            cost: of this one.

        >>> now = [0.0]
        >>> rates = Rates(clock=lambda: now[0])
        >>> [rates.allows("device", "7", rate=1.0, burst=2.0) for _ in range(3)]
        [True, True, False]
        >>> now[0] = 1.0
        >>> rates.allows("device", "7", rate=1.0, burst=2.0)
        True
        """
        with self._turn:
            now = self.clock()
            left, then = self._left.pop((kind, who), (burst, now))
            left = min(burst, left + (now - then) * rate)
            allowed = left >= cost
            self._left[kind, who] = (left - cost if allowed else left, now)
            while len(self._left) > MAX_CALLERS:
                self._left.popitem(last=False)
            return allowed
