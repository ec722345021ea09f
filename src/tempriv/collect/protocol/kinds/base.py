"""What a kind of campaign is: one class that holds everything about it, in one file.

A kind says how its plan is read, which questions follow from answers, how a device checks and
answers them, what its owner agrees to, what comes out, how simulated devices answer, and which form
a page shows. Servers, devices, simulations, checks and pages ask the kind and know none by name.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.collect.protocol.assignment import HASH_VALUES
from tempriv.collect.protocol.forms import (
    CampaignDraft,
    FormField,
    FormGroup,
    KindDescription,
    ResultView,
    choice,
    duration,
    fields_in_use,
    form_group,
    integer,
    number,
)
from tempriv.collect.protocol.simulated import DeviceKeystreams, Reports, SimulatedDevices
from tempriv.errors import require
from tempriv.local.frequency.base import Bytes, Flags, FrequencyOracle, Integers, support_of
from tempriv.local.streams import messages
from tempriv.local.wire import TOKEN_BYTES, MessageError, new_token
from tempriv.mechanisms.checks import COLUMNS_AGREE, Check, Rows, rows_check
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.sampling.distributions import UniformChoice
from tempriv.sampling.keys import SeriesKey
from tempriv.sampling.keystream import Keystream, StepRange

if TYPE_CHECKING:
    from tempriv.collect.device.answers import DeviceAnswers, OwnedData
    from tempriv.collect.device.limits import DeviceLimits
    from tempriv.collect.protocol.campaign import Campaign

Floats = npt.NDArray[np.float64]
MAX_FORM_DEVICES = 2**32
YEAR_SECONDS = 366 * 86_400
MORE_SETTINGS = "More settings, with good defaults"
MAX_CATEGORIES = 4096
MAX_NAME_CHARACTERS = 200


class CampaignPlan(Protocol):
    """What a campaign asks for; every kind has a plan of its own."""

    @property
    def epsilon(self) -> float: ...
    @property
    def people(self) -> int: ...
    @property
    def guarantee(self) -> Guarantee | NoGuarantee: ...
    @property
    def published(self) -> Published | None: ...
    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        ...


Plan = TypeVar("Plan", bound=CampaignPlan)


class QuestionMessage(Protocol):
    """A question as a device reads it."""

    def to_json(self) -> str:
        """Everything of it, in one spelling."""
        ...


@dataclass(frozen=True)
class ProtocolQuestion:
    """An open question as a server needs it: what answers look like, and whom it is for.

    Every answer is ``head``, a token and a report, of the same length for all.

    Parameters:
        id: the campaign's id with the question's place in it.
        kind: which of the campaign's questions it is.
        body: what devices are told.
        head: first bytes of every answer.
        report_bytes: length of a report.
        cells: number of counts that reports add up to.
        fits: which rows of reports answer it.
        support: counts that reports add.
        low: least assignment hash that it is for.
        high: assignment hash below which it is for.
        positions: of the participants that are asked, where a campaign has participants.
        keeps_reports: whether reports are kept one by one instead of added up and forgotten.
    """

    id: str
    kind: str
    body: dict[str, Any]
    head: bytes
    report_bytes: int
    cells: int
    fits: Callable[[Bytes], Flags]
    support: Callable[[Bytes], Integers]
    low: int = 0
    high: int = HASH_VALUES
    positions: Integers | None = None
    keeps_reports: bool = False

    @property
    def answer_bytes(self) -> int:
        """Length of an answer."""
        return len(self.head) + TOKEN_BYTES + self.report_bytes


@dataclass(frozen=True)
class VerifiedQuestion:
    """An open question that agrees with its campaign; no ``message`` if the plan has all of it."""

    id: str
    message: QuestionMessage | None

    @property
    def text(self) -> str:
        """Everything of it, in one spelling."""
        return f"{self.id} {'' if self.message is None else self.message.to_json()}"


@dataclass(frozen=True)
class AnswerRequest:
    """What a device draws one answer from.

    Parameters:
        campaign: the campaign that asks.
        question: the question, verified.
        data: what the device has of its owner.
        key: the key that all noise of this answer comes from.
        ledgers: what the device has spent, and its owner's limits.
        second: now, by the device's clock.
    """

    campaign: Campaign
    question: VerifiedQuestion
    data: OwnedData
    key: SeriesKey
    ledgers: DeviceAnswers
    second: int


@dataclass(frozen=True)
class ProtocolState(ABC):
    """Where a campaign stands, as a value: which question is open and what is known so far.

    It has no network and no clock; the same states run in a server and in a test. A kind whose
    campaigns go on step by step also overrides the methods about steps.
    """

    campaign: Campaign

    @property
    @abstractmethod
    def question(self) -> ProtocolQuestion | None:
        """The open question; None if there is none now."""

    @abstractmethod
    def after(self, support: Integers, people: int) -> ProtocolState:
        """Return what follows from the answers to the open question.

        Parameters:
            support: counts for each cell of the question.
            people: how many devices answered.
        """

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether everything that was asked for is known."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""

    def to_text(self) -> str:
        """Return the text that a server keeps."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @property
    def fewest_answers(self) -> int:
        """How many answered the question that fewest did; 0 where shuffling adds nothing."""
        return 0

    def closes_at(self, question: ProtocolQuestion, now: datetime) -> datetime:
        """Return when a question closes at the latest.

        Parameters:
            question: the question that opens.
            now: when it opens.
        """
        return now + timedelta(seconds=self.campaign.patience)

    def started(self, now: datetime) -> ProtocolState | None:
        """Return the state to begin with now; None if the time of the campaign has passed."""
        return self

    @property
    def next_step_at(self) -> datetime | None:
        """When the next step begins; None without steps."""
        return None

    def next_step(self, now: datetime | None = None) -> ProtocolState:
        """Return the next step, or the one that it is now; steps between them have no answers."""
        raise NotImplementedError

    def step_record(self, people: int) -> dict[str, Any] | None:
        """Return what is released for a step that is complete; None if it is not, or no step.

        Parameters:
            people: how many devices answered its last question.
        """
        return None


@dataclass(frozen=True)
class OneQuestionState(ProtocolState):
    """A campaign with one question: open, or answered with counts."""

    support: tuple[int, ...] | None = None
    people: int = 0

    @property
    def question(self) -> ProtocolQuestion | None:
        return None if self.is_over else self.campaign.definition.only_question(self.campaign)

    def after(self, support: Integers, people: int) -> OneQuestionState:
        """Return the state after ``people`` answered with this ``support``: it is over."""
        return replace(self, support=tuple(support.tolist()), people=people)

    @property
    def is_over(self) -> bool:
        return self.support is not None

    @property
    def fewest_answers(self) -> int:
        return self.people

    def to_dict(self) -> dict[str, Any]:
        support = None if self.support is None else list(self.support)
        return {"support": support, "people": self.people}


class CampaignKind(ABC, Generic[Plan]):
    """Everything about one kind of campaign; a subclass in a file of this package is registered.

    Campaigns with one question whose answers are counted need no state of their own: they override
    ``only_question`` and keep the defaults of ``start``, ``load`` and ``verify_question``.
    """

    name: ClassVar[str]
    """In a campaign's JSON."""
    title: ClassVar[str]
    summary: ClassVar[str]
    position: ClassVar[float] = math.inf
    """Place in lists; those without one come last."""
    questions: ClassVar[Mapping[str, str]] = {}
    """What each kind of question asks, in plain words."""
    has_steps: ClassVar[bool] = False
    """Whether the same devices are asked step by step, instead of each one once."""
    assigned_by_hash: ClassVar[bool] = False
    """Whether each question is for some of the devices, by their assignment hashes."""
    agreed_by_default: ClassVar[bool] = True
    """Whether a device answers it though its owner has not named the kind."""
    not_protected: ClassVar[tuple[str, ...]] = ()
    """What else the release does not protect."""
    releases_series: ClassVar[bool] = False
    """Whether its rows are series of devices."""

    # the plan

    def readings_of(self, plan: Plan) -> int | None:
        """Return how many rows a device has in the release of a ``plan``, if rows are series."""
        return None

    @abstractmethod
    def read_plan(self, document: Any, epsilon: float, people: int) -> Plan:
        """Read a plan from JSON; anything else is refused.

        Parameters:
            document: the member ``plan`` of a campaign.
            epsilon: epsilon of the campaign.
            people: devices that the campaign announces.

        Raises:
            TemprivError: it is not a plan of this kind.
        """

    def check_plan(self, plan: Plan) -> None:
        """Refuse a ``plan`` that no campaign may have; nothing by default."""

    # the protocol

    def start(self, campaign: Campaign, first_step: int = 0) -> ProtocolState:
        """Return the state of a campaign that nobody has answered.

        Parameters:
            campaign: a campaign of this kind.
            first_step: the step to begin with, where there are steps.
        """
        return OneQuestionState(campaign)

    def load(self, campaign: Campaign, document: dict[str, Any]) -> ProtocolState:
        """Return the state that ``to_dict`` gave.

        Parameters:
            campaign: a campaign of this kind.
            document: what ``to_dict`` gave.
        """
        support = document["support"]
        return OneQuestionState(
            campaign, None if support is None else tuple(support), document["people"]
        )

    def only_question(self, campaign: Campaign) -> ProtocolQuestion:
        """Return the question of a ``campaign`` that has one."""
        raise NotImplementedError

    # the owner of a device

    @abstractmethod
    def consent(self, plan: Plan) -> list[str]:
        """Return what a device reveals under this ``plan``, one thing a sentence."""

    def odds_sentence(self, plan: Plan) -> str:
        """Return the guarantee of a ``plan`` as odds, about what this kind protects."""
        return odds_sentence("what the device holds", plan.epsilon)

    def warnings(self, plan: Plan) -> list[str]:
        """Return what an analyst may want to change in ``plan`` before devices are asked."""
        return []

    def smallest_group(self, plan: Plan) -> int | None:
        """Return how many devices the smallest question of ``plan`` is for; None if shuffling adds
        nothing.
        """
        return None

    # a device

    @abstractmethod
    def can_answer(self, plan: Plan, data: OwnedData) -> bool:
        """Whether the device has data that this plan is about; which data plays no part."""

    @abstractmethod
    def relevant_data(self, plan: Plan, data: OwnedData) -> tuple[Floats | None, str | None]:
        """Return what of ``data`` an answer under ``plan`` depends on: readings, and a text."""

    @abstractmethod
    def answer(self, request: AnswerRequest) -> bytes:
        """Pay for an answer and draw it.

        Parameters:
            request: the question, the data and the key.

        Guarantees:
            - the ledger is charged before this returns;
            - whether it is refused does not depend on what the device holds.
        """

    def cost(self, plan: Plan, limits: DeviceLimits) -> float:
        """Return the epsilon that a campaign is counted with.

        Parameters:
            plan: the plan of the campaign.
            limits: how the owner of the device measures.
        """
        return plan.epsilon

    def visit_seconds(self, plan: Plan) -> float:
        """Return how often a device should look in at the server under ``plan``, in seconds."""
        return math.inf

    def verify_question(
        self, campaign: Campaign, body: dict[str, Any], now: datetime
    ) -> VerifiedQuestion:
        """Return the question, if the plan of its campaign leads to it.

        Parameters:
            campaign: the campaign that asks.
            body: what the server says is asked.
            now: the time by the device's clock.

        Raises:
            MessageError: the plan cannot have led to it.
        """
        expected = self.only_question(campaign)
        require(
            json.dumps(body, sort_keys=True) == json.dumps(expected.body, sort_keys=True),
            "the question is not the one of its campaign",
            MessageError,
        )
        return VerifiedQuestion(expected.id, self.read_message(body))

    def read_message(self, body: dict[str, Any]) -> QuestionMessage | None:
        """Return the question in ``body`` as a device reads it; None if the plan has all of it."""
        return None

    # the result

    result_view: ClassVar[ResultView]
    facts: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Labels with texts about a campaign, with ``{path}`` for values of its JSON."""
    id_column: ClassVar[str]
    time_column: ClassVar[str | None] = None
    text_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of the release that hold no values."""

    @abstractmethod
    def result(self, state: ProtocolState, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Return what a campaign found.

        Parameters:
            state: where the campaign stands.
            steps: the records of its steps.
        """

    def check_rows(self, campaign: Campaign, about: dict[str, Any], rows: Rows) -> list[Check]:
        """Return whether the rows of a release fit each other, for ``tempriv verify``.

        By default shares are compared with counts, where there are both.

        Parameters:
            campaign: the campaign.
            about: the description of its release.
            rows: the cells of each row as text, by column.
        """
        if not rows or not {"count", "share"} <= rows[0].keys():
            why = "how columns of this kind of campaign follow from each other is not known here"
            return [Check(COLUMNS_AGREE, None, why)]
        return [shares_check(rows, about["people"])]

    def table(
        self, plan: Plan, result: dict[str, Any], uploads: list[tuple[int, bytes]]
    ) -> pa.Table:
        """Return a result as the table of a release.

        Parameters:
            plan: the plan of the campaign.
            result: what ``result`` gave.
            uploads: reports that were kept, with the numbers of their devices.
        """
        rows = result[self.result_view.rows]
        require(bool(rows), "the campaign found nothing that could be written", MessageError)
        return pa.Table.from_pylist([_without_infinities(row) for row in rows])

    # simulated devices

    @abstractmethod
    def simulate(
        self, campaign: Campaign, body: dict[str, Any], devices: SimulatedDevices
    ) -> tuple[bytes, Reports]:
        """Return the head of every answer, and how simulated devices make their reports.

        Parameters:
            campaign: the campaign that asks.
            body: the open question.
            devices: who answers.
        """

    # the form

    asks: ClassVar[str]
    """What is asked, as a first proposal."""
    duration_seconds: ClassVar[int] = 7 * 86_400
    patience_seconds: ClassVar[int] = 3600
    patience_hint: ClassVar[str] = "then the next one is asked."

    @abstractmethod
    def form_groups(self) -> tuple[FormGroup, ...]:
        """Return the fields of this kind; those of every campaign come with them."""

    @abstractmethod
    def plan_of_form(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan as JSON.

        Parameters:
            values: what was filled in, by the name of a field.
        """

    def form_problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return what is wrong between ``values`` of fields, by the name of the field to change."""
        return {}

    def form_epsilon(self, values: Mapping[str, Any]) -> float:
        """Return the epsilon in the ``values`` of a form."""
        return float(values["epsilon"])

    def describe(self, enrolled: int = 0) -> KindDescription:
        """Return all that a page needs to know of this kind.

        Parameters:
            enrolled: how many devices are enrolled now.
        """
        return KindDescription(
            name=self.name,
            title=self.title,
            summary=self.summary,
            has_steps=self.has_steps,
            questions=dict(self.questions),
            facts=self.facts,
            form=self._form(enrolled),
            result=self.result_view,
        )

    def _form(self, enrolled: int) -> tuple[FormGroup, ...]:
        about = form_group(
            "About it",
            [
                FormField(
                    name="title",
                    label="Title",
                    type="text",
                    value="",
                    required=True,
                    most=200,
                    missing="Give it a title.",
                ),
                FormField(
                    name="asks",
                    label="What is asked",
                    type="text",
                    value=self.asks,
                    required=True,
                    most=2000,
                ),
                replace(
                    integer(
                        "people", "Devices", enrolled or 10_000, "devices", 1, MAX_FORM_DEVICES
                    ),
                    wide=True,
                ),
            ],
            {
                "title": "Short and plain; people who own the devices see it.",
                "asks": "One sentence in plain words, for the owners of the devices.",
                "people": "How many devices are asked, announced before it starts. "
                + (f"{enrolled:,} are enrolled now." if enrolled else "None is enrolled yet."),
            },
        )
        time = form_group(
            "Time",
            [
                FormField(name="opens", label="Opens", type="moment"),
                duration("lasts", "Ends after", self.duration_seconds, 10, YEAR_SECONDS),
                duration(
                    "patience", "Patience with one question", self.patience_seconds, 1, YEAR_SECONDS
                ),
            ],
            {
                "opens": "In your local time. Empty: as soon as you start it.",
                "lasts": "Counted from its opening; no answer is taken later. It ends earlier when "
                "all is known.",
                "patience": "A question closes after this, with the answers that have come in; "
                + self.patience_hint,
            },
        )
        shown = [group for group in self.form_groups() if not group.folded]
        folded = [group for group in self.form_groups() if group.folded]
        return (about, *shown, time, *folded)

    def draft(self, values: Mapping[str, Any], now: datetime) -> CampaignDraft:
        """Return the campaign that a form makes, or what is wrong with which field.

        Parameters:
            values: what was filled in, by the name of a field.
            now: when the campaign opens if the form does not say.
        """
        fields = fields_in_use(self._form(0), values)
        problems = {
            field.name: sentence
            for field in fields
            if (sentence := field.problem(values.get(field.name)))
        }
        problems = problems or self.form_problems(values)
        opens = now
        try:
            if not problems and values["opens"] is not None:
                opens = datetime.fromisoformat(values["opens"]).astimezone(UTC)
            deadline = opens + timedelta(seconds=0 if problems else values["lasts"])
        except OverflowError:
            problems = {"opens": "Is too far away."}
        if problems:
            return CampaignDraft(campaign=None, problems=problems)
        campaign = {
            "tempriv": "campaign",
            "version": 1,
            "kind": self.name,
            "title": values["title"],
            "asks": values["asks"],
            "epsilon": self.form_epsilon(values),
            "people": values["people"],
            "deadline": utc_text(deadline),
            "patience": values["patience"],
            "plan": self.plan_of_form(values),
        }
        if values["opens"] is not None:
            campaign["opens"] = utc_text(opens)
        return CampaignDraft(campaign=campaign, problems={})


# what several kinds share


def utc_text(moment: datetime) -> str:
    """Return a moment in UTC, to the second.

    Parameters:
        moment: a time with its zone.

    >>> utc_text(datetime(2026, 11, 16, 23, 0, tzinfo=UTC))
    '2026-11-16T23:00:00Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def odds(epsilon: float) -> str:
    """Return e to the epsilon, rounded up to three digits."""
    exact = math.exp(min(epsilon, 700.0))
    unit = 10.0 ** (math.floor(math.log10(exact)) - 2)
    return f"{math.ceil(exact / unit - 1e-9) * unit:.3g}"


def odds_sentence(subject: str, epsilon: float) -> str:
    """Return the guarantee as odds.

    Parameters:
        subject: the data that is protected.
        epsilon: the loss of all answers about it.
    """
    return (
        f"Whatever someone suspects about {subject}, all that the device sends about it changes "
        f"the odds at most {odds(epsilon)}-fold (epsilon = {epsilon:g}), towards anyone, the "
        "organization included."
    )


def refuse_categories(categories: tuple[str, ...]) -> None:
    """Refuse names of categories that are not different, short and on one line."""
    require(
        2 <= len(categories) <= MAX_CATEGORIES
        and all(
            isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARACTERS for name in categories
        )
        and all(name.isprintable() for name in categories)
        and len(set(categories)) == len(categories),
        f"categories: must be 2 to {MAX_CATEGORIES:,} different names of at most "
        f"{MAX_NAME_CHARACTERS} characters on one line",
    )


def category_question(
    message: messages.StreamQuestion, name: str, positions: Integers | None = None
) -> ProtocolQuestion:
    """Return a question about one of some categories, answered through a frequency oracle.

    Parameters:
        message: the question as devices read it.
        name: id of the question.
        positions: of the participants that are asked; None for all devices.
    """
    oracle = message.frequency
    return ProtocolQuestion(
        id=name,
        kind=message.part,
        body=json.loads(message.to_json()),
        head=messages.head_of(message),
        report_bytes=oracle.report_bytes,
        cells=message.size,
        fits=oracle.fits,
        support=oracle.support,
        positions=positions,
    )


def read_category_message(body: dict[str, Any]) -> messages.StreamQuestion:
    """Read the body of a question about a category."""
    return messages.StreamQuestion.from_json(json.dumps(body))


def category_index(categories: Sequence[str], category: str | None, key: SeriesKey) -> int:
    """Return the index of a category; of one that is not asked for, any index, equally likely.

    Parameters:
        categories: those that are asked for.
        category: what the device has.
        key: where the draw comes from.
    """
    if category is not None and category in categories:
        return categories.index(category)
    blank = Keystream([StepRange(key, 0, 1)], "blank")
    return int(UniformChoice(len(categories)).sample(blank)[0])


def answer_category(request: AnswerRequest, index: int) -> bytes:
    """Pay for the one answer of a campaign about a category, and draw it.

    Parameters:
        request: the question and the key.
        index: the category that the device has.
    """
    message = request.question.message
    assert isinstance(message, messages.StreamQuestion)
    report = message.frequency.report(index, Keystream([StepRange(request.key, 0, 1)], "report"))
    request.ledgers.once.spend(request.campaign.id, message.epsilon)
    return messages.StreamAnswer(
        campaign=message.campaign,
        step=message.step,
        part=message.part,
        token=new_token(),
        report=report,
    ).to_bytes()


def simulate_category(
    message: messages.StreamQuestion, weights: Floats, devices: SimulatedDevices
) -> tuple[bytes, Reports]:
    """Return how simulated devices answer a question about a category.

    Parameters:
        message: the question.
        weights: how often each category comes.
        devices: who answers.
    """

    def reports(numbers: Integers, keystreams: DeviceKeystreams) -> Bytes:
        """The reports of the devices with these ``numbers``, by their ``keystreams``."""
        values = devices.choices("category", weights, numbers)
        rows: Bytes = message.frequency.reports(values, keystreams("report"))
        return rows

    return messages.head_of(message), reports


def estimated_shares(
    names: Sequence[str], oracle: FrequencyOracle, support: Sequence[int], people: int
) -> list[dict[str, Any]]:
    """Return a row for each category: its count and share, with error and 95 % interval.

    Parameters:
        names: the categories.
        oracle: what reports went through.
        support: reports that support each category.
        people: how many devices answered.
    """
    if people == 0:
        unknown = {"count": 0.0, "standard_error": None, "share": 0.0, "low": 0.0, "high": 1.0}
        return [{"category": name, **unknown} for name in names]
    estimate = oracle.estimate(np.array(support, dtype=np.int64), people)
    return [
        {
            "category": name,
            "count": count,
            "standard_error": error,
            "share": min(1.0, max(0.0, count / people)),
            "low": low / people,
            "high": high / people,
        }
        for name, count, error, low, high in zip(
            names,
            estimate.counts.tolist(),
            estimate.standard_error.tolist(),
            estimate.low.tolist(),
            estimate.high.tolist(),
            strict=True,
        )
    ]


def estimates_check(
    names: Sequence[str], oracle: FrequencyOracle, people: int, rows: Rows
) -> list[Check]:
    """Return whether a release is what ``estimated_shares`` gives for some reports.

    Parameters:
        names: the categories.
        oracle: what reports went through.
        people: how many devices answered.
        rows: of the release.
    """
    listed = [row["category"] for row in rows] == list(names)
    checks = [Check("every category is listed once", listed, f"{len(names):,} categories")]
    if not listed:
        return checks
    keep, other = float(oracle.keep), float(oracle.other)
    counts = [float(row["count"]) for row in rows]
    supports = [support_of(count, keep, other, people) for count in counts] if people else []
    what = "every count comes from a whole number of reports"
    unsound = [row["category"] for row, one in zip(rows, supports, strict=False) if one is None]
    shown = f"not those of {', '.join(unsound[:3])}" if unsound else f"of {people:,} reports"
    checks.append(Check(what, not unsound, shown))
    known = [one for one in supports if one is not None]
    if unsound:
        # the other columns cannot be computed without it, but a share of a count can
        return [*checks, shares_check(rows, people)]
    if oracle.supports_one and people:
        told = f"{sum(known):,} reports for {people:,} devices"
        checks.append(Check("every device reported one category", sum(known) == people, told))
    names_of_columns = ("standard_error", "share", "low", "high")
    expected = [
        {column: row[column] for column in names_of_columns}
        for row in estimated_shares(names, oracle, known, people)
    ]
    told = f"errors, shares and intervals follow from the counts of {people:,} devices"
    return [*checks, rows_check(rows, expected, told)]


def shares_check(rows: Rows, people: int) -> Check:
    """Return whether the shares of a release follow from its counts.

    Parameters:
        rows: of the release.
        people: how many the counts are of.
    """
    counts = [float(row["count"]) for row in rows]
    shares = [min(1.0, max(0.0, count / people)) if people else 0.0 for count in counts]
    told = f"each share is its count of {people:,}"
    return rows_check(rows, [{"share": share} for share in shares], told)


def _without_infinities(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def epsilon_field(value: float, subject: str, **changes: Any) -> FormField:
    """Return the field for an epsilon.

    Parameters:
        value: what it holds at first.
        subject: what the epsilon is for, for its hint.
        changes: other attributes of the field, such as its label.
    """
    field = number(
        "epsilon",
        "Epsilon",
        value,
        "privacy loss (no unit)",
        above=0,
        max=100,
        wide=True,
        note="odds",
        hint=f"How much {subject} may give away. Smaller is more private and less precise; 0.5 to "
        "4 is usual.",
    )
    return replace(field, **changes)


def categories_field(value: list[str]) -> FormField:
    """Return the field for names of categories, which holds ``value`` at first."""
    return FormField(
        name="categories",
        label="Categories",
        type="lines",
        value=value,
        required=True,
        most=MAX_CATEGORIES,
        hint="One on each line. Every device has exactly one of them; add “other” if need be.",
    )


ORACLE_GROUP = form_group(
    MORE_SETTINGS,
    [
        choice(
            "oracle",
            "How answers are made noisy",
            {
                "automatic": "Automatic: the least noise for this epsilon",
                "grr": "GRR: randomized response",
                "oue": "OUE: optimized unary encoding",
                "olh": "OLH: optimized local hashing",
                "hadamard": "Hadamard response",
            },
        )
    ],
    {
        "oracle": "All keep the same guarantee; they differ in precision and in the size of an "
        "answer."
    },
    folded=True,
)
