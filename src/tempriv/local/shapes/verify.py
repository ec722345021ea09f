"""Rechecks shapes that were written with all facts: nothing private is needed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from tempriv.errors import TemprivError, require
from tempriv.local.frequency.base import support_of
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import Shape
from tempriv.local.shapes.simulate import Outcome, Round
from tempriv.mechanisms.checks import Check, Rows, rows_check
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.signature import signature_checks

MEMBERS = {"campaign", "settings", "shapes", "rounds", "guarantee", "sentence"}


def read_shapes(path: Path) -> dict[str, Any] | None:
    """What ``tempriv shapes`` wrote to a JSON file; None if it is anything else.

    Parameters:
        path: the file.
    """
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        about = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return about if isinstance(about, dict) and about.keys() >= MEMBERS else None


def verify(about: dict[str, Any], key: str | None = None) -> list[Check]:
    """Recompute everything about some shapes that can be.

    Parameters:
        about: what ``read_shapes`` gave.
        key: the public key of whoever should have signed it, as ``read_public_key`` gave it.

    Returns:
        What was looked at and whether it was right, and what was not looked at and why.
    """
    checks = signature_checks(about, key)
    try:
        plan = ShapesPlan.from_dict(about["settings"])
        stated = guarantees.decode(about["guarantee"])
        require(isinstance(stated, (Guarantee, NoGuarantee)), "not a guarantee", TemprivError)
        rounds = tuple(Round(**fields) for fields in about["rounds"])
        outcome = Outcome(plan, about["campaign"], plan.method, (), rounds, stated)
        rows = [
            {name: "" if cell is None else str(cell) for name, cell in shape.items()}
            for shape in about["shapes"]
        ]
        follows = stated == plan.guarantee or isinstance(stated, NoGuarantee)
        right = follows and about["sentence"] == stated.sentence
        checks.append(
            Check("the guarantee follows from the settings", right, plan.guarantee.sentence)
        )
        if isinstance(stated, NoGuarantee):
            checks.append(Check("something is guaranteed", False, stated.reason))
        published = None if plan.published is None else serialization.encode(plan.published)
        what = "the published claim is as this version of tempriv has it"
        told = "nothing is claimed" if plan.published is None else plan.published.sentence
        same = about.get("published") == published
        checks.append(Check(what, same, f"the paper itself was not looked up; {told}"))
        asked = sum(round_.people for round_ in rounds)
        enough = asked <= about["series"] == plan.people
        told = f"{asked:,} answers of {plan.people:,} series"
        checks.append(Check("nobody was asked twice", enough, told))
        checks += counts_checks(outcome, rows)
    except (TemprivError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        checks.append(Check("the shapes can be read", False, "not as tempriv shapes writes them"))
    return [*checks, Check("the ledger knows of it", None, "receipts of shapes are not looked up")]


def counts_checks(outcome: Outcome, rows: Rows) -> list[Check]:
    """Whether shares and intervals follow from counts, and counts from whole numbers of reports.

    Parameters:
        outcome: the campaign, whose own shapes are not looked at.
        rows: the shapes that were written, as texts by column.
    """
    last, expected, unsound = outcome.rounds[-1], [], 0
    for row in rows:
        error = float(row["standard_error"] or math.inf)
        share, low, high = outcome.share(Shape(row["shape"], float(row["count"]), error))
        expected.append({"share": share, "low": low, "high": high})
        if last.kind == "whole" and last.people:
            support = support_of(float(row["count"]), last.keep, last.other, last.people)
            unsound += support is None
    told = f"shares and intervals follow from counts of {last.people:,} and their errors"
    checks = [rows_check(rows, expected, told)]
    if last.kind == "whole":
        what = "every count comes from a whole number of reports"
        checks.append(Check(what, not unsound, f"of {last.people:,} reports"))
    return checks
