"""The made-up tables as CSV files."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tempriv.data.files import follow_umask, write_durably
from tempriv.datasets import METERS
from tempriv.datasets.homes import homes
from tempriv.datasets.visits import visits
from tempriv.errors import DataError, require


@dataclass(frozen=True)
class Example:
    """A made-up table.

    Parameters:
        file: its name as a file.
        holds: what it holds, in a line.
        content: makes the content of the file.
    """

    file: str
    holds: str
    content: Callable[[], bytes]


def as_csv(table: pa.Table) -> bytes:
    """A ``table`` as CSV; its texts need no quotes."""
    from pyarrow import csv

    out = io.BytesIO()
    out.write((",".join(table.column_names) + "\n").encode())
    csv.write_csv(table, out, csv.WriteOptions(include_header=False, quoting_style="none"))
    return out.getvalue()


EXAMPLES = (
    Example(
        "meters.csv",
        "hourly readings of 6 homes over 4 weeks (home, time, energy_kWh)",
        METERS.read_bytes,
    ),
    Example(
        "homes.csv",
        "hourly readings of 600 homes over 4 weeks (home, time, kWh, heating, region)",
        lambda: as_csv(homes()),
    ),
    Example(
        "visits.csv",
        "visits of 5,000 people to a clinic over 4 weeks (card, entered, ward, reason)",
        lambda: as_csv(visits()),
    ),
)


def write_examples(folder: Path) -> list[Path]:
    """Write all made-up tables; files that are there with the same content stay as they are.

    Parameters:
        folder: where to; it is made if it is missing.

    Raises:
        DataError: if a file of that name holds something else; then none is written.
    """
    require(folder.is_dir() or not folder.exists(), f"{folder}: a file; name a folder", DataError)
    contents = {folder / example.file: example.content() for example in EXAMPLES}
    there = {path for path in contents if path.exists()}
    for path in there:
        require(
            path.is_file() and path.read_bytes() == contents[path],
            f"{path}: exists already and is not the made-up table; choose another folder",
            DataError,
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path in contents.keys() - there:
        write_durably(path, contents[path])
        follow_umask(path)
    return list(contents)
