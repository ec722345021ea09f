"""Advice on hiding times: the cheapest that there is, by formulas and when it is simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tempriv.data.series import Block
from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, least_latency
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units.order import BlockSwap, Swap
from tempriv.sampling.keys import EPOCH, Key
from tempriv.sampling.keystream import StepRange
from tempriv.utility import reorder_costs, tasks
from tempriv.utility.advisor import Ranking, Recommendation, curves, papers_strategy, rank
from tempriv.utility.baselines import expected_error, task_of, value_baseline, variance
from tempriv.utility.cost_models import (
    ExpectedCost,
    SimulatedCost,
    _drops,
    cheapest,
    shares_of,
)
from tempriv.utility.inputs import papers_costs
from tempriv.utility.order_leak import find_order_leaks, stretches
from tempriv.utility.reorder_costs import ORDER_MECHANISMS, UnitCosts
from tempriv.utility.simulation import Average, Count, TrialReadings, simulate_task, sources


def even(window: int) -> UnitCosts:
    """As in the paper's figures: M = N = E = k, D = 1."""
    return UnitCosts(missing=window, repeated=window, empty=window, delay=1)


def one_series(values) -> TrialReadings:
    return TrialReadings(np.asarray(values, dtype=np.float64), np.array([len(values)]))


# by unit costs


def test_the_drops_of_all_thresholds_at_once_are_those_of_each():
    for epsilon, window in ((0.7, 6), (3.0, 10), (7.0, 40)):
        found, drops = _drops(epsilon, window)
        for threshold, dropped in zip(found.tolist(), drops, strict=True):
            made = Threshold(epsilon=epsilon, window=window, threshold=threshold)
            assert dropped == pytest.approx(made.expected_shares().missing, rel=1e-6, abs=1e-9)
        assert set(found.tolist()) >= set(analysis.feasible_thresholds(epsilon, window))


@pytest.mark.parametrize("kind", [Threshold, DualThreshold])
@pytest.mark.parametrize(("epsilon", "window"), [(0.5, 5), (2.0, 10), (5.0, 20), (6.0, 50)])
@pytest.mark.parametrize("lost", [0.2, 3.0, 40.0])
def test_no_other_threshold_is_cheaper(kind, epsilon, window, lost):
    unit = UnitCosts(missing=lost, repeated=0, empty=lost, delay=1)
    best = cheapest(kind, epsilon, window, ExpectedCost(unit))
    scan = []
    for threshold in range(2, window):
        try:
            made = kind(epsilon=epsilon, window=window, threshold=threshold)
            scan.append(unit.cost(made.expected_shares()))
        except TemprivError:
            continue
    assert unit.cost(best.expected_shares()) == pytest.approx(min(scan), rel=1e-9)


def test_the_usual_threshold_is_not_always_the_cheapest():
    """Extended ones with another threshold; even where one without drops is feasible."""
    worth = ExpectedCost(even(200))
    usual = Threshold(epsilon=7.0, window=200)
    found = cheapest(Threshold, 7.0, 200, worth)
    assert (usual.threshold, found.threshold) == (56, 71)
    assert worth.of(usual).cost == pytest.approx(149.1, abs=0.05)
    assert worth.of(found).cost == pytest.approx(145.3, abs=0.05)
    usual, found = Threshold(epsilon=5.0, window=20), cheapest(Threshold, 5.0, 20, worth)
    assert not usual.extended and usual.threshold == 10
    found = cheapest(Threshold, 5.0, 20, ExpectedCost(even(20)))
    assert found.extended and found.threshold == 11


def test_of_two_that_cost_the_same_the_better_promise_comes_first():
    advice = rank(1.0, 10, ExpectedCost(even(10)))
    names = [offer.name for offer in advice.recommendations]
    # repeats and empty slots cost the same here, and Forward guarantees nothing
    assert names.index("Backward") + 1 == names.index("Forward")
    assert advice.first.name == "BlockShuffle" == advice.cheapest(Swap, BlockSwap).name
    both = rank(5.0, 10, ExpectedCost(even(10)))
    assert [one.name for one in both.recommendations[:2]] == ["DualThreshold", "Threshold"]
    losses = [one.mechanism.guarantee.loss.epsilon for one in both.recommendations[:2]]
    assert losses == sorted(losses)
    assert "level with Threshold" in both.why


def test_what_promises_nothing_may_be_first_and_is_not_what_to_take():
    repeats = UnitCosts(missing=1, repeated=100, empty=0, delay=1)
    advice = rank(12.0, 5, ExpectedCost(repeats))
    assert advice.first.name == "Forward" and advice.first.protects == "nothing"
    assert advice.first.guarantee == "nothing"
    assert advice.cheapest_guaranteed.protects == "SlotOrigin"


def test_every_offer_tells_its_own_promise():
    advice = rank(5.0, 10, ExpectedCost(even(10)))
    told = {offer.name: (offer.protects, offer.guarantee) for offer in advice.recommendations}
    assert told["Backward"] == ("SlotOrigin", "one row alone: epsilon = 2.5; no swap")
    assert told["Forward"] == ("nothing", "nothing")
    assert told["BlockShuffle"] == ("BlockSwap", "swaps inside a block of 10: epsilon = 5")
    assert told["NoisyOrder"][0] == "Swap"
    assert told["NoisyOrder"][1].startswith("any swap up to 9 steps: epsilon = 5, delta = 8.")
    assert advice.cheapest(Swap).mechanism.latency == 112


def test_who_reads_a_file_does_not_wait():
    stream, file = (rank(2.0, 10, ExpectedCost(even(10), seen)) for seen in ("stream", "file"))
    cost = {one.name: one.cost for one in file.recommendations}
    assert (
        stream.once_complete.mechanism
        == file.first.mechanism
        == BlockShuffle(epsilon=2.0, block=10)
    )
    assert stream.once_complete.cost == file.first.cost < stream.first.cost
    assert cost["Backward"] == {one.name: one.cost for one in stream.recommendations}["Backward"]
    assert file.cheapest(Swap).mechanism == NoisyOrder(epsilon=2.0, window=10)
    assert ("NoisyOrder (whole)", "nothing comes out before the end of the series") in (
        stream.left_out
    )
    assert not file.left_out


def test_steps_off_their_time_are_those_of_a_long_run():
    """Five standard errors; batches of 2,000 steps. The stay of a reading is not a move."""
    for mechanism in (BlockShuffle(epsilon=1.5, block=7), NoisyOrder(epsilon=2.0, window=6)):
        found = sources(mechanism, np.array([2002] * 50), 1, seed=8, seen="file")[0]
        off = np.abs(found - np.arange(len(found))).reshape(50, 2002).mean(axis=1)
        error = off.std(ddof=1) / math.sqrt(50)
        told = shares_of(mechanism, "file").delay
        # that of NoisyOrder comes from a run of its own
        slack = 0.0 if isinstance(mechanism, BlockShuffle) else error
        assert abs(off.mean() - told) < 5 * (error + slack)
        assert abs(off.mean() - told * 1.1) > 5 * (error + slack)  # ten percent would show


def test_what_cannot_be_offered_is_told_with_its_reason():
    advice = rank(2.0, 10, ExpectedCost(even(10)), latency=50)
    reasons = dict(advice.left_out)
    assert "latency=258 would do" in reasons["NoisyOrder"]
    assert least_latency(2.0, 10, 1e-6) == 258
    tiny = rank(1e-9, 10, ExpectedCost(even(10)))
    assert {"Backward", "Forward", "BlockShuffle"} <= {one.name for one in tiny.recommendations}
    assert {"Threshold", "DualThreshold"} <= dict(tiny.left_out).keys()


def test_costs_against_epsilon_are_those_of_the_advice():
    price = ExpectedCost(even(12))
    drawn = curves([0.8, 4.0], 12, price)
    assert set(drawn) == set(ORDER_MECHANISMS)
    for at, epsilon in enumerate((0.8, 4.0)):
        for offer in rank(epsilon, 12, price).recommendations:
            assert drawn[type(offer.mechanism)][at] == pytest.approx(offer.cost)
    short = curves([0.8, 4.0], 12, price, latency=180)
    assert math.isnan(short[NoisyOrder][0]) and short[NoisyOrder][1] == 180


# the paper's strategy


def test_the_papers_strategy_is_as_printed():
    repeats, empties = (
        UnitCosts(missing=1, repeated=2, empty=1, delay=1),
        UnitCosts(missing=1, repeated=1, empty=2, delay=1),
    )
    assert isinstance(papers_strategy(5.0, 10, repeats), Threshold)
    # below what can be derived: extended, unless epsilon < 1 or k > 100
    assert papers_strategy(2.0, 10, repeats).extended
    assert papers_strategy(0.9, 10, repeats) == Forward(epsilon=0.9, window=10)
    assert papers_strategy(0.9, 10, empties) == Backward(epsilon=0.9, window=10)
    assert papers_strategy(2.0, 101, empties) == Backward(epsilon=2.0, window=101)
    # above it: Threshold, unless epsilon > 20 or k < 10
    top = float(analysis.budgets(10).derived.max())
    assert isinstance(papers_strategy(top + 1, 10, repeats), Threshold)
    assert papers_strategy(21.0, 10, repeats) == Forward(epsilon=21.0, window=10)
    top = float(analysis.budgets(9).derived.max())
    assert papers_strategy(top + 1, 9, empties) == Backward(epsilon=top + 1, window=9)
    # a wide window has such budgets within reach
    assert isinstance(papers_strategy(21.0, 60, repeats), Threshold)


GRID = list(
    itertools.product((0.5, 1.0, 2.0, 4.0, 7.0, 12.0, 24.0), (5, 10, 20, 50, 120), (0.2, 1.0, 2.0))
)


def test_ours_never_costs_more_than_the_papers_strategy():
    """On 105 settings of epsilon, k and M/k = N/k = E/k; it costs 71 % of it on average."""
    ratios, same_family = [], []
    for epsilon, window, share in GRID:
        unit = UnitCosts(**dict.fromkeys(("missing", "repeated", "empty"), share * window), delay=1)
        advice = rank(epsilon, window, ExpectedCost(unit))
        assert advice.first.cost <= advice.papers.cost * (1 + 1e-9)
        ratios.append(advice.first.cost / advice.papers.cost)
        theirs = [
            one
            for one in advice.recommendations
            if one.name in ("Backward", "Forward", "Threshold")
        ]
        same_family.append(theirs[0].cost / advice.papers.cost)
    assert np.mean(ratios) < 0.72
    assert np.mean(np.array(ratios) < 0.999) > 0.7
    # by choosing better among the paper's own mechanisms alone
    assert np.mean(same_family) < 0.8


# the advice is right

STEPS, SERIES = 25_000, 10


def simulate(mechanism, seed: int) -> np.ndarray:
    """The rows in the slots of some series, by the mechanism itself with its own latency."""
    latency = getattr(mechanism, "latency", None) or 0
    chain = Key.from_seed(seed).series(serialization.digest(mechanism), "simulation")
    runs = []
    for start in range(0, SERIES * (STEPS + latency), STEPS + latency):
        chain = chain.at_epoch(start // EPOCH)
        runs.append(StepRange(chain, start, STEPS))
    block = Block(
        values=np.tile(np.arange(STEPS), SERIES)[:, None],
        missing=np.zeros((STEPS * SERIES, 1), dtype=bool),
        ids=tuple(map(str, range(SERIES))),
        counts=np.full(SERIES, STEPS),
        starts=np.zeros(SERIES, dtype=np.int64),
    )
    out = perturb_block(mechanism, block, runs, ending=True)
    return np.where(out.missing, -1, out.values)[:, 0].reshape(SERIES, STEPS).astype(np.int64)


def simulated_cost(offer: Recommendation, unit: UnitCosts, seed: int) -> tuple[float, float]:
    """Of 250,000 steps: the mean over ten series and its standard error."""
    latency = getattr(offer.mechanism, "latency", None) or 0
    margin = latency + 200
    each = [
        unit.cost(reorder_costs.measured(one, latency, margin))
        for one in simulate(offer.mechanism, seed)
    ]
    return float(np.mean(each)), float(np.std(each, ddof=1) / math.sqrt(SERIES))


def settings(number: int):
    rng = np.random.default_rng(20211)
    for _ in range(number):
        window = int(rng.integers(3, 41))
        epsilon = float(np.exp(rng.uniform(np.log(0.7), np.log(14))))
        lost = np.exp(rng.uniform(np.log(0.1), np.log(3), 3)) * window
        unit = UnitCosts(missing=lost[0], repeated=lost[1], empty=lost[2], delay=1)
        yield epsilon, window, unit


@pytest.mark.parametrize(
    "number", [*range(8), *(pytest.param(i, marks=pytest.mark.long) for i in range(8, 30))]
)
def test_the_first_choice_has_the_lowest_simulated_cost(number):
    """Of all that are offered, within noise: seven standard errors of both, from ten series each.

    With 9 degrees of freedom that is passed by chance with probability 6e-5 for each comparison.
    Every predicted cost is simulated too, so a wrong formula shows wherever it stands. Readings
    that cross the ends of what is counted may shift a mean delay by window^2 / steps.
    """
    epsilon, window, unit = list(settings(30))[number]
    advice = rank(epsilon, window, ExpectedCost(unit))
    assert len(advice.recommendations) == 6
    found = [simulated_cost(offer, unit, seed=number) for offer in advice.recommendations]
    first, error = found[0]
    for offer, (cost, noise) in zip(advice.recommendations, found, strict=True):
        assert abs(cost - offer.cost) <= 7 * noise + window**2 / STEPS, offer.title
        assert first <= cost + 7 * math.hypot(error, noise) + window**2 / STEPS, offer.title


def test_the_settings_are_not_all_alike():
    """Several mechanisms come first, and most of the time by more than the noise hides."""
    firsts, leads = [], []
    for epsilon, window, unit in settings(30):
        advice = rank(epsilon, window, ExpectedCost(unit))
        firsts.append(advice.first.name)
        leads.append(advice.recommendations[1].cost / advice.first.cost)
    assert len(set(firsts)) >= 4
    assert np.median(leads) > 1.05


# by trial


def made_up(rng, rows: int) -> tuple[TrialReadings, TrialReadings]:
    """A count and an average of two series, with some readings missing."""
    counts = np.array([rows, rows // 2])
    walk = np.cumsum(rng.normal(size=counts.sum())) + 50
    flags = (rng.random(counts.sum()) < 0.3).astype(np.float64)
    for values in (walk, flags):
        values[rng.random(len(values)) < 0.05] = np.nan
    return TrialReadings(flags, counts), TrialReadings(walk, counts)


MECHANISMS = (
    Backward(epsilon=2.0, window=8),
    Forward(epsilon=2.0, window=8),
    Threshold(epsilon=2.0, window=8),
    DualThreshold(epsilon=5.0, window=8),
    BlockShuffle(epsilon=1.0, block=8),
    NoisyOrder(epsilon=3.0, window=8),
    NoisyOrder(epsilon=6.0, window=3, latency=40, delta=1e-6),
)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("seen", ["stream", "file"])
def test_errors_of_many_series_are_those_of_each(mechanism, seen):
    flags, walk = made_up(np.random.default_rng(3), 400)
    found = sources(mechanism, flags.counts, 3, seed=5, seen=seen)
    ends = np.cumsum(flags.counts)
    for task, readings in ((Count(), flags), (Average(9), walk)):
        squares, counted = np.zeros(3), np.zeros(3)
        for low, high in zip(ends - flags.counts, ends, strict=True):
            private = np.ma.masked_invalid(readings.values[low:high])
            for run in range(3):
                gone = found[run, low:high] < 0
                moved = np.ma.array(private[np.where(gone, 0, found[run, low:high] - low)])
                moved[gone] = np.ma.masked
                steps = high - low
                if isinstance(task, Count):
                    error = tasks.count_error(private.filled(0), moved.filled(0), 1)
                else:
                    error = tasks.average_error(private, moved, 9)
                    # steps before the first average are left out
                    steps -= int(np.argmin(np.ma.getmaskarray(tasks.moving_average(moved, 9))))
                squares[run] += error * steps
                counted[run] += steps
        assert task.squared_errors(readings, found) == pytest.approx(squares / counted)


def test_rows_stay_in_their_series():
    counts = np.array([50, 70, 3])
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    for mechanism in MECHANISMS:
        for seen in ("stream", "file"):
            found = sources(mechanism, counts, 4, seed=1, seen=seen)
            there = found >= 0
            own = np.broadcast_to(starts, found.shape)
            assert (starts[found[there]] == own[there]).all()
            assert not np.array_equal(found[0], found[1])


def test_the_order_of_a_stream_of_noisy_times_is_that_of_the_whole():
    """The trial takes the shorter way: same law of displacements, five standard errors."""
    stream = NoisyOrder(epsilon=4.0, window=5, latency=60, delta=1e-5)
    steps = np.arange(STEPS)
    short = sources(stream, np.full(SERIES, STEPS), 1, seed=2, seen="file")[0] % STEPS
    moved = [np.abs(one - steps).mean() for one in short.reshape(SERIES, STEPS)]
    really = [np.abs(one - steps).mean() for one in simulate(stream, seed=3)]
    error = math.hypot(*(np.std(one, ddof=1) / math.sqrt(SERIES) for one in (moved, really)))
    assert abs(np.mean(moved) - np.mean(really)) < 5 * error
    live = sources(stream, np.array([200]), 1, seed=2)[0]
    assert (live[:60] == -1).all() and (live[60:] >= 0).all()


def test_a_trial_of_backward_agrees_with_the_exact_error():
    """Slots choose independently, so the error of a count is known for any readings whatever."""
    rng = np.random.default_rng(6)
    values = (np.sin(np.arange(600) / 9) + rng.normal(size=600) > 0.4).astype(np.float64)
    mechanism = Backward(epsilon=3.0, window=6)
    p = mechanism.probabilities
    before = np.concatenate([np.zeros(5), values])  # empty slots count nothing
    near = np.stack([before[5 - lag : 605 - lag] for lag in range(6)])
    mean = (p[:, None] * near).sum(axis=0)
    spread = (p[:, None] * near**2).sum(axis=0) - mean**2
    exact = float((np.cumsum(mean - values) ** 2 + np.cumsum(spread)).mean())
    found = simulate_task(mechanism, Count(), one_series(values), runs=2000, seed=4)
    assert abs(found.cost - exact) < 5 * found.standard_error
    assert found.standard_error < 0.05 * exact


def test_what_is_on_its_way_is_all_that_a_count_lacks():
    """m readings wait, where nothing is lost: f^2 m^2 + f (1-f) m for readings without order."""
    rng = np.random.default_rng(7)
    readings = one_series((rng.random(40_000) < 0.3).astype(np.float64))
    for mechanism, waiting in (
        (Threshold(epsilon=5.0, window=10), 3),
        (DualThreshold(epsilon=5.0, window=20), 7),
        (BlockShuffle(epsilon=1.0, block=12), 11),
    ):
        found = simulate_task(mechanism, Count(), readings, runs=20, seed=1).cost
        assert found == pytest.approx(0.09 * waiting**2 + 0.21 * waiting, rel=0.03)
        # the paper's D = (f (k-1)/2)^2 for each of the steps is too much
        theirs = papers_costs(Count(), readings, mechanism.unit.span + 1)
        assert theirs.cost(mechanism.expected_shares()) > 2 * found


def test_a_step_of_delay_costs_an_average_two_readings_in_d_squared():
    """2 V m / d^2 for readings without order, of which m wait: so 2M/d a step, not kM/d."""
    rng = np.random.default_rng(8)
    readings = one_series(rng.normal(size=60_000) * 3)
    for window, length in ((10, 10), (10, 25)):
        mechanism = Threshold(epsilon=5.0, window=window)
        found = simulate_task(mechanism, Average(length), readings, runs=20, seed=1).cost
        assert found == pytest.approx(2 * 9 * 3 / length**2, rel=0.03)


def test_trials_are_ranked_by_what_comes_out():
    """The threshold is chosen by other runs than those that are told."""
    rng = np.random.default_rng(9)
    readings = one_series((rng.random(3000) < 0.5).astype(np.float64))
    price = SimulatedCost(Count(), readings, papers_costs(Count(), readings, 10), runs=40)
    assert price.unit == "squared counts"
    advice = rank(5.0, 10, price)
    assert [one.cost for one in advice.recommendations] == sorted(
        one.cost for one in advice.recommendations
    )
    assert {one.name for one in advice.recommendations[:2]} == {"Threshold", "DualThreshold"}
    assert advice.recommendations[-1].name == "Forward"  # what is empty is never made up for
    assert advice.as_good and all(one.standard_error > 0 for one in advice.recommendations)
    for offer in advice.recommendations:
        again = simulate_task(offer.mechanism, Count(), readings, runs=40, seed=99)
        noise = math.hypot(again.standard_error, offer.standard_error)
        assert abs(again.cost - offer.cost) < 6 * noise


def test_who_waits_too_long_for_an_average_is_left_out():
    """There is no error before the first one, so the longest wait would seem the best."""
    readings = one_series(np.random.default_rng(1).normal(size=300))
    price = SimulatedCost(Average(5), readings, even(5), runs=4)
    advice = rank(1.0, 5, price)
    assert "longer than half of a series" in dict(advice.left_out)["NoisyOrder"]
    assert advice.once_complete.protects in ("Swap", "BlockSwap")


def test_a_column_that_never_changes_costs_nothing():
    price = SimulatedCost(Average(5), one_series(np.full(300, 4.0)), even(5), runs=4)
    advice = rank(3.0, 5, price)
    assert advice.first.cost == 0 and "is first" in advice.why


def test_bad_trials_get_one_sentence():
    readings = one_series([1.0, 0.0])
    with pytest.raises(UsageError, match="runs=1: must be at least 2"):
        simulate_task(Backward(epsilon=1.0, window=2), Count(), readings, runs=1, seed=1)
    with pytest.raises(DataError, match="2 readings: must be as many as the series have"):
        TrialReadings(np.zeros(2), np.array([3]))
    with pytest.raises(UsageError, match="length=0: must be a whole number"):
        Average(0)
    with pytest.raises(UsageError, match="Laplace: must be one of Backward"):
        cheapest(Laplace, 1.0, 5, ExpectedCost(even(5)))
    with pytest.raises(UsageError, match="task='mean': must be count or average"):
        task_of("mean", 3)
    with pytest.raises(UsageError, match="window=2: must be a whole number of time steps >= 3"):
        rank(1.0, 2, ExpectedCost(even(2)))


def test_private_readings_do_not_show():
    assert "4.25" not in repr(one_series([4.25, 3.0]))


# values changed instead


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("window", [3, 50])
def test_half_for_each_reading_is_all_of_it_for_a_swap(epsilon, window):
    """Theorem 2.3, by the chain of two readings replaced."""
    for given in ({"categories": ("up", "down")}, {"bounds": (0.0, 3.0)}):
        promise = value_baseline(epsilon, **given).guarantee
        assert promise.loss == Pure(epsilon / 2)
        assert promise.implies(Guarantee(Pure(epsilon), Swap(window)))
        assert not promise.implies(Guarantee(Pure(0.99 * epsilon), Swap(window)))


def test_the_error_of_changed_values_is_what_comes_out():
    """Five standard errors, 300 runs; an error off by a third would show."""
    flags, walk = made_up(np.random.default_rng(2), 200)
    response, noisy = (
        value_baseline(2.0, categories=("yes", "no")),
        value_baseline(2.0, bounds=(30.0, 70.0)),
    )
    turned = response.errors[0]
    rows, each = np.arange(300), {"count": [], "average": []}
    ends = np.arange(1, 301)
    lows = np.maximum(ends - 9, walk.starts)
    truth, defined = Average.averages(walk.values[None], lows, ends)
    for run in range(300):
        key = Key.from_seed(run)
        names = [None if v != v else "yes" if v else "no" for v in flags.values.tolist()]
        told = np.array([name == "yes" for name in response.start(key).push(names)])
        fixed = (told - turned) / (1 - 2 * turned)
        wrong = np.where(flags.there, fixed - np.nan_to_num(flags.values), 0.0)
        total = np.cumsum(wrong)
        each["count"].append(np.square(np.where(rows < 200, total, total - total[199])).mean())
        out = noisy.start(key).push(np.ma.masked_invalid(walk.values))
        seen, _ = Average.averages(np.ma.filled(out, np.nan).reshape(1, -1), lows, ends)
        each["average"].append(np.square(seen - truth)[defined].mean())
    for task, mechanism, readings in ((Count(), response, flags), (Average(9), noisy, walk)):
        errors = np.array(each["count" if isinstance(task, Count) else "average"])
        noise = errors.std(ddof=1) / math.sqrt(300)
        expected = expected_error(mechanism, task, readings)
        assert abs(errors.mean() - expected) < 5 * noise
        assert noise * 5 < expected / 3


def test_noise_of_laplace_is_twice_the_square_of_its_scale():
    assert variance(value_baseline(2.0, bounds=(0.0, 10.0))) == pytest.approx(2 * 10.0**2, rel=1e-4)


def test_baselines_that_do_not_fit_get_one_sentence():
    with pytest.raises(UsageError, match="give categories or bounds, one of them"):
        value_baseline(1.0)
    with pytest.raises(UsageError, match="is for averages of numbers"):
        expected_error(value_baseline(1.0, bounds=(0, 1)), Count(), one_series([0.0]))
    with pytest.raises(UsageError, match="is for counts of one value"):
        three = value_baseline(1.0, categories=("a", "b", "c"))
        expected_error(three, Count(), one_series([0.0]))


# columns that betray


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_meter_betrays_its_order_and_noise_does_not(mechanism):
    rng = np.random.default_rng(4)
    counts = np.array([1500, 700])
    meter = np.cumsum(rng.exponential(size=2200))
    found = find_order_leaks(mechanism, "meter", meter, counts)
    assert found.is_telling and found.in_order > 0.95
    assert f"sorting restores {100 * found.restored:.0f} % of the times" in found.sentence
    assert not find_order_leaks(mechanism, "noise", rng.normal(size=2200), counts).is_telling
    assert not find_order_leaks(
        mechanism, "flag", rng.integers(0, 2, 2200) * 1.0, counts
    ).is_telling


def test_a_column_that_rises_and_falls_betrays_its_order_too():
    rise = np.concatenate([np.arange(1000.0), np.arange(1000.0, 0, -1)])
    found = find_order_leaks(Threshold(epsilon=5.0, window=10), "tide", rise, np.array([2000]))
    assert found.is_telling and found.restored > 0.9


def test_stretches_are_spread_over_all_series():
    parts = list(stretches(np.arange(100_000.0), np.array([60_000, 40_000]), 1000))
    assert len(parts) == 5 and {len(part) for part in parts} == {1000}
    assert parts[0][0] == 0 and parts[-1][-1] == 99_999
    # the rest of a short series is better than nothing, and what is missing is not there
    assert [len(part) for part in stretches(np.arange(5.0), np.array([5]), 200)] == [5]
    assert not list(stretches(np.array([1.0, np.nan, np.nan, 2.0]), np.array([4]), 200))
    empty = find_order_leaks(
        Backward(epsilon=1.0, window=3), "x", np.full(4, np.nan), np.array([4])
    )
    assert not empty.is_telling


# words


def test_the_sentence_says_why():
    slow = Recommendation(BlockShuffle(epsilon=1.0, block=4), 3.0, 0.0, Shares(delay=3.0))
    lossy = Recommendation(Backward(epsilon=1.0, window=4), 6.0, 0.0, Shares(0.25, 0.25, 0.0, 1.0))
    advice = Ranking(
        epsilon=1.0,
        window=4,
        seen="stream",
        unit="steps of delay",
        recommendations=(slow, lossy),
        left_out=(),
        papers=lossy,
        once_complete=slow,
    )
    assert advice.why == (
        "BlockShuffle is first because nothing is lost or repeated and readings are 3 steps late "
        "on average; Backward costs 2 times as much, because 25 % of the readings are missing, "
        "25 % of the rows are repeats and readings are 1 steps late on average."
    )
    assert advice.as_good == ()
    assert slow.title == "BlockShuffle (block = 4)"
