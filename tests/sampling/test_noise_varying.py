"""Draws whose law differs from row to row are draws of those laws, whatever they are drawn with."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.sampling import distributions
from tempriv.sampling.distributions import CategoryFlip, PlanarLattice, Varying
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import MAX_CACHED_STREAMS, Keystream, StepRange
from tests.conformance.case_checks import quick
from tests.support.scripted import ONES, scripted, split, write_number
from tests.support.statistics import COMPILED, assert_cells, cells_detect, counted, joined

pytest_plugins = ["tests.support.statistics"]

ANSWERS = [
    [CategoryFlip(Fraction(part), choices) for part in ("1/100", "1/3", "1", "9")]
    for choices in (2, 3, 7)
]
RATES = [Fraction(rate) for rate in ("1/20", "1/3", "1", "7/2")]
PLACES = [PlanarLattice(rate) for rate in RATES]
DRAWS = 60_000 if COMPILED else 3_000


def words(count, seed=0, purpose="varying", start=0):
    return Keystream([StepRange(Key.from_seed(seed).series("test", "a"), start, count)], purpose)


def chosen(rng, laws, count):
    return rng.integers(0, len(laws), count)


# answers


@pytest.mark.parametrize("laws", ANSWERS, ids=lambda laws: f"{laws[0].choices} choices")
def test_answers_have_the_bits_of_their_own_distribution(laws, rng):
    which = chosen(rng, laws, 500)
    found = Varying(laws, which).sample(words(500))
    for number, law in enumerate(laws):
        rows = which == number
        assert rows.sum() > 50
        assert np.array_equal(found[rows], law.sample(words(500))[rows])


def test_a_word_on_the_edge_of_its_distribution_is_decided_by_more_digits():
    """In a row of its own: a cut of one law is no edge for another."""
    laws = ANSWERS[1]
    script, expected, which = {}, [], []
    for number, law in enumerate(laws):
        low, _ = law.cuts.reals[0].bounds(128)
        for digits, is_kept in ((low - 2**20, True), (low + 2**20, False)):
            write_number(script, (), len(which), [*split(digits, 2), ONES])
            which.append(number)
            expected.append(is_kept)
    found = Varying(laws, np.array(which)).sample(scripted(len(which), script))
    assert (found == 0).tolist() == expected
    # and the first word alone would not have told them apart
    firsts = scripted(len(which), script).read()
    assert (firsts[::2] == firsts[1::2]).all()


# places


def places_of(law, rng, count):
    """Draws for the rows that have the law, among rows that have others."""
    which = chosen(rng, PLACES, len(PLACES) * count)
    drawn = Varying(PLACES, which).sample(words(len(which), seed=PLACES.index(law)))
    return drawn[which == PLACES.index(law)]


def coded(pairs, base):
    return np.asarray(pairs) @ np.array([base, 1])


def assert_law(found, law):
    """Chi-square, alpha 1e-9, over cells of pairs in the order of their first number."""
    outcomes = law.outcomes(1e-9)
    base = 2 * int(max(np.abs(found).max(), max(abs(k[0]) for k, _ in outcomes))) + 1
    pairs = coded([k for k, _ in outcomes], base).tolist()
    masses = [p for _, p in outcomes]
    edges, cells = joined(list(zip(pairs, masses, strict=True)), len(found), most=30)
    detects = 1.01 * cells_detect(len(found), len(cells))
    # a root mean square of the deviations of cells of 6.6 % in 60,000 draws, 30 % in 3,000
    assert detects < (0.08 if COMPILED else 0.35)
    assert_cells(counted(coded(found, base), edges), cells, detects=detects)


@pytest.mark.parametrize("law", PLACES[1:], ids=str)
def test_places_follow_their_own_distribution(law, rng):
    found = places_of(law, rng, DRAWS)
    assert_law(found, law)
    assert_law(found[:, ::-1], law)  # neither axis is another


def cut_off(law, shares):
    """Distances that so much of the law lies within, with what lies between them exactly."""
    distances = law._distances().ravel()
    masses = np.exp(-float(law.rate) * distances)
    order = np.argsort(distances)
    summed = np.cumsum(masses[order]) / masses.sum()
    edges = [distances[order][np.searchsorted(summed, share)] for share in shares]
    edges = [edge + 1e-9 for edge in edges]
    within = [masses[distances <= edge].sum() / masses.sum() for edge in edges]
    return edges, np.diff([0.0, *within, 1.0])


def test_places_of_a_fine_lattice_are_as_far_as_they_should_be(rng):
    """By distance and direction; too many places to count each."""
    law = PLACES[0]
    found = places_of(law, rng, DRAWS)
    edges, cells = cut_off(law, [i / 12 for i in range(1, 12)])
    detects = 1.01 * cells_detect(len(found), len(cells))
    assert detects < (0.06 if COMPILED else 0.25)
    assert_cells(
        np.bincount(np.searchsorted(edges, np.hypot(*found.T)), minlength=12),
        cells,
        detects=detects,
    )
    quarter = (found[:, 0] > 0) * 2 + (found[:, 1] > 0)
    kept = quarter[(found != 0).all(axis=1)]
    assert_cells(np.bincount(kept, minlength=4), [0.25] * 4, detects=detects)


@pytest.mark.parametrize("law", PLACES[1:], ids=str)
@pytest.mark.parametrize(
    "factor", [Fraction(9, 10), Fraction(11, 10)] if COMPILED else [Fraction(1, 2)], ids=str
)
def test_another_rate_is_told_apart(law, factor, rng):
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(places_of(law, rng, DRAWS), PlanarLattice(law.rate * factor))


def test_the_distribution_of_the_row_before_is_told_apart(rng):
    """Rows that are drawn again after a refusal keep their law."""

    class Shifted(Varying):
        def __init__(self, laws, which):
            super().__init__(laws, np.roll(which, 1))

    law = PLACES[2]
    which = chosen(rng, PLACES, len(PLACES) * DRAWS)
    found = Shifted(PLACES, which).sample(words(len(which)))[which == 2]
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(found, law)


def test_proposals_are_never_below_the_distribution():
    """The ratio that a pair is accepted with is at most 1: slopes stay below 1 / sqrt 2."""
    for k in range(1, 4000, 7):
        rate = Fraction(k, 997)
        scale = float(1 / (rate * PlanarLattice.SLOPE))
        slope = 1 / (rate * Fraction(scale))
        assert 2 * slope * slope <= 1


def test_exact_arithmetic_decides_the_same(rng):
    """Where nothing is left to floating point, every row is what it was."""
    which = chosen(rng, PLACES, 40)
    found = Varying(PLACES, which).sample(words(40))
    with mock.patch.object(distributions, "MARGIN", 1e9):
        assert np.array_equal(Varying(PLACES, which).sample(words(40)), found)


# rows by themselves

ALL_LAWS = [*ANSWERS, PLACES]


@pytest.mark.parametrize("laws", ALL_LAWS, ids=lambda laws: f"{laws[0]}")
@pytest.mark.parametrize("kept", [False, True], ids=["", "remembered"])
def test_any_rows_by_themselves_have_the_same_bits(laws, kept):
    count = 60
    which = np.random.default_rng(5).integers(0, len(laws), count)
    whole = Varying(laws, which).sample(words(count))
    known = words(count).cached() if kept else words(count)

    @quick
    @given(st.sets(st.integers(0, count - 1), min_size=1))
    def holds(some):
        rows = np.array(sorted(some))
        part = Varying(laws, which[rows]).sample(known.rows(rows))
        assert np.array_equal(part, whole[rows])

    holds()
    # and laws that no row has, or has under another number, change nothing
    more = Varying([*laws, laws[0]], np.where(which == 0, len(laws), which)).sample(known)
    assert np.array_equal(more, whole)


@pytest.mark.parametrize("laws", ALL_LAWS, ids=lambda laws: f"{laws[0]}")
def test_one_distribution_for_all_rows(laws):
    for number, law in enumerate(laws):
        found = Varying(laws, np.full(200, number)).sample(words(200))
        alone = Varying([law], np.zeros(200, dtype=np.int64)).sample(words(200))
        assert np.array_equal(found, alone)


# words that are kept


def test_remembered_words_are_the_same_words():
    """For any rows, in any order of asking, over several runs and the end of an epoch."""
    keys = [Key.from_seed(1).series("spec", name) for name in "ab"]
    runs = [StepRange(keys[0], EPOCH - 7, 30), StepRange(keys[1], 3, 25)]
    plain, kept = Keystream(runs, "purpose"), Keystream(runs, "purpose").cached()

    @quick
    @given(
        st.lists(
            st.tuples(
                st.sets(st.integers(0, 54), min_size=1),
                st.integers(0, 20),
                st.lists(st.integers(0, 5), max_size=2),
                st.booleans(),
            ),
            max_size=12,
        )
    )
    def holds(asked):
        for some, stream, substreams, half in asked:
            rows = np.array(sorted(some))
            found = []
            for one in (plain, kept):
                for substream in substreams:
                    one = one.substream(substream)
                one = one.rows(rows)
                found.append(one.read_half(stream) if half else one.read(stream))
            assert np.array_equal(*found) and found[0].dtype == found[1].dtype

    holds()
    assert len(kept._cache) == MAX_CACHED_STREAMS, "no more streams are kept than there is room for"


def test_remembering_twice_is_remembering_once():
    kept = words(10).cached()
    assert kept.cached() is kept
    some = kept.rows(np.array([2, 5]))
    assert np.array_equal(some.read(3), words(10).read(3)[[2, 5]])
    assert np.array_equal(kept.rows(np.array([2, 5])).rows(np.array([1])).read(3), some.read(3)[1:])
    for row in (0, 9):
        assert kept.read_one(row, 3) == words(10).read_one(row, 3)
    assert math.prod(kept.read(4).shape) == 10


def test_what_was_handed_out_can_be_written_on():
    """A sampler that works in place spoils nobody else's words."""
    kept = words(10).cached()
    rows = np.array([1, 2, 3])
    kept.rows(rows).read(0)[:] = 0
    kept.read(0)[:] = 0
    assert np.array_equal(kept.rows(rows).read(0), words(10).read(0)[rows])
