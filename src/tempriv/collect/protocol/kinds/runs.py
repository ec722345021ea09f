"""How campaigns of every kind go on: what is asked now, of whom, and what follows from reports.

Values without a network or a clock; the same ones run in a server and in a test. What depends on
the kind is here, and nowhere behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.collect.protocol.assignment import ALL, range_of
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.errors import require
from tempriv.local.frequency.base import Bytes, Flags, Frequencies, Integers
from tempriv.local.shapes import roles
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import ShapesProtocol as ShapesCourse
from tempriv.local.shapes.simulate import NORMAL, Outcome, Round, round_of
from tempriv.local.streams import messages, protocol
from tempriv.local.wire import TOKEN_BYTES
from tempriv.privacy import serialization

Support = Callable[[Bytes], Integers]
UPLOAD_HEAD = b"tu\x02\x01"
COUNTED, KEPT = "counted", "kept"


@dataclass(frozen=True)
class ProtocolQuestion:
    """An open question as a server needs it: whatever answers it, and whom it is for.

    Every answer is ``head``, a token, and a report, of the same length for all. ``low`` and
    ``high`` bound the lots that it is for; ``places`` are those of a stream's participants instead.
    """

    id: str
    kind: str
    body: dict[str, Any]
    head: bytes
    report_bytes: int
    cells: int
    fits: Callable[[Bytes], Flags]
    support: Support
    low: int = 0
    high: int = ALL
    places: Integers | None = None
    keeps: str = COUNTED
    """Whether reports are added up and forgotten, or kept as what was asked for."""

    @property
    def answer_bytes(self) -> int:
        return len(self.head) + TOKEN_BYTES + self.report_bytes


def _no_support(reports: Bytes) -> Integers:
    return np.zeros(0, dtype=np.int64)


# shapes


@dataclass(frozen=True)
class ShapesProtocolRun:
    """Rounds of a shapes campaign; each is for the next devices by lot."""

    campaign: Campaign
    course: ShapesCourse
    begun: float = 0.0
    """The share of all devices that earlier rounds were for."""
    rounds: tuple[Round, ...] = ()

    @classmethod
    def beginning(cls, campaign: Campaign) -> ShapesProtocolRun:
        assert isinstance(campaign.plan, ShapesPlan)
        return cls(campaign, ShapesCourse(campaign.plan, campaign.id))

    @property
    def _share(self) -> float:
        return self.course.wanted / self.course.plan.people

    @property
    def asked(self) -> ProtocolQuestion | None:
        question = self.course.question
        if question is None:
            return None
        low, high = range_of(self.begun, self._share)
        levels = question.levels if question.kind == "bigram" else 1
        return ProtocolQuestion(
            id=f"{self.campaign.id}/{question.round}",
            kind=question.kind,
            body=json.loads(question.to_json()),
            head=roles.head_of(question),
            report_bytes=question.report_bytes,
            cells=question.cells * levels,
            fits=lambda rows: roles.fits(question, rows),
            support=lambda rows: roles.support_of(question, rows),
            low=low,
            high=high,
        )

    def after(self, support: Integers, people: int) -> ShapesProtocolRun:
        rounds = (*self.rounds, round_of(self.course, people))
        going = self.course.after(support, people)
        return replace(self, course=going, begun=min(1.0, self.begun + self._share), rounds=rounds)

    @property
    def is_over(self) -> bool:
        return self.course.question is None

    @property
    def outcome(self) -> Outcome:
        plan, course = self.course.plan, self.course
        require(self.is_over, "the campaign is not over")
        return Outcome(
            plan, self.campaign.id, course.method, course.shapes, self.rounds, plan.guarantee
        )

    def to_dict(self) -> dict[str, Any]:
        rounds = [asdict(one) for one in self.rounds]
        return {"course": self.course.to_dict(), "begun": self.begun, "rounds": rounds}

    @classmethod
    def from_dict(cls, campaign: Campaign, given: dict[str, Any]) -> ShapesProtocolRun:
        assert isinstance(campaign.plan, ShapesPlan)
        course = ShapesCourse.from_dict(campaign.plan, given["course"])
        return cls(campaign, course, given["begun"], tuple(Round(**one) for one in given["rounds"]))


# a category, once


@dataclass(frozen=True)
class FrequencyProtocolRun:
    """The one question of a campaign about a category."""

    campaign: Campaign
    support: tuple[int, ...] | None = None
    people: int = 0

    @classmethod
    def beginning(cls, campaign: Campaign) -> FrequencyProtocolRun:
        return cls(campaign)

    @property
    def question(self) -> messages.StreamQuestion:
        plan = self.campaign.plan
        assert isinstance(plan, FrequencyCampaignPlan)
        return messages.StreamQuestion(
            campaign=self.campaign.id,
            step=0,
            part="publish",
            epsilon=plan.epsilon,
            size=len(plan.categories),
            oracle=plan.asked,
        )

    @property
    def asked(self) -> ProtocolQuestion | None:
        return None if self.is_over else _about_a_value(self.question, f"{self.campaign.id}/0")

    def after(self, support: Integers, people: int) -> FrequencyProtocolRun:
        return replace(self, support=tuple(support.tolist()), people=people)

    @property
    def is_over(self) -> bool:
        return self.support is not None

    def to_dict(self) -> dict[str, Any]:
        support = None if self.support is None else list(self.support)
        return {"support": support, "people": self.people}

    @classmethod
    def from_dict(cls, campaign: Campaign, given: dict[str, Any]) -> FrequencyProtocolRun:
        support = None if given["support"] is None else tuple(given["support"])
        return cls(campaign, support, given["people"])


def _about_a_value(question: messages.StreamQuestion, name: str, **whom: Any) -> ProtocolQuestion:
    oracle = question.frequency
    return ProtocolQuestion(
        id=name,
        kind=question.part,
        body=json.loads(question.to_json()),
        head=messages.head_of(question),
        report_bytes=oracle.report_bytes,
        cells=question.size,
        fits=oracle.fits,
        support=oracle.support,
        **whom,
    )


# a category, step by step


@dataclass(frozen=True)
class StreamProtocolRun:
    """A step of a stream after the other; the clock says which it is."""

    campaign: Campaign
    course: protocol.StreamProtocol
    bounds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Below and above each share of the last publication, with 95 % confidence."""

    @classmethod
    def beginning(cls, campaign: Campaign, first: int = 0) -> StreamProtocolRun:
        assert isinstance(campaign.plan, StreamCampaignPlan)
        course = protocol.StreamProtocol.beginning(campaign.plan.stream, campaign.id, first)
        size = len(campaign.plan.categories)
        return cls(campaign, course, ((0.0,) * size, (1.0,) * size))

    @property
    def plan(self) -> StreamCampaignPlan:
        assert isinstance(self.campaign.plan, StreamCampaignPlan)
        return self.campaign.plan

    @property
    def asked(self) -> ProtocolQuestion | None:
        question = self.course.question
        if question is None:
            return None
        name = f"{self.campaign.id}/{question.step}/{question.part}"
        return _about_a_value(question, name, places=self.course.asked)

    def after(self, support: Integers, people: int) -> StreamProtocolRun:
        question = self.course.question
        assert question is not None
        bounds = self.bounds
        if people and question.part == "publish":
            bounds = self._bounds(question.frequency.estimate(support, people), people)
        return replace(self, course=self.course.after(support, people), bounds=bounds)

    def _bounds(
        self, found: Frequencies, people: int
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Around shares of all devices: those who answered are a sample, which adds to noise."""
        shares = found.counts / people
        likely, everyone = np.clip(shares, 0, 1), self.campaign.people
        part = max(0.0, (everyone - people) / max(1, everyone - 1))
        drawn = NORMAL**2 * part * likely * (1 - likely) / people
        below = np.sqrt(np.maximum(0, shares - found.low / people) ** 2 + drawn)
        above = np.sqrt(np.maximum(0, found.high / people - shares) ** 2 + drawn)
        low, high = np.clip(likely - below, 0, 1), np.clip(likely + above, 0, 1)
        return tuple(low.tolist()), tuple(high.tolist())

    def next_step(self) -> StreamProtocolRun:
        return replace(self, course=self.course.next_step())

    @property
    def is_over(self) -> bool:
        """Whether the last step has its release."""
        return self.course.question is None and self.course.step >= self.plan.steps - 1

    def to_dict(self) -> dict[str, Any]:
        return {"course": self.course.to_dict(), "bounds": [list(one) for one in self.bounds]}

    @classmethod
    def from_dict(cls, campaign: Campaign, given: dict[str, Any]) -> StreamProtocolRun:
        assert isinstance(campaign.plan, StreamCampaignPlan)
        course = protocol.StreamProtocol.from_dict(campaign.plan.stream, given["course"])
        low, high = (tuple(one) for one in given["bounds"])
        return cls(campaign, course, (low, high))


# whole series, protected where they are


@dataclass(frozen=True)
class UploadProtocolRun:
    """Series that come in until the campaign is closed."""

    campaign: Campaign
    people: int | None = None

    @classmethod
    def beginning(cls, campaign: Campaign) -> UploadProtocolRun:
        return cls(campaign)

    @property
    def asked(self) -> ProtocolQuestion | None:
        plan = self.campaign.plan
        assert isinstance(plan, UploadCampaignPlan)
        if self.is_over:
            return None
        body = {
            "tempriv": "upload question",
            "campaign": self.campaign.id,
            "readings": plan.readings,
            "mechanism": serialization.encode(plan.mechanism),
        }
        return ProtocolQuestion(
            id=f"{self.campaign.id}/0",
            kind="upload",
            body=body,
            head=upload_head(self.campaign.id),
            report_bytes=8 * plan.readings,
            cells=0,
            fits=_are_readings,
            support=_no_support,
            keeps=KEPT,
        )

    def after(self, support: Integers, people: int) -> UploadProtocolRun:
        return replace(self, people=people)

    @property
    def is_over(self) -> bool:
        return self.people is not None

    def to_dict(self) -> dict[str, Any]:
        return {"people": self.people}

    @classmethod
    def from_dict(cls, campaign: Campaign, given: dict[str, Any]) -> UploadProtocolRun:
        return cls(campaign, given["people"])


def upload_head(campaign: str) -> bytes:
    return UPLOAD_HEAD + bytes.fromhex(campaign)


def _are_readings(rows: Bytes) -> Flags:
    """Missing ones are NaN; an infinite one is none that a mechanism gives."""
    values: npt.NDArray[np.float64] = np.ascontiguousarray(rows).view("<f8")
    return np.asarray(~np.isinf(values).any(axis=1))


ProtocolRun = ShapesProtocolRun | FrequencyProtocolRun | StreamProtocolRun | UploadProtocolRun
PROTOCOL_RUNS: dict[str, Any] = {
    "shapes": ShapesProtocolRun,
    "frequency": FrequencyProtocolRun,
    "stream": StreamProtocolRun,
    "upload": UploadProtocolRun,
}


def beginning(campaign: Campaign) -> ProtocolRun:
    found: ProtocolRun = PROTOCOL_RUNS[campaign.kind].beginning(campaign)
    return found


def from_text(campaign: Campaign, text: str) -> ProtocolRun:
    found: ProtocolRun = PROTOCOL_RUNS[campaign.kind].from_dict(campaign, json.loads(text))
    return found


def to_text(run: ProtocolRun) -> str:
    return json.dumps(run.to_dict(), allow_nan=False)
