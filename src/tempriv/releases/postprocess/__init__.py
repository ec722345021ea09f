"""What may be done with a release afterwards, for nothing: it sees the release and nothing else.

Whatever is computed from a release alone keeps its guarantee (post-processing), and wins no budget
back. Each function gives a new release whose description says what was done, so that whoever has
the file before it can repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.data.arrow import from_numpy
from tempriv.data.files import checksum
from tempriv.errors import TemprivError, require
from tempriv.privacy import serialization
from tempriv.releases.postprocess.consistency import (
    ColumnTotals,
    SeriesTotals,
    WindowTotals,
    totals,
)
from tempriv.releases.postprocess.steps import (
    Monotone,
    NonNegative,
    RoundTo,
    Smooth,
    Step,
    Values,
    floats_of,
)
from tempriv.releases.release import Release, read
from tempriv.releases.wording import reworded

NOTE = (
    "All of this was computed from the release alone: the guarantee holds as before, and no budget "
    "is won back by it."
)

STEPS: tuple[type, ...] = (
    Smooth,
    RoundTo,
    NonNegative,
    Monotone,
    ColumnTotals,
    SeriesTotals,
    WindowTotals,
)


def apply(release: Release, steps: Sequence[Step]) -> Release:
    """A new release, after some steps in this order; the old one stays as it is.

    Guarantees:
        - the guarantee, the id and the ledger's receipt are those of the release;
        - nothing but the release is looked at, and the description lists what was done.
    """
    values = Values.of(release)
    for step in steps:
        step.change(values)
    table = release.table
    for name, column in values.columns.items():
        made = from_numpy(column, pa.float64(), np.isnan(column))
        table = table.set_column(table.column_names.index(name), name, made)
    about = {key: value for key, value in release.about.items() if key != "output"}
    if "after" not in about:
        about["before"] = release.about.get("output")
    about["after"] = [
        *about.get("after", []),
        *({"step": serialization.encode(step), "sentence": step.sentence} for step in steps),
    ]
    about["after_note"] = NOTE
    return Release(about, table, release.kind)


def smooth(
    release: Release,
    *,
    window: int | None = None,
    weight: float | None = None,
    columns: Sequence[str] | None = None,
) -> Release:
    """Moving average over ``window`` steps, or exponential with ``weight`` for each new value.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> noisy = release(np.ones(50), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> calm = smooth(noisy, window=5)
    >>> bool(calm.values.std() < noisy.values.std()), calm.guarantee == noisy.guarantee
    (True, True)
    """
    return apply(release, [Smooth(window=window, weight=weight, columns=_tuple(columns))])


def round_to(release: Release, step: float, *, columns: Sequence[str] | None = None) -> Release:
    """The nearest multiples of a step."""
    return apply(release, [RoundTo(step=step, columns=_tuple(columns))])


def non_negative(release: Release, *, columns: Sequence[str] | None = None) -> Release:
    """Zero instead of anything below it; this shifts averages upwards."""
    return apply(release, [NonNegative(columns=_tuple(columns))])


def monotone(
    release: Release, *, decreasing: bool = False, columns: Sequence[str] | None = None
) -> Release:
    """The nearest series that never fall, for running counts (or never rise)."""
    return apply(release, [Monotone(decreasing=decreasing, columns=_tuple(columns))])


def consistent_totals(
    release: Release,
    total: str,
    *,
    parts: Sequence[str] | None = None,
    window: int | None = None,
    columns: Sequence[str] | None = None,
) -> Release:
    """Make a released total the sum of its released parts, by least squares.

    ``total`` is a column and ``parts`` are others; or, with a window, ``parts`` is one column and
    the total holds its sums over that many steps; or, without parts, ``total`` is the id of the
    series that is the sum of all others, in all ``columns`` or these. Columns are weighted by how
    noisy they are.
    """
    return apply(release, [totals(total, parts, window, _tuple(columns))])


def _tuple(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    return (columns,) if isinstance(columns, str) else tuple(columns)


def read_untouched(path: Path) -> Release:
    """A release from its files, if the table is the one that its description was written for."""
    release = read(path)
    require(
        checksum(path) == release.about["output"].get("blake2b"),
        f"{path}: was changed since it was released; what is made of it would vouch for that",
        TemprivError,
    )
    return release


def steps_of(about: dict[str, Any]) -> list[Step]:
    """The steps that a description lists; what it says of them must be what they say."""
    listed = about["after"]
    require(isinstance(listed, list) and bool(listed), "after: not a list of steps", TemprivError)
    steps: list[Step] = []
    for entry in listed:
        sound = isinstance(entry, dict) and entry.keys() == {"step", "sentence"}
        require(sound, "after: not a list of steps", TemprivError)
        step = serialization.decode(entry["step"], STEPS)
        require(isinstance(step, STEPS), "after: not a list of steps", TemprivError)
        require(
            entry["sentence"] == step.sentence, f"not what the step does: {step!r}", TemprivError
        )
        steps.append(step)
    require(
        reworded(about.get("after_note")) == NOTE, "after_note: not as it should be", TemprivError
    )
    return steps


def repeated(path: Path, about: dict[str, Any]) -> bool | None:
    """Whether the steps give the file again from the one before; None if that is not at hand."""
    before = about.get("before")
    if not isinstance(before, dict):
        return None
    first = path.with_name(Path(str(before.get("file"))).name)
    if not first.exists() or checksum(first) != before.get("blake2b"):
        return None
    again, found = apply(read(first), steps_of(about)), read(path)
    return again.table.column_names == found.table.column_names and all(
        np.array_equal(
            floats_of(again.table.column(name)), floats_of(found.table.column(name)), equal_nan=True
        )
        for name in about["columns"]["values"]
    )
