"""What the laws say of themselves, and that the same bits come out for any cutting."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.sampling import distributions
from tempriv.sampling.distributions import (
    Bernoulli,
    CategoryFlip,
    DiscreteGaussian,
    DiscreteLaplace,
    PlanarLattice,
    Staircase,
    UniformChoice,
    discrete_laplace_varying,
    draw,
)
from tempriv.sampling.geometric import geometric_table
from tempriv.sampling.keys import EPOCH
from tempriv.sampling.keystream import Keystream
from tests.reference import noise as reference
from tests.sampling.test_noise import SCALES, STAIRS
from tests.support.paths import GOLDEN
from tests.support.scripted import run

pytest_plugins = ["tests.support.statistics"]

GOLDEN_FILE = GOLDEN / "noise.json"

# the mass functions


def test_the_mass_of_discrete_laplace_is_its_definition():
    for scale in [Fraction(1, 20), *SCALES.values(), Fraction(2**37)]:
        law = DiscreteLaplace(scale)
        points = sorted({0, 1, -1, 2, math.floor(scale), -math.ceil(3 * scale), 10})
        for k, mass in reference.discrete_laplace(scale, points).items():
            assert law.pmf(k) == pytest.approx(float(mass), rel=1e-12)


def test_the_mass_of_discrete_gaussian_is_its_definition():
    # both ways of adding up: past a spread of 2500 the sum is an integral to double precision
    for variance in [Fraction(1, 20), Fraction(1), Fraction(22, 7), Fraction(10**4)]:
        law = DiscreteGaussian(variance)
        points = [0, 1, -1, 3, math.isqrt(math.ceil(variance)) * 4]
        for k, mass in reference.discrete_gaussian(variance, points).items():
            assert law.pmf(k) == pytest.approx(float(mass), rel=1e-12)
    for spread in (2499, 2500, 2501):
        points = np.arange(-40 * spread, 40 * spread + 1)
        total = math.fsum(np.exp(-((points / spread) ** 2) / 2))
        assert 1 / DiscreteGaussian(Fraction(spread**2)).pmf(0) == pytest.approx(total, rel=1e-12)


def test_the_mass_of_the_staircase_is_its_definition():
    for law in STAIRS.values():
        points = [0, 1, -1, law.inner - 1, law.inner, -law.width, 2 * law.width + law.inner]
        masses = reference.staircase(law.epsilon, law.width, law.inner, points)
        for k, mass in masses.items():
            assert law.pmf(k) == pytest.approx(float(mass), rel=1e-12)


def test_the_mass_of_randomized_response_is_its_definition():
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(30), Fraction(40)):
        for choices in (2, 5, 1000):
            law = CategoryFlip(epsilon, choices)
            masses = reference.randomized_response(epsilon, choices)
            for k in (0, 1, choices - 1):
                assert law.pmf(k) == pytest.approx(float(masses[k]), rel=1e-12, abs=0)
            assert law.pmf(-1) == law.pmf(choices) == 0
            assert law.keep == law.pmf(0)


def test_the_mass_of_the_lattice_is_its_definition():
    for rate in (Fraction(1, 2), Fraction(2), Fraction(15)):
        mass = reference.planar_mass(rate)
        law = PlanarLattice(rate)
        assert law.pmf((0, 0)) == pytest.approx(float(1 / mass), rel=1e-13)
        expected = math.exp(-float(rate) * 5) / float(mass)
        assert law.pmf((3, -4)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rate", ["0.02", "0.04", "0.0499999", "0.05", "0.0500001", "0.06"])
def test_the_mass_of_a_fine_lattice_is_the_same_added_up_and_by_waves(rate):
    rows = reference.planar_mass_by_rows(float(rate))
    assert rows == pytest.approx(reference.planar_mass_by_waves(float(rate)), rel=2e-12)
    assert 1 / PlanarLattice(Fraction(rate)).pmf((0, 0)) == pytest.approx(rows, rel=1e-12)


def test_the_mass_of_a_very_fine_lattice_is_that_of_the_plane():
    rate = Fraction(1, 10**6)
    plane = 2 * math.pi * 10**12
    assert 1 / PlanarLattice(rate).pmf((0, 0)) == pytest.approx(plane, rel=1e-12)


def test_the_mass_of_simple_choices():
    assert [Bernoulli(Fraction(1, 3)).pmf(k) for k in (-1, 0, 1, 2)] == [0, 2 / 3, 1 / 3, 0]
    assert [UniformChoice(4).pmf(k) for k in (-1, 0, 3, 4)] == [0, 0.25, 0.25, 0]


LAWS = {
    "laplace 0.05": DiscreteLaplace(Fraction(1, 20)),
    "laplace 7/3": DiscreteLaplace(Fraction(7, 3)),
    "laplace 300": DiscreteLaplace(Fraction(300)),
    "gaussian 1/4": DiscreteGaussian(Fraction(1, 4)),
    "gaussian 22/7": DiscreteGaussian(Fraction(22, 7)),
    "gaussian 1e4": DiscreteGaussian(Fraction(10**4)),
    "staircase steep": STAIRS["steep"],
    "staircase wide": STAIRS["wide"],
    "uniform 6": UniformChoice(6),
    "bernoulli 0": Bernoulli(Fraction(0)),
    "bernoulli 1/3": Bernoulli(Fraction(1, 3)),
    "bernoulli 1": Bernoulli(Fraction(1)),
    "response 2": CategoryFlip(Fraction(1), 2),
    "response 5": CategoryFlip(Fraction(1, 2), 5),
    "lattice 5": PlanarLattice(Fraction(5)),
    "lattice 2": PlanarLattice(Fraction(2)),
    "lattice 1/3": PlanarLattice(Fraction(1, 3)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-6, 1e-10])
def test_outcomes_leave_out_at_most_the_tail_and_sum_to_one(law, tail):
    outcomes = law.outcomes(tail)
    assert len({k for k, _ in outcomes}) == len(outcomes)
    assert all(p == law.pmf(k) and p > 0 for k, p in outcomes)
    total = math.fsum(p for _, p in outcomes)
    assert 1 - tail - 1e-13 <= total <= 1 + 1e-12


def test_mean_magnitude_is_the_mean_of_the_magnitude():
    for scale in [Fraction(1, 20), Fraction(1, 2), Fraction(7, 3), Fraction(300)]:
        law = DiscreteLaplace(scale)
        mean = 2 * math.fsum(k * law.pmf(k) for k in range(1, math.ceil(45 * scale) + 20))
        assert law.mean_magnitude == pytest.approx(mean, rel=1e-12)
    for scale in (Fraction(1, 701), Fraction(1, 10**6)):
        assert 0 <= DiscreteLaplace(scale).mean_magnitude < 1e-300
    assert DiscreteLaplace(Fraction(2**37)).mean_magnitude == pytest.approx(2.0**37, rel=1e-12)


def test_mean_distance_is_the_mean_of_the_distance():
    for rate in ("5", "1", "0.15", "0.049"):
        points, weights = reference.planar_grid(float(rate), math.ceil(45 / float(rate)))
        mean = float(np.hypot(*points.T) @ weights / weights.sum())
        # 2 / rate below 0.05, where the grain of the lattice weighs 7e-6 at most
        assert PlanarLattice(Fraction(rate)).mean_distance == pytest.approx(mean, rel=1e-5)


def test_parameters_that_cannot_be_meant_are_refused_by_name():
    half = Fraction(1, 2)
    for make, message in [
        (lambda: DiscreteLaplace(Fraction(0)), "scale=0: must be > 0"),
        (lambda: DiscreteLaplace(Fraction(-1)), "scale=-1: must be > 0"),
        (lambda: DiscreteGaussian(Fraction(0)), "variance=0: must be > 0"),
        (lambda: Staircase(Fraction(0), 1, 1), "epsilon=0: must be > 0"),
        (lambda: Staircase(half, 0, 1), "width=0: must be >= 1"),
        (lambda: Staircase(half, 3, 0), "inner=0: must be from 1 to 3"),
        (lambda: Staircase(half, 3, 4), "inner=4: must be from 1 to 3"),
        (lambda: UniformChoice(0), "choices=0: must be >= 1"),
        (lambda: UniformChoice(2**62), "must be >= 1 and < 2\\^62"),
        (lambda: Bernoulli(Fraction(-1, 2)), "probability=-1/2: must be from 0 to 1"),
        (lambda: Bernoulli(Fraction(3, 2)), "probability=3/2: must be from 0 to 1"),
        (lambda: CategoryFlip(Fraction(0), 2), "epsilon=0: must be > 0"),
        (lambda: CategoryFlip(half, 1), "1 categories: at least 2 are needed"),
        (lambda: PlanarLattice(Fraction(0)), "rate=0: must be > 0"),
        (lambda: geometric_table(Fraction(2**40)), "the grid is too fine for this much noise"),
    ]:
        with pytest.raises(UsageError, match=message):
            make()
    for scale in (0.0, -1.0, math.nan, math.inf, 2.0**40):
        with pytest.raises(UsageError, match="scales: each must be > 0 and < 2"):
            discrete_laplace_varying(np.array([1.0, scale]), Keystream([run(0, 2)], "noise"))


# the same bits, however the rows are cut


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_any_cutting_of_the_rows_gives_the_same_draws(law, rng):
    count = 3000
    whole = draw(law, [run(5, count, start=EPOCH - 1001)], "noise")
    assert len(whole) == count
    cuts = [0, *sorted(rng.integers(0, count, 4).tolist()), count]
    parts = [
        draw(law, [run(5, high - low, start=EPOCH - 1001 + low)], "noise")
        for low, high in itertools.pairwise(cuts)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    some = np.flatnonzero(rng.random(count) < 0.1)
    words = Keystream([run(5, count, start=EPOCH - 1001)], "noise")
    np.testing.assert_array_equal(law.sample(words.rows(some)), whole[some])


def test_varying_scales_do_not_depend_on_what_stands_beside(rng):
    count = 3000
    scales = np.exp(rng.uniform(-3, 12, count))
    words = Keystream([run(5, count)], "noise")
    whole = discrete_laplace_varying(scales, words)
    some = np.flatnonzero(rng.random(count) < 0.1)
    np.testing.assert_array_equal(
        discrete_laplace_varying(scales[some], words.rows(some)), whole[some]
    )


@pytest.mark.parametrize("name", ["laplace 7/3", "gaussian 22/7", "response 5", "lattice 2"])
def test_large_blocks_are_drawn_in_parts_that_change_nothing(name, monkeypatch):
    runs = [run(1, 700), run(2, 1), run(4, 0), run(3, 1299, start=EPOCH - 50)]
    whole = draw(LAWS[name], runs, "noise")
    for part in (1, 7, 700, 1000, 1999):
        monkeypatch.setattr(distributions, "BATCH_ROWS", part)
        parts = draw(LAWS[name], runs, "noise")
        assert parts.dtype == whole.dtype == np.int64 and parts.flags.owndata
        np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_no_rows_give_no_draws(law):
    assert len(draw(law, [], "noise")) == 0


def golden():
    """The first values of each law; change them only together with a note in the changelog."""
    values = {
        name: draw(law, [run(2024, 20)], "noise").tolist()
        for name, law in {
            **LAWS,
            "laplace 2^20": DiscreteLaplace(Fraction(2**20)),
            "laplace 1000/7": DiscreteLaplace(Fraction(1000, 7)),
            "gaussian 2^30/3": DiscreteGaussian(Fraction(2**30 + 1, 3)),
            "uniform 3 2^60": UniformChoice(3 << 60),
            "lattice 1/50": PlanarLattice(Fraction(1, 50)),
        }.items()
    }
    scales = np.geomspace(0.3, 2.0**30, 20)
    words = Keystream([run(2024, 20)], "noise")
    values["laplace varying"] = discrete_laplace_varying(scales, words).tolist()
    return values


def test_the_draws_from_a_fixed_seed_never_change():
    assert golden() == json.loads(GOLDEN_FILE.read_text())
