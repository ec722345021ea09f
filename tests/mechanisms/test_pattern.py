"""Streams that follow a trend by few points: what is sent, what it costs and what gives it away."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.data.series import RELEASED, REPEATED, Block
from tempriv.datasets import METERS
from tempriv.errors import UsageError
from tempriv.mechanisms.adaptive._pattern_kernels import SPENT, TAKEN, logarithm
from tempriv.mechanisms.adaptive.pattern import WHOLE, PatternLDP, PatternSampling
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window
from tempriv.releases.release import read
from tempriv.sampling import distributions
from tempriv.sampling._kernels import UNDECIDED
from tempriv.sampling.distributions import DiscreteLaplace
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import recorded
from tests.conformance.cases.pattern import loss_of, readings_of, sampled, sent
from tests.reference import pattern as reference


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def released(mechanism, rows, seed=1):
    return mechanism.start(Key.from_seed(seed), "a").push_block(Block.of(rows, "a", 0))


class Given:
    """A draw whose noise a test has written down, a number for each row."""

    def __init__(self, numbers):
        self.numbers, self.asked = numbers, {}

    @property
    def words(self):
        return self

    def scalable(self, purpose):
        return self

    def laplace(self, row, scale):
        self.asked[row] = scale
        return int(self.numbers[row])


def through(mechanism, steps, numbers):
    """Grid outputs, statuses and the scales that were asked for."""
    draw, state = Given(numbers), SeriesState.fresh(mechanism, 1, len(steps))
    outputs = mechanism.perturb(np.array(steps, dtype=np.int64)[:, None], draw, state)
    return outputs[:, 0].tolist(), state.status.tolist(), draw.asked


# as published


def lines(*corners):
    steps, heights = zip(*corners, strict=True)
    return np.rint(np.interp(np.arange(steps[-1] + 1), steps, heights)).astype(int).tolist()


def test_points_are_sent_where_a_line_breaks():
    """By hand: tolerance 1, up to step 10 by 2, then down by 2: the first reading off is 11."""
    mechanism = PatternLDP(epsilon=1.0, bounds=(0, 40), window=50, spread=2, grid=1)
    readings = lines((0, 0), (10, 20), (20, 0))
    outputs, status, _ = through(mechanism, readings, [0] * 21)
    assert [step for step, one in enumerate(status) if one == RELEASED] == [0, 11]
    assert outputs == [0] * 11 + [18] * 10
    # the line back from 18 is straight: nothing more breaks it
    assert status[12:] == [REPEATED] * 9


def test_what_is_not_sent_is_near_a_line_between_points(rng):
    """Readings up to the last one that fits are within the tolerance of the line to it."""
    mechanism = PatternLDP(epsilon=1.0, bounds=(0, 100), window=9, tolerance=0.3, spread=10, grid=1)
    readings = np.rint(readings_of(mechanism)(rng, 400)[:, 0]).clip(0, 100).astype(int)
    _, status, _ = through(mechanism, readings, np.zeros(400))
    starts = np.flatnonzero(np.array(status) == RELEASED)
    assert 20 < len(starts) < 200
    for start, end in zip(starts, [*starts[1:] - 1, 399], strict=True):
        between = np.arange(start, end + 1)
        line = np.interp(between, [start, end], readings[[start, end]])
        assert np.abs(line - readings[between]).max() <= 3 + 1e-9


def test_budgets_of_a_window_add_up_to_epsilon_at_most(rng):
    """As the paper says; it is the choice of points that breaks the guarantee."""
    mechanism = PatternLDP(epsilon=1.0, bounds=(0, 60), window=12)
    rows = readings_of(mechanism)(rng, 600)
    stream = mechanism.start(Key.from_seed(1), "a")
    for row in rows:
        stream.push(row[None])
        assert 0 <= stream._memory[0, SPENT] <= WHOLE
    with recorded() as drawn:
        released(mechanism, rows, 2)
    _, steps, shares = sent(mechanism, rows, drawn[0].values)
    for end in range(600):
        window = [share for step, share in zip(steps, shares, strict=True) if 0 <= end - step < 12]
        assert sum(window) <= 1
    assert max(shares) > Fraction(1, 2)


def test_the_noise_is_a_laplace_that_ends():
    """One reading: probabilities fall by e^(-1 / scale) a step, and beyond the reach are none."""
    mechanism = PatternLDP(
        epsilon=2.0, bounds=(0, 30), window=4, spread=3, reach=(1.0, 2.0), grid=1
    )
    law = exact.distribution(mechanism, (7.0,), 1e-13)
    # nothing is known yet: importance 1, part 1 - 1/e of epsilon, reach ln 3
    bound, scale = round(3 * math.log(3)), 3 / (2 * (1 - math.exp(-1)))
    found = {rows[0][0] - 7: chance for ((rows, _),), chance in law.items()}
    weights = {k: math.exp(-abs(k) / scale) for k in range(-bound, bound)}
    assert found.keys() == weights.keys() and bound == 3
    for k, weight in weights.items():
        assert math.isclose(found[k], weight / sum(weights.values()), rel_tol=1e-9)


def test_positions_tell_two_inputs_apart_for_certain():
    """Neighbors in one reading: no output of one is an output of the other, whatever the noise."""
    mechanism = PatternLDP(epsilon=5.0, bounds=(0, 8), window=4, spread=1, reach=(1, 1), grid=1)
    flat, bump = (4.0, 4.0, 4.0, 4.0), (4.0, 4.0, 8.0, 4.0)
    laws = [exact.distribution(mechanism, one, 1e-10) for one in (flat, bump)]
    statuses = [{status for ((_, status),) in law} for law in laws]
    assert statuses == [{(0, 1, 1, 1)}, {(0, 1, 0, 1)}]
    assert laws[0].keys().isdisjoint(laws[1])
    # the claim, put to the audit: a bump in the last of three readings
    verdict = exact.audit(mechanism, (4.0, 8.0), 3, 1e-10, Guarantee(Pure(5.0), Window(4)))
    assert not verdict.holds and verdict.found == math.inf


def test_bounded_noise_tells_two_inputs_apart_though_positions_agree():
    mechanism = PatternLDP(epsilon=1.0, bounds=(0, 8), window=4, spread=1, reach=(1, 1), grid=1)
    laws = [exact.distribution(mechanism, (value,), 1e-12) for value in (0.0, 8.0)]
    assert all({status for ((_, status),) in law} == {(0,)} for law in laws)
    assert laws[0].keys().isdisjoint(laws[1])
    assert loss_of(mechanism, (0.0,), (8.0,), 1e-12) == math.inf


def test_no_guarantee_and_why():
    mechanism = PatternLDP(epsilon=1.0, bounds=(0, 8), window=4)
    assert isinstance(mechanism.guarantee, NoGuarantee)
    assert "decided by the readings" in mechanism.guarantee.reason
    assert not mechanism.published.holds and "INFOCOM 2020" in mechanism.published.source


def test_importance_by_hand():
    """The three gains one by one, on deviations 2, 4, 1 with gaps of 1, 2 and 5 steps."""
    for gains, expected in (
        ((1, 0, 0), [2, 4, 1]),
        ((0, 1, 0), [2, 3, 7 / 3]),
        ((0, 0, 1), [0, 1, -3 / 5]),
    ):
        found = [
            reference.importance(gains, [2.0, 4.0, 1.0][: i + 1], gap)
            for i, gap in enumerate((1, 2, 5))
        ]
        assert found == pytest.approx(expected)


def test_logarithms_are_those_of_the_library():
    for x in (1.0, 1.0001, 1.5, 2.0, 11.0, 1001.0, 1e8):
        assert logarithm(x) == pytest.approx(math.log(x), rel=1e-14, abs=1e-15)


# both, against their definitions


KINDS = [
    PatternLDP(epsilon=1.0, bounds=(0, 60), window=12),
    PatternLDP(epsilon=4.0, bounds=(0, 60), window=1, tolerance=0.05),
    PatternSampling(epsilon=6.0, bounds=(0, 1)),
    PatternSampling(epsilon=90.0, bounds=(-1, 2), unit=Window(11), gains=(1, 0, 0.5)),
    PatternSampling(epsilon=2.0, bounds=(0, 400), unit=Contribution(Window(30))),
    # too much noise for a share or two
    PatternSampling(epsilon=1e-5, bounds=(0, 400), unit=Window(600), grid=2.0**-6),
]


def by_definition(mechanism, rows, words):
    """What is released, and which steps are fresh."""
    if isinstance(mechanism, PatternLDP):
        out, steps, _ = sent(mechanism, rows, words)
    else:
        out, taken = sampled(mechanism, rows, words)
        steps = list(taken)
    return np.array(out) * mechanism.domain.grids[0], steps


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_gaps_are_passed_over_as_the_definition_says(mechanism, rng):
    rows = np.ma.array(readings_of(mechanism)(rng, 900), mask=rng.random((900, 1)) < 0.2)
    rows[100:180] = np.ma.masked
    with recorded() as drawn:
        out = released(mechanism, rows)
    expected, steps = by_definition(mechanism, rows, drawn[0].values)
    there = ~np.ma.getmaskarray(rows)[:, 0]
    assert np.array_equal(out.values[there, 0], expected[there])
    assert np.flatnonzero(there & (out.status == RELEASED)).tolist() == steps
    assert len(steps) > 1


class HalfUndecided(distributions.ScalableLaplace):
    """Every other row has a word that floating point cannot settle."""

    def __init__(self, runs, purpose):
        super().__init__(runs, purpose)
        self.words.sizes[::2] &= np.uint64(1)


@pytest.mark.parametrize("mechanism", KINDS[:5], ids=repr)
def test_undecided_draws_are_settled_and_the_stream_goes_on_there(mechanism, rng):
    rows = readings_of(mechanism)(rng, 300)
    with mock.patch.object(distributions, "ScalableLaplace", HalfUndecided), recorded() as drawn:
        out = released(mechanism, rows)
    words = drawn[0].values
    assert int((words.settled != UNDECIDED).sum()) > 2
    expected, steps = by_definition(mechanism, rows, words)
    assert np.array_equal(out.values[:, 0], expected)
    assert np.flatnonzero(out.status == RELEASED).tolist() == steps


# the repair


@pytest.mark.parametrize("mechanism", KINDS[2:], ids=repr)
def test_on_every_path_a_window_takes_its_shares_at_most(mechanism, rng):
    window = mechanism.unit.readings
    rows = readings_of(mechanism)(rng, 700)
    stream = mechanism.start(Key.from_seed(3), "a")
    for row in rows:
        stream.push(row[None])
        assert 0 <= stream._memory[0, TAKEN] <= window
    with recorded() as drawn:
        released(mechanism, rows, 4)
    _, taken = sampled(mechanism, rows, drawn[0].values)
    for end in range(700):
        assert sum(units for step, units in taken.items() if 0 <= end - step < window) <= window


def test_a_sample_has_noise_for_the_shares_it_takes():
    """By hand: w = 4 and readings that stay, then jump: the sample after the jump is sooner."""
    mechanism = PatternSampling(
        epsilon=8.0, bounds=(0, 400), unit=Window(4), gains=(1, 0, 0), grid=1
    )
    readings = [100] * 9 + [400] * 12
    _, status, asked = through(mechanism, readings, [0] * 21)
    # all four shares: 400 / 8; the jump is seen at step 12, whose shares block the window to 16
    assert [asked[step] for step in (0, 4, 8, 12)] == pytest.approx([50] * 4)
    assert [step for step, one in enumerate(status) if one == RELEASED][:4] == [0, 4, 8, 12]
    deviation = 300 / math.sqrt(2 * 50**2)
    wait = math.floor(4 * 3 / deviation)
    assert 12 < 12 + wait < 16 and asked[16] == pytest.approx(50 * 4 / wait)


def test_only_noisy_samples_are_looked_at(rng):
    """Other readings under other noise, the same where they are added: the same output."""
    mechanism = PatternSampling(
        epsilon=60.0, bounds=(0, 400), unit=Window(12), gains=(1, 0, 0.5), grid=1
    )
    numbers = rng.integers(-40, 40, 300)
    readings = rng.integers(0, 300, 300)
    outputs, status, asked = through(mechanism, readings, numbers)
    shift = rng.integers(1, 100, 300)
    again = through(mechanism, readings + shift, numbers - shift)
    assert again == (outputs, status, asked)
    assert 20 < len(asked) < 200
    # and readings that are not sampled are not looked at
    hidden = np.where(np.array(status) == REPEATED, rng.integers(0, 400, 300), readings)
    assert through(mechanism, hidden, numbers) == (outputs, status, asked)


def trend(rng, steps):
    """A line from corner to corner, some 150 steps each."""
    corners = np.cumsum(rng.exponential(150, steps // 50))
    heights = rng.uniform(0, 1, len(corners))
    return np.interp(np.arange(steps), corners - corners[0], heights)


def off(mechanism, series, seed):
    values = released(mechanism, series[:, None], seed).values[:, 0]
    return float(np.abs(np.clip(values, 0, 1) - series).mean())


def test_on_trends_it_is_better_than_schemes_that_do_not_follow_them():
    """Fixed seeds: means over 3 series of 6,000 steps, whose spread is 0.01 at most.

    Fails if the repair is not at least a quarter better than the best of the others.
    """
    series = [trend(np.random.default_rng(seed), 6000) for seed in range(3)]

    def mean(kind, **given):
        mechanism = kind(epsilon=5.0, bounds=(0, 1), **given)
        return np.mean([off(mechanism, one, seed) for seed, one in enumerate(series)])

    window = {"unit": Window(10)}
    ours = mean(PatternSampling, **window)
    others = [mean(kind, **window) for kind in (UniformBudget, SampleOnce, BudgetAbsorption)]
    assert ours < 0.75 * min(others)
    assert mean(PatternSampling) < 0.5 * mean(Laplace)


def test_units_that_are_no_window_are_refused():
    for unit in (WholeSeries(9), Contribution(WholeSeries(9))):
        with pytest.raises(UsageError, match=r"must be Event\(\) or Window\(w\)"):
            PatternSampling(epsilon=1.0, bounds=(0, 9), unit=unit)
    with pytest.raises(UsageError, match="at most 1,048,576 steps"):
        PatternSampling(epsilon=1.0, bounds=(0, 9), unit=Window(2**20 + 1))
    assert PatternSampling(epsilon=1.0, bounds=(0, 9)).unit == Event()


def test_one_column_at_a_time():
    for kind, given in ((PatternLDP, {"window": 3}), (PatternSampling, {})):
        with pytest.raises(UsageError, match="must be one pair, for one column"):
            kind(epsilon=1.0, bounds=((0, 1), (0, 1)), **given)


def test_too_fine_a_grid_is_refused():
    with pytest.raises(UsageError, match="choose a coarser grid"):
        PatternSampling(epsilon=1e-9, bounds=(0, 400), grid=2.0**-20)
    for spread in (0.1, 1e12):
        with pytest.raises(UsageError, match="steps of the grid"):
            PatternLDP(epsilon=1.0, bounds=(0, 400), window=3, spread=spread, grid=1)


def test_errors_are_those_of_a_sample_with_everything():
    mechanism = PatternSampling(epsilon=2.0, bounds=(0, 8), unit=Window(5), grid=1)
    assert mechanism.errors == (DiscreteLaplace(Fraction(4)).mean_magnitude,)


# from the command line


METER = ["--time", "time", "--value", "energy_kWh", "--series", "home", "--no-ledger", "--clip"]
AS_PUBLISHED = ["--mechanism", "pattern-ldp", "--epsilon", "1", "--bounds", "0", "5", *METER]


def test_the_published_one_is_released_only_by_those_who_know(run):
    words = [*AS_PUBLISHED, "--window", "24", "--tolerance", "0.2", "--spread", "0.5"]
    status, _, err = run("release", METERS, "out.csv", *words)
    assert status == 2 and "guarantees nothing" in err and "--not-private" in err
    status, out, _ = run("release", METERS, "out.csv", *words, "--not-private")
    assert status == 0 and "Protects nothing: which readings are sent" in out
    about = read("out.csv").about["mechanism"]
    assert (about["window"], about["tolerance"], about["spread"]) == (24, 0.2, 0.5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs --window"),
        (["--window", "24", "--unit", "window"], "--unit window: not for --mechanism pattern-ldp"),
        (["--window", "24", "--max-series-per-person", "2"], "works on each series by itself"),
    ],
)
def test_its_window_is_its_own(run, words, said):
    status, _, err = run("release", METERS, "out.csv", *AS_PUBLISHED, *words, "--not-private")
    assert status == 2 and said in err, err


def test_the_repair_is_released_verified_and_audited(run):
    words = ["--epsilon", "4", "--unit", "window", "--window", "2"]
    status, out, err = run(
        "release",
        METERS,
        "out.csv",
        "--mechanism",
        "pattern-sampling",
        "--bounds",
        "0",
        "5",
        *words,
        *METER,
    )
    assert (status, err) == (0, "") and "any 2 consecutive time steps" in out
    assert run("verify", "out.csv")[0] == 0
    status, out, _ = run("audit", "pattern-sampling", "--bounds", "0", "1", *words)
    assert status == 0 and "exact, every outcome" in out and "holds on this case" in out
