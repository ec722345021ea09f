"""The data of the study on shapes: few series made many, and none of them in both parts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.local.shapes.sequences import Sequences
from tempriv.sampling.keys import Key
from tempriv.studies.privshape import data as privshape_data
from tempriv.studies.privshape.data import TRACE_STRENGTH, Augmentation, Labelled
from tests.support.stand_ins import shape_tasks

STILL = Augmentation(delay=0, stretch=0, bend=0, scale=0, ripple=0)
DATA = pytest.mark.skipif(
    "TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data"
)


@pytest.fixture
def originals():
    rows = np.random.default_rng(0).normal(size=(35, 50)).cumsum(axis=1)
    return Labelled(rows, np.repeat([1, 2, 4], [10, 20, 5]))


def write(path, rows, labels, names=None):
    path.parent.mkdir(exist_ok=True)
    names = names or ["split", "label", *(f"t{i}" for i in range(rows.shape[1]))]
    lines = [",".join(names)]
    for label, row in zip(labels, rows, strict=True):
        lines.append(",".join(["train", str(label), *map(repr, row.tolist())]))
    path.write_text("\n".join(lines) + "\n")


def test_series_are_read_from_their_folder(tmp_path, originals):
    with pytest.raises(UsageError, match=r"Symbols\.csv: no such file"):
        privshape_data.read(tmp_path)
    for name in (privshape_data.SYMBOLS, privshape_data.TRACE):
        write(tmp_path / name, originals.series, originals.labels)
    symbols, trace = privshape_data.read(tmp_path)
    assert (symbols.series == originals.series).all()
    assert (trace.labels == originals.labels).all()


def test_tables_of_another_kind_are_refused(tmp_path, originals):
    path = tmp_path / "x" / "Trace.csv"
    write(path, originals.series[:, :2], originals.labels, ["split", "class", "t0", "t1"])
    with pytest.raises(DataError, match="columns split, label"):
        privshape_data.read_series(path)
    write(path, originals.series[:, :2], originals.labels, ["split", "label", "t1", "t0"])
    with pytest.raises(DataError, match="in this order"):
        privshape_data.read_series(path)
    write(path, np.full((2, 3), np.nan), [1, 2])
    with pytest.raises(DataError, match="missing readings"):
        privshape_data.read_series(path)


def rows_of(data):
    return {tuple(row) for row in data.series.round(6).tolist()}


def test_no_original_is_in_both_parts(originals):
    train, test = privshape_data.parted(originals, Key.from_seed(1))
    assert rows_of(train) | rows_of(test) == rows_of(originals)
    assert not rows_of(train) & rows_of(test)
    assert np.unique(test.labels, return_counts=True)[1].tolist() == [2, 4, 1]
    others = privshape_data.parted(originals, Key.from_seed(2))[1]
    assert rows_of(others) != rows_of(test)
    with pytest.raises(DataError, match="class 4: must have at least two"):
        privshape_data.parted(originals.take(np.arange(31)), Key.from_seed(1))


def test_a_task_trains_and_tests_with_different_originals(originals):
    task = privshape_data.trace(originals, people=300, tested=60, classes=(1, 4), strength=STILL)
    assert len(task.train) == 300 and len(task.test) == 60
    assert task.classes == (1, 4)
    kept = rows_of(originals)
    assert rows_of(task.train) <= kept and rows_of(task.test) <= kept
    assert not rows_of(task.train) & rows_of(task.test)
    with pytest.raises(UsageError, match=r"classes=\(1, 3\)"):
        privshape_data.trace(originals, classes=(1, 3))


def test_series_are_the_same_for_a_key_and_begin_alike_for_any_count(originals, monkeypatch):
    monkeypatch.setattr(privshape_data, "CHUNK_SERIES", 16)

    def some(count, seed=1, part="train"):
        chunks = list(
            privshape_data.augmented(originals, count, Key.from_seed(seed), TRACE_STRENGTH, part)
        )
        assert all(len(chunk) == 16 for chunk in chunks[:-1])
        return privshape_data.collected(iter(chunks))

    first = some(40)
    assert (some(40).series == first.series).all()
    assert (some(25).series == first.series[:25]).all()
    assert (some(25).labels == first.labels[:25]).all()
    assert (some(40, seed=2).series != first.series).any()
    assert (some(40, part="test").series != first.series).any()


def varied(strength, **given):
    """A ramp varied by one kind of change only; numbers that are not given change nothing."""
    ramp = np.arange(101.0)[None]
    drawn = np.full((1, 14), 0.5)
    for place, value in given.items():
        drawn[0, int(place[1:])] = value
    return privshape_data.varied(ramp, replace(STILL, **strength), drawn)[0]


def test_each_kind_of_change_does_what_it_says():
    ramp = np.arange(101.0)
    assert np.allclose(varied({}), ramp)
    late = varied({"delay": 0.4}, n1=0.5)
    assert np.allclose(late[:21], 0) and np.allclose(late[20:], ramp[:81])
    fast = varied({"stretch": 0.5}, n2=1.0)
    assert np.allclose(fast, np.minimum(1.5 * ramp, 100))
    slow = varied({"stretch": 0.5}, n2=0.0)
    assert np.allclose(slow, 0.5 * ramp)
    assert np.allclose(varied({"scale": 0.3}, n3=1.0), 1.3 * ramp)
    kept = varied({"delay": 0.4, "scale": 0.3, "ripple": 0.5}, n0=0.0, n1=1.0, n3=1.0, n12=1.0)
    assert np.allclose(kept, ramp)
    # a sine and a cosine at their largest
    bent = varied({"bend": 0.9}, n4=1.0, n5=1.0, n6=1.0, n7=1.0) - ramp
    assert np.abs(bent).max() > 1 and np.diff(bent + ramp).min() >= 0
    assert 0.2 < np.abs(np.diff(bent)).max() <= 0.9
    rippled = varied({"ripple": 0.3}, n8=1.0, n9=1.0, n10=0.0, n13=1.0) - ramp
    assert 0.1 < np.abs(rippled).max() <= 0.3


def test_changes_stay_within_what_is_said():
    rng = np.random.default_rng(5)
    rows = np.tile(np.arange(101.0), (2000, 1))
    found = privshape_data.varied(
        rows, replace(STILL, stretch=0.3, bend=0.6), rng.random((2000, 14))
    )
    speed = np.diff(found, axis=1)
    assert speed.min() >= -1e-9 and speed.max() <= 1.9 + 1e-9
    ripple = privshape_data.varied(rows, replace(STILL, ripple=0.3), rng.random((2000, 14))) - rows
    assert 0.15 < np.abs(ripple).max() <= 0.3


def test_strengths_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match=r"delay=1\.0"):
        replace(STILL, delay=1.0)
    with pytest.raises(UsageError, match="run backwards"):
        replace(STILL, stretch=0.5, bend=0.5)


@pytest.mark.parametrize("length", privshape_data.WAVE_LENGTHS)
def test_waves_have_one_shape_for_each_class(length):
    some = privshape_data.waves(length, people=10)
    assert some.series.shape == (10, length)
    assert np.allclose(some.series.mean(axis=1), 0) and np.allclose(some.series.std(axis=1), 1)
    different, counts = privshape_data.TRACE_SAX.sequences(some.series).distinct()
    assert counts.tolist() == [5, 5]
    assert different.texts() == ["cdcbab", "dcbabcd"]


def test_the_beginning_of_a_wave_has_a_shape_of_its_own():
    some = privshape_data.waves(1000, people=2, shown=200)
    assert some.series.shape == (2, 200)
    assert (np.diff(some.series[0]) > 0).all() and (np.diff(some.series[1]) < 0).all()
    with pytest.raises(UsageError, match="shown=201"):
        privshape_data.waves(200, shown=201)


def test_what_the_first_symbol_alone_tells():
    train = Sequences.of(["ab", "ac", "ab", "ba", "bc", "ca"], symbols=3)
    test = Sequences.of(["a", "b", "c", "ab"], symbols=3)
    found = privshape_data.first_symbol_accuracy(
        train, np.array([1, 1, 2, 2, 2, 1]), test, np.array([1, 2, 2, 2])
    )
    assert found == 0.5


def test_shapes_of_made_up_tasks_are_their_bends():
    symbols, trace = shape_tasks(people=400, tested=60)
    assert symbols.made_up and symbols.classes == (1, 2, 3, 4, 5, 6)
    shapes = privshape_data.shapes_of(trace)
    assert shapes.different < 100
    assert set(shapes.modes) == {1, 2, 4} and len(set(shapes.modes.values())) == 3
    assert all(0.1 < share <= 1 for share in shapes.shares.values())
    assert shapes.first_symbol > 0.5
    alone = trace.train.take(trace.train.labels == 4)
    texts = trace.sax.sequences(alone.series).texts()
    mode = max(set(texts), key=texts.count)
    assert texts.count(mode) / len(texts) == shapes.shares[4]
    assert texts.count(shapes.modes[4]) == texts.count(mode)


@DATA
def test_trace_looks_like_what_others_measured():
    """Measured before, on the authors' own 39,000: 150 different sequences, first symbol .882."""
    _, trace = privshape_data.read(Path(os.environ["TEMPRIV_DATA"]))
    assert trace.series.shape == (200, 275)
    shapes = privshape_data.shapes_of(privshape_data.trace(trace))
    assert 120 <= shapes.different <= 180
    assert shapes.modes == {1: "cdabc", 2: "dabcd", 4: "abcd"}
    assert 0.85 <= shapes.first_symbol <= 0.92


@DATA
def test_symbols_have_thousands_of_shapes():
    """Measured before, on data like them: 9,506 different sequences of 40,000."""
    symbols, _ = privshape_data.read(Path(os.environ["TEMPRIV_DATA"]))
    assert symbols.series.shape == (1020, 398)
    shapes = privshape_data.shapes_of(privshape_data.symbols(symbols))
    assert 8_500 <= shapes.different <= 10_500
    assert shapes.modes[1] == shapes.modes[2] == "abcdef"  # so no method can tell them by modes
