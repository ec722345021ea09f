"""Rechecks a release from its files alone: nothing private is needed.

A check is ok, wrong, or not made, and then it says why. A forger who recomputes the checksum is
found by a signature, or by numbers that do not fit each other, and by nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tempriv.data.arrow import kind_name
from tempriv.data.clock import describe_tick
from tempriv.data.files import checksum
from tempriv.data.series import STATUSES
from tempriv.errors import TemprivError
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.checks import Check, ReleasedRows, codes_of
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.perturb import errors_of
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.releases.description import (
    EVIDENCE,
    METADATA_KEY,
    OF_THE_FILE,
    SIDECAR_SUFFIX,
    read_about,
    sidecar_path,
)
from tempriv.releases.evidence import STATED, evidence_of
from tempriv.releases.meaning import meaning_of
from tempriv.releases.release import read_table
from tempriv.releases.signature import signature_checks
from tempriv.releases.wording import reworded

CHANCE = 1e-12
"""With which a sound release has a value outside of what noise reaches."""


def verify(path: Path, ledger: Ledger | None = None, key: str | None = None) -> list[Check]:
    """Recompute everything about a release that can be, and compare it with what it says.

    Parameters:
        path: the released file.
        ledger: a ledger to look its charge up in.
        key: the public key of whoever should have signed it, as ``read_public_key`` gave it.

    Returns:
        What was looked at and whether it was right, and what was not looked at and why.

    >>> import tempfile
    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> from tempriv.releases.run import release
    >>> released = release(np.ones(4), Laplace(epsilon=1.0, bounds=(0, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checks = verify(released.write(Path(folder) / "out.csv"))
    >>> [check.what for check in checks if check.wrong]
    []
    >>> [check.what for check in checks if check.state == "not checked"]
    ['the description is as it was signed', 'the signature is by the key at hand', \
'columns that follow from each other agree', 'the ledger knows of it']
    """
    about = read_about(path)
    checks = [checksum_check(path, about), *signature_checks(about, key)]
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
    sentence = stated.sentence if same else f"stated: {stated.sentence} true: {true.sentence}"
    checks.append(Check("the guarantee follows from the mechanism", same, sentence))
    checks.append(published_check(about, mechanism.published))
    checks.append(_texts_check(path, about, mechanism, stated))
    checks.append(
        evidence_check(
            about, lambda plain, stated, longest: evidence_of(plain, mechanism, stated, longest)
        )
    )
    if isinstance(stated, NoGuarantee):
        checks.append(Check("something is guaranteed", False, stated.reason))
    checks += _table(path, about, mechanism)
    checks += _after(path, about)
    checks.append(receipt_check(about, ledger))
    return checks


def _texts_check(
    path: Path, about: dict[str, Any], mechanism: Mechanism, stated: Guarantee | NoGuarantee
) -> Check:
    """What is written for people is what follows from the settings."""
    names = about["columns"]["values"]
    errors = [
        {"column": name, "error": error, "measure": mechanism.error_name}
        for name, error in zip(names, errors_of(mechanism, len(names)), strict=False)
    ]
    same = (
        _meaning_is_right(path, about, mechanism, stated)
        and reworded(about["expected_error"]) == reworded(errors)
        and reworded(about["not_protected"]) == reworded(mechanism.not_protected(about))
    )
    return Check(
        "what the guarantee means, the expected error and what is not protected are told right",
        same,
        ", ".join(f"{e['column']} {e['error']:.4g}" for e in errors),
    )


def _meaning_is_right(
    path: Path, about: dict[str, Any], mechanism: Mechanism, stated: Guarantee | NoGuarantee
) -> bool:
    """Whether what is said of a whole series and person follows from the guarantee and the table.

    Version 0.8.0 told the guarantee alone.
    """
    if about["format"] == 1 and "meaning" not in about:
        return bool(reworded(about["sentence"]) == reworded(stated.sentence))
    try:
        series = _series(read_table(path, about), about)
    except TemprivError:
        return True  # that it cannot be read is a check of its own
    true = meaning_of(mechanism, stated, int(np.bincount(series).max(initial=0)))
    return alike(about.get("meaning"), true) and about["sentence"] == true["headline"]


def alike(stated: Any, true: Any) -> bool:
    """Whether two JSON values are equal, but for the last digits of numbers.

    Parameters:
        stated: by a description.
        true: as it is recomputed.
    """
    if isinstance(true, dict):
        return (
            isinstance(stated, dict)
            and stated.keys() == true.keys()
            and all(alike(stated[name], true[name]) for name in true)
        )
    if isinstance(true, list):
        return (
            isinstance(stated, list) and len(stated) == len(true) and all(map(alike, stated, true))
        )
    if isinstance(true, float):
        number = isinstance(stated, (int, float))
        return number and math.isclose(stated, true, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == true)


def published_check(about: dict[str, Any], published: Published) -> Check:
    """Whether ``about`` quotes the claim that this version has as ``published``.

    The paper itself is not at hand, and the check says so.
    """
    same = reworded(about["published"]) == reworded(serialization.encode(published))
    return Check(
        "the published claim is as this version of tempriv has it",
        same,
        f"the paper itself was not looked up; {published.sentence}",
    )


def evidence_check(
    about: dict[str, Any], remade: Callable[[dict[str, Any], Any, Any], dict[str, Any]]
) -> Check:
    """What the description answers follows from it, but for what the curator states.

    Parameters:
        about: the description.
        remade: makes the evidence anew, of the description without it, of what the curator states,
            and of the length of the longest series.
    """
    what = "the evidence follows from the description"
    evidence = about.get(EVIDENCE)
    if evidence is None:
        return Check(what, None, "descriptions of format 1 have none")
    plain = {k: v for k, v in about.items() if k not in (EVIDENCE, "ledger", *OF_THE_FILE)}
    try:
        longest = evidence.get("longest_series")
        again = remade(plain, evidence.get(STATED, {}), longest)
    except (TemprivError, TypeError, ValueError, KeyError, AttributeError) as problem:
        return Check(what, False, f"cannot be read: {type(problem).__name__}")
    wrong = [name for name in again if reworded(again[name]) != reworded(evidence.get(name))]
    wrong += sorted(set(evidence) - set(again))
    told = f"what the curator states was not checked: {', '.join(again[STATED]) or 'nothing'}"
    return Check(what, not wrong, f"not so: {', '.join(wrong)}" if wrong else told)


def checksum_check(path: Path, about: dict[str, Any]) -> Check:
    """Whether the file at ``path`` has the checksum in ``about``, or whose it has."""
    digest, output = checksum(path), about["output"]
    what = "the file has the checksum of its description"
    if digest == output.get("blake2b"):
        return Check(what, True, f"blake2b {digest[:16]}…")
    other = _description_of(path, digest)
    found = f"the description is of another file, {output.get('file')!r}"
    if other is not None:
        return Check(what, False, f"{found}; that of this one is {other.name}: they were swapped")
    size = path.stat().st_size
    if output.get("file") != path.name or output.get("bytes") != size:
        found = (
            f"{size:,} bytes, where {output.get('file')!r} of {output.get('bytes')!r} bytes is "
            "described: the file was changed, or the description is of another file"
        )
        return Check(what, False, found)
    return Check(what, False, "the file was changed since, or the description is of another file")


def _description_of(path: Path, digest: str) -> Path | None:
    """The description beside another file in the folder that was written for this one."""
    for beside in sorted(path.parent.glob(f"*{SIDECAR_SUFFIX}")):
        if beside != sidecar_path(path) and beside.is_file():
            try:
                output = json.loads(beside.read_bytes())["output"]
                if output["blake2b"] == digest:
                    return beside
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
    return None


def _table(path: Path, about: dict[str, Any], mechanism: Mechanism) -> list[Check]:
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
    checks += [*_rows_checks(table, about), *_times_checks(table, about)]
    domain = mechanism.domain.released
    if domain.columns not in (None, len(values)):
        return [*checks, Check("the columns fit the mechanism", False, f"{len(values)} columns")]
    if domain.kind == "rows" or "types" in about["columns"]:
        checks.append(_types(table, about, domain.kind == "rows"))
    if "after" not in about or domain.kind != "numbers":
        checks.append(domain.check_values(values) or _not_on_a_grid(domain.kind))
    if domain.kind == "numbers" and "after" not in about:
        checks.append(_within_reach(values, mechanism, about))
    if mechanism.has_status or "status" in about["columns"]:
        checks += _status(table, about, mechanism)
    if path.suffix.lower() == ".parquet":
        inside = json.loads(
            (pyarrow.parquet.read_schema(path).metadata or {}).get(METADATA_KEY, b"{}")
        )
        varies = ("ledger", *OF_THE_FILE)
        same = all(about.get(k) == v for k, v in inside.items() if k not in varies) and bool(inside)
        checks.append(
            Check("the file carries the same description inside", same, "Parquet metadata")
        )
    return checks


def _rows_checks(table: pa.Table, about: dict[str, Any]) -> list[Check]:
    """The lengths of series are as the evidence has them."""
    longest = (about.get(EVIDENCE) or {}).get("longest_series")
    if longest is None:
        return []
    codes = _series(table, about)
    found = int(np.bincount(codes).max()) if len(codes) else 0
    what = "the longest series is as long as the evidence says"
    return [Check(what, found == longest, f"{found:,} rows")]


def _times_checks(table: pa.Table, about: dict[str, Any]) -> list[Check]:
    """The first and the last time are as described, and all lie on the grid."""
    what, names, times = "the times are as described", about["columns"]["time"], about["times"]
    if not names:
        return []
    ticks = _ticks(table.column(names[0])) if len(names) == 1 else None
    first, last, step = times.get("first"), times.get("last"), times.get("step")
    if ticks is None or not isinstance(first, int) or not isinstance(last, int):
        return [Check(what, None, "they are in a form that is not read here")]
    good = len(ticks) > 0 and int(ticks.min()) == first and int(ticks.max()) == last
    if times.get("grid") == "regular" and isinstance(step, int) and step > 0:
        good = good and not ((ticks - first) % step).any()
    if not good:
        return [Check(what, False, f"they are not from {first} to {last} in steps of {step}")]
    ends = [describe_tick(str(times.get("clock")), tick) for tick in (first, last)]
    return [Check(what, True, " to ".join(ends))]


def _ticks(column: pa.ChunkedArray) -> Integers | None:
    """Times as the clocks of tables count them; None for other types, and if one is missing."""
    if column.null_count:
        return None
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        return None
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def _not_on_a_grid(kind: str) -> Check:
    why = f"released {kind} come as they were: nothing public says what they can be"
    return Check("every value is one that can come out", None, why)


def _within_reach(values: list[Any], mechanism: Mechanism, about: dict[str, Any]) -> Check:
    """No value is farther off the bounds than noise ever takes one."""
    what = "no value lies beyond what noise reaches"
    ranges = mechanism.value_ranges(CHANCE / max(1, table_cells(values)))
    if ranges is None:
        return Check(what, None, "what the noise of this mechanism reaches is not known here")
    beyond = [
        name
        for name, column, (low, high) in zip(
            about["columns"]["values"], values, ranges, strict=True
        )
        if not _all_between(column, low, high)
    ]
    told = ", ".join(f"{low:.6g} to {high:.6g}" for low, high in ranges)
    found = f"{told}; a sound release has one outside with a chance of {CHANCE:g}"
    return Check(what, not beyond, f"beyond it: {', '.join(beyond)}; {found}" if beyond else found)


def table_cells(values: list[Any]) -> int:
    """How many cells the columns ``values`` have together."""
    return sum(len(column) for column in values)


def _all_between(column: Any, low: float, high: float) -> bool:
    numbers = np.asarray(column.drop_null())
    return bool(((numbers >= low) & (numbers <= high)).all())


def _status(table: pa.Table, about: dict[str, Any], mechanism: Mechanism) -> list[Check]:
    """The statuses are such as the mechanism gives, and fit the values beside them."""
    what, name = "every row says what it is", about["columns"].get("status")
    if not mechanism.has_status or name not in table.column_names:
        return [Check(what, False, "the mechanism and the file disagree on a column of statuses")]
    words = pa.array(STATUSES, pa.string())
    codes = pa.compute.index_in(table.column(name).cast(pa.string()), value_set=words)
    status = np.asarray(codes.fill_null(-1).to_numpy(), dtype=np.int64)
    if (status < 0).any():
        return [Check(what, False, f"{np.count_nonzero(status < 0):,} are none of the three words")]
    counts = np.bincount(status, minlength=len(STATUSES)).tolist()
    counted = ", ".join(f"{n:,} {word}" for n, word in zip(counts, STATUSES, strict=True))
    if "after" in about:  # values are others since then
        return [Check(what, True, counted)]
    columns = [table.column(column) for column in about["columns"]["values"]]
    rows = ReleasedRows(columns, status, _series(table, about))
    return [*mechanism.check_output(rows), Check(what, mechanism.status_fits(rows), counted)]


def _series(table: pa.Table, about: dict[str, Any]) -> Integers:
    """The series of each row, as numbers."""
    name = about["columns"]["series"]
    if name is None:
        return np.zeros(table.num_rows, dtype=np.int64)
    return codes_of(table.column(name))


def _types(table: pa.Table, about: dict[str, Any], moved: bool) -> Check:
    """Columns that were moved as they are have the types that are described."""
    names, described = about["columns"]["values"], about["columns"].get("types")
    types = [kind_name(table.column(name).type) for name in names]
    return Check(
        "the values have the types that are described",
        moved and (described == types or ("after" in about and isinstance(described, list))),
        ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True)),
    )


def _after(path: Path, about: dict[str, Any]) -> list[Check]:
    """What was done afterwards is told right, and gives these values."""
    agree = "columns that follow from each other agree"
    if "after" not in about:
        return [Check(agree, None, "no column of this release follows from others")]
    from tempriv.releases import postprocess

    what, again = "what was done afterwards is told right", "doing it again gives the same values"
    try:
        steps, same = postprocess.steps_of(about), postprocess.repeated(path, about)
    except TemprivError as problem:
        return [Check(what, False, str(problem))]
    told = Check(what, True, f"{len(steps)} step{'s'[: len(steps) != 1]}")
    if same is not None:
        return [told, Check(again, same, "the same" if same else "OTHER values came out")]
    unseen = Check(again, None, "the file before is not at hand")
    try:
        kept = postprocess.is_kept(path, about, steps[-1])
    except TemprivError as problem:
        return [told, unseen, Check(agree, None, str(problem))]
    why = f"the last step ({steps[-1].sentence})"
    found = f"{why} does not show in the values" if kept is None else why
    return [told, unseen, Check(agree, kept, found)]


def receipt_check(about: dict[str, Any], ledger: Ledger | None) -> Check:
    """Whether the charge that ``about`` tells of is in the ``ledger``, if there is one at hand."""
    what, receipt = "the ledger knows of it", about.get("ledger")
    if receipt is None:
        return Check(what, None, "not charged to a ledger, and says so")
    if ledger is None:
        return Check(what, None, "no ledger at hand to compare the receipt with")
    state = ledger.state_of(about["release"])
    state_words = {
        "done": "charged and complete",
        "prepared": "charged, not yet marked complete",
        None: "the ledger at hand has no such charge",
    }[state]
    return Check(what, state is not None, state_words)


def as_json(checks: list[Check]) -> list[Any]:
    """The ``checks`` as JSON values, each with its state in words."""
    return [{**serialization.encode(check), "state": check.state} for check in checks]
