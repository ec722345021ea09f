"""Campaigns of kind ``stream``: how common each category is, step after step."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from tempriv.collect.protocol.forms import (
    FormGroup,
    ResultView,
    choice,
    duration,
    form_group,
    integer,
)
from tempriv.collect.protocol.kinds.base import (
    ORACLE_GROUP,
    YEAR_SECONDS,
    AnswerRequest,
    CampaignKind,
    Floats,
    ProtocolQuestion,
    ProtocolState,
    VerifiedQuestion,
    categories_field,
    category_index,
    category_question,
    epsilon_field,
    odds_sentence,
    read_category_message,
    refuse_categories,
    simulate_category,
)
from tempriv.collect.protocol.simulated import Reports, SimulatedDevices, falling_weights
from tempriv.errors import require
from tempriv.local.frequency.base import Frequencies, Integers, support_of
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes.simulate import NORMAL_95_DEVIATIONS
from tempriv.local.streams import protocol
from tempriv.local.streams.messages import StreamQuestion
from tempriv.local.streams.protocol import METHODS, SHARE_UNITS, StreamPlan
from tempriv.local.streams.roles import StreamDevice
from tempriv.local.wire import (
    MessageError,
    finite,
    members,
    refuse_damage,
    unique_texts,
    whole_number,
)
from tempriv.mechanisms.checks import COLUMNS_AGREE, TOLERANCE, Check, Rows
from tempriv.privacy.guarantees import Guarantee, Published

if TYPE_CHECKING:
    from tempriv.collect.device.answers import OwnedData
    from tempriv.collect.device.limits import DeviceLimits
    from tempriv.collect.protocol.campaign import Campaign

MAX_STEPS = 1 << 20
MAX_DIVIDED_PEOPLE = 1 << 21
"""Devices of a stream whose method draws some of them at each step."""
MIN_STEP_SECONDS = 1.0
MIN_EPSILON = 1e-9
"""Below that of any publication; where randomized response is best at it, it always is."""
NOTHING_KNOWN = {"share": 0.0, "low": 0.0, "high": 1.0}
"""Before the first publication."""
COMPARE_SHARE = 0.5
"""Of what is left of a step, for a question that compares; the rest is for publishing."""
SIMULATED_CYCLE_STEPS = 48
VISITS_PER_STEP = 4
FORM_METHODS = {
    "LPU": "LPU: another group answers at each step",
    "LPA": "LPA: groups answer; those saved are used when it moves",
    "LPD": "LPD: groups answer; half of those left when it moves",
    "LSP": "LSP: all answer, once in a window",
    "LBU": "LBU: all answer at each step, with epsilon / window",
    "LBA": "LBA: all answer; saved epsilon is used when it moves",
    "LBD": "LBD: all answer; half of the epsilon left when it moves",
}


@dataclass(frozen=True, kw_only=True)
class StreamCampaignPlan:
    """Each device has one of some categories at every step; the shares are told step by step.

    Parameters:
        epsilon: loss within any window of steps.
        people: devices that take part.
        categories: names of the categories.
        method: how epsilon or people are divided over a window.
        window: steps that epsilon holds for.
        every: seconds of a step, counted from when the campaign opens.
        steps: number of steps.
        oracle: the frequency oracle that reports go through, or ``automatic``.
    """

    epsilon: float
    people: int
    categories: tuple[str, ...]
    method: str
    window: int
    every: float
    steps: int
    oracle: str = "automatic"

    def __post_init__(self) -> None:
        refuse_categories(self.categories)
        require(self.method in METHODS, f"method={self.method}: must be of {', '.join(METHODS)}")
        require(
            isinstance(self.every, (int, float)) and MIN_STEP_SECONDS <= self.every <= YEAR_SECONDS,
            f"every={self.every}: must be at least {MIN_STEP_SECONDS:g} seconds, and at most a "
            "year",
        )
        require(
            isinstance(self.steps, int) and 1 <= self.steps <= MAX_STEPS,
            f"steps={self.steps}: must be a whole number from 1 to {MAX_STEPS:,}",
        )
        require(
            not self.stream.divides_people or self.people <= MAX_DIVIDED_PEOPLE,
            f"people={self.people}: {self.method} keeps account of each device, for at most "
            f"{MAX_DIVIDED_PEOPLE:,}; take a method that asks everybody, or several campaigns",
        )

    @property
    def stream(self) -> StreamPlan:
        """The same without names and clock, as the protocol takes it."""
        return StreamPlan(
            method=self.method,  # type: ignore[arg-type]
            epsilon=self.epsilon,
            window=self.window,
            size=len(self.categories),
            people=self.people,
            oracle=self.oracle,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What every device is guaranteed, towards anyone who sees its answers."""
        return self.stream.guarantee

    @property
    def published(self) -> Published:
        """The claim of the paper that the method comes from."""
        return self.stream.published

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "categories": list(self.categories),
            "method": self.method,
            "window": self.window,
            "every": self.every,
            "steps": self.steps,
            "oracle": self.oracle,
        }


def _plan_of(campaign: Campaign) -> StreamCampaignPlan:
    assert isinstance(campaign.plan, StreamCampaignPlan)
    return campaign.plan


def step_at(campaign: Campaign, now: datetime) -> int:
    """Return the step of a stream at a moment; below 0 before it opens.

    Parameters:
        campaign: a campaign of kind ``stream``.
        now: the moment.

    >>> from tempriv.collect import Campaign
    >>> plan = StreamCampaignPlan(epsilon=1.0, people=10, categories=("in", "out"), method="LBU",
    ...                           window=2, every=60.0, steps=9)
    >>> opens = datetime.fromisoformat("2026-01-01T00:00:00Z")
    >>> campaign = Campaign.begin("stream", "Where", "Where are you?", plan, now=opens)
    >>> step_at(campaign, opens), step_at(campaign, opens + timedelta(seconds=150))
    (0, 2)
    """
    return math.floor((now - campaign.opens_at).total_seconds() / _plan_of(campaign).every)


def bounds_of(
    estimate: Frequencies, people: int, everyone: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return bounds around shares of all devices: those who answered are a sample.

    Parameters:
        estimate: counts of those who answered.
        people: how many these are.
        everyone: how many devices there are.
    """
    shares = estimate.counts / people
    likely = np.clip(shares, 0, 1)
    part = max(0.0, (everyone - people) / max(1, everyone - 1))
    sampling = NORMAL_95_DEVIATIONS**2 * part * likely * (1 - likely) / people
    below = np.sqrt(np.maximum(0, shares - estimate.low / people) ** 2 + sampling)
    above = np.sqrt(np.maximum(0, estimate.high / people - shares) ** 2 + sampling)
    low, high = np.clip(likely - below, 0, 1), np.clip(likely + above, 0, 1)
    return tuple(low.tolist()), tuple(high.tolist())


def _is_publication(
    plan: StreamCampaignPlan, people: int, shares: list[float], sides: list[list[float]]
) -> bool:
    """Whether shares and their bounds follow from reports, as far as epsilon is known.

    Where it follows from reports what a publication may take, each report still names one category
    in randomized response, so that shares add up to 1.
    """
    stream = plan.stream
    epsilon = _published_epsilon(stream)
    if epsilon is None:
        names_one = stream.oracle_for(MIN_EPSILON) == "grr"
        return not names_one or abs(sum(shares) - 1) <= TOLERANCE
    oracle = ORACLES[stream.oracle_for(epsilon)](epsilon=epsilon, size=stream.size)
    keep, other = float(oracle.keep), float(oracle.other)
    supports = [support_of(share * people, keep, other, people) for share in shares]
    known = np.array([one for one in supports if one is not None], dtype=np.int64)
    if len(known) < len(shares) or (oracle.supports_one and known.sum() != people):
        return False
    expected = bounds_of(oracle.estimate(known, people), people, plan.people)
    return bool(np.allclose(sides, expected, rtol=0, atol=TOLERANCE))


def _published_epsilon(stream: StreamPlan) -> float | None:
    """The epsilon of every publication; None where it follows from reports."""
    if stream.divides_people:
        return float(stream.epsilon)
    if stream.adapts:
        return None
    every = 2 * stream.window * SHARE_UNITS
    share = every if stream.method == "LSP" else stream.uniform_share
    return stream.epsilon_and_people(share)[0]


@dataclass(frozen=True)
class StreamState(ProtocolState):
    """One step of a stream after the other; the clock says which it is."""

    protocol: protocol.StreamProtocol
    bounds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    """Below and above each share of the last publication, with 95 % confidence."""

    @property
    def question(self) -> ProtocolQuestion | None:
        message = self.protocol.question
        if message is None:
            return None
        name = f"{self.campaign.id}/{message.step}/{message.part}"
        return category_question(message, name, positions=self.protocol.asked)

    def after(self, support: Integers, people: int) -> StreamState:
        """Return the state after a question that ``people`` answered with this ``support``."""
        message = self.protocol.question
        assert message is not None
        bounds = self.bounds
        if people and message.part == "publish":
            estimate = message.frequency.estimate(support, people)
            bounds = bounds_of(estimate, people, self.campaign.people)
        return replace(self, protocol=self.protocol.after(support, people), bounds=bounds)

    @property
    def is_over(self) -> bool:
        """Whether the last step has its release."""
        last = _plan_of(self.campaign).steps - 1
        return self.protocol.question is None and self.protocol.step >= last

    def to_dict(self) -> dict[str, Any]:
        bounds = [list(side) for side in self.bounds]
        return {"course": self.protocol.to_dict(), "bounds": bounds}

    def closes_at(self, question: ProtocolQuestion, now: datetime) -> datetime:
        """Return when a ``question`` that is open ``now`` closes: with its step at the latest."""
        end = self.next_step_at
        if question.kind == "compare":
            return now + min(timedelta(seconds=self.campaign.patience), COMPARE_SHARE * (end - now))
        return end

    def started(self, now: datetime) -> StreamState | None:
        """Return the state at the step that it is ``now``."""
        first = max(0, step_at(self.campaign, now))
        if first >= _plan_of(self.campaign).steps:
            return None
        return _first_state(self.campaign, first)

    @property
    def next_step_at(self) -> datetime:
        seconds = _plan_of(self.campaign).every * (self.protocol.step + 1)
        return self.campaign.opens_at + timedelta(seconds=seconds)

    def next_step(self, now: datetime | None = None) -> StreamState:
        """Return the state at the next step, if it has come ``now``."""
        state = replace(self, protocol=self.protocol.next_step())
        if now is None:
            return state
        last = _plan_of(self.campaign).steps - 1
        if state.protocol.step < min(step_at(self.campaign, now), last):
            while (question := state.question) is not None:
                state = state.after(np.zeros(question.cells, dtype=np.int64), 0)
        return state

    def step_record(self, people: int) -> dict[str, Any] | None:
        """Return the release of a complete step, whose last question ``people`` answered."""
        if self.protocol.question is not None:
            return None
        low, high = self.bounds
        return {
            "step": self.protocol.step,
            "published": self.protocol.published,
            "shares": list(self.protocol.release),
            "low": list(low),
            "high": list(high),
            "people": people if self.protocol.published else 0,
        }


def _first_state(campaign: Campaign, first_step: int) -> StreamState:
    plan = _plan_of(campaign)
    size = len(plan.categories)
    start = protocol.StreamProtocol.start(plan.stream, campaign.id, first_step)
    return StreamState(campaign, start, ((0.0,) * size, (1.0,) * size))


class StreamKind(CampaignKind[StreamCampaignPlan]):
    """Shares of categories over time; epsilon holds within any window of steps."""

    name = "stream"
    title = "Running histogram"
    summary = (
        "How common is each category, step after step? Any window of steps gives away at most "
        "epsilon."
    )
    position = 3
    has_steps = True
    questions: ClassVar[Mapping[str, str]] = {
        "compare": "Has the histogram moved since the last release?",
        "publish": "Which category is yours now?",
    }
    asks = "Which of these categories is yours at the moment?"
    duration_seconds = 3 * 3600
    patience_seconds = 25
    patience_hint = "a step has up to two questions."
    facts = (("Steps", "{plan.steps|count}, every {plan.every|duration}"),)
    id_column = "category"
    time_column = "step"
    result_view = ResultView(
        view="lines",
        caption="Shares at each step, the latest first",
        rows="steps",
        name="plan.categories",
        people_label="Most answers at one step",
    )

    def read_plan(self, document: Any, epsilon: float, people: int) -> StreamCampaignPlan:
        """Read the ``document`` of a plan with the campaign's ``epsilon`` and ``people``."""
        names = ("categories", "method", "window", "every", "steps", "oracle")
        with refuse_damage():
            values = members(document, names)
            values["categories"] = unique_texts(values["categories"])
            for name in ("window", "steps"):
                values[name] = whole_number(values[name])
            values["every"] = finite(values["every"])
        return StreamCampaignPlan(epsilon=epsilon, people=people, **values)

    def start(self, campaign: Campaign, first_step: int = 0) -> StreamState:
        """Return the state of a ``campaign`` at its ``first_step``."""
        return _first_state(campaign, first_step)

    def load(self, campaign: Campaign, document: dict[str, Any]) -> StreamState:
        """Return the state of a ``campaign`` that ``to_dict`` gave as ``document``."""
        plan = _plan_of(campaign).stream
        low, high = (tuple(side) for side in document["bounds"])
        return StreamState(
            campaign, protocol.StreamProtocol.from_dict(plan, document["course"]), (low, high)
        )

    def consent(self, plan: StreamCampaignPlan) -> list[str]:
        """Return when a device is asked under this ``plan``, and what it reveals."""
        if plan.stream.divides_people:
            who = (
                "At each step some devices are drawn by lot; who answered rests for the rest of a "
                "window."
            )
        elif plan.method != "LSP":
            who = "Every device is asked at each step, with a small part of the budget."
        else:
            who = "Every device is asked once in a window."
        return [
            f"Every {plan.every:g} seconds, for {plan.steps:,} steps, a device may be asked which "
            f"of {len(plan.categories)} categories it has at that moment.",
            who,
            "It answers through noise of its own, and keeps account by its own clock: within any "
            f"{plan.window} steps it tells no more than the guarantee says, whatever it is asked.",
        ]

    def odds_sentence(self, plan: StreamCampaignPlan) -> str:
        """Return the guarantee of a ``plan`` as odds, about any window of steps."""
        subject = f"what the device had within any {plan.window} steps in a row"
        return odds_sentence(subject, plan.epsilon)

    def can_answer(self, plan: StreamCampaignPlan, data: OwnedData) -> bool:
        """Whether ``data`` has an observed category, whatever the ``plan``."""
        return data.has_observed

    def relevant_data(
        self, plan: StreamCampaignPlan, data: OwnedData
    ) -> tuple[Floats | None, str | None]:
        """Return the observed category of ``data``; nothing else counts for a ``plan`` of this
        kind.
        """
        return None, data.observed

    def answer(self, request: AnswerRequest) -> bytes:
        """Return the answer that a ``request`` asks for."""
        plan, message = _plan_of(request.campaign), request.question.message
        assert isinstance(message, StreamQuestion)
        ledger = request.ledgers.window(
            request.campaign.id, plan.window, plan.epsilon, request.second
        )
        device = StreamDevice(ledger, size=len(plan.categories))
        index = category_index(plan.categories, request.data.observed, request.key)
        device.observe(message.step, index)
        return device.answer(message, request.key).to_bytes()

    def cost(self, plan: StreamCampaignPlan, limits: DeviceLimits) -> float:
        """Return what all answers to a ``plan`` within an owner's ``limits`` come to at most."""
        steps = min(math.ceil(limits.stream_seconds / plan.every) + 1, plan.steps)
        return math.ceil(steps / plan.window) * plan.epsilon

    def visit_seconds(self, plan: StreamCampaignPlan) -> float:
        """Return the seconds between visits that no step of the ``plan`` is missed by."""
        return plan.every / VISITS_PER_STEP

    def verify_question(
        self, campaign: Campaign, body: dict[str, Any], now: datetime
    ) -> VerifiedQuestion:
        """Verify that the question ``body`` of a ``campaign`` follows from its plan and is about
        ``now``.
        """
        message = StreamQuestion.from_json(json.dumps(body))
        plan, step = _plan_of(campaign), step_at(campaign, now)
        require(
            message.step == step and 0 <= step < plan.steps,
            f"a question about step {message.step}: by this device's clock it is step {step}",
            MessageError,
        )
        require(
            _has_planned_epsilon(plan.stream, message)
            and message.campaign == campaign.id
            and message.size == plan.stream.size
            and message.oracle == plan.stream.oracle_for(message.epsilon),
            "the question does not follow from the plan of its campaign",
            MessageError,
        )
        return VerifiedQuestion(f"{campaign.id}/{message.step}/{message.part}", message)

    def result(self, state: ProtocolState, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the ``steps`` that are complete, whatever the ``state``."""
        return {"steps": steps, "people": max((step["people"] for step in steps), default=0)}

    def table(
        self, plan: StreamCampaignPlan, result: dict[str, Any], uploads: list[tuple[int, bytes]]
    ) -> pa.Table:
        """Return a row for each category and step of a ``result`` of this ``plan``; there are no
        ``uploads``.
        """
        rows = [
            {
                "category": name,
                "step": step["step"],
                "share": step["shares"][i],
                "low": step["low"][i],
                "high": step["high"][i],
                "published": int(step["published"]),
                "people": step["people"],
            }
            for i, name in enumerate(plan.categories)
            for step in sorted(result["steps"], key=lambda step: step["step"])
        ]
        return pa.Table.from_pylist(rows)

    def check_rows(self, campaign: Campaign, about: dict[str, Any], rows: Rows) -> list[Check]:
        """Return whether the ``rows`` of the release ``about`` a ``campaign`` fit each other."""
        plan = _plan_of(campaign)
        steps = [row["step"] for row in rows if row["category"] == plan.categories[0]]
        wanted = [(name, step) for name in plan.categories for step in steps]
        listed = [(row["category"], row["step"]) for row in rows] == wanted
        told = f"{len(plan.categories):,} categories at {len(steps):,} steps"
        checks = [Check("every category is listed once at each step", listed, told)]
        if not listed:
            return checks
        by_step = [rows[i :: len(steps)] for i in range(len(steps))]
        told = "what is published follows from whole numbers of reports, and the rest repeats it"
        wrong = sum(
            not self._follows(plan, now, before)
            for before, now in itertools.pairwise([None, *by_step])
            if now is not None
        )
        found = f"{told}; not so at {wrong:,} of {len(steps):,} steps" if wrong else told
        return [*checks, Check(COLUMNS_AGREE, not wrong, found)]

    def _follows(
        self, plan: StreamCampaignPlan, now: Sequence[Mapping[str, str]], before: Any
    ) -> bool:
        """Whether the rows of a step are one publication, or repeat the step before."""
        if len({(row["published"], row["people"]) for row in now}) != 1:
            return False
        shares = [float(row["share"]) for row in now]
        sides = [[float(row[side]) for row in now] for side in ("low", "high")]
        clipped = [min(1.0, max(0.0, share)) for share in shares]
        if any(
            not low - TOLERANCE <= s <= high + TOLERANCE
            for s, low, high in zip(clipped, *sides, strict=True)
        ):
            return False
        if now[0]["published"] == "0":
            earlier = [NOTHING_KNOWN] * len(now) if before is None else before
            return all(
                float(one[column]) == float(other[column])
                for one, other in zip(now, earlier, strict=True)
                for column in NOTHING_KNOWN
            )
        return _is_publication(plan, int(now[0]["people"]), shares, sides)

    def simulate(
        self, campaign: Campaign, body: dict[str, Any], devices: SimulatedDevices
    ) -> tuple[bytes, Reports]:
        """Let ``devices`` answer the question ``body`` of a ``campaign``."""
        message = read_category_message(body)
        # a device's rank among all stays; which category has that rank changes with the steps
        return simulate_category(message, simulated_weights(message.step, message.size), devices)

    def form_groups(self) -> tuple[FormGroup, ...]:
        fields = (
            epsilon_field(1, "all that a device sends within a window"),
            categories_field(["at home", "on the way", "at work", "elsewhere"]),
            integer("window", "Window", 20, "steps", 1, MAX_STEPS),
            duration("every", "A step every", 60, 1, 31 * 86_400),
            integer("steps", "Steps", 100, "steps", 1, MAX_STEPS),
            choice("method", "Method", FORM_METHODS),
        )
        hints = {
            "window": "Epsilon holds for everything within any so many steps in a row. Longer "
            "protects more and is less precise.",
            "every": "How often there is a new histogram.",
            "steps": "After so many it is over.",
            "method": "How epsilon or people are divided over a window (Ren et al. 2022). If you "
            "do not know your stream, take LPU.",
        }
        return (form_group("Question and privacy", fields, hints), ORACLE_GROUP)

    def form_problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return what does not fit together in the ``values`` of the form, by field."""
        problems = {}
        seconds = values["steps"] * values["every"]
        if seconds > values["lasts"]:
            problems["lasts"] = (
                f"{values['steps']:,} steps take {seconds:,g} seconds: let it end later, or take "
                "fewer steps."
            )
        adapts = values["method"] in ("LBA", "LBD", "LPA", "LPD")
        longest_patience = values["every"] / (2 if adapts else 1)
        if values["patience"] > longest_patience:
            problems["patience"] = (
                f"A step is {values['every']:,g} seconds long and has up to "
                f"{'two questions' if adapts else 'one question'}: at most "
                f"{longest_patience:,g} seconds."
            )
        return problems

    def plan_of_form(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan that ``values`` of the form stand for."""
        names = ("categories", "method", "window", "every", "steps", "oracle")
        return {name: values[name] for name in names}


def _has_planned_epsilon(stream: StreamPlan, message: StreamQuestion) -> bool:
    """Whether the plan leads to a question with this epsilon, for this part of a step."""
    epsilon = message.epsilon
    if message.part == "compare":
        return stream.adapts and epsilon == stream.epsilon_and_people(stream.step_share)[0]
    published = _published_epsilon(stream)
    if published is not None:
        return epsilon == published
    # how many parts of its half a publication takes follows from reports
    parts = round(Fraction(epsilon) * 2 * stream.window * SHARE_UNITS / Fraction(stream.epsilon))
    return 1 <= parts <= stream.publication_limit and epsilon == stream.epsilon_and_people(parts)[0]


def simulated_weights(step: int, size: int) -> Floats:
    """Return how many simulated devices have each category at a step; it comes and goes.

    Parameters:
        step: the step of the stream.
        size: number of categories.
    """
    phase = 2 * math.pi * (step / SIMULATED_CYCLE_STEPS + np.arange(size) / size)
    return falling_weights(size) * (1.2 + np.sin(phase))
