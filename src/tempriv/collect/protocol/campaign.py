"""A campaign: what is asked of devices, frozen and published before anyone answers.

Its id is a digest of all of it, so a server cannot change a word afterwards, nor show one device
another campaign under the same id. Devices recompute it, and refuse what exceeds their own limits.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.errors import StateError, TemprivError, require
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.wire import MessageError, finite, require_campaign, strict_json, whole_number
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.sampling.keys import new_id

VERSION = 1
LARGEST = 1 << 20  # bytes of a spec
LONGEST_TITLE, LONGEST_TEXT = 200, 2000
MOST_PEOPLE = 10**9
LEAST_EPSILON, MOST_EPSILON = 1e-4, 100.0
LONGEST_PATIENCE = 366 * 86_400.0
DAYS = 7  # from opening to deadline where nothing else is said

Kind = Literal["shapes", "frequency", "stream", "upload"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Plan = ShapesPlan | FrequencyCampaignPlan | StreamCampaignPlan | UploadCampaignPlan
OURS = Published(
    claim="Each device answers one question with epsilon for its whole series",
    source="tempriv; this way of asking is ours",
    holds=True,
    remark="What a device sends is enumerated exactly, question by question.",
)
FIELDS = (
    *("kind", "title", "asks", "epsilon", "people", "opens", "deadline", "patience", "nonce"),
    "plan",
)


def _time(name: str, text: Any) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = datetime.min
    require(
        found.tzinfo is not None,
        f"{name}: must be a time with its zone, such as 2026-11-16T23:00:00Z",
        MessageError,
    )
    return found


def written(moment: datetime) -> str:
    """In UTC, to the second.

    >>> written(datetime(2026, 11, 16, 23, 0, tzinfo=UTC))
    '2026-11-16T23:00:00Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, str)
        and least <= len(value.strip())
        and len(value) <= most
        and value.replace("\n", " ").isprintable(),
        f"{name}: must be a text of {least} to {most} characters",
        MessageError,
    )


def _plan_of(kind: str, given: Any, epsilon: float, people: int) -> Plan:
    if kind == "shapes":
        plan = ShapesPlan.from_dict(given)
        require(
            plan.epsilon == epsilon and plan.people == people,
            "plan: epsilon and people must be those of the campaign",
            MessageError,
        )
        return plan
    kinds: dict[str, Any] = {
        "frequency": FrequencyCampaignPlan,
        "stream": StreamCampaignPlan,
        "upload": UploadCampaignPlan,
    }
    found: Plan = kinds[kind].from_dict(given, epsilon, people)
    return found


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What is asked, of about how many devices, with which epsilon, until when; all public.

    ``patience`` is how many seconds one question stays open at most.

    Guarantees:
        - its id follows from everything in it;
        - every device loses at most ``guarantee`` towards anyone who sees its answers.

    >>> plan = FrequencyCampaignPlan(epsilon=1.0, people=100, categories=("gas", "oil"))
    >>> begun = datetime(2026, 1, 1, tzinfo=UTC)
    >>> made = Campaign.begin("frequency", "Heating", "How is the home heated?", plan, now=begun)
    >>> Campaign.from_json(made.to_json()) == made, len(made.id)
    (True, 32)
    """

    kind: Kind
    title: str
    asks: str
    epsilon: float
    people: int
    opens: str
    deadline: str
    patience: float
    nonce: str
    plan: Plan

    def __post_init__(self) -> None:
        require(self.kind in KINDS, f"kind: must be one of {', '.join(KINDS)}", MessageError)
        _text("title", self.title, 1, LONGEST_TITLE)
        _text("asks", self.asks, 1, LONGEST_TEXT)
        require_campaign(self.nonce)
        require(self.closes_at > self.opens_at, "deadline: must be after it opens", MessageError)
        require(
            0 < self.patience <= LONGEST_PATIENCE,
            f"patience={self.patience:g}: must be > 0 seconds, at most a year",
            MessageError,
        )
        require(
            LEAST_EPSILON <= self.epsilon <= MOST_EPSILON,
            f"epsilon={self.epsilon:g}: must be from {LEAST_EPSILON:g} to {MOST_EPSILON:g}",
            MessageError,
        )
        require(
            all(one.isprintable() for one in getattr(self.plan, "labels", ())),
            "labels: must each be on one line",
            MessageError,
        )
        require(
            1 <= self.people <= MOST_PEOPLE,
            f"people={self.people}: must be from 1 to {MOST_PEOPLE:,}",
            MessageError,
        )

    @classmethod
    def begin(
        cls,
        kind: Kind,
        title: str,
        asks: str,
        plan: Plan,
        *,
        now: datetime,
        deadline: datetime | None = None,
        patience: float = 3600.0,
        nonce: str | None = None,
    ) -> Campaign:
        """A campaign that opens now."""
        opens = now.astimezone(UTC).replace(microsecond=0)
        return cls(
            kind=kind,
            title=title,
            asks=asks,
            epsilon=float(plan.epsilon),
            people=plan.people,
            opens=written(opens),
            deadline=written(deadline or opens + timedelta(days=DAYS)),
            patience=float(patience),
            nonce=nonce or new_id(),
            plan=plan,
        )

    @property
    def opens_at(self) -> datetime:
        return _time("opens", self.opens)

    @property
    def closes_at(self) -> datetime:
        return _time("deadline", self.deadline)

    # forms

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in FIELDS if name != "plan"}
        return {"tempriv": "campaign", "version": VERSION, **plain, "plan": self.plan.to_dict()}

    def to_json(self) -> str:
        """The one text of a campaign."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def id(self) -> str:
        return hashlib.blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    @classmethod
    def from_json(cls, text: str | bytes) -> Campaign:
        require(len(text) <= LARGEST, "not a campaign: it is too long", MessageError)
        try:
            found = strict_json(text)
        except (ValueError, RecursionError):
            found = None
        return cls.from_dict(found)

    @classmethod
    def from_dict(cls, given: Any) -> Campaign:
        """What ``to_dict`` gave; anything else is refused with a reason."""
        require(
            isinstance(given, dict) and given.get("tempriv") == "campaign",
            "not a campaign",
            MessageError,
        )
        require(
            given.get("version") == VERSION and type(given["version"]) is int,
            f"version {given.get('version')!r:.20}: this is version {VERSION} of campaigns",
            MessageError,
        )
        odd = sorted(set(given) ^ {"tempriv", "version", *FIELDS}, key=str)
        require(not odd, f"a campaign has members too many or too few: {odd[:3]}", MessageError)
        kind = given["kind"]
        require(kind in KINDS, f"kind: must be one of {', '.join(KINDS)}", MessageError)
        plain = {name: given[name] for name in FIELDS if name != "plan"}
        for name, sort in (("epsilon", finite), ("people", whole_number), ("patience", finite)):
            try:
                plain[name] = sort(given[name])
            except (TemprivError, OverflowError):
                raise MessageError(f"{name}: must be a number that is finite") from None
        try:
            plan = _plan_of(kind, given["plan"], plain["epsilon"], plain["people"])
        except StateError:
            sentence = f"plan: not of the form that a campaign of kind {kind} has"
            raise MessageError(sentence) from None
        except OverflowError:
            raise MessageError("plan: holds a number that is too large") from None
        except TemprivError as reason:
            raise MessageError(f"plan: {reason}") from None
        return cls(**plain, plan=plan)

    # what it guarantees, and what it means

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        return self.plan.guarantee

    @property
    def published(self) -> Published:
        return self.plan.published or OURS

    @property
    def answers_once(self) -> bool:
        """Whether a device answers one question of the campaign, and no second one."""
        return self.kind != "stream"

    @property
    def sentences(self) -> list[str]:
        """What a device will reveal, for its owner."""
        from tempriv.collect.protocol.consent import sentences_of

        return sentences_of(self)
