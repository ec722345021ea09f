"""Rechecks a released summary from its files: nothing private is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tempriv.errors import TemprivError
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms.checks import Check
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.description import read_about
from tempriv.releases.meaning import meaning_of
from tempriv.releases.release import read_table
from tempriv.releases.signature import signature_checks
from tempriv.releases.verify import (
    alike,
    checksum_check,
    evidence_check,
    published_check,
    receipt_check,
)
from tempriv.summaries.run import SCHEMA, not_protected, summary_evidence
from tempriv.summaries.spec import PeopleSummary

PARTS_ROUNDING = 1e-9


def is_summary(path: Path) -> bool:
    """Whether the released file at ``path`` is a summary."""
    return bool(read_about(path)["mechanism"].get(serialization.KIND) == PeopleSummary.spec_name)


def verify(path: Path, ledger: Ledger | None = None, key: str | None = None) -> list[Check]:
    """Recompute everything about a summary that can be, and compare it with what it says.

    Parameters:
        path: the released file.
        ledger: a ledger to look its charge up in.
        key: the public key of whoever should have signed it, as ``read_public_key`` gave it.
    """
    about = read_about(path)
    checks = [checksum_check(path, about), *signature_checks(about, key)]
    try:
        spec = serialization.decode(about["mechanism"], (PeopleSummary,))
        stated = guarantees.decode(about["guarantee"])
    except TemprivError as problem:
        return [*checks, Check("the description can be read", False, str(problem))]
    if not isinstance(stated, (Guarantee, NoGuarantee)):
        return [*checks, Check("the description can be read", False, "not a guarantee")]
    same = stated == spec.guarantee or isinstance(stated, NoGuarantee)
    checks.append(Check("the guarantee follows from the settings", same, stated.sentence))
    if isinstance(stated, NoGuarantee):
        checks.append(Check("something is guaranteed", False, stated.reason))
    checks.append(published_check(about, spec.published))
    meaning = meaning_of(None, stated, None)
    told = alike(about.get("meaning"), meaning) and about["sentence"] == meaning["headline"]
    told &= about["not_protected"] == not_protected(spec)
    listed = "; ".join(about["not_protected"])
    what = "what the guarantee means and what is not protected are told right"
    checks.append(Check(what, told, listed))
    checks.append(evidence_check(about, lambda plain, said, _: summary_evidence(plain, spec, said)))
    checks.append(_budget(about, spec))
    checks.append(_rows(path, about, spec))
    checks.append(receipt_check(about, ledger))
    return checks


def _budget(about: dict[str, Any], spec: PeopleSummary) -> Check:
    """The parts add up to no more than the guarantee allows, and their costs follow from noise."""
    what = "the parts add up to no more than the guarantee"
    try:
        sums = []
        for parts in about["budget"]:
            for part in parts:
                noise = float(part["sigma"])
                # one record changes what gets noise by at most the grid
                if noise and spec.grid / noise > float(part["mu"]) * (1 + PARTS_ROUNDING):
                    return Check(what, False, f"{part['part']}: less noise than it says")
            sums.append(sum(float(part["mu"]) ** 2 for part in parts))
        most = max(sums, default=0.0)
    except (KeyError, TypeError, ValueError):
        return Check(what, False, "cannot be read")
    right = 0 < most <= spec.mu**2 * (1 + PARTS_ROUNDING)
    return Check(what, right, f"{most / spec.mu**2:.1%} of it")


def _rows(path: Path, about: dict[str, Any], spec: PeopleSummary) -> Check:
    """All rows are there, in columns of their own, each value within its interval."""
    what = "the table is what is described"
    try:
        table = read_table(path, about)
    except TemprivError as refusal:
        return Check(what, False, str(refusal))
    if table.column_names != SCHEMA.names or table.num_rows != about["rows"]:
        return Check(what, False, f"{table.num_rows:,} rows of {', '.join(table.column_names)}")
    groups = set(table.column("group").to_pylist()) - {"all"}
    if not groups <= set(spec.groups):
        return Check(what, False, "groups that were not declared")
    value, low, high = (
        np.asarray(table.column(name).to_numpy(), dtype=np.float64)
        for name in ("value", "low", "high")
    )
    within = bool(np.all((low <= value + 1e-9) & (value <= high + 1e-9)))
    words = f"{table.num_rows:,} rows" if within else "values outside their intervals"
    return Check(what, within, words)
