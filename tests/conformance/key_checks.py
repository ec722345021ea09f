"""What keys do for every mechanism: noise of its own for each number, once."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.errors import KeyReuseError, StateError, TemprivError
from tempriv.mechanisms.perturb import guarantee_of_run, limit_of
from tempriv.mechanisms.stream import resume
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import Case, Floats, same
from tests.conformance.spec_checks import budget_of, with_budget


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
    except KeyReuseError as refusal:
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
        except KeyReuseError as refusal:
            assert "'a'" in str(refusal) and "latest state" in str(refusal)
        else:
            raise AssertionError("a stream goes on from a state that it has left behind")
    twin, other = (resume(case.mechanism, states[2], key) for _ in range(2))
    case.push(twin, rows[2:])
    for late in (stream, other):
        before = late.state()
        try:
            case.push(late, rows[2:])
        except KeyReuseError:
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
        except TemprivError:
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
    state, promised = stream.state(), guarantee_of_run(case.mechanism, key)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        key.save(path)
        key.close()
        kept = type(key).load(path)
        _goes_on_only(case, kept, state, rows, expected)
        assert guarantee_of_run(case.mechanism, kept) == promised
        kept.close()


def _goes_on_only(case: Case, kept: Key, state: bytes, rows: Any, expected: Any) -> None:
    for series in ("a", "never begun"):
        try:
            case.mechanism.start(kept, series)
        except KeyReuseError as refusal:
            assert "Key.generate()" in str(refusal)
        else:
            raise AssertionError("a key that cannot know what it has begun starts a stream")
    try:
        again = resume(case.mechanism, state, kept)
    except StateError as refusal:
        raise AssertionError(f"it is not the key that was kept: {refusal}") from None
    assert same(case.push(again, rows[3:]), expected), "other bits with a key from a file"


def seeded_keys_promise_nothing(case: Case) -> None:
    seeded = guarantee_of_run(case.mechanism, case.key(11))
    assert isinstance(seeded, NoGuarantee) and "11" in seeded.sentence, "a seed is no secret"
    assert guarantee_of_run(case.mechanism, Key.generate()) == case.mechanism.guarantee
    assert isinstance(case.mechanism.guarantee, Guarantee) == case.promises
    assert case.mechanism.published.sentence and case.mechanism.guarantee.sentence
