"""Statistical audits: a million runs of a scalar mechanism, and the same steps in plain loops."""

from __future__ import annotations

import bisect
import random
from collections import Counter

from benchmarks.measure import Row, best_of
from tempriv.audit import confidence, statistical
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.guarantees import Pure

RUNS = 1_000_000
PLAIN_RUNS = 50_000
MOST_SECONDS = 5.0


def plain(epsilon: float, runs: int) -> float:
    """Teach, choose and count one run at a time: Laplace noise, cells of equal weight, tails."""
    source = random.Random(1)

    def outputs(value: float, count: int) -> list[float]:
        draws = ((source.expovariate(epsilon), source.expovariate(epsilon)) for _ in range(count))
        return [value + one - other for one, other in draws]

    def counted(edges: list[float], value: float, count: int) -> list[int]:
        cells = Counter(bisect.bisect(edges, one) for one in outputs(value, count))
        return [cells[i] for i in range(len(edges) + 1)]

    each = runs // 16
    taught = sorted(outputs(0.0, each) + outputs(1.0, each))
    edges = [taught[len(taught) * i // 128] for i in range(1, 128)]
    tried = counted(edges, 0.0, each), counted(edges, 1.0, each)
    tails = [(sum(tried[0][:i]), sum(tried[1][:i])) for i in range(1, 129)]
    found = [
        float(confidence.epsilon_at_least(hits, misses, (each, each), 0.0, 1e-10))
        for hits, misses in tails
    ]
    last = max(range(128), key=found.__getitem__) + 1
    ones = sum(source.random() < 0.5 for _ in range(runs - 4 * each))
    hits = sum(counted(edges, 0.0, ones)[:last])
    misses = sum(counted(edges, 1.0, runs - 4 * each - ones)[:last])
    return float(confidence.epsilon_at_least(hits, misses, (runs, runs), 0.0, 0.001))


def rows() -> list[Row]:
    found = []
    slow = best_of([lambda: plain(1.0, PLAIN_RUNS)], rounds=3)[0] * RUNS / PLAIN_RUNS
    for work, mechanism in (
        ("Laplace, epsilon 1", Laplace(epsilon=1.0, bounds=(0, 5))),
        ("Gaussian, rho 0.5", Gaussian(rho=0.5, bounds=(0, 5))),
    ):
        calls = [lambda one=mechanism: statistical.audit(one, runs=RUNS)]
        seconds = best_of(calls, rounds=3)[0]
        pure = isinstance(mechanism.guarantee.loss, Pure)
        found.append(
            Row(
                f"statistical audit, {RUNS:,} runs: {work}",
                f"{seconds:.2f} s",
                f"plain Python, {slow:.1f} s" if pure else "",
                slow / seconds if pure else None,
                f"under {MOST_SECONDS:g} s",
                seconds < MOST_SECONDS,
            )
        )
    return found
