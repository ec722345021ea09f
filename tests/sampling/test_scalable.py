"""Laplace noise whose scale a kernel finds as it goes: its law, its edges, and settling."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from numba import njit

from tempriv.audit.exact import Outcomes, mass_above
from tempriv.sampling import _kernels, distributions
from tempriv.sampling._kernels import UNDECIDED
from tempriv.sampling.distributions import DiscreteGaussian, DiscreteLaplace, ScalableLaplace
from tests.support.scripted import ONES, run, scripted
from tests.support.statistics import COMPILED, assert_cells, cells_detect, counted, joined

pytest_plugins = ["tests.support.statistics"]

DRAWS = 200_000 if COMPILED else 5_000


@njit
def every_row(words, scale, out):
    for row in range(out.size):
        out[row] = _kernels.laplace(words, row, scale)


def drawn(source, scale, count):
    out = np.empty(count, dtype=np.int64)
    every_row(source.words, scale, out)
    for row in np.flatnonzero(out == UNDECIDED).tolist():
        source.settle(row, scale)
        out[row] = source.words.settled[row]
    return out


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.25, 1000.5])
def test_draws_follow_the_distribution(seed, scale):
    """Chi-square with alpha 1e-9, which detects what ``cells_detect`` says of so many draws."""
    values = drawn(ScalableLaplace([run(seed, DRAWS)], "noise"), scale, DRAWS)
    listed = DiscreteLaplace(Fraction(scale)).outcomes(1e-12)
    edges, masses = joined(listed, DRAWS, most=30)
    detects = cells_detect(DRAWS, len(masses)) * 1.01
    assert detects < (0.05 if COMPILED else 0.3)
    assert_cells(counted(values, edges), masses, detects=detects)


@pytest.mark.parametrize("scale", [0.5, 12.0, 2.0**30])
def test_what_is_decided_fast_is_what_exact_arithmetic_says(seed, scale):
    count = 300
    source, exact = (ScalableLaplace([run(seed, count)], "noise") for _ in range(2))
    fast = drawn(source, scale, count)
    for row in range(count):
        exact.settle(row, scale)
    assert np.array_equal(fast, exact.words.settled)


def test_no_row_is_decided_on_an_edge(seed):
    """A size or a sign that floating point cannot tell is left to further digits."""
    # U = e^(-1/scale) is where the size goes from 0 to 1; plus has probability 1/(1 + e^(-1/scale))
    scale = 4.0
    edge = int(np.exp(-1 / scale) * 2.0**63) << 1
    sign = int(1 / (1 + np.exp(-1 / scale)) * 2.0**64)
    script = {((), 0): {0: edge, 1: 5 << 60, 2: 0}, ((), 1): {1: sign}}
    with mock.patch.object(distributions, "Keystream", lambda runs, purpose: scripted(3, script)):
        source = ScalableLaplace([], "noise")
    out = np.empty(3, dtype=np.int64)
    every_row(source.words, scale, out)
    assert (out == UNDECIDED).all()
    for row in range(3):
        source.settle(row, scale)
    settled = source.words.settled
    assert settled[0] in (0, 1, -1, -2)
    assert settled[2] > 40 * scale or settled[2] < -40 * scale, "a word of zeros is a far tail"
    every_row(source.words, scale, out)
    assert np.array_equal(out, settled), "a settled draw is used again"


def test_further_digits_decide_an_edge_either_way():
    scale, found = 4.0, set()
    sign = int(1 / (1 + np.exp(-1 / scale)) * 2.0**64)
    exact = 1 / (1 + Fraction(np.exp(-1 / scale)))
    for word in (0, ONES):
        near = int(exact * 2**64)
        assert abs(near - sign) < 2**12
        script = {((), 0): {0: 5 << 60}, ((), 1): {0: near + (2**11 if word else -(2**11))}}
        with mock.patch.object(
            distributions, "Keystream", lambda runs, purpose, script=script: scripted(1, script)
        ):
            source = ScalableLaplace([], "noise")
        source.settle(0, scale)
        found.add(bool(source.words.settled[0] >= 0))
    assert found == {True, False}


def test_draws_do_not_depend_on_the_cutting(seed):
    whole = drawn(ScalableLaplace([run(seed, 50)], "noise"), 3.5, 50)
    parts = [
        drawn(ScalableLaplace([run(seed, 20, start=0)], "noise"), 3.5, 20),
        drawn(ScalableLaplace([run(seed, 30, start=20)], "noise"), 3.5, 30),
    ]
    assert np.array_equal(np.concatenate(parts), whole)


# in audits


def test_rows_that_nobody_asks_about_are_not_listed():
    source = Outcomes([], 1e-6)
    source.begin(3)
    rows = source.each(DiscreteLaplace(Fraction(1)), "noise")
    assert source.sizes == []
    assert rows.above(1, 0) in (True, False) and source.sizes == [2]
    with pytest.raises(AssertionError, match="used twice"):
        rows.at(1)
    with pytest.raises(AssertionError, match="same words"):
        source(DiscreteLaplace(Fraction(1)), "noise")
    source(DiscreteLaplace(Fraction(1)), "other")
    with pytest.raises(AssertionError, match="same words"):
        source.each(DiscreteLaplace(Fraction(1)), "other")
    with pytest.raises(AssertionError, match="two distributions"):
        source.each(DiscreteLaplace(Fraction(2)), "noise")


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(5))])
@pytest.mark.parametrize("cut", [-9, -1, 0, 1, 7])
def test_the_mass_above_a_cut_is_added_up(law, cut):
    assert mass_above(law, cut) == pytest.approx(
        sum(law.pmf(k) for k in range(cut + 1, 400)), rel=1e-12
    )
