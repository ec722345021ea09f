"""Rechecks the release of a campaign from its files: nothing private is needed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tempriv.collect.protocol.amplification import amplified, amplified_facts
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server.results import evidence_of_campaign, not_protected_of
from tempriv.errors import TemprivError
from tempriv.mechanisms.checks import Check
from tempriv.privacy import guarantees, serialization
from tempriv.releases.description import EVIDENCE, read_about
from tempriv.releases.evidence import STATED
from tempriv.releases.signature import signature_checks
from tempriv.releases.verify import checksum_check, published_check

KIND = "Campaign"


def is_campaign(path: Path) -> bool:
    """Return whether the released file at ``path`` came out of a campaign."""
    return bool(read_about(path)["mechanism"].get(serialization.KIND) == KIND)


def verify(path: Path, key: str | None = None) -> list[Check]:
    """Recompute everything that can be about the release of a campaign.

    Parameters:
        path: the released table.
        key: the public key of the server that should have signed it, as ``read_public_key`` gave
            it.
    """
    about = read_about(path)
    checks = [checksum_check(path, about), *signature_checks(about, key)]
    document = {
        name: value for name, value in about["mechanism"].items() if name != serialization.KIND
    }
    try:
        campaign = Campaign.from_dict(document)
        stated = guarantees.decode(about["guarantee"])
    except TemprivError as problem:
        return [*checks, Check("the campaign can be read", False, str(problem))]
    checks.append(
        Check(
            "the release is named by all that was asked",
            about["release"] == campaign.id,
            f"campaign {campaign.id}",
        )
    )
    right = stated == campaign.guarantee and about["sentence"] == campaign.guarantee.sentence
    checks.append(
        Check("the guarantee follows from the campaign", right, campaign.guarantee.sentence)
    )
    checks.append(published_check(about, campaign.published))
    checks.append(_amplified(about, campaign))
    listed = not_protected_of(campaign)
    checks.append(
        Check("what is not protected is told", about["not_protected"] == listed, "; ".join(listed))
    )
    checks.append(_evidence(about, campaign))
    checks += _rows(path, about, campaign)
    return checks


def _amplified(about: dict[str, Any], campaign: Campaign) -> Check:
    what = "what shuffling adds follows from how many answered"
    stated = about.get("amplified")
    if stated is None:
        return Check(what, None, "nothing is said of shuffling")
    counts = [row["people"] for row in about.get("rounds", []) if row["people"]]
    people = min(counts, default=about.get("people", 0))
    recomputed = amplified(campaign, people) if people >= 2 else None
    right = recomputed is not None and stated == amplified_facts(recomputed)
    return Check(what, right, "nothing" if recomputed is None else recomputed.sentence)


def _evidence(about: dict[str, Any], campaign: Campaign) -> Check:
    what, evidence = "the evidence follows from the description", about.get(EVIDENCE)
    if evidence is None:
        return Check(what, None, "descriptions of format 1 have none")
    try:
        again = evidence_of_campaign(about, campaign, evidence.get(STATED, {}))
    except (TemprivError, AttributeError, TypeError, KeyError) as problem:
        return Check(what, False, f"cannot be read: {type(problem).__name__}")
    wrong = [name for name in {*again, *evidence} if again.get(name) != evidence.get(name)]
    told = f"what the curator states was not checked: {', '.join(again[STATED]) or 'nothing'}"
    return Check(what, not wrong, f"not so: {', '.join(sorted(wrong))}" if wrong else told)


def _rows(path: Path, about: dict[str, Any], campaign: Campaign) -> list[Check]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    counted = Check("all rows are there", len(rows) == about["rows"], f"{len(rows):,} rows")
    what = "columns that follow from each other agree"
    try:
        return [counted, *campaign.definition.check_rows(campaign, about, rows)]
    except (TemprivError, ValueError, TypeError, LookupError, ArithmeticError):
        return [counted, Check(what, False, "the columns cannot be read as this kind has them")]
