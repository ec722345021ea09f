"""Windows read at a noisy pace, by their definitions: one window and one point at a time."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence

Curve = Callable[[float], float]


def printed(readings: Sequence[float]) -> Curve:
    """Algorithm 1 of the paper as it stands, of which the real part is released."""
    n = len(readings)
    f = [
        sum(d * cmath.exp(-2j * math.pi * k * m / n) for m, d in enumerate(readings))
        for k in range(n)
    ]
    return lambda t: (sum(f[k] * cmath.exp(2j * math.pi * k * t / n) for k in range(n)) / n).real


def hermitian(readings: Sequence[float]) -> Curve:
    """The same with frequencies below a half: k and n - k turn the other way round."""
    n = len(readings)
    f = [
        sum(d * cmath.exp(-2j * math.pi * k * m / n) for m, d in enumerate(readings))
        for k in range(n)
    ]

    def at(t: float) -> float:
        total = 0.0
        for k in range(n):
            wave = 2 * math.pi * min(k, n - k) * t / n
            turned = cmath.exp(1j * wave) if 2 * k <= n else cmath.exp(-1j * wave)
            total += (f[k] * turned).real / n
        return total

    return at


def cosine(readings: Sequence[float], waves: int | None = None) -> Curve:
    """The discrete cosine transform (DCT-II), and back at any time."""
    n = len(readings)
    kept = range(n if waves is None else min(waves, n))
    a = [
        sum(d * math.cos(math.pi * k * (m + 0.5) / n) for m, d in enumerate(readings)) for k in kept
    ]

    def at(t: float) -> float:
        terms = (a[k] * math.cos(math.pi * k * (t + 0.5) / n) for k in kept[1:])
        return (a[0] + 2 * sum(terms)) / n

    return at


CURVES = {"printed": printed, "hermitian": hermitian, "cosine": cosine}


def windows(length: int, window: int) -> list[tuple[int, int]]:
    """First reading and number of points of each window; the last may have fewer."""
    found = []
    first = 0
    while length - first >= 3:
        found.append((first, min(window, length - first - 2)))
        first += window
    return found
