"""Rows of any kind moved in time: what comes out, when, and what it costs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tempriv.data.series import EMPTY, RELEASED, REPEATED, Block
from tempriv.mechanisms.perturb import held_of_first, perturb_block
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.carry import kept
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.stream import MAGIC, resume
from tempriv.releases.blocks import whole_series, with_ends
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tests.conformance.cases.order import CASES, every_row_comes_out_once

pytest_plugins = ["tests.support.statistics"]

EACH = [
    Backward(epsilon=1.0, window=5),
    Forward(epsilon=1.0, window=5),
    Threshold(epsilon=3.5, window=5),
    Threshold(epsilon=1.0, window=5),
    DualThreshold(epsilon=3.5, window=5),
    DualThreshold(epsilon=1.0, window=5),
    BlockShuffle(epsilon=1.0, block=4),
    BlockShuffle(epsilon=1.0, block=4, offset=3),
    NoisyOrder(epsilon=1.0, window=4),
    NoisyOrder(epsilon=2.0, window=2, latency=6, delta=0.05),
]


def said(mechanism):
    return f"{type(mechanism).__name__} {mechanism.epsilon:g} {getattr(mechanism, 'offset', '')}"


each = pytest.mark.parametrize("mechanism", EACH, ids=said)


def released(mechanism, values, seed=1, cuts=()):
    """Rows and statuses of one series, pushed as they are."""
    stream = mechanism.start(Key.from_seed(seed), "a")
    parts = []
    for low, high in zip([0, *cuts], [*cuts, len(values)], strict=True):
        parts.append(stream.push(values[low:high]))
    parts.append(stream.finish())
    return [row for part in parts for row in as_list(part)]


def as_list(part):
    """Values of Python, None where one is missing."""
    rows = np.ma.getdata(part).astype(object)
    rows[np.ma.getmaskarray(part)] = None
    return rows.tolist()


def sources(mechanism, count, seed=1):
    """The step of the row in each slot, -1 for none: rows are their own numbers."""
    stream = mechanism.start(Key.from_seed(seed), "a")
    parts = [stream.push(np.arange(float(count))[:, None]), stream.finish()]
    found = np.concatenate([np.ma.filled(part, -1.0) for part in parts if len(part)])[:, 0]
    return found.astype(np.int64)


# rows of any kind

BIG = 2**60
KINDS = {
    "text": ["on", "off", "", "text with, comma", "ü"],
    "text and none": ["on", None, "off", None, "on"],
    "text and numbers": ["on", 1, 2.5, True, "1"],
    "large integers": [BIG + 1, BIG + 2, -BIG - 1, 0, 3],
    "larger integers": [2**80 + 1, -1, 10**400, 2, 3],
    "integers and a fraction": [BIG + 1, 0.5, BIG + 3, 2, 1],
    "truth values": [True, False, True, True, False],
    "numbers": [0.1, -0.0, 1e308, 5e-324, 2.0**62],
    "numpy numbers and none": [np.int64(3), None, np.float64(2.5), np.bool_(True), 7],
}


@pytest.mark.parametrize("kind", KINDS)
@each
def test_rows_come_out_as_they_went_in(mechanism, kind):
    """Every value where its number goes, the very same value of the same type."""
    values = (KINDS[kind] * 8)[:37]
    places = sources(mechanism, len(values))
    found = released(mechanism, values)
    for slot, value in zip(places.tolist(), found, strict=True):
        expected = None if slot < 0 else values[slot]
        expected = expected.item() if isinstance(expected, np.generic) else expected
        value = value[0] if isinstance(value, list) else value
        assert value == expected and type(value) is type(expected)
        assert repr(value) == repr(expected)  # -0.0 is not 0.0


@each
def test_rows_of_unlike_columns_are_moved_whole(mechanism):
    values = [[f"name {i}", i, None if i % 3 else i / 2] for i in range(30)]
    places = sources(mechanism, len(values))
    for slot, row in zip(places.tolist(), released(mechanism, values), strict=True):
        assert row == ([None] * 3 if slot < 0 else values[slot])


@pytest.mark.parametrize("dtype", ["u1", "i4", "u8", "f2", "f4", "f8", ">f8", "b1", "U3"])
@pytest.mark.parametrize("mechanism", [EACH[0], EACH[6], EACH[8]], ids=said)
def test_arrays_of_any_type_keep_their_values(mechanism, dtype):
    values = (np.arange(33) % 7).astype(dtype)
    places = sources(mechanism, len(values))
    found = [row[0] if isinstance(row, list) else row for row in released(mechanism, values)]
    assert found == [None if slot < 0 else values[slot].item() for slot in places.tolist()]


@each
def test_kinds_may_change_as_a_series_goes_on(mechanism):
    """What is held of numbers and what comes as text stay what they are, for any cutting."""
    values = [*range(9), *(f"text {i}" for i in range(9)), *(i + 0.5 for i in range(9))]
    places = sources(mechanism, len(values))
    expected = [None if slot < 0 else values[slot] for slot in places.tolist()]
    for cuts in ((), (9, 18), (3, 9, 17, 18), range(1, 27)):
        found = released(mechanism, values, cuts=tuple(cuts))
        assert [row[0] if isinstance(row, list) else row for row in found] == expected


@pytest.mark.parametrize("values", [["a", 1.5, "b", None, 2, True, 2.5, "c"], [1, 2.5, BIG + 1, 3]])
@each
def test_a_state_is_the_same_for_any_cutting_of_unlike_rows(mechanism, values):
    whole = mechanism.start(Key.from_seed(2), "a")
    whole.push(values)
    single = mechanism.start(Key.from_seed(2), "a")
    for value in values:
        single.push([value])
    assert json.loads(single.state()[len(MAGIC) + 16 :]) == json.loads(
        whole.state()[len(MAGIC) + 16 :]
    )


@pytest.mark.parametrize("kind", KINDS)
@each
def test_held_rows_survive_in_a_state(mechanism, kind):
    values = (KINDS[kind] * 8)[:37]
    expected = released(mechanism, values, seed=3, cuts=(11,))
    stream = mechanism.start(Key.from_seed(3), "a")
    before = as_list(stream.push(values[:11]))
    again = resume(mechanism, stream.state(), Key.from_seed(3))
    found = [*before, *as_list(again.push(values[11:])), *as_list(again.finish())]
    assert repr(found) == repr(expected)


@each
def test_nothing_private_stands_under_the_mask(mechanism):
    """What a masked array hides is a zero, in slots that are empty and where readings are none."""
    rows = np.ma.array(np.arange(100.0, 160.0)[:, None], mask=np.arange(60)[:, None] % 4 == 1)
    rows.data[rows.mask] = 7e77
    for values in (rows, rows.astype(object)):
        stream = mechanism.start(Key.from_seed(4), "a")
        block = (
            Block.of(values, "a", 0)
            if values.dtype != object
            else Block(
                values.data.copy(),
                np.ma.getmaskarray(values),
                ("a",),
                np.array([60]),
                np.array([0]),
            )
        )
        block.values[rows.mask] = 7e77
        for made in (stream.push_block(block), stream.finish_block()):
            hidden = made.values[made.missing].tolist()
            assert all(one in (0.0, None) for one in hidden), "a reading stands under the mask"
        pushed = mechanism.start(Key.from_seed(4), "a").push(values)
        if np.ma.isMaskedArray(pushed):
            assert set(pushed.data[pushed.mask].tolist()) <= {0.0}


# statuses


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_statuses_tell_empty_slots_from_missing_readings(case):
    """Also where all rows are alike, or none of them has a value."""
    mechanism, count = case.mechanism, 50
    places = sources(mechanism, count)
    seen: set[int] = set()
    expected = []
    for slot in places.tolist():
        expected.append(EMPTY if slot < 0 else REPEATED if slot in seen else RELEASED)
        seen.add(slot)
    for values in (np.ones((count, 2)), np.ma.masked_all((count, 2))):
        stream = mechanism.start(Key.from_seed(1), "a")
        parts = [stream.push_block(Block.of(values, "a", 0)), stream.finish_block()]
        found = [one for part in parts if len(part) for one in part.status.tolist()]
        assert found == expected
        gone = np.concatenate([part.missing for part in parts if len(part)])
        empty = np.array(expected) == EMPTY
        assert (gone.all(axis=1) == (empty | np.ma.getmaskarray(values).all(axis=1))).all()


def test_what_may_happen_to_a_row_is_what_each_promises():
    """Lost, twice, or a slot without a row: not where the docstring says it does not."""
    steps = 3000
    for mechanism in EACH:
        places = sources(mechanism, steps)
        settled = places[50:]
        count = np.bincount(places[places >= 0], minlength=steps)[:-50]
        name = type(mechanism).__name__
        drops = getattr(mechanism, "extended", False)
        assert (count.min() == 0) == (name in ("Backward", "Forward") or drops)
        assert (count.max() > 1) == (name == "Backward")
        assert (settled.min() < 0) == (name == "Forward" or drops)
        lag = (np.arange(steps) - places)[places >= 0]
        if name not in ("BlockShuffle", "NoisyOrder"):
            assert lag.min() == 0 and lag.max() == mechanism.window - 1


@pytest.mark.parametrize("mechanism", EACH[6:], ids=said)
def test_orders_that_hide_a_swap_lose_nothing(mechanism):
    for count in (1, 2, 3, 7, 50):
        assert sorted(sources(mechanism, count).tolist()) == list(range(count))


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case.smalls and isinstance(case.mechanism, (BlockShuffle, NoisyOrder))
    ],
    ids=lambda case: case.name,
)
def test_every_row_comes_out_once_in_all_outcomes(case):
    every_row_comes_out_once(case)


def test_rows_of_a_block_stay_in_it():
    for offset in range(4):
        mechanism = BlockShuffle(epsilon=0.1, block=4, offset=offset)
        places = sources(mechanism, 50)
        assert ((places - offset) // 4 == (np.arange(50) - offset) // 4).all()
        assert (places != np.arange(50)).any()


# time, latency, several series


@each
def test_slots_keep_their_own_times(mechanism):
    """Whatever row a slot shows, and however late it comes out."""
    times = 1000 + 60 * np.arange(30)
    block = Block.of(np.arange(30.0), "a", 0)
    stream = mechanism.start(Key.from_seed(5), "a")
    found, latency = [], mechanism.domain.latency
    for low, high in ((0, 7), (7, 8), (8, 30)):
        part = replace(Block.of(block.values[low:high], "a", low), times=times[low:high])
        made = stream.push_block(part)
        if not mechanism.takes_whole:
            assert len(found) + len(made) == max(0, high - latency)
        found += [] if made.times is None or not len(made) else made.times.tolist()
    last = stream.finish_block()
    found += last.times.tolist() if len(last) else []
    assert found == times.tolist()


@each
def test_series_that_go_on_in_the_next_block_hold_their_rows(mechanism):
    """As a file is read: the last series of a block goes on in the next, others begin there."""
    lengths = {"a": 23, "b": 9, "c": 2, "d": 14}
    values = {
        name: np.arange(100.0 * i, 100.0 * i + n) for i, (name, n) in enumerate(lengths.items())
    }
    keys = {name: Key.from_seed(6).series("order", name) for name in lengths}
    alone = {}
    for name, rows in values.items():
        run = StepRange(keys[name], 0, len(rows))
        alone[name] = shown(perturb_block(mechanism, Block.of(rows, name, 0), [run], ending=True))
    blocks = list(file_blocks(values, 8))
    found: dict[str, list[float]] = {name: [] for name in lengths}
    memory, held = np.zeros((1, mechanism.memory_size), dtype=np.int64), None
    for block, ending in with_ends(whole_series(blocks) if mechanism.takes_whole else blocks):
        own = np.zeros((len(block.ids), mechanism.memory_size), dtype=np.int64)
        if block.starts[0]:
            own[0] = memory[-1]
        runs = [
            StepRange(keys[name], int(start), int(count))
            for name, start, count in zip(block.ids, block.starts, block.counts, strict=True)
        ]
        before = held_of_first(block, held)
        out = perturb_block(mechanism, block, runs, own, None, before, ending)
        memory, held = own, kept(mechanism, held, block)
        for i, name in enumerate(out.ids):
            found[name] += shown(out.part(i, i + 1))
    assert found == alone


def shown(block):
    return np.ma.array(block.values, mask=block.missing).filled(-1)[:, 0].tolist()


def file_blocks(values, size):
    """Rows of several series one after the other, so many to a block."""
    order = [(name, step) for name, rows in values.items() for step in range(len(rows))]
    for low in range(0, len(order), size):
        part = order[low : low + size]
        names = list(dict.fromkeys(name for name, _ in part))
        starts = [next(step for one, step in part if one == name) for name in names]
        counts = [sum(one == name for one, _ in part) for name in names]
        rows = np.array([[values[name][step]] for name, step in part])
        gaps = np.zeros(rows.shape, dtype=np.bool_)
        yield Block(rows, gaps, tuple(names), np.array(counts), np.array(starts))


@each
def test_a_series_may_be_shorter_than_the_window(mechanism):
    """As many rows come out as went in, each an input row or an empty slot."""
    for count in range(0, 6):
        for seed in range(20):
            places = sources(mechanism, count, seed) if count else np.zeros(0, dtype=int)
            assert len(places) == count
            assert set(places.tolist()) <= set(range(-1, count))


@pytest.mark.parametrize(
    "mechanism",
    [Threshold(epsilon=6.0, window=200), DualThreshold(epsilon=6.0, window=200)],
    ids=said,
)
def test_little_comes_out_of_a_series_much_shorter_than_the_window(mechanism):
    """10 rows, window 200: as many as the lags say, within five standard errors of 60 series."""
    count, seeds = 10, 60
    shown = [(sources(mechanism, count, seed) >= 0).sum() for seed in range(seeds)]
    expected = sum(float(mechanism.probabilities[: slot + 1].sum()) for slot in range(count))
    error = np.std(shown, ddof=1) / math.sqrt(seeds)
    assert abs(np.mean(shown) - expected) <= 5 * error
    assert expected < 9


@each
def test_the_state_of_a_stream_does_not_grow(mechanism):
    if not mechanism.bounded_memory:
        return
    stream, sizes = mechanism.start(Key.from_seed(8), "a"), []
    for _ in range(30):
        stream.push(np.full(100, 1.5))
        sizes.append(len(stream.state()))
    assert max(sizes[15:]) <= 1.1 * max(sizes[:15])
