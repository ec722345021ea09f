"""Distances of sequences are what their definitions say, for every kind and any lengths."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest

from tempriv.errors import TemprivError
from tempriv.local.shapes._distance_kernels import BATCH_SEQUENCES
from tempriv.local.shapes.distance import distances, ranked_distances
from tempriv.local.shapes.sequences import LETTERS, Sequences, longest_of
from tests.reference import distance as reference
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]

KINDS = ("dtw", "levenshtein", "euclidean")
EVERY = [list(row) for length in range(5) for row in itertools.product(range(3), repeat=length)]


def some(rng, count, symbols, longest):
    return [rng.integers(0, symbols, rng.integers(0, longest + 1)).tolist() for _ in range(count)]


def of(rows, symbols):
    return Sequences.of(rows, symbols=symbols)


@pytest.mark.parametrize("prefix", [False, True], ids=["whole", "prefix"])
@pytest.mark.parametrize("symbols", [2, 4, 26])
@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_the_definition(kind, symbols, prefix, rng):
    # more than are worked on together, and a last lot that is not full
    count = BATCH_SEQUENCES + 37 if COMPILED else 60
    ours, theirs = some(rng, count, symbols, 9), some(rng, 9, symbols, 12)
    theirs += [[], [0], [symbols - 1]]
    found = distances(kind, of(ours, symbols), of(theirs, symbols), prefix=prefix)
    wanted = [
        [reference.ALL[kind](one[: len(two)] if prefix else one, two) for two in theirs]
        for one in ours
    ]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_symmetric_and_zero_where_they_should_be(kind):
    """Over all sequences of up to four of three symbols, those without a symbol included."""
    everything = of(EVERY, 3)
    found = distances(kind, everything, everything)
    assert (found == found.T).all() and (found >= 0).all()
    equal = [[one == two for two in EVERY] for one in EVERY]
    merged = [[reference.merged(one) == reference.merged(two) for two in EVERY] for one in EVERY]
    if kind == "dtw":
        assert ((found == 0) == merged).all()
    if kind == "levenshtein":
        assert ((found == 0) == equal).all()
    compressed = [i for i, one in enumerate(EVERY) if reference.merged(one) == one]
    assert ((found == 0) == equal)[np.ix_(compressed, compressed)].all()


def detour_is_never_shorter(kind, rows):
    found = distances(kind, of(rows, 3), of(rows, 3))
    detours = (found[:, :, None] + found[None, :, :]).min(axis=1)
    return bool((detours >= found - 1e-12).all())


def test_which_are_metrics():
    assert detour_is_never_shorter("levenshtein", EVERY)
    assert detour_is_never_shorter("euclidean", [one for one in EVERY if len(one) == 4])
    # from a to bc costs 3, or the root of 5; from a to b, and from there to bc, 1 each
    for kind in ("dtw", "euclidean"):
        assert not detour_is_never_shorter(kind, [[0], [1], [1, 2]])


def test_the_end_of_the_shorter_one_stays_where_it_is():
    rows = Sequences.of(["ab", "abb", "aba"], symbols=2)
    assert distances("euclidean", rows, rows).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("symbols", [2, 4, 26])
def test_the_longest_and_farthest_are_counted_in_full(symbols):
    most = longest_of(symbols)
    ends = Sequences.of([LETTERS[0] * most, LETTERS[symbols - 1] * most], symbols=symbols)
    apart = symbols - 1
    assert distances("dtw", ends, ends)[0, 1] == most * apart
    assert distances("levenshtein", ends, ends)[0, 1] == most
    assert distances("euclidean", ends, ends)[0, 1] == math.sqrt(most * apart**2)
    turns = Sequences.of([[0, apart] * (most // 2), [0] * most], symbols=symbols)
    wanted = reference.dtw([0, apart] * (most // 2), [0] * most)
    assert distances("dtw", turns, turns)[0, 1] == wanted


@pytest.mark.parametrize("prefix", [False, True], ids=["whole", "prefix"])
@pytest.mark.parametrize("symbols", [2, 4, 26])
@pytest.mark.parametrize("kind", KINDS)
def test_equally_far_ones_are_told_apart_and_no_others_are_exchanged(kind, symbols, prefix, rng):
    most = longest_of(symbols)
    ends = [[0] * most, [symbols - 1] * most]
    rows = of(ends + some(rng, 40, symbols, most), symbols)
    apart, finer = (
        measured(kind, rows, rows, prefix=prefix) for measured in (distances, ranked_distances)
    )
    if kind != "euclidean":
        assert np.array_equal(np.floor(finer), apart)
        places = distances("euclidean", rows, rows, prefix=prefix)
        for row, steps, near in zip(finer, apart, places, strict=True):
            assert np.array_equal(np.lexsort((near, steps)), np.argsort(row, kind="stable"))


@pytest.mark.parametrize("prefix", [False, True], ids=["whole", "prefix"])
@pytest.mark.parametrize("kind", KINDS)
def test_none_against_some(kind, prefix):
    none, one = Sequences.of([], symbols=3), Sequences.of(["ab"], symbols=3)
    assert distances(kind, none, one, prefix=prefix).shape == (0, 1)
    assert distances(kind, one, none, prefix=prefix).shape == (1, 0)
    assert distances(kind, none, none, prefix=prefix).shape == (0, 0)


def test_refusals(monkeypatch):
    two, three = Sequences.of(["ab"], symbols=2), Sequences.of(["ab"], symbols=3)
    with pytest.raises(
        TemprivError, match="kind='hamming': must be one of dtw, levenshtein, euclidean"
    ):
        distances("hamming", two, two)
    with pytest.raises(TemprivError, match="must be over one alphabet"):
        distances("dtw", two, three)
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(TemprivError, match=r"need more packages: pip install 'tempriv\[shapes\]'"):
        distances("levenshtein", two, two)
