"""Readings as entries of Redis streams: fields are columns, and all of them text.

An empty field is a missing value. An entry that has none of the columns of values is no reading.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from typing import Any

from tempriv.streaming.batch import Batch, batch_from_records
from tempriv.streaming.csv_reader import parse_batch
from tempriv.streaming.records import Record, RecordFormat

Entry = tuple[bytes, list[bytes]]
"""An id, and names and cells in turn."""


def batch_of_entries(record_format: RecordFormat, entries: Sequence[Entry]) -> Batch:
    """The readings of some ``entries`` in a ``record_format``."""
    fast = _in_columns(record_format, entries)
    if fast is not None and not fast.unreadable:
        return fast
    readings: list[Record] = []
    aside: list[str] = []
    for _, fields in entries:
        try:
            readings.append(_reading(record_format, fields))
        except (ValueError, TypeError, KeyError, OverflowError):
            aside.append(json.dumps(_record(fields, "replace")))
    return batch_from_records(readings, len(record_format.values), record_format.exact, aside)


def _in_columns(record_format: RecordFormat, entries: Sequence[Entry]) -> Batch | None:
    """Entries that all have the same fields, without a letter that CSV would quote, as CSV."""
    names = entries[0][1][::2]
    columns = [name.decode(errors="replace") for name in names]
    needed = {*record_format.shown, *record_format.values}
    if not needed <= set(columns) or len(set(columns)) < len(columns):
        return None
    if any(fields[::2] != names for _, fields in entries):
        return None
    text = b"\n".join([b",".join(fields[1::2]) for _, fields in entries]) + b"\n"
    commas = len(entries) * (len(names) - 1)
    if text.count(b",") != commas or text.count(b"\n") != len(entries):
        return None
    if b'"' in text or b"\r" in text:
        return None
    record_format.columns = columns
    return parse_batch(record_format, text)


def _record(fields: Sequence[bytes], errors: str) -> dict[str, str]:
    texts = [field.decode(errors=errors) for field in fields]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _reading(record_format: RecordFormat, fields: Sequence[bytes]) -> Record:
    record: dict[str, Any] = _record(fields, "strict" if record_format.exact else "replace")
    if not any(name in record for name in record_format.values):
        raise KeyError
    return record_format.reading({name: cell or None for name, cell in record.items()})


def rows_of(data: bytes) -> list[list[bytes]]:
    """The cells of the lines of CSV in ``data``, a missing value as no letters."""
    if b'"' not in data:
        return [line.split(b",") for line in data.split(b"\n")[:-1]]
    text = io.StringIO(data.decode(), newline="")
    return [[cell.encode() for cell in row] for row in csv.reader(text, strict=True)]


def text_of(value: Any) -> str:
    """A ``value`` of Redis as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def order_of(entry_id: Any) -> tuple[int, int]:
    """The two numbers of an ``entry_id``, by which ids are in order."""
    first, _, second = text_of(entry_id).partition("-")
    return int(first), int(second)


def digest_of(cells: Sequence[bytes]) -> str:
    """A digest of an entry's ``cells``, to recognize it by."""
    sized = b"".join(b"%d:%b" % (len(cell), cell) for cell in cells)
    return hashlib.blake2b(sized, digest_size=16).hexdigest()
