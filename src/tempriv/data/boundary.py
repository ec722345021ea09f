"""The public-output boundary: what is handed out is made anew from its values alone.

A column tells more than its values. A dictionary holds its words in the order in which they came,
also those that stand in no row; a view or a slice carries all letters of the column it was cut
from; below a null lies what stood there before; metadata, a mask or the base of an array refer to
the input. So everything that leaves passes ``public_table``, ``public_batch`` or ``public_array``,
which build it again: two outputs with equal values have equal bytes, whatever was read.

What is private here is the input's layout. The values themselves come from the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tempriv.data.arrow import decoded, nulls

Flags = npt.NDArray[np.bool_]

CHUNK_ROWS = 1 << 20
"""Rows of a chunk of a table that is handed out."""


def public_array(values: npt.NDArray[Any], missing: Flags | None = None) -> npt.NDArray[Any]:
    """Return a copy of ``values`` with memory of its own, zero where they are ``missing``.

    >>> both = np.array([[1.0, 9.0], [2.0, 8.0]])
    >>> public_array(both[:, 0]).base is None
    True
    """
    copy = np.array(values, copy=True, order="C")
    if missing is not None and copy.dtype != object:
        copy[missing] = 0
    return copy


def public_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a ``batch``, made anew; dictionaries in the order of its rows."""
    columns = [_public(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def public_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows of ``batches`` as one table, made anew.

    Chunks have ``CHUNK_ROWS`` rows, however the input was cut, and each column has one dictionary,
    in the order of its rows.

    >>> words = pa.array(["b", "a", "b"]).dictionary_encode().take([2, 1])
    >>> batch = pa.RecordBatch.from_arrays([words.take([1, 0])], names=["v"])
    >>> public_table([batch])["v"].chunk(0).dictionary.to_pylist()
    ['a', 'b']
    """
    table = pa.Table.from_batches(batches)
    columns = []
    for column in table.columns:
        if _has_dictionary(column.type):
            # a dictionary goes through all chunks, so it is made for the column as a whole
            chunks = [_public(column.combine_chunks(), encoded=False)]
        else:
            parts = [column.slice(first, CHUNK_ROWS) for first in range(0, len(column), CHUNK_ROWS)]
            chunks = [_public(_one(part)) for part in parts]
        plain_kind = chunks[0].type if chunks else column.type
        whole = pa.chunked_array(chunks, plain_kind)
        columns.append(_encoded(whole, column.type) if _is_dictionary(column.type) else whole)
    return pa.table(columns, names=table.column_names)


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks)


def _is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _has_dictionary(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    if _is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _encoded(column: Any, kind: pa.DataType) -> Any:
    """A ``column`` of words as a dictionary of this ``kind``, in the order of its rows.

    The order of an ordered dictionary is lost: it may be that in which the words came.
    """
    try:
        encoded = column.dictionary_encode()
    except pa.ArrowNotImplementedError:  # words that are lists or the like
        return column
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    made = [
        pa.DictionaryArray.from_arrays(
            chunk.indices.cast(kind.index_type), chunk.dictionary.cast(kind.value_type)
        )
        for chunk in chunks
    ]
    if not isinstance(encoded, pa.ChunkedArray):
        return made[0]
    return pa.chunked_array(made, pa.dictionary(kind.index_type, kind.value_type))


def _public(array: pa.Array, encoded: bool = True) -> pa.Array:
    """An ``array`` made anew; with ``encoded`` a dictionary stays one."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _public(array.storage))
    if _is_dictionary(kind):
        words = _public(decoded(array))
        return _encoded(words, kind) if encoded else words
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if pa.types.is_struct(kind):
        return _struct(array)
    if pa.types.is_union(kind):
        return _union(array)
    if pa.types.is_run_end_encoded(kind):
        return _public(pc.run_end_decode(array))  # row by row from here on
    if pa.types.is_fixed_size_list(kind):
        return _fixed_list(array)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return _list_view(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _list(array)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        large_kind = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        return _text(array.cast(large_kind)).cast(kind)
    if any(
        fits(kind)
        for fits in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    ):
        return _text(array)
    return _fixed_width(array)


def _bitmap(gone: Flags) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~gone, bitorder="little")) if gone.any() else None


def _nulls(array: pa.Array) -> Flags:
    """Which rows of an ``array`` are null, whatever its validity is kept in."""
    return nulls(array) if array.null_count else np.zeros(len(array), dtype=np.bool_)


def _fixed_width(array: pa.Array) -> pa.Array:
    """Numbers, times, truth values, bytes of one length: zero where they are null."""
    gone, bits = _nulls(array), array.type.bit_width
    data = np.frombuffer(array.buffers()[1] or b"", dtype=np.uint8)
    if bits == 1:
        flags = np.unpackbits(data, bitorder="little")[array.offset :][: len(array)].astype(bool)
        fresh = pa.py_buffer(np.packbits(flags & ~gone, bitorder="little"))
    else:
        width = bits // 8
        rows = data[array.offset * width : (array.offset + len(array)) * width]
        rows = rows.reshape(len(array), width).copy()
        rows[gone] = 0
        fresh = pa.py_buffer(rows)
    return pa.Array.from_buffers(array.type, len(array), [_bitmap(gone), fresh])


def _text(array: pa.Array) -> pa.Array:
    """Text or bytes, one after the other; a null has no letters."""
    gone = _nulls(array)
    if gone.any():
        array = pc.fill_null(array, b"" if "binary" in str(array.type) else "")
    dtype = np.int64 if str(array.type).startswith("large") else np.int32
    _, ends, letters = array.buffers()
    offsets = np.frombuffer(ends, dtype=dtype)[array.offset :][: len(array) + 1]
    if not len(offsets):
        offsets = np.zeros(1, dtype=dtype)
    text = memoryview(letters or b"")[int(offsets[0]) : int(offsets[-1])].tobytes()
    buffers = [_bitmap(gone), pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _list(array: Any) -> pa.Array:
    """Lists and maps; a null has no items."""
    kind, gone = array.type, _nulls(array)
    offsets = _integers(array, 1, pa.types.is_large_list(kind), 1)
    ends, items = _items(array, offsets[:-1], np.where(gone, 0, np.diff(offsets)))
    if pa.types.is_map(kind):
        mask = pa.array(gone) if gone.any() else None
        sides = items.field(0), items.field(1)
        return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), *sides, mask=mask)
    buffers = [_bitmap(gone), pa.py_buffer(ends.astype(offsets.dtype))]
    made = _with_items(kind, items.type)
    return pa.Array.from_buffers(made, len(array), buffers, children=[items])


def _list_view(array: Any) -> pa.Array:
    """Lists that may lie anywhere among all items: one after the other."""
    large = pa.types.is_large_list_view(array.type)
    gone = _nulls(array)
    lengths = np.where(gone, 0, _integers(array, 2, large))
    ends, items = _items(array, _integers(array, 1, large), lengths)
    width = np.int64 if large else np.int32
    places = [pa.py_buffer(each.astype(width)) for each in (ends[:-1], lengths)]
    made = _with_items(array.type, items.type)
    return pa.Array.from_buffers(made, len(array), [_bitmap(gone), *places], children=[items])


def _integers(array: pa.Array, number: int, large: bool, more: int = 0) -> npt.NDArray[Any]:
    """The integers in a buffer, one for each row and so many ``more``."""
    kind = np.int64 if large else np.int32
    data = np.frombuffer(array.buffers()[number] or b"", dtype=kind)
    return data[array.offset :][: len(array) + more]


def _items(array: Any, first: Any, lengths: Any) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Where the items of each row end, and the items, one row after the other."""
    ends = np.zeros(len(array) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    places = np.repeat(first.astype(np.int64) - ends[:-1], lengths) + np.arange(int(ends[-1]))
    return ends, _public(_all_items(array).take(pa.array(places)))


def _with_items(kind: Any, items: Any) -> pa.DataType:
    """A ``kind`` of lists, for items whose type may have lost its dictionary."""
    make = {
        pa.types.is_large_list: pa.large_list,
        pa.types.is_list_view: pa.list_view,
        pa.types.is_large_list_view: pa.large_list_view,
    }
    field = pa.field(kind.value_field.name, items)
    return next((to for fits, to in make.items() if fits(kind)), pa.list_)(field)


def _all_items(array: Any) -> pa.Array:
    """The items of lists or maps, all of them, whether a row shows them or not."""
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return array.values


def _fixed_list(array: Any) -> pa.Array:
    """Lists of one length; a null has null items."""
    gone, width = _nulls(array), array.type.list_size
    first = array.offset * width
    rows = np.arange(len(array) * width).reshape(len(array), width) + first
    places = pa.array(rows.ravel(), mask=np.repeat(gone, width))
    items = _public(array.values.take(places))
    kind = pa.list_(pa.field(array.type.value_field.name, items.type), width)
    return pa.Array.from_buffers(kind, len(array), [_bitmap(gone)], children=[items])


def _struct(array: Any) -> pa.Array:
    """Records; a null has null members."""
    gone, kind = _nulls(array), array.type
    members = [_public(member) for member in array.flatten()]
    names = [kind.field(i).name for i in range(kind.num_fields)]
    fields = [pa.field(name, m.type) for name, m in zip(names, members, strict=True)]
    made = pa.struct(fields)
    return pa.Array.from_buffers(made, len(array), [_bitmap(gone)], children=members)


def _union(array: Any) -> pa.Array:
    """Values of several types, each member with those rows alone that it gives."""
    kind = array.type
    codes = np.frombuffer(array.buffers()[1] or b"", dtype=np.int8)[array.offset :][: len(array)]
    dense = kind.mode == "dense"
    rows = np.arange(len(array))
    places = _integers(array, 2, large=False) if dense else rows
    fresh_places = np.zeros(len(array), dtype=np.int32)
    members = []
    for i, code in enumerate(kind.type_codes):
        own = codes == code
        if dense:
            fresh_places[own] = np.arange(own.sum())
            wanted = pa.array(places[own].astype(np.int64))
        else:
            wanted = pa.array(rows, mask=~own)
        members.append(_public(array.field(i).take(wanted)))
    names = [kind.field(i).name for i in range(kind.num_fields)]
    types = pa.array(codes.copy(), pa.int8())
    if dense:
        offsets = pa.array(fresh_places, pa.int32())
        return pa.UnionArray.from_dense(types, offsets, members, names, list(kind.type_codes))
    return pa.UnionArray.from_sparse(types, members, names, list(kind.type_codes))
