"""Whether a question is what its campaign guaranteed, for this device and at this moment.

A server may err or lie. A question that the published plan cannot have led to is refused, whatever
the server says of it, and nothing that the device holds has a part in that.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from tempriv.collect.protocol.assignment import HASH_VALUES, assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import VerifiedQuestion
from tempriv.errors import require
from tempriv.local.wire import MessageError

MAX_HASH_DIGITS = 17


def campaign_of(document: Any) -> Campaign:
    """Return the campaign of a server's document.

    Parameters:
        document: what the server tells of a campaign.

    Raises:
        MessageError: it is no campaign, or goes under the id of another.
    """
    require(isinstance(document, dict), "not a campaign", MessageError)
    campaign = Campaign.from_dict(document.get("spec"))
    require(
        document.get("id") == campaign.id,
        "the campaign is shown under an id that does not follow from it",
        MessageError,
    )
    return campaign


def verified_question(
    campaign: Campaign, document: Any, number: int, now: datetime
) -> VerifiedQuestion | None:
    """Return the open question, if it is for this device; None if nothing is asked of it now.

    Parameters:
        campaign: the campaign that asks.
        document: what the server tells of its open question.
        number: number of this device.
        now: the time by the device's clock.

    Raises:
        MessageError: the plan of the campaign cannot have led to it.

    Guarantees:
        - what it gives is a question of this campaign that follows from its plan, with the plan's
          epsilon, about the present step, and for the assignment hash of device ``number``;
        - anything else is refused, and a refusal depends on nothing that the device holds.
    """
    if document is None:
        return None
    require(isinstance(document, dict), "not a question", MessageError)
    if document.get("asked") is not True:
        return None
    require(
        campaign.opens_at <= now <= campaign.closes_at,
        "a question of a campaign that is not open, by this device's clock",
        MessageError,
    )
    body = document.get("body")
    require(isinstance(body, dict), "a question without a body", MessageError)
    try:
        question = campaign.definition.verify_question(campaign, body, now)
    except ArithmeticError:  # of numbers that no plan leads to
        raise MessageError("the question cannot be worked out") from None
    require(
        document.get("id") == question.id,
        "the question goes under another id than it has",
        MessageError,
    )
    if not campaign.definition.has_steps:
        _refuse_range(campaign, document.get("lots"), number)
    return question


def _refuse_range(campaign: Campaign, bounds: Any, number: int) -> None:
    if bounds is None and not campaign.definition.assigned_by_hash:
        return  # for everyone
    low, high = _range(bounds)
    own_hash = assignment_hash(campaign.id, np.array([number]))
    require(
        bool(in_range(own_hash, low, high)[0]),
        "the question is for other devices, by lot",
        MessageError,
    )


def _range(bounds: Any) -> tuple[int, int]:
    fits = (
        isinstance(bounds, list)
        and len(bounds) == 2
        and all(isinstance(text, str) and 0 < len(text) <= MAX_HASH_DIGITS for text in bounds)
    )
    try:
        low, high = (int(text, 16) for text in bounds) if fits else (HASH_VALUES, 0)
    except ValueError:
        low, high = HASH_VALUES, 0
    require(0 <= low <= high <= HASH_VALUES, "lots: must be two hexadecimal numbers", MessageError)
    return low, high
