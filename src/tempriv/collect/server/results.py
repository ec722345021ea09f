"""What comes out of a campaign: facts for the page, and a release that can be checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv._version import VERSION
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.consent import amplified, amplified_facts
from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.collect.protocol.kinds.runs import (
    FrequencyProtocolRun,
    ProtocolRun,
    ShapesProtocolRun,
    StreamProtocolRun,
    UploadProtocolRun,
)
from tempriv.errors import require
from tempriv.local.shapes.simulate import about as about_shapes
from tempriv.local.wire import MessageError
from tempriv.privacy import serialization
from tempriv.releases.release import FORMAT, NOT_PROTECTED, Release

RANDOMNESS = "drawn by each device itself; nothing here could take it off again"
NOT_PROTECTED_OF_CAMPAIGNS = (
    "how many devices answered, and which: the server knows who took part and when",
    "the settings of the campaign: they were declared, not taken from the data",
)


def result_of(
    campaign: Campaign, run: ProtocolRun, steps: list[dict[str, Any]], finished_at: str | None
) -> dict[str, Any]:
    """Everything public of what a campaign found; of a stream also while it runs."""
    require(
        run.is_over or (isinstance(run, StreamProtocolRun) and bool(steps)),
        "the campaign has no result yet"
        if finished_at is None
        else "the campaign ended before it began: not enough devices had come",
        MessageError,
    )
    found: dict[str, Any] = {
        "campaign": campaign.id,
        "spec": campaign.to_dict(),
        "kind": campaign.kind,
        "finished_at": finished_at,
        "people": 0,
        "guarantee": serialization.encode(campaign.guarantee),
        "promise": campaign.guarantee.sentence,
        "published": serialization.encode(campaign.published),
        "amplified": None,
        "randomness": RANDOMNESS,
        "not_protected": not_protected_of(campaign),
    }
    if isinstance(run, ShapesProtocolRun):
        facts = _of_shapes(run)
        fewest = min((one["people"] for one in facts["rounds"] if one["people"]), default=0)
    elif isinstance(run, FrequencyProtocolRun):
        facts = _of_categories(campaign, run)
        fewest = run.people
    elif isinstance(run, StreamProtocolRun):
        facts = {"steps": steps, "people": max((one["people"] for one in steps), default=0)}
        fewest = 0
    else:
        assert isinstance(run, UploadProtocolRun)
        facts, fewest = {"series": run.people, "people": run.people}, 0
    found |= facts
    if fewest >= 2:
        found["amplified"] = amplified_facts(amplified(campaign, fewest))
    return found


def _of_shapes(run: ShapesProtocolRun) -> dict[str, Any]:
    told = about_shapes(run.outcome)
    names = ("shapes", "rounds", "counted", "method")
    people = sum(one.people for one in run.rounds)
    return {**{name: told[name] for name in names}, "people": people}


def _of_categories(campaign: Campaign, run: FrequencyProtocolRun) -> dict[str, Any]:
    plan = campaign.plan
    assert isinstance(plan, FrequencyCampaignPlan) and run.support is not None
    if run.people == 0:
        nothing = {"count": 0.0, "standard_error": None, "share": 0.0, "low": 0.0, "high": 1.0}
        return {"categories": [{"category": one, **nothing} for one in plan.categories]}
    support = np.array(run.support, dtype=np.int64)
    found = run.question.frequency.estimate(support, run.people)
    rows = zip(
        plan.categories,
        found.counts.tolist(),
        found.standard_error.tolist(),
        found.low.tolist(),
        found.high.tolist(),
        strict=True,
    )
    people = run.people
    categories = [
        {
            "category": name,
            "count": count,
            "standard_error": error,
            "share": min(1.0, max(0.0, count / people)),
            "low": low / people,
            "high": high / people,
        }
        for name, count, error, low, high in rows
    ]
    return {"categories": categories, "people": people}


# as a release


def not_protected_of(campaign: Campaign) -> list[str]:
    return [*NOT_PROTECTED_OF_CAMPAIGNS, *(NOT_PROTECTED if campaign.kind == "upload" else ())]


def release_of(result: dict[str, Any], uploads: list[tuple[int, bytes]]) -> Release:
    """The same as a table with everything that is needed to judge it."""
    campaign = Campaign.from_dict(result["spec"])
    table = _table(campaign, result, uploads)
    names = table.column_names
    ids = {"shapes": "shape", "frequency": "category", "stream": "category", "upload": "device"}
    first = ids[campaign.kind]
    time = {"stream": "step", "upload": "reading"}.get(campaign.kind)
    values = [name for name in names if name not in (first, time, "label", "sure", "ends")]
    about: dict[str, Any] = {
        "tempriv": VERSION,
        "format": FORMAT,
        "release": campaign.id,
        "created": result["finished_at"] or campaign.opens,
        "mechanism": {serialization.KIND: "Campaign", **campaign.to_dict()},
        "guarantee": result["guarantee"],
        "sentence": result["promise"],
        "published": result["published"],
        "expected_error": [],
        "randomness": result["randomness"],
        "columns": {"series": first, "ids": "text", "time": time, "values": values},
        "rows": table.num_rows,
        "series": len(table.column(first).unique()),
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


def _table(
    campaign: Campaign, result: dict[str, Any], uploads: list[tuple[int, bytes]]
) -> pa.Table:
    if campaign.kind == "upload":
        plan = campaign.plan
        assert isinstance(plan, UploadCampaignPlan)
        values = np.frombuffer(b"".join(row for _, row in uploads), dtype="<f8").astype(np.float64)
        devices = [str(number) for number, _ in uploads]
        return pa.table(
            {
                "device": pa.array(devices, pa.string()).take(
                    pa.array(np.repeat(np.arange(len(devices)), plan.readings))
                ),
                "reading": pa.array(np.tile(np.arange(plan.readings), len(devices))),
                "value": pa.array(values, mask=np.isnan(values)),
            }
        )
    if campaign.kind == "stream":
        plan = campaign.plan
        assert isinstance(plan, StreamCampaignPlan)
        rows = [
            {
                "category": name,
                "step": one["step"],
                "share": share,
                "low": low,
                "high": high,
                "published": int(one["published"]),
                "people": one["people"],
            }
            for one in result["steps"]
            for name, share, low, high in zip(
                plan.categories, one["shares"], one["low"], one["high"], strict=True
            )
        ]
        place = {name: i for i, name in enumerate(plan.categories)}
        rows.sort(key=lambda row: (place[row["category"]], row["step"]))
        return pa.Table.from_pylist(rows)
    found = result["shapes"] if campaign.kind == "shapes" else result["categories"]
    require(bool(found), "the campaign found nothing that could be written", MessageError)
    return pa.Table.from_pylist([_finite(one) for one in found])


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
