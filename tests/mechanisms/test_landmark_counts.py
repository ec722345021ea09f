"""A private bound on the number of landmarks: its margin, its delta, its law."""

from __future__ import annotations

import math

import pytest

from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.landmarks import private_count
from tempriv.sampling.keystream import Keystream
from tests.support.scripted import run
from tests.support.statistics import assert_proportion

pytest_plugins = ["tests.support.statistics"]


def tail(epsilon, k):
    """Pr[Z <= -k] by adding up the mass."""
    law = private_count.noise_of_count(epsilon)
    reach = k + math.ceil(40 / epsilon)
    return math.fsum(law.pmf(-i) for i in range(k, reach))


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.7, 3.0], ids=str)
@pytest.mark.parametrize("miss", [0.3, 1e-3, 1e-6], ids=str)
def test_the_margin_is_the_least_that_does(epsilon, miss):
    margin = private_count.margin(epsilon, miss)
    assert tail(epsilon, margin + 1) <= miss
    assert margin == 0 or tail(epsilon, margin) > miss
    assert private_count.delta(epsilon, margin) == pytest.approx(tail(epsilon, margin))
    assert private_count.delta(epsilon, margin) <= math.exp(epsilon) * miss * (1 + 1e-12)


def test_the_margin_of_a_tenth():
    assert private_count.margin(0.1, 1e-3) == 62
    assert private_count.margin(10.0, 0.5) == 0


@pytest.mark.parametrize("length", [None, 12], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1.0, 2.5], ids=str)
@pytest.mark.parametrize("margin", [0, 1, 5], ids=str)
def test_delta_is_exact(margin, epsilon, length):
    """The law of the bound for 7 and for 8 landmarks, both ways."""
    laws = []
    for count in (7, 8):
        law: dict[int, float] = {}
        for drawn, mass in private_count.noise_of_count(epsilon).outcomes(1e-14):
            bound = private_count.bound(count, drawn, margin, length)
            assert bound >= count and (length is None or bound <= length)
            law[bound] = law.get(bound, 0.0) + mass
        laws.append(law)
    worst = max(
        math.fsum(max(0.0, p - math.exp(epsilon) * two.get(k, 0.0)) for k, p in one.items())
        for one, two in (laws, laws[::-1])
    )
    assert worst == pytest.approx(private_count.delta(epsilon, margin), rel=1e-9)


def test_private_counts_follow_their_distribution(seed):
    epsilon, miss, draws = 0.5, 0.05, 4_000
    margin = private_count.margin(epsilon, miss)
    counts = [
        private_count.private_count(
            20,
            epsilon=epsilon,
            miss=miss,
            length=100,
            keystream=Keystream([run(seed % 2**32 + i, 1)], "count"),
        )
        for i in range(draws)
    ]
    assert min(counts) == 20
    chance = private_count.delta(epsilon, margin)
    assert_proportion(counts.count(20), draws, chance, detects=0.7)
    chance = private_count.noise_of_count(epsilon).pmf(0)
    assert_proportion(counts.count(20 + margin), draws, chance, detects=0.35)


def test_counts_that_cannot_be_meant():
    words = Keystream([run(5, 2)], "count")
    for call, kind, sentence in [
        (lambda: private_count.noise_of_count(0), UsageError, "count_epsilon=0"),
        (lambda: private_count.margin(1, 1), UsageError, "miss=1"),
        (lambda: private_count.delta(1, -1), UsageError, "margin=-1"),
        (lambda: private_count.bound(4711, 0, 0, 3), DataError, "more of them than steps"),
        (
            lambda: private_count.private_count(1, epsilon=1, miss=0.1, keystream=words),
            UsageError,
            "2 rows of words",
        ),
    ]:
        with pytest.raises(kind, match=sentence) as refused:
            call()
        assert "4711" not in str(refused.value)
