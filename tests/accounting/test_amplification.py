"""Shuffled answers: the bound against every outcome of small surveys, and against its own pair."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import time
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.accounting.shuffling import (
    RELATIVE_STEP,
    ROUNDING_LOSS,
    Shuffled,
    closed_form,
    shuffled_delta,
    shuffled_epsilon,
)
from tempriv.errors import UsageError
from tempriv.privacy.guarantees import Approximate
from tests.support.paths import DOCS

Bound = Callable[[float, int, float], float]

# a recipe: whole-number odds of each answer (columns) under each value (rows); rows add up alike
Recipe = tuple[tuple[int, ...], ...]
RATIOS = [Fraction(11, 10), Fraction(2), Fraction(3), Fraction(8), Fraction(30)]
DELTAS = [1e-4, 1e-2, 0.1, 0.3]


def response(ratio: Fraction, choices: int) -> Recipe:
    """Generalized randomized response (GRR)."""
    true, other = ratio.numerator, ratio.denominator
    return tuple(tuple(true if x == y else other for y in range(choices)) for x in range(choices))


def unary(ratio: int, choices: int) -> Recipe:
    """A bit for each value, as OUE sends them: own bit 1 with 1/2, others with 1/(ratio + 1)."""
    answers = list(itertools.product((0, 1), repeat=choices))
    return tuple(
        tuple(
            math.prod(1 if i == x else (1 if bit else ratio) for i, bit in enumerate(bits))
            for bits in answers
        )
        for x in range(choices)
    )


def subsets(ratio: int, choices: int, size: int) -> Recipe:
    """A set of values, likelier where it holds the own one."""
    answers = list(itertools.combinations(range(choices), size))
    return tuple(tuple(ratio if x in y else 1 for y in answers) for x in range(choices))


# an answer that says nothing; two values that answer nearly alike, and a third that does not
SILENT: Recipe = ((5, 1, 1, 2), (1, 5, 1, 2), (1, 1, 5, 2))
ALIKE: Recipe = ((8, 8, 1, 2), (8, 7, 2, 2), (1, 1, 8, 9))


def ratio_of(recipe: Recipe) -> Fraction:
    return max(Fraction(max(column), min(column)) for column in zip(*recipe, strict=True))


def add(law: np.ndarray, odds: tuple[int, ...]) -> np.ndarray:
    """One more answer among the counted ones: exact, in whole numbers."""
    more = np.zeros_like(law)
    for answer, weight in enumerate(odds):
        put: list[slice] = [slice(None)] * law.ndim
        take = list(put)
        put[answer], take[answer] = slice(1, None), slice(None, -1)
        more[tuple(put)] += weight * law[tuple(take)]
    return more


def surveys(recipe: Recipe, people: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The laws of the unordered answers, for any two values of one and all values of the others.

    Both directions of each pair. For GRR, where values can be renamed, one pair is all pairs.
    """
    assert len({sum(odds) for odds in recipe}) == 1 and sum(recipe[0]) ** people < 2**62
    empty = np.zeros((people + 1,) * len(recipe[0]), dtype=np.int64)
    empty[(0,) * empty.ndim] = 1
    values = range(len(recipe))
    renamed = recipe == response(ratio_of(recipe), len(recipe))
    for others in itertools.combinations_with_replacement(values, people - 1):
        law = empty
        for x in others:
            law = add(law, recipe[x])
        laws = [add(law, recipe[x]).ravel() for x in values]
        scale = float(sum(recipe[0]) ** people)
        for a, b in [(0, 1), (1, 0)] if renamed else itertools.permutations(values, 2):
            seen = (laws[a] > 0) | (laws[b] > 0)
            yield laws[a][seen] / scale, laws[b][seen] / scale


def most_used(recipe: Recipe, people: int, bound: Bound) -> float:
    """The largest part of delta that any survey uses at the epsilon of a bound; above 1: wrong."""
    epsilon0 = math.log(ratio_of(recipe))
    factors = [math.exp(bound(epsilon0, people, delta)) for delta in DELTAS]
    return max(
        float(np.maximum(here - factor * there, 0).sum()) / delta
        for here, there in surveys(recipe, people)
        for factor, delta in zip(factors, DELTAS, strict=True)
    )


# every outcome


@pytest.mark.parametrize("choices", [2, 3, 4])
@pytest.mark.parametrize("ratio", RATIOS, ids=str)
def test_no_survey_by_randomized_response_loses_more(ratio, choices):
    for people in range(2, 9):
        assert most_used(response(ratio, choices), people, shuffled_epsilon) <= 1 + 1e-12


@pytest.mark.parametrize(
    ("recipe", "most"),
    [
        (unary(3, 2), 6),
        (unary(8, 3), 3),
        (subsets(3, 4, 2), 3),
        (subsets(20, 3, 2), 6),
        (SILENT, 6),
        (ALIKE, 6),
    ],
)
def test_no_survey_by_another_recipe_loses_more(recipe, most):
    for people in range(2, most + 1):
        assert most_used(recipe, people, shuffled_epsilon) <= 1 + 1e-12


def yes_or_no(ratio: float, people: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Randomized response between two answers among many: the laws of the number of yes."""
    true = ratio / (1 + ratio)

    def counts(size: int, chance: float) -> np.ndarray:
        k = np.arange(size + 1)
        ways = np.array([math.log(math.comb(size, i)) for i in k])
        return np.exp(ways + k * math.log(chance) + (size - k) * math.log1p(-chance))

    for yes in sorted({0, 1, people // 4, people // 2, 3 * people // 4, people - 2, people - 1}):
        others = np.convolve(counts(yes, true), counts(people - 1 - yes, 1 - true))
        one = np.convolve(others, [1 - true, true]), np.convolve(others, [true, 1 - true])
        yield from (one, one[::-1])


def most_used_by_many(ratio: float, people: int, delta: float, bound: Bound) -> float:
    factor = math.exp(bound(math.log(ratio), people, delta))
    return max(
        float(np.maximum(here - factor * there, 0).sum()) / delta
        for here, there in yes_or_no(ratio, people)
    )


MANY = [(1.5, 100, 0.05), (2.0, 300, 1e-3), (20.0, 2000, 0.01), (3.0, 1500, 1e-9)]


@pytest.mark.parametrize(("ratio", "people", "delta"), MANY)
def test_no_larger_survey_of_yes_and_no_loses_more(ratio, people, delta):
    used = most_used_by_many(ratio, people, delta, shuffled_epsilon)
    assert used <= 1
    assert most_used_by_many(ratio, people, delta, closed_form) <= used


# that these checks would see a wrong bound


def pair_delta(
    ratio: Fraction, people: int, factor: Fraction, clone: Fraction | None = None
) -> Fraction:
    """The hockey-stick divergence of P and Q at ln(factor), by their definition."""
    clone = 1 / ratio if clone is None else clone
    true = ratio / (1 + ratio)
    here: dict[tuple[int, int], Fraction] = {}
    there: dict[tuple[int, int], Fraction] = {}
    for c in range(people):
        so_many = math.comb(people - 1, c) * clone**c * (1 - clone) ** (people - 1 - c)
        for a in range(c + 1):
            state = so_many * Fraction(math.comb(c, a), 2**c)
            for d, chance in ((1, true), (0, 1 - true)):
                p, q = (a + d, c - a + 1 - d), (a + 1 - d, c - a + d)
                here[p] = here.get(p, Fraction(0)) + state * chance
                there[q] = there.get(q, Fraction(0)) + state * chance
    forth = sum(max(here[s] - factor * there[s], Fraction(0)) for s in here)
    back = sum(max(there[s] - factor * here[s], Fraction(0)) for s in here)
    assert forth == back
    return forth


def with_clones(clone: Callable[[Fraction], Fraction]) -> Bound:
    """The same bound, with another probability that someone else is a clone."""

    def bound(epsilon0: float, people: int, delta: float) -> float:
        ratio = Fraction(math.exp(epsilon0)).limit_denominator(100)
        low, high = 0.0, epsilon0
        for _ in range(12):
            middle = (low + high) / 2
            factor = Fraction(math.exp(middle))
            small = pair_delta(ratio, people, factor, clone(ratio)) <= Fraction(delta)
            low, high = (low, middle) if small else (middle, high)
        return high

    return bound


MUTANTS: dict[str, Bound] = {
    "four times the people": lambda e, n, d: shuffled_epsilon(e, 4 * n, d),
    "twice the people": lambda e, n, d: shuffled_epsilon(e, 2 * n, d),
    "e^epsilon0 for e^-epsilon0": with_clones(lambda ratio: min(ratio, Fraction(1))),
    "clones where there are none": with_clones(lambda ratio: 1 - 1 / ratio),
    "half of epsilon0": lambda e, n, d: shuffled_epsilon(e / 2, n, d),
    "ten times delta": lambda e, n, d: shuffled_epsilon(e, n, min(10 * d, 0.99)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_is_found_by_enumeration(name):
    assert any(
        most_used(response(Fraction(ratio), 2), people, MUTANTS[name]) > 1.01
        for ratio, people in ((3, 3), (8, 4), (30, 5))
    )


def test_the_right_pair_passes_where_the_wrong_ones_fail():
    right = with_clones(lambda ratio: 1 / ratio)
    for ratio, people in ((3, 3), (8, 4), (30, 5)):
        assert most_used(response(Fraction(ratio), 2), people, right) <= 1


def test_a_formula_with_the_wrong_sign_is_found_by_enumeration():
    """Four times the people is not found here: the formula is too large by more than its half."""

    def wrong(epsilon0: float, people: int, delta: float) -> float:
        odds = math.exp(-epsilon0)
        spread = 8 * math.sqrt(odds * math.log(4 / delta) / people) + 8 * odds / people
        return math.log1p(math.tanh(epsilon0 / 2) * spread)

    assert most_used_by_many(20.0, 2000, 0.01, closed_form) <= 1
    assert most_used_by_many(20.0, 2000, 0.01, wrong) > 1.01


# against the definition of P and Q


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
@pytest.mark.parametrize("people", [1, 2, 3, 5, 12, 25])
def test_delta_is_that_of_the_pair(ratio, people):
    for part in (Fraction(0), Fraction(1, 50), Fraction(1, 3), Fraction(9, 10)):
        factor = 1 + part * (ratio - 1)
        expected = float(pair_delta(ratio, people, factor))
        found = shuffled_delta(math.log(ratio), people, math.log(factor))
        assert expected * (1 + ROUNDING_LOSS / 2) <= found <= expected * (1 + 2 * ROUNDING_LOSS)


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
@pytest.mark.parametrize("people", [2, 4, 20])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_epsilon_is_the_least_that_keeps_delta(ratio, people, delta):
    epsilon = shuffled_epsilon(math.log(ratio), people, delta)
    assert pair_delta(ratio, people, Fraction(math.exp(epsilon))) <= Fraction(delta)
    less = epsilon * (1 - 2 * RELATIVE_STEP)
    assert epsilon == 0 or pair_delta(ratio, people, Fraction(math.exp(less))) > Fraction(delta)


def decimal_delta(epsilon: float, epsilon0: float, people: int) -> Decimal:
    """The same by tails of binomials in 60 digits, from one number of clones to the next.

    With b and S the probabilities of k - 1 and of k or more heads in c flips, k the first count
    with P > e^epsilon Q: p (b + S) + (1 - p) S - e^epsilon ((1 - p) (b + S) + p S).
    """
    with localcontext() as context:
        context.prec = 60
        half, factor, odds = Decimal("0.5"), Decimal(epsilon).exp(), Decimal(epsilon0).exp()
        true, clone, others = odds / (1 + odds), 1 / odds, people - 1
        cut = (factor * true - 1 + true) / ((2 * true - 1) * (1 + factor))
        reach = 15 * math.sqrt(float(others * clone * (1 - clone))) + 60
        c = max(int(float(others * clone) - reach), 0)
        weight = math.comb(others, c) * clone**c * (1 - clone) ** (others - c)
        k = int(cut * (c + 1)) + 1
        b = math.comb(c, k - 1) * half**c
        tail = sum((math.comb(c, a) for a in range(k, min(k + 4000, c) + 1)), 0) * half**c
        found = Decimal(0)
        while c <= min(float(others * clone) + reach, others):
            gained = true * (b + tail) + (1 - true) * tail
            found += weight * (gained - factor * ((1 - true) * (b + tail) + true * tail))
            weight *= (others - c) * clone / ((c + 1) * (1 - clone))
            tail, b, c = tail + b / 2, b * (c + 1) / (2 * (c + 2 - k)), c + 1
            if int(cut * (c + 1)) + 1 > k:
                b *= Decimal(c - k + 1) / k
                tail, k = tail - b, k + 1
        return found


@pytest.mark.parametrize(
    ("epsilon0", "people", "delta"),
    [(0.05, 2000, 1e-9), (1.0, 2000, 1e-4), (4.0, 20_000, 1e-6), (7.0, 100_000, 1e-20)],
)
def test_delta_stays_exact_for_many_people_and_is_never_below(epsilon0, people, delta):
    for epsilon in (shuffled_epsilon(epsilon0, people, delta), epsilon0 / 3):
        expected = decimal_delta(epsilon, epsilon0, people)
        if expected > Decimal("1e-38"):
            above = Decimal(shuffled_delta(epsilon0, people, epsilon)) / expected - 1
            assert ROUNDING_LOSS / 2 <= above <= 2 * ROUNDING_LOSS


# known figures, order, size


def test_what_yes_and_no_among_a_thousand_come_to():
    """The exact figure that the page sets against the bound."""
    pairs = list(yes_or_no(math.e, 1000))
    below, above = (
        max(float(np.maximum(here - math.exp(epsilon) * there, 0).sum()) for here, there in pairs)
        for epsilon in (0.126, 0.127)
    )
    assert below > 1e-6 >= above


def test_the_figures_of_the_authors():
    """What their code prints (github.com/apple/ml-shuffling-amplification, README)."""
    assert 0.1675385583317841 < shuffled_epsilon(4.0, 100_000, 1e-6) < 0.172790550755978


HELD = [
    (e, n, d)
    for e in (0.01, 0.5, 1.0, 3.0, 7.0)
    for n in (100, 5000, 10**6)
    for d in (1e-12, 1e-6, 0.1)
    if n >= 16 * math.log(2 / d) * math.exp(e)
]


@pytest.mark.parametrize(("epsilon0", "people", "delta"), HELD)
def test_the_formula_is_never_below_the_number(epsilon0, people, delta):
    formula, number = (f(epsilon0, people, delta) for f in (closed_form, shuffled_epsilon))
    odds = math.exp(epsilon0)
    written = math.log(
        1
        + (odds - 1)
        / (odds + 1)
        * (8 * math.sqrt(odds * math.log(4 / delta)) / math.sqrt(people) + 8 * odds / people)
    )
    assert formula == pytest.approx(min(written, epsilon0), rel=1e-9)
    assert number <= formula <= epsilon0
    assert shuffled_delta(epsilon0, people, formula) <= delta


def test_the_formula_is_refused_where_its_condition_does_not_hold():
    assert math.log(632 / (16 * math.log(2 / 1e-6))) >= 1 > math.log(631 / (16 * math.log(2e6)))
    assert closed_form(1.0, 632, 1e-6) <= 1
    with pytest.raises(UsageError, match=r"^people=631: the formula needs at least 632 answers"):
        closed_form(1.0, 631, 1e-6)
    with pytest.raises(UsageError, match=r"at least 9.7e\+27 answers of epsilon0=60"):
        closed_form(60.0, 10**9, 0.01)


def test_epsilon_falls_with_people_and_delta_and_grows_with_epsilon0():
    people = [1, 2, 3, 5, 10, 30, 100, 1000, 10**4, 10**6]
    for epsilon0 in (0.1, 1.0, 5.0):
        found = [shuffled_epsilon(epsilon0, n, 1e-6) for n in people]
        assert all(a >= b for a, b in itertools.pairwise(found))
        assert found[-1] < found[0] / 5
    for n in (2, 100, 10**5):
        found = [shuffled_epsilon(1.0, n, d) for d in (1e-30, 1e-12, 1e-6, 1e-3, 0.1, 0.46, 0.9)]
        assert all(a >= b for a, b in itertools.pairwise(found))
        assert found[-1] == 0
        found = [shuffled_epsilon(e, n, 1e-6) for e in (1e-7, 0.01, 0.1, 1.0, 3.0, 10.0, 200.0)]
        assert all(a <= b for a, b in itertools.pairwise(found))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.floats(1e-9, 200.0),
    st.integers(1, 10**5),
    st.floats(-69.0, -0.01).map(math.exp),
    st.floats(0.0, 1.0),
)
def test_it_is_never_more_than_epsilon0_and_keeps_its_delta(epsilon0, people, delta, part):
    epsilon = shuffled_epsilon(epsilon0, people, delta)
    assert 0 <= epsilon <= epsilon0
    assert shuffled_delta(epsilon0, people, epsilon) <= delta
    # delta falls as epsilon grows, and is at most that of one answer alone
    at, less = shuffled_delta(epsilon0, people, part * epsilon0), part * epsilon0 / 2
    assert at <= shuffled_delta(epsilon0, people, less) <= math.tanh(epsilon0 / 2) * 1.00001


@pytest.mark.parametrize("epsilon0", [0.01, 0.7, 4.0, 12.0])
@pytest.mark.parametrize("people", [2, 10**7])
def test_it_takes_well_under_a_second(epsilon0, people):
    began = time.process_time()
    shuffled_epsilon(epsilon0, people, 1.234e-7)
    assert time.process_time() - began < 1


# the value, in words


def test_the_sentence_says_against_whom_it_holds():
    one = Shuffled(epsilon0=2.0, people=5000, delta=1e-7)
    assert one.loss == Approximate(one.epsilon, 1e-7)
    assert one.epsilon == shuffled_epsilon(2.0, 5000, 1e-7)
    shown = re.search(
        r"any one of 5,000 honest answers .* epsilon = (\S+), delta = 1e-07\. "
        r"It holds only against someone who sees nothing but the answers",
        one.sentence,
    )
    assert shown is not None
    assert one.epsilon <= float(shown[1]) <= one.epsilon * 1.001
    assert one.sentence.endswith("the server, an answer keeps its own epsilon = 2 and no more.")
    assert "Hiding among the clones" in one.source and "2021" in one.source
    told = " ".join(one.conditions)
    for words in ("in an order", "no delta", "same question", "5,000 honest answers", "one answer"):
        assert words in told
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.people = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("epsilon0=0: must be a number > 0", lambda: Shuffled(0, 10, 1e-6)),
        ("epsilon0=nan: must be", lambda: shuffled_epsilon(math.nan, 10, 1e-6)),
        ("epsilon0=201: must be at most 200", lambda: shuffled_delta(201, 10, 1.0)),
        ("people=0: must be a whole number >= 1", lambda: Shuffled(1.0, 0, 1e-6)),
        ("people=2.5: must be a whole", lambda: shuffled_epsilon(1.0, 2.5, 1e-6)),  # type: ignore[arg-type]
        ("people=1000000001: must be at most", lambda: shuffled_epsilon(1.0, 10**9 + 1, 1e-6)),
        ("delta=0: must be at least 1e-30", lambda: Shuffled(1.0, 10, 0)),
        ("delta=1.0: must be", lambda: closed_form(1.0, 10, 1.0)),
        ("epsilon=-1: must be", lambda: shuffled_delta(1.0, 10, -1)),
    ],
)
def test_what_cannot_be_meant_is_refused(sentence, call):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_the_table_of_the_page_is_what_is_computed():
    page = (DOCS / "accounting.md").read_text()
    section = page.partition("## Answers that are shuffled")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    assert len(rows) >= 5
    answers = [int(cell.replace(",", "")) for cell in rows[0][1:]]
    for epsilon0, *cells in rows[2:]:
        for people, cell in zip(answers, cells, strict=True):
            found = shuffled_epsilon(float(epsilon0), people, 1e-6)
            assert found <= float(cell) <= found * 1.006 + 5e-5
