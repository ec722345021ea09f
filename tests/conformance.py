"""What every mechanism must do: one suite of checks, each over a ``Case``.

A check raises AssertionError when a mechanism breaks it, so that ``mutants`` can be fed to it too.
A new mechanism gets cases here (and a plain reference in ``reference``); nothing else is written
for it. Randomness in the checks is derived from the case's name: a verdict never changes by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import hashlib
import itertools
import json
import math
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tempriv import mechanisms, noise, spec
from tempriv.audit import exact
from tempriv.errors import KeyReuse, Refusal, StateRefusal
from tempriv.guarantees import Guarantee, NoGuarantee
from tempriv.mechanisms import Gaussian, Laplace, PlanarLaplace, RandomizedResponse
from tempriv.mechanisms.forms import Rows as MovedRows
from tempriv.mechanisms.forms_marked import Marked, told
from tempriv.mechanisms.protocol import KeyedDraw, limit_of, perturb_block, promise
from tempriv.mechanisms.stream import MAGIC, Seen, Stream, resume
from tempriv.noise_varying import Varying
from tempriv.order_laws import Lag, Place, Ties
from tempriv.randomness import EPOCH, Key, Run, Words
from tempriv.series import EMPTY, RELEASED, Block
from tempriv.units import Answers, Contribution, Event, Near, Unit, WholeSeries, Window
from tests.reference import value as reference
from tests.statistics import ALPHA, COMPILED, assert_cells, cells_detect, counted, joined

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Rows = Any  # an array of rows, masked where readings are missing

EXAMPLES = 20 if COMPILED else 10
DRAWS = 200_000 if COMPILED else 10_000
SIGMAS = 5

quick = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Small:
    """An instance to enumerate: readings as they come in, some of them out of bounds."""

    alphabet: tuple[Any, ...]
    length: int
    tail: float = 1e-6


@dataclass(frozen=True)
class Case:
    """A mechanism with example parameters, and what the definition says of it."""

    name: str
    mechanism: Any
    readings: Callable[[np.random.Generator, int], Floats]
    still: tuple[float, ...]  # a reading on the grid
    released: Callable[[Floats, list[Integers]], Floats]  # by definition, from readings and noise
    parameters: tuple[Fraction | float, ...]  # of the laws, by definition
    cost: Callable[[Integers, int], Floats]  # the error of an outcome in a column
    smalls: tuple[Small, ...] = ()
    tight: bool = True  # the exact loss is the promised one
    independent: bool = True  # every row has noise of its own and nothing else
    promises: bool = True  # something, that is
    sparse: int = 1  # rows for one draw of each law
    sampled: bool = True  # so many draws can be made; else another case has the same law
    key: Callable[[int], Key] = Key.from_seed

    @property
    def columns(self) -> int:
        return len(self.still)

    def rng(self, purpose: str) -> np.random.Generator:
        data = f"{self.name} {purpose}".encode()
        return np.random.default_rng(
            int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
        )

    def rows(self, count: int, purpose: str) -> Floats:
        """Valid readings, no more than the unit covers."""
        return self.readings(self.rng(purpose), min(count, limit_of(self.mechanism) or count))

    def gappy(self, count: int, purpose: str) -> Rows:
        rows = self.rows(count, purpose)
        gaps = self.rng("gaps " + purpose).random(rows.shape) < 0.3
        if self.marked:  # a reading has a mark, and may be a part of a row
            gaps[:, -1] &= gaps[:, :-1].all(axis=1)
        return np.ma.array(rows, mask=gaps)

    @property
    def unit(self) -> Unit:
        unit: Unit = self.mechanism.unit
        return unit

    @property
    def moves(self) -> bool:
        """Whether rows are moved whole, whatever is in them."""
        return isinstance(self.mechanism.form, MovedRows)

    @property
    def marked(self) -> bool:
        """Whether the last column says which rows are landmarks, and stays in."""
        return isinstance(self.mechanism.form, Marked)

    def told(self, rows: Rows) -> Rows:
        """The columns that come out."""
        return rows[:, : self.columns - self.marked]

    @property
    def latency(self) -> int:
        latency: int = self.mechanism.form.latency
        return latency

    @property
    def draws_curves(self) -> bool:
        """Whether the points of a window come out late, and none of the ends of a series."""
        return self.latency > 0 and not self.moves

    def fitting(self, values: Floats) -> Floats:
        """Counts must lie on their grid; other readings are taken as they come."""
        if not isinstance(self.unit, Contribution):
            return values
        grid = np.array(self.mechanism.grid)
        return np.where(np.abs(values) < 2.0**50, np.rint(values / grid) * grid, values)

    def push(self, stream: Stream, rows: Rows) -> Rows:
        """Categories go in and come out by name; here they are numbers all along."""
        categories = self.mechanism.form.categories
        return self._numbers(stream.push(rows if categories is None else named(rows, categories)))

    def _numbers(self, released: Rows) -> Rows:
        categories = told(self.mechanism.form).categories
        if categories is None or released.dtype != object:
            return self.told(released)
        codes = [{name: i for i, name in enumerate((*column, None))} for column in categories]
        numbers = [[codes[c][name] for c, name in enumerate(row)] for row in released]
        found = np.array(numbers, dtype=np.float64).reshape(len(released), len(categories))
        return np.ma.array(found, mask=found == [len(column) for column in categories])

    def finish(self, stream: Stream) -> Rows:
        """What is held back to the end; all of it, where a mechanism takes whole series."""
        rest = self._numbers(stream.finish())
        assert self.mechanism.takes_whole or self.latency or len(rest) == 0
        return rest

    def release(self, rows: Rows, key: Key, series: str = "a") -> Rows:
        stream = self.mechanism.start(key, series)
        return _together([self.push(stream, rows), self.finish(stream)])


def _together(parts: list[Rows]) -> Rows:
    """As one array; masked only if something is."""
    parts = [part for part in parts if len(part)] or parts[:1]
    return parts[0] if len(parts) == 1 else np.ma.concatenate(parts)


def named(rows: Rows, categories: Any) -> Any:
    """Category numbers as names, None where masked."""
    names = np.empty(rows.shape, dtype=object)
    for c, column in enumerate(categories):
        known = np.array([*column, "none of them"], dtype=object)
        values = np.ma.getdata(rows)[:, c]
        there = np.isin(values, np.arange(len(column)))
        names[:, c] = known[np.where(there, values, len(column)).astype(np.int64)]
    names[np.ma.getmaskarray(rows)] = None
    return names


def same(one: Rows, other: Rows) -> bool:
    """The same numbers to the last bit, missing in the same places."""
    a, b = np.ma.asarray(one), np.ma.asarray(other)
    gaps = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    return (
        a.shape == b.shape
        and bool(np.array_equal(*gaps))
        and np.where(gaps[0], 0.0, a.data).tobytes() == np.where(gaps[1], 0.0, b.data).tobytes()
    )


def near(one: Rows, other: Rows) -> bool:
    """Numbers within a billionth of the largest of them, missing in the same places."""
    a, b = np.ma.asarray(one), np.ma.asarray(other)
    gaps = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    if a.shape != b.shape or not np.array_equal(*gaps):
        return False
    sizes = np.ma.filled(np.abs(b).max(axis=0), 0.0) if len(b) else 0.0
    return bool((np.abs(np.ma.filled(a - b, 0.0)) <= 1e-9 * sizes).all())


# blocks and series


def same_bits_for_any_cutting(case: Case) -> None:
    rows = case.gappy(40, "cutting")
    whole = case.release(rows, case.key(1))
    assert np.ma.asarray(whole).shape == case.told(rows).shape

    @quick
    @given(st.lists(st.integers(0, len(rows)), max_size=6))
    def holds(cuts: list[int]) -> None:
        stream = case.mechanism.start(case.key(1), "a")
        edges = [0, *sorted(cuts), len(rows)]
        parts = [case.push(stream, rows[i:j]) for i, j in itertools.pairwise(edges)]
        parts.append(case.finish(stream))
        assert same(_together(parts), whole), "another cutting gives other bits"

    holds()
    stream = case.mechanism.start(case.key(1), "a")
    singles = [case.push(stream, rows[i : i + 1]) for i in range(len(rows))]
    singles.append(case.finish(stream))
    assert same(_together(singles), whole), "one reading at a time gives other bits"
    if case.mechanism.takes_whole:
        return
    if case.columns == 1 and case.mechanism.form.categories is None:
        stream = case.mechanism.start(case.key(1), "a")
        scalars = [stream.push(reading) for reading in rows[:, 0]]
        if case.moves:  # a missing value by itself is no number, and is moved as None
            scalars.append(stream.finish()[:, 0])
            found = [one for part in scalars for one in part.tolist()]
            assert found == whole[:, 0].tolist(), "bare numbers give other values"
            return
        scalars.append(stream.finish()[:, 0])
        assert same(np.ma.concatenate(scalars), whole[:, 0]), "bare numbers give other bits"
    elif case.columns == 1:
        names = named(rows, case.mechanism.form.categories)
        expected = case.mechanism.start(case.key(1), "a").push(names)[:, 0].tolist()
        stream = case.mechanism.start(case.key(1), "a")
        assert [stream.push(name).item() for name in names[:, 0]] == expected


def resume_from_any_state(case: Case) -> None:
    rows = case.gappy(12, "resume")
    whole = case.release(rows, case.key(2))
    for i in range(len(rows) + 1):
        stream = case.mechanism.start(case.key(2), "a")
        before = case.push(stream, rows[:i])
        state = stream.state()
        again = resume(case.mechanism, state, case.key(2))
        assert again.state() == state, "resuming alone changes the state"
        after = [case.push(again, rows[i:]), case.finish(again)]
        assert same(_together([before, *after]), whole), f"resumed at {i}: other bits"
        by_one = case.mechanism.start(case.key(2), "a")
        for j in range(i):
            case.push(by_one, rows[j : j + 1])
        assert by_one.state() == state, "the state depends on the cutting"


def resume_across_an_epoch(case: Case) -> None:
    """Keys change every EPOCH steps, and the bits stay the same for any cutting there."""
    if limit_of(case.mechanism) is not None or case.mechanism.takes_whole:
        return
    rows = case.gappy(10, "epoch")
    if case.moves or case.latency:  # what they remember is not empty there
        early = case.mechanism.start(case.key(3), "a")
        case.push(early, case.rows(EPOCH - 5, "before the epoch"))
        state = early.state()

    def near_the_end() -> Stream:
        if case.moves or case.latency:
            return resume(case.mechanism, state, case.key(3))
        chain = case.key(3).again(spec.digest(case.mechanism), "a")
        return Stream(case.mechanism, chain, "a", Seen.by(chain), EPOCH - 5)

    whole = case.push(near_the_end(), rows)
    for i in (0, 4, 5, 6, 10):
        stream = near_the_end()
        before = case.push(stream, rows[:i])
        after = case.push(resume(case.mechanism, stream.state(), case.key(3)), rows[i:])
        assert same(np.ma.concatenate([before, after]), whole), f"at {i}"


def many_series_in_any_order(case: Case) -> None:
    lengths = [3, 1, 0, 7, 2]
    names = [f"series {i}" for i in range(len(lengths))]
    inputs = {n: case.gappy(k, n) for n, k in zip(names, lengths, strict=True)}
    alone = {n: case.release(rows, case.key(4), n) for n, rows in inputs.items()}

    @quick
    @given(st.permutations(names))
    def holds(order: list[str]) -> None:
        key = case.key(4)
        counts = [len(inputs[n]) for n in order]
        together = np.ma.concatenate([inputs[n] for n in order])
        block = Block(
            values=np.ma.getdata(together),
            missing=np.ma.getmaskarray(together),
            ids=tuple(order),
            counts=np.array(counts),
            starts=np.zeros(len(order), dtype=np.int64),
        )
        digest = spec.digest(case.mechanism)
        runs = [Run(key.series(digest, n), 0, k) for n, k in zip(order, counts, strict=True)]
        out = perturb_block(case.mechanism, block, runs, ending=True)
        assert (out.status is not None) == case.mechanism.has_status
        assert (out.ids, out.counts.tolist()) == (tuple(order), counts)
        rows = np.ma.array(out.values, mask=out.missing)
        for n, part in zip(order, np.split(np.arange(len(rows)), np.cumsum(counts)), strict=False):
            assert same(rows[part], alone[n]), f"{n} differs when released together with others"

    holds()


# definition


@dataclass(frozen=True)
class Drawn:
    """What a law gave; or, without a law, words whose scale a kernel finds as it goes."""

    law: Any
    purpose: str
    values: Any
    rows: Any = None  # all of them, unless it was drawn for some: then their steps
    start: int = 0  # the step of the first of all
    parameters: Any = None  # of the law of each row, where laws vary from row to row

    @property
    def steps(self) -> list[int]:
        if self.rows is None:
            return list(range(self.start, self.start + len(self.values)))
        return [int(row) for row in self.rows]


def _for_all_rows(drawn: list[Drawn]) -> list[Any]:
    """What was drawn for each purpose; 0 for rows that nothing was drawn for."""
    found: dict[str, Any] = {}
    for one in drawn:
        if one.parameters is not None:
            both = zip(one.values, one.parameters, strict=True)
            found.setdefault(one.purpose, {}).update(zip(one.steps, both, strict=True))
            continue
        if np.ndim(one.values) != 1 or (one.rows is None and one.start == 0):
            found[one.purpose] = one.values
            continue
        whole = found.get(one.purpose, np.zeros(0, dtype=np.int64))
        longer = np.zeros(max(len(whole), max(one.steps, default=-1) + 1), dtype=np.int64)
        longer[: len(whole)] = whole
        longer[one.steps] = one.values
        found[one.purpose] = longer
    return list(found.values())


def _no_words_twice(drawn: list[Drawn]) -> bool:
    words: set[tuple[str, int]] = set()
    for one in drawn:
        new = {(one.purpose, step) for step in one.steps}
        if not words.isdisjoint(new):
            return False
        words |= new
    return True


@contextlib.contextmanager
def recorded() -> Iterator[list[Drawn]]:
    """What the mechanism draws from the keyed source."""
    drawn: list[Drawn] = []
    real = noise.draw

    def draw(law: Any, runs: Any, purpose: str) -> Integers:
        values = real(law, runs, purpose)
        drawn.append(Drawn(law, purpose, values, start=runs[0].start))
        return values

    class Scalable(noise.ScalableLaplace):
        def __init__(self, runs: Any, purpose: str):
            super().__init__(runs, purpose)
            drawn.append(Drawn(None, purpose, self.words))

    call, each = KeyedDraw.__call__, KeyedDraw.each

    def for_some(self: Any, law: Any, purpose: str, rows: Any = None) -> Integers:
        values = call(self, law, purpose, rows)
        if rows is not None and len(rows):
            steps, parameters = rows + self.runs[0].start, None
            if isinstance(law, Varying):
                parameters = [parameter(law.laws[number]) for number in law.which]
                law = None
            drawn.append(Drawn(law, purpose, values, steps, parameters=parameters))
        return values

    def by_halves(self: Any, law: Any, purpose: str) -> Any:
        if isinstance(law, (Lag, Place)):
            # every digit of every row: the kernel looks at no more than it needs
            drawn.append(Drawn(law, purpose, law.sample(Words(self.runs, purpose))))
        return each(self, law, purpose)

    with (
        # rows that are drawn ahead may be drawn again; what comes out is the same
        mock.patch.object(KeyedDraw, "ahead", False),
        mock.patch.object(KeyedDraw, "__call__", for_some),
        mock.patch.object(KeyedDraw, "each", by_halves),
        mock.patch.object(noise, "draw", draw),
        mock.patch.object(noise, "ScalableLaplace", Scalable),
    ):
        yield drawn


@contextlib.contextmanager
def plain_kernels() -> Iterator[None]:
    """Every compiled function of the package runs as the Python it was written in."""
    with contextlib.ExitStack() as stack:
        for module in [m for n, m in sys.modules.items() if n.partition(".")[0] == "tempriv"]:
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    stack.enter_context(mock.patch.object(module, name, value.py_func))
        yield


def parameter(law: Any) -> Any:
    return getattr(law, dataclasses.fields(law)[0].name)


def with_status(case: Case, rows: Rows, key: Key) -> tuple[Rows, list[int]]:
    """Released rows, and which of them are released, repeated or empty."""
    stream = case.mechanism.start(key, "a")
    parts = [stream.push_block(Block.of(rows, "a", 0)), stream.finish_block()]
    parts = [part for part in parts if len(part)]
    made = np.ma.array(
        np.concatenate([part.values for part in parts]),
        mask=np.concatenate([part.missing for part in parts]),
    )
    return made, np.concatenate([part.status for part in parts]).tolist()


def compiled_and_plain_and_reference_agree(case: Case) -> None:
    rows = case.rows(300 if COMPILED else 100, "reference")
    with recorded() as drawn:
        compiled = np.asarray(case.release(rows, case.key(5)))
    with plain_kernels():
        plain = np.asarray(case.release(rows, case.key(5)))
    assert compiled.tobytes() == plain.tobytes(), "compiled and plain kernels differ"
    assert _no_words_twice(drawn), "two draws from the same words"
    known = {(one.purpose, one.law): one for one in drawn if one.law is not None}
    laws = list(known.values())
    assert len(laws) == len(case.parameters), f"{len(laws)} draws"
    for one, expected in zip(laws, case.parameters, strict=True):
        whole = dataclasses.is_dataclass(expected)
        found = one.law if whole else parameter(one.law)
        exactly = case.tight or whole
        right = found == expected if exactly else 0.999 * expected <= found <= expected
        assert right, f"{one.law}: the definition says {expected}"
    expected = case.released(rows, _for_all_rows(drawn))
    if case.moves or case.draws_curves:
        made, status = with_status(case, rows, case.key(5))
        right = (near if case.draws_curves else same)(made, expected.rows)
        assert right, "not what the definition says"
        assert status == expected.status, "other statuses than the definition says"
        return
    # places are given in degrees of 7 digits, where the last one may be rounded either way
    close = np.abs(compiled - expected) <= (0 if case.tight else 1.01e-7)
    assert close.all(), "not what the definition says"


def the_past_does_not_move(case: Case) -> None:
    rows = case.rows(12, "past")
    whole = np.asarray(case.release(rows, case.key(6)))
    moved = False
    for i in range(1, len(rows)):
        for other in (case.rows(12, f"future {i}"), np.zeros_like(rows), rows + 1.0):
            changed = np.concatenate([rows[:i], other[i:]])
            past = np.asarray(case.release(changed, case.key(6)))[:i]
            moved |= not same(past, whole[:i])
    assert moved != case.mechanism.causal, "the declared trait `causal` does not hold"


def shape_is_free_of_values(case: Case) -> None:
    """Length and missing pattern say nothing about values."""
    rows = case.gappy(25, "shape")
    gaps = np.ma.getmaskarray(rows)
    whole = np.ma.asarray(case.release(rows.data, case.key(7)))
    assert len(whole) == len(rows), "the length changes"
    # where the mechanism leaves rows empty, that is part of what it promises about
    free = not case.mechanism.has_status
    assert not (free and np.ma.getmaskarray(whole).any()), "a reading goes missing"
    first = np.ma.asarray(case.release(rows, case.key(7)))
    assert len(first) == len(rows), "the length changes"
    if case.moves:
        _gaps_move_with_their_rows(case, rows)
        return
    if case.draws_curves:
        _the_ends_are_empty_and_gaps_stay(case, rows)
        return
    assert not (case.told(gaps) & ~np.ma.getmaskarray(first)).any(), "a missing reading is released"
    fills = (0.0, -0.0, 1.0, -1e308, 1e308, 5e-324, *case.still)
    inputs = [np.full(rows.shape, fill) for fill in fills]
    inputs += [case.rows(25, f"shape {i}") for i in range(5)]
    inputs += [np.tile(case.still, (len(rows), 1)) + shift for shift in (-1.0, 0.0, 0.5)]
    for i, values in enumerate(inputs):
        readings = np.ma.array(case.fitting(values), mask=gaps)
        out = np.ma.asarray(case.release(readings, case.key(i)))
        assert out.shape == first.shape, "the length depends on values"
        pattern = np.ma.getmaskarray(out), np.ma.getmaskarray(first)
        assert not free or np.array_equal(*pattern), "the missing pattern depends on values"
        assert not (case.told(gaps) & ~pattern[0]).any(), "a missing reading is released"
        assert np.isfinite(out.compressed()).all()


def _gaps_move_with_their_rows(case: Case, rows: Rows) -> None:
    """Whatever is in the rows, by the same key they go the same way, gaps and statuses too."""
    numbers = np.arange(rows.size, dtype=np.float64).reshape(rows.shape)
    moved, status = with_status(case, numbers, case.key(7))
    there = ~np.ma.getmaskarray(moved)
    assert np.array_equal(there.any(axis=1), there.all(axis=1)), "a row is torn"
    assert np.array_equal(~there.all(axis=1), np.array(status) == EMPTY), "empty without saying so"
    fills = (0.0, -0.0, 1.0, -1e308, 1e308, 5e-324)
    for values in (rows.data, *(np.full(rows.shape, fill) for fill in fills)):
        for gaps in (np.ma.getmaskarray(rows), np.zeros(rows.shape, dtype=bool)):
            out, found = with_status(case, np.ma.array(values, mask=gaps), case.key(7))
            assert found == status, "the statuses depend on values"
            places = moved.data.astype(np.int64)[there]
            expected = np.ma.masked_all(rows.shape)
            expected[there] = np.ma.array(values.ravel()[places], mask=gaps.ravel()[places])
            assert same(out, expected), "rows are changed, or go another way for other values"


def _the_ends_are_empty_and_gaps_stay(case: Case, rows: Rows) -> None:
    """The first row and the last have no point; a missing value stays so; times are all told."""
    values = case.columns - getattr(case.mechanism, "times", 0)
    fills = (0.0, -0.0, 1.0, -1e308, 1e308, 5e-324, -7.5)
    for count in (0, 1, 2, 3, 4, len(rows)):
        gaps = np.ma.getmaskarray(rows)[:count]
        expected = gaps.copy()
        expected[:, values:] = False
        expected[[0, -1] if count else []] = True
        status = [EMPTY, *[RELEASED] * (count - 2), EMPTY] if count > 2 else [EMPTY] * count
        inputs = [np.full(gaps.shape, fill) for fill in fills] + [rows.data[:count]]
        for i, one in enumerate(inputs if count else []):
            out, found = with_status(case, np.ma.array(one, mask=gaps), case.key(i))
            assert out.shape == gaps.shape, "the length changes"
            assert np.array_equal(np.ma.getmaskarray(out), expected), "other gaps than came in"
            assert found == status, "other rows are empty than the first and the last"
            assert np.isfinite(out.compressed()).all()
            assert not out.data[expected].any(), "something is left under the mask"


def masked_readings_are_not_looked_at(case: Case) -> None:
    rows = case.gappy(25, "masked")
    gaps = np.ma.getmaskarray(rows)
    first = case.mechanism.start(case.key(8), "a")
    whole = case.push(first, rows)
    again = case.mechanism.start(case.key(8), "a")
    case.push(again, rows)
    rest = case.finish(again)
    if case.mechanism.form.categories is not None:
        hidden = named(rows.data, case.mechanism.form.categories)
        stream = case.mechanism.start(case.key(8), "a")
        names = [stream.push(np.ma.array(hidden, mask=gaps))]
        assert stream.state() == first.state(), "masked names are in the state"
        names.append(stream.finish())
        absent = np.equal(_together(names), None)
        assert np.array_equal(absent, case.told(gaps)), "masked names are used"
    for junk in (np.nan, np.inf, -np.inf, 1e308, -7.0):
        values = np.where(gaps, junk, rows.data)
        stream = case.mechanism.start(case.key(8), "a")
        out = case.push(stream, np.ma.array(values, mask=gaps))
        assert same(out, whole), f"{junk} under the mask"
        assert stream.state() == first.state(), f"{junk} under the mask is in the state"
        assert same(case.finish(stream), rest), f"{junk} under the mask comes out at the end"
        block = Block.of(rows, "a", 0)
        block.values[gaps] = junk
        made = case.mechanism.start(case.key(8), "a").push_block(block)
        assert np.isfinite(made.values).all(), f"{junk} under the mask of a block comes out"
        plain = case.mechanism.start(case.key(8), "a").push_block(Block.of(rows, "a", 0))
        assert made.values.tobytes() == plain.values.tobytes(), f"{junk} under the mask of a block"


# keys


def _signatures(case: Case, keys: list[Key], rows: Floats) -> Floats:
    """The released numbers of three series, a row for each number and a column for each key."""
    # of curves the first row and the last are always empty
    some = slice(1, -1) if case.draws_curves else slice(None)
    found = [
        np.concatenate(
            [np.ma.filled(case.release(rows, key, name), -1.0)[some].ravel() for name in "abc"]
        )
        for key in keys
    ]
    return np.array(found).T


def _all_vary(case: Case, keys: list[Key], rows: Floats) -> bool:
    """Whether each released number is another under another key; as many as it takes to see."""
    first = _signatures(case, keys[:1], rows)
    alike = np.ones(first.shape, dtype=bool)
    for key in keys[1:]:
        alike &= _signatures(case, [key], rows) == first
        if not alike.any():
            return True
    return False


def _assert_independent(numbers: Floats) -> None:
    """No two numbers are the same noise, whatever their scale."""
    low, high = numbers.min(axis=1), numbers.max(axis=1)
    assert (low < high).all(), "a released number does not vary"
    shape = np.round((numbers - low[:, None]) / (high - low)[:, None], 5)
    assert len(np.unique(shape, axis=0)) == len(shape), "two released numbers share their noise"
    if min(len(np.unique(number)) for number in numbers) > numbers.shape[1] / 2:
        # on a fine grid: noise of unlike scale from the same words still agrees in sign
        above = np.where(numbers > np.median(numbers, axis=1)[:, None], 1, -1)
        agreement = above @ above.T - numbers.shape[1] * np.eye(len(above))
        assert agreement.max() < 0.85 * numbers.shape[1], "two released numbers share their signs"


def every_number_varies_with_key_and_place(case: Case) -> None:
    """With key, series id, step and column; and all of them with the release id and the spec."""
    # coarse noise is often zero, so it takes more keys to tell numbers apart, and more yet if
    # what was off is released again
    coarse = bool(case.smalls) or case.moves or case.draws_curves
    keys = [case.key(i) for i in range(32 if not coarse else 80 if case.independent else 400)]
    few, many = (
        np.tile(case.still, (min(count, limit_of(case.mechanism) or count), 1)) for count in (4, 30)
    )
    if not case.independent:
        many = case.rows(30, "signatures")  # what stands still may be released but once
    if case.moves or case.draws_curves:
        few = case.rows(4, "signatures")  # rows that are alike say nothing of their places
    if case.independent:
        _assert_independent(_signatures(case, keys, few))
    else:
        assert _all_vary(case, keys, few), "a released number does not vary"
    kind = type(case.key(0))
    releases = [kind(bytes(32), f"release {i}") for i in range(3)]
    assert len({_signatures(case, [key], many).tobytes() for key in releases}) == 3, (
        "another release has the same noise"
    )
    hardly = getattr(case.mechanism, budget_of(case.mechanism))
    outputs = set()
    for _ in range(3):
        variant = replace(case, mechanism=with_budget(case.mechanism, hardly))
        outputs.add(_signatures(variant, [case.key(9)], many).tobytes())
        hardly = math.nextafter(hardly, math.inf)
    assert len(outputs) == 3, "another spec has the same noise"


def a_key_opens_each_series_once(case: Case) -> None:
    """The same noise on different data would publish their difference."""
    key = case.key(10)
    first, second = case.rows(3, "first"), case.rows(3, "second")
    released = np.asarray(case.release(first, key))
    try:
        again = np.asarray(case.release(second, key))
    except KeyReuse as refusal:
        assert "'a'" in str(refusal) and "Key.generate()" in str(refusal)
    else:
        raise AssertionError(f"two inputs under one key: {released - again} is their difference")
    case.release(second, key, "another series")


def a_step_is_released_once(case: Case) -> None:
    """A key knows how far a stream has come: nothing goes on from a place that was left behind."""
    key, rows = case.key(21), case.rows(3, "once")
    stream = case.mechanism.start(key, "a")
    states = [stream.state()]
    for i in range(2):
        case.push(stream, rows[i : i + 1])
        states.append(stream.state())
    for state in states[:2]:
        try:
            resume(case.mechanism, state, key)
        except KeyReuse as refusal:
            assert "'a'" in str(refusal) and "latest state" in str(refusal)
        else:
            raise AssertionError("a stream goes on from a state that it has left behind")
    twin, other = (resume(case.mechanism, states[2], key) for _ in range(2))
    case.push(twin, rows[2:])
    for late in (stream, other):
        before = late.state()
        try:
            case.push(late, rows[2:])
        except KeyReuse:
            assert late.state() == before
        else:
            raise AssertionError("two streams get the same noise")


def what_is_finished_stays_so(case: Case) -> None:
    """Where rows come out at the end, no state leads to a second end with the same noise."""
    if not case.mechanism.takes_whole and not case.latency:
        return
    key, rows = case.key(23), case.rows(4, "finish")
    stream = case.mechanism.start(key, "a")
    out = len(case.push(stream, rows[:2]))
    state = stream.state()
    assert len(stream.finish()) == 2 - out and len(stream.finish()) == 0
    for go_on in (
        lambda: case.push(stream, rows[2:]),
        lambda: stream.state(),
        lambda: resume(case.mechanism, state, key),
    ):
        try:
            go_on()
        except Refusal:
            continue
        raise AssertionError("a stream goes on after its end")


def a_kept_key_only_goes_on(case: Case) -> None:
    """A key read back from its file resumes a stream with the same bits, and starts none."""
    rows = case.gappy(8, "kept")
    whole = case.mechanism.start(case.key(22), "a")
    case.push(whole, rows[:3])
    expected = case.push(whole, rows[3:])
    key = case.key(22)
    stream = case.mechanism.start(key, "a")
    case.push(stream, rows[:3])
    state, promised = stream.state(), promise(case.mechanism, key)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        key.save(path)
        key.close()
        kept = type(key).load(path)
        _goes_on_only(case, kept, state, rows, expected)
        assert promise(case.mechanism, kept) == promised
        kept.close()


def _goes_on_only(case: Case, kept: Key, state: bytes, rows: Any, expected: Any) -> None:
    for series in ("a", "never begun"):
        try:
            case.mechanism.start(kept, series)
        except KeyReuse as refusal:
            assert "Key.generate()" in str(refusal)
        else:
            raise AssertionError("a key that cannot know what it has begun starts a stream")
    try:
        again = resume(case.mechanism, state, kept)
    except StateRefusal as refusal:
        raise AssertionError(f"it is not the key that was kept: {refusal}") from None
    assert same(case.push(again, rows[3:]), expected), "other bits with a key from a file"


def seeded_keys_promise_nothing(case: Case) -> None:
    seeded = promise(case.mechanism, case.key(11))
    assert isinstance(seeded, NoGuarantee) and "11" in seeded.sentence, "a seed is no secret"
    assert promise(case.mechanism, Key.generate()) == case.mechanism.guarantee
    assert isinstance(case.mechanism.guarantee, Guarantee) == case.promises
    assert case.mechanism.published.sentence and case.mechanism.guarantee.sentence


# specs and states


def budget_of(mechanism: Any) -> str:
    """The name of the field that says how much is given away."""
    names = ("epsilon", "rho", "epsilon_forever")
    return next(name for name in names if getattr(mechanism, name, None) is not None)


def with_budget(mechanism: Any, budget: float) -> Any:
    """The mechanism, or the one for values that it is made over, with another budget."""
    if isinstance(mechanism.form, Marked):
        return replace(mechanism, over=with_budget(mechanism.over, budget))
    return replace(mechanism, **{budget_of(mechanism): budget})


def _another_unit(unit: Any) -> Any:
    if isinstance(unit, Contribution):
        kind = WholeSeries if isinstance(unit.each, WholeSeries) else Window
        return replace(unit, each=kind(unit.readings + 1))
    if isinstance(unit, Near):
        return Near(2 * unit.metres)
    if isinstance(unit, Answers):
        return Answers(unit.distinct + 1)
    return (
        type(unit)(unit.readings + 1)
        if isinstance(unit, WholeSeries)
        else Window(unit.readings + 1)
    )


ONE_OR_ANOTHER = ("epsilon", "rho", "branching", "bits")
"""Left out where another is given, or where they mean nothing."""


def _other_orders(mechanism: Any) -> dict[str, dict[str, Any]]:
    """What to change with a field of a mechanism that moves rows."""
    window = getattr(mechanism, "window", 0)
    found: dict[str, dict[str, Any]] = {
        "epsilon": {"epsilon": 2 * mechanism.epsilon},
        "window": {"window": window + 1},
        "block": {"block": getattr(mechanism, "block", 0) + 1},
        "offset": {"offset": 1 - min(getattr(mechanism, "offset", 0), 1)},
        "latency": {"latency": (getattr(mechanism, "latency", None) or 400) + 2},
        "noise": {"noise": "laplace"},
    }
    if hasattr(mechanism, "threshold"):
        # the window's own choice, and one more than that
        found["window"]["threshold"] = None
        more = mechanism.threshold + 1
        found["threshold"] = {"threshold": 2 if more == window else more, "epsilon": 20.0}
    if getattr(mechanism, "noise", "") == "laplace":
        found["noise"] = {"noise": "staircase"}
    if getattr(mechanism, "delta", None) is not None:
        found["delta"] = {"delta": (1 + mechanism.delta) / 2}
        found["window"]["latency"] = 40 + 4 * mechanism.latency
    return found


def _other_landmarks(scheme: Any) -> Iterator[tuple[str, Any]]:
    """The same for a scheme over a mechanism for values, with each field of that one too."""
    for name, over in changed_specs(scheme.over):
        if isinstance(over.unit, (Event, Near)):
            yield f"over, {name}", replace(scheme, over=over)
    known = {field.name for field in dataclasses.fields(scheme)}
    for name in sorted(known - {"over", "count", "length", "count_epsilon"}):
        value = getattr(scheme, name)
        if name == "miss" and scheme.count_epsilon is None:
            continue  # refused: a public bound misses nothing
        yield name, replace(scheme, **{name: not value if isinstance(value, bool) else value / 2})
    if "count" in known:
        count: dict[str, Any] = {"count": 3 if scheme.count is None else scheme.count + 1}
        if "length" in known:
            count["length"] = scheme.length or 9
        if "count_epsilon" in known:
            count |= {"count_epsilon": None, "miss": 1e-6}
        yield "count", replace(scheme, **count)
    if getattr(scheme, "length", None) is not None:
        yield "length", replace(scheme, length=scheme.length + 1)
    if "count_epsilon" in known:
        other = 1.0 if scheme.count_epsilon is None else scheme.count_epsilon / 2
        yield "count_epsilon", replace(scheme, count=None, count_epsilon=other)


def changed_specs(mechanism: Any) -> Iterator[tuple[str, Any]]:
    """The mechanism with each of its fields changed in turn."""
    if isinstance(mechanism.form, Marked):
        yield from _other_landmarks(mechanism)
        return
    if isinstance(mechanism.form, MovedRows):
        orders = _other_orders(mechanism)
        for field in dataclasses.fields(mechanism):
            if field.name != "delta" or mechanism.delta is not None:
                yield field.name, replace(mechanism, **orders[field.name])
        return
    others: dict[str, Callable[[Any], Any]] = {
        "epsilon": lambda v: 2 * v,
        "rho": lambda v: 2 * v,
        "epsilon_forever": lambda v: 2 * v,
        "epsilon_instant": lambda v: 1.0 if v is None else 2 * v,
        "bounds": lambda v: tuple((low, 2 * high + 1) for low, high in v),
        "categories": lambda v: tuple((*names, "another") for names in v),
        "unit": _another_unit,
        "threshold": lambda v: v - 1 if v else 1,
        "most": lambda v: v + 1,
        "threshold_share": lambda v: 0.9 if v is None else v / 2,
        "samples": lambda v: v + 1,
        "window": lambda v: v + 1,
        "tolerance": lambda v: 2 * v,
        "reach": lambda v: (2 * v[0], v[1]),
        "spread": lambda v: 2 * v,
        "wander": lambda v: 2 * v,
        "smoothing": lambda v: "median" if v == "mean" else "mean",
        "share": lambda v: v / 2,
        "theta": lambda v: 7.0 if v is None else 2 * v,
        "longest": lambda v: v + 1,
        "gains": lambda v: (v[0] / 2, v[1], v[2]),
        "set_point": lambda v: v / 2,
        "stretch": lambda v: 2 * v,
        "horizon": lambda v: 1000 if v is None else v + 1,
        "branching": lambda v: v + 1,
        "bits": lambda v: v + 1,
        "coefficients": lambda v: v - 1 if v > 1 else 2,
        "per_column": lambda v: not v,
        "grid": lambda v: tuple(g / 2 for g in v) if isinstance(v, tuple) else v / 2,
        "origin": lambda v: (v[0] + 1, v[1]),
        "tau": lambda v: 2 * v,
        "period": lambda v: 2 * v,
        "interpolation": lambda v: "printed" if v == "cosine" else "cosine",
        "clamp": lambda v: (0.5, 1.0) if v is None else None,
        "columns": lambda v: v + 1,
        "shift": lambda v: 1.0 if v is None else None,
        "pace": lambda v: "public" if v == "column" else "column",
        "waves": lambda v: v - 1,
    }
    for field in dataclasses.fields(mechanism):
        if field.name == "per_column" and isinstance(mechanism.unit, Contribution):
            continue  # refused
        if getattr(mechanism, field.name) is None and field.name in ONE_OR_ANOTHER:
            continue
        if (field.name, getattr(mechanism, "pace", None)) == ("shift", "public") or (
            field.name == "pace" and mechanism.shift is not None
        ):
            continue  # a shift is part of a secret pace
        if field.name == "method":
            other = "increments" if mechanism.method == "tree" else "tree"
            yield "method", replace(mechanism, method=other, branching=None, bits=None)
            continue
        change = others[field.name](getattr(mechanism, field.name))
        yield field.name, replace(mechanism, **{field.name: change})


def spec_survives_json(case: Case) -> None:
    mechanism = case.mechanism
    again = mechanisms.decode(json.loads(json.dumps(spec.encode(mechanism))))
    assert again == mechanism and type(again) is type(mechanism)
    assert spec.digest(again) == spec.digest(mechanism)
    for field, other in changed_specs(mechanism):
        assert other != mechanism
        assert spec.digest(other) != spec.digest(mechanism), f"{field} is not in the digest"
    value = max(2, math.ceil(getattr(mechanism, budget_of(mechanism)))) if case.moves else 2
    whole, real = (with_budget(mechanism, kind(value)) for kind in (int, float))
    assert whole == real and spec.digest(whole) == spec.digest(real)


def _secrets(case: Case, purposes: set[str]) -> list[bytes]:
    key = case.key(12)
    chain = key.again(spec.digest(case.mechanism), "a")
    secrets = [key._secret, chain.secret, chain.at_epoch(1).secret]
    return secrets + [chain.cipher_key(purpose) for purpose in purposes]


def state_holds_no_secret(case: Case) -> None:
    key = case.key(12)
    with recorded() as drawn:
        stream = case.mechanism.start(key, "a")
        case.push(stream, case.rows(5, "secret"))
    state = stream.state()
    for secret in _secrets(case, {"fingerprint", *(one.purpose for one in drawn)}):
        number = int.from_bytes(secret, "big")
        for form in (secret, secret.hex().encode(), str(number).encode()):
            assert form not in state and form[:16] not in state, "a secret is in the state"
            assert form not in repr(stream).encode() and form not in repr(key).encode()


def _refused_state(case: Case, state: Any, key: Any) -> None:
    try:
        resume(case.mechanism, state, key)
    except StateRefusal:
        return
    raise AssertionError("a wrong state is accepted")


def wrong_states_are_refused(case: Case) -> None:
    stream = case.mechanism.start(case.key(13), "a")
    case.push(stream, case.rows(5, "state"))
    state = stream.state()
    _refused_state(case, state, case.key(14))
    _refused_state(case, state, Key(case.key(13)._secret, "another release"))
    for _, other in changed_specs(case.mechanism):
        _refused_state(replace(case, mechanism=other), state, case.key(13))
    for nothing in (None, "", state.decode("latin-1"), b"", MAGIC, state + b" "):
        _refused_state(case, nothing, case.key(13))

    @quick
    @given(st.integers(0, len(state) - 1), st.integers(0, 7))
    def damaged(place: int, bit: int) -> None:
        _refused_state(case, state[:place], case.key(13))
        flipped = bytearray(state)
        flipped[place] ^= 1 << bit
        _refused_state(case, bytes(flipped), case.key(13))

    @quick
    @given(st.binary(max_size=200))
    def arbitrary(data: bytes) -> None:
        _refused_state(case, data, case.key(13))
        _refused_state(case, MAGIC + data, case.key(13))
        _refused_state(case, checked(data), case.key(13))

    simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    anything = st.recursive(simple, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
    body = json.loads(state[len(MAGIC) + 16 :])

    @quick
    @given(st.sampled_from(sorted(body)), anything)
    def rewritten(field: str, other: Any) -> None:
        # another step within the epoch, or another sum of what was seen, cannot be told
        with contextlib.suppress(StateRefusal):
            resume(
                case.mechanism, checked(json.dumps({**body, field: other}).encode()), case.key(13)
            )

    damaged()
    arbitrary()
    rewritten()


def checked(data: bytes) -> bytes:
    """A state whose checksum is right, whatever it says."""
    return MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data


def memory_stays_flat(case: Case) -> None:
    """A stream ten times as long takes no more memory at its peak, but for some chance."""
    if not case.mechanism.bounded_memory or limit_of(case.mechanism) is not None:
        return
    rows = case.rows(1000, "memory")
    slack = 4 * rows.nbytes  # half of what nine more blocks take

    def peak(blocks: int) -> int:
        stream = case.mechanism.start(case.key(blocks), "a")
        case.push(stream, rows)
        tracemalloc.start()
        try:
            for _ in range(blocks):
                case.push(stream, rows)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # tables are built once
    short, long = peak(1), peak(10)
    for _ in range(3):
        if long > short + slack:  # something else may have been at work
            gc.collect()
            short, long = peak(1), peak(10)
    assert long <= short + slack, f"{short} bytes for one block, {long} for ten"


# refusals


def bad_readings_are_refused(case: Case) -> None:
    """One sentence that shows no reading, and nothing is consumed."""
    rows = case.rows(6, "refused")
    expected = case.release(rows, case.key(15))
    stream = case.mechanism.start(case.key(15), "a")
    case.push(stream, rows[:2])
    state = stream.state()
    wrong: list[tuple[Any, str]] = []
    for junk in (math.nan, math.inf, -math.inf):
        spoilt = rows[2:3].copy()
        spoilt[0, -1] = junk
        wrong.append((Block.of(spoilt, "a", 2), "mask missing readings"))
        if case.mechanism.form.categories is None:
            wrong.append((spoilt, "mask missing readings"))
    wide = np.zeros((2, case.columns + 1))
    wrong.append((wide, f"{case.columns + 1} value columns"))
    if case.moves:
        wrong.append((Block(wide, wide > 0, ("a",), np.array([2]), np.array([2])), "value columns"))
    wrong.append((np.zeros((1, 1, case.columns)), "one row of values"))
    most = limit_of(case.mechanism)
    if most is not None:
        wrong.append((np.zeros((most - 1, case.columns)), f"more than {most} readings"))
    wrong.append((Block.of(rows[:1], "a", 0), "not start at step 2"))
    for values, sentence in wrong:
        try:
            (stream.push_block if isinstance(values, Block) else stream.push)(values)
        except Refusal as refusal:
            assert sentence in str(refusal) and "\n" not in str(refusal), str(refusal)
        else:
            raise AssertionError(f"accepted: {sentence}")
        assert stream.state() == state, "a refused reading changes the state"
    rest = _together([case.push(stream, rows[2:]), case.finish(stream)])
    before = 0 if case.mechanism.takes_whole else max(0, 2 - case.latency)
    assert same(rest, expected[before:])


BUDGETS = (0, -1, -0.5, math.nan, math.inf, -math.inf, True, "1", None, (1,))
BAD_PARAMETERS: dict[str, list[tuple[Any, str]]] = {
    "epsilon": [(bad, f"epsilon={bad}: ") for bad in BUDGETS] + [(10**400, "epsilon=1000")],
    "rho": [(bad, f"rho={bad}: ") for bad in BUDGETS] + [(10**400, "rho=1000")],
    "epsilon_forever": [(bad, f"epsilon_forever={bad}: ") for bad in BUDGETS],
    # None leaves the second response out
    "epsilon_instant": [(bad, f"epsilon_instant={bad}: ") for bad in BUDGETS if bad is not None],
    "bounds": [
        ((5, 0), "bounds=5 0: "),
        ((1, 1), "bounds=1 1: "),
        ((math.nan, 1), "bounds=nan 1: "),
        ((0, math.inf), "bounds=0 inf: "),
        (((0, 1), (2, 2)), "bounds=2 2: "),
        ((), "bounds=()"),
        (5, "bounds=5: "),
        (None, "bounds=None: "),
        ("ab", "'ab'"),
        ((0, 1, 2), "(0, 1, 2)"),
        (((0, 1), 5), "((0, 1), 5)"),
        ((0, 10**400), "1000"),
    ],
    "unit": [("day", "unit='day': "), (None, "unit=None: "), (24, "unit=24: ")],
    "grid": [
        (0, "grid=0: "),
        (-1.0, "grid=-1"),
        (0.3, "grid=0.3: "),
        (math.nan, "grid=nan: "),
        (math.inf, "grid=inf: "),
        (True, "grid=True: "),
        ("1", "grid=1: "),
        (2.0**30, "grid=1.07374e+09: "),
        (10**400, "grid=1000"),
    ],
    "categories": [
        ((), "categories=()"),
        (("a",), "categories=['a']"),
        (("a", "a"), "categories=['a', 'a']"),
        ((("a", "b"), ()), "categories=[]"),
        ("ab", "categories='ab'"),
        (3, "categories=3: "),
    ],
    "threshold": [(bad, f"threshold={bad}: ") for bad in (math.nan, math.inf, -1e9, "1", None)],
    "most": [(bad, f"most={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "1", None)],
    "threshold_share": [(bad, f"threshold_share={bad}: ") for bad in (0, 1, -1, math.nan, "1")],
    "samples": [(bad, f"samples={bad}: ") for bad in (0, -1, 1.5, True, "1", None, 10**6)],
    "wander": [(bad, f"wander={bad}: ") for bad in BUDGETS],
    "set_point": [(bad, f"set_point={bad}: ") for bad in BUDGETS],
    "window": [(bad, f"window={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "3", None)],
    "tolerance": [(bad, f"tolerance={bad}: ") for bad in BUDGETS],
    # None takes a part of the range
    "spread": [(bad, f"spread={bad}: ") for bad in BUDGETS if bad is not None],
    "reach": [
        (bad, f"reach={bad!r}: ") for bad in ((1,), (0, 1), (1, 0.5), (math.nan, 1), 1, None, "ab")
    ],
    "stretch": [(bad, f"stretch={bad}: ") for bad in BUDGETS],
    "tau": [(bad, f"tau={bad}: ") for bad in (*BUDGETS, 10**400)],
    "period": [(bad, f"period={bad}: ") for bad in BUDGETS],
    # None leaves it out
    "shift": [(bad, f"shift={bad}: ") for bad in BUDGETS if bad is not None],
    "interpolation": [(bad, f"interpolation={bad!r}: ") for bad in ("linear", "", None, 1)],
    "clamp": [
        (bad, f"clamp={bad!r}: ")
        for bad in (
            *((0, 1), (2, 1), (math.nan, 1), (1, math.inf), (-1, 1), (1,), (1, 2, 3)),
            *("tight", 5, True, ("a", "b")),
        )
    ],
    "columns": [(bad, f"columns={bad}: ") for bad in (0, -1, 1.5, True, "1", None, 1001)],
    "pace": [(bad, f"pace={bad!r}: ") for bad in ("secret", "", None, 1)],
    "waves": [(bad, f"waves={bad}: ") for bad in (0, -1, 1.5, True, "1", 10**6)],
    "smoothing": [(bad, f"smoothing={bad!r}: ") for bad in ("mode", "", None, 1)],
    "share": [(bad, f"share={bad!r}: ") for bad in (0, 1, -1.0, math.nan, math.inf, "1", None)],
    # None takes the published one
    "theta": [(bad, f"theta={bad}: ") for bad in BUDGETS if bad is not None],
    "longest": [(bad, f"longest={bad!r}: ") for bad in (0, 1, -1, 2.5, True, "9", None, 2**17)],
    "gains": [
        (bad, f"gains={bad!r}: ") for bad in ((1, 1), (1, 1, -1), (1, math.nan, 0), 1, None, "abc")
    ],
    "horizon": [(bad, f"horizon={bad!r}: ") for bad in (0, -1, 1.5, True, "2", 2**41)],
    "method": [(bad, f"method={bad!r}: ") for bad in ("fast", "", 1)],
    "branching": [(bad, f"branching={bad!r}: ") for bad in (0, 1, 2.5, True, "2")],
    "coefficients": [
        (bad, f"coefficients={bad!r}: ") for bad in (0, -1, 1.5, True, "2", None, 10**6)
    ],
    "bits": [(bad, f"bits={bad!r}: ") for bad in (0, -1, 25, 1.5, True, "2")],
    "over": [
        *((bad, f"over={type(bad).__name__}: ") for bad in (None, 1.0, "Laplace")),
        (Gaussian(rho=1.0, bounds=(0, 5)), "over=Gaussian: "),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(2)), "unit is Window("),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Contribution()), "unit is Contribution("),
    ],
    "count": [(bad, f"count={bad}: ") for bad in (-1, 1.5, math.nan, True, "3", 2**40)],
    "length": [(bad, f"length={bad}: ") for bad in (0, -1, 1.5, math.nan, True, "3", 2**40)],
    "count_epsilon": [(bad, f"count_epsilon={bad}: ") for bad in (*BUDGETS, 21)],
    "miss": [(bad, f"miss={bad}: ") for bad in (0, 1, -0.1, math.nan, 2, "1", None)],
    "chosen_from_values": [(bad, f"chosen_from_values={bad}: ") for bad in (2, "yes", None)],
    "kappa": [(bad, f"kappa={bad}: ") for bad in BUDGETS],
    **{
        rate: [(bad, f"{rate}={bad}: ") for bad in (0, -1, 1.5, math.nan, math.inf, "1", None)]
        for rate in ("increase", "decrease", "least")
    },
    "origin": [
        ((91, 0), "origin=(91, 0): "),
        ((0, 181), "origin=(0, 181): "),
        ((math.nan, 0), "origin=(nan, 0): "),
        ((0,), "origin=(0,): "),
        (("0", "0"), "origin=('0', '0'): "),
        (7, "origin=7: "),
        (None, "origin=None: "),
    ],
}
WHOLE = (-1, 0, 1, 1.5, math.nan, True, "3")
ORDER_PARAMETERS: dict[str, list[tuple[Any, str]]] = {
    "window": [(bad, f"window={bad}: ") for bad in (*WHOLE, None)],
    # left out, it is chosen
    "threshold": [
        (bad, f"threshold={bad}: ") for bad in (*WHOLE, 10**6) if not isinstance(bad, bool)
    ],
    "block": [(bad, f"block={bad}: ") for bad in (*WHOLE, None)],
    "offset": [(bad, f"offset={bad}: ") for bad in (-1, 0.5, math.nan, 10**6, "0", None)],
    "latency": [(bad, f"latency={bad}: ") for bad in (*WHOLE, 2)],
    "delta": [(bad, f"delta={bad}: ") for bad in (0, 1, -1e-6, math.nan, 2, "1e-6")],
    "noise": [(bad, f"noise={bad!r}: ") for bad in ("gaussian", "", None, 1)],
}
REMEDY = ("would do", "must", "need", "name each", "take", "choose", "give", "protected against")


def bad_parameters_are_refused(case: Case) -> None:
    """One clear sentence that names the value and the remedy."""
    for field in dataclasses.fields(case.mechanism):
        wrong = list(BAD_PARAMETERS.get(field.name, []))
        if field.name == "count_epsilon":
            # a bound is public or it is drawn
            left_out = case.mechanism.count_epsilon is None
            wrong = [(1.0, "give one of them")] if left_out else wrong[:-3] + wrong[-1:]
        if case.moves and field.name in ORDER_PARAMETERS:
            own = getattr(case.mechanism, field.name)
            wrong = [one for one in ORDER_PARAMETERS[field.name] if one[0] is True or one[0] != own]
        if field.name == "unit":
            near = isinstance(case.unit, Near)
            wrong.append((Event(), "unit=Event()") if near else (Near(5), "unit=Near(metres=5)"))
        if field.name == "grid" and case.mechanism.form.columns != 2:
            wrong.append(((1.0,) * 3, "grid=(1.0, 1.0, 1.0): "))
        if field.name == "grid" and isinstance(case.mechanism.grid, float):
            wrong.append(((1.0, 1.0), "grid=(1.0, 1.0): "))
        for value, shown in wrong:
            if value is None and getattr(case.mechanism, field.name) is None:
                continue  # left out already
            try:
                replace(case.mechanism, **{field.name: value})
            except Refusal as refusal:
                said = str(refusal)
                assert shown in said and "\n" not in said, f"{shown!r} is not in: {said}"
                assert any(word in said for word in REMEDY), f"no remedy in: {said}"
            else:
                raise AssertionError(f"{field.name}={value!r} is accepted")


# privacy and utility


def the_promise_holds(case: Case) -> None:
    """Exactly, on small instances; and where the mechanism is tight, no more is promised away."""
    for small in case.smalls:
        if isinstance(case.mechanism.guarantee, NoGuarantee):
            assert not case.promises
            continue
        verdict = exact.audit(case.mechanism, small.alphabet, small.length, small.tail)
        assert verdict.pairs > 0
        assert verdict.holds, f"{verdict.sentence}, {verdict.worst}"
        slack = 1e-6 * verdict.claimed
        assert not case.tight or verdict.found >= verdict.claimed - slack, verdict.sentence


def _outcomes(law: Any) -> tuple[Integers, Floats]:
    found = law.outcomes(1e-12)
    return np.array([k for k, _ in found]), np.array([p for _, p in found])


def _is_fine(law: Any) -> bool:
    """Whether a law has too many outcomes to list."""
    return isinstance(law, noise.PlanarLattice) and law.rate < 0.05


def _laws(case: Case) -> list[Any]:
    with recorded() as drawn:
        case.release(case.rows(1, "laws"), case.key(16))
    return [one.law for one in drawn]


def stated_errors_are_exact(case: Case) -> None:
    """Against the mean over all outcomes, at 1e-6 of it."""
    if not case.independent or case.marked:
        return  # laws that vary have no single error: see test_landmark_schemes
    laws = _laws(case)
    for column, stated in enumerate(case.mechanism.errors):
        law = laws[min(column, len(laws) - 1)]
        if not _is_fine(law):
            outcomes, probabilities = _outcomes(law)
            mean = float(probabilities @ case.cost(outcomes, column))
            assert math.isclose(stated, mean, rel_tol=1e-6), f"{stated} stated, {mean} exactly"


@functools.lru_cache(maxsize=1)
def _long_run(case: Case) -> tuple[Floats, list[Drawn]]:
    rows = np.tile(case.still, (DRAWS * case.sparse, 1))
    with recorded() as drawn:
        return np.asarray(case.release(rows, case.key(17))), drawn


def _by_law(drawn: list[Drawn]) -> Iterator[Drawn]:
    """Draws that were made a part at a time together; less what is drawn once a series."""
    for (law, purpose), many in itertools.groupby(
        sorted(drawn, key=lambda one: (one.purpose, repr(one.law))),
        key=lambda one: (one.law, one.purpose),
    ):
        values = [one.values for one in many]
        if isinstance(law, Ties) or sum(map(len, values)) == 1:
            continue  # see test_order_laws
        yield Drawn(law, purpose, values[0] if len(values) == 1 else np.concatenate(values))


def stated_errors_are_met(case: Case) -> None:
    """By the mean over released values, within five standard errors.

    Rejects a right statement with alpha 6e-7. With 200,000 values it detects, for noise whose
    error spreads as much as its mean (Laplace), errors that are off by 1.6 % (power 0.99).
    """
    if limit_of(case.mechanism) is not None or not case.independent or case.marked:
        return
    released, drawn = _long_run(case)
    # by definition, the reading without noise
    still = case.released(np.array([case.still]), [np.zeros_like(d.values[:1]) for d in drawn])[0]
    for column, stated in enumerate(case.mechanism.errors):
        if isinstance(case.mechanism, RandomizedResponse):
            found = (released[:, column] != still[column]).astype(np.float64)
            spread = math.sqrt(stated * (1 - stated))
        elif isinstance(case.mechanism, PlanarLaplace):
            north, east = reference.metres_per_degree(case.mechanism.origin)
            found = np.hypot(*((released - still) * (north, east)).T)
            spread = float(found.std())
        else:
            found = np.abs(released[:, column] - still[column])
            spread = float(found.std())
        bound = SIGMAS * spread / math.sqrt(len(found))
        assert abs(found.mean() - stated) <= bound, f"{stated} stated, {found.mean()} met"


def samplers_follow_their_laws(case: Case) -> None:
    """The audit enumerates the law's own account of itself; the draws must agree with it.

    Chi-square with alpha 1e-9; detects what ``cells_detect`` says of so many draws: a root mean
    square deviation of a cell's probability of 4 % in 200,000 draws, 18 % in 10,000.
    """
    if limit_of(case.mechanism) is not None or not case.sampled:
        return
    _, drawn = _long_run(case)
    assert drawn, "noise is not drawn from the keyed source"
    for one in _by_law(drawn) if case.moves or case.draws_curves else drawn:
        if one.law is None or _is_fine(one.law):
            continue
        outcomes, probabilities = _outcomes(one.law)
        values = one.values
        if values.ndim == 2:
            # pairs in the order of their first number, then their second
            base = 2 * int(np.abs(values).max() + np.abs(outcomes).max()) + 1
            outcomes, values = (pairs @ np.array([base, 1]) for pairs in (outcomes, values))
        listed = list(zip(outcomes.tolist(), probabilities.tolist(), strict=True))
        edges, masses = joined(listed, len(values), most=30)
        detects = max(cells_detect(len(values), len(masses)), 0.01) * 1.01
        assert detects < (0.05 if COMPILED else 0.25)
        assert_cells(counted(values, edges), masses, detects=detects, alpha=ALPHA)


CHECKS: tuple[Callable[[Case], None], ...] = (
    same_bits_for_any_cutting,
    resume_from_any_state,
    resume_across_an_epoch,
    many_series_in_any_order,
    compiled_and_plain_and_reference_agree,
    the_past_does_not_move,
    shape_is_free_of_values,
    masked_readings_are_not_looked_at,
    every_number_varies_with_key_and_place,
    a_key_opens_each_series_once,
    a_step_is_released_once,
    what_is_finished_stays_so,
    a_kept_key_only_goes_on,
    seeded_keys_promise_nothing,
    spec_survives_json,
    state_holds_no_secret,
    wrong_states_are_refused,
    memory_stays_flat,
    bad_readings_are_refused,
    bad_parameters_are_refused,
    the_promise_holds,
    stated_errors_are_exact,
    stated_errors_are_met,
    samplers_follow_their_laws,
)
