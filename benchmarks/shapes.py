"""Shapes of a population: by messages, and tried out at once, beside a plain loop over people."""

from __future__ import annotations

import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import Row, best_of
from benchmarks.sequences import one_pair, one_series
from tempriv.local.shapes.plan import Method, ShapesPlan
from tempriv.local.shapes.roles import ShapesServer, simulate_answers
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.simulate import simulate_grouped
from tempriv.sampling.keys import Key

PEOPLE, LENGTH = 40_000, 300
WANTED_SECONDS = 0.08
WANTED_DEVICES = 50_000
FEW = 400
ROUNDS = 3
EPSILON = 4.0
METHODS: tuple[Method, ...] = ("published", "nearest")


def waves(people: int) -> np.ndarray:
    """Three shapes with noise: hundreds of different sequences."""
    generator = np.random.default_rng(1)
    at = np.arange(LENGTH)
    shapes = np.stack([np.sin(at / 20), np.cos(at / 33), np.sign(np.sin(at / 50))])
    return shapes[generator.integers(3, size=people)] + generator.normal(size=(people, LENGTH)) / 5


def plan_of(method: Method, people: int) -> ShapesPlan:
    sax = Sax(symbols=4, segment=10, longest=10)
    return ShapesPlan(
        epsilon=EPSILON, shapes=3, people=people, sax=sax, distance="dtw", method=method
    )


def rows() -> list[Row]:
    series = waves(PEOPLE)
    few = [row.tolist() for row in series[:FEW]]
    (theirs,) = best_of([lambda: one_by_one(few)], rounds=ROUNDS)
    each = theirs / FEW
    yardstick = f"plain Python, {1e6 * each:.0f} microseconds a person"
    return [
        *(at_once(method, series, each, yardstick) for method in METHODS),
        *(by_messages(method, series, each, yardstick) for method in METHODS),
        by_messages("one-shot", series, each, yardstick),
    ]


def at_once(method: Method, series: np.ndarray, each: float, yardstick: str) -> Row:
    plan = plan_of(method, len(series))

    def shapes() -> object:
        different, counts = plan.sax.sequences(series).distinct()
        return simulate_grouped(plan, different.texts(), counts, Key.from_seed(1)).shapes

    (ours,) = best_of([shapes])
    return Row(
        f"shapes, {method}: {len(series):,} series of {LENGTH} to shapes, tried out at once",
        f"{1e3 * ours:.0f} ms",
        yardstick,
        each * len(series) / ours,
        f"at most {1e3 * WANTED_SECONDS:.0f} ms",
        ours <= WANTED_SECONDS,
    )


def by_messages(method: Method, series: np.ndarray, each: float, yardstick: str) -> Row:
    campaign(method, series[:2000])
    rate = max(campaign(method, series) for _ in range(ROUNDS))
    return Row(
        f"shapes, {method}: devices by messages, series of {LENGTH} to shapes",
        f"{rate:,.0f} devices/s",
        yardstick,
        rate * each,
        f"at least {WANTED_DEVICES:,}",
        rate >= WANTED_DEVICES,
    )


def campaign(method: Method, series: np.ndarray) -> float:
    """Devices a second, both roles together."""
    server, begin = ShapesServer(plan_of(method, len(series))), 0
    began = time.perf_counter()
    while not server.is_over:
        now = series[begin : begin + server.wanted]
        begin += len(now)
        if len(now) and server.receive_many(simulate_answers(server.question, now)):
            sys.exit("the server refused answers of its devices")
        server.close_round()
    return begin / (time.perf_counter() - began)


# by the book, a person at a time


def randomized(value: int, size: int, noise: random.Random) -> int:
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + size - 1)
    other = noise.randrange(size - 1)
    return value if noise.random() < keep else other + (other >= value)


def chosen(text: Sequence[int], candidates: Sequence[Sequence[int]], noise: random.Random) -> int:
    """The exponential mechanism over distances of the beginning."""
    raw = [1 / (one_pair(text[: len(other)], other) + 0.1) for other in candidates]
    low, high = min(raw), max(raw)
    scores = [1.0 if high == low else (one - low) / (high - low) for one in raw]
    return noise.choices(range(len(raw)), [math.exp(EPSILON * one / 2) for one in scores])[0]


def one_by_one(people: Sequence[Sequence[float]]) -> list[tuple[int, ...]]:
    """The published way, without its pairs: a tree over the most frequent beginnings."""
    draw, longest, kept = random.Random(1), 10, 9
    texts = [["abcd".index(letter) for letter in one_series(one)] for one in people]
    lengths = Counter(randomized(min(len(one), longest) - 1, longest, draw) for one in texts[:20])
    length = lengths.most_common(1)[0][0] + 1
    candidates: list[tuple[int, ...]] = [(symbol,) for symbol in range(4)]
    rest = texts[20:]
    for level in range(length):
        group = rest[level * len(rest) // length : (level + 1) * len(rest) // length]
        counts = Counter(chosen(one, candidates, draw) for one in group)
        best = [candidates[i] for i, _ in counts.most_common(kept)]
        if level + 1 < length:
            candidates = [(*one, s) for one in best for s in range(4) if s != one[-1]]
    return best[:3]
