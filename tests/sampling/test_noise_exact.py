"""Every decision of a sampler that is not a table's: chances and choices, exact on their edges."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from tempriv.sampling import distributions
from tempriv.sampling.distributions import (
    Bernoulli,
    CategoryFlip,
    DiscreteGaussian,
    DiscreteLaplace,
    PlanarLattice,
    Staircase,
    UniformChoice,
)
from tempriv.sampling.geometric import LEVELS, TOP, geometric_table
from tests.reference import noise as reference
from tests.support.scripted import ONES, scripted, split, write, write_number


def outcome(digits, bits, bounds):
    """Whether all numbers in [digits, digits + 1) / 2^bits lie below a real; None if not the same.

    ``bounds(bits)`` encloses the real times 2^bits.
    """
    low, high = bounds(bits)
    return True if digits + 1 <= low else False if digits >= high else None


# acceptance with probability e^-rate


RATES = [
    Fraction(0),
    Fraction(1, 10**12),
    Fraction(1, 7),
    Fraction(2),
    Fraction(20),
    Fraction(30),
    Fraction(43),
    Fraction(44),
    Fraction(45),
    Fraction(56),
    Fraction(100),
    Fraction(800),
]


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
        write_number(written, (), row, split(number, deeper + 1))
        expected.append(verdict)
    assert len(expected) >= 5
    accepted = distributions._with_probability_exp(
        scripted(len(expected), written),
        np.full(len(expected), float(rate)),
        lambda i: distributions.exp_minus(rate),
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
        write_number(written, path, row, split(number, 3))
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
    (path,) = {path for path, stream in written if stream == 0 and len(path) == 2}
    return {
        (path, 0): dict.fromkeys(range(count), ONES),
        ((*path, 0), 0): dict.fromkeys(range(count), ONES),
    }


@pytest.mark.parametrize(
    "variance", [Fraction(1, 4), Fraction(22, 7), Fraction(10**4 + 1, 3), Fraction(2**30)], ids=str
)
def test_discrete_gaussian_accepts_exactly_on_the_edge(variance):
    count = 400
    scale = math.isqrt(math.floor(variance)) + 1
    proposed = geometric_table(Fraction(scale)).sample_signed(scripted(count, {}).substream(0))

    def bounds(row, bits):
        return reference.gaussian_acceptance(int(proposed[row]), variance, scale, bits)

    written, verdicts = accept_words(count, bounds, (0, LEVELS))
    assert_accepted(DiscreteGaussian(variance), written, verdicts, proposed)


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 3), Fraction(1, 1000)], ids=str)
def test_planar_lattice_accepts_exactly_on_the_edge(rate):
    count = 400
    law = PlanarLattice(rate)
    source = scripted(count, {}).substream(0)
    axis_law = DiscreteLaplace(1 / (rate * law.SLOPE))
    proposed = np.stack([axis_law.sample(source.substream(axis)) for axis in (0, 1)], axis=1)

    def bounds(row, bits):
        i, j = proposed[row].tolist()
        return reference.planar_acceptance(i, j, rate, law.SLOPE, bits)

    written, verdicts = accept_words(count, bounds, (0, 2))
    assert_accepted(law, written, verdicts, proposed)


def test_the_ratio_of_the_planar_distribution_to_its_proposal_never_passes_one():
    assert 2 * PlanarLattice.SLOPE**2 < 1
    assert 2 * (PlanarLattice.SLOPE + Fraction(1, 10**9)) ** 2 > 1


# words are used for one thing


def substreams(taken):
    """The substreams of the first attempt that words were taken from."""
    return {path[1] for path, _ in taken if path[:1] == (0,) and len(path) > 1}


@pytest.mark.parametrize(
    ("law", "scale", "digits", "rest"),
    [
        (DiscreteGaussian(Fraction(22, 7)), Fraction(2), {0, 1, 2, 3}, {LEVELS}),
        (
            Staircase(Fraction(3, 7), 3, 1),
            Fraction(7, 3),
            {0, 1, 2},
            {LEVELS, LEVELS + 1, LEVELS + 2},
        ),
    ],
    ids=["gaussian", "staircase"],
)
def test_what_finishes_digits_is_used_for_nothing_else(law, scale, digits, rest):
    table = geometric_table(scale)
    signed = 3 in digits
    script = {}
    # bits that leave every digit open, and the sign; the next words leave all but the last open too
    opened = [int(cuts.floors[0]) if len(cuts.floors) else 0 for cuts in table.cuts]
    write(script, (0,), 0, 0, sum(floor >> 48 << 16 * i for i, floor in enumerate(opened)))
    for level, floor in enumerate(opened):
        write(script, (0, level), 0, 0, floor << 16 & ONES)
    streams = scripted(1, script).substream(0)
    (table.sample_signed if signed else table.sample)(streams)
    found = substreams(streams.taken)
    assert found == {level for level in digits if len(table.cuts[level].floors)} and TOP in found

    # zero bits are certain digits of zero: whatever else is taken is not for the digits
    plain = {}
    write(plain, (0,), 0, 0, 0)
    source = scripted(1, plain)
    law.sample(source)
    assert substreams(source.taken) == rest and not digits & rest


# choices


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
        numbers += [
            edge // unit * unit + off * unit + rest
            for off in (-2, -1, 0, 1, 2)
            for rest in (1, unit // 3, unit - 2)
        ]
    for number in sorted(set(numbers)):
        below = Fraction(number, 2**bits) < probability
        if 0 <= number < 1 << bits and below == (Fraction(number + 1, 2**bits) <= probability):
            row = len(expected)
            write_number(written, (), row, split(number, 4))
            expected.append(int(below))
    assert set(expected) == {0, 1}
    assert Bernoulli(probability).sample(scripted(len(expected), written)).tolist() == expected


def test_randomized_response_keeps_exactly_on_its_edge():
    epsilon, choices, bits = Fraction(1), 5, 192
    low, high = reference.exp_minus(epsilon, bits + 64)
    whole = 1 << (bits + 64)
    # keep = 1 / (1 + 4 e^-1)
    least = (whole << bits) // (whole + 4 * high)
    most = -(-(whole << bits) // (whole + 4 * low))
    written, expected = {}, []
    for number in [
        least - 1,
        least - (1 << 64),
        least - (1 << 128),
        most + 1,
        most + (1 << 64),
        most + (1 << 128),
    ]:
        row = len(expected)
        write_number(written, (), row, split(number, 3))
        write(written, (1, 0), 0, row, 6)  # 6 mod 4 = 2, so the answer moves by 3
        expected.append(3 if number > most else 0)
    sample = CategoryFlip(epsilon, choices).sample(scripted(len(expected), written))
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
    for number in [
        least - 1,
        least - (1 << 64),
        least - (1 << 128),
        most + 1,
        most + (1 << 64),
        most + (1 << 128),
    ]:
        row = len(expected)
        write(written, (0,), 0, row, 0)  # step 0
        write(written, (0,), 1, row, 0)  # plus
        write_number(written, (0, LEVELS + 1), row, split(number, 3))
        write(written, (0, LEVELS + 2, 0), 0, row, 7)  # 7 mod 2 = 1: the second of the outer two
        expected.append(2 if number > most else 0)
    assert law.sample(scripted(len(expected), written)).tolist() == expected
