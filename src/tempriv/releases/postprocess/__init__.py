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
from tempriv.releases.description import without_file
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

    Parameters:
        release: the release, which stays as it is.
        steps: what is done, in this order.

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
    about = without_file(release.about)
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
    """Take a moving average, or one that forgets exponentially.

    Parameters:
        release: a release of numbers.
        window: how many steps are averaged.
        weight: the weight of each new value instead, between 0 and 1.
        columns: the value columns; all by default.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> noisy = release(np.ones(50), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> calm = smooth(noisy, window=5)
    >>> bool(calm.values.std() < noisy.values.std()), calm.guarantee == noisy.guarantee
    (True, True)
    """
    return apply(release, [Smooth(window=window, weight=weight, columns=_tuple(columns))])


def round_to(release: Release, step: float, *, columns: Sequence[str] | None = None) -> Release:
    """Round to the nearest multiples of a step.

    Parameters:
        release: a release of numbers.
        step: the step, such as 0.5.
        columns: the value columns; all by default.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> noisy = release(np.ones(50), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> bool((round_to(noisy, 0.5).values % 0.5 == 0).all())
    True
    """
    return apply(release, [RoundTo(step=step, columns=_tuple(columns))])


def non_negative(release: Release, *, columns: Sequence[str] | None = None) -> Release:
    """Put zero instead of anything below it; this shifts averages upwards.

    Parameters:
        release: a release of numbers.
        columns: the value columns; all by default.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> noisy = release(np.zeros(50), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> bool((non_negative(noisy).values >= 0).all())
    True
    """
    return apply(release, [NonNegative(columns=_tuple(columns))])


def monotone(
    release: Release, *, decreasing: bool = False, columns: Sequence[str] | None = None
) -> Release:
    """Find the nearest series that never fall, for running counts (or never rise).

    Parameters:
        release: a release of numbers.
        decreasing: whether series never rise instead.
        columns: the value columns; all by default.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> noisy = release(np.arange(50), Laplace(epsilon=1.0, bounds=(0, 50)))
    >>> bool((np.diff(monotone(noisy).values) >= 0).all())
    True
    """
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

    Columns are weighted by how noisy they are.

    Parameters:
        release: a release of numbers.
        total: the column of totals; without parts, the id of the series that is the sum of all
            others.
        parts: the columns that it is the sum of.
        window: the total holds sums of the one part over so many steps.
        columns: without parts: the value columns; all by default.
    """
    return apply(release, [totals(total, parts, window, _tuple(columns))])


def is_kept(path: Path, about: dict[str, Any], step: Step) -> bool | None:
    """Whether a step that changes nothing the second time would change nothing of a file.

    Parameters:
        path: the released file.
        about: its description.
        step: what was done to it last.

    Returns:
        None for a step that does not show: an average can be any number.
    """
    if not step.settles:
        return None
    values = Values.of(Release(about, read(path).table))
    before = {name: column.copy() for name, column in values.columns.items()}
    step.change(values)
    return all(
        np.allclose(values.columns[name], column, rtol=1e-9, atol=1e-9, equal_nan=True)
        for name, column in before.items()
    )


def _tuple(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    return (columns,) if isinstance(columns, str) else tuple(columns)


def read_untouched(path: Path) -> Release:
    """The release at ``path``, if its table is the one that its description was written for."""
    release = read(path)
    require(
        checksum(path) == release.about["output"].get("blake2b"),
        f"{path}: was changed since it was released; what is made of it would vouch for that",
        TemprivError,
    )
    return release


def steps_of(about: dict[str, Any]) -> list[Step]:
    """The steps that ``about`` lists; what it says of them must be what they say."""
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
    """Whether the steps in ``about`` give the file at ``path`` again; None if it cannot be told."""
    before = about.get("before")
    if not isinstance(before, dict):
        return None
    first = path.with_name(Path(str(before.get("file"))).name)
    if not first.exists() or checksum(first) != before.get("blake2b"):
        return None
    repeat, released = apply(read(first), steps_of(about)), read(path)
    return repeat.table.column_names == released.table.column_names and all(
        np.array_equal(
            floats_of(repeat.table.column(name)),
            floats_of(released.table.column(name)),
            equal_nan=True,
        )
        for name in about["columns"]["values"]
    )
