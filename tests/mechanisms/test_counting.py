"""Running counts and sums: exact factors, trees and epochs, against their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.audit import exact
from tempriv.errors import TemprivError, UsageError
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.counting import matrix_factorization
from tempriv.mechanisms.counting.matrix_factorization import (
    TRANSFORM_ERROR,
    changed_square,
    factors,
    square_root,
)
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.counting.sensitivity import Changes
from tempriv.mechanisms.counting.tree import LONGEST, Epochs, Tree
from tempriv.mechanisms.stream import resume
from tempriv.privacy.sensitivity import sensitivity
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import plain_kernels, recorded
from tests.reference import counting as reference

pytest_plugins = ["tests.support.statistics"]

DAY = 1440


def test_the_defaults_are_the_best_of_the_methods():
    assert RunningCount(bounds=(0, 1), rho=0.5, horizon=DAY).method_used == "square-root"
    assert RunningCount(bounds=(0, 1), epsilon=1, horizon=DAY).method_used == "tree"
    assert RunningCount(bounds=(0, 1), rho=0.5).method_used == "binned"
    assert RunningCount(bounds=(0, 1), rho=0.5, horizon=10**9).method_used == "binned"
    chosen = RunningCount(bounds=(0, 1), epsilon=1, horizon=DAY)
    assert chosen.plans[0].branching == 12
    for b in range(2, 100):
        other = RunningCount(bounds=(0, 1), epsilon=1, horizon=DAY, branching=b)
        assert chosen.errors[0] <= other.errors[0] * (1 + 1e-9)


def test_levels_are_counted_from_the_horizon():
    for branching, levels in ((2, 11), (12, 3)):
        tree = RunningCount(bounds=(0, 1), epsilon=1, horizon=DAY, branching=branching)
        assert len(tree.plans[0].sizes) == levels


# factors


def test_coefficients_are_those_of_the_definition():
    for horizon, bits in ((1, 1), (7, 3), (2000, 12), (2000, 24)):
        assert factors(horizon, bits).strategy.tolist() == reference.coefficients(horizon, bits)
    falling = factors(1 << 16, 12).strategy
    assert falling[0] == 1 << 12 and (np.diff(falling) <= 0).all() and falling[-1] > 0


def test_decoding_undoes_the_strategy():
    """B C is the matrix of ones: to 1e-12, from exact whole numbers."""
    horizon, bits = 600, 12
    found = factors(horizon, bits)
    impulse = [1] + [0] * (horizon - 1)
    column = reference.coefficients(horizon, bits)
    # with no increments and an impulse of noise, the sums are the column of B
    expected = reference.square_root_sums([0] * horizon, column, impulse)
    ratio = found.back / np.array([float(value) for value in expected])
    assert np.abs(ratio - 1).max() < 1e-12


def test_the_square_root_squared_is_the_matrix_of_ones():
    root = square_root(300)
    assert np.allclose(np.convolve(root, root)[:300], 1.0, rtol=1e-12)


def convolution(one, other):
    """Exactly: both as digits of one large whole number, 96 bits each; none is negative."""
    width = 12
    numbers = [
        int.from_bytes(b"".join(int(v).to_bytes(width, "little") for v in values), "little")
        for values in (one, other)
    ]
    count = len(one) + len(other)
    digits = (numbers[0] * numbers[1]).to_bytes(width * count, "little")
    return [int.from_bytes(digits[i : i + width], "little") for i in range(0, len(digits), width)]


@pytest.mark.parametrize("half", [256, 2048])
def test_carried_increments_are_exact(half, rng):
    """Against one product of whole numbers; for the largest increments, and such as add up."""
    found = factors(2 * half, 14)
    strategy = found.strategy.tolist()
    for most in (1, 1000, (1 << 20) - 1, 1 << 34):
        level = convolution([most] * half, strategy)[half : 2 * half]
        for x in (
            rng.integers(-most, most + 1, half),
            np.full(half, most),
            np.full(half, -most),
            np.where(np.arange(half) % 2, most, -most),
        ):
            raised = convolution((x + most).tolist(), strategy)[half : 2 * half]
            expected = [a - b for a, b in zip(raised, level, strict=True)]
            assert found.carried(x, most).tolist() == expected


def test_carried_increments_are_the_same_by_narrower_limbs(rng, monkeypatch):
    """Where exact products take long: limbs of 9 bits err a thousand times less."""
    half, most = 1 << 17, 1 << 34
    x = rng.integers(most // 2, most + 1, half)
    found = factors(2 * half, 14)
    wide = found.carried(x, most)
    assert found.limb_bits(half) > 18
    narrow = matrix_factorization.Factors(found.strategy, found.back)
    monkeypatch.setattr(matrix_factorization.Factors, "limb_bits", lambda self, half: 9)
    assert np.array_equal(narrow.carried(x, most), wide)


@pytest.mark.parametrize("size", [512, 4096, 1 << 16])
def test_transforms_err_less_than_their_bound(size, rng):
    """The bound is at most used to a fiftieth, so its margin is not what keeps sums exact."""
    half = size // 2
    kernel = factors(size, 14).strategy.astype(np.float64)
    for x in (rng.integers(-(2**15), 2**15, half), np.full(half, 2**15)):
        padded = np.zeros(size)
        padded[:half] = x
        product = np.fft.irfft(np.fft.rfft(padded) * np.fft.rfft(kernel), size)[half:]
        error = np.abs(product - np.rint(product)).max()
        norms = math.sqrt(float((padded**2).sum()) * float((kernel**2).sum()))
        assert error < TRANSFORM_ERROR * math.log2(size) * norms / 50


def test_limbs_are_as_wide_as_the_bound_allows():
    for half in (256, 1 << 15, 1 << 19):
        found = factors(1 << 20, 14)
        norm = math.sqrt(float((found.strategy[: 2 * half].astype(float) ** 2).sum()) * half)
        bits = found.limb_bits(half)
        error = TRANSFORM_ERROR * math.log2(2 * half) * norm * 2.0 ** (bits - 1)
        assert 0.12 < error < 0.25


# sums, against the definition


def cut_into(rows, sizes):
    start = 0
    for size in itertools.cycle(sizes):
        if start >= len(rows):
            return
        yield rows[start : start + size]
        start += size


def released_in_pieces(mechanism, rows, key, sizes):
    stream = mechanism.start(key, "a")
    return np.concatenate([stream.push(part) for part in cut_into(rows, sizes)])


@pytest.mark.parametrize("block", [16, 64, pytest.param(256, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, 5)},
        {"bounds": (-1000, 3), "grid": 2.0**-24, "rho": 2.0**26},  # two limbs
        {"bounds": (0, 9), "unit": Contribution()},
    ],
)
def test_the_square_root_is_the_definition_across_blocks(block, given, rng, monkeypatch):
    monkeypatch.setattr(matrix_factorization, "BLOCK", block)
    horizon = 600 if block == 256 else 300
    mechanism = RunningCount(**{"rho": 0.5, "horizon": horizon, **given})
    plan, grid = mechanism.plans[0], mechanism.grid[0]
    low, high = mechanism.bounds[0]
    rows = rng.uniform(low, high, horizon)
    rows = np.rint(rows) if "unit" in given else rows
    with recorded() as drawn:
        whole = mechanism.start(Key.from_seed(1), "a").push(rows)
    x = reference.increments(rows.tolist(), (low, high), grid)
    column = reference.coefficients(horizon, plan.bits)
    sums = reference.square_root_sums(x, column, drawn[0].values.tolist())
    expected = reference.rounded(sums, grid, plan.step)[:, 0]
    assert np.array_equal(whole, expected)
    limbs = plan.largest.bit_length() / plan.factors.limb_bits(512)
    assert (limbs > 1) == ("rho" in given)
    for sizes in ([1], [block], [block - 1, block + 1], [horizon - 1], [7, 100]):
        again = released_in_pieces(mechanism, rows, Key.from_seed(1), sizes)
        assert again.tobytes() == whole.tobytes(), f"cut into {sizes}"
    with plain_kernels():
        plain = mechanism.start(Key.from_seed(1), "a").push(rows)
    assert plain.tobytes() == whole.tobytes()


def test_a_state_in_the_middle_of_a_long_series_goes_on(rng):
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), horizon=1500)
    rows = rng.random(1500)
    whole = mechanism.start(Key.from_seed(1), "a").push(rows)
    for at in (255, 256, 257, 1024, 1400):
        stream = mechanism.start(Key.from_seed(1), "a")
        before = stream.push(rows[:at])
        after = resume(mechanism, stream.state(), Key.from_seed(1)).push(rows[at:])
        assert np.concatenate([before, after]).tobytes() == whole.tobytes()


@pytest.mark.parametrize("branching", [2, 3, 7, 12, 700])
def test_trees_and_epochs_are_the_definition(branching, rng):
    rows = rng.integers(0, 10, 600).astype(np.float64)
    for horizon in (600, None):
        mechanism = RunningCount(
            epsilon=1.0,
            bounds=(0, 9),
            branching=branching,
            horizon=horizon,
            method="tree",
            unit=Contribution(),
        )
        with recorded() as drawn:
            out = released_in_pieces(mechanism, rows, Key.from_seed(2), [600])
        x, values = rows.astype(int).tolist(), [one.values.tolist() for one in drawn]
        if horizon is None:
            expected = reference.epoch_sums(x, branching, values)
        else:
            expected = reference.tree_sums(x, branching, values[0])
        assert out.tolist() == expected
        pieces = released_in_pieces(mechanism, rows, Key.from_seed(2), [1, 50, 13])
        assert pieces.tolist() == expected


class Zeros:
    """Draws without noise, and what was asked for."""

    def __init__(self, rows):
        self.rows, self.distributions = rows, []

    def each(self, law, purpose):
        self.distributions.append(law)
        return np.zeros(self.rows, dtype=np.int64)

    __call__ = each


@pytest.mark.parametrize("branching", [2, 5, 17])
def test_an_endless_stream_goes_on_to_two_to_the_forty(branching):
    mechanism = RunningCount(epsilon=1.0, bounds=(0, 1), branching=branching)
    epochs, top = mechanism.plans[0], mechanism.plans[0].largest
    assert mechanism.memory_size < 50
    steps, start = 20, LONGEST - 20
    memory = np.zeros((1, mechanism.memory_size), dtype=np.int64)
    memory[0, 0] = start * top  # all readings were as large as can be
    state = SeriesState(
        counts=np.array([steps]),
        starts=np.array([start]),
        missing=np.zeros((steps, 1), dtype=np.bool_),
        memory=memory,
    )
    source = Zeros(steps)
    out = mechanism.perturb(np.full((steps, 1), top), source, state)
    exact_sums = [count * top for count in range(start + 1, LONGEST + 1)]
    assert out[:, 0].tolist() == [(s + epochs.step // 2) // epochs.step for s in exact_sums]
    last = epochs.noises[reference.epoch_of(LONGEST, branching)]
    assert set(source.distributions) <= set(last) and source.distributions
    assert mechanism.error_at(LONGEST) < 300


@pytest.mark.parametrize("how", [{"rho": 0.5}, {"epsilon": 1.0}, {"rho": 1.0, "horizon": None}])
def test_missing_increments_count_as_zero_and_come_out_missing(how):
    mechanism = RunningCount(**{"bounds": (2, 5), "horizon": 300, "grid": 0.5, **how})
    rows = np.ma.array(np.full(300, 3.0), mask=np.arange(300) % 3 == 0)
    out = mechanism.start(Key.from_seed(1), "a").push(rows)
    assert np.array_equal(np.ma.getmaskarray(out), rows.mask)
    state = SeriesState.fresh(mechanism, 1, 300)
    state.missing[:, 0] = rows.mask
    readings = mechanism.domain.to_grid(rows.filled(0.0)[:, None])
    assert (readings[rows.mask] == 4).all(), "a zero counts as the lowest reading, 2, otherwise"
    sums = mechanism.domain.from_grid(mechanism.perturb(readings, Zeros(300), state))[:, 0]
    true = np.cumsum(np.where(rows.mask, 0.0, 3.0))
    assert np.abs(sums - true).max() <= mechanism.domain.grids[0] / 2


# sensitivities


@pytest.mark.parametrize("branching", [2, 3, 4, 9])
@pytest.mark.parametrize("horizon", [1, 2, 5, 8, 9, 13])
def test_sensitivities_of_trees_are_those_of_the_worst_window(branching, horizon):
    matrix = reference.node_matrix(horizon, branching)
    for window in range(1, horizon + 1):
        l1, l2 = reference.norms(matrix, window, window)
        changes = Changes(Fraction(1), window, window, Fraction(window))
        laws = [
            Tree(branching, horizon, Fraction(1), gaussian, changes, 1).noise
            for gaussian in (False, True)
        ]
        assert laws[0].scale == l1 and 2 * laws[1].variance == l2
        unit = WholeSeries(window) if window == horizon else Window(window)
        found = sensitivity(matrix, unit, horizon)
        assert math.isclose(found.l1, l1) and math.isclose(found.l2**2, l2)
        for steps in range(1, window):
            l1, l2 = reference.norms(matrix, window, steps)
            fewer = Changes(Fraction(1), steps, window, Fraction(steps))
            laws = [
                Tree(branching, horizon, Fraction(1), gaussian, fewer, 1).noise
                for gaussian in (False, True)
            ]
            assert laws[0].scale >= l1 and 2 * laws[1].variance >= l2, "too little noise"


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("horizon", [1, 2, 5, 9])
def test_the_worst_changes_of_the_square_root_are_the_first_ones(bits, horizon):
    matrix = reference.toeplitz(reference.coefficients(horizon, bits))
    for window in range(1, horizon + 1):
        for steps in range(1, window + 1):
            _, l2 = reference.norms(matrix, window, steps)
            assert changed_square(horizon, bits, steps) == l2
    found = sensitivity(matrix, Contribution(WholeSeries(horizon), total=2), horizon)
    assert math.isclose(found.l2**2, changed_square(horizon, bits, min(2, horizon)))


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_no_change_costs_more_than_the_budget_in_any_epochs(branching, window):
    """Every choice of steps in every window of the first 30, by the noise of each node."""
    steps = 30
    changes = Changes(Fraction(1), window, window, Fraction(window))
    nodes = {n for count in range(1, steps + 1) for n in reference.epoch_nodes_of(count, branching)}
    for gaussian in (False, True):
        epochs = Epochs(branching, Fraction(1), gaussian, changes, 1)
        costs = []
        for start in range(steps - window + 1):
            cost = Fraction(0)
            for first, stop in nodes:
                law = epochs.noises[reference.epoch_of(stop, branching)]
                law = law[reference.is_end(stop, branching)]
                overlap = max(0, min(stop, start + window) - max(first, start))
                cost += (
                    Fraction(overlap**2) / (2 * law.variance) if gaussian else overlap / law.scale
                )
            costs.append(cost)
        assert max(costs) <= 1
        assert max(costs) == 1 or window > 1, "more noise than one step needs"


TIGHT = [
    ({"unit": Window(2), "rho": 2.0, "bits": 1, "horizon": 2}, 2, (0, 1)),
    ({"unit": WholeSeries(2), "rho": 2.0, "bits": 1}, 2, (0, 1)),
    ({"unit": Contribution(WholeSeries(2), total=2), "rho": 2.0, "bits": 1}, 2, (0, 1, 2)),
    ({"unit": Event(), "rho": 1.0, "bits": 2, "horizon": 2}, 2, (0, 1)),
    ({"unit": Event(), "rho": 1.0, "horizon": 2, "method": "tree", "branching": 2}, 2, (0, 1)),
]


@pytest.mark.parametrize(("given", "length", "alphabet"), TIGHT)
def test_the_gaussian_promise_is_exact_at_two_steps(given, length, alphabet):
    bounds = (0, max(alphabet))
    verdict = exact.audit(RunningCount(bounds=bounds, grid=1, **given), alphabet, length, 1e-13)
    assert verdict.holds, verdict.sentence
    assert verdict.found >= verdict.claimed * (1 - 1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        {"rho": 12.0, "bits": 2, "horizon": 4},
        {"rho": 12.0, "bits": 1, "horizon": 4, "unit": Window(2)},
        {"rho": 6.0, "horizon": 4, "method": "tree", "branching": 2},
        {"epsilon": 4.0, "branching": 2},
    ],
)
def test_the_promise_holds_at_four_and_five_steps(given):
    mechanism = RunningCount(bounds=(0, 1), grid=1, **given)
    tail = 1e-2 if "epsilon" in given else 1e-8
    verdict = exact.audit(mechanism, (0.0, 1.0), 4 + ("epsilon" in given), tail)
    assert verdict.holds, verdict.sentence


# refusals


REFUSED = [
    ({}, "rho=None: must be"),
    ({"epsilon": 1.0, "rho": 1.0}, "must be left out when rho is given"),
    ({"epsilon": 1.0, "method": "square-root", "horizon": 9}, "needs rho"),
    ({"rho": 1.0, "method": "square-root"}, "needs a horizon"),
    ({"rho": 1.0, "method": "square-root", "horizon": 10**9}, "method='tree'"),
    ({"rho": 1.0, "horizon": 9, "branching": 2}, "branching=2: must be left out"),
    ({"epsilon": 1.0, "horizon": 9, "bits": 8}, "bits=8: must be left out"),
    ({"epsilon": 1.0, "method": "increments", "branching": 3}, "branching=3: must be left out"),
    ({"rho": 1.0, "horizon": 9, "grid": 2.0**-48, "bounds": (0, 9)}, "grid: must be coarser"),
    ({"epsilon": 1.0, "grid": 2.0**-30, "bounds": (0, 9)}, "grid: must be coarser"),
    ({"epsilon": 1e-9, "grid": 2.0**-20, "horizon": 9}, "grid: must be coarser"),
    ({"epsilon": 1.0, "unit": WholeSeries(10**400)}, "must be shorter"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_does_not_go_together_is_refused(given, sentence):
    with pytest.raises(UsageError) as refusal:
        RunningCount(**{"bounds": (0, 1), **given})
    assert sentence in str(refusal.value)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_any_settings_are_taken_or_refused(data):
    """What is taken knows its guarantee, its errors and its memory, and releases numbers."""
    budget = data.draw(st.sampled_from(["epsilon", "rho"]))
    given = {
        budget: data.draw(st.floats(1e-6, 1e6)),
        "bounds": data.draw(st.sampled_from([(0, 1), (-5, 1e6), (3, 4), (0, 1e-9)])),
        "horizon": data.draw(st.none() | st.integers(1, 3000)),
        "method": data.draw(st.sampled_from([None, "square-root", "tree", "increments"])),
        "branching": data.draw(st.none() | st.integers(2, 100)),
        "bits": data.draw(st.none() | st.integers(1, 24)),
        "unit": data.draw(
            st.sampled_from(
                [Event(), Window(7), WholeSeries(100), Person(3, Window(2)), Contribution()]
            )
        ),
    }
    try:
        mechanism = RunningCount(**given)
    except TemprivError:
        return
    assert math.isfinite(mechanism.errors[0]) and mechanism.errors[0] >= 0
    assert mechanism.guarantee.sentence and mechanism.published.sentence and mechanism.error_name
    low, high = mechanism.bounds[0]
    rows = np.full(1, float(math.ceil(low)) if isinstance(mechanism.unit, Contribution) else high)
    assert np.isfinite(mechanism.start(Key.from_seed(1), "a").push(rows)).all()


def test_default_grids_round_away_less_than_the_noise():
    """All roundings of a sum together, at their worst, beside its root mean squared error."""
    for how in ({"rho": 0.5}, {"epsilon": 1.0}, {"rho": 1e-3, "unit": Window(5)}):
        for horizon in (1, 60, DAY, 10**5):
            mechanism = RunningCount(bounds=(0, 5), horizon=horizon, **how)
            assert horizon * mechanism.grid[0] / 2 < mechanism.errors[0] / 50


def test_noise_distributions_are_those_of_the_units():
    """Twice the people in a window cost as group privacy says, not as windows apart would."""
    event = RunningCount(rho=0.5, bounds=(0, 1), horizon=100, grid=1).plans[0].noise
    for length in (2, 5, 100):
        window = RunningCount(rho=0.5, bounds=(0, 1), horizon=100, grid=1, unit=Window(length))
        ratio = window.plans[0].noise.variance / event.variance
        assert length < ratio <= length**2
    person = RunningCount(rho=0.5, bounds=(0, 1), horizon=100, grid=1, unit=Person(3, Event()))
    assert person.plans[0].noise.variance == 3 * event.variance
    assert isinstance(event, distributions.DiscreteGaussian)
