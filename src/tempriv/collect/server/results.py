"""What comes out of a campaign: facts for the page, and a release that can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tempriv._version import VERSION
from tempriv.collect.protocol.amplification import amplified, amplified_facts
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import ProtocolState
from tempriv.errors import require
from tempriv.local.wire import MessageError
from tempriv.privacy import serialization
from tempriv.releases.description import EVIDENCE, FORMAT
from tempriv.releases.evidence import EvidenceFacts, evidence_from
from tempriv.releases.release import Release

RANDOMNESS = "drawn by each device itself; nothing here could take it off again"
NOT_PROTECTED_BY_CAMPAIGNS = (
    "how many devices answered, and which: the server knows who took part and when",
    "the settings of the campaign: they were declared, not taken from the data",
)


def result_of(
    campaign: Campaign, state: ProtocolState, steps: list[dict[str, Any]], finished_at: str | None
) -> dict[str, Any]:
    """Return everything public of what a campaign found; of a stream also while it runs.

    Parameters:
        campaign: the campaign.
        state: where it stands.
        steps: the records of its steps, if it has any.
        finished_at: when it ended; None while it runs.

    Raises:
        MessageError: there is no result yet.
    """
    require(
        state.is_over or bool(steps),
        "the campaign has no result yet"
        if finished_at is None
        else "the campaign ended before it began: not enough devices had come",
        MessageError,
    )
    result: dict[str, Any] = {
        "campaign": campaign.id,
        "spec": campaign.to_dict(),
        "kind": campaign.kind,
        "finished_at": finished_at,
        "people": 0,
        "guarantee": serialization.encode(campaign.guarantee),
        "sentence": campaign.guarantee.sentence,
        "published": serialization.encode(campaign.published),
        "amplified": None,
        "randomness": RANDOMNESS,
        "not_protected": not_protected_of(campaign),
    }
    result |= campaign.definition.result(state, steps)
    if state.fewest_answers >= 2:
        result["amplified"] = amplified_facts(amplified(campaign, state.fewest_answers))
    return result


# as a release


def not_protected_of(campaign: Campaign) -> list[str]:
    """Return what the release of ``campaign`` does not protect, one thing a sentence."""
    return [*NOT_PROTECTED_BY_CAMPAIGNS, *campaign.definition.not_protected]


def evidence_of_campaign(
    about: Mapping[str, Any], campaign: Campaign, statements: Mapping[str, str]
) -> dict[str, Any]:
    """Return what the release of a campaign says to those who have to sign it off.

    Parameters:
        about: the description of the release.
        campaign: the campaign.
        statements: what the curator says.
    """
    kind = campaign.definition
    facts = EvidenceFacts(
        guarantee=campaign.guarantee,
        domain=f"what devices answer to: {campaign.asks}",
        method=f"a campaign of kind {kind.name}: {kind.summary}",
        longest=kind.readings_of(campaign.plan),
        alike=about["series"] if kind.releases_series else None,
        linked="Rows carry the numbers of devices, which the server can link to them."
        if kind.releases_series
        else "",
        trusts="Nobody is trusted with values: each device protects its answers before it sends "
        "them. The server is trusted to say what it received.",
        exposed="Raw data stayed on the devices.",
    )
    return evidence_from(about, facts, statements)


def release_of(
    result: dict[str, Any],
    uploads: list[tuple[int, bytes]],
    statements: Mapping[str, str] | None = None,
) -> Release:
    """Return a result as a table with everything that is needed to judge it.

    Parameters:
        result: what ``result_of`` gave.
        uploads: reports that were kept, with the numbers of their devices.
        statements: what the curator says of all releases of the server.
    """
    campaign = Campaign.from_dict(result["spec"])
    kind = campaign.definition
    table = kind.table(campaign.plan, result, uploads)
    others = (kind.id_column, kind.time_column, *kind.text_columns)
    values = [name for name in table.column_names if name not in others]
    about: dict[str, Any] = {
        "tempriv": VERSION,
        "format": FORMAT,
        "release": campaign.id,
        "created": result["finished_at"] or campaign.opens,
        "mechanism": {serialization.KIND: "Campaign", **campaign.to_dict()},
        "guarantee": result["guarantee"],
        "sentence": result["sentence"],
        "published": result["published"],
        "expected_error": [],
        "randomness": result["randomness"],
        "columns": {
            "series": kind.id_column,
            "ids": "text",
            "time": kind.time_column,
            "values": values,
        },
        "rows": table.num_rows,
        "series": len(table.column(kind.id_column).unique()),
        "pseudonyms": False,
        "times": {"clock": "index", "grid": "index", "step": 1, "first": 0, "last": 0, "filled": 0},
        "treatment": [],
        "ledger": None,
        "not_protected": not_protected_of(campaign),
        "people": result["people"],
        "amplified": result["amplified"],
    }
    if "rounds" in result:
        about["rounds"] = result["rounds"]
    about[EVIDENCE] = evidence_of_campaign(about, campaign, statements or {})
    return Release(about, table)
