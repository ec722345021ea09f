"""The samplers: what is drawn follows the law, and what is off by one per cent is detected."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

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
from tempriv.sampling.keystream import Keystream
from tests.reference import noise as reference
from tests.support.scripted import run
from tests.support.statistics import (
    COMPILED,
    DRAWS,
    assert_cells,
    assert_mean,
    assert_proportion,
    assert_rare,
    counted,
    cumulant,
    joined,
    stated,
)

pytest_plugins = ["tests.support.statistics"]


def sampled(law, seed):
    return draw(law, [run(seed, DRAWS)], "noise")


SCALES = {
    "0.3": Fraction(3, 10),
    "0.5": Fraction(1, 2),
    "1": Fraction(1),
    "7/3": Fraction(7, 3),
    "10": Fraction(10),
    "1000/7": Fraction(1000, 7),
    "65537.2": Fraction(655372, 10),
    "2^20": Fraction(2**20),
}


def laplace_cumulant(unit, scale):
    """Of |k| / unit: the mass is tanh(a / 2) e^(-a |k|) with a = 1 / scale."""
    a = 1 / scale
    return lambda t: math.log(math.tanh(a / 2) / math.tanh((a - t / unit) / 2))


def laplace_below(scale, k):
    """P(X <= k) in closed form."""
    ratio = math.exp(-1 / scale)
    if k < 0:
        return math.exp(k / scale) / (1 + ratio)
    return 1 - math.exp(-(k + 1) / scale) / (1 + ratio)


def assert_fair_signs(sample, detects):
    """As many plus as minus signs, also far out, and no memory of the sign before."""
    signs = np.sign(sample[sample != 0])
    assert_proportion(int((signs > 0).sum()), len(signs), 0.5, detects=detects)
    repeated = int((signs[1:] == signs[:-1]).sum())
    assert_proportion(repeated, len(signs) - 1, 0.5, detects=detects)
    far = sample[np.abs(sample) > np.median(np.abs(sample[sample != 0]))]
    if len(far) > len(sample) / 5:
        assert_proportion(int((far > 0).sum()), len(far), 0.5, detects=1.6 * detects)


def assert_laplace(sample, scale, *, scale_off, cell_off, tail_off, cells_off):
    """The tests of a discrete Laplace law, each with what it detects."""
    draws, s = len(sample), float(scale)
    unit = max(s, 1.0)
    size = np.abs(sample)
    family = functools.partial(laplace_cumulant, unit)
    assert_mean(float(size.mean()) / unit, draws, family, s, detects=scale_off)

    # the middle, and each side beyond a point that a twentieth passes
    edge = math.floor(s * 2.3)
    tail = 1 - laplace_below(s, edge)
    center = math.floor(s * 0.7)
    middle = laplace_below(s, center) - laplace_below(s, -center - 1)
    assert_proportion(int((size <= center).sum()), draws, middle, detects=cell_off)
    assert_proportion(int((sample > edge).sum()), draws, tail, detects=tail_off)
    assert_proportion(int((sample < -edge).sum()), draws, tail, detects=tail_off)

    # cells of equal mass, as many as there are integers for
    quantile = np.linspace(0, 1, 41)[1:-1]
    sign = np.where(quantile < 0.5, 1, -1)
    wanted = np.round(sign * s * np.log(2 * np.minimum(quantile, 1 - quantile)))
    edges = np.unique(wanted.astype(np.int64))
    edges = edges[
        [draws * laplace_below(s, k) > 200 < draws * (1 - laplace_below(s, k)) for k in edges]
    ]
    masses = np.diff([0, *(laplace_below(s, k) for k in edges.tolist()), 1])
    assert_cells(counted(sample, edges), masses, detects=cells_off)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES.keys())
def test_discrete_laplace_detects_one_percent_of_the_scale(scale, seed):
    sample = sampled(DiscreteLaplace(scale), seed)
    assert_laplace(
        sample,
        scale,
        scale_off=stated(0.01 if scale >= Fraction(1, 2) else 0.012),
        cell_off=stated(0.02),
        tail_off=stated(0.07),
        cells_off=stated(0.015),
    )
    assert_fair_signs(sample, detects=stated(0.05 if scale < Fraction(1, 2) else 0.025))


@pytest.mark.parametrize("scale", [Fraction(1000, 7), Fraction(2**20)], ids=["1000/7", "2^20"])
def test_each_binary_digit_of_a_discrete_laplace_draw_is_right(scale, seed):
    # the digits of a geometric variable are independent: bit b of it is 1 with odds r^(2^b)
    size = np.abs(sampled(DiscreteLaplace(scale), seed))
    rate = 1 / float(scale)
    counted_twice = 2 / (1 + math.exp(-rate))
    for bit in range(math.ceil(math.log2(scale)) + 2):
        odds = math.exp(-rate * 2**bit)
        probability = counted_twice * odds / (1 + odds)
        ones = int((size >> bit & 1).sum())
        assert_proportion(ones, DRAWS, probability, detects=stated(0.07 if odds < 0.2 else 0.025))


def test_a_discrete_laplace_distribution_of_tiny_scale_is_mostly_zero(seed):
    # P(not 0) is 4e-9 at scale 1/20: what is seen is only that there is no more than 2e-5
    # (1e-3 when plain); the tail itself is tested next
    sample = sampled(DiscreteLaplace(Fraction(1, 20)), seed)
    rare = 2 * math.exp(-20) / (1 + math.exp(-20))
    assert_rare(np.count_nonzero(sample), DRAWS, rare, detects=2e-5 if COMPILED else 1e-3)


def gaussian_statistic(sample, spread):
    """The square of k in units of the spread, coarsened so that its law can be added up."""
    return (np.abs(sample) * 32 // spread / 32) ** 2


def gaussian_family(unit, reach):
    points = np.arange(-reach, reach + 1)
    values, place = np.unique(gaussian_statistic(points, unit), return_inverse=True)

    def family(spread):
        weights = np.exp(-((points / spread) ** 2) / 2)
        return cumulant(values, np.bincount(place, weights))

    return family


@pytest.mark.parametrize(
    "variance",
    [Fraction(1, 4), Fraction(1), Fraction(22, 7), Fraction(10**4), Fraction(2**30 + 1, 3)],
    ids=["1/4", "1", "22/7", "1e4", "2^30/3"],
)
def test_discrete_gaussian_detects_one_percent_of_the_spread(variance, seed):
    sample = sampled(DiscreteGaussian(variance), seed)
    spread = math.sqrt(variance)
    reach = math.ceil(12 * spread) + 1
    unit = max(1, math.floor(spread))
    assert_mean(
        float(gaussian_statistic(sample, unit).mean()),
        DRAWS,
        gaussian_family(unit, reach),
        spread,
        detects=stated(0.01),
    )
    points = np.arange(-reach, reach + 1)
    weights = np.exp(-(points.astype(float) ** 2) / (2 * float(variance)))
    weights /= weights.sum()
    far = np.abs(points) > 1.5 * spread
    assert_proportion(
        int((np.abs(sample) > 1.5 * spread).sum()),
        DRAWS,
        float(weights[far].sum()),
        detects=stated(0.05),
    )
    edges, masses = joined(list(zip(points.tolist(), weights.tolist(), strict=True)), DRAWS)
    assert_cells(counted(sample, edges), masses, detects=stated(0.02))
    assert_fair_signs(sample, detects=stated(0.03))


STAIRS = {
    "steep": Staircase(Fraction(2), 3, 1),
    "one step": Staircase(Fraction(1, 2), 1, 1),
    "all inner": Staircase(Fraction(1, 3), 4, 4),
    "wide": Staircase(Fraction(11, 10), 100, 37),
}


@pytest.mark.parametrize("law", STAIRS.values(), ids=STAIRS.keys())
def test_staircase_detects_one_percent_of_epsilon(law, seed):
    sample = sampled(law, seed)
    reach = math.ceil(60 / law.epsilon) * law.width
    points = np.arange(-reach, reach + 1)
    drops = np.abs(points) // law.width + (np.abs(points) % law.width >= law.inner)

    def weights(epsilon):
        return np.exp(-epsilon * drops) / np.exp(-epsilon * drops).sum()

    # the number of drops is the whole of what a draw says of epsilon
    unit = 2 / float(law.epsilon)
    fallen = np.abs(sample) // law.width + (np.abs(sample) % law.width >= law.inner)

    def family(scale):
        return cumulant(np.arange(drops.max() + 1) / unit, np.bincount(drops, weights(1 / scale)))

    scale = 1 / float(law.epsilon)
    assert_mean(float(fallen.mean()) / unit, DRAWS, family, scale, detects=stated(0.01))
    mass = weights(float(law.epsilon))
    edges, masses = joined(list(zip(points.tolist(), mass.tolist(), strict=True)), DRAWS)
    assert_cells(counted(sample, edges), masses, detects=stated(0.02))
    for k in (0, law.inner, -law.inner, law.width):
        if law.pmf(k) > 0.05:
            count = int((sample == k).sum())
            assert_proportion(count, DRAWS, float(mass[points == k][0]), detects=stated(0.05))
    # within a step all places are alike: the cells of one step as a law of its own
    inner = np.abs(sample[np.abs(sample) % law.width < law.inner]) % law.width
    inner = inner[np.abs(inner) > 0]  # zero has no sign, so it is rarer
    if law.inner > 2:
        assert_cells(
            np.bincount(inner, minlength=law.inner)[1:],
            np.full(law.inner - 1, 1 / (law.inner - 1)),
            detects=stated(0.03),
        )
    assert_fair_signs(sample, detects=stated(0.03))


@pytest.mark.parametrize(
    "probability",
    [Fraction(1, 2), Fraction(1, 3), Fraction(99, 100), Fraction(1, 50), Fraction(0.1)],
    ids=["1/2", "1/3", "0.99", "0.02", "float 0.1"],
)
def test_bernoulli_counts_are_right(probability, seed):
    ones = int(sampled(Bernoulli(probability), seed).sum())
    few = float(min(probability, 1 - probability))
    count = ones if probability <= Fraction(1, 2) else DRAWS - ones
    assert_proportion(count, DRAWS, few, detects=stated(0.09 if few < 0.05 else 0.03))


def test_bernoulli_of_nothing_and_everything_and_of_next_to_nothing(seed):
    assert not sampled(Bernoulli(Fraction(0)), seed).any()
    assert sampled(Bernoulli(Fraction(1)), seed).all()
    tiny = Fraction(1, 2**70)
    detects = 2e-5 if COMPILED else 1e-3
    assert_rare(int(sampled(Bernoulli(tiny), seed).sum()), DRAWS, float(tiny), detects=detects)
    zeros = DRAWS - int(sampled(Bernoulli(1 - tiny), seed).sum())
    assert_rare(zeros, DRAWS, float(tiny), detects=detects)


@pytest.mark.parametrize("choices", [1, 2, 3, 10, 50])
def test_uniform_choice_is_uniform(choices, seed):
    sample = sampled(UniformChoice(choices), seed)
    assert sample.min() >= 0 and sample.max() < choices
    if choices > 1:
        counts = np.bincount(sample, minlength=choices)
        assert_cells(counts, np.full(choices, 1 / choices), detects=stated(0.015))
        assert_proportion(
            int(counts[0]), DRAWS, 1 / choices, detects=stated(0.01 * math.sqrt(choices) + 0.01)
        )


def test_uniform_choice_of_three_quarters_of_all_words_is_uniform(seed):
    # the remainder of a word alone would fall into the first third twice as often
    choices = 3 << 60
    sample = sampled(UniformChoice(choices), seed)
    cell = sample // (1 << 60)
    assert_cells(np.bincount(cell, minlength=3), np.full(3, 1 / 3), detects=stated(0.015))


@pytest.mark.parametrize("choices", [2, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10)], ids=["1", "0.1"])
def test_randomized_response_counts_are_right(epsilon, choices, seed):
    counts = np.bincount(sampled(CategoryFlip(epsilon, choices), seed), minlength=choices)
    law = [float(p) for p in reference.randomized_response(epsilon, choices)]
    assert_proportion(int(counts[0]), DRAWS, law[0], detects=stated(0.02))
    assert_cells(counts, law, detects=stated(0.015))


def planar_radius(points, rate):
    return np.floor(np.hypot(points[:, 0], points[:, 1]) * rate * 16) / 16


@pytest.mark.parametrize(
    "rate", [Fraction(2), Fraction(1, 3), Fraction(1, 50)], ids=["coarse", "1/3", "fine"]
)
def test_planar_lattice_detects_one_percent_of_the_rate(rate, seed):
    sample = sampled(PlanarLattice(rate), seed)
    speed = float(rate)
    reach = math.ceil(36 / speed)
    points, weights = reference.planar_grid(speed, reach)
    values, place = np.unique(planar_radius(points, speed), return_inverse=True)

    def family(scale):
        mass = weights * np.exp((speed - 1 / scale) * np.hypot(points[:, 0], points[:, 1]))
        return cumulant(values, np.bincount(place, mass))

    radius = planar_radius(sample, speed)
    assert_mean(float(radius.mean()), DRAWS, family, 1 / speed, detects=stated(0.01))

    weights = weights / weights.sum()
    size = np.abs(sample)
    # rings, and in each how far from the axes: on an axis, on a diagonal, nearer to either
    turn = np.where(points.min(axis=1) == 0, 0, 1 + (points.min(axis=1) * 2 > points.max(axis=1)))
    ring = np.searchsorted([1, 2, 3, 4], np.hypot(points[:, 0], points[:, 1]) * speed)
    turned = np.where(size.min(axis=1) == 0, 0, 1 + (size.min(axis=1) * 2 > size.max(axis=1)))
    ringed = np.searchsorted([1, 2, 3, 4], np.hypot(size[:, 0], size[:, 1]) * speed)
    masses = np.bincount(3 * ring + turn, weights, minlength=15)
    counts = np.bincount(3 * ringed + turned, minlength=15)
    scarce = masses * DRAWS < 200
    masses = np.append(masses[~scarce], masses[scarce].sum())
    counts = np.append(counts[~scarce], counts[scarce].sum())
    if masses[-1] * DRAWS < 200:
        masses, counts = (np.append(x[:-2], x[-2:].sum()) for x in (masses, counts))
    assert_cells(counts, masses, detects=stated(0.015))

    for axis in (0, 1):
        assert_fair_signs(sample[:, axis], detects=stated(0.03))
    off = sample[(sample != 0).all(axis=1)]
    alike = int(((off[:, 0] > 0) == (off[:, 1] > 0)).sum())
    assert_proportion(alike, len(off), 0.5, detects=stated(0.05))
    above = off[np.abs(off[:, 0]) != np.abs(off[:, 1])]
    if len(above) > DRAWS / 20:
        steep = int((np.abs(above[:, 0]) > np.abs(above[:, 1])).sum())
        assert_proportion(steep, len(above), 0.5, detects=stated(0.05))


def test_the_coarse_lattice_has_the_mass_of_each_point(seed):
    sample = sampled(PlanarLattice(Fraction(2)), seed)
    mass = float(reference.planar_mass(Fraction(2)))
    for i, j in [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)]:
        probability = math.exp(-2 * math.hypot(i, j)) / mass
        count = int(((sample[:, 0] == i) & (sample[:, 1] == j)).sum())
        assert_proportion(count, DRAWS, probability, detects=stated(0.01 / math.sqrt(probability)))


def test_rows_with_scales_of_their_own_follow_each_its_distribution(seed):
    # 250 000 draws for each, 20 000 when plain, which detect a scale 2 % off, 8 % when plain
    scales = [0.5, 3.7, 1000.25, 2**20.5]
    count, off = (DRAWS, 1) if COMPILED else (4 * DRAWS, 4)
    words = Keystream([run(seed, count)], "noise")
    sample = discrete_laplace_varying(np.resize(scales, count), words)
    for i, scale in enumerate(scales):
        part = sample[i :: len(scales)]
        assert_laplace(
            part,
            scale,
            scale_off=0.02 * off,
            cell_off=0.04 * off,
            tail_off=0.14 * off,
            cells_off=0.03 * off,
        )
        assert_fair_signs(part, detects=0.05 * off)


def test_rows_of_tiny_and_of_huge_scale_stand_side_by_side(seed):
    count = 2000
    scales = np.resize([1e-300, 0.02, 2.0**36, 2.0**40 - 1], count)
    sample = discrete_laplace_varying(scales, Keystream([run(seed, count)], "noise"))
    assert not sample[0::4].any() and not sample[1::4].any()
    for i in (2, 3):
        part = sample[i::4]
        scale = float(scales[i])
        family = functools.partial(laplace_cumulant, scale)
        mean = float(np.abs(part).mean()) / scale
        assert_mean(mean, len(part), family, scale, detects=0.6)
