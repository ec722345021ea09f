"""Stays of a path, sets of dummy landmarks and what they show, from the definitions.

Nothing here uses the package. Landmarks are a set of whole numbers below the length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

RADIUS = 6_371_008.8

Law = dict[frozenset[int], float]


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Meters between two (latitude, longitude), by the haversine formula."""
    (a, b), (c, d) = (map(math.radians, place) for place in (one, other))
    half = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * RADIUS * math.asin(min(1.0, math.sqrt(half)))


def stays(
    places: Sequence[tuple[float, float]], seconds: Sequence[float], meters: float, minutes: float
) -> list[bool]:
    """Li et al. 2008: a stretch within reach of its first place that lasts; then on behind it."""
    marks, first = [False] * len(places), 0
    while first < len(places):
        stretch = [first]
        for i in range(first + 1, len(places)):
            if great_circle(places[first], places[i]) > meters:
                break
            stretch.append(i)
        lasts = seconds[stretch[-1]] - seconds[first] >= 60 * minutes
        for i in stretch if lasts else []:
            marks[i] = True
        first = stretch[-1] + 1 if lasts else first + 1
    return marks


def quartile(ordered: Sequence[int], part: Fraction) -> Fraction:
    """By straight lines between the order statistics."""
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def bins(length: int, landmarks: set[int]) -> tuple[int, list[int], list[int]]:
    """Width, landmarks and moments of each bin (Freedman and Diaconis)."""
    ordered, width = sorted(landmarks), length
    if len(ordered) >= 2:
        spread = quartile(ordered, Fraction(3, 4)) - quartile(ordered, Fraction(1, 4))
        width = min(length, max(1, math.ceil(2 * float(spread) / len(ordered) ** (1 / 3))))
    parts = [range(i, min(i + width, length)) for i in range(0, length, width)]
    return width, [len(landmarks & set(part)) for part in parts], [len(part) for part in parts]


def squares(one: Sequence[int], other: Sequence[int]) -> int:
    """The Euclidean distance of two histograms, squared."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def transport(one: Sequence[int], other: Sequence[int]) -> Fraction:
    """The Wasserstein distance of two histograms as distributions, in bins."""
    first, second = (
        itertools.accumulate([Fraction(a, sum(counts)) for a in counts]) for counts in (one, other)
    )
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), start=Fraction(0))


def algorithm_1(
    counts: Sequence[int], capacity: Sequence[int], difference: Callable[..., Any]
) -> list[list[int]]:
    """Every histogram on the way to all moments, each nearest to the first among its kind."""
    current, options = list(counts), []
    while sum(current) != sum(capacity):
        least, best = None, current
        for i in range(len(current)):
            if current[i] + 1 <= capacity[i]:
                changed = [*current[:i], current[i] + 1, *current[i + 1 :]]
                far = difference(counts, changed)
                if least is None or far < least:
                    least, best = far, changed
        current = best
        options.append(best)
    return options


def nearness(dummies: Sequence[int], landmarks: set[int]) -> Fraction:
    """The mean distance from the nearest landmark."""
    far = [min(abs(t - place) for place in landmarks) for t in dummies]
    return Fraction(sum(far), len(far))


def distance(length: int, landmarks: set[int], dummies: Sequence[int], kind: str) -> Fraction:
    """Of a set with dummies from the landmarks."""
    if kind == "temporal":
        return nearness(dummies, landmarks)
    marked = [int(t in landmarks) for t in range(length)]
    return transport(marked, [int(t in landmarks or t in dummies) for t in range(length)])


def optimal(length: int, landmarks: set[int], kind: str) -> list[set[int]]:
    regular = [t for t in range(length) if t not in landmarks]
    return [
        landmarks
        | set(
            min(
                itertools.combinations(regular, size),
                key=lambda dummies: distance(length, landmarks, dummies, kind),
            )
        )
        for size in range(1, len(regular) + 1)
    ]


def heuristic(length: int, landmarks: set[int], kind: str) -> list[set[int]]:
    options, dummies = [], []
    while len(dummies) < length - len(landmarks):
        left = [t for t in range(length) if t not in landmarks and t not in dummies]
        dummies.append(min(left, key=lambda t: distance(length, landmarks, [*dummies, t], kind)))
        options.append(landmarks | set(dummies))
    return options


def chosen(utilities: Sequence[float], epsilon: float) -> list[float]:
    """The exponential mechanism at sensitivity 1."""
    weights = [math.exp(epsilon * utility / 2) for utility in utilities]
    return [weight / math.fsum(weights) for weight in weights]


def without_replacement(weights: dict[int, Fraction], count: int) -> dict[frozenset[int], Fraction]:
    """One after the other, each by its weight among those left."""
    if count == 0:
        return {frozenset(): Fraction(1)}
    law: dict[frozenset[int], Fraction] = {}
    total = sum(weights.values())
    for item, weight in weights.items():
        if weight == 0:
            continue
        left = {other: w for other, w in weights.items() if other != item}
        for rest, chance in without_replacement(left, count - 1).items():
            whole = rest | {item}
            law[whole] = law.get(whole, Fraction(0)) + weight / total * chance
    return law


def partitioned_law(length: int, landmarks: set[int], score: str, epsilon: float) -> Law:
    """Of the published marks: Algorithm 1 (Euclidean), selection, sampling."""
    width, counts, capacity = bins(length, landmarks)
    options = algorithm_1(counts, capacity, squares)
    regular = [t for t in range(length) if t not in landmarks]
    means = [
        nearness([t for t in regular if t // width == b] or [min(landmarks)], landmarks)
        for b in range(len(counts))
    ]
    if score == "count":
        utilities = [-float(sum(option)) for option in options]
    elif score == "distance":
        utilities = [-math.sqrt(squares(counts, option)) for option in options]
    else:
        utilities = [
            -float(
                sum((n - c) * mean for n, c, mean in zip(option, counts, means, strict=True))
                / (sum(option) - len(landmarks))
            )
            for option in options
        ]
    law: Law = {}
    for option, chance in zip(options, chosen(utilities, epsilon), strict=True):
        density = {t: Fraction(option[t // width], capacity[t // width]) for t in regular}
        drawn = without_replacement(density, sum(option) - len(landmarks))
        for dummies, part in drawn.items():
            marks = frozenset(landmarks | dummies)
            law[marks] = law.get(marks, 0.0) + chance * float(part)
    return law


def sets_law(options: Sequence[set[int]], utilities: Sequence[float], epsilon: float) -> Law:
    """Of Optimal or Heuristic."""
    chances = chosen(utilities, epsilon)
    return {frozenset(one): chance for one, chance in zip(options, chances, strict=True)}


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    """The least delta for which the first law is within e^epsilon of the second."""
    factor = math.exp(epsilon)
    return math.fsum(max(0.0, p - factor * other.get(marks, 0.0)) for marks, p in one.items())
