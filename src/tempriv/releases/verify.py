"""Rechecks a release from its files alone: nothing private is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tempriv.data.arrow import kind_name
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
from tempriv.releases import postprocess
from tempriv.releases.description import METADATA_KEY, read_about
from tempriv.releases.release import read_table
from tempriv.releases.wording import reworded


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
    sentence = stated.sentence if same else f"stated: {stated.sentence} true: {true.sentence}"
    checks.append(Check("the guarantee follows from the mechanism", same, sentence))
    checks.append(
        Check(
            "the published claim is quoted right",
            reworded(about["published"]) == reworded(serialization.encode(mechanism.published)),
            mechanism.published.sentence,
        )
    )
    checks.append(_texts_check(about, mechanism, stated))
    if isinstance(stated, NoGuarantee):
        checks.append(Check("something is guaranteed", False, stated.reason))
    checks += _table(path, about, mechanism)
    if "after" in about:
        checks.append(_after(path, about))
    checks.append(receipt_check(about, ledger))
    return checks


def _texts_check(
    about: dict[str, Any], mechanism: Mechanism, stated: Guarantee | NoGuarantee
) -> Check:
    """What is written for people is what follows from the settings."""
    names = about["columns"]["values"]
    errors = [
        {"column": name, "error": error, "measure": mechanism.error_name}
        for name, error in zip(names, errors_of(mechanism, len(names)), strict=False)
    ]
    same = (
        reworded(about["sentence"]) == reworded(stated.sentence)
        and reworded(about["expected_error"]) == reworded(errors)
        and reworded(about["not_protected"]) == reworded(mechanism.not_protected(about))
    )
    return Check(
        "the expected error and what is not protected are told right",
        same,
        ", ".join(f"{e['column']} {e['error']:.4g}" for e in errors),
    )


def checksum_check(path: Path, about: dict[str, Any]) -> Check:
    """Whether the file at ``path`` has the checksum in ``about``."""
    digest, stated = checksum(path), about.get("output", {}).get("blake2b")
    return Check(
        "the file is the one that was written", digest == stated, f"blake2b {digest[:16]}…"
    )


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
    domain = mechanism.domain.released
    if domain.columns not in (None, len(values)):
        return [*checks, Check("the columns fit the mechanism", False, f"{len(values)} columns")]
    if domain.kind == "rows" or "types" in about["columns"]:
        checks.append(_types(table, about, domain.kind == "rows"))
    if "after" not in about or domain.kind != "numbers":
        values_check = domain.check_values(values)
        checks += [] if values_check is None else [values_check]
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


def _after(path: Path, about: dict[str, Any]) -> Check:
    """What was done afterwards is told right, and repeated where the file before is at hand."""
    what = "what was done afterwards is told right"
    try:
        steps, same = postprocess.steps_of(about), postprocess.repeated(path, about)
    except TemprivError as problem:
        return Check(what, False, str(problem))
    count = f"{len(steps)} step{'s'[: len(steps) != 1]}"
    if same is None:
        return Check(what, True, f"{count}; the file before is not at hand to repeat them")
    again = "repeated, with the same values" if same else "repeated, with OTHER values"
    return Check(what, same, f"{count}, {again}")


def receipt_check(about: dict[str, Any], ledger: Ledger | None) -> Check:
    """Whether the charge that ``about`` tells of is in the ``ledger``, if there is one at hand."""
    what, receipt = "the ledger knows of it", about.get("ledger")
    if receipt is None:
        return Check(what, True, "not charged to a ledger, and says so")
    if ledger is None:
        return Check(what, True, "no ledger at hand to compare the receipt with")
    state = ledger.state_of(about["release"])
    state_words = {
        "done": "charged and complete",
        "prepared": "charged, not yet marked complete",
        None: "the ledger at hand has no such charge",
    }[state]
    return Check(what, state is not None, state_words)


def as_json(checks: list[Check]) -> list[Any]:
    """The ``checks`` as JSON values."""
    return [serialization.encode(check) for check in checks]
