"""Frequency oracles: what a report gives away, what many of them say, and how sure that is."""

from __future__ import annotations

import doctest
import functools
import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tempriv.errors import DataError, UsageError
from tempriv.local.frequency import _kernels, base, hashed
from tempriv.local.frequency.base import Frequencies
from tempriv.local.frequency.estimation import estimate_counts
from tempriv.local.frequency.hashed import OLH, Hadamard
from tempriv.local.frequency.oracles import GRR, OUE, choose
from tempriv.privacy import units
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key, simulation
from tempriv.sampling.keystream import Keystream, StepRange
from tests.conformance.case_checks import plain_kernels
from tests.reference import frequency as reference
from tests.support.paths import DOCS
from tests.support.scripted import ONES, Scripted, split, write
from tests.support.statistics import COMPILED, assert_cells, assert_proportion

pytest_plugins = ["tests.support.statistics"]

ORACLES = (GRR, OUE, OLH, Hadamard)
SMALL = [
    oracle(epsilon=epsilon, size=size)
    for oracle in ORACLES
    for epsilon, size in [(0.5, 2), (1.0, 3), (1.0, 5), (1.4, 4)]
]
every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.__name__)
every_small = pytest.mark.parametrize("oracle", SMALL, ids=str)


def words_for(seed: int, count: int, purpose: str = "report") -> Keystream:
    return Keystream([StepRange(Key.from_seed(seed).series("oracle", "people"), 0, count)], purpose)


def name_of(oracle: Any) -> str:
    return type(oracle).__name__


@functools.cache
def law_of(oracle: Any, value: int) -> dict[bytes, float]:
    return oracle.outcomes(value)


@functools.cache
def vectors_of(oracle: Any) -> dict[bytes, tuple[int, ...]]:
    """Which values each report supports."""
    return {report: tuple(oracle.support([report]).tolist()) for report in law_of(oracle, 0)}


@functools.cache
def joint_law(oracle: Any, counts: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Of the supports of all values together, by adding up person by person."""
    law = {(0,) * oracle.size: 1.0}
    for value, people in enumerate(counts):
        one: Counter[tuple[int, ...]] = Counter()
        for report, mass in law_of(oracle, value).items():
            one[vectors_of(oracle)[report]] += mass
        for _ in range(people):
            further: Counter[tuple[int, ...]] = Counter()
            for (before, mass), (vector, more) in itertools.product(law.items(), one.items()):
                further[tuple(np.add(before, vector).tolist())] += mass * more
            law = further
    return law


# what a report gives away


def worst_ratio(outcomes: list[dict[bytes, float]]) -> float:
    """Over all pairs of values and all reports."""
    reports = set().union(*outcomes)
    masses = np.array([[law.get(report, 0.0) for report in reports] for law in outcomes])
    low, high = masses.min(axis=0), masses.max(axis=0)
    return math.inf if (low == 0).any() else float((high / low).max())


@every_small
def test_the_worst_report_gives_away_epsilon_and_no_more(oracle):
    outcomes = [law_of(oracle, value) for value in range(oracle.size)]
    assert all(math.isclose(math.fsum(law.values()), 1, rel_tol=1e-12) for law in outcomes)
    assert math.isclose(worst_ratio(outcomes), math.exp(oracle.epsilon), rel_tol=1e-12)
    assert oracle.guarantee == Guarantee(Pure(oracle.epsilon), units.Event(), "local")


@every_small
def test_reports_have_the_distribution_of_the_definition(oracle):
    for value in range(oracle.size):
        found = law_of(oracle, value)
        expected = reference.LAWS[name_of(oracle)](oracle.epsilon, oracle.size, value)
        assert found.keys() == expected.keys()
        assert all(math.isclose(found[k], expected[k], rel_tol=1e-12) for k in expected)


def cells_of(law: dict[Any, float], draws: int) -> tuple[dict[Any, int], list[float]]:
    """Outcomes that are likely enough have a cell each, the others fill cells together."""
    place, masses, mass = {}, [], 0.0
    for outcome, chance in sorted(law.items(), key=lambda item: -item[1]):
        place[outcome] = len(masses)
        mass += chance
        if mass * draws >= 130:
            masses.append(mass)
            mass = 0.0
    place = {outcome: min(cell, len(masses) - 1) for outcome, cell in place.items()}
    masses[-1] += mass
    return place, masses


def assert_law(drawn: list[Any], law: dict[Any, float], detects: float) -> None:
    place, masses = cells_of(law, len(drawn))
    cells = np.bincount([place[outcome] for outcome in drawn], minlength=len(masses))
    assert_cells(cells, masses, detects=detects)


REPORTS = 100_000 if COMPILED else 20_000


def report_law(oracle: Any, value: int) -> dict[bytes, float]:
    """For OLH the hash modulo 3 stands for the hash, of which there are too many."""
    if not isinstance(oracle, OLH):
        return law_of(oracle, value)
    joined: Counter[bytes] = Counter()
    for report, mass in law_of(oracle, value).items():
        joined[sketch(oracle, report, value)] += mass
    return joined


def sketch(oracle: Any, report: bytes, value: int) -> bytes:
    if not isinstance(oracle, OLH):
        return report
    number = int.from_bytes(report[:-1], "little")
    return bytes([number % 3, vectors_of(oracle)[report][value], report[-1]])


@every_oracle
def test_devices_draw_from_that_distribution_and_another_is_noticed(oracle, seed):
    """Alpha 1e-9; detects a mean relative deviation of 0.06, and 20 or 30 % more epsilon."""
    asked = oracle(epsilon=1.0, size=4)
    for value in (0, 3):
        sent = asked.reports(np.full(REPORTS, value), words_for(seed % 1000 + value, REPORTS))
        drawn = [sketch(asked, row.tobytes(), value) for row in sent]
        detects = 0.06 if COMPILED else 0.13
        assert_law(drawn, report_law(asked, value), detects)
        # 4 cells at 1.2 as at 1.0, 5 at 1.3: only then can the one read what the other wrote
        other = oracle(epsilon=1.2 if oracle is OLH else 1.3, size=4)
        assert other.report_bytes == asked.report_bytes
        with pytest.raises(AssertionError, match="chi-square"):
            assert_law(drawn, report_law(other, value), detects)


@every_oracle
@pytest.mark.parametrize("size", [2, 7, 8, 9, 300, 70_000])
def test_one_report_is_a_row_of_many(oracle, size, rng):
    many = 40 if size < 1000 else 6 if COMPILED else 2
    asked, values = oracle(epsilon=0.7, size=size), rng.integers(size, size=many)
    key = Key.from_seed(5).series("oracle", "people")
    sent = asked.reports(values, Keystream([StepRange(key, 3, many)], "report"))
    assert sent.shape == (many, asked.report_bytes) and sent.dtype == np.uint8
    for i in range(many):
        alone = asked.report(int(values[i]), Keystream([StepRange(key, 3 + i, 1)], "report"))
        assert alone == sent[i].tobytes()
        asked.refuse(alone)


@every_oracle
def test_a_report_does_not_depend_on_who_else_reports(oracle, rng):
    """Few and many devices at once, whose words are taken in different ways."""
    asked, values = oracle(epsilon=2.0, size=90), rng.integers(90, size=500)
    whole = asked.reports(values, words_for(1, 500))
    for rows in (np.arange(3), np.arange(40, 60), np.array([499])):
        part = asked.reports(values[rows], words_for(1, 500).rows(rows))
        assert (part == whole[rows]).all()


# exactness at the edges


FURTHER = 4094  # the branch of further digits


@pytest.mark.parametrize("epsilon", [1.0, 30.0], ids=str)
def test_a_bit_on_the_edge_is_decided_by_further_digits(epsilon):
    """192 digits of the cut, one less and one more, with zeros or ones behind them."""
    asked, place = OUE(epsilon=epsilon, size=6), (FURTHER, 0, 4)
    digits = asked._cut.bounds(192)[0]
    for change, behind in itertools.product((-1, 0, 1), (0, ONES)):
        number = digits + change
        script: Any = {}
        # bit 4 is the first piece of the second word; 48 digits follow, then whole words
        write(script, (0, 1), 0, 0, number >> 176 | ONES & ~0xFFFF)
        write(script, place, 0, 0, (number >> 128 & (1 << 48) - 1) << 16)
        for lane, word in enumerate([*split(number & (1 << 128) - 1, 2), behind, behind], 1):
            write(script, place, lane, 0, word)
        words = Scripted(words_for(1, 1), script)
        is_set = bool(asked.report(0, words)[0] >> 4 & 1)
        assert is_set == (change < 0 or (change == 0 and behind == 0))
        assert (place, 3) in words.taken or change != 0


def test_other_bits_next_to_the_true_one_are_not_touched_by_it():
    """One word of ones and one of zeros: the true bit is the half, the others are compared."""
    asked = OUE(epsilon=1.0, size=4)
    for word, bits in ((0, 0b1111), (ONES, 0), (0x4000_4000_4000_7FFF, 0b1111)):
        script: Any = {}
        write(script, (0, 0), 0, 0, word)
        assert asked.report(0, Scripted(words_for(1, 1), script)) == bytes([bits])
    # 0x6000 is above q = 0.269 and below 1/2
    for value in range(4):
        script = {}
        write(script, (0, 0), 0, 0, 0x6000_6000_6000_6000)
        assert asked.report(value, Scripted(words_for(1, 1), script)) == bytes([1 << value])


@pytest.mark.parametrize("word", ["below", "at", "above", "far"])
def test_one_shift_is_that_of_many_at_the_cut(word):
    law = distributions.CategoryFlip(Fraction(1), 9)
    floor = int(law.cuts.floors[0])
    first = {"below": floor - 1, "at": floor, "above": floor + 1, "far": floor + 2}[word]
    script: Any = {}
    write(script, (), 0, 0, first)
    words = Scripted(words_for(1, 1), script)
    assert base.shift_of(law, words) == law.sample(words)[0]
    assert (base.shift_of(law, words) == 0) == (word == "below") or word == "at"


def test_one_uniform_choice_is_that_of_many_beyond_the_last_multiple():
    law = distributions.UniformChoice(3 << 60)  # a word in 16 is drawn again
    script: Any = {}
    write(script, (0,), 0, 0, ONES)
    words = Scripted(words_for(1, 1), script)
    assert base.uniform_of(law, words) == law.sample(words)[0]
    assert ((1,), 0) in words.taken


# what many reports say


@every_small
def test_every_value_is_supported_with_two_probabilities_exactly(oracle):
    """So the estimate is unbiased, whatever the others have: the mean over all reports."""
    for value in range(oracle.size):
        mean = np.zeros(oracle.size)
        for report, mass in law_of(oracle, value).items():
            mean += mass * np.array(vectors_of(oracle)[report])
        expected = np.where(np.arange(oracle.size) == value, oracle.keep, oracle.other)
        assert np.allclose(mean, expected, rtol=1e-12, atol=0)


@every_small
def test_the_supported_values_are_those_of_the_definition(oracle, rng):
    reports = list(law_of(oracle, 0))
    some = [reports[i] for i in rng.integers(len(reports), size=300)]
    counted: Counter[int] = Counter()
    for report in some:
        counted.update(reference.supported(name_of(oracle), oracle.epsilon, oracle.size, report))
    expected = [counted[v] for v in range(oracle.size)]
    assert oracle.support(some).tolist() == expected
    matrix = np.frombuffer(b"".join(some), dtype=np.uint8).reshape(len(some), -1)
    assert oracle.support(matrix).tolist() == expected


@every_oracle
@pytest.mark.parametrize("size", [2, 9, 130, 1000])
def test_counts_of_many_people_are_found(oracle, size, rng):
    """Errors in standard errors: none is beyond 7 (alpha 1e-9 for 1,000 values)."""
    asked, people = oracle(epsilon=1.5, size=size), 20_000 if COMPILED else 1000
    values = rng.zipf(1.3, people) % size
    true = np.bincount(values, minlength=size)
    found = asked.estimate(asked.support(asked.reports(values, words_for(2, people))), people)
    errors = np.sqrt([asked.variance(people, share) for share in true / people])
    assert np.abs((found.counts - true) / errors).max() < 7
    likely = np.clip(found.counts / people, 0, 1)
    expected = np.sqrt([asked.variance(people, share) for share in likely])
    assert np.allclose(found.standard_error, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0], ids=str)
@every_oracle
def test_variances_are_the_closed_forms(oracle, epsilon, size):
    asked = oracle(epsilon=epsilon, size=size)
    for share in (0.0, 0.3, 1.0):
        expected = 7 * reference.variance(oracle.__name__, epsilon, size, share)
        # hashes collide with a little more than 1 / cells, here by up to a thousandth
        near = 2e-3 if oracle is OLH else 1e-9
        assert math.isclose(asked.variance(7, share), expected, rel_tol=near)


@every_small
def test_variances_are_those_of_the_joint_distribution(oracle):
    counts = (2, 1, *(0,) * (oracle.size - 2))
    law = joint_law(oracle, counts)
    supports, masses = np.array(list(law)), np.array(list(law.values()))
    found = [oracle.estimate(one, 3).counts for one in supports]
    mean = masses @ np.array(found)
    spread = masses @ (np.array(found) - mean) ** 2
    assert np.allclose(mean, counts, atol=1e-9)
    assert np.allclose(spread, [oracle.variance(3, count / 3) for count in counts], rtol=1e-9)


def test_a_randomized_response_is_estimated_as_elsewhere():
    """But for the standard error of a count below 0, which is that of 0 here."""
    asked, support = GRR(epsilon=1.0, size=3), np.array([500, 300, 200])
    there = estimate_counts(support, asked.distribution)
    here = asked.estimate(support, 1000, interval="exact")
    assert np.allclose(here.counts, there.counts[0])
    assert here.counts[2] < 0 < here.counts[1]
    assert np.allclose(here.standard_error[:2], there.standard_errors[0, :2] * 1000)
    assert math.isclose(here.standard_error[2], math.sqrt(asked.variance(1000)))
    assert np.allclose([here.low, here.high], [there.low[0] * 1000, there.high[0] * 1000])


# intervals


def coverage(asked: Any, people: int, confidence: float, interval: Any) -> np.ndarray:
    """With which probability the interval holds the true count, for each true count; exactly."""
    oracle = GRR(epsilon=1.0, size=people + 1)
    vars(oracle).update(keep=asked.keep, other=asked.other)
    found: Frequencies = oracle.estimate(np.arange(people + 1), people, confidence, interval)
    covered = []
    for true in range(people + 1):
        ours = stats.binom.pmf(np.arange(true + 1), true, asked.keep)
        theirs = stats.binom.pmf(np.arange(people - true + 1), people - true, asked.other)
        law = np.convolve(ours, theirs)
        near = 1e-9 * people
        covered.append(law[(found.low <= true + near) & (found.high >= true - near)].sum())
    return np.array(covered)


@pytest.mark.parametrize("confidence", [0.9, 0.99], ids=str)
@every_oracle
def test_exact_intervals_hold_at_least_as_often_as_they_say(oracle, confidence):
    """Computed for every true count, so there is nothing that chance could hide."""
    asked = oracle(epsilon=1.0, size=6)
    covered = coverage(asked, 60, confidence, "exact")
    assert covered.min() >= confidence - 1e-12
    assert covered.mean() <= confidence + 0.6 * (1 - confidence)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99], ids=str)
@every_oracle
def test_normal_intervals_hold_about_as_often_as_they_say(oracle, confidence):
    """Exactly, for every true count of 400 people."""
    covered = coverage(oracle(epsilon=1.0, size=20), 400, confidence, "normal")
    off = 0.4 * (1 - confidence)
    assert confidence - off <= covered.min() and covered.mean() <= confidence + off


@every_oracle
def test_intervals_are_within_the_people(oracle):
    asked = oracle(epsilon=0.3, size=4)
    found = asked.estimate(np.array([0, 3, 10, 20]), 20)
    assert (found.low >= 0).all() and (found.high <= 20).all() and (found.low <= found.high).all()
    assert found.counts.min() < 0 and found.counts.max() > 20, "counts are not cut off"


# simulation

PEOPLE = (2, 1, 0)
DRAWS = 12_000


@pytest.mark.parametrize("path", ["simulated", "reports"])
@every_oracle
def test_supports_of_all_values_have_the_joint_distribution(oracle, path, rng, seed):
    """Alpha 1e-9; detects a mean relative deviation of 0.13, and 60 % more epsilon."""
    asked, draws = oracle(epsilon=1.0, size=3), DRAWS if COMPILED else DRAWS // 4
    if path == "simulated":
        drawn = [tuple(asked.simulate_support(PEOPLE, rng).tolist()) for _ in range(draws)]
    else:
        values = np.tile(np.repeat([0, 1, 2], PEOPLE), draws)
        sent = asked.reports(values, words_for(seed % 1000, len(values)))
        vectors = np.array([vectors_of(asked)[row.tobytes()] for row in sent])
        drawn = [tuple(one) for one in vectors.reshape(draws, 3, 3).sum(axis=1).tolist()]
    detects = 0.13 if COMPILED else 0.26
    assert_law(drawn, joint_law(asked, PEOPLE), detects)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(drawn, joint_law(oracle(epsilon=1.6, size=3), PEOPLE), detects)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(drawn, joint_law(asked, (1, 1, 1)), detects)


@every_oracle
def test_simulated_supports_have_the_moments_of_reports(oracle, rng):
    """Means, variances and covariances of 40 values, from one report's, at 7 standard errors.

    The chance of a false alarm is below 1e-9; detects 1 % of a mean's distance from its neighbors
    and 40 % of a variance.
    """
    asked, runs = oracle(epsilon=1.0, size=5), 2000 if COMPILED else 200
    counts = np.array([400, 150, 0, 50, 2])
    mean, covariance = np.zeros(5), np.zeros((5, 5))
    for value, people in enumerate(counts):
        law = law_of(asked, value)
        vectors = np.array([vectors_of(asked)[report] for report in law], dtype=float)
        masses = np.array(list(law.values()))
        average = masses @ vectors
        mean += people * average
        covariance += people * ((vectors.T * masses) @ vectors - np.outer(average, average))
    found = np.array([asked.simulate_support(counts, rng) for _ in range(runs)])
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(found.mean(axis=0) - mean) < 7 * spread / math.sqrt(runs)).all()
    # a product of two nearly normal sums has a standard deviation of at most sqrt(2) spreads
    reach = 7 * math.sqrt(2 / runs) * np.outer(spread, spread)
    assert (np.abs(np.cov(found.T) - covariance) < 1.1 * reach).all()
    if oracle in (GRR, OLH):
        assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 1e-3, "they depend"


@every_oracle
def test_a_simulation_of_nobody_is_empty(oracle, rng):
    asked = oracle(epsilon=1.0, size=3)
    assert asked.simulate_support([0, 0, 0], rng).tolist() == [0, 0, 0]
    generator = simulation(Key.from_seed(1), "shares")
    many = asked.simulate_support(
        [10**6, 0, 0] if oracle is not OLH else [300_000, 0, 0], generator
    )
    assert_proportion(
        int(many[0]), 10**6 if oracle is not OLH else 300_000, asked.keep, detects=0.02
    )


# the hash


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 4), (1.0, 70), (2.0, 5)], ids=str)
def test_two_values_collide_with_one_known_probability(epsilon, size):
    """Over all hashes there are, for every pair: what the estimator assumes, and all of it."""
    asked = OLH(epsilon=epsilon, size=size)
    hashes = np.arange(asked.prime**2)
    cells = [asked._cell(np.full(len(hashes), v), hashes) for v in range(size)]
    (together,) = {int((a == b).sum()) for a, b in itertools.combinations(cells, 2)}
    assert together / len(hashes) == asked.collision
    assert 1 / asked.cells <= asked.collision <= (1 + 1e-3) / asked.cells


def test_a_hash_without_its_multiplier_would_collide_more_often():
    """The check above can fail: a seed that only shifts keeps neighbors together."""
    asked = OLH(epsilon=1.0, size=5)
    offsets = np.arange(asked.prime) + asked.prime  # multiplier 1
    cells = [asked._cell(np.full(asked.prime, v), offsets) for v in range(5)]
    assert len({int((a == b).sum()) for a, b in itertools.combinations(cells, 2)}) > 1


def test_primes():
    assert [hashed.prime_from(n) for n in (2, 8, 90, 1 << 24)] == [2, 11, 97, 16777259]
    assert all(reference.is_prime(hashed.prime_from(n)) for n in range(2, 300))


def test_cells_stay_few_enough_for_two_bytes():
    asked = OLH(epsilon=50.0, size=10)
    assert asked.cells == hashed.MOST_CELLS and asked.report_bytes == 7
    assert asked.support(asked.reports([3] * 50, words_for(1, 50)))[3] == 50


# choosing


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0], ids=str)
def test_grr_is_better_than_oue_below_three_e_to_epsilon_plus_two(epsilon):
    edge = 3 * math.exp(epsilon) + 2
    for size in range(2, math.ceil(edge) + 20):
        better, worse = (GRR, OUE) if size < edge else (OUE, GRR)
        best = better(epsilon=epsilon, size=size).variance(1)
        assert best < worse(epsilon=epsilon, size=size).variance(1)
        chosen = choose(epsilon, size)
        if isinstance(chosen, Hadamard):
            assert chosen.variance(1) < best
        else:
            assert isinstance(chosen, better)


def test_where_hadamard_is_best():
    """A fifth of the variance below the others at epsilon 1/2, and nowhere from 1 on."""
    sizes = range(2, 1100)
    assert [size for size in sizes if isinstance(choose(1.0, size), Hadamard)] == []
    found = [size for size in sizes if isinstance(choose(0.5, size), Hadamard)]
    assert found == list(range(6, 33))
    gain = Hadamard(epsilon=0.5, size=8).variance(1) / OUE(epsilon=0.5, size=8).variance(1)
    assert 0.80 < gain < 0.82


def test_small_reports_are_chosen_by_variance_and_work():
    assert isinstance(choose(4.0, 100, one_shot=True), GRR)
    assert isinstance(choose(1.0, 100, one_shot=True), OUE), "13 bytes are small enough"
    assert isinstance(choose(1.0, 1000, one_shot=True), OLH)
    assert isinstance(choose(1.0, 1000, people=10**7, one_shot=True), OLH)
    assert isinstance(choose(1.0, 1000, people=10**7 + 1, one_shot=True), Hadamard)
    with pytest.raises(UsageError, match="people=0"):
        choose(1.0, 1000, people=0)
    for epsilon, size in itertools.product((0.2, 1.0, 3.0), (2, 30, 500, 5000)):
        chosen = choose(epsilon, size, one_shot=True)
        small = [one(epsilon=epsilon, size=size) for one in ORACLES]
        small = [one for one in small if one.report_bytes <= 16]
        least = min(one.variance(1) for one in small)
        assert chosen in small and math.isclose(chosen.variance(1), least, rel_tol=1e-9)


# mutants


@dataclass(frozen=True, kw_only=True)
class IndexRemoved(GRR):
    """Others are drawn from the values 1 to size, from which what stands AT the truth is deleted.

    The truth stands one place earlier, so its successor is deleted in its stead.
    """

    def outcomes(self, value):
        others = np.delete(np.arange(self.size), (value + 1) % self.size).tolist()
        law = Counter({bytes([value]): self.keep})
        for said in others:
            law[bytes([said])] += (1 - self.keep) / len(others)
        return law


@dataclass(frozen=True, kw_only=True)
class AnyInstead(GRR):
    """Whoever does not keep the value draws from all of them."""

    def outcomes(self, value):
        law = {bytes([v]): (1 - self.keep) / self.size for v in range(self.size)}
        law[bytes([value])] += self.keep
        return law


@dataclass(frozen=True, kw_only=True)
class SymmetricWhole(OUE):
    """Each bit kept with e^epsilon / (e^epsilon + 1): twice epsilon for two bits that change."""

    @property
    def keep(self):
        return 1 - self.other


@dataclass(frozen=True, kw_only=True)
class HashOfValue(OLH):
    """The hash is not drawn but taken from the value."""

    def outcomes(self, value):
        return {k: m for k, m in super().outcomes(value).items() if k[0] % 2 == value % 2}


@dataclass(frozen=True, kw_only=True)
class FixedRow(Hadamard):
    """Rows only up to the value."""

    def outcomes(self, value):
        return {k: m for k, m in super().outcomes(value).items() if k[0] // 2 <= value}


@pytest.mark.parametrize(
    ("mutant", "ratio"),
    [
        (IndexRemoved, math.inf),
        (AnyInstead, 1 + math.e * 4 / 3),
        (SymmetricWhole, math.exp(2)),
        (HashOfValue, math.inf),
        (FixedRow, math.inf),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_mutant_that_gives_away_more_is_found(mutant, ratio):
    asked = mutant(epsilon=1.0, size=4)
    found = worst_ratio([asked.outcomes(value) for value in range(4)])
    assert math.isclose(found, ratio, rel_tol=1e-9) and found > math.e * 1.1


@dataclass(frozen=True, kw_only=True)
class Exchanged(OUE):
    """The probabilities of the true bit and of the others exchanged: as private, and useless."""

    def outcomes(self, value):
        law = {}
        for bits in itertools.product((0, 1), repeat=self.size):
            chance = [self.other if v == value else self.keep for v in range(self.size)]
            mass = math.prod(p if b else 1 - p for p, b in zip(chance, bits, strict=True))
            law[np.packbits(bits, bitorder="little").tobytes()] = mass
        return law


@dataclass(frozen=True, kw_only=True)
class SeedLost(OLH):
    """The report names another hash than the one that was used."""

    def outcomes(self, value):
        law: Counter[bytes] = Counter()
        for report, mass in super().outcomes(value).items():
            for number in (0, 1, 4000):
                law[number.to_bytes(2, "little") + report[2:]] += mass / 3
        return law


@pytest.mark.parametrize("mutant", [Exchanged, SeedLost], ids=lambda one: one.__name__)
def test_a_mutant_that_is_private_and_wrong_is_found_by_its_mean(mutant):
    asked = mutant(epsilon=1.0, size=3)
    outcomes = [asked.outcomes(value) for value in range(3)]
    assert worst_ratio(outcomes) <= math.e * (1 + 1e-9)
    for value, law in enumerate(outcomes):
        mean = sum(mass * asked.support([report]) for report, mass in law.items())
        expected = np.where(np.arange(3) == value, asked.keep, asked.other)
        assert np.abs(mean - expected).max() > 0.1


# refusals


@pytest.mark.parametrize(
    ("asked", "report", "reason"),
    [
        (GRR(epsilon=1.0, size=5), b"\x05", "value 5: must be below 5"),
        (GRR(epsilon=1.0, size=300), b"\x05", "1 bytes: must be 2"),
        (GRR(epsilon=1.0, size=300), b"\x2c\x01", "value 300"),
        (OUE(epsilon=1.0, size=5), b"\x20", "behind the last of 5"),
        (OUE(epsilon=1.0, size=9), b"\xff\x02", "behind the last of 9"),
        (OLH(epsilon=1.0, size=5), b"\xff\xff\x00", "hash 65535: must be below 4489"),
        (OLH(epsilon=1.0, size=5), b"\x00\x00\x04", "cell 4: must be below 4"),
        (Hadamard(epsilon=1.0, size=5), b"\x0e", "row and sign 14: must be below 14"),
        (Hadamard(epsilon=1.0, size=5), b"", "0 bytes: must be 1"),
        (Hadamard(epsilon=1.0, size=5), "1", "str: a report is bytes"),
    ],
    ids=str,
)
def test_what_no_device_reports_is_refused(asked, report, reason):
    with pytest.raises(DataError, match=reason):
        asked.refuse(report)
    with pytest.raises(DataError):
        asked.support([report])


ONE_BYTE = [oracle for oracle in SMALL if oracle.report_bytes == 1]


@pytest.mark.parametrize("oracle", ONE_BYTE, ids=str)
def test_what_is_not_refused_is_what_devices_report(oracle):
    """Of all 256 bytes."""
    accepted = set()
    for number in range(256):
        report = bytes([number])
        try:
            oracle.refuse(report)
        except DataError:
            continue
        accepted.add(report)
    assert accepted == law_of(oracle, 0).keys()


def test_full_last_bytes_are_fine():
    OUE(epsilon=1.0, size=8).refuse(b"\xff")
    OUE(epsilon=1.0, size=16).refuse(b"\xff\xff")
    assert OUE(epsilon=1.0, size=16).support([b"\xff\xff"] * 2).tolist() == [2] * 16


@every_oracle
def test_bad_questions_and_answers_are_refused(oracle):
    for bad in ({"epsilon": 0.0}, {"size": 1}, {"size": 2**24 + 1}, {"size": True}, {"size": 3.0}):
        with pytest.raises(UsageError, match=str(next(iter(bad)))):
            oracle(**({"epsilon": 1.0, "size": 3} | bad))
    asked, words = oracle(epsilon=1.0, size=3), words_for(1, 2)
    for values in ([0, 3], [-1, 0], [0.0, 1.0], [[0, 1]]):
        with pytest.raises(DataError, match="values: must be whole numbers from 0 to 2"):
            asked.reports(values, words)
    with pytest.raises(UsageError, match="keystream of 2 devices: 3 report"):
        asked.reports([0, 1, 2], words)
    for value in (3, -1, 1.0, True):
        with pytest.raises(DataError, match="value: must be a whole number from 0 to 2"):
            asked.report(value, words_for(1, 1))
    with pytest.raises(UsageError, match="keystream of 2 devices: one reports"):
        asked.report(1, words)
    with pytest.raises(DataError, match="matrix of bytes"):
        asked.support(np.zeros((2, asked.report_bytes + 1), dtype=np.uint8))
    for support, people in (([1, 2], 3), ([1, 2, 4], 3), ([-1, 2, 3], 3), ([0.5, 1, 1], 3)):
        with pytest.raises(DataError, match="support: must be 3 whole numbers"):
            asked.estimate(support, people)
    for wrong, match in (
        ({"people": 0}, "nothing to estimate"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"interval": "wide"}, "exact or normal"),
    ):
        with pytest.raises(UsageError, match=match):
            asked.estimate([0, 0, 0], **({"people": 3} | wrong))
    with pytest.raises(DataError, match="counts: must be 3"):
        asked.simulate_support([1, 2], None)
    with pytest.raises(UsageError, match="share=2"):
        asked.variance(10, 2)
    with pytest.raises(UsageError, match="people=0"):
        asked.variance(0)


@pytest.mark.parametrize("asked", [OUE(epsilon=1.0, size=17), OLH(epsilon=1.0, size=1000)], ids=str)
def test_too_many_reports_are_not_listed(asked):
    with pytest.raises(UsageError, match="too many"):
        asked.outcomes(0)


def test_nobody_reported():
    for oracle in ORACLES:
        asked = oracle(epsilon=1.0, size=10)
        none = asked.reports(np.zeros(0, dtype=int), words_for(1, 1).rows(np.zeros(0, dtype=int)))
        assert none.shape == (0, asked.report_bytes)
        assert asked.support(none).tolist() == asked.support([]).tolist() == [0] * 10


# kernels


def test_kernels_are_compiled_unless_numba_is_switched_off():
    for kernel in (_kernels.unary_bits, _kernels.hashed_support):
        assert hasattr(kernel, "py_func") == COMPILED


@pytest.mark.parametrize("size", [3, 9, 70])
def test_plain_kernels_give_the_same(size, rng):
    values = rng.integers(size, size=300)
    for oracle in (OUE, OLH):
        asked = oracle(epsilon=0.5, size=size)
        sent = asked.reports(values, words_for(1, 300))
        support = asked.support(sent)
        with plain_kernels():
            assert (asked.reports(values, words_for(1, 300)) == sent).all()
            assert (asked.support(sent) == support).all()


@pytest.mark.parametrize("size", [1, 3, 4, 7, 11])
def test_bits_and_open_bits_are_those_of_the_definition(size, rng):
    """With a wide stretch that does not tell, compiled and plain, against a loop over bits."""
    low, high, first, people = 0x3000, 0x7FFF, 4, 50
    words = rng.integers(0, 2**64, (people, (size + 3) // 4), dtype=np.uint64)
    values = rng.integers(first + size, size=people)
    expected, between = np.zeros((people, 2 + (size + 3) // 8), dtype=np.uint8), []
    for i, v in itertools.product(range(people), range(size)):
        piece = int(words[i, v // 4]) >> 16 * (v % 4) & 0xFFFF
        is_own = values[i] == first + v
        if piece < (0x8000 if is_own else low):
            expected[i, (first + v) // 8] |= 1 << (first + v) % 8
        elif piece <= high and not is_own:
            between.append((first + size) * i + first + v)
    kernel = _kernels.unary_bits
    for one in (kernel, getattr(kernel, "py_func", kernel)):
        out, ties = np.zeros_like(expected), np.zeros(4 * words.size, dtype=np.int64)
        found = one(words, values, first, first + size, low, high, out, ties)
        assert (out == expected).all()
        assert sorted(ties[:found].tolist()) == sorted(between) and between


# the page

PAGE = DOCS / "frequency.md"


def test_every_example_of_the_page_runs_as_printed():
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "frequency", PAGE.name, 0)
    assert len(test.examples) >= 8
    runner, said = doctest.DocTestRunner(verbose=False), []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_table_of_the_page_is_what_is_computed():
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
    assert len(lines) == 9
    for line in lines:
        cells = [cell.strip().replace(",", "") for cell in line.strip("| ").split("|")]
        epsilon, size = float(cells[0]), int(cells[1])
        for oracle, cell in zip(ORACLES, cells[2:], strict=True):
            asked = oracle(epsilon=epsilon, size=size)
            error, bytes_ = cell.strip("*").split(" (")
            assert int(error.strip("*")) == round(math.sqrt(asked.variance(100_000)))
            assert bytes_.rstrip(")*") == f"{asked.report_bytes} B"
