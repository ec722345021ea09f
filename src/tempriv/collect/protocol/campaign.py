"""A campaign: what is asked of devices, frozen and published before anyone answers.

Its id is a digest of all of it, so a server cannot change a word afterwards, nor show one device
another campaign under the same id. Devices recompute it, and refuse what exceeds their own limits.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tempriv.collect.protocol.kinds import campaign_kinds
from tempriv.collect.protocol.kinds.base import (
    YEAR_SECONDS,
    CampaignKind,
    CampaignPlan,
    ProtocolState,
    odds,
    utc_text,
)
from tempriv.errors import StateError, TemprivError, require
from tempriv.local.wire import MessageError, finite, require_campaign, strict_json, whole_number
from tempriv.privacy.guarantees import PROTECTS_NOTHING, Guarantee, NoGuarantee, Published
from tempriv.sampling.keys import new_id

VERSION = 1
MAX_SPEC_BYTES = 1 << 20
MAX_TITLE_CHARACTERS, MAX_TEXT_CHARACTERS = 200, 2000
MAX_PEOPLE = 10**9
MIN_EPSILON, MAX_EPSILON = 1e-4, 100.0
DEFAULT_DAYS = 7
"""From opening to deadline where nothing else is said."""
WEAK_EPSILON = 4.0
"""Above which an analyst is warned."""
TEMPRIV_CLAIM = Published(
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
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = datetime.min
    require(
        moment.tzinfo is not None,
        f"{name}: must be a time with its zone, such as 2026-11-16T23:00:00Z",
        MessageError,
    )
    return moment


def _text(name: str, value: Any, least: int, most: int) -> None:
    require(
        isinstance(value, str)
        and least <= len(value.strip())
        and len(value) <= most
        and value.replace("\n", " ").isprintable(),
        f"{name}: must be a text of {least} to {most} characters",
        MessageError,
    )


def _definition(kind: Any) -> CampaignKind[Any]:
    kinds = campaign_kinds()
    require(
        isinstance(kind, str) and kind in kinds,
        f"kind: must be one of {', '.join(kinds)}",
        MessageError,
    )
    return kinds[kind]


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What is asked, of about how many devices, with which epsilon, until when; all public.

    Parameters:
        kind: name of the kind, such as ``frequency``.
        title: a short name for people.
        asks: what is asked, for the owners of devices.
        epsilon: loss that the plan guarantees.
        people: devices that it announces.
        opens: when it opens, with its zone.
        deadline: when it ends, with its zone.
        patience: how many seconds one question stays open at most.
        nonce: 32 hexadecimal digits that make two campaigns different.
        plan: what is asked, in the terms of the kind.

    Guarantees:
        - its id follows from everything in it;
        - every device loses at most ``guarantee`` towards anyone who sees its answers.

    >>> from tempriv.collect.protocol.kinds.frequency import FrequencyCampaignPlan
    >>> plan = FrequencyCampaignPlan(epsilon=1.0, people=100, categories=("gas", "oil"))
    >>> begun = datetime(2026, 1, 1, tzinfo=UTC)
    >>> made = Campaign.begin("frequency", "Heating", "How is the home heated?", plan, now=begun)
    >>> Campaign.from_json(made.to_json()) == made, len(made.id)
    (True, 32)
    """

    kind: str
    title: str
    asks: str
    epsilon: float
    people: int
    opens: str
    deadline: str
    patience: float
    nonce: str
    plan: CampaignPlan

    def __post_init__(self) -> None:
        definition = _definition(self.kind)
        _text("title", self.title, 1, MAX_TITLE_CHARACTERS)
        _text("asks", self.asks, 1, MAX_TEXT_CHARACTERS)
        require_campaign(self.nonce)
        require(self.closes_at > self.opens_at, "deadline: must be after it opens", MessageError)
        require(
            0 < self.patience <= YEAR_SECONDS,
            f"patience={self.patience:g}: must be > 0 seconds, at most a year",
            MessageError,
        )
        require(
            MIN_EPSILON <= self.epsilon <= MAX_EPSILON,
            f"epsilon={self.epsilon:g}: must be from {MIN_EPSILON:g} to {MAX_EPSILON:g}",
            MessageError,
        )
        definition.check_plan(self.plan)
        require(
            1 <= self.people <= MAX_PEOPLE,
            f"people={self.people}: must be from 1 to {MAX_PEOPLE:,}",
            MessageError,
        )

    @classmethod
    def begin(
        cls,
        kind: str,
        title: str,
        asks: str,
        plan: CampaignPlan,
        *,
        now: datetime,
        deadline: datetime | None = None,
        patience: float = 3600.0,
        nonce: str | None = None,
    ) -> Campaign:
        """Return a campaign that opens now.

        Parameters:
            kind: name of the kind, such as ``frequency``.
            title: a short name for people.
            asks: what is asked, for the owners of devices.
            plan: what is asked, in the terms of the kind.
            now: when it opens.
            deadline: when it ends; a week later if not given.
            patience: how many seconds one question stays open at most.
            nonce: makes two campaigns different; drawn if not given.
        """
        opens = now.astimezone(UTC).replace(microsecond=0)
        return cls(
            kind=kind,
            title=title,
            asks=asks,
            epsilon=float(plan.epsilon),
            people=plan.people,
            opens=utc_text(opens),
            deadline=utc_text(deadline or opens + timedelta(days=DEFAULT_DAYS)),
            patience=float(patience),
            nonce=nonce or new_id(),
            plan=plan,
        )

    @property
    def opens_at(self) -> datetime:
        """When devices are asked first."""
        return _time("opens", self.opens)

    @property
    def closes_at(self) -> datetime:
        """When no answer is taken any more."""
        return _time("deadline", self.deadline)

    # forms

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: getattr(self, name) for name in FIELDS if name != "plan"}
        return {"tempriv": "campaign", "version": VERSION, **plain, "plan": self.plan.to_dict()}

    def to_json(self) -> str:
        """The one text of a campaign."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def id(self) -> str:
        """32 hexadecimal digits that follow from everything in it."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    @classmethod
    def from_json(cls, text: str | bytes) -> Campaign:
        """Read a campaign from ``text``, as ``to_json`` gave it; anything else is refused."""
        require(len(text) <= MAX_SPEC_BYTES, "not a campaign: it is too long", MessageError)
        try:
            document = strict_json(text)
        except (ValueError, RecursionError):
            document = None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Any) -> Campaign:
        """Read a campaign from ``document``, as ``to_dict`` gave it.

        Parameters:
            document: the campaign as plain values.

        Raises:
            MessageError: it is anything else.
        """
        require(
            isinstance(document, dict) and document.get("tempriv") == "campaign",
            "not a campaign",
            MessageError,
        )
        require(
            document.get("version") == VERSION and type(document["version"]) is int,
            f"version {document.get('version')!r:.20}: this is version {VERSION} of campaigns",
            MessageError,
        )
        odd = sorted(set(document) ^ {"tempriv", "version", *FIELDS}, key=str)
        require(not odd, f"a campaign has members too many or too few: {odd[:3]}", MessageError)
        kind = document["kind"]
        definition = _definition(kind)
        plain = {name: document[name] for name in FIELDS if name != "plan"}
        for name, read in (("epsilon", finite), ("people", whole_number), ("patience", finite)):
            try:
                plain[name] = read(document[name])
            except (TemprivError, OverflowError):
                raise MessageError(f"{name}: must be a number that is finite") from None
        try:
            plan = definition.read_plan(document["plan"], plain["epsilon"], plain["people"])
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
    def definition(self) -> CampaignKind[Any]:
        """Everything about its kind."""
        return campaign_kinds()[self.kind]

    def start(self, first_step: int = 0) -> ProtocolState:
        """Return its state before anyone has answered.

        Parameters:
            first_step: the step to begin with, where there are steps.
        """
        return self.definition.start(self, first_step)

    def load_state(self, text: str) -> ProtocolState:
        """Return the state that ``ProtocolState.to_text`` gave as ``text``."""
        return self.definition.load(self, json.loads(text))

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What every device is guaranteed, towards anyone who sees its answers."""
        return self.plan.guarantee

    @property
    def protected(self) -> str:
        """What its epsilon is about, to be read after the word 'about'."""
        guarantee = self.guarantee
        return "anything" if isinstance(guarantee, NoGuarantee) else guarantee.unit.sentence

    @property
    def published(self) -> Published:
        """The published claim about what devices do."""
        return self.plan.published or TEMPRIV_CLAIM

    @property
    def answers_once(self) -> bool:
        """Whether a device answers one question of the campaign, and no second one."""
        return not self.definition.has_steps

    @property
    def sentences(self) -> list[str]:
        """What a device will reveal, for its owner."""
        return [
            *self.definition.consent(self.plan),
            self.definition.odds_sentence(self.plan),
            "The organization learns that a device took part, when it answered, and its network "
            "address; none of that is protected.",
        ]

    def warnings(self, enrolled: int) -> list[str]:
        """Return what an analyst may want to change before devices are asked.

        Parameters:
            enrolled: how many devices are enrolled.
        """
        sentences = []
        if self.epsilon > WEAK_EPSILON:
            little = self.guarantee.protects_little
            sentences.append(
                f"epsilon = {self.epsilon:g} {PROTECTS_NOTHING if little else 'is weak'}: odds "
                f"about {self.protected} may change {odds(self.epsilon)}-fold. Up to "
                f"{WEAK_EPSILON:g} is usual, and less protects more."
            )
        if self.people > enrolled:
            sentences.append(
                f"{enrolled:,} devices are enrolled and {self.people:,} announced: questions wait "
                f"for the others, each at most {self.patience:g} seconds."
            )
        return sentences + self.definition.warnings(self.plan)
