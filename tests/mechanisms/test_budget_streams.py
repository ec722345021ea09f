"""Budgets over a sliding window, and samples through a filter: more than all must do."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.data.series import RELEASED, REPEATED, Block
from tempriv.errors import UsageError
from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.stream import resume
from tempriv.mechanisms.w_event._kernels import exponential
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Contribution, WholeSeries, Window
from tempriv.sampling import distributions
from tempriv.sampling._kernels import UNDECIDED
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import recorded
from tests.conformance.cases import NAMED
from tests.conformance.cases.budgets import changes_of, released

pytest_plugins = ["tests.support.statistics"]

KINDS = (UniformBudget, SampleOnce, BudgetDistribution, BudgetAbsorption)
ADAPTIVE = KINDS[2:]
NAMES = [
    f"{kind}, {which}"
    for kind in ("uniform", "once", "distribution", "absorption")
    for which in ("fine grid", "counts in two cells")
]


def made_up(rng, length, columns=1, most=400):
    """Counts that stay, then jump."""
    levels = rng.integers(0, most, (length, columns)).astype(np.float64)
    stays = rng.random(length) < 0.8
    stays[0] = False
    return levels[np.maximum.accumulate(np.where(stays, 0, np.arange(length)))]


# missing readings and statuses


@pytest.mark.parametrize("name", [*NAMES, "fast, numbers", "fast, counts"])
def test_gaps_are_passed_over_as_the_definition_says(name):
    """A missing cell takes no part; what others take and get is as if the row had not the cell."""
    case = NAMED[name]
    rows = case.gappy(200, "gaps in the reference")
    with recorded() as drawn:
        out = case.release(rows, case.key(1))
    expected = case.released(rows, [one.values for one in drawn])
    there = ~np.ma.getmaskarray(rows)
    assert np.array_equal(np.ma.getmaskarray(out), ~there)
    assert np.array_equal(np.asarray(out)[there], expected[there])


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_a_row_that_is_missing_altogether_costs_nothing(kind):
    """Budget goes on with the steps, and nothing is looked at."""
    mechanism = kind(epsilon=1e6, bounds=(0, 9), unit=Contribution(Window(3)))
    rows = np.ma.array([[5.0], [1.0], [1.0], [7.0]], mask=[[0], [1], [1], [0]])
    block = Block.of(rows, "a", 0)
    out = mechanism.start(Key.from_seed(1), "a").push_block(block)
    assert out.status.tolist() == [RELEASED] * 4, "a missing reading is no repetition"
    assert out.values[[0, 3], 0].tolist() == [5, 7]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_before_the_first_release_stands_zero_or_the_bound_nearest_to_it(kind):
    for bounds, start in (((0, 9), 0), ((-4, 9), 0), ((3, 9), 3), ((-9, -2), -2)):
        # noise that lets nothing through, or, at one step, is missing
        mechanism = kind(epsilon=1e6, bounds=bounds, unit=Contribution(Window(4)))
        still = np.full((3, 1), float(start))
        stream = mechanism.start(Key.from_seed(1), "a")
        out = stream.push_block(Block.of(still, "a", 0))
        assert out.values[:, 0].tolist() == [start] * 3
        if kind is not SampleOnce:
            assert out.status.tolist() == [REPEATED] * 3


def test_once_in_a_window_and_what_was_missed_is_made_up_for():
    mechanism = SampleOnce(epsilon=1e6, bounds=(0, 99), unit=Contribution(Window(3)))
    rows = np.ma.array(np.arange(10.0)[:, None], mask=[[i in (0, 4, 5)] for i in range(10)])
    out = mechanism.start(Key.from_seed(1), "a").push_block(Block.of(rows, "a", 0))
    fresh = [i for i in range(10) if out.status[i] == RELEASED and not rows.mask[i, 0]]
    assert fresh == [1, 6, 9]
    assert out.values[[1, 2, 3, 6, 7, 8, 9], 0].tolist() == [1, 1, 1, 6, 6, 6, 9]


# what is spent


class Spending:
    """Stands for the keyed source: small noise, and a note of every scale that is asked for."""

    def __init__(self, rng, rows):
        self.rng, self.rows, self.asked = rng, rows, {}

    def each(self, law, purpose):
        return np.rint(self.rng.laplace(scale=float(law.scale), size=self.rows)).astype(np.int64)

    def scalable(self, purpose):
        column = int(purpose.split()[-1])

        def laplace(row, scale):
            self.asked[row, column] = Fraction(scale)
            return round(float(self.rng.laplace(scale=scale)))

        return SimpleNamespace(words=SimpleNamespace(laplace=laplace))


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("window", [1, 2, 5, 40])
@pytest.mark.parametrize("kind", ADAPTIVE)
def test_no_window_spends_more_than_half_of_epsilon_on_publishing(kind, window, columns, rng):
    """Exactly, in fractions; looking takes the other half by its fixed law."""
    unit = Contribution(Window(window))
    mechanism = kind(epsilon=0.7, bounds=((0, 400),) * columns, unit=unit)
    rows = made_up(rng, 600, columns)
    source = Spending(rng, len(rows))
    state = SeriesState.fresh(mechanism, 1, len(rows))
    mechanism.perturb(mechanism.domain.to_grid(rows), source, state)
    spent = np.zeros(len(rows), dtype=object)
    for (row, _), scale in source.asked.items():
        cost = 1 / scale
        assert spent[row] in (0, cost), "the cells of a row have noise of the same scale"
        spent[row] = cost
    assert (spent > 0).tolist() == (state.status == RELEASED).tolist()
    most = max(sum(spent[i : i + window]) for i in range(len(rows)))
    half = Fraction(0.7) / 2
    assert most <= half
    assert most > half * Fraction(49, 100), "what is there gets used"
    looking = mechanism.spending.looking.scale
    assert window / looking == half


def test_absorbed_budget_is_taken_from_the_steps_after_too(rng):
    mechanism = BudgetAbsorption(epsilon=10.0, bounds=(0, 400), unit=Contribution(Window(5)))
    rows = made_up(rng, 2000)
    source = Spending(rng, len(rows))
    state = SeriesState.fresh(mechanism, 1, len(rows))
    mechanism.perturb(mechanism.domain.to_grid(rows), source, state)
    shares = {row: round(1 / float(scale)) for (row, _), scale in source.asked.items()}
    assert set(shares.values()) == {1, 2, 3, 4, 5}
    for (one, taken), (other, absorbed) in itertools.pairwise(sorted(shares.items())):
        assert other - one >= taken, "a step that was spoken for publishes"
        assert absorbed == min(other - (one + taken) + 1, 5)


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_a_person_with_few_events_makes_looking_cheaper(kind):
    few = kind(epsilon=1.0, bounds=(0, 400), unit=Contribution(Window(10), total=3))
    many = kind(epsilon=1.0, bounds=(0, 400), unit=Contribution(Window(10)))
    assert few.spending.looking.scale / many.spending.looking.scale == Fraction(3, 10)


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_budgets_too_small_to_draw_noise_for_are_not_spent(kind, rng):
    """A step whose noise would be past any use repeats."""
    window = 10**6
    mechanism = kind(epsilon=1e-4, bounds=(0, 400), unit=Contribution(Window(window)))
    plan = mechanism.spending
    assert max(plan.scales(plan.least)) <= 2**34 < max(plan.scales(plan.least - 1))
    rows = made_up(rng, 600)
    source = Spending(rng, len(rows))
    mechanism.perturb(rows.astype(np.int64), source, SeriesState.fresh(mechanism, 1, len(rows)))
    assert source.asked and max(source.asked.values()) < 2**34 * (1 + 1e-9)
    with pytest.raises(UsageError, match="choose a coarser grid"):
        replace(mechanism, epsilon=1e-12, grid=2.0**-6)


# what it costs, exactly


def loss(mechanism, length, tail=1e-3):
    return exact.audit(mechanism, (0, 1), length, tail)


def test_absorption_loses_all_of_epsilon():
    verdict = loss(NAMED["absorption, window"].mechanism, 3)
    assert verdict.holds and verdict.found == pytest.approx(verdict.claimed, rel=1e-9)


@pytest.mark.parametrize("window", [1, 2])
def test_distribution_never_spends_the_last_half_of_a_half(window):
    mechanism = BudgetDistribution(epsilon=12.0, bounds=(0, 1), unit=Window(window), grid=1)
    verdict = loss(mechanism, 3)
    assert verdict.holds
    assert verdict.found == pytest.approx(12 / 2 + 12 / 2 * (1 - 0.5**window), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("unit", [Window(3), Contribution(Window(3), signed=True)])
def test_four_steps_with_windows_of_three(unit):
    absorbing = BudgetAbsorption(epsilon=18.0, bounds=(0, 1), unit=unit, grid=1)
    verdict = loss(absorbing, 4)
    assert verdict.holds and verdict.found == pytest.approx(18, rel=1e-9)
    verdict = loss(BudgetDistribution(epsilon=18.0, bounds=(0, 1), unit=unit, grid=1), 4)
    assert verdict.holds and verdict.found == pytest.approx(9 + 9 * 7 / 8, rel=1e-9)


@pytest.mark.parametrize("tail", [1e-2, pytest.param(1e-3, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ADAPTIVE)
def test_counts_that_all_change_the_same_way_lose_as_much(kind, tail):
    """Among counts of 0, 1 and 2; with 0 and 1 alone it would seem that they lose less."""
    mechanism = kind(epsilon=12.0, bounds=(0, 3), unit=Contribution(Window(2)))
    verdict = exact.audit(mechanism, (0, 1, 2), 3, tail)
    expected = {BudgetDistribution: 10.5, BudgetAbsorption: 12.0}[kind]
    assert verdict.holds and verdict.found == pytest.approx(expected, rel=1e-9)


# long windows, and draws that floating point does not settle


@pytest.mark.parametrize("kind", KINDS[1:])
def test_windows_of_ten_thousand_steps(kind, rng):
    mechanism = kind(epsilon=50.0, bounds=(0, 400), unit=Contribution(Window(20_000)))
    rows = made_up(rng, 50_000)
    whole = mechanism.start(Key.from_seed(3), "a").push(rows)
    stream = mechanism.start(Key.from_seed(3), "a")
    before = stream.push(rows[:27_001])
    after = resume(mechanism, stream.state(), Key.from_seed(3)).push(rows[27_001:])
    assert np.array_equal(np.concatenate([before, after]), whole)
    assert np.unique(whole).size > 2


class HalfUndecided(distributions.ScalableLaplace):
    """Every other row has a word that floating point cannot settle."""

    def __init__(self, runs, purpose):
        super().__init__(runs, purpose)
        self.words.sizes[::2] &= np.uint64(1)
        self.asked = 0

    def settle(self, row, scale):
        assert row % 2 == 0 and self.words.settled[row] == UNDECIDED
        super().settle(row, scale)


@pytest.mark.parametrize("kind", ADAPTIVE)
@pytest.mark.parametrize("columns", [1, 3])
def test_undecided_draws_are_settled_and_the_stream_goes_on_there(kind, columns, rng):
    mechanism = kind(epsilon=2.0, bounds=((0, 400),) * columns, unit=Contribution(Window(5)))
    rows = made_up(rng, 60, columns)
    with mock.patch.object(distributions, "ScalableLaplace", HalfUndecided), recorded() as drawn:
        out = np.asarray(mechanism.start(Key.from_seed(4), "a").push(rows)).reshape(rows.shape)
    values = [one.values for one in drawn]
    assert sum(int((words.settled != UNDECIDED).sum()) for words in values[1:]) > 3
    assert np.array_equal(out, released(mechanism)(rows, values))


# refusals


@pytest.mark.parametrize("kind", KINDS)
def test_units_that_are_no_window_are_refused(kind):
    for unit in (WholeSeries(9), Contribution(WholeSeries(9))):
        with pytest.raises(UsageError, match=r"must be Window\(w\)"):
            kind(epsilon=1.0, bounds=(0, 9), unit=unit)


def test_only_distribution_remembers_every_step_of_a_window():
    unit = Contribution(Window(10**7))
    with pytest.raises(UsageError, match="BudgetAbsorption takes any"):
        BudgetDistribution(epsilon=9.0, bounds=(0, 9), unit=unit)
    for kind in (SampleOnce, BudgetAbsorption):
        assert kind(epsilon=9.0, bounds=(0, 9), unit=unit).memory_size == 2


# samples through a filter


def month(**other):
    given = {"epsilon": 5.0, "bounds": (0, 400), "samples": 60, "wander": 4.0}
    return Fast(**{**given, "unit": Contribution(WholeSeries(720)), **other})


def test_between_samples_readings_are_not_looked_at(rng):
    """The same readings where samples are taken give the same bits everywhere, times included."""
    mechanism, rows = month(), made_up(rng, 720)
    stream = mechanism.start(Key.from_seed(5), "a")
    out = stream.push_block(Block.of(rows, "a", 0))
    sampled = out.status == RELEASED
    assert 20 < sampled.sum() <= 60
    other = np.where(sampled[:, None], rows, made_up(rng, 720))
    again = mechanism.start(Key.from_seed(5), "a").push_block(Block.of(other, "a", 0))
    assert np.array_equal(again.values, out.values) and np.array_equal(again.status, out.status)


def test_no_more_samples_than_paid_for_and_then_the_last_estimate(rng):
    mechanism = month(samples=7, stretch=0.01)
    out = mechanism.start(Key.from_seed(5), "a").push_block(Block.of(made_up(rng, 720), "a", 0))
    assert (out.status == RELEASED).sum() == 7
    last = np.flatnonzero(out.status == RELEASED)[-1]
    assert (out.values[last:] == out.values[last]).all()


def test_a_series_that_moves_is_sampled_more_often(rng):
    mechanism = month(epsilon=1e4, samples=200)
    calm, wild = np.full((720, 1), 200.0), made_up(rng, 720)
    taken = [
        (mechanism.start(Key.from_seed(6), "a").push_block(Block.of(x, "a", 0)).status == 0).sum()
        for x in (calm, wild)
    ]
    assert taken[0] < 40 < 80 < taken[1]


@pytest.mark.parametrize("tail", [1e-5, pytest.param(1e-7, marks=pytest.mark.long)])
def test_filtered_samples_stay_within_epsilon(tail):
    """Outputs that several samples lead to: what the listing left out is held against the claim."""
    mechanism = month(
        epsilon=3.0, bounds=(0, 2), samples=2, wander=0.5, unit=Contribution(WholeSeries(3))
    )
    examples = list(itertools.product((0.0, 1.0, 2.0), repeat=3))
    laws = {one: exact.distribution(mechanism, one, tail) for one in examples}
    worst = 0.0
    for one in examples:
        for other in mechanism.unit.neighbors(one, (0.0, 1.0, 2.0)):
            unseen = 1 - math.fsum(laws[other].values())
            for output, p in laws[one].items():
                q = laws[other].get(output, 0.0) + unseen
                worst = max(worst, math.log(p / q))
    assert 2.5 < worst <= 3.0


def test_the_exponential_is_right_and_the_same_compiled_or_not(rng):
    for x in [*rng.uniform(-1, 5, 200), *rng.uniform(-700, 700, 50), 0.0, -1.0]:
        assert exponential(x) == pytest.approx(math.exp(x), rel=1e-13 * (1 + x * x))
        plain = getattr(exponential, "py_func", exponential)
        assert exponential(x) == plain(x)
    assert exponential(1e9) == exponential(700.0) and exponential(math.inf) < math.inf


def test_a_person_with_few_events_makes_samples_cheaper():
    few = month(unit=Contribution(WholeSeries(720), total=6))
    assert few.distributions[0].scale / month().distributions[0].scale == Fraction(6, 60)
    assert changes_of(few) == [1]
