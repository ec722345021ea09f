"""How long to wait before trying again: longer each time, and never in step with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tempriv.errors import require
from tempriv.sampling.keys import tokens

FACTOR = 2.0


def jitter() -> float:
    """A number from 0 to 1 that no two devices share; it says nothing of a device."""
    return int.from_bytes(tokens(1)[:8], "big") / (1 << 64)


@dataclass
class Backoff:
    """Waiting times that double, each drawn from half of it to all of it.

    Thousands of devices that lost the server at one moment would come back at one moment too.

    >>> waits = Backoff(first=1.0, most=10.0, draw=lambda: 1.0)
    >>> [waits.next() for _ in range(5)]
    [1.0, 2.0, 4.0, 8.0, 10.0]
    >>> waits.next(at_least=30.0)
    30.0
    """

    first: float = 0.5
    most: float = 300.0
    draw: Callable[[], float] = jitter
    _tries: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        require(
            0 < self.first <= self.most,
            f"first={self.first:g}: must be > 0 seconds and at most most={self.most:g}",
        )

    def next(self, at_least: float = 0.0) -> float:
        """Seconds to wait now; ``at_least`` is what the other side asked for."""
        whole = min(self.most, self.first * FACTOR ** min(self._tries, 60))
        self._tries += 1
        return max(whole * (1 + self.draw()) / 2, at_least)

    def reset(self) -> None:
        """The other side has answered."""
        self._tries = 0
