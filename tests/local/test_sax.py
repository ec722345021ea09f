"""Series become the sequences that the definition gives them, and nothing else stops the show."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.util
import itertools
import json
import math
import re
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import TemprivError
from tempriv.local.shapes.sax import (
    EIGHT_CELLS,
    Sax,
    breakpoints,
    curve,
    normal_quantile,
    without_segments,
)
from tempriv.local.shapes.sequences import LETTERS, Sequences, longest_of
from tests.reference import sax as reference
from tests.support.paths import DOCS
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]

PAGE = DOCS / "sax.md"


def texts(sax, series):
    return sax.sequences(series).texts()


def by_definition(sax, series):
    return [
        "".join(
            LETTERS[symbol]
            for symbol in reference.symbols(
                one,
                sax.edges,
                sax.segment,
                keep=sax.partial == "keep",
                compressed=sax.compressed,
                longest=sax.longest,
            )
        )
        for one in series
    ]


# the normal law


def is_next_to(found, probability):
    """Whether no floating-point number is nearer to the true quantile."""
    below, above = (
        (Fraction(found) + Fraction(math.nextafter(found, to))) / 2 for to in (-math.inf, math.inf)
    )
    law = reference.normal_below
    return (
        law(below) < probability.numerator / reference.Decimal(probability.denominator) < law(above)
    )


@pytest.mark.parametrize("symbols", range(2, 27))
def test_breakpoints_are_rounded_correctly(symbols):
    with reference.localcontext() as context:
        context.prec = 60
        for i, edge in enumerate(breakpoints(symbols), 1):
            assert edge == 0 if 2 * i == symbols else is_next_to(edge, Fraction(i, symbols))
        for i, level in enumerate(Sax(symbols=symbols, longest=5).levels):
            middle = Fraction(2 * i + 1, 2 * symbols)
            assert level == 0 if middle == Fraction(1, 2) else is_next_to(level, middle)


def test_the_check_of_rounding_is_sharp():
    edge = normal_quantile(Fraction(3, 4))
    with reference.localcontext() as context:
        context.prec = 60
        assert is_next_to(edge, Fraction(3, 4))
        for to in (0, 1):
            assert not is_next_to(math.nextafter(edge, to), Fraction(3, 4))


def test_breakpoints_are_those_of_the_table():
    """Table 3 of Lin et al. (2007), to two decimals."""
    assert [round(edge, 2) for edge in breakpoints(3)] == [-0.43, 0.43]
    assert [round(edge, 2) for edge in breakpoints(4)] == [-0.67, 0, 0.67]
    assert [round(edge, 2) for edge in breakpoints(6)] == [-0.97, -0.43, 0, 0.43, 0.97]
    for symbols in range(2, 27):
        edges = breakpoints(symbols)
        assert edges == tuple(-edge for edge in reversed(edges))


# series to sequences

SETTINGS = [
    Sax(),
    Sax(symbols=6, segment=25, partial="drop"),
    Sax(symbols=2, segment=3, compressed=False, longest=20),
    Sax(symbols=3, segment=7, partial="drop", compressed=False),
    Sax(symbols=26, segment=4, longest=5),
    Sax(symbols=3, segment=2, values=(-0.5, 1.25)),
    without_segments(),
    without_segments(compressed=False, longest=21),
]
NAMES = ["trace", "symbols", "two", "plain", "letters", "edges", "cells", "many cells"]


def walks(rng, count, least):
    """Random walks of many lengths and scales."""
    for _ in range(count):
        steps = rng.normal(size=rng.integers(least, 120))
        yield np.cumsum(steps) * 10.0 ** rng.integers(-8, 9) + rng.normal(scale=100)


@pytest.mark.parametrize("sax", SETTINGS, ids=NAMES)
def test_walks_become_what_the_definition_says(sax, rng):
    series = list(walks(rng, 80 if COMPILED else 30, 25))
    found = texts(sax, series)
    assert found == by_definition(sax, series)
    assert len(set(found)) > 10


@pytest.mark.parametrize("sax", SETTINGS, ids=NAMES)
def test_whole_numbers_are_decided_exactly(sax, rng):
    """Few whole numbers: means fall on the mean of their series again and again."""
    series = [rng.integers(0, 3, rng.integers(25, 60)) for _ in range(150 if COMPILED else 40)]
    assert texts(sax, series) == by_definition(sax, series)


def test_a_mean_on_the_edge_belongs_above():
    assert texts(Sax(segment=2), [[0, 1, 0, 1]]) == ["c"]
    assert texts(Sax(segment=2, compressed=False), [[0, 3, 1, 2, 3, 0]]) == ["ccc"]
    # the means are no binary fractions: 7 times the nearest to 29 / 7 is more than 29
    assert 58 / 14 * 7 > 29
    assert texts(Sax(segment=7, symbols=2), [[0] * 6 + [29, 29] + [0] * 6]) == ["b"]


def test_the_example_of_the_paper():
    """Figures 3 and 4: aaacccccbbbaaa, in segments of 8, is the shape acba."""
    heights = {"a": -1.0, "b": 0.0, "c": 1.0}
    series = np.repeat([heights[letter] for letter in "aaacccccbbbaaa"], 8)
    assert texts(Sax(symbols=3, segment=8, compressed=False), [series]) == ["aaacccccbbbaaa"]
    assert texts(Sax(symbols=3, segment=8), [series]) == ["acba"]


@pytest.mark.parametrize("symbols", [2, 3, 4, 25, 26])
def test_a_constant_series_rests_in_the_middle(symbols):
    """Also where a mean of equal numbers is not that number, and where squares overflow."""
    middle = LETTERS[symbols // 2]
    levels = (0.0, 0.1, -1 / 3, 1e9, 1e-300, 5e-324, 1.7e308)
    series = [np.full(length, level) for level in levels for length in (1, 9, 10, 33)]
    assert set(texts(Sax(symbols=symbols, longest=5), series)) == {middle}
    whole = Sax(symbols=symbols, longest=5, compressed=False)
    assert texts(whole, [np.full(33, 0.1)]) == [middle * 4]


def test_neither_scale_nor_level_matter(rng):
    """Whole numbers times powers of two, which change no digit, down to the least there are."""
    series = np.cumsum(rng.integers(-3, 4, (20, 90)), axis=1)
    wanted = texts(Sax(), series)
    for power in (-1074, -1000, -600, 0, 30, 600, 1010):
        assert texts(Sax(), np.ldexp(series.astype(float), power)) == wanted
    assert texts(Sax(), series + 2**50) == wanted
    assert texts(Sax(), 7.0 * series - 1234) == wanted


def test_extremes_do_not_overflow():
    top = np.finfo(float).max
    assert texts(Sax(symbols=3, segment=1), [[top, -top, top, 0.0]]) == ["cac" + "b"]
    assert texts(Sax(symbols=3, segment=1), [[top, top, np.nextafter(top, 0)]]) == ["ca"]


def test_an_outlier_at_the_start_hides_nothing(rng):
    """Differences to the first value are then all large; the rest must still be told apart."""
    few, many = (2_000, 20_000) if COMPILED else (500, 2_000)
    for length in (few, many):
        series = rng.integers(0, 2, length).astype(float)
        series[0] = 1e9
        sax = Sax(symbols=2, segment=1, compressed=False, longest=63)
        assert texts(sax, [series]) == ["b" + "a" * 62]
        edge = Sax(symbols=3, segment=length // 2, values=(-1e-6, 1e-6))
        assert texts(edge, [series]) == by_definition(edge, [series])


def test_partial_segments():
    series = [0.0] * 10 + [5.0] * 4
    assert texts(Sax(symbols=2), [series]) == ["ab"]
    assert texts(Sax(symbols=2, partial="drop"), [series]) == ["a"]
    assert texts(Sax(symbols=2), [[1.0, 2.0, 4.0]]) == ["b"]  # shorter than a segment


def test_only_the_first_symbols_are_kept(rng):
    series = list(walks(rng, 30, 60))
    found = Sax(segment=3, longest=9).sequences(series)
    assert found.lengths.max() == 9
    for length in (1, 4, 9):
        assert Sax(segment=3, longest=length).sequences(series) == found.prefix(length)


def test_the_eight_cells_of_the_paper():
    assert tuple(round(0.33 * i, 2) for i in range(-3, 4)) == EIGHT_CELLS
    assert without_segments() == Sax(symbols=8, segment=1, longest=15, values=EIGHT_CELLS)


# in what form series come


def test_the_form_makes_no_difference(rng):
    matrix = np.cumsum(rng.normal(size=(50, 64)), axis=1)
    sax = Sax()
    wanted = sax.sequences(matrix)
    same = [
        list(matrix),
        matrix.tolist(),
        tuple(matrix),
        np.asfortranarray(matrix),
        np.repeat(matrix, 2, axis=1)[:, ::2],
        [matrix[:20], matrix[20:]],
        iter([matrix[:20], list(matrix[20:30]), matrix[30:]]),
        (matrix[i : i + 7] for i in range(0, 50, 7)),
        ([row] for row in matrix),
        np.ma.array(matrix),
    ]
    for series in same:
        assert sax.sequences(series) == wanted
    assert [sax.sequences([row]).texts()[0] for row in matrix] == wanted.texts()
    halves = np.round(matrix * 2)
    for kind in (np.float32, np.int16, np.int64):
        assert sax.sequences(halves.astype(kind)) == sax.sequences(halves)


def test_none_at_all():
    for series in ([], iter([]), np.empty((0, 20)), iter([[], np.empty((0, 3))])):
        found = Sax().sequences(series)
        assert len(found) == 0 and found.texts() == [] and found.codes.dtype == np.uint64


def test_more_than_is_worked_on_at_a_time(rng, monkeypatch):
    matrix = np.cumsum(rng.normal(size=(60, 30)), axis=1)
    ragged = [row[: rng.integers(1, 31)] for row in matrix]
    wanted = [Sax(segment=4).sequences(series) for series in (matrix, ragged)]
    monkeypatch.setattr("tempriv.local.shapes.sax.BATCH_VALUES", 100)
    assert [Sax(segment=4).sequences(series) for series in (matrix, ragged)] == wanted


def test_chunks_are_not_kept():
    """Of 60 chunks, one is held at a time, and 8 bytes a series."""
    rows, columns = (500, 300) if COMPILED else (50, 20)
    chunk_bytes = rows * columns * 8

    def chunks():
        for i in range(60):
            yield np.sin(np.arange(rows * columns) * (i + 1) / 50).reshape(rows, columns)

    Sax().sequences(chunks())
    tracemalloc.start()
    try:
        found = Sax().sequences(chunks())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 60 * rows
    assert peak < 6 * chunk_bytes + 3 * found.codes.nbytes


GOOD = np.arange(12.0)


@pytest.mark.parametrize(
    ("series", "says"),
    [
        ([GOOD, [1.0, math.nan, 2.0]], "series 1: holds a missing or infinite value; fill it in"),
        ([GOOD, GOOD, [1.0, 2.0, math.inf]], "series 2: holds a missing or infinite"),
        (np.array([GOOD, [math.nan] * 12]), "series 1: holds a missing or infinite"),
        (iter([[GOOD], [GOOD, [-math.inf]]]), "series 2: holds a missing or infinite"),
        (iter([np.array([GOOD]), [[]]]), "series 1: is empty"),
        ([GOOD, []], "series 1: is empty"),
        (np.empty((3, 0)), "series 0: is empty"),
        ([GOOD, [1.0, None]], "series 1: must be numbers in a row"),
        ([GOOD, ["a", "b"]], "series 1: must be numbers in a row"),
        ([GOOD, [[1.0], [1.0, 2.0]]], "series 1: must be numbers in a row"),
        ([GOOD, 1j * GOOD], "series 1: must be numbers in a row"),
        ([GOOD, np.ma.array(GOOD, mask=GOOD > 3)], "series 1: holds a missing value"),
        (np.ma.array([GOOD], mask=[GOOD > 3]), "the matrix: holds a missing value"),
        (GOOD, "a single series goes in a list"),
        ([1.0, 2.0], "series 0: must be numbers in a row"),
        (np.zeros((2, 2, 2)), "give a row for each series"),
        ("acba", "str: give a matrix, a list of series or an iterator"),
        ({"a": GOOD}, "dict: give a matrix"),
        (5, "int: give a matrix"),
        (iter([GOOD, GOOD]), "a chunk must be a matrix or a list of series"),
    ],
    ids=lambda value: value if isinstance(value, str) and ":" in value else "",
)
def test_what_cannot_be_meant_is_refused(series, says):
    with pytest.raises(TemprivError, match=says):
        Sax().sequences(series)


def test_a_short_series_is_refused_where_its_segment_would_be_dropped():
    with pytest.raises(
        TemprivError, match="series 1: its 9 values are fewer than segment=10; partial"
    ):
        Sax(partial="drop").sequences([GOOD, GOOD[:9]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"symbols": 1},
        {"symbols": 27},
        {"symbols": 4.0},
        {"symbols": "4"},
        {"symbols": True},
        {"segment": 0},
        {"segment": 2.5},
        {"segment": 10**30},
        {"compressed": 1},
        {"partial": "cut"},
        {"partial": None},
        {"longest": 0},
        {"longest": 32},
        {"longest": 5.0},
        {"values": (0.0, 1.0)},
        {"values": (0.0, 0.0, 1.0)},
        {"values": (2.0, 1.0, 3.0)},
        {"values": (0.0, 1.0, math.nan)},
        {"values": (0.0, 1.0, math.inf)},
        {"values": "abc"},
        {"values": (0.0, 1.0, "2")},
        {"values": (0, 1, 10**400)},
        {"values": 5},
    ],
    ids=repr,
)
def test_settings_that_cannot_be_meant_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(TemprivError, match=rf"^{name}"):
        Sax(**wrong)
    with pytest.raises(TemprivError):
        Sax.from_dict(Sax().to_dict() | wrong)


@pytest.mark.parametrize("sax", SETTINGS, ids=NAMES)
def test_settings_survive_json(sax):
    assert Sax.from_dict(json.loads(json.dumps(sax.to_dict()))) == sax
    for given in (None, [], "sax", {}, sax.to_dict() | {"more": 1}, {"symbols": 4}):
        with pytest.raises(TemprivError, match="^sax: must be an object with compressed, longest"):
            Sax.from_dict(given)
    assert sax.alphabet == LETTERS[: sax.symbols] and len(sax.levels) == sax.symbols


# the value


def every(symbols, longest):
    return [
        "".join(row)
        for length in range(longest + 1)
        for row in itertools.product(LETTERS[:symbols], repeat=length)
    ]


@pytest.mark.parametrize("symbols", [2, 3, 5])
def test_every_sequence_has_a_code_of_its_own(symbols):
    names = every(symbols, 4)
    found = Sequences.of(names, symbols=symbols)
    assert found.texts() == names
    assert (np.diff(found.codes.astype(object)) > 0).all()  # by length, then by letters
    assert found.lengths.tolist() == [len(name) for name in names]
    matrix = found.matrix()
    assert matrix.dtype == np.int8 and matrix.shape == (len(names), 4)
    for name, row in zip(names, matrix.tolist(), strict=True):
        assert row == [LETTERS.index(s) for s in name] + [-1] * (4 - len(name))
    rows = [[LETTERS.index(s) for s in name] for name in names]
    assert Sequences.of(rows, symbols=symbols) == found
    assert Sequences.of_texts(names, found) == found
    for length in range(6):
        assert found.prefix(length).texts() == [name[:length] for name in names]


@pytest.mark.parametrize("symbols", range(2, 27))
def test_the_longest_have_room(symbols):
    most = longest_of(symbols)
    names = [LETTERS[symbols - 1] * most, LETTERS[0] * most, LETTERS[symbols - 1] * (most - 1)]
    found = Sequences.of(names, symbols=symbols)
    assert found.texts() == names and found.lengths.tolist() == [most, most, most - 1]
    with pytest.raises(TemprivError, match=f"must have at most {most}"):
        Sequences.of([LETTERS[0] * (most + 1)], symbols=symbols)


def test_a_series_fills_the_longest_code():
    """The kernel writes into the last bits as the constructor does."""
    sax = Sax(symbols=2, segment=1, longest=63)
    assert texts(sax, [[1.0, 0.0] * 40]) == ["ba" * 31 + "b"]
    sax = Sax(symbols=4, segment=1, longest=31)
    assert texts(sax, [[9.0, 0.0] * 40]) == ["da" * 15 + "d"]


def test_equal_ones_are_counted(rng):
    names = [every(3, 3)[i] for i in rng.integers(0, 40, 500)]
    found = Sequences.of(names, symbols=3)
    different, counts = found.distinct()
    assert dict(zip(different.texts(), counts.tolist(), strict=True)) == {
        name: names.count(name) for name in set(names)
    }
    again, which = found.grouped()
    assert again == different and again.take(which) == found
    assert found.take(slice(3)).texts() == names[:3]
    assert found.take(found.lengths == 2).texts() == [name for name in names if len(name) == 2]


def test_equality_and_refusals():
    one = Sequences.of(["ab"], symbols=3)
    assert one == Sequences.of(["ab"], symbols=3)
    assert one != Sequences.of(["ab"], symbols=4) and one != Sequences.of(["ac"], symbols=3)
    assert one != "ab" and one != Sequences.of(["ab", "ab"], symbols=3)
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.symbols = 4
    for wrong in ("ad", "aB", "a ", [0, 3], [-1], [0.5], [None], [[0]]):
        with pytest.raises(TemprivError, match="none of 3 symbols: use the letters a to c"):
            Sequences.of([wrong], symbols=3)
    with pytest.raises(TemprivError, match="symbols=30: must be a whole number from 2 to 26"):
        Sequences.of([], symbols=30)
    for codes in ([5], np.array([5]), np.ones((2, 2), dtype=np.uint64)):
        with pytest.raises(TemprivError, match="^codes"):
            Sequences(symbols=3, codes=codes)
    with pytest.raises(TemprivError, match="length=-1"):
        one.prefix(-1)


# sequences to curves


def test_levels_are_in_their_cells():
    for sax in SETTINGS:
        cells = (-math.inf, *sax.edges, math.inf)
        for low, level, high in zip(cells, sax.levels, cells[1:], strict=False):
            assert low < level < high
    # the median of the normal law between 0 and 0.33, by its definition
    half = without_segments().levels[4]
    law = reference.normal_below
    assert abs(2 * law(Fraction(half)) - law(Fraction(0)) - law(Fraction(0.33))) < 1e-15
    far = Sax(symbols=3, values=(50.0, 60.0)).levels
    assert far == (0.0, 50.0, 60.0)
    assert Sax(symbols=3, values=(-60.0, -50.0)).levels == (-60.0, -50.0, 0.0)


def test_a_compressed_sequence_gives_each_symbol_an_equal_share():
    sax = Sax(symbols=3)
    low, middle, high = sax.levels
    assert curve("acb", sax, 6).tolist() == [low, low, high, high, middle, middle]
    assert curve([0, 2, 1], sax, 3).tolist() == [low, high, middle]
    assert curve("acb", sax, 1).tolist() == [high]
    smooth = curve("acb", sax, 300, line="smooth")
    assert smooth[0] == low and smooth[-1] == middle
    assert smooth.max() <= high and math.isclose(smooth.max(), high, abs_tol=1e-3)
    assert (np.diff(smooth[:150]) >= 0).all() and (np.diff(smooth[151:]) <= 0).all()
    assert np.abs(np.diff(smooth)).max() < 0.05  # no jumps
    assert curve("b", sax, 4, line="smooth").tolist() == [0.0] * 4


def test_a_whole_sequence_has_its_segments():
    sax = Sax(symbols=3, segment=4, compressed=False)
    low, middle, high = sax.levels
    assert curve("acb", sax, 10).tolist() == [low] * 4 + [high] * 4 + [middle] * 2
    assert curve("acb", sax, 14).tolist() == [low] * 4 + [high] * 4 + [middle] * 6


def test_a_balanced_curve_comes_back_as_its_sequence():
    """Each cell is visited as long as any other, so z-scoring moves nothing across an edge."""
    sax = Sax(symbols=4, segment=10)
    for shape in ("abcd", "dcba", "badc", "cadb"):
        assert texts(sax, [curve(shape, sax, 40)]) == [shape]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 2.5}, "length=2.5"),
        ({"line": "dots"}, "line='dots'"),
        ({"sequence": ""}, "nothing to draw"),
        ({"sequence": "ae"}, "none of 4 symbols"),
    ],
    ids=["none", "half", "dots", "empty", "letter"],
)
def test_curves_that_cannot_be_drawn_are_refused(wrong, says):
    with pytest.raises(TemprivError, match=says):
        curve(**({"sequence": "ab", "sax": Sax(), "length": 5} | wrong))


def test_the_picture_of_the_page_is_true():
    """Both series have the shape that is shown; slowed down more, the first has another."""
    sys.path.insert(0, str(PAGE.parent / "pictures"))
    try:
        spec = importlib.util.spec_from_file_location(
            "pictures_sax", PAGE.parent / "pictures" / "sax.py"
        )
        assert spec is not None and spec.loader is not None
        pictures = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pictures)
    finally:
        sys.path.remove(str(PAGE.parent / "pictures"))
    assert texts(pictures.SAX, list(pictures.series())) == ["cdcbab", "cdcbab"]
    slower = pictures.movement(np.linspace(0, 1, 200) ** 1.8)
    assert texts(pictures.SAX, [slower]) == ["bcdcba"] and "`bcdcba`" in PAGE.read_text()


def test_every_example_of_the_page_runs_as_printed():
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, PAGE.name, 0)
    assert len(test.examples) >= 8
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
