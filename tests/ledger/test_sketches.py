"""Sketches: the same rows are known again, others are not taken for them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tempriv.data.series import Block
from tempriv.ledger.identity import chance_of, match
from tempriv.ledger.sketches import KINDS, MOST_KEPT, RowSketcher, Sketch, microseconds_of
from tests.support.lookalikes import SECRET, disguises, meters, rows_of, sketch, unlike, walk

ROWS = meters(1)
KNOWN = sketch(ROWS)


@pytest.mark.parametrize("name", disguises(ROWS))
def test_rows_are_known_in_disguise(name):
    found = match(sketch(disguises(ROWS)[name]), KNOWN)
    assert found is not None and found.certain
    written = ("other ids", "other times", "another id")
    assert found.spelled_alike == (not any(part in name for part in written))
    assert found.share > (0.4 if name == "beside as many others" else 0.9)


@pytest.mark.parametrize("name", ["the same", "other ids", "the first tenth, other ids"])
def test_low_values_are_known_too(name):
    random = np.random.default_rng(5)
    rows = rows_of({f"home{i}": random.integers(0, 4, 900) for i in range(6)})
    found = match(sketch(disguises(rows)[name]), sketch(rows))
    assert found is not None and found.certain


def test_one_series_of_very_many_is_known():
    random = np.random.default_rng(3)
    many = {f"home{i}": walk(random, 40) for i in range(4000)}
    known = sketch(rows_of(many))
    assert known.samples["runs8"].level > 0
    alone = rows_of({"somebody": many["home1234"]})
    found = match(sketch(alone), known)
    assert found is not None and found.certain and not found.spelled_alike


def test_the_other_way_round_as_well():
    random = np.random.default_rng(3)
    many = {f"home{i}": walk(random, 40) for i in range(4000)}
    known = sketch(rows_of({"somebody": many["home1234"]}))
    found = match(sketch(rows_of(many)), known)
    assert found is not None and found.certain


def merged_by_mistake(count, seed):
    """Pairs among unlike tables that are taken for the same, and the kinds of both."""
    sketches = [(kind, sketch(rows)) for kind, rows in unlike(count, seed)]
    return [
        (one, other)
        for (one, first), (other, second) in combinations(sketches, 2)
        if (found := match(second, Sketch.from_bytes(first.to_bytes()))) is not None
        and found.certain
    ]


def test_sixty_unlike_tables_stay_apart():
    wrong = merged_by_mistake(60, seed=7)
    print(f"{len(wrong)} of {60 * 59 // 2} pairs were merged by mistake")
    assert not wrong


@pytest.mark.long
def test_a_thousand_unlike_tables_stay_apart():
    """A table counts as merged by mistake if it is taken for any one of those before it."""
    known: list[tuple[str, Sketch]] = []
    wrong = []
    for kind, rows in unlike(1000, seed=11):
        fresh = sketch(rows)
        taken = [other for other, one in known if (m := match(fresh, one)) and m.certain]
        if taken:
            wrong.append((kind, taken))
        known.append((kind, Sketch.from_bytes(fresh.to_bytes())))
    print(f"{len(wrong)} of 1,000 tables were merged by mistake: {wrong}")
    assert len(wrong) <= 5


def test_ids_and_times_alone_are_likely_at_most():
    values = {f"home{i}": walk(np.random.default_rng(50 + i), 300) for i in range(8)}
    found = match(sketch(rows_of(values)), KNOWN)
    assert found is not None and not found.certain and "other values" in found.reason


def test_the_next_month_is_something_else():
    random = np.random.default_rng(9)
    whole = {f"home{i}": walk(random, 600) for i in range(8)}
    first = rows_of({name: values[:300] for name, values in whole.items()})
    second = [row for row in rows_of(whole) if row not in set(first)]
    assert match(sketch(second), sketch(first)) is None


def test_a_sketch_tells_nothing_without_its_secret():
    other = sketch(ROWS, secret=bytes(32))
    assert match(other, KNOWN) is None
    for kind in KINDS:
        assert not np.isin(other.samples[kind].hashes, KNOWN.samples[kind].hashes).any()


def test_it_survives_the_file_and_holds_no_id_time_or_value():
    data = KNOWN.to_bytes()
    again = Sketch.from_bytes(data)
    for kind in KINDS:
        assert np.array_equal(again.samples[kind].hashes, KNOWN.samples[kind].hashes)
    assert b"home" not in data
    words = np.frombuffer(np.unique(again.samples["rows"].hashes).tobytes(), np.uint64)
    times = np.array([time for _, time, _ in ROWS], dtype=np.int64).view(np.uint64)
    assert not np.isin(words, times).any()


@pytest.mark.parametrize("rows", [7, 77, 1000])
def test_blocks_do_not_matter_to_rows(rows):
    """Sequences across a cut are lost, so only those of rows are the same for any cutting."""
    values = np.array([value for _, _, value in ROWS])[:, None]
    times = np.array([time for _, time, _ in ROWS])
    sketcher = RowSketcher(SECRET, 1, None, named=True)
    for series in range(8):
        for start in range(0, 300, rows):
            end = min(start + rows, 300)
            part = slice(300 * series + start, 300 * series + end)
            sketcher.see(
                Block(
                    values=values[part],
                    missing=np.zeros((end - start, 1), dtype=np.bool_),
                    ids=(f"home{series}",),
                    counts=np.array([end - start]),
                    starts=np.array([start]),
                    times=times[part],
                ),
                "integer",
            )
    cut = sketcher.finish()
    for kind in ("rows", "readings"):
        assert np.array_equal(cut.samples[kind].hashes, KNOWN.samples[kind].hashes)
    assert match(cut, KNOWN).certain


def test_sketches_of_many_rows_stay_small_and_add_up():
    first, second = meters(21, series=40, length=600), meters(22, series=40, length=600)
    both = sketch(first).joined(sketch(second))
    assert all(len(both.samples[f"runs{width}"].hashes) <= MOST_KEPT for width in (8, 24))
    assert len(both.to_bytes()) < 2_000_000
    for rows in (first, second):
        found = match(sketch(rows), both)
        assert found is not None and found.certain and found.spelled_alike


def test_times_in_other_units_are_the_same():
    seconds = np.array([1_700_000_000, 1_700_003_600])
    for scale in (1000, 1_000_000, 1_000_000_000):
        told = microseconds_of("integer", seconds * scale)
        assert np.array_equal(told, microseconds_of("integer", seconds))
    assert np.array_equal(microseconds_of("datetime", seconds * 1_000_000), told)


def test_chance_is_bounded_from_above():
    random = np.random.default_rng(2)
    hits = random.binomial(50, 0.1, 200_000)
    for least in (8, 12, 16):
        assert np.exp(chance_of(50, 0.1, least)) >= np.mean(hits >= least)


def test_columns_with_one_value_do_not_make_it_certain():
    """A flag that is nearly always the same agrees at every time of unlike tables."""
    constant = {f"home{i}": np.full(300, 1.0) for i in range(8)}
    found = match(sketch(rows_of(constant)), sketch(rows_of(constant)))
    assert found is None or not found.certain
