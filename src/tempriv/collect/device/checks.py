"""Whether a question is what its campaign guaranteed, for this device and at this moment.

A server may err or lie. A question that the published plan cannot have led to is refused, whatever
the server says of it, and nothing that the device holds has a part in that.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.collect.protocol.assignment import ALL, assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.plans import StreamCampaignPlan
from tempriv.collect.protocol.kinds.runs import beginning
from tempriv.errors import TemprivError, require
from tempriv.local.shapes import messages as shapes_messages
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import CHOSEN, STAGES
from tempriv.local.shapes.protocol import ShapesProtocol as ShapesCourse
from tempriv.local.streams import messages as streams_messages
from tempriv.local.streams.protocol import ONE
from tempriv.local.wire import MessageError

Question = shapes_messages.ShapesQuestion | streams_messages.StreamQuestion
LONGEST_LOT = 17


@dataclass(frozen=True)
class VerifiedQuestion:
    """An open question that agrees with its campaign; an upload has nothing beside the plan."""

    id: str
    question: Question | None

    @property
    def text(self) -> str:
        """Everything of it, in one spelling."""
        return f"{self.id} {'' if self.question is None else self.question.to_json()}"


def campaign_of(document: Any) -> Campaign:
    """The campaign of a document; refused if it goes under the id of another."""
    require(isinstance(document, dict), "not a campaign", MessageError)
    campaign = Campaign.from_dict(document.get("spec"))
    require(
        document.get("id") == campaign.id,
        "the campaign is shown under an id that does not follow from it",
        MessageError,
    )
    return campaign


def step_of(campaign: Campaign, now: datetime) -> int:
    """The present step of a stream by the device's own clock; below 0 before it opens.

    >>> from tempriv.collect.protocol.kinds.plans import StreamCampaignPlan
    >>> plan = StreamCampaignPlan(epsilon=1.0, people=10, categories=("in", "out"), method="LBU",
    ...                           window=2, every=60.0, steps=9)
    >>> opens = datetime.fromisoformat("2026-01-01T00:00:00Z")
    >>> made = Campaign.begin("stream", "Where", "Where are you?", plan, now=opens)
    >>> step_of(made, opens), step_of(made, datetime.fromisoformat("2026-01-01T00:02:30Z"))
    (0, 2)
    """
    assert isinstance(campaign.plan, StreamCampaignPlan)
    return math.floor((now - campaign.opens_at).total_seconds() / campaign.plan.every)


def asked_of(campaign: Campaign, told: Any, number: int, now: datetime) -> VerifiedQuestion | None:
    """The open question, if it is for this device; None if nothing is asked of it now.

    Guarantees:
        - what it gives is a question of this campaign that follows from its plan, with the plan's
          epsilon, about the present step, and for the lot of device ``number``;
        - anything else is refused, and a refusal depends on nothing that the device holds.
    """
    if told is None:
        return None
    require(isinstance(told, dict), "not a question", MessageError)
    if told.get("asked") is not True:
        return None
    require(
        campaign.opens_at <= now <= campaign.closes_at,
        "a question of a campaign that is not open, by this device's clock",
        MessageError,
    )
    body = told.get("body")
    require(isinstance(body, dict), "a question without a body", MessageError)
    try:
        name, question = _READ[campaign.kind](campaign, body, now)
    except ArithmeticError:  # of numbers that no plan leads to
        raise MessageError("the question cannot be worked out") from None
    require(
        told.get("id") == name,
        "the question goes under another id than it has",
        MessageError,
    )
    if campaign.kind != "stream":
        _refuse_lot(campaign, told.get("lots"), number)
    return VerifiedQuestion(name, question)


Read = tuple[str, Question | None]


def _of_shapes(campaign: Campaign, body: dict[str, Any], now: datetime) -> Read:
    question = shapes_messages.ShapesQuestion.from_json(json.dumps(body))
    plan = campaign.plan
    assert isinstance(plan, ShapesPlan)
    require(
        any(one == question for one in _planned(plan, campaign.id, question)),
        "the question does not follow from the plan of its campaign",
        MessageError,
    )
    return f"{campaign.id}/{question.round}", question


def _planned(
    plan: ShapesPlan, campaign: str, asked: shapes_messages.ShapesQuestion
) -> list[shapes_messages.ShapesQuestion | None]:
    """What the plan asks where its course may stand so; only candidates come from answers."""
    if asked.kind == "length":
        return [ShapesCourse(plan, campaign).question]
    methods = CHOSEN if plan.method == "automatic" else (plan.method,)
    found = []
    for method in methods:
        if asked.kind not in STAGES[method]:
            continue
        course = ShapesCourse(
            plan,
            campaign,
            round=asked.round,
            stage=asked.kind,
            method=method,
            length=asked.high,
            candidates=asked.candidates,
        )
        try:
            found.append(course.question)
        except TemprivError:
            continue
    return found


def _fixed(campaign: Campaign, body: dict[str, Any], now: datetime) -> Read:
    """Where there is one question, and the plan has all of it."""
    asked = beginning(campaign).asked
    assert asked is not None
    require(
        json.dumps(body, sort_keys=True) == json.dumps(asked.body, sort_keys=True),
        "the question is not the one of its campaign",
        MessageError,
    )
    if campaign.kind == "upload":
        return asked.id, None
    return asked.id, streams_messages.StreamQuestion.from_json(json.dumps(body))


def _of_stream(campaign: Campaign, body: dict[str, Any], now: datetime) -> Read:
    question = streams_messages.StreamQuestion.from_json(json.dumps(body))
    plan, step = campaign.plan, step_of(campaign, now)
    assert isinstance(plan, StreamCampaignPlan)
    require(
        question.step == step and 0 <= step < plan.steps,
        f"a question about step {question.step}: by this device's clock it is step {step}",
        MessageError,
    )
    stream, epsilon = plan.stream, question.epsilon
    if question.part == "compare":
        agrees = stream.adapts and epsilon == stream.terms(stream.one)[0]
    elif stream.method == "LSP":
        agrees = epsilon == stream.terms(2 * stream.window * ONE)[0]
    elif not stream.adapts:
        agrees = epsilon == stream.terms(stream.uniform)[0]
    elif stream.divides_people:
        agrees = epsilon == stream.epsilon
    else:
        # how many parts of its half a publication takes follows from reports
        parts = round(Fraction(epsilon) * 2 * stream.window * ONE / Fraction(stream.epsilon))
        agrees = 1 <= parts <= stream.half and epsilon == stream.terms(parts)[0]
    require(
        agrees
        and question.campaign == campaign.id
        and question.size == stream.size
        and question.oracle == stream.asking(epsilon),
        "the question does not follow from the plan of its campaign",
        MessageError,
    )
    return f"{campaign.id}/{question.step}/{question.part}", question


_READ = {"shapes": _of_shapes, "frequency": _fixed, "stream": _of_stream, "upload": _fixed}


def _refuse_lot(campaign: Campaign, lots: Any, number: int) -> None:
    if lots is None and campaign.kind != "shapes":
        return  # for everyone
    low, high = _range(lots)
    own = assignment_hash(campaign.id, np.array([number]))
    require(
        bool(in_range(own, low, high)[0]),
        "the question is for other devices, by lot",
        MessageError,
    )


def _range(lots: Any) -> tuple[int, int]:
    fits = (
        isinstance(lots, list)
        and len(lots) == 2
        and all(isinstance(one, str) and 0 < len(one) <= LONGEST_LOT for one in lots)
    )
    try:
        low, high = (int(one, 16) for one in lots) if fits else (ALL, 0)
    except ValueError:
        low, high = ALL, 0
    require(0 <= low <= high <= ALL, "lots: must be two hexadecimal numbers", MessageError)
    return low, high
