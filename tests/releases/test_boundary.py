"""What is handed out has the bytes of its values, whatever the private table looked like."""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tempriv as tp
from tempriv.data import boundary
from tempriv.data.series import RELEASED
from tempriv.mechanisms.domains import OpaqueRows
from tempriv.mechanisms.stream import start
from tempriv.releases import run as run_module
from tempriv.sampling.keys import Key
from tests.support.engines import FIRST, table_of

MOVING = [kind for kind, case in FIRST.items() if isinstance(case.mechanism.domain, OpaqueRows)]
ROWS = 24

# types, each with words to choose from

DAY = datetime.date(2026, 1, 1)
NUMBERS = [3, 1, 2, 5, 4]
LETTERS = ["c", "a", "a word that is too long to lie in a view", "", "b"]
LISTS: list[Any] = [[3, None], [], [1], [2, 2, 2], [5]]
WORDS: dict[pa.DataType, list[Any]] = {
    **dict.fromkeys(
        (
            *(pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float16(), pa.float32()),
            *(pa.float64(), pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.duration("ms")),
            *(pa.time32("s"), pa.time64("us")),
        ),
        NUMBERS,
    ),
    pa.bool_(): [True, False, True, True, False],
    pa.date64(): [DAY + datetime.timedelta(days) for days in NUMBERS],
    pa.date32(): [DAY + datetime.timedelta(days) for days in NUMBERS],
    pa.decimal128(9, 2): [decimal.Decimal(n) for n in NUMBERS],
    pa.decimal256(50, 2): [decimal.Decimal(n) for n in NUMBERS],
    pa.month_day_nano_interval(): [(n, n, n) for n in NUMBERS],
    pa.binary(2): [b"ab", b"aa", b"bb", b"ba", b"cc"],
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), LETTERS),
    **{kind: [w.encode() for w in LETTERS] for kind in (pa.binary(), pa.binary_view())},
    pa.dictionary(pa.int32(), pa.string()): LETTERS,
    pa.dictionary(pa.int8(), pa.int64()): NUMBERS,
    pa.dictionary(pa.int32(), pa.string(), ordered=True): LETTERS,
    **{
        make(pa.int16()): LISTS
        for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
    },
    pa.list_(pa.int16(), 2): [[3, None], [1, 1], [2, 1], [4, 4], [5, 0]],
    pa.list_(pa.dictionary(pa.int32(), pa.string())): [["c", "a"], [], ["b"], ["a"], ["d", None]],
    pa.map_(pa.string(), pa.int8()): [[("c", 1)], [], [("a", None)], [("b", 2)], [("d", 3)]],
    pa.struct([("x", pa.int8()), ("y", pa.string())]): [{"x": n, "y": str(n)} for n in NUMBERS],
    pa.struct([("x", pa.dictionary(pa.int32(), pa.string()))]): [{"x": word} for word in LETTERS],
    pa.uuid(): [bytes([n]) * 16 for n in NUMBERS],
    pa.run_end_encoded(pa.int32(), pa.int64()): NUMBERS,
    pa.null(): [None] * 5,
}


def built(words: list[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(words, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(words, kind.value_type), run_end_type=kind.run_end_type)
    return pa.array(words, kind)


def column_of(kind: pa.DataType, codes: list[int], seed: int) -> pa.ChunkedArray:
    """Rows by the number of their word, laid out by ``seed``: -1 is nothing, over what was there.

    Before and after them are rows that no one asked for, and words that stand in none.
    """
    rng = np.random.default_rng(seed)
    words = WORDS[kind]
    junk = rng.integers(0, len(words), 7).tolist()
    below = [code if code >= 0 else int(rng.integers(len(words))) for code in codes]
    chosen = [words[code] for code in [*junk, *below, *junk]]
    if pa.types.is_dictionary(kind):
        order = rng.permutation(len(words)).tolist()
        unused = [f"never {seed}"] if pa.types.is_string(kind.value_type) else [100 + seed]
        dictionary = pa.array([*unused, *(words[i] for i in order)], kind.value_type)
        places = [order.index(code) + 1 for code in [*junk, *below, *junk]]
        whole = pa.DictionaryArray.from_arrays(
            pa.array(places, kind.index_type), dictionary, ordered=kind.ordered
        )
    else:
        whole = built(chosen, kind)
    rows = whole.slice(len(junk), len(codes))
    gone = np.array(codes) < 0
    if gone.any() and not pa.types.is_null(kind):
        rows = hidden(rows, gone, kind, [words[code] if code >= 0 else None for code in codes])
    cut = int(rng.integers(1, len(codes)))
    return pa.chunked_array([rows.slice(0, cut), rows.slice(cut)], kind)


def hidden(rows: pa.Array, gone: Any, kind: pa.DataType, words: list[Any]) -> pa.Array:
    """The rows without those that are gone, whose words stay in memory where Arrow lets them."""
    if pa.types.is_run_end_encoded(kind):
        return built(words, kind)
    if isinstance(kind, pa.BaseExtensionType):
        storage = hidden(rows.storage, gone, kind.storage_type, words)
        return pa.ExtensionArray.from_storage(kind, storage)
    rows = pa.concat_arrays([rows])  # from the beginning of its buffers
    bitmap = pa.py_buffer(np.packbits(~gone, bitorder="little"))
    if pa.types.is_dictionary(kind):
        indices = hidden(rows.indices, gone, kind.index_type, words)
        return pa.DictionaryArray.from_arrays(indices, rows.dictionary, ordered=kind.ordered)
    children = None
    if pa.types.is_struct(kind):
        children = [rows.field(i) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(rows), [bitmap], children=children)
    if pa.types.is_map(kind) or pa.types.is_nested(kind):
        if pa.types.is_map(kind):
            return built(words, kind)
        children = [rows.values]
    own = 1 if pa.types.is_fixed_size_list(kind) else None
    if own is None:
        own = 3 if "list_view" in str(kind) else 2 if children else len(rows.buffers())
    return pa.Array.from_buffers(
        kind, len(rows), [bitmap, *rows.buffers()[1:own]], children=children
    )


# two inputs, one drawn outcome


CODES = [*range(-1, 5)] * 4


def in_one_order(monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
    """The drawn outcome is that the rows come out by the number of their word."""
    order = np.argsort(codes, kind="stable")
    perturb = run_module.perturb_block

    def forced(mechanism: Any, block: Any, *rest: Any) -> Any:
        out = perturb(mechanism, block, *rest)
        status = None if out.status is None else np.full(len(block), RELEASED, np.int8)
        values = order[:, None].astype(float)
        return replace(block, values=values, missing=np.zeros((len(order), 1), bool), status=status)

    monkeypatch.setattr(run_module, "perturb_block", forced)


def bytes_of(released: tp.Release, folder: Any) -> dict[str, bytes]:
    """Everything that a release can be handed out as."""
    found = {"ipc": ipc(released.table), "pickle": pickle.dumps(released.table)}
    found["values"] = pickle.dumps(released.values)
    sink = io.BytesIO()
    try:
        pq.write_table(released.table, sink)
    except (pa.ArrowException, NotImplementedError):  # a type that Parquet does not have
        pass
    else:
        found["parquet"] = sink.getvalue()
    for ending in ("csv", "parquet"):
        try:
            path = released.write(folder / f"out.{ending}", force=True)
        except (tp.TemprivError, pa.ArrowException, NotImplementedError):
            continue
        found[f"written {ending}"] = path.read_bytes()
    return found


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def released_from(kind: Any, mechanism: Any, seed: int) -> tp.Release:
    """A release of rows in an order of their own; what comes out is the same for each seed."""
    codes = np.random.default_rng(seed).permutation(CODES).tolist()
    with pytest.MonkeyPatch.context() as patch:
        in_one_order(patch, codes)
        field = pa.field("v", kind, metadata={"first": str(codes[0])})
        schema = pa.schema([field], metadata={"order": str(codes)})
        table = pa.Table.from_arrays([column_of(kind, codes, seed)], schema=schema)
        return tp.release(table, mechanism, key=Key.from_seed(1))


def differences(kind: Any, mechanism: Any, folder: Any) -> list[str]:
    one, two = (released_from(kind, mechanism, seed) for seed in (1, 2))
    two.about.update(created=one.about["created"])
    assert one.table.num_rows == len(CODES)
    logical = [each.table["v"].to_pylist() for each in (one, two)]
    assert logical[0] == logical[1]
    first, second = bytes_of(one, folder), bytes_of(two, folder)
    return [name for name in first if first[name] != second[name]]


@pytest.mark.parametrize("mechanism", MOVING, ids=lambda one: one.__name__)
def test_two_orders_that_come_out_alike_have_equal_bytes(mechanism, tmp_path):
    case = FIRST[mechanism].mechanism
    for kind in WORDS:
        assert not differences(kind, case, tmp_path), kind


# the same, of frames


def frames(seed: int) -> dict[str, Any]:
    """Frames of pandas and polars whose rows stand in an order of their own."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation([*range(5)] * 4).tolist()
    words = [LETTERS[code] for code in codes]
    numbers = [float(NUMBERS[code]) for code in codes]
    return {
        "codes": codes,
        "pandas": pd.DataFrame(
            {
                "v": pd.Categorical(words, categories=list(dict.fromkeys([*words, f"x{seed}"]))),
                "n": pd.array(numbers, dtype="Float64"),
                "o": pd.Series(words, dtype=object),
            },
            index=pd.Index([f"{word} {seed}" for word in words], name=f"secret {seed}"),
        ),
        "polars": pl.DataFrame({"v": words, "n": numbers}).with_columns(
            pl.col("v").cast(pl.Categorical).alias("c"),
            pl.col("v").cast(pl.Enum(sorted(set(words), key=words.index))).alias("e"),
        ),
    }


def shown(name: str, seed: int) -> bytes:
    found = frames(seed)
    with pytest.MonkeyPatch.context() as patch:
        in_one_order(patch, found["codes"])
        frame = found[name]
        columns = tuple(frame.columns)
        mechanism = FIRST[MOVING[0]].mechanism
        released = tp.release(frame, mechanism, values=columns, key=Key.from_seed(1)).frame
    if name == "pandas":
        return pickle.dumps(released)
    sink = io.BytesIO()
    released.write_ipc(sink)
    physical = released.select(pl.selectors.by_dtype(pl.Enum, pl.Categorical).to_physical())
    return sink.getvalue() + pickle.dumps(released) + pickle.dumps(physical.rows())


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_two_frames_that_come_out_alike_have_equal_bytes(name):
    """Each in a process of its own: categories of polars belong to the whole process."""
    code = "import sys; from tests.releases.test_boundary import shown; " + (
        "sys.stdout.buffer.write(shown(sys.argv[1], int(sys.argv[2])))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, name, str(seed)], capture_output=True, check=True
        ).stdout
        for seed in (1, 2)
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 500


# mechanisms that make new values


@pytest.mark.parametrize("mechanism", FIRST, ids=lambda one: one.__name__)
def test_a_layout_does_not_come_out(mechanism, tmp_path):
    """Equal tables, one of them in pieces and with dictionaries: equal bytes."""
    case = FIRST[mechanism]
    plain, layout = table_of(case, 1, ROWS)
    odd = plain.slice(1).to_batches() + plain.slice(0, 1).to_batches()
    other = pa.Table.from_batches(odd).replace_schema_metadata({"index": "secret"})
    one, two = (
        tp.release(table, case.mechanism, key=Key.from_seed(3), **layout)
        for table in (plain, other)
    )
    two.about.update(created=one.about["created"])
    assert bytes_of(one, tmp_path) == bytes_of(two, tmp_path)


@pytest.mark.parametrize("mechanism", FIRST, ids=lambda one: one.__name__)
def test_arrays_refer_to_no_private_ones(mechanism):
    """A stream's array has memory of its own: no base, nothing below what is missing."""
    case = FIRST[mechanism]
    readings = case.gappy(min(ROWS, 12), "boundary")
    stream = start(case.mechanism, Key.from_seed(1))
    out = [] if case.mechanism.takes_whole else [stream.push(readings)]
    for array in [*out, stream.finish()]:
        data = np.ma.getdata(array)
        assert array.dtype == object or data.base is None or data.base.size == data.size
        if data.dtype != object:
            assert not np.ma.getmaskarray(array).any() or not data[np.ma.getmaskarray(array)].any()


# each way to fail is noticed


def kept(array: Any, *_: Any, **__: Any) -> Any:
    return array


UNION = pa.dense_union([pa.field("x", pa.int8()), pa.field("y", pa.string())])


def alike(kind: Any, seed: int) -> pa.RecordBatch:
    """Rows in one order, over and beside what depends on the seed."""
    if pa.types.is_union(kind):
        places = pa.array([seed, 0, 3 - seed], pa.int32())
        numbers = pa.array(np.roll([7, 1, 2], seed - 1) if seed == 1 else [9, 2, 7], pa.int8())
        members = [numbers, pa.array(["a", str(seed)])]
        members[0] = pa.array([5, 1, 2] if seed == 1 else [6, 2, 1], pa.int8())
        column = pa.UnionArray.from_dense(
            pa.array([0, 1, 0], pa.int8()), places, members, ["x", "y"]
        )
        return pa.RecordBatch.from_arrays([column], names=["v"])
    column = column_of(kind, CODES, seed)
    whole = column.chunk(0) if pa.types.is_run_end_encoded(kind) else column.combine_chunks()
    return pa.RecordBatch.from_arrays([whole], names=["v"])


@pytest.mark.parametrize("kind", [*WORDS, UNION], ids=str)
def test_what_lies_beside_the_rows_stays_behind(kind):
    one, two = (alike(kind, seed) for seed in (1, 2))
    if pa.types.is_run_end_encoded(kind):
        two = one.slice(0)
    made = [boundary.public_batch(batch) for batch in (one, two)]
    assert made[0].column(0).to_pylist() == one.column(0).to_pylist()
    made[0].validate(full=True)
    assert ipc(pa.Table.from_batches(made[:1])) == ipc(pa.Table.from_batches(made[1:]))
    assert ipc(boundary.public_table([one])) == ipc(
        boundary.public_table([two.slice(0, 5), two.slice(5)])
    )


WAYS = {
    "numbers below nulls": ("_fixed_width", pa.int64()),
    "truth below nulls": ("_fixed_width", pa.bool_()),
    "letters below nulls": ("_text", pa.string()),
    "letters of views": ("_public", pa.string_view()),
    "items below nulls": ("_list", pa.list_(pa.int16())),
    "items anywhere": ("_list_view", pa.list_view(pa.int16())),
    "items of one length": ("_fixed_list", pa.list_(pa.int16(), 2)),
    "members": ("_struct", pa.struct([("x", pa.int8()), ("y", pa.string())])),
    "words of a dictionary": ("_public", pa.dictionary(pa.int32(), pa.string())),
    "words in lists": ("_public", pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "values of a union": ("_union", UNION),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_boundary_that_lets_something_through_is_noticed(way, monkeypatch):
    name, kind = WAYS[way]
    monkeypatch.setattr(boundary, name, lambda array, encoded=True: array)
    one, two = (ipc(pa.Table.from_batches([boundary.public_batch(alike(kind, s))])) for s in (1, 2))
    assert one != two


@pytest.mark.parametrize("way", ["dictionary", "metadata", "chunks"])
def test_a_table_that_is_not_made_anew_is_noticed(way, tmp_path, monkeypatch):
    def leaky(batches: Any) -> pa.Table:
        table = pa.Table.from_batches(batches)
        if way == "metadata":
            return boundary.public_table(batches).replace_schema_metadata(
                {"input": str(seen_tables[-1])}
            )
        if way == "chunks":
            cut = seen_tables[-1]["v"].chunk(0)
            whole = boundary.public_table(batches)
            return pa.concat_tables([whole.slice(0, len(cut)), whole.slice(len(cut))])
        return table

    seen_tables: list[Any] = []
    sources = run_module._source

    def seen(data: Any, *rest: Any, **others: Any) -> Any:
        seen_tables.append(data)
        return sources(data, *rest, **others)

    monkeypatch.setattr(run_module, "_source", seen)
    monkeypatch.setattr(run_module, "public_table", leaky)
    kind = pa.dictionary(pa.int32(), pa.string())
    assert differences(kind, FIRST[tp.BlockShuffle].mechanism, tmp_path)
