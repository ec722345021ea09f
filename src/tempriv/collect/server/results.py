"""What comes out of a campaign: facts for the page, and a release that can be checked."""

from __future__ import annotations

from typing import Any

from tempriv._version import VERSION
from tempriv.collect.protocol.amplification import amplified, amplified_facts
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import ProtocolState
from tempriv.errors import require
from tempriv.local.wire import MessageError
from tempriv.privacy import serialization
from tempriv.releases.description import FORMAT
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


def release_of(result: dict[str, Any], uploads: list[tuple[int, bytes]]) -> Release:
    """Return a result as a table with everything that is needed to judge it.

    Parameters:
        result: what ``result_of`` gave.
        uploads: reports that were kept, with the numbers of their devices.
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
    return Release(about, table)
