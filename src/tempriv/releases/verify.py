"""Rechecks a release from its files alone: nothing private is needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from tempriv.data.arrow import kind_name
from tempriv.data.files import checksum
from tempriv.data.series import EMPTY, RELEASED, REPEATED, STATUSES
from tempriv.errors import TemprivError
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms import registry
from tempriv.mechanisms.domains import Derived, Integers, Locations, Numbers, OpaqueRows
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.mechanisms.perturb import errors_of
from tempriv.mechanisms.reorder.backward_forward import Backward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.releases import postprocess
from tempriv.releases.description import METADATA_KEY, read_about
from tempriv.releases.release import not_protected, read_table
from tempriv.releases.wording import reworded

ROUNDED = 6e-8  # degrees; places are written to seven decimals


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    what: str
    good: bool
    found: str


def verify(path: Path, ledger: Ledger | None = None) -> list[Check]:
    """Recompute everything about a release that can be, and compare it with what it says.

    Parameters:
        path: the released file.
        ledger: a ledger to look its charge up in.

    Returns:
        What was looked at, and whether it was right.

    >>> import tempfile
    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> released = release(np.ones(4), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     all(check.good for check in verify(released.write(Path(folder) / "out.csv")))
    True
    """
    about = read_about(path)
    checks = [checksum_check(path, about)]
    try:
        mechanism = registry.decode(about["mechanism"])
        stated = guarantees.decode(about["guarantee"])
        published = guarantees.decode(about["published"])
    except TemprivError as problem:
        return [*checks, Check("the description can be read", False, str(problem))]
    if not isinstance(stated, (Guarantee, NoGuarantee)) or not isinstance(published, Published):
        return [*checks, Check("the description can be read", False, "not a guarantee")]
    true = mechanism.guarantee
    same = stated == true or isinstance(stated, NoGuarantee)
    checks.append(
        Check("the guarantee follows from the mechanism", same, stated.sentence)
        if same
        else Check(
            "the guarantee follows from the mechanism",
            False,
            f"stated: {stated.sentence} true: {true.sentence}",
        )
    )
    checks.append(
        Check(
            "the published claim is quoted right",
            reworded(about["published"]) == reworded(serialization.encode(mechanism.published)),
            mechanism.published.sentence,
        )
    )
    checks.append(_told(about, mechanism, stated))
    if isinstance(stated, NoGuarantee):
        checks.append(Check("something is guaranteed", False, stated.reason))
    checks += _table(path, about, mechanism)
    if "after" in about:
        checks.append(_after(path, about))
    checks.append(_receipt(about, ledger))
    return checks


def _told(about: dict[str, Any], mechanism: Any, stated: Any) -> Check:
    """What is written for people is what follows from the settings."""
    names = about["columns"]["values"]
    errors = [
        {"column": name, "error": error, "measure": mechanism.error_name}
        for name, error in zip(names, errors_of(mechanism, len(names)), strict=False)
    ]
    same = (
        reworded(about["sentence"]) == reworded(stated.sentence)
        and reworded(about["expected_error"]) == reworded(errors)
        and reworded(about["not_protected"]) == reworded(not_protected(about))
    )
    return Check(
        "the expected error and what is not protected are told right",
        same,
        ", ".join(f"{e['column']} {e['error']:.4g}" for e in errors),
    )


def checksum_check(path: Path, about: dict[str, Any]) -> Check:
    """Whether the file at ``path`` has the checksum in ``about``."""
    found, stated = checksum(path), about.get("output", {}).get("blake2b")
    return Check("the file is the one that was written", found == stated, f"blake2b {found[:16]}…")


def _table(path: Path, about: dict[str, Any], mechanism: Any) -> list[Check]:
    try:
        table = read_table(path, about)
    except TemprivError as refusal:
        return [Check("the table can be read", False, str(refusal))]
    values = [table.column(name) for name in about["columns"]["values"]]
    checks = [
        Check(
            "the number of rows is as described",
            table.num_rows == about["rows"],
            f"{table.num_rows:,} rows",
        )
    ]
    column = about["columns"]["series"]
    series = 1 if column is None else len(table.column(column).unique())
    checks.append(
        Check(
            "the number of series is as described", series == about["series"], f"{series:,} series"
        )
    )
    form = without_landmarks(mechanism.domain)
    if form.columns not in (None, len(values)):
        return [*checks, Check("the columns fit the mechanism", False, f"{len(values)} columns")]
    if isinstance(form, OpaqueRows) or "types" in about["columns"]:
        checks.append(_types(table, about, isinstance(form, OpaqueRows)))
    if form.categories is not None:
        known = all(
            set(column.unique().to_pylist()) <= {*names, None}
            for column, names in zip(values, form.categories, strict=True)
        )
        checks.append(Check("every value is one of the categories", known, "checked all"))
    elif isinstance(form, Locations):
        places = np.stack([column.drop_null().to_numpy() for column in values], axis=1)
        back = form.from_grid(form.to_grid(places))
        near = bool((np.abs(back - places) < ROUNDED).all())
        checks.append(Check("every place lies on the lattice", near, f"grid {form.grid:g} meters"))
    elif isinstance(form, (Derived, Numbers)) and "after" not in about:
        steps = [np.asarray(c.drop_null()) / g for c, g in zip(values, form.grids, strict=True)]
        whole = all(bool((step == np.rint(step)).all()) for step in steps)
        checks.append(
            Check(
                "every value lies on the public grid",
                whole,
                f"grid {', '.join(f'{g:g}' for g in form.grids)}",
            )
        )
    if mechanism.has_status or "status" in about["columns"]:
        checks += _status(table, about, mechanism)
    if path.suffix.lower() == ".parquet":
        inside = json.loads(
            (pyarrow.parquet.read_schema(path).metadata or {}).get(METADATA_KEY, b"{}")
        )
        same = all(about.get(k) == v for k, v in inside.items() if k != "ledger") and bool(inside)
        checks.append(
            Check("the file carries the same description inside", same, "Parquet metadata")
        )
    return checks


def _status(table: pa.Table, about: dict[str, Any], mechanism: Any) -> list[Check]:
    """The statuses are such as the mechanism gives, and fit the values beside them."""
    what, name = "every row says what it is", about["columns"].get("status")
    if not mechanism.has_status or name not in table.column_names:
        return [Check(what, False, "the mechanism and the file disagree on a column of statuses")]
    words = pa.array(STATUSES, pa.string())
    codes = pa.compute.index_in(table.column(name).cast(pa.string()), value_set=words)
    known = np.asarray(codes.fill_null(-1).to_numpy(), dtype=np.int64)
    if (known < 0).any():
        return [Check(what, False, f"{np.count_nonzero(known < 0):,} are none of the three words")]
    counts = np.bincount(known, minlength=len(STATUSES)).tolist()
    found = ", ".join(f"{n:,} {word}" for n, word in zip(counts, STATUSES, strict=True))
    if "after" in about:  # values are others since then
        return [Check(what, True, found)]
    if isinstance(mechanism.domain, OpaqueRows):
        return [Check(what, _moved(table, about, mechanism, known), found)]
    columns = [table.column(column) for column in about["columns"]["values"]]
    new = np.diff(_series(table, about), prepend=-1) != 0
    if mechanism.domain.latency:
        return [Check(what, _ends_are_empty(known, new), found)]
    if isinstance(mechanism, SparseVector):
        bits = np.asarray(columns[0].to_numpy(), dtype=np.float64)
        good = bool(np.isin(bits[~np.isnan(bits)], (0.0, 1.0)).all())
        checks = [Check("every alert is 0 or 1", good, f"{int(np.nansum(bits == 1)):,} alerts")]
        return [*checks, Check(what, _ends(bits, known, new, mechanism.most), found)]
    return [Check(what, _repeats(columns, known, new), found)]


def _ends_are_empty(status: Integers, new: Any) -> bool:
    """Curves have their ends on the first and the last row of a series, which do not come out."""
    last = np.append(new[1:], True)[: len(new)]
    return bool(((status == EMPTY) == (new | last)).all() and (status != REPEATED).all())


def _series(table: pa.Table, about: dict[str, Any]) -> Integers:
    """The series of each row, as numbers."""
    name = about["columns"]["series"]
    if name is None:
        return np.zeros(table.num_rows, dtype=np.int64)
    return _codes(table.column(name))


def _codes(column: Any) -> Integers:
    """A number for each value, the same for the same; nulls are one of them."""
    whole = pa.chunked_array(column).combine_chunks()
    try:
        coded = whole.dictionary_encode(null_encoding="encode")
    except pa.ArrowException:  # values made of others
        return _codes(pa.array([None if one is None else repr(one) for one in whole.to_pylist()]))
    return np.asarray(coded.indices, dtype=np.int64)


def _types(table: pa.Table, about: dict[str, Any], moved: bool) -> Check:
    """Columns that were moved as they are have the types that are told."""
    names, told = about["columns"]["values"], about["columns"].get("types")
    found = [kind_name(table.column(name).type) for name in names]
    return Check(
        "the values have the types that are described",
        moved and (told == found or ("after" in about and isinstance(told, list))),
        ", ".join(f"{name} {kind}" for name, kind in zip(names, found, strict=True)),
    )


def _moved(table: pa.Table, about: dict[str, Any], mechanism: Any, status: Integers) -> bool:
    """Empty rows hold nothing and stand where there can be such; others repeat only if allowed."""
    values = [table.column(name) for name in about["columns"]["values"]]
    empty = status == EMPTY
    if any(not np.asarray(column.is_null())[empty].all() for column in values):
        return False
    series = _series(table, about)
    order = np.argsort(series, kind="stable")
    counts = np.bincount(series)
    step = np.empty(len(series), dtype=np.int64)  # within its series
    step[order] = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
    places, exactly = empty_rows(mechanism)
    if places is not None:
        seen = np.bincount(series[empty], minlength=len(counts))
        least, most = (0, places) if exactly is None else (exactly, exactly)
        if (step[empty] >= places).any() or (seen > most).any():
            return False
        if (seen[counts >= places] < least).any():
            return False
    if not isinstance(mechanism, Backward):
        return not (status == REPEATED).any()
    return _were_there(values, series, step, status, mechanism.window)


def empty_rows(mechanism: Any) -> tuple[int | None, int | None]:
    """Of a ``mechanism``: in how many first rows empty ones can be, and how many there are then.

    They are those of readings from before the series, as if it had begun long ago. None where that
    is not certain: a reading that is dropped, or overwritten, leaves an empty row anywhere.

    >>> empty_rows(Threshold(epsilon=5.0, window=10, threshold=7))
    (9, 3)
    """
    if isinstance(mechanism, (BlockShuffle, NoisyOrder)):
        return 0, 0
    if isinstance(mechanism, Backward):
        return mechanism.window - 1, None
    if isinstance(mechanism, (Threshold, DualThreshold)) and not mechanism.extended:
        window, free = mechanism.window, mechanism.free
        return window - 1, window - free if isinstance(mechanism, Threshold) else free - 1
    return None, None


def _were_there(
    values: list[Any], series: Integers, step: Integers, status: Integers, window: int
) -> bool:
    """A repeated row is like one that came out before, less than a window ago."""
    alike = series
    for column in values:
        codes = _codes(column)
        alike = np.unique(alike * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    rows = np.flatnonzero(status != EMPTY)
    rows = rows[np.lexsort((step[rows], alike[rows]))]
    same = np.diff(alike[rows], prepend=-1) == 0
    near = np.diff(step[rows], prepend=-window) < window
    return bool((same & near)[status[rows] == REPEATED].all())


def _ends(bits: npt.NDArray[Any], status: npt.NDArray[Any], new: Any, most: int) -> bool:
    """Rows are empty from the last alert of their series on, and none before that."""
    alerts = np.cumsum(bits == 1)
    before = np.concatenate(([0], alerts[:-1]))
    # how many of them were before the series began
    start = np.maximum.accumulate(np.where(new, before, 0))
    over = before - start >= most
    expected = np.where(over, EMPTY, RELEASED)
    return bool((status == expected).all() and np.isnan(bits[over]).all())


def _repeats(columns: list[Any], status: Integers, new: Any) -> bool:
    """Nothing is empty, and what is repeated is the last value of its series, if there was one."""
    present = np.stack([np.asarray(column.is_valid()) for column in columns], axis=1)
    if (status == EMPTY).any() or not present[status == REPEATED].any(axis=1).all():
        return False
    rows = np.arange(len(status))
    start = np.maximum.accumulate(np.where(new, rows, 0))
    for column, known in zip(columns, present.T, strict=True):
        codes = _codes(column)  # numbers or categories
        last = np.maximum.accumulate(np.where(known, rows, -1))
        before = np.concatenate(([-1], last[:-1]))
        again = (status == REPEATED) & known & (before >= start)
        if (codes[again] != codes[before[again]]).any():
            return False
    return True


def _after(path: Path, about: dict[str, Any]) -> Check:
    """What was done afterwards is told right, and repeated where the file before is at hand."""
    what = "what was done afterwards is told right"
    try:
        steps, same = postprocess.steps_of(about), postprocess.repeated(path, about)
    except TemprivError as problem:
        return Check(what, False, str(problem))
    said = f"{len(steps)} step{'s'[: len(steps) != 1]}"
    if same is None:
        return Check(what, True, f"{said}; the file before is not at hand to repeat them")
    again = "repeated, with the same values" if same else "repeated, with OTHER values"
    return Check(what, same, f"{said}, {again}")


def _receipt(about: dict[str, Any], ledger: Ledger | None) -> Check:
    what, receipt = "the ledger knows of it", about.get("ledger")
    if receipt is None:
        return Check(what, True, "not charged to a ledger, and says so")
    if ledger is None:
        return Check(what, True, "no ledger at hand to compare the receipt with")
    state = ledger.state_of(about["release"])
    found = {
        "done": "charged and complete",
        "prepared": "charged, not yet marked complete",
        None: "the ledger at hand has no such charge",
    }[state]
    return Check(what, state is not None, found)


def as_json(checks: list[Check]) -> list[Any]:
    """The ``checks`` as JSON values."""
    return [serialization.encode(check) for check in checks]
