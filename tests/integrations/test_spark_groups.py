"""What a task of a Spark stream does with a group of series: the bits of embedded streams, and
refusals; all of it without Spark."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tempriv.data.series import Block
from tempriv.errors import KeyReuseError, StateError
from tempriv.integrations.spark.stream_group import Group
from tempriv.integrations.spark.stream_state import Setting
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.domains import OpaqueRows
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.stream import start
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.privacy import serialization
from tempriv.privacy.units import WholeSeries, Window
from tempriv.sampling.keys import Key
from tests.conformance.cases import CASES

SEED = 5
LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))
THRESHOLD = Threshold(epsilon=1.0, window=5)
ABSORPTION = BudgetAbsorption(epsilon=4.0, bounds=(0, 5), unit=Window(3))

STREAMED = [case for case in CASES if not case.mechanism.takes_whole]
FIRST = {type(case.mechanism): case for case in reversed(STREAMED)}


def setting_of(folder: Path, mechanism: Any, columns: int = 1) -> Setting:
    folder.mkdir(exist_ok=True)
    key_file = folder / "key"
    if not key_file.exists():
        key = Key.from_seed(SEED)
        key.save(key_file)
        key.close()
    names = tuple(f"value {i}" for i in range(columns))
    setting = Setting(
        mechanism=mechanism, layout=("who", "t", "v"), columns=names, groups=1, key_file=key_file
    )
    setting.bind()
    return setting


def table_of(rows: list[tuple[Any, ...]], kind: Any = None) -> Any:
    """Readings as Spark hands them over: whose, when, a hash of the values, and the values."""
    kind = kind or pa.float64()
    columns = {
        "series": pa.array([row[0] for row in rows], pa.string()),
        "time": pa.array([row[1] for row in rows], pa.int64()),
        "mark": pa.array([hash(tuple(map(repr, row[2:]))) for row in rows], pa.int64()),
    }
    for i in range(max((len(row) for row in rows), default=3) - 2):
        columns[f"value {i}"] = pa.array([row[2 + i] for row in rows], kind)
    return pa.table(columns)


def advance(setting: Setting, state: bytes | None, rows: Any) -> tuple[bytes, list[Any], Any]:
    group = Group(setting, 0)
    after, out = group.advance(state, rows if isinstance(rows, pa.Table) else table_of(rows))
    return after, [] if out is None else [tuple(row.values()) for row in out.to_pylist()], group


def embedded(mechanism: Any, name: str, values: Any) -> list[list[Any]]:
    """What a stream of one series in this process gives."""
    stream = start(mechanism, Key.from_seed(SEED), name)
    if isinstance(mechanism.domain, OpaqueRows):
        out = stream.push(values)
        gone = np.ma.getmaskarray(out)
        return [
            [None if gone[i, j] else out[i, j] for j in range(out.shape[1])]
            for i in range(len(out))
        ]
    block = stream.push_block(Block.of(values, name, 0))
    names = without_landmarks(mechanism.domain).categories

    def shown(i: int, j: int) -> Any:
        if block.missing[i, j]:
            return None
        return block.values[i, j] if names is None else names[j][int(block.values[i, j])]

    return [[shown(i, j) for j in range(block.values.shape[1])] for i in range(len(block))]


def _streamed() -> list[Any]:
    marks = {case.name: [] if case in FIRST.values() else [pytest.mark.long] for case in STREAMED}
    return [pytest.param(case, id=case.name, marks=marks[case.name]) for case in STREAMED]


@pytest.mark.parametrize("case", _streamed())
def test_groups_give_the_bits_of_embedded_streams(case, tmp_path):
    mechanism = case.mechanism
    setting = setting_of(tmp_path, mechanism, case.columns)
    data = {}
    for i in range(3):
        some = case.gappy if mechanism.accepts_null else case.rows
        data[f"s{i}"] = np.ma.asarray(some(36 + i + case.sparse, f"series {i}"))
    rng = case.rng("batches")
    rows = [
        (name, at, *(None if gone else float(one) for one, gone in zip(row, missing, strict=True)))
        for name, values in data.items()
        for at, (row, missing) in enumerate(
            zip(values.data, np.ma.getmaskarray(values), strict=True)
        )
    ]
    state, got, low = None, [], 0
    while low < 39 + case.sparse:  # a law may draw once for many rows
        high = low + int(rng.integers(1, 12))
        batch = [row for row in rows if low <= row[1] < high]
        low = high
        if batch:
            order = rng.permutation(len(batch))
            state, out, group = advance(setting, state, [batch[i] for i in order])
            got += out
            assert group.counts["readings"] == len(batch)
            assert group.counts["released"] == len(out)
    assert got
    for name, values in data.items():
        wanted = embedded(mechanism, name, values)
        mine = [row[1:] for row in got if row[0] == name]
        assert [row[0] for row in mine] == list(range(len(wanted)))
        width = len(wanted[0]) if wanted else 0
        assert [list(row[1 : 1 + width]) for row in mine] == wanted


def test_what_is_late_or_no_reading_is_counted_and_nothing_stops(tmp_path):
    setting = setting_of(tmp_path, LAPLACE)
    state, out, group = advance(setting, None, [("a", 3, 1.0), ("a", 1, 2.0), ("a", 3, 1.0)])
    assert [row[:2] for row in out] == [("a", 1), ("a", 3)]
    assert group.counts == {"readings": 3, "released": 2, "late": 1, "unreadable": 0, "beyond": 0}
    odd = [("a", 2, 1.0), ("a", 3, 9.0), (None, 4, 1.0), ("a", None, 1.0)]
    odd += [("a", 4, None), ("a", 5, float("nan")), ("a", 6, float("inf"))]
    state, out, group = advance(setting, state, odd)
    assert [row[:2] for row in out] == [("a", 4), ("a", 5), ("a", 6)]
    assert [row[2] is None for row in out] == [True, True, False]
    assert (group.counts["late"], group.counts["unreadable"]) == (2, 2)
    none = [(None, 1, 1.0), ("a", 1, 1.0)]
    after, out, group = advance(setting, state, none)
    assert after == state and not out
    assert (group.counts["late"], group.counts["unreadable"]) == (1, 1)
    other = setting_of(tmp_path / "other", LAPLACE)
    assert advance(other, None, [(None, None, None)])[:2] == (None, [])
    assert advance(other, None, batch_at(0))[1]


def test_of_two_readings_at_one_time_the_same_one_is_taken_in_any_order(tmp_path):
    rows = [("a", 1, float(v)) for v in range(6)]
    first = advance(setting_of(tmp_path, THRESHOLD), None, rows)
    again = advance(setting_of(tmp_path, THRESHOLD), None, rows[::-1])  # run again: not refused
    assert first[1] == again[1] and first[0] == again[0]
    assert first[2].counts["late"] == 5


def test_readings_past_what_is_promised_are_counted(tmp_path):
    few = Laplace(epsilon=1.0, bounds=(0, 5), unit=WholeSeries(3))
    state, out, group = advance(setting_of(tmp_path, few), None, [("a", t, 1.0) for t in range(2)])
    state, out, group = advance(
        setting_of(tmp_path, few), state, [("a", t, 1.0) for t in range(2, 6)]
    )
    assert len(out) == 1 and group.counts["beyond"] == 3


def test_landmarks_past_the_number_given_are_counted(tmp_path):
    case = next(c for c in STREAMED if c.mechanism.most_landmarks)
    scheme, row = case.mechanism, case.still[:-1]
    most = scheme.most_landmarks
    setting = setting_of(tmp_path, scheme, case.columns)
    rows = [("a", t, *map(float, row), 1.0) for t in range(most + 2)]
    state, out, group = advance(setting, None, rows[:1])
    state, out, group = advance(setting, state, rows[1:])
    assert group.counts["beyond"] == 2 and len(out) == most - 1


def test_a_reading_that_the_mechanism_refuses_is_counted(tmp_path):
    counts = next(
        c.mechanism
        for c in CASES
        if isinstance(c.mechanism, RunningCount) and c.columns == 1 and _is_exact(c.mechanism)
    )
    rows = [("a", 0, 1.0), ("a", 1, 0.3), ("a", 2, 0.0)]
    _, out, group = advance(setting_of(tmp_path, counts), None, rows)
    assert [row[1] for row in out] == [0, 2] and group.counts["unreadable"] == 1


def _is_exact(mechanism: Any) -> bool:
    numbers = getattr(mechanism.domain, "numbers", mechanism.domain)
    return bool(getattr(numbers, "exact", False))


def test_where_times_are_the_secret_only_numbers_of_readings_stand_there(tmp_path):
    noisy = next(c.mechanism for c in STREAMED if isinstance(c.mechanism, NoisyTimes))
    width = noisy.domain.columns or 1
    setting = setting_of(tmp_path, noisy, width)
    value = [1.0] * width
    rows = [("a", 0, *value), ("a", 1, *value), ("b", 7, *value), ("c", 1, *value)]
    state, _, group = advance(setting, None, rows)
    assert group.counts["unreadable"] == 1
    state, _, group = advance(setting, state, [("a", 3, *value), ("c", 2, *value)])
    assert group.counts["unreadable"] == 1
    _, _, group = advance(setting, state, [("a", 2, *value)])
    assert group.counts["unreadable"] == 0


def batch_at(t: int, value: float = 1.0) -> list[tuple[Any, ...]]:
    return [("a", t, value), ("b", t, value)]


def test_a_batch_run_again_gives_the_same_bits_and_other_readings_are_refused(tmp_path):
    setting = setting_of(tmp_path, LAPLACE)
    state, _, _ = advance(setting, None, batch_at(0))
    after, out, _ = advance(setting, state, batch_at(1))
    again, same, _ = advance(setting, state, batch_at(1)[::-1])
    assert (again, same) == (after, out)
    for other in (batch_at(1, 2.0), batch_at(2), batch_at(1)[:1], [*batch_at(1), ("c", 1, 1.0)]):
        with pytest.raises(KeyReuseError, match="does not lead"):
            advance(setting, state, other)
    # and what was refused has changed nothing
    assert advance(setting, state, batch_at(1))[1] == out
    assert advance(setting, after, batch_at(2))[1]


def test_an_old_or_deleted_checkpoint_is_refused(tmp_path):
    setting = setting_of(tmp_path, LAPLACE)
    states: list[bytes | None] = [None]
    for t in range(3):
        states.append(advance(setting, states[-1], batch_at(t))[0])
    for old in (states[0], states[1]):
        with pytest.raises(KeyReuseError, match="deleted or is an old one"):
            advance(setting, old, batch_at(3))
        # readings that were released before, too: which batches they came in is not known
        with pytest.raises(KeyReuseError):
            advance(setting, old, batch_at(0 if old is None else 1))
    (setting.records / "0").unlink()
    with pytest.raises(KeyReuseError):
        advance(setting, states[-1], batch_at(3))


def test_a_state_is_refused_with_another_key_or_when_it_was_changed(tmp_path):
    state, _, _ = advance(setting_of(tmp_path, LAPLACE), None, batch_at(0))
    other = setting_of(tmp_path / "other", LAPLACE)
    other.key_file.unlink()
    Key.generate().save(other.key_file)
    other.bind()
    with pytest.raises(StateError, match="damaged, or was made with another key"):
        advance(other, state, batch_at(1))
    for place in (0, 20, len(state) - 1):
        changed = bytearray(state)
        changed[place] ^= 1
        with pytest.raises(StateError):
            advance(setting_of(tmp_path, LAPLACE), bytes(changed), batch_at(1))


def test_key_files_that_cannot_serve(tmp_path):
    setting = setting_of(tmp_path, LAPLACE)
    text = setting.key_file.read_text()
    setting.key_file.write_text(json.dumps(json.loads(text) | {"reached": [["x", "a", 3]]}))
    for use in (setting.bind, lambda: Group(setting, 0)):
        with pytest.raises(KeyReuseError, match="serves one stream"):
            use()
    setting.key_file.write_text(text)
    for change in ({"groups": 2}, {"layout": ("who", "t", "w")}, {"mechanism": ABSORPTION}):
        with pytest.raises(KeyReuseError, match="serves one stream"):
            replace(setting, **change).bind()
    setting.key_file.write_text("{}")
    with pytest.raises(StateError, match="not a key"):
        Group(setting, 0)
    setting.key_file.unlink()
    with pytest.raises(StateError, match="every executor"):
        Group(setting, 0)
    setting.key_file.write_text(text)
    setting.records.rename(tmp_path / "away")
    with pytest.raises(StateError, match="no such folder"):
        advance(setting, None, batch_at(0))
    with pytest.raises(StateError, match="is gone"):
        setting.bind()


def secrets_of(key_file: Path, mechanism: Any, names: list[str]) -> list[bytes]:
    """The secret, the keys made from it, and what they look like written."""
    secret = bytes.fromhex(json.loads(key_file.read_text())["secret"])
    key = Key(secret, json.loads(key_file.read_text())["release"])
    digest = serialization.digest(mechanism)
    raw = [secret, key.again("spark stream", "history").cipher_key("history")]
    raw += [key.again(digest, name).secret for name in names]
    found = []
    for one in raw:
        text = base64.b64encode(one)
        # three ways that base64 may begin within a longer text
        shifted = [base64.b64encode(b"x" * i + one)[4:-4] for i in (1, 2)]
        found += [one, one.hex().encode(), one.hex().upper().encode(), text[:-4], *shifted]
    return found


def test_neither_state_nor_setting_holds_a_key(tmp_path):
    setting = setting_of(tmp_path, THRESHOLD)
    state, _, _ = advance(setting, None, batch_at(0, 3.25))
    for secret in secrets_of(setting.key_file, THRESHOLD, ["a", "b"]):
        assert secret not in state and secret not in pickle.dumps(setting)
        assert secret not in (setting.records / "0").read_bytes()
    assert np.float64(3.25).tobytes() in state  # held rows are there, so such a search finds
    assert (setting.records / "0").stat().st_mode & 0o077 == 0
