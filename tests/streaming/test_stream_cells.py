"""Letters that wait, and lines that are read in columns: the same as one by one."""

import functools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv import Laplace, RandomizedResponse, Threshold
from tempriv.sampling.keys import EPOCH, fresh_series_key
from tempriv.sampling.keystream import Keystream, StepRange, StepRanges
from tempriv.streaming import csv_reader, text_buffer
from tempriv.streaming.batch import batch_from_records
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.series_state import SHARD_SERIES, SeriesStates, group_by_code
from tempriv.streaming.text_buffer import TextBuffer, TextSpans

TEXTS = st.lists(st.none() | st.text(max_size=6), max_size=30)


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=6), st.randoms())
def test_cells_come_back_as_they_were(columns, chance):
    text, known = TextBuffer(), []
    for texts in columns:
        added = text.add(pa.array(["x", *texts], pa.string()).slice(1))
        known += [(text, added.take([i])) for i, text in enumerate(texts)]
        chance.shuffle(known)
        kept = known[: len(known) // 2 + 1]
        every = TextSpans(
            np.concatenate([one.at for _, one in kept] or [np.zeros(0, np.int64)]),
            np.concatenate([one.lengths for _, one in kept] or [np.zeros(0, np.int32)]),
        )
        at = text.keep_only(every)
        known = [(t, TextSpans(at[i : i + 1], one.lengths)) for i, (t, one) in enumerate(kept)]
        found = text.texts(TextSpans(at, every.lengths))
        assert found.to_pylist() == [text for text, _ in kept]


def test_letters_of_cells_that_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(text_buffer, "FIRST_BYTES", 1 << 10)
    mechanism = Threshold(epsilon=3.0, window=4)
    states = SeriesStates(mechanism, 4, 1)
    numbers, _ = states.numbers_of(["a", "b"])
    for start in range(0, 4000, 10):
        texts = [f"{name}{start + i:05d}" for name in "ab" for i in range(10)]
        column = states.text.add(pa.array(texts, pa.string()))
        counts, starts = np.array([10, 10]), np.array([start, start])
        states.keep(numbers, counts, starts, [column])
    assert states.text.size < 1 << 12
    last = states.cells(0, np.array([0, 1, 0]), np.array([3999, 3998, 3996]))
    assert states.text.texts(last).to_pylist() == ["a03999", "b03998", "a03996"]


def test_states_come_back_from_their_shards(rng):
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    first = SeriesStates(mechanism, 3, 2)
    numbers, fresh = first.numbers_of([f"s{i}" for i in range(SHARD_SERIES + 9)])
    assert len(fresh) == len(numbers)
    texts = [None if i % 5 == 0 else "é" * (i % 4) for i in range(2 * len(numbers))]
    counts, starts = np.full(len(numbers), 2), np.zeros(len(numbers), dtype=np.int64)
    columns = [first.text.add(pa.array(order, pa.string())) for order in (texts, texts[::-1])]
    first.keep(numbers, counts, starts, columns)
    first.steps[numbers] = first.taken[numbers] = 2
    first.first_tick[numbers], first.last_tick[numbers] = 7, rng.integers(7, 99, len(numbers))
    second = SeriesStates(mechanism, 3, 2)
    second.load(first.names, first.shards(numbers))
    assert second.names_digest == first.names_digest
    assert np.array_equal(second.last_tick[numbers], first.last_tick[numbers])
    for column in (0, 1):
        seen = [
            one.text.texts(one.cells(column, numbers, np.full(len(numbers), 1))).to_pylist()
            for one in (first, second)
        ]
        assert seen[0] == seen[1]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40))
def test_rows_are_grouped_as_they_came(codes):
    order, edges, counts = group_by_code(np.array(codes, dtype=np.int64), 7)
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()
    ends = (edges + counts).tolist()
    for low, high in zip(edges.tolist(), ends, strict=True):
        assert len({codes[row] for row in order[low:high]}) == 1


LINES = [
    "a,1,2.5",
    "b,1,",
    "a,2,1e3",
    "a,x,1",
    ",3,1",
    "b,4,nan",
    "b,5,inf",
    "b,6,-inf",
    "a,7, 1",
    "a,8,+1.5",
    "a,9,1_0",
    "a,10,abc",
    "a,11",
    "a,12,1,2",
    "",
    "  ",
    'a,13,"1"',
    'a,14,"1',
    "é,15,1",
    "a,0x10,1",
    "a,99999999999999999999,1",
    "a,+16,1",
    "a,-3,.5",
    "a,1970-01-03,1",
    "a,1970-01-01 00:00:02,1",
    "a,1970-01-01T00:00:02Z,1",
    "a,1970-01-01T00:00:02.5,1",
    "a,1970-01-01T01:00:00+01:00,1",
    "a,1970-13-01,1",
    "a,17,1e400",
    "a,18,-0.0",
]
KINDS = {
    "numbers": RecordFormat("csv", ["v"], "t", "who"),
    "exact": RecordFormat("csv", ["v"], "t", "who"),
    "categories": RecordFormat("csv", ["v"], "t", "who", (("1", "abc"),)),
    "alone": RecordFormat("csv", ["v"], "t", None),
    "two times": RecordFormat("csv", ["v"], "who+t", None),
}
KINDS["exact"].exact = True


def content(batch):
    if not len(batch):
        return None
    told = [
        None if column is None else [c.to_pylist() for c in column]
        for column in (batch.shown, batch.cells)
    ]
    names = [batch.names[code] for code in batch.codes]
    return names, batch.ticks.tolist(), told, batch.values.tolist(), batch.missing.tolist()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=8))
def test_lines_read_in_columns_are_those_read_one_by_one(kind, chosen):
    lines = KINDS[kind]
    lines.columns = None
    lines.take_header(["who", "t", "v"])
    text = "".join(f"{line}\n" for line in chosen).encode()
    aside: list[str] = []
    readings = list(lines.parse(text, aside))
    slow = batch_from_records(readings, 1, lines.exact, aside)
    fast = csv_reader.parse_batch(lines, text)
    assert content(fast) == content(slow)
    assert len(fast.unreadable) == len(slow.unreadable)


def test_the_fast_way_is_taken(monkeypatch):
    record_format = RecordFormat("csv", ["v"], "t", "who")
    record_format.take_header(["who", "t", "v"])
    monkeypatch.setattr(RecordFormat, "parse", None)
    for time in ("1", "1970-01-03", "1970-01-01 00:00:02"):
        found = csv_reader.parse_batch(record_format, f"a,{time},2.5\nb,{time},\n".encode())
        assert found.values.tolist() == [[2.5], [0.0]]


def ciphers_of(links, purpose):
    return [link.block_cipher(purpose) for link in links]


def test_many_runs_have_the_words_of_each(rng):
    chains = [fresh_series_key() for _ in range(60)]
    for starts in (rng.integers(0, 50, 60), rng.integers(EPOCH - 20, EPOCH + 20, 60)):
        counts = rng.integers(1, 30, 60)
        links = [chain.at_epoch(int(s) // EPOCH) for chain, s in zip(chains, starts, strict=True)]
        each = [
            StepRange(*run) for run in zip(links, starts.tolist(), counts.tolist(), strict=True)
        ]
        epochs = starts // EPOCH
        ciphers = functools.partial(ciphers_of, links)
        runs = StepRanges(links, starts, counts, epochs, ciphers)
        many, alone = Keystream(runs, "x"), [Keystream([run], "x") for run in each]
        for lane in (0, 5):
            assert np.array_equal(many.read(lane), np.concatenate([w.read(lane) for w in alone]))
        halves = [w.read_half(1) for w in alone]
        assert np.array_equal(many.read_half(1), np.concatenate(halves))
        some = many.rows(np.arange(0, many.count, 17)).substream(3)
        lanes = np.stack([some.read(lane) for lane in range(4)], axis=1)
        assert np.array_equal(some.read_streams(4), lanes)


def test_categories_are_told_by_their_names():
    record_format = RecordFormat("csv", ["v"], "t", "who", (("on", "off"),))
    record_format.take_header(["who", "t", "v"])
    assert RandomizedResponse(epsilon=1.0, categories=("on", "off")).domain.categories == (
        ("on", "off"),
    )
    found = csv_reader.parse_batch(record_format, b"a,1,off\na,2,maybe\na,3,\n")
    assert found.values[:, 0].tolist() == [1.0, -1.0, 0.0]
    assert found.missing[:, 0].tolist() == [False, False, True]


pytest_plugins = ["tests.support.statistics"]
