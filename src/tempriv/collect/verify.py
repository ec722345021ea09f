"""Rechecks the release of a campaign from its files: nothing private is needed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from tempriv.collect.protocol.amplification import amplified, amplified_facts
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server.results import not_protected_of
from tempriv.errors import TemprivError
from tempriv.mechanisms.checks import Check
from tempriv.privacy import guarantees, serialization
from tempriv.releases.description import read_about
from tempriv.releases.verify import checksum_check

KIND = "Campaign"


def is_campaign(path: Path) -> bool:
    """Return whether the released file at ``path`` came out of a campaign."""
    return bool(read_about(path)["mechanism"].get(serialization.KIND) == KIND)


def verify(path: Path) -> list[Check]:
    """Recompute everything that can be about the release of a campaign at ``path``."""
    about = read_about(path)
    checks = [checksum_check(path, about)]
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
    published = campaign.published
    quoted = about["published"] == serialization.encode(published)
    what = "the published claim is the one that tempriv quotes (the paper was not read)"
    checks.append(Check(what, quoted, published.sentence))
    checks.append(_amplified(about, campaign))
    listed = not_protected_of(campaign)
    checks.append(
        Check("what is not protected is told", about["not_protected"] == listed, "; ".join(listed))
    )
    checks.append(_rows(path, about))
    return checks


def _amplified(about: dict[str, Any], campaign: Campaign) -> Check:
    what = "what shuffling adds follows from how many answered"
    stated = about.get("amplified")
    if stated is None:
        return Check(what, True, "nothing is said of shuffling")
    counts = [row["people"] for row in about.get("rounds", []) if row["people"]]
    people = min(counts, default=about.get("people", 0))
    recomputed = amplified(campaign, people) if people >= 2 else None
    right = recomputed is not None and stated == amplified_facts(recomputed)
    return Check(what, right, "nothing" if recomputed is None else recomputed.sentence)


def _rows(path: Path, about: dict[str, Any]) -> Check:
    with path.open(newline="") as file:
        lines = sum(1 for _ in csv.reader(file)) - 1
    return Check("all rows are there", lines == about["rows"], f"{lines:,} rows")
