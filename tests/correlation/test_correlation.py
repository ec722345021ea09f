"""Temporal privacy loss: beside plain definitions, and the numbers that were found before."""

from __future__ import annotations

import doctest
import json
import math
import re
import stat

import numpy as np
import pytest

from tempriv.correlation._kernels import candidates, grown
from tempriv.correlation.chain import Chain, equal_width, read_chain, states_of, write_chain
from tempriv.correlation.growth import backward_growth, forward_growth
from tempriv.correlation.landmarks import landmark_loss
from tempriv.correlation.loss import allocate, loss, supremum
from tempriv.errors import TemprivError
from tests.reference import correlation as plain
from tests.support.paths import DOCS

PAGE = (DOCS / "correlation.md").read_text()
TWO = [[0.9, 0.1], [0.3, 0.7]]
COUNTEREXAMPLE = [[0.99, 0.01], [0.95, 0.05]]
SMOOTHED = Chain.smoothed_identity


def law(rng, n, rare=0.0):
    """Random rows; with ``rare`` > 0 some entries are zero, none otherwise."""
    while True:
        rows = rng.dirichlet(np.full(n, 0.5), size=n) + (0 if rare else 0.01)
        rows[rng.random((n, n)) < rare] = 0
        if rows.sum(axis=1).all():
            return rows / rows.sum(axis=1, keepdims=True)


def budgets_of(rng, length, zeros=0.2):
    found = rng.exponential(0.7, length)
    found[rng.random(length) < zeros] = 0
    return found


# L


@pytest.mark.parametrize("rare", [0.0, 0.4])
def test_sorted_prefixes_are_as_good_as_all_sets(rare):
    rng = np.random.default_rng(1)
    for _ in range(60):
        rows = law(rng, int(rng.integers(2, 8)), rare)
        highs, lows = candidates(rows, np.ones(len(rows), dtype=bool), 0.0)
        for a in (1e-9, 0.01, float(rng.exponential(1)), 30.0):
            found = grown(highs, lows, 0, len(highs), a)
            assert found == pytest.approx(plain.grown(rows, a), rel=1e-12, abs=1e-15)


def test_a_frontier_longer_than_the_room_is_kept_whole(monkeypatch):
    rows = law(np.random.default_rng(2), 40)
    possible = np.ones(40, dtype=bool)
    highs, lows = (
        candidates.py_func(rows, possible, 0.0)
        if hasattr(candidates, "py_func")
        else (candidates(rows, possible, 0.0))
    )
    monkeypatch.setattr("tempriv.correlation._kernels.CHUNK_PAIRS", 2)
    plainly = getattr(candidates, "py_func", candidates)
    again = plainly(rows, possible, 0.0)
    assert np.array_equal(highs, again[0]) and np.array_equal(lows, again[1])


def test_a_row_that_is_not_possible_is_left_out():
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert len(candidates(rows, np.array([True, False]), 0.0)[0]) == 0
    assert len(candidates(rows, np.array([True, True]), 0.0)[0]) == 1


@pytest.mark.parametrize("a", [1e-300, 1e-20, 1.0, 599.0, 601.0, 1e4, 1e300])
def test_no_loss_overflows_or_grows_by_itself(a):
    for rows in (np.eye(2), np.array([[0.5, 0.5], [1, 0]]), np.array([[0.6, 0.4], [0.4, 0.6]])):
        highs, lows = candidates(rows, np.ones(2, dtype=bool), 0.0)
        found = grown(highs, lows, 0, len(highs), a)
        assert 0 <= found <= a
    assert found <= math.log(1.5) * (1 + 1e-12)
    highs, lows = candidates(np.array([[0.5, 0.5], [1, 0]]), np.ones(2, dtype=bool), 0.0)
    if a > 50:
        assert grown(highs, lows, 0, len(highs), a) == pytest.approx(a - math.log(2), rel=1e-12)


# loss


def test_losses_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, length = int(rng.integers(2, 6)), int(rng.integers(1, 12))
        matrix, budgets = law(rng, n), budgets_of(rng, length)
        found = loss(Chain(forward=matrix), budgets)
        before = plain.reversed_matrix(matrix, plain.stationary(matrix))
        wanted = plain.one_sided([before] * length, budgets.tolist())
        assert found.backward == pytest.approx(wanted, rel=1e-9)
        wanted = plain.one_sided([matrix] * length, budgets[::-1].tolist())[::-1]
        assert found.forward == pytest.approx(wanted, rel=1e-9)
        assert np.array_equal(found.total, found.backward + found.forward - budgets)


def test_a_start_that_is_not_stationary_has_other_reversed_matrices_at_each_step():
    rng = np.random.default_rng(4)
    for rare in (0.0, 0.0, 0.0):
        n, length = 3, 40
        matrix, shares = law(rng, n, rare), rng.dirichlet(np.ones(n))
        budgets = budgets_of(rng, length)
        found = loss(Chain(forward=matrix, start=shares), budgets)
        reversals = [np.eye(n)]
        for _ in range(length - 1):
            reversals.append(plain.reversed_matrix(matrix, shares))
            shares = shares @ matrix
        wanted = plain.one_sided(reversals, budgets.tolist())
        assert found.backward == pytest.approx(wanted, rel=1e-8)


def test_a_settled_chain_needs_no_more_matrices():
    chain = Chain(forward=TWO, start=[0.1, 0.9])
    made = backward_growth(chain, 5000)
    assert 20 < len(made.tables) < 100
    assert loss(chain, [0.5] * 5000).backward[-1] == pytest.approx(
        supremum(Chain(forward=TWO), 0.5, "backward"), rel=1e-8
    )


def test_a_backward_matrix_that_is_given_is_used():
    given = [[0.6, 0.4], [0.2, 0.8]]
    found = loss(Chain(forward=TWO, backward=given), [1.0, 0.5])
    assert found.backward[1] == pytest.approx(0.5 + plain.grown(np.array(given), 1.0))


def test_what_cannot_occur_is_no_secret_and_what_nearly_cannot_is():
    # state 0 is left for good: after a while it is so unlikely that nothing counts as forgotten
    chain = Chain(forward=[[0.8, 0.2], [0, 1]], start=[0.5, 0.5])
    found = loss(chain, [0.1] * 3000).backward
    assert found[-1] - found[-2] == pytest.approx(0.1)
    assert math.isinf(supremum(chain, 0.1, "backward"))
    never = loss(Chain(forward=[[0.8, 0.2], [0, 1]], start=[0, 1]), [0.1] * 10)
    assert never.backward == pytest.approx(0.1)


def test_without_correlation_nothing_is_added_and_with_all_of_it_everything_is():
    free = loss(SMOOTHED(4, 1e18), [1.0, 0.0, 2.0])
    assert free.total == pytest.approx([1, 0, 2], abs=1e-12)
    stuck = loss(SMOOTHED(4, 0.0), [1.0, 0.0, 2.0])
    assert stuck.total.tolist() == [3, 3, 3]


# suprema

SUPREMA = {
    (1.0, 0.01): (0.014999875005468143, 0.019999750010936283),
    (1.0, 0.1): (0.1498755438793745, 0.19975108775874897),
    (1.0, 1.0): (1.410894429034061, 1.821788858068122),
    (0.1, 0.01): (0.05997253733295474, 0.10994507466590948),
    (0.1, 0.1): (0.57568126284059, 1.0513625256811798),
    (0.1, 1.0): (2.946743597359331, 4.893487194718662),
    (0.01, 0.01): (0.49068136121438055, 0.9713627224287611),
    (0.01, 0.1): (2.3726059981946372, 4.645211996389275),
    (0.01, 1.0): (5.156535612506868, 9.313071225013736),
}


@pytest.mark.parametrize("smoothing, epsilon", SUPREMA)
def test_the_suprema_found_before(smoothing, epsilon):
    side, total = SUPREMA[smoothing, epsilon]
    chain = SMOOTHED(2, smoothing)
    assert supremum(chain, epsilon) == pytest.approx(total, rel=1e-10)
    assert supremum(chain, epsilon, "forward") == pytest.approx(side, rel=1e-10)
    assert supremum(chain, epsilon, "backward") == pytest.approx(side, rel=1e-10)


@pytest.mark.parametrize(
    "epsilon, wanted",
    [
        (0.1, 0.6459066160576815),
        (0.15, 1.1922422697836816),
        (0.2231, 8.655254541233466),
        (0.23, math.inf),
        (0.3, math.inf),
    ],
)
def test_a_supremum_can_be_infinite_past_some_budget(epsilon, wanted):
    chain = Chain(forward=[[0.8, 0.2], [0, 1]], start=[0.5, 0.5])
    assert supremum(chain, epsilon, "forward") == pytest.approx(wanted, rel=1e-9)


def test_constant_budgets_tend_to_the_supremum_and_stay_below_it():
    rng = np.random.default_rng(5)
    finite = infinite = 0
    for _ in range(60):
        matrix, epsilon = law(rng, int(rng.integers(2, 5)), 0.35), float(rng.exponential(0.5))
        chain = Chain(forward=matrix, backward=matrix)
        most = supremum(chain, epsilon)
        found = [loss(chain, [epsilon] * (2 * half + 1)).total[half] for half in (250, 500)]
        if math.isinf(most):
            infinite += 1
            assert found[1] > found[0] + 1e-3
        else:
            finite += 1
            assert most * (1 - 1e-2) <= found[1] <= most
    assert finite > 10 and infinite > 10


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-3, 50.0, 599.0, 601.0, 5000.0])
def test_a_supremum_holds_for_budgets_of_any_size(epsilon):
    chain = SMOOTHED(2, 0.1)
    found = loss(chain, [epsilon] * 200).forward[0]
    assert found <= supremum(chain, epsilon, "forward") <= found * (1 + 1e-9)


def test_the_supremum_of_a_moving_start_takes_its_worst_step():
    chain = Chain(forward=TWO, start=[0.1, 0.9])
    assert supremum(chain, 1.0) > supremum(Chain(forward=TWO), 1.0)
    assert loss(chain, [1.0] * 50).total.max() <= supremum(chain, 1.0)


def test_nothing_spent_is_nothing_lost():
    assert supremum(SMOOTHED(2, 0.0), 0.0) == 0


def test_a_start_next_to_the_stationary_one_is_not_counted_too_low():
    for sign in (1, -1):
        shares = np.array([0.75 + sign * 2e-11, 0.25 - sign * 2e-11])
        chain = Chain(forward=TWO, start=shares)
        assert chain.is_homogeneous
        before = plain.reversed_matrix(np.array(TWO), shares @ np.array(TWO))
        assert loss(chain, [0.0, 1.0, 0.0]).backward[2] >= plain.grown(before, 1.0)


# allocation


@pytest.mark.parametrize(
    "states, smoothing, middle, ends",
    [
        (2, 1.0, 0.5153726876, 0.7576863438),
        (2, 0.1, 0.0947092001, 0.5473546001),
        (2, 0.01, 0.0103186731, 0.5051593366),
        (10, 0.1, 0.2837535315, 0.6418767658),
    ],
)
def test_the_allocations_found_before(states, smoothing, middle, ends):
    chain = SMOOTHED(states, smoothing)
    found = allocate(chain, 1.0, 30)
    assert found == pytest.approx([ends] + [middle] * 28 + [ends], rel=1e-7)
    total = loss(chain, found).total
    assert total.min() > 1 - 1e-11 and total.max() <= 1
    constant = allocate(chain, 1.0, 30, "upper-bound")
    assert constant == pytest.approx(middle, rel=1e-7)
    assert supremum(chain, constant[0]) <= 1 < supremum(chain, constant[0] * (1 + 1e-9))
    assert loss(chain, constant).total.max() <= 1


def test_allocations_of_any_chain_meet_the_target():
    rng = np.random.default_rng(6)
    for _ in range(20):
        chain = Chain(forward=law(rng, int(rng.integers(2, 6))))
        target, length = float(rng.exponential(2)), int(rng.integers(1, 30))
        total = loss(chain, allocate(chain, target, length)).total
        assert target * (1 - 1e-9) < total.min() and total.max() <= target
        constant = allocate(chain, target, length, "upper-bound")
        assert supremum(chain, constant[0]) == pytest.approx(target, rel=1e-9)


def test_allocations_of_a_moving_start_stay_below_the_target():
    chain = Chain(forward=TWO, start=[0.1, 0.9])
    total = loss(chain, allocate(chain, 1.0, 30)).total
    assert total.min() > 0.7 and total.max() <= 1


def test_a_chain_that_forgets_nothing_is_released_twice_or_never():
    stuck = SMOOTHED(3, 0.0)
    assert allocate(stuck, 1.0, 4) == pytest.approx([0.5, 0, 0, 0.5])
    assert loss(stuck, allocate(stuck, 1.0, 4)).total == pytest.approx(1)
    with pytest.raises(TemprivError, match="no constant budget"):
        allocate(stuck, 1.0, 4, "upper-bound")


# landmarks


def test_definition5_is_too_small_and_the_bridge_is_not():
    chain = Chain(forward=COUNTEREXAMPLE)

    def of(*way):
        return landmark_loss(chain, [0.001, 2, 0.001], [0, 2], *way).total[0]

    assert of("exact") == pytest.approx(0.7887937301865382, rel=1e-9)
    assert of("definition5", "inclusive") == pytest.approx(0.4325860113078331, rel=1e-9)
    assert of("definition5", "exclusive") == pytest.approx(0.4325691590572171, rel=1e-9)
    assert of("bridge") == pytest.approx(1.1589173846600578, rel=1e-9)


def test_the_worst_random_case_found_before():
    chain = Chain(
        forward=[
            [0.35382356155844374, 0.6461764384415561],
            [0.008197594816899443, 0.9918024051831006],
        ]
    )
    budgets = [
        0.6070241855133205,
        0.39916149632616726,
        0.4732542674918743,
        0.30480667641938375,
        1.3613843593340655,
        1.3367650133351274,
    ]

    def of(*way):
        return landmark_loss(chain, budgets, [0, 5], *way).total[5]

    assert of("exact") == pytest.approx(3.660097115421209, rel=1e-9)
    assert of("definition5") == pytest.approx(3.2589823946963272, rel=1e-9)
    assert of("definition5", "exclusive") == pytest.approx(3.143213815645395, rel=1e-9)
    assert of("bridge") == pytest.approx(4.35720868178637, rel=1e-9)


def test_the_sums_of_figure_9_found_before():
    chain = SMOOTHED(2, 1.0)
    for reading, wanted in (("inclusive", 1.6599951111518736), ("exclusive", 1.0)):
        found = landmark_loss(chain, [0.01] * 100, range(100), "definition5", reading)
        assert found.maximum == pytest.approx(wanted, rel=1e-9)
    assert loss(chain, [1.0] * 100).total.mean() == pytest.approx(1.810983961865656, rel=1e-9)


def cases(count, seed, rare=0.0):
    """Small random ones: chain, budgets, landmarks."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(2, 4))
        length = int(rng.integers(2, 7 if n == 2 else 5))
        matrix = law(rng, n, rare)
        start = rng.dirichlet(np.ones(n)) if rare else plain.stationary(matrix)
        if rare and rng.random() < 0.4:
            start[0] = 0
        marks = rng.choice(length, int(rng.integers(0, length)), replace=False)
        yield matrix, start / start.sum(), budgets_of(rng, length), sorted(marks.tolist())


def test_every_method_is_what_its_definition_says():
    for matrix, shares, budgets, marks in cases(16, 7):
        chain, before = Chain(forward=matrix), plain.reversed_matrix(matrix, shares)
        ways = {
            "bridge": lambda s, m=matrix, b=before, e=budgets: plain.bridge(m, b, e, s),
            "inclusive": lambda s, m=matrix, b=before, e=budgets: plain.definition5(
                m, b, e, s, True
            ),
            "exclusive": lambda s, m=matrix, b=before, e=budgets: plain.definition5(
                m, b, e, s, False
            ),
        }
        for way, definition in ways.items():
            named = ("bridge",) if way == "bridge" else ("definition5", way)
            found = landmark_loss(chain, budgets, marks, *named)
            wanted = [definition(sorted({*marks, t})) for t in range(len(budgets))]
            assert found.total == pytest.approx(wanted, rel=1e-8, abs=1e-12)
            assert found.maximum == found.total.max()


@pytest.mark.parametrize("rare", [0.0, 0.35])
def test_exact_is_the_largest_over_all_outputs_and_values(rare):
    tried = 0
    for matrix, shares, budgets, marks in cases(24, 8, rare):
        if len(budgets) * len(matrix) > 9:
            continue  # 2^9 outputs are enough here
        found = landmark_loss(Chain(forward=matrix, start=shares), budgets, marks, "exact").total
        for t, one in enumerate(found):
            tried += 1
            wanted = plain.joint(matrix, shares, budgets, sorted({*marks, t}))
            assert one == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert tried > 30


def test_200_enumerated_cases_do_not_pass_the_bridge_and_some_pass_definition5():
    above = {"inclusive": 0, "exclusive": 0}
    ratios = []
    for matrix, _, budgets, marks in cases(200, 9):
        chain = Chain(forward=matrix)
        exact = landmark_loss(chain, budgets, marks, "exact").total
        bridge = landmark_loss(chain, budgets, marks).total
        assert np.all(exact <= bridge * (1 + 1e-9))
        ratios += (exact[bridge > 0] / bridge[bridge > 0]).tolist()
        for reading in above:
            summed = landmark_loss(chain, budgets, marks, "definition5", reading).total
            above[reading] += int(np.any(exact > summed * (1 + 1e-6)))
    assert np.mean(ratios) > 0.9 and max(ratios) > 1 - 1e-6  # it is tight somewhere
    assert above["inclusive"] >= 2 and above["exclusive"] >= 5


@pytest.mark.long
@pytest.mark.parametrize("rare", [0.0, 0.35])
def test_thousands_of_enumerated_cases_do_not_pass_the_bridge(rare):
    for matrix, shares, budgets, marks in cases(4000, 12, rare):
        chain = Chain(forward=matrix, start=shares)
        exact = landmark_loss(chain, budgets, marks, "exact").total
        assert np.all(exact <= landmark_loss(chain, budgets, marks).total * (1 + 1e-9))


def test_the_bridge_holds_where_some_steps_are_impossible():
    for matrix, shares, budgets, marks in cases(120, 10, 0.35):
        chain = Chain(forward=matrix, start=shares)
        exact = landmark_loss(chain, budgets, marks, "exact").total
        assert np.all(exact <= landmark_loss(chain, budgets, marks).total * (1 + 1e-9))


def test_a_gap_whose_ends_cannot_be_changed_one_by_one_has_the_sum_of_its_budgets():
    # 0 -> 1 -> 0 and 2 -> 3 -> 2 only: no path leads from one pair of ends to the other
    matrix = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    chain, budgets = Chain(forward=matrix, start=[0.25] * 4), [0.1, 2.0, 0.1]
    for method in ("bridge", "exact"):
        found = landmark_loss(chain, budgets, [0, 2], method).total[0]
        assert found == pytest.approx(2.2, rel=1e-9)


def test_chances_too_small_to_compute_with_forget_nothing():
    # 2 follows 0 after two steps only through 1, so it tells all of the middle; 1e-400 is no float
    chain = Chain(forward=[[1, 1e-200, 0], [1, 0, 1e-200], [1, 0, 0]])
    assert landmark_loss(chain, [0.1, 2.0, 0.1], [0, 2]).total[0] == pytest.approx(2.2, rel=1e-9)
    for marks in ([0, 2], [2]):
        with pytest.raises(TemprivError, match="too unlikely"):
            landmark_loss(chain, [0.1, 2.0, 0.1], marks, "exact")
    # the long-run share of 2 is as small: seen back from it, nothing counts as forgotten
    assert loss(chain, [0.1] * 4).backward == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_without_landmarks_it_is_the_loss_of_each_step():
    chain, budgets = Chain(forward=TWO), [0.5, 1.0, 0.2]
    for method in ("bridge", "definition5"):
        found = landmark_loss(chain, budgets, [], method).total
        assert found == pytest.approx(loss(chain, budgets).total)
    exact = landmark_loss(chain, budgets, [], "exact").total
    assert np.all(exact <= loss(chain, budgets).total * (1 + 1e-12))


def test_exact_takes_long_series_with_short_gaps():
    budgets = [0.1] * 200
    marks = [t for t in range(200) if t % 4]
    found = landmark_loss(Chain(forward=TWO), budgets, marks, "exact")
    assert found.maximum <= landmark_loss(Chain(forward=TWO), budgets, marks).maximum <= 20.000001


# chains


def test_reversed_chains_and_long_run_shares():
    rng = np.random.default_rng(11)
    for _ in range(20):
        matrix = law(rng, int(rng.integers(1, 7)))
        chain = Chain(forward=matrix)
        assert chain.shares == pytest.approx(plain.stationary(matrix), rel=1e-9)
        before, possible = chain.reversed_at(1)
        assert possible.all()
        assert before == pytest.approx(plain.reversed_matrix(matrix, chain.shares), rel=1e-9)
        assert np.array_equal(chain.reversed_at(9)[0], before)


def test_long_run_shares_keep_their_digits_in_a_chain_that_hardly_mixes():
    chain = Chain(forward=[[1 - 3e-14, 3e-14], [1e-14, 1 - 1e-14]])
    assert chain.shares == pytest.approx([0.25, 0.75], rel=1e-12)


def test_estimates_take_no_pair_across_series_or_gaps():
    found = Chain.estimate([[0, 0, -1, 1], [1, 0], [], np.array([1])], 2, 1.0, private=False)
    assert found.forward == ((2 / 3, 1 / 3), (2 / 3, 1 / 3))
    exact = Chain.estimate([[0, 1, 0, 0], [1, 0]], 2, pseudocount=0, private=False)
    assert exact.forward == ((0.5, 0.5), (1.0, 0.0))


def test_a_private_chain_shows_no_number():
    chain = Chain.estimate([[0, 0, 1, 1, 0, 1, 2]], 3)
    shown = [chain, loss(chain, [1.0, 2.0]), landmark_loss(chain, [1.0, 2.0], [0])]
    for one in shown:
        assert not re.search(r"\d", repr(one)) and "private" in repr(one)
    public = Chain.estimate([[0, 0, 1, 1, 0, 1, 2]], 3, private=False)
    assert re.search(r"\d", repr(public)) and re.search(r"\d", repr(loss(public, [1.0])))
    with pytest.raises(TemprivError) as refused:
        Chain(forward=[[0.5, 0.25], [0.5, 0.5]], private=True)
    assert "0.75" not in str(refused.value) and "row 0" in str(refused.value)


def test_chains_are_written_and_read(tmp_path):
    for number, chain in enumerate(
        (
            Chain(forward=TWO),
            Chain(forward=TWO, start=[0.1, 0.9]),
            Chain(forward=TWO, backward=TWO, private=True),
            SMOOTHED(3, 0.1),
        )
    ):
        path = tmp_path / f"{number}.json"
        write_chain(chain, path)
        assert read_chain(path) == chain and hash(read_chain(path)) == hash(chain)
        assert (stat.S_IMODE(path.stat().st_mode) == 0o600) == chain.private
    table = tmp_path / "chain.csv"
    table.write_text("0.9,0.1\n0.3,0.7\n\n")
    assert read_chain(table) == Chain(forward=TWO)
    assert Chain.from_json(json.dumps(TWO)) == Chain(forward=TWO)


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "square"),
        ("a,b\n1,2\n", "no number"),
        ("1,0\n", "square"),
        ("{", "JSON"),
        ('{"start": [1]}', "forward"),
        ('{"forward": [[1]], "other": 1}', "'other'"),
        ("0.5,0.4\n0.5,0.5\n", "row 0 sums to 0.9"),
    ],
    ids=["empty", "heading", "wide", "broken", "no matrix", "unknown", "sum"],
)
def test_files_that_hold_no_chain_are_refused(tmp_path, text, said):
    path = tmp_path / "chain"
    path.write_text(text)
    with pytest.raises(TemprivError, match=said):
        read_chain(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TemprivError, match="cannot be read"):
        read_chain(tmp_path / "none.json")


def test_states_come_from_public_edges():
    assert equal_width(0, 1, 4) == (0, 0.25, 0.5, 0.75, 1)
    values = np.ma.array([0.0, 0.25, 1.0, 7.0, -3.0, 0.5], mask=[0, 0, 0, 0, 0, 1])
    assert states_of(values, equal_width(0, 1, 4)).tolist() == [0, 1, 3, 3, 0, -1]


REFUSED = {
    "not square": (lambda: Chain(forward=[[1.0, 0.0]]), "square"),
    "not numbers": (lambda: Chain(forward=[["a"]]), "square"),
    "ragged": (lambda: Chain(forward=[[1.0], [0.5, 0.5]]), "square"),
    "negative": (lambda: Chain(forward=[[1.5, -0.5], [0, 1]]), "row 0 has a probability"),
    "nan": (lambda: Chain(forward=[[math.nan, 1], [0, 1]]), "row 0 has a probability"),
    "too many": (lambda: SMOOTHED(301, 1), "states=301"),
    "too wide": (lambda: Chain(forward=np.eye(301)), "301 states"),
    "in parts": (lambda: Chain(forward=[[1, 0], [0, 1]]), "give start"),
    "left for good": (lambda: Chain(forward=[[0.8, 0.2], [0, 1]]), "give start"),
    "short start": (lambda: Chain(forward=TWO, start=[1.0]), "2 probabilities"),
    "start sum": (lambda: Chain(forward=TWO, start=[0.5, 0.4]), "start sums to 0.9"),
    "backward size": (lambda: Chain(forward=TWO, backward=[[1.0]]), "backward: 1 rows"),
    "smoothing": (lambda: SMOOTHED(2, -1), "smoothing=-1"),
    "no start": (lambda: Chain(forward=np.eye(2), backward=np.eye(2)).shares, "has none"),
    "state": (lambda: Chain.estimate([[0, 3]], 3), "not among 0 to 2"),
    "below": (lambda: Chain.estimate([[0, -2]], 3), "not among 0 to 2"),
    "values": (lambda: Chain.estimate([[0.5, 1.0]], 2), "use states_of"),
    "never left": (lambda: Chain.estimate([[0, 1]], 2, pseudocount=0), "pseudocount above 0"),
    "pseudocount": (lambda: Chain.estimate([[0, 1]], 2, pseudocount=-1), "pseudocount=-1"),
    "budget": (lambda: loss(SMOOTHED(2, 1), [1, -1]), "numbers >= 0"),
    "infinite": (lambda: loss(SMOOTHED(2, 1), [math.inf]), "numbers >= 0"),
    "no budgets": (lambda: loss(SMOOTHED(2, 1), []), "one for each step"),
    "epsilon": (lambda: supremum(SMOOTHED(2, 1), -1), "epsilon=-1"),
    "side": (lambda: supremum(SMOOTHED(2, 1), 1, "left"), "side=left"),
    "target": (lambda: allocate(SMOOTHED(2, 1), 0, 3), "above 0"),
    "length": (lambda: allocate(SMOOTHED(2, 1), 1, 0), "length=0"),
    "allocation": (lambda: allocate(SMOOTHED(2, 1), 1, 3, "best"), "method=best"),
    "outside": (lambda: landmark_loss(SMOOTHED(2, 1), [1, 1], [2]), "from 0 to 1"),
    "flags": (lambda: landmark_loss(SMOOTHED(2, 1), [1, 1], [True, False]), "flatnonzero"),
    "method": (lambda: landmark_loss(SMOOTHED(2, 1), [1], [0], "sum"), "method=sum"),
    "reading": (lambda: landmark_loss(SMOOTHED(2, 1), [1], [0], "bridge", "half"), "reading=half"),
    "too many outputs": (
        lambda: landmark_loss(SMOOTHED(2, 1), [1.0] * 40, [0], "exact"),
        "use bridge",
    ),
    "long gap": (lambda: landmark_loss(SMOOTHED(2, 1), [1.0] * 30_000, [0]), "would take too long"),
    "many states": (lambda: landmark_loss(SMOOTHED(100, 1), [1.0] * 100, [0]), "join states"),
    "periodic": (
        lambda: supremum(Chain(forward=[[0, 1], [1, 0]], start=[0.3, 0.7]), 1),
        "still changes",
    ),
    "edges": (lambda: states_of([1.0], [1, 1]), "rising"),
    "bounds": (lambda: equal_width(1, 0, 3), "bounds=1,0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_value_and_the_remedy(name):
    ask, said = REFUSED[name]
    with pytest.raises(TemprivError, match=said):
        ask()


def test_candidates_are_found_once_for_a_chain():
    chain = SMOOTHED(2, 0.3)
    assert forward_growth(chain) is forward_growth(SMOOTHED(2, 0.3))


# the page


def test_every_example_of_the_page_runs_as_printed():
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE, flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "correlation.md", "correlation.md", 0)
    assert len(test.examples) > 8
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_table_of_the_page_is_computed():
    rows = re.findall(
        r"^\| (stays [\d.]+ %) .*?\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, flags=re.MULTILINE
    )
    assert len(rows) == 3
    for (_, *shown), smoothing in zip(rows, (1.0, 0.1, 0.01), strict=True):
        for text, epsilon in zip(shown, (0.01, 0.1, 1.0), strict=True):
            true = supremum(SMOOTHED(2, smoothing), epsilon)
            assert true <= float(text) <= true + 1.0001 * 10 ** -len(text.partition(".")[2])
