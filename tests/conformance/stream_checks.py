"""What streams of every mechanism do: any cutting, any state, and what the definition says."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tempriv.data.series import EMPTY, RELEASED, Block
from tempriv.mechanisms.perturb import limit_of, perturb_block
from tempriv.mechanisms.stream import Seen, Stream, resume
from tempriv.privacy import serialization
from tempriv.sampling.keys import EPOCH
from tempriv.sampling.keystream import StepRange
from tests.conformance.case_checks import (
    Case,
    Drawn,
    Rows,
    named,
    near,
    parameter,
    plain_kernels,
    quick,
    recorded,
    same,
    together,
    with_status,
)
from tests.support.statistics import COMPILED


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
        assert same(together(parts), whole), "another cutting gives other bits"

    holds()
    stream = case.mechanism.start(case.key(1), "a")
    singles = [case.push(stream, rows[i : i + 1]) for i in range(len(rows))]
    singles.append(case.finish(stream))
    assert same(together(singles), whole), "one reading at a time gives other bits"
    if case.mechanism.takes_whole:
        return
    if case.columns == 1 and case.mechanism.domain.categories is None:
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
        names = named(rows, case.mechanism.domain.categories)
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
        assert same(together([before, *after]), whole), f"resumed at {i}: other bits"
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
        chain = case.key(3).again(serialization.digest(case.mechanism), "a")
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
        digest = serialization.digest(case.mechanism)
        runs = [StepRange(key.series(digest, n), 0, k) for n, k in zip(order, counts, strict=True)]
        out = perturb_block(case.mechanism, block, runs, ending=True)
        assert (out.status is not None) == case.mechanism.has_status
        assert (out.ids, out.counts.tolist()) == (tuple(order), counts)
        rows = np.ma.array(out.values, mask=out.missing)
        for n, part in zip(order, np.split(np.arange(len(rows)), np.cumsum(counts)), strict=False):
            assert same(rows[part], alone[n]), f"{n} differs when released together with others"

    holds()


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
    # where the mechanism leaves rows empty, that is part of what it guarantees about
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
    if case.mechanism.domain.categories is not None:
        hidden = named(rows.data, case.mechanism.domain.categories)
        stream = case.mechanism.start(case.key(8), "a")
        names = [stream.push(np.ma.array(hidden, mask=gaps))]
        assert stream.state() == first.state(), "masked names are in the state"
        names.append(stream.finish())
        absent = np.equal(together(names), None)
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
