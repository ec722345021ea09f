"""Rows that are moved stay what they were, whatever they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import tempriv as tp
from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder.carry import bits, rows_of
from tempriv.mechanisms.reorder.noisy_order import key_distribution, masses
from tempriv.utility.advisor import AdviceRequest, advise
from tempriv.utility.reorder_costs import UnitCosts

MIXED = [
    [["visit", 81], ["rest", 5]],
    [2**53 + 1, 0.5],
    [2**63 + 1, -1],
    [True, 2],
    [1, "a"],
    [10**400, 1],
    ["1", 1.0],
    [1.5, None],
]


def moved(rows):
    """Everything that comes out, hardly moved at such a budget, each row once."""
    stream = tp.BlockShuffle(epsilon=300.0, block=2).start(tp.Key.from_seed(1))
    out = [stream.push(rows), stream.finish()]
    flat = not isinstance(rows[0], list)
    return [row for part in out for row in (np.asarray(part, object).reshape(-1) if flat else part)]


@pytest.mark.parametrize("rows", MIXED, ids=str)
def test_values_of_mixed_kinds_come_out_as_they_went_in(rows):
    found = [row.tolist() if isinstance(row, np.ndarray) else row for row in moved(rows)]
    assert found == rows
    assert [type(a) for a in np.array(found, object).flat] == [
        type(b) for b in np.array(rows, object).flat
    ]


@pytest.mark.parametrize("rows", MIXED, ids=str)
def test_one_at_a_time_is_the_same(rows):
    stream = tp.BlockShuffle(epsilon=300.0, block=2).start(tp.Key.from_seed(1))
    parts = [stream.push([row]) for row in rows] + [stream.finish()]
    flat = not isinstance(rows[0], list)
    found = [x for part in parts for x in (part.reshape(-1) if flat else part).tolist()]
    assert found == rows


@pytest.mark.parametrize("rows", [[["a"], ["b", 2]], [1, [2]], [[[1]]]], ids=str)
def test_ragged_rows_are_refused_in_a_sentence(rows):
    stream = tp.Threshold(epsilon=5.0, window=3).start(tp.Key.from_seed(1))
    with pytest.raises(DataError, match="one row of values, per time step|of type list"):
        stream.push(rows)


def test_unlike_readings_have_unlike_bits_and_like_ones_the_same():
    def bit(one):
        block = rows_of([one], "a", 0)
        return int(bits(block.values, block.missing)[0, 0])

    assert bit(1) == bit(1.0) == bit(True)
    assert len({bit(one) for one in (1, "1", 2**53, 2**53 + 1, 10**400, "number 1.0", "")}) == 7


def test_windows_that_no_memory_holds_are_refused():
    for make in (
        lambda: tp.Backward(epsilon=1.0, window=10**9),
        lambda: tp.Forward(epsilon=1.0, window=10**9),
        lambda: tp.Threshold(epsilon=1.0, window=10**9),
        lambda: tp.BlockShuffle(epsilon=1.0, block=10**9),
        lambda: tp.NoisyOrder(epsilon=1.0, window=10**9),
        lambda: tp.NoisyOrder(epsilon=1.0, window=10, latency=10**9),
    ):
        with pytest.raises(UsageError, match="must be at most"):
            make()
    with pytest.raises(UsageError, match="offset=True"):
        tp.BlockShuffle(epsilon=1.0, block=4, offset=True)


def test_noise_that_is_nearly_all_cut_off_is_refused_and_not_drawn_for_ever():
    with pytest.raises(UsageError, match="next to nothing of the noise"):
        tp.NoisyOrder(epsilon=1e-4, window=10, latency=200, delta=0.2)


@pytest.mark.parametrize("kind", ["staircase", "laplace"])
@pytest.mark.parametrize(("epsilon", "window"), [(1.0, 10), (4.0, 4), (2.0, 2), (0.001, 100)])
def test_the_mean_size_of_the_noise_is_told_right(epsilon, window, kind):
    """Summed as far as the noise goes; a cut at 65,536 steps told a sixth of it."""
    told = tp.NoisyOrder(epsilon=epsilon, window=window, noise=kind).errors[0]
    mass = masses(key_distribution(epsilon, window, kind), 8_000_000 if epsilon < 0.01 else 20_000)
    assert told == pytest.approx(2 * float((mass * np.arange(len(mass))).sum()), rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (tp.Threshold(epsilon=5.0, window=10), "window of 10"),
        (tp.Backward(epsilon=5.0, window=10), "window of 10"),
        (tp.NoisyOrder(epsilon=5.0, window=10), "window of 10"),
        (tp.BlockShuffle(epsilon=5.0, block=10), "block of 10"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_series_shorter_than_the_window_are_refused(mechanism, name, tmp_path):
    with pytest.raises(DataError, match=f"the longest series has 9 readings, .* the {name}"):
        tp.release(np.arange(9.0), mechanism)
    assert tp.release(np.arange(10.0), mechanism).values.shape == (10,)


def test_advice_is_not_called_public_when_it_is_not(tmp_path):
    table = tmp_path / "private.csv"
    table.write_text("v\n" + "\n".join(map(str, range(50))) + "\n")
    with pytest.raises(UsageError, match="is INPUT itself"):
        advise(
            AdviceRequest(
                epsilon=5.0,
                window=5,
                task="average",
                columns=("v",),
                source=table,
                public_sample=tmp_path / "." / "private.csv",
            )
        )
    with pytest.raises(UsageError, match="name them by columns"):
        costs = UnitCosts(missing=1, repeated=1, empty=1, delay=1)
        advise(
            AdviceRequest(epsilon=5.0, window=5, costs=costs, public_sample=tmp_path / "nowhere")
        )
