"""The statistical audit: it breaks what is broken, by five per cent, and leaves the rest alone.

Verdicts have confidence 0.999 unless said otherwise, so a right mechanism is called broken once in
a thousand seeds at most; seeds come from the tests' names.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tempriv.audit import cases, statistical
from tempriv.audit.binning import BinEdges, statistics
from tempriv.audit.statistical import audit, epsilon_at_least, outputs
from tempriv.errors import KeyReuseError, TemprivError
from tempriv.mechanisms import registry
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Approximate, Concentrated, NoGuarantee, Pure
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window, WithinDistance
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tests.conformance.cases import NAMED
from tests.conformance.spec_checks import with_budget
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]

RUNS = 1_000_000 if COMPILED else 40_000
LESS = Fraction(95, 100) if COMPILED else Fraction(70, 100)  # plain kernels draw fewer
ONE_STEP = [((0.0,), (1.0,))]


class LessLaplace(Laplace):
    @property
    def distributions(self):
        return [distributions.DiscreteLaplace(law.scale * LESS) for law in super().distributions]


class LessGaussian(Gaussian):
    @property
    def distributions(self):
        return [
            distributions.DiscreteGaussian(law.variance * LESS**2) for law in super().distributions
        ]


def generator(key):
    return np.random.default_rng(int.from_bytes(key.secret, "big"))


# power, and how often a right mechanism is accused


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 4.0])
def test_five_per_cent_too_little_laplace_noise_is_found(epsilon, seed):
    settings = {"epsilon": epsilon, "bounds": (0, 5)}
    right = audit(Laplace(**settings), runs=RUNS, key=Key.from_seed(seed))
    assert right.holds and right.found > (0.9 if COMPILED else 0.6) * epsilon
    wrong = audit(LessLaplace(**settings), runs=RUNS, key=Key.from_seed(seed))
    assert not wrong.holds and wrong.p_value < 1e-3
    assert wrong.found <= epsilon / LESS


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_five_per_cent_too_little_gaussian_noise_is_found(rho, seed):
    """From 200,000 runs on."""
    settings, runs = {"rho": rho, "bounds": (0, 5)}, 300_000 if COMPILED else RUNS
    right = audit(Gaussian(**settings), runs=runs, key=Key.from_seed(seed))
    assert right.holds and right.found > (0.9 if COMPILED else 0.6) * rho
    wrong = audit(LessGaussian(**settings), runs=runs, key=Key.from_seed(seed))
    assert not wrong.holds
    assert wrong.found <= rho / LESS**2


class LessTimes(NoisyTimes):
    @property
    def distribution(self):
        return distributions.DiscreteLaplace(super().distribution.scale * LESS)


class LessPace(SamplingPeriod):
    @property
    def distributions(self):
        less = Fraction(80, 100) if COMPILED else Fraction(50, 100)
        whole = super().distributions
        return tuple(distributions.DiscreteLaplace(noise.scale * less) for noise in whole)


def test_too_little_noise_on_times_is_found(seed):
    """Five per cent on each time; on the pace of a window 20, from fewer runs."""
    settings = {"epsilon": 1.0, "tau": 60.0}
    runs = RUNS // 8
    right = audit(NoisyTimes(**settings), runs=runs, key=Key.from_seed(seed))
    assert right.holds and right.found > (0.9 if COMPILED else 0.3)
    assert not audit(LessTimes(**settings), runs=RUNS, key=Key.from_seed(seed)).holds
    settings = {"epsilon": 1.0, "tau": 1.0, "window": 2, "clamp": None}
    right = audit(SamplingPeriod(**settings), runs=runs, key=Key.from_seed(seed))
    assert right.holds and right.found > (0.9 if COMPILED else 0.3)
    assert not audit(LessPace(**settings), runs=runs, key=Key.from_seed(seed)).holds


def test_windows_are_told_by_all_their_readings(seed):
    settings = {"epsilon": 1.0, "bounds": (0, 5), "unit": Window(3)}
    assert audit(Laplace(**settings), runs=RUNS, key=Key.from_seed(seed)).holds
    assert not audit(LessLaplace(**settings), runs=RUNS, key=Key.from_seed(seed)).holds


def test_the_right_scale_is_accepted_in_99_of_100_repetitions(seed):
    """At confidence 0.999 two of a hundred verdicts are wrong with probability 0.5 %."""
    right = Laplace(epsilon=1.0, bounds=(0, 5))
    runs = 20_000 if COMPILED else 2_000
    accepted = [audit(right, runs=runs, key=Key.from_seed(seed + i)).holds for i in range(100)]
    assert sum(accepted) >= 99


@pytest.mark.long
@pytest.mark.parametrize("kind", [Laplace, LessLaplace])
def test_a_million_runs_a_hundred_times(kind, seed):
    mechanism = kind(epsilon=1.0, bounds=(0, 5))
    held = [audit(mechanism, runs=RUNS, key=Key.from_seed(seed + i)).holds for i in range(100)]
    assert sum(held) >= 99 if kind is Laplace else sum(held) == 0


def float_laplace(scale):
    """Laplace noise as floating-point libraries draw it; neighbors differ by 1."""

    def run(example, runs, key):
        return np.array(example) + generator(key).laplace(scale=scale, size=(runs, len(example)))

    return run


def called_broken(run, loss, seed, count):
    """How many of so many verdicts at confidence 0.9 call the claim broken."""
    keys = (Key.from_seed(seed + i) for i in range(count))
    verdicts = (audit(run, loss, ONE_STEP, runs=4_000, confidence=0.9, key=key) for key in keys)
    return sum(not verdict.holds for verdict in verdicts)


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        (Pure(1.0), 240),
        (Approximate(1.0, 1e-3), 40),
        (Concentrated(0.5), 40),
        pytest.param(Approximate(1.0, 1e-3), 300, marks=pytest.mark.long),
        pytest.param(Concentrated(0.5), 300, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_true_claims_are_called_broken_as_rarely_as_stated(loss, count, seed):
    """No more often than a chance of 0.1 explains (1e-6); the noise is right, and no more.

    Of 300 verdicts a chance of 0.25 is noticed (power 0.99), of 40 one of 0.6.
    """
    run = float_gaussian(1.0) if isinstance(loss, Concentrated) else float_laplace(1.0)
    broken = called_broken(run, loss, seed, count)
    assert broken <= stats.binom(count, 0.1).isf(1e-6)
    if isinstance(loss, Pure):  # the interval is exact there, so the chance is used
        assert broken >= stats.binom(count, 0.03).ppf(1e-3) > 0


@pytest.mark.long
def test_choosing_and_counting_on_the_same_runs_would_be_noticed(monkeypatch, seed):
    chosen_from = []

    def candidates(self, pair, runs, original=statistical._Runs.candidates):
        chosen_from[:] = original(self, pair, runs)
        return chosen_from

    def count(self, pair, runs, looked_at):
        return [next(c.tried for c in chosen_from if c.statistic is one) for one in looked_at]

    monkeypatch.setattr(statistical._Runs, "candidates", candidates)
    monkeypatch.setattr(statistical._Runs, "count", count)
    broken = called_broken(float_laplace(1.0), Pure(1.0), seed, 300)
    assert broken > stats.binom(300, 0.1).isf(1e-6)


# mutants that enumeration cannot reach, each beside its right sibling; epsilon is 1 unless said


def with_noise(rng, values, runs, scale):
    return np.array(values) + rng.laplace(scale=scale, size=(runs, len(values)))


def reused(same):
    """Two readings, one of which may change: fresh noise for each, or one draw for both."""

    def run(example, runs, key):
        drawn = generator(key).laplace(size=(runs, 2))
        return np.array(example) + (drawn[:, :1] if same else drawn)

    return run


def skipping(broken):
    """A reading is published if it is far from the one before: seen through noise, or as it is.

    The right one spends half on looking, and half on publishing.
    """

    def run(example, runs, key):
        rng = generator(key)
        gap = np.full(runs, abs(example[1] - example[0]))
        seen = gap if broken else gap + rng.laplace(scale=2.0, size=runs)
        out = with_noise(rng, example, runs, 4.0)
        out[:, 1] = np.where(seen > 0.5, out[:, 1], np.nan)
        # the first reading takes part in both
        return out

    return run


def sparse_vector(mistake=""):
    """At most one alert over 12 values at epsilon 4: 2 for the threshold and 2 for the alert."""

    def run(example, runs, key):
        rng, shape = generator(key), (runs, len(example))
        threshold = 0.5 + rng.laplace(scale=0.5, size=(runs, 1))
        if mistake == "threshold drawn again for each value":
            threshold = 0.5 + rng.laplace(scale=0.5, size=shape)
        scale = 0.5 if mistake == "half the noise on values" else 1.0
        alerts = np.array(example) + rng.laplace(scale=scale, size=shape) >= threshold
        before = np.cumsum(alerts, axis=1) - alerts
        if mistake == "never halts":
            before[:] = 0
        return np.where(before > 0, -1, alerts.astype(np.int64))

    return run


QUIET, LOUD = (0.0,) * 12, (1.0,) * 12
TURNS = (0.0, 1.0) * 6, (1.0, 0.0) * 6
LAST = (0.0,) * 11 + (1.0,), (1.0,) * 11 + (0.0,)  # right: 3.88, half the noise: 5.66


def absorbing(mistake=""):
    """Two steps under epsilon 1 together: what the first leaves unspent goes to the second.

    Whether the first is published is a public coin; the mistake lets its reading decide.
    """

    def run(example, runs, key):
        rng = generator(key)
        first = rng.random(runs) < 0.5
        if mistake:
            first = np.full(runs, example[0] > 0.5)
        noisy = with_noise(rng, example, runs, 2.0)
        alone = example[1] + rng.laplace(scale=1.0, size=runs)
        return np.stack(
            [np.where(first, noisy[:, 0], np.nan), np.where(first, noisy[:, 1], alone)], axis=1
        )

    return run


def leaking(probability):
    """As it is, now and then: an (epsilon, delta) guarantee with that delta."""

    def run(example, runs, key):
        rng = generator(key)
        out = with_noise(rng, example, runs, 1.0)
        return np.where(rng.random((runs, 1)) < probability, np.array(example), out)

    return run


def local_scale(broken):
    """Noise in proportion to the reading: its size gives the reading away."""

    def run(example, runs, key):
        scale = (1.0 + example[0]) if broken else 1.0
        return example[0] + generator(key).laplace(scale=scale, size=(runs, 1))

    return run


def float_gaussian(deviation):
    def run(example, runs, key):
        return np.array(example) + generator(key).normal(scale=deviation, size=(runs, 1))

    return run


def once_per_run(broken):
    """Two columns that share epsilon: noise of its own for each, or one draw for both."""

    def run(example, runs, key):
        drawn = generator(key).laplace(scale=2.0, size=(runs, 1, 2))
        if broken:
            drawn[:, :, 1] = drawn[:, :, 0]
        return np.array(example) + drawn

    return run


COLUMNS = [(((0.0, 0.0),), ((1.0, 0.0),)), (((0.0, 0.0),), ((1.0, 1.0),))]
PAIRS_OF_TWO = [((0.0, 0.0), (1.0, 0.0)), ((0.0, 0.0), (0.0, 1.0))]
MUTANTS = {
    "5 % less floating-point noise": (
        float_laplace(1.0),
        float_laplace(0.95),
        Pure(1.0),
        ONE_STEP,
        1_000_000,
    ),
    "5 % less deviation": (
        float_gaussian(1.0),
        float_gaussian(0.95),
        Concentrated(0.5),
        ONE_STEP,
        1_000_000,
    ),
    "noise used for two steps": (reused(False), reused(True), Pure(1.0), PAIRS_OF_TWO, 100_000),
    "noise used for two columns": (
        once_per_run(False),
        once_per_run(True),
        Pure(1.0),
        COLUMNS,
        100_000,
    ),
    "skipped if nothing changed": (
        skipping(False),
        skipping(True),
        Pure(1.0),
        PAIRS_OF_TWO,
        100_000,
    ),
    "published by what was read": (
        absorbing(),
        absorbing("by the reading"),
        Pure(1.0),
        [((0.0, 0.0), (1.0, 1.0))],
        100_000,
    ),
    "noise by the size of the reading": (
        local_scale(False),
        local_scale(True),
        Pure(1.0),
        ONE_STEP,
        100_000,
    ),
    "five times delta": (
        leaking(1e-3),
        leaking(5e-3),
        Approximate(1.0, 1e-3),
        ONE_STEP,
        200_000,
    ),
    **{
        mistake: (sparse_vector(), sparse_vector(mistake), Pure(4.0), pairs, 400_000)
        for mistake, pairs in (
            ("threshold drawn again for each value", [(QUIET, LOUD)]),
            ("never halts", [TURNS]),
            ("half the noise on values", [TURNS, LAST]),
        )
    },
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_caught_and_its_right_sibling_is_not(name, seed):
    right, wrong, loss, pairs, runs = MUTANTS[name]
    claimed = loss.rho if isinstance(loss, Concentrated) else loss.epsilon
    caught = audit(wrong, loss, pairs, runs=runs, key=Key.from_seed(seed))
    assert not caught.holds, caught.sentence
    assert caught.p_value <= 0.001 and caught.found > claimed
    assert "CLAIM BROKEN" in caught.sentence
    spared = audit(right, loss, pairs, runs=runs, key=Key.from_seed(seed + 1))
    assert spared.holds, spared.sentence
    assert "consistent with the claim" in spared.sentence


# lower bounds by themselves


def test_a_lower_bound_at_a_delta_is_near_the_curve_and_below_it(seed):
    """Gaussian noise of deviation 1 at distance 1 has a known delta for every epsilon."""
    for epsilon in (0.5, 1.0, 2.0):
        low, high = -0.5 - epsilon, 0.5 - epsilon
        delta = stats.norm.cdf(high) - math.exp(epsilon) * stats.norm.cdf(low)
        found = epsilon_at_least(
            float_gaussian(1.0), ONE_STEP[0], delta=float(delta), key=Key.from_seed(seed)
        )
        assert 0.9 * epsilon < found <= epsilon


def test_what_cannot_be_told_apart_has_no_loss(seed):
    def blind(example, runs, key):
        return generator(key).normal(size=(runs, 3))

    assert epsilon_at_least(blind, ONE_STEP[0], runs=50_000, key=Key.from_seed(seed)) < 0.05
    verdict = audit(blind, Concentrated(0.01), ONE_STEP, runs=50_000, key=Key.from_seed(seed))
    assert verdict.holds and verdict.found < 0.005 and verdict.p_value > 0.1


def test_what_is_told_for_certain_has_the_largest_loss_that_the_runs_can_show(seed):
    def bare(example, runs, key):
        return np.repeat([example], runs, axis=0)

    for loss in (Pure(1.0), Approximate(1.0, 0.1), Concentrated(1.0)):
        verdict = audit(bare, loss, ONE_STEP, runs=50_000, key=Key.from_seed(seed))
        reach = statistical.most(loss, 50_000)
        assert verdict.found >= reach
        assert verdict.p_value == 1e-15 and "p-value below 1e-15" in verdict.sentence
        seed += 1


def test_the_p_value_is_where_the_verdict_turns(seed):
    for deviation in (0.9, 0.94, 1.0):
        verdict = audit(
            float_laplace(deviation), Pure(1.0), ONE_STEP, runs=100_000, key=Key.from_seed(seed)
        )
        assert verdict.holds == (verdict.p_value > 0.001)
        if 1e-9 < verdict.p_value < 0.4:
            for factor, holds in ((0.9, True), (1.1, False)):
                again = audit(
                    float_laplace(deviation),
                    Pure(1.0),
                    ONE_STEP,
                    runs=100_000,
                    confidence=1 - factor * verdict.p_value,
                    key=Key.from_seed(seed),
                )
                assert again.holds == holds


def test_a_seed_gives_the_same_verdict_again_and_a_key_serves_one_audit():
    right = RandomizedResponse(epsilon=1.0, categories=("a", "b", "c"))
    key = Key.from_seed(3)
    one = audit(right, runs=5_000, key=key)
    assert one == audit(right, runs=5_000, key=Key.from_seed(3))
    assert one != audit(right, runs=5_000, key=Key.from_seed(4))
    assert one != audit(right, runs=5_000)
    with pytest.raises(KeyReuseError):
        audit(right, runs=5_000, key=key)


def test_all_runs_are_made_and_reported(seed):
    made, reported = [], []

    def run(example, runs, key):
        made.append(runs)
        return generator(key).normal(size=(runs, 1))

    for runs, pairs in ((10_007, 1), (50_001, 3)):
        made.clear()
        reported.clear()
        audit(run, Pure(1.0), ONE_STEP * pairs, runs=runs, progress=reported.append)
        assert sum(made) == sum(reported) == runs


# what is run


def test_a_mechanism_is_run_as_many_series_that_know_nothing_of_each_other(seed):
    """Every series alerts at its second reading, as each does by itself."""
    alarm = SparseVector(epsilon=1e4, bounds=(0, 10), threshold=5, most=1)
    key = Key.from_seed(seed).series("test", "a")
    found = outputs(alarm, (0.0, 10.0, 10.0), 500, key)
    assert found.shape == (500, 3, 2)  # the bit and its status
    assert (found[:, :, 0] == [0, 1, 0]).all()
    assert (found[:, 2, 1] != found[:, 1, 1]).all()


def test_every_run_and_reading_has_noise_of_its_own(seed):
    laplace = Laplace(epsilon=1.0, bounds=((0, 5), (0, 5)))
    key = Key.from_seed(seed).series("test", "a")
    found = outputs(laplace, ((0.0, 0.0), (5.0, 5.0)), 2_000, key).reshape(2_000, 4)
    assert len(np.unique(found[:, 0])) > 1_000
    assert np.abs(np.corrcoef(found, rowvar=False) - np.eye(4)).max() < 6 / math.sqrt(2_000)
    person = Laplace(epsilon=1.0, bounds=(0, 5), unit=Person(2, Event()))
    key = Key.from_seed(seed).series("test", "b")
    both = outputs(person, ((0.0, 0.0), (5.0, 5.0)), 2_000, key)
    assert both.shape == (2_000, 4, 1)
    assert np.abs(np.corrcoef(both[:, :, 0], rowvar=False) - np.eye(4)).max() < 6 / math.sqrt(2_000)


@pytest.mark.parametrize("name", NAMED)
def test_worst_pairs_are_neighbors(name):
    mechanism = NAMED[name].mechanism
    if not NAMED[name].promises:
        with pytest.raises(TemprivError, match="nothing is guaranteed"):
            cases.worst_pairs(mechanism)
        return
    pairs = cases.worst_pairs(mechanism)
    unit = mechanism.guarantee.unit
    assert 1 <= len(pairs) <= cases.MAX_PAIRS
    assert all(unit.are_neighbors(one, other) and one != other for one, other in pairs)


@pytest.mark.parametrize("thousands", [10, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_every_mechanism_can_be_audited_and_holds(kind, thousands, seed):
    runs = 1_000 * thousands if COMPILED else 4_000
    mechanism = next(case.mechanism for case in NAMED.values() if isinstance(case.mechanism, kind))
    if isinstance(mechanism.guarantee, NoGuarantee):
        with pytest.raises(TemprivError, match="nothing is guaranteed"):
            audit(mechanism, runs=runs)
        return
    if claim(mechanism) > 4:  # more than so few runs could show
        mechanism = with_budget(mechanism, 4.0)
    verdict = audit(mechanism, runs=runs, key=Key.from_seed(seed))
    assert verdict.holds, verdict.sentence


def claim(mechanism):
    loss = mechanism.guarantee.loss
    return loss.rho if isinstance(loss, Concentrated) else loss.epsilon


def test_pairs_are_far_apart():
    daily = Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(24))
    assert ((0.0,) * 24, (5.0,) * 24) in cases.worst_pairs(daily)
    place = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(0, 0))
    (one,), (other,) = cases.worst_pairs(place)[0]
    assert math.dist(one, other) > 199
    counts = SparseVector(
        epsilon=1.0, bounds=(0, 9), threshold=5, most=1, unit=Contribution(WholeSeries(9))
    )
    assert ((5,) * 8, (6,) * 8) in cases.worst_pairs(counts)
    assert cases.worst_pairs(daily, length=2) == [
        pair for pair in cases.worst_pairs(daily, length=2) if len(pair[0]) == 2
    ]


def test_small_cases_are_the_same_mechanism_on_a_grid_that_can_be_enumerated():
    fine = Laplace(epsilon=1.0, bounds=(0, 5))
    small = cases.small_case(fine)
    assert small.grid == (4.0,) and small.mechanism == Laplace(
        epsilon=1.0, bounds=(0, 5), grid=(4.0,)
    )
    assert cases.small_case(Laplace(epsilon=1.0, bounds=(0, 5), grid=1)).grid is None
    ties = cases.small_case(Laplace(epsilon=1.0, bounds=(1.5, 2.5)))  # both edges round to 2
    assert ties.grid == (0.5,)
    assert cases.small_case(Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(24))) is None
    assert cases.small_case(Laplace(epsilon=1e-9, bounds=(0, 5))) is None
    assert cases.small_case(fine, length=9) is None
    response = RandomizedResponse(epsilon=1.0, categories=("a", "b", "c"))
    assert cases.small_case(response).mechanism is response


# what is looked at


def test_numbers_go_to_cells_that_cover_everything():
    values = np.array([0.0] * 50 + list(np.linspace(1, 2, 1_000)) + [np.nan])
    cuts = BinEdges.of(values, 16)
    cells = cuts(np.array([-9.0, 0.0, 1e-300, 1.5, 9.0, np.nan, np.inf, -np.inf]))
    assert cells.min() >= 0 and cells.max() < cuts.cells
    assert cells[1] not in (cells[0], cells[2])  # what comes up often has a cell for itself
    assert cells[5] not in cells[[0, 1, 2, 3, 4, 6, 7]]
    few = BinEdges.of(np.array([3.0, 1.0, 1.0, 7.0]), 16)
    assert len(set(few(np.array([1.0, 3.0, 7.0])))) == 3


@pytest.mark.parametrize("width", [1, 2, 5, 30])
def test_statistics_take_outputs_that_they_have_not_seen(width):
    rng = np.random.default_rng(width)
    ones, others = rng.integers(0, 3, (400, width)) * 1.0, rng.normal(size=(400, width))
    unseen = np.array([[np.nan] * width, [1e300] * width, [-1e300] * width, [7.0] * width])
    for one in statistics(ones, others):
        assert one.count(unseen).sum() == 4 and len(one.count(unseen)) == one.cells
        assert one.count(ones).sum() == 400


# refusals


def test_what_cannot_be_meant_is_refused():
    right = RandomizedResponse(epsilon=1.0, categories=("a", "b"))
    function = float_laplace(1.0)
    for call, sentence in (
        (lambda: audit(right, runs=10), "runs=10: must be at least 1000"),
        (lambda: audit(right, pairs=ONE_STEP * 9, runs=8_000), "at least 9000 for 9 pairs"),
        (lambda: audit(right, confidence=1.0), "confidence=1.0: must be"),
        (lambda: audit(right, pairs=[]), "at least one pair"),
        (lambda: audit(function, Pure(1.0)), "needs its loss and its pairs"),
        (lambda: audit(function, pairs=ONE_STEP), "needs its loss and its pairs"),
        (lambda: audit("laplace", Pure(1.0), ONE_STEP), "must be a mechanism"),
        (lambda: audit(function, Pure(50.0), ONE_STEP), "1,000,000 runs cannot show"),
        (lambda: audit(Promised()), "nothing is guaranteed"),
        (
            lambda: audit(lambda example, runs, key: np.zeros(3), Pure(1.0), ONE_STEP),
            "must have one row for each run",
        ),
    ):
        with pytest.raises(TemprivError, match=sentence):
            call()


class Promised:
    guarantee = NoGuarantee("it is a test")
