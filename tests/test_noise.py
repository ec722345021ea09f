"""The exact samplers: each law is its mass function, and every decision is the exact one."""

import functools
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tempriv import geometric, kernels, noise
from tempriv.errors import UsageRefusal
from tempriv.geometric import DIGIT_BITS, LEVELS, NO_SIGN, SIGN, TOP, geometric_table
from tempriv.noise import (
    Bernoulli,
    DiscreteGaussian,
    DiscreteLaplace,
    PlanarLattice,
    RandomisedResponse,
    Staircase,
    UniformChoice,
    discrete_laplace_varying,
    draw,
)
from tempriv.randomness import EPOCH, Key, Run, Words
from tempriv.thresholds import Cuts, Real, decimal_of
from tests.reference import noise as reference
from tests.statistics import (
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

pytest_plugins = ["tests.statistics"]

GOLDEN = Path(__file__).parent / "golden" / "noise.json"
ONES = (1 << 64) - 1


def run(seed, count, start=0):
    return Run(Key.from_seed(seed).series("test of noise", "a series"), start, count)


def sampled(law, seed):
    return draw(law, [run(seed, DRAWS)], "noise")


class Scripted:
    """Words of which a test has written some: ``written[path, lane] = {row: word}``.

    A path lists the branches; all other words are keyed.
    """

    def __init__(self, words, written, path=(), rows=None):
        self.words, self.written, self.path = words, written, path
        self.rows = np.arange(words.count) if rows is None else rows
        self.count = words.count

    def branch(self, number):
        return Scripted(self.words.branch(number), self.written, (*self.path, number), self.rows)

    def only(self, rows):
        return Scripted(self.words.only(rows), self.written, self.path, self.rows[rows])

    def one(self, row, lane):
        return int(self.only(np.array([row])).take(lane)[0])

    def take_branches(self, rows, numbers, count):
        branches = [self.branch(number) for number in range(count)]
        pairs = zip(numbers.tolist(), rows.tolist(), strict=True)
        return np.array([branches[number].one(row, 0) for number, row in pairs], dtype=np.uint64)

    def take(self, lane=0):
        words = self.words.take(lane).copy()
        here = self.written.get((self.path, lane), {})
        for i, row in enumerate(self.rows.tolist()):
            if row in here:
                words[i] = here[row]
        return words


def scripted(count, written):
    return Scripted(Words([run(0, count)], "scripted"), written)


def write(written, path, lane, row, word):
    written.setdefault((path, lane), {})[row] = word


def split(digits, count):
    """A number of 64 count bits as words, the leading one first."""
    return [digits >> 64 * (count - 1 - i) & ONES for i in range(count)]


def outcome(digits, bits, bounds):
    """Whether all numbers in [digits, digits + 1) / 2^bits lie below a real; None if not the same.

    ``bounds(bits)`` encloses the real times 2^bits.
    """
    low, high = bounds(bits)
    return True if digits + 1 <= low else False if digits >= high else None


# the draws follow the law


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
    centre = math.floor(s * 0.7)
    middle = laplace_below(s, centre) - laplace_below(s, -centre - 1)
    assert_proportion(int((size <= centre).sum()), draws, middle, detects=cell_off)
    assert_proportion(int((sample > edge).sum()), draws, tail, detects=tail_off)
    assert_proportion(int((sample < -edge).sum()), draws, tail, detects=tail_off)

    # cells of equal mass, as many as there are integers for
    quantile = np.linspace(0, 1, 41)[1:-1]
    sign = np.where(quantile < 0.5, 1, -1)
    wanted = np.round(sign * s * np.log(2 * np.minimum(quantile, 1 - quantile)))
    edges = np.unique(wanted.astype(np.int64))
    edges = edges[[draws * laplace_below(s, k) > 200 < draws * (1 - laplace_below(s, k))
                   for k in edges]]  # fmt: skip
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


def test_a_discrete_laplace_law_of_tiny_scale_is_mostly_zero(seed):
    # P(not 0) is 4e-9 at scale 1/20: what is seen is only that there is no more than 2e-5
    # (1e-3 when plain); the tail itself is tested next
    sample = sampled(DiscreteLaplace(Fraction(1, 20)), seed)
    rare = 2 * math.exp(-20) / (1 + math.exp(-20))
    assert_rare(np.count_nonzero(sample), DRAWS, rare, detects=2e-5 if COMPILED else 1e-3)


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1, 16)], ids=["1/20", "1/16"])
def test_the_tail_of_a_tiny_scale_is_right_given_that_the_first_bits_do_not_decide(scale, seed):
    # the digit's first 16 bits are all ones in every row, so P(G >= 1) is e^(-1 / scale) 2^16
    count = DRAWS
    table = geometric_table(scale)
    first = np.full(count, 0xFFFF << DIGIT_BITS * TOP, dtype=np.uint64)
    digits = table._cells(4 * np.arange(count) + TOP, first, Words([run(seed, count)], "noise"))
    probability = math.exp(-1 / scale) * 2**16
    nonzero = np.count_nonzero(digits)
    if COMPILED or scale > Fraction(1, 18):
        detects = stated(0.1) if scale > Fraction(1, 18) else 0.9
        assert_proportion(nonzero, count, probability, detects=detects)
    else:  # too few draws to tell too seldom
        assert_rare(nonzero, count, probability, detects=3e-3)


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
def test_randomised_response_counts_are_right(epsilon, choices, seed):
    counts = np.bincount(sampled(RandomisedResponse(epsilon, choices), seed), minlength=choices)
    law = [float(p) for p in reference.randomised_response(epsilon, choices)]
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


def test_rows_with_scales_of_their_own_follow_each_its_law(seed):
    # 250 000 draws for each, 20 000 when plain, which detect a scale 2 % off, 8 % when plain
    scales = [0.5, 3.7, 1000.25, 2**20.5]
    count, off = (DRAWS, 1) if COMPILED else (4 * DRAWS, 4)
    words = Words([run(seed, count)], "noise")
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
    sample = discrete_laplace_varying(scales, Words([run(seed, count)], "noise"))
    assert not sample[0::4].any() and not sample[1::4].any()
    for i in (2, 3):
        part = sample[i::4]
        scale = float(scales[i])
        family = functools.partial(laplace_cumulant, scale)
        mean = float(np.abs(part).mean()) / scale
        assert_mean(mean, len(part), family, scale, detects=0.6)


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


def test_the_mass_of_randomised_response_is_its_definition():
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(30)):
        for choices in (2, 5, 1000):
            law = RandomisedResponse(epsilon, choices)
            masses = reference.randomised_response(epsilon, choices)
            for k in (0, 1, choices - 1):
                assert law.pmf(k) == pytest.approx(float(masses[k]), rel=1e-12)
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
    "response 2": RandomisedResponse(Fraction(1), 2),
    "response 5": RandomisedResponse(Fraction(1, 2), 5),
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
        (lambda: RandomisedResponse(Fraction(0), 2), "epsilon=0: must be > 0"),
        (lambda: RandomisedResponse(half, 1), "1 categories: at least 2 are needed"),
        (lambda: PlanarLattice(Fraction(0)), "rate=0: must be > 0"),
        (lambda: geometric_table(Fraction(2**40)), "the grid is too fine for this much noise"),
    ]:
        with pytest.raises(UsageRefusal, match=message):
            make()
    for scale in (0.0, -1.0, math.nan, math.inf, 2.0**40):
        with pytest.raises(UsageRefusal, match="scales: each must be > 0 and < 2"):
            discrete_laplace_varying(np.array([1.0, scale]), Words([run(0, 2)], "noise"))


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
    words = Words([run(5, count, start=EPOCH - 1001)], "noise")
    np.testing.assert_array_equal(law.sample(words.only(some)), whole[some])


def test_varying_scales_do_not_depend_on_what_stands_beside(rng):
    count = 3000
    scales = np.exp(rng.uniform(-3, 12, count))
    words = Words([run(5, count)], "noise")
    whole = discrete_laplace_varying(scales, words)
    some = np.flatnonzero(rng.random(count) < 0.1)
    np.testing.assert_array_equal(
        discrete_laplace_varying(scales[some], words.only(some)), whole[some]
    )


def test_large_blocks_are_drawn_in_parts_that_change_nothing(monkeypatch):
    law = DiscreteLaplace(Fraction(7, 3))
    runs = [run(1, 700), run(2, 1), run(3, 1299, start=EPOCH - 50)]
    whole = draw(law, runs, "noise")
    for part in (1, 7, 700, 1999):
        monkeypatch.setattr(noise, "PART", part)
        np.testing.assert_array_equal(draw(law, runs, "noise"), whole)


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
    words = Words([run(2024, 20)], "noise")
    values["laplace varying"] = discrete_laplace_varying(scales, words).tolist()
    return values


def test_the_draws_from_a_fixed_seed_never_change():
    assert golden() == json.loads(GOLDEN.read_text())


# exactness: the tables


TABLE_SCALES = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(40),
                Fraction(1000, 7), Fraction(5000)]  # fmt: skip


def exact_cuts(table, scale, level, bits):
    """Enclosures of the cuts of one digit or of the sign, from the definition."""
    base = 1 << int(table.shifts[1])
    if level == SIGN:
        return [reference.sign_cut(1 / scale, bits)]
    if level == TOP:
        cells = len(table.cuts[TOP].reals)
        return [reference.top_digit_cut(i, base**TOP / scale, bits) for i in range(1, cells + 1)]
    rate = base**level / scale
    return [reference.low_digit_cut(i, rate, base, bits) for i in range(1, base)]


@pytest.mark.parametrize("scale", TABLE_SCALES, ids=str)
@pytest.mark.parametrize("level", range(SIGN))
def test_every_entry_of_a_table_is_decided_rightly_or_left_open_for_a_reason(scale, level):
    table = geometric_table(scale)
    entries = 1 << DIGIT_BITS
    cuts = exact_cuts(table, scale, level, 200)
    cut_entries = [low >> (200 - DIGIT_BITS) for low, _ in cuts]
    assert cut_entries == [high >> (200 - DIGIT_BITS) for _, high in cuts]
    expected = np.searchsorted(np.array(cut_entries), np.arange(entries), side="left")
    if cut_entries:
        expected[cut_entries] = -1
    if level == TOP:
        # beyond the last cut the law starts anew
        expected[np.arange(entries) >= cut_entries[-1]] = -1
    np.testing.assert_array_equal(table.tables[level], expected)
    # and the first 64 digits of each cut are those of the definition
    floors = [low >> (200 - 64) for low, _ in cuts]
    assert np.array_equal(table.cuts[level].floors, np.array(floors, dtype=np.uint64))


@pytest.mark.parametrize("scale", [*TABLE_SCALES, Fraction(2**20)], ids=str)
def test_the_sign_is_open_for_the_16_bits_that_hold_its_cut_and_no_others(scale):
    table = geometric_table(scale)
    low, high = reference.sign_cut(1 / scale, 200)
    assert table.coin == low >> (200 - DIGIT_BITS) == high >> (200 - DIGIT_BITS)
    assert table.cuts[SIGN].floors.tolist() == [low >> (200 - 64)]
    tosses = np.arange(1 << DIGIT_BITS, dtype=np.uint64) << np.uint64(48)
    sums = np.empty(len(tosses), dtype=np.int64)
    unsure = np.empty(LEVELS * len(tosses), dtype=np.intp)
    found = kernels.digit_sums(tosses, table.tables, table.shifts, table.coin, sums, unsure)
    assert unsure[:found].tolist() == [4 * table.coin + SIGN]
    # zero bits are a digit of zero, and minus stands for -1 minus that
    assert not sums[: table.coin].any() and (sums[table.coin + 1 :] == -1).all()
    found = kernels.digit_sums(tosses, table.tables, table.shifts, NO_SIGN, sums, unsure)
    assert found == 0 and not sums.any()


@pytest.mark.parametrize("open_ended", [False, True])
def test_a_cut_at_the_edge_of_an_entry_leaves_it_open(open_ended):
    # the first cut lies in entry 5 by so little that its first 64 digits may be those before it
    barely = Fraction(5, 2**DIGIT_BITS) + Fraction(1, 10**41)
    cuts = Cuts([Real(lambda: decimal_of(barely)), Real(lambda: decimal_of(Fraction(1, 2)))])
    assert cuts.floors.tolist() == [(5 << 48) - 1, (1 << 63) - 1]
    half = 1 << (DIGIT_BITS - 1)
    expected = np.repeat([0, 1, 2], [5, half - 5, half])
    expected[[4, 5, half - 1, half]] = -1
    if open_ended:
        expected[half:] = -1
    np.testing.assert_array_equal(geometric._first_level(cuts, open_ended), expected)


@pytest.mark.parametrize("scale", [*TABLE_SCALES, Fraction(2**20), Fraction(2**30)], ids=str)
def test_the_digits_of_a_table_reach_every_integer_once(scale):
    table = geometric_table(scale)
    bits = table.shifts[1]
    assert table.shifts.tolist() == [0, bits, 2 * bits]
    assert [len(table.cuts[level].reals) for level in range(TOP)] == [(1 << bits) - 1] * TOP
    # a table holds digits of its level only, and one for each integer below the end
    assert table.tables[:TOP].max() == (1 << bits) - 1
    assert table.tables[TOP].max() < len(table.cuts[TOP].reals) < 2**15
    assert len(table.cuts[TOP].reals) >= 40 * scale / 4 ** int(bits)


@pytest.mark.parametrize("scale", TABLE_SCALES[1:-1], ids=str)
@pytest.mark.parametrize("level", [*range(SIGN), SIGN])
def test_a_digit_on_a_cut_is_decided_by_as_many_digits_as_it_takes(scale, level):
    # the digit reads 16 bits of the first word, then 64 more, then 64 more, ...
    table = geometric_table(scale)
    words = 4
    bits = DIGIT_BITS + 64 * words
    cuts = exact_cuts(table, scale, level, bits)
    written, expected = {}, []
    tried = range(len(cuts)) if len(cuts) < 12 else [0, 1, 2, 5, len(cuts) // 2, len(cuts) - 1]
    for i in tried:
        low, high = cuts[i]
        for depth in range(words + 1):
            # agree with the cut in all digits up to this depth, then differ by a little
            unit = 1 << 64 * (words - depth)
            for off in (-2, -1, 0, 1, 2):
                digits = (low // unit + off) * unit + unit // 3
                if not 0 <= digits < 1 << bits:
                    continue
                if digits >= high:
                    cell = sum(1 for _, other in cuts if other <= digits)
                elif digits < low:
                    cell = sum(1 for other, _ in cuts if other <= digits)
                else:
                    continue
                row = len(expected)
                first, *rest = [digits >> 64 * words, *split(digits & (1 << 64 * words) - 1, words)]
                write(written, (), 0, row, first << DIGIT_BITS * level)
                write(written, (level,), 0, row, rest[0])
                for lane, word in enumerate(rest[1:]):
                    write(written, (level, 0), lane, row, word)
                # past the end the law starts anew with these words: a fresh zero
                write(written, (TOP, 1), 0, row, 0)
                expected.append(cell)
    if not cuts:
        return
    assert len(expected) >= 10
    source = scripted(len(expected), written)
    # the other digits are zero, as 16 zero bits mean
    assert [table.tables[other][0] for other in range(SIGN)] == [0] * SIGN
    if level == SIGN:
        assert set(expected) == {0, 1}
        assert table.sample_signed(source).tolist() == [-cell for cell in expected]
    else:
        sizes = [cell << int(table.shifts[level]) for cell in expected]
        assert table.sample(source).tolist() == sizes
        assert table.sample_signed(source).tolist() == sizes


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40)], ids=str)
@pytest.mark.parametrize("signed", [False, True])
def test_past_the_end_of_the_table_the_law_starts_anew(scale, signed):
    table = geometric_table(scale)
    end = len(table.cuts[TOP].reals)
    shift = int(table.shifts[TOP])
    bits = 64
    cuts = exact_cuts(table, scale, TOP, bits)
    fresh = [cuts[0][0] - 5, cuts[0][1] + 5, cuts[3][1] + 5, cuts[-3][1] + 2]
    sign = 0xFFFF << 48 if signed else 0
    written = {}
    expected = []
    for row, word in enumerate(fresh):
        for again in (False, True):  # once past the end, and twice
            at = 2 * row + again
            write(written, (), 0, at, 0xFFFF << DIGIT_BITS * TOP | sign)
            write(written, (TOP,), 0, at, ONES)
            write(written, (TOP, 0), 0, at, ONES)
            path = (TOP, 1)
            if again:
                write(written, path, 0, at, ONES)
                write(written, (*path, 0), 0, at, ONES)
                path = (*path, 1)
            write(written, path, 0, at, word)
            cell = sum(1 for _, high in cuts if high <= word)
            size = ((1 + again) * end + cell) << shift
            expected.append(-1 - size if signed else size)
    source = scripted(len(expected), written)
    values = table.sample_signed(source) if signed else table.sample(source)
    assert values.tolist() == expected


def test_a_row_is_put_together_from_all_that_its_16_bits_left_open():
    scale = Fraction(7, 3)
    table = geometric_table(scale)
    bits = int(table.shifts[1])
    # the first cut of each digit and that of the sign; zeros then fall below it, ones above
    opened = [exact_cuts(table, scale, level, 80)[0][0] >> 64 for level in range(LEVELS)]
    minus = 0xFFFF
    written, expected = {}, []
    for state in itertools.product(("zero", "below", "above"), repeat=LEVELS):
        row = len(expected)
        first = 0
        for level, which in enumerate(state):
            if which != "zero":
                first |= opened[level] << DIGIT_BITS * level
                write(written, (level,), 0, row, 0 if which == "below" else ONES)
        size = sum(1 << bits * level for level in range(SIGN) if state[level] == "above")
        write(written, (), 0, row, first)
        expected.append(-1 - size if state[SIGN] == "above" else size)
        if state[SIGN] == "zero":  # once more with a sign that its 16 bits decide
            for level in range(SIGN):
                written.setdefault(((level,), 0), {})
                if row in written[(level,), 0]:
                    write(written, (level,), 0, row + 1, written[(level,), 0][row])
            write(written, (), 0, row + 1, first | minus << DIGIT_BITS * SIGN)
            expected.append(-1 - size)
    assert {0, -1} < set(expected)
    source = scripted(len(expected), written)
    assert table.sample_signed(source).tolist() == expected
    assert DiscreteLaplace(scale).sample(source).tolist() == expected


# exactness: the certified logarithm


LOG_SCALES = [1e-3, 0.01, 0.02, 0.1, 0.5, 1.0, 3.7, 1000.25, 2.0**20.5, 2.0**33, 2.0**39.9]


def adversarial_words(scale, rng):
    """The 63 leading bits: tiny, at the ends, and around the boundaries e^(-g / scale)."""
    exact = Fraction(scale)
    words = [*range(20), *(2**b + d for b in range(5, 63, 4) for d in (-1, 0, 1))]
    words += [2**63 - 1 - i for i in range(20)]
    most = math.floor(43 * scale)
    for g in {1, 2, 3, *rng.integers(1, max(2, most + 1), 20).tolist(), most, most + 1}:
        if g / exact < 60:
            near = reference.exp_minus(g / exact, 63)[0]
            words += [near + d for d in (-1000, -3, -2, -1, 0, 1, 2, 3, 1000)]
    words += rng.integers(0, 2**63, 50).tolist()
    return sorted({word for word in words if 0 <= word < 2**63})


@pytest.mark.parametrize("scale", LOG_SCALES)
def test_a_floor_that_the_logarithm_decides_is_the_exact_one(scale, rng):
    leading = adversarial_words(scale, rng)
    words = np.array([word << 1 for word in leading], dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    unsure = np.empty(len(words), dtype=np.intp)
    found = kernels.geometric_by_log(words, np.full(len(words), scale), out, unsure)
    undecided = set(unsure[:found].tolist())
    for i, word in enumerate(leading):
        if i not in undecided:
            assert out[i] == reference.geometric_floor(word, 63, Fraction(scale)), (word, scale)
    # it does decide, up to scales whose margin is as wide as a step
    if scale < 2**30:
        chosen = rng.integers(0, 2**64, 10_000, dtype=np.uint64)
        out, unsure = np.empty(10_000, dtype=np.int64), np.empty(10_000, dtype=np.intp)
        found = kernels.geometric_by_log(chosen, np.full(10_000, scale), out, unsure)
        assert found < 10_000 * (1e-3 + 4e-11 * scale)


@pytest.mark.parametrize("scale", LOG_SCALES)
def test_a_floor_on_a_boundary_is_decided_by_as_many_digits_as_it_takes(scale, rng):
    exact = Fraction(scale)
    deeper = 3
    bits = 63 + 64 * deeper
    written, expected, rows_scales = {}, [], []
    numbers = [1, 2, 2**64 + 1, 2**bits - 1, 2**bits - 2**64, 2**bits - 2 ** (64 * deeper) + 1]
    for g in {1, 2, 3, *rng.integers(1, math.floor(43 * scale) + 2, 10).tolist()}:
        if g / exact > 120:
            continue
        low, high = reference.exp_minus(g / exact, bits)
        for depth in range(deeper + 1):
            unit = 1 << 64 * depth
            numbers += [low - unit, low - 2 * unit, high + unit, high + 2 * unit, high + unit // 7]
    for number in numbers:
        if not 0 <= number < 1 << bits:
            continue
        floor = reference.geometric_floor(number, bits, exact)
        if floor is None:
            continue
        for minus in (0, 1):
            row = len(expected)
            write(written, (), 0, row, (number >> 64 * deeper) << 1 | minus)
            for lane, word in enumerate(split(number & (1 << 64 * deeper) - 1, deeper)):
                write(written, (0,), lane, row, word)
            expected.append(-floor if minus else floor)
            rows_scales.append(scale)
    assert len(expected) >= 6
    values, again = geometric.geometric_varying_signed(
        np.array(rows_scales), scripted(len(expected), written)
    )
    assert values.tolist() == expected
    zeros = [i for i, value in enumerate(expected) if value == 0 and i % 2 == 1]
    assert again.tolist() == zeros


def test_the_law_of_a_row_has_no_end_even_where_its_scale_is_tiny():
    # 63 zero bits leave the size open: at scale 0.01 they are followed by the digits that decide
    written = {}
    digits, bits = 1, 63 + 64 * 3  # U = 2^-255, so G = floor(0.01 * 176.75) = 1
    write(written, (), 0, 0, 0)
    for lane, word in enumerate(split(digits, 3)):
        write(written, (0,), lane, 0, word)
    assert reference.geometric_floor(digits, bits, Fraction(0.01)) == 1
    values, _ = geometric.geometric_varying_signed(np.array([0.01]), scripted(1, written))
    assert values.tolist() == [1]


# exactness: acceptance with probability e^-rate


RATES = [Fraction(0), Fraction(1, 10**12), Fraction(1, 7), Fraction(2), Fraction(20),
         Fraction(30), Fraction(43), Fraction(44), Fraction(45), Fraction(56), Fraction(100),
         Fraction(800)]  # fmt: skip


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_chance_of_e_to_the_minus_rate_is_decided_exactly_on_its_edge(rate):
    written, expected = {}, []
    deeper = 2
    bits = 64 + 64 * deeper
    bounds = functools.partial(reference.exp_minus, rate)
    low, high = bounds(bits)
    numbers = [0, 1, (1 << 128) - 1, 1 << 128, (1 << bits) - 2, (1 << bits) - (1 << 128)]
    for depth in range(deeper + 1):
        unit = 1 << 64 * depth
        numbers += [low + off * unit - 1 for off in (-2, -1, 0)]
        numbers += [high + off * unit + 1 for off in (0, 1, 2)]
        # the same leading word as the edge, and the other side of it
        numbers += [low // unit * unit, low // unit * unit + unit - 1]
    for number in sorted(set(numbers)):
        verdict = outcome(number, bits, bounds) if 0 <= number < 1 << bits else None
        if verdict is None:
            continue
        row = len(expected)
        word, *rest = split(number, deeper + 1)
        write(written, (), 0, row, word)
        for lane, later in enumerate(rest):
            write(written, (0,), lane, row, later)
        expected.append(verdict)
    assert len(expected) >= 5
    accepted = noise._with_probability_exp(
        scripted(len(expected), written),
        np.full(len(expected), float(rate)),
        lambda i: noise.exp_minus(rate),
    )
    assert accepted.tolist() == expected


def accept_words(count, bounds, path):
    """Words for the acceptance of each row, on its edge: (script, verdicts)."""
    written, verdicts = {}, []
    bits = 192
    for row in range(count):
        low, high = bounds(row, bits)
        off = (row // 2) % 4
        number = low - (1, 1 << 64, 1 << 128, 1 << 129)[off]
        if row % 2:
            number = high + (1, 1 << 64, 1 << 128, 1 << 129)[off]
        number = min(max(number, 0), (1 << bits) - 1)
        verdict = outcome(number, bits, functools.partial(bounds, row))
        if verdict is None:
            verdicts.append(None)
            continue
        word, *rest = split(number, 3)
        write(written, path, 0, row, word)
        for lane, later in enumerate(rest):
            write(written, (*path, 0), lane, row, later)
        verdicts.append(verdict)
    return written, verdicts


def assert_accepted(law, written, verdicts, proposed):
    """Rows are kept exactly where the verdict says so; the others are drawn again."""
    decided = [i for i, verdict in enumerate(verdicts) if verdict is not None]
    assert len({verdicts[i] for i in decided}) == 2 and len(decided) > len(verdicts) // 2
    values = law.sample(scripted(len(verdicts), written))
    again = law.sample(scripted(len(verdicts), {**written, **never_first(written, len(verdicts))}))
    for i in decided:
        if verdicts[i]:
            assert np.array_equal(values[i], proposed[i])
        else:
            # what it is drawn again as does not depend on the first attempt
            assert np.array_equal(values[i], again[i])


def never_first(written, count):
    """The same script, with a first attempt that no row passes."""
    (path,) = {path for path, lane in written if lane == 0 and len(path) == 2}
    return {(path, 0): dict.fromkeys(range(count), ONES), ((*path, 0), 0): dict.fromkeys(
        range(count), ONES)}  # fmt: skip


@pytest.mark.parametrize(
    "variance", [Fraction(1, 4), Fraction(22, 7), Fraction(10**4 + 1, 3), Fraction(2**30)], ids=str
)
def test_discrete_gaussian_accepts_exactly_on_the_edge(variance):
    count = 400
    scale = math.isqrt(math.floor(variance)) + 1
    proposed = geometric_table(Fraction(scale)).sample_signed(scripted(count, {}).branch(0))

    def bounds(row, bits):
        return reference.gaussian_acceptance(int(proposed[row]), variance, scale, bits)

    written, verdicts = accept_words(count, bounds, (0, LEVELS))
    assert_accepted(DiscreteGaussian(variance), written, verdicts, proposed)


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 3), Fraction(1, 1000)], ids=str)
def test_planar_lattice_accepts_exactly_on_the_edge(rate):
    count = 400
    law = PlanarLattice(rate)
    source = scripted(count, {}).branch(0)
    axis_law = DiscreteLaplace(1 / (rate * law.SLOPE))
    proposed = np.stack([axis_law.sample(source.branch(axis)) for axis in (0, 1)], axis=1)

    def bounds(row, bits):
        i, j = proposed[row].tolist()
        return reference.planar_acceptance(i, j, rate, law.SLOPE, bits)

    written, verdicts = accept_words(count, bounds, (0, 2))
    assert_accepted(law, written, verdicts, proposed)


def test_the_ratio_of_the_planar_law_to_its_proposal_never_passes_one():
    assert 2 * PlanarLattice.SLOPE**2 < 1
    assert 2 * (PlanarLattice.SLOPE + Fraction(1, 10**9)) ** 2 > 1


# exactness: choices


@pytest.mark.parametrize(
    "probability",
    [
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(0.1),
        Fraction(2, 7) + Fraction(1, 2**70),
        Fraction(1, 2**64),
        Fraction(1, 2**70),
        1 - Fraction(1, 2**70),
    ],
    ids=str,
)
def test_bernoulli_is_decided_exactly_on_its_edge(probability):
    written, expected = {}, []
    bits = 256
    edge = math.floor(probability * 2**bits)
    numbers = []
    for depth in range(4):
        unit = 1 << 64 * depth
        numbers += [edge // unit * unit + off * unit + rest for off in (-2, -1, 0, 1, 2)
                    for rest in (1, unit // 3, unit - 2)]  # fmt: skip
    for number in sorted(set(numbers)):
        below = Fraction(number, 2**bits) < probability
        if 0 <= number < 1 << bits and below == (Fraction(number + 1, 2**bits) <= probability):
            row = len(expected)
            word, *rest = split(number, 4)
            write(written, (), 0, row, word)
            for lane, later in enumerate(rest):
                write(written, (0,), lane, row, later)
            expected.append(int(below))
    assert set(expected) == {0, 1}
    assert Bernoulli(probability).sample(scripted(len(expected), written)).tolist() == expected


def test_randomised_response_keeps_exactly_on_its_edge():
    epsilon, choices, bits = Fraction(1), 5, 192
    low, high = reference.exp_minus(epsilon, bits + 64)
    whole = 1 << (bits + 64)
    # keep = 1 / (1 + 4 e^-1)
    least = (whole << bits) // (whole + 4 * high)
    most = -(-(whole << bits) // (whole + 4 * low))
    written, expected = {}, []
    for number in [least - 1, least - (1 << 64), least - (1 << 128),
                   most + 1, most + (1 << 64), most + (1 << 128)]:  # fmt: skip
        row = len(expected)
        word, *rest = split(number, 3)
        write(written, (), 0, row, word)
        for lane, later in enumerate(rest):
            write(written, (0,), lane, row, later)
        write(written, (1, 0), 0, row, 6)  # 6 mod 4 = 2, so the answer moves by 3
        expected.append(3 if number > most else 0)
    sample = RandomisedResponse(epsilon, choices).sample(scripted(len(expected), written))
    assert sample.tolist() == expected


@pytest.mark.parametrize("choices", [3, 10, 3 << 60, 2**61 + 1])
def test_words_past_the_last_whole_multiple_are_drawn_again(choices):
    last = 2**64 // choices * choices - 1
    written = {}
    for row, word in enumerate([0, choices - 1, choices, last, min(last + 1, ONES), ONES]):
        write(written, (0,), 0, row, word)
        write(written, (1,), 0, row, ONES if row == 5 and last < ONES else choices + 1)
        write(written, (2,), 0, row, 2)
    expected = [0, choices - 1, 0, choices - 1, 1, 2]
    if choices == 2**61 + 1:
        assert last == 7 * choices - 1
    sample = UniformChoice(choices).sample(scripted(6, written))
    assert sample.tolist() == expected


def test_a_power_of_two_draws_nothing_again():
    written = {}
    write(written, (0,), 0, 0, ONES)
    assert UniformChoice(2**61).sample(scripted(1, written)).tolist() == [2**61 - 1]


def test_the_staircase_takes_its_side_exactly_on_the_edge():
    law = Staircase(Fraction(1), 3, 1)
    bits = 192
    low, high = reference.exp_minus(law.epsilon, bits + 64)
    whole = 1 << (bits + 64)
    least = (whole << bits) // (whole + 2 * high)  # inner is 1 / (1 + 2 e^-1)
    most = -(-(whole << bits) // (whole + 2 * low))
    written, expected = {}, []
    for number in [least - 1, least - (1 << 64), least - (1 << 128),
                   most + 1, most + (1 << 64), most + (1 << 128)]:  # fmt: skip
        row = len(expected)
        word, *rest = split(number, 3)
        write(written, (0,), 0, row, 0)  # step 0
        write(written, (0,), 1, row, 0)  # plus
        write(written, (0, LEVELS + 1), 0, row, word)
        for lane, later in enumerate(rest):
            write(written, (0, LEVELS + 1, 0), lane, row, later)
        write(written, (0, LEVELS + 2, 0), 0, row, 7)  # 7 mod 2 = 1: the second of the outer two
        expected.append(2 if number > most else 0)
    assert law.sample(scripted(len(expected), written)).tolist() == expected


# compiled and plain


def plain(kernel):
    """The kernel as plain Python; with NUMBA_DISABLE_JIT=1 it is so already."""
    return getattr(kernel, "py_func", kernel)


def test_kernels_are_compiled_unless_numba_is_switched_off():
    for kernel in (
        kernels.digit_sums,
        kernels.finish_sums,
        kernels.cells_and_ties,
        kernels.geometric_by_log,
    ):
        assert (plain(kernel) is not kernel) == COMPILED


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(7, 3), Fraction(2**20)], ids=str)
@pytest.mark.parametrize("signed", [False, True])
def test_sums_of_digits_are_the_same_compiled_and_plain(scale, signed, rng):
    table = geometric_table(scale)
    coin = table.coin if signed else NO_SIGN
    words = rng.integers(0, 2**64, 5000, dtype=np.uint64)
    words[:8] = [0, ONES, 1 << 63, 0xFFFF, 0xFFFF << 16, 0xFFFF << 32, (1 << 63) - 1, 1]
    # rows with any of their digits and the sign open
    opened = [int(np.flatnonzero(t < 0)[0]) if (t < 0).any() else 0 for t in table.tables]
    opened.append(table.coin)
    for row in range(8, 24):
        words[row] = sum(
            opened[level] << DIGIT_BITS * level for level in range(LEVELS) if row >> level & 1
        )
    results = []
    for kernel, finish in [
        (kernels.digit_sums, kernels.finish_sums),
        (plain(kernels.digit_sums), plain(kernels.finish_sums)),
    ]:
        sums = np.full(len(words), -99, dtype=np.int64)
        unsure = np.full(LEVELS * len(words), -99, dtype=np.intp)
        found = kernel(words, table.tables, table.shifts, coin, sums, unsure)
        begun = sums.copy()
        cells = np.arange(found, dtype=np.int64) % 2
        finish(words, unsure[:found], cells, table.shifts, coin, sums)
        results.append((found, begun, unsure, sums))
    assert results[0][0] == results[1][0] > 0
    for compiled, other in zip(*(result[1:] for result in results), strict=True):
        np.testing.assert_array_equal(compiled, other)


def test_cells_and_ties_are_the_same_compiled_and_plain_and_right(rng):
    sizes = (0, 1, 5, 300)
    floors = [np.sort(rng.integers(0, 2**64, size, dtype=np.uint64)) for size in sizes]
    starts = np.cumsum([0, *sizes])
    together = np.concatenate(floors)
    near = np.repeat(together, 4) + np.tile(np.arange(4, dtype=np.uint64), len(together))
    words = np.concatenate([rng.integers(0, 2**64, 2000, dtype=np.uint64), near])
    tables = rng.integers(0, len(sizes), len(words))
    results = []
    for kernel in (kernels.cells_and_ties, plain(kernels.cells_and_ties)):
        cells = np.full(len(words), -99, dtype=np.int64)
        ties = np.full(len(words), -99, dtype=np.intp)
        results.append((kernel(together, starts, tables, words, cells, ties), cells, ties))
    (found, cells, ties), (other_found, other_cells, other_ties) = results
    assert found == other_found > 0
    np.testing.assert_array_equal(cells, other_cells)
    np.testing.assert_array_equal(ties, other_ties)
    tied = set(ties[:found].tolist())
    for i, (word, table) in enumerate(zip(words.tolist(), tables.tolist(), strict=True)):
        own = floors[table].tolist()
        assert cells[i] == sum(1 for floor in own if floor <= word)
        assert (i in tied) == any(floor <= word <= floor + 1 for floor in own)


def test_logarithms_are_the_same_compiled_and_plain(rng):
    # the two may differ in what they leave open, should their logarithms differ in the last place
    words = rng.integers(0, 2**64, 5000, dtype=np.uint64)
    words[:6] = [0, 1, 2, 3, ONES, ONES - 1]
    scales = np.exp(rng.uniform(-5, 20, len(words)))
    results = []
    for kernel in (kernels.geometric_by_log, plain(kernels.geometric_by_log)):
        out = np.full(len(words), -99, dtype=np.int64)
        unsure = np.empty(len(words), dtype=np.intp)
        found = kernel(words, scales, out, unsure)
        assert (out[unsure[:found]] == -99).all()
        results.append(out)
    out, other = results
    both = (out != -99) & (other != -99)
    np.testing.assert_array_equal(out[both], other[both])
    assert both.sum() > 0.9 * len(words)
