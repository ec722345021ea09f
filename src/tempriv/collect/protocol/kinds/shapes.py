"""Campaigns of kind ``shapes``: the most frequent shapes of series, found in rounds."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tempriv.collect.protocol.assignment import range_of
from tempriv.collect.protocol.forms import (
    Condition,
    FormField,
    FormGroup,
    ResultColumn,
    ResultNote,
    ResultView,
    choice,
    form_group,
    integer,
)
from tempriv.collect.protocol.kinds.base import (
    MAX_FORM_DEVICES,
    MORE_SETTINGS,
    AnswerRequest,
    CampaignKind,
    Floats,
    ProtocolQuestion,
    ProtocolState,
    VerifiedQuestion,
    epsilon_field,
)
from tempriv.collect.protocol.simulated import (
    POOL_SERIES,
    DeviceKeystreams,
    Reports,
    SimulatedDevices,
    falling_weights,
    series_pool,
)
from tempriv.errors import TemprivError, require
from tempriv.local.frequency.base import Bytes, Integers
from tempriv.local.shapes import roles
from tempriv.local.shapes.messages import ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import (
    AUTOMATIC_METHODS,
    STAGES,
    ShapesProtocol,
    least_people,
)
from tempriv.local.shapes.randomizer import group_with_labels, local_answers, sequences_of
from tempriv.local.shapes.simulate import Outcome, Round, describe_outcome, describe_round
from tempriv.local.shapes.verify import counts_checks
from tempriv.local.wire import MessageError
from tempriv.mechanisms.checks import Check, Rows

if TYPE_CHECKING:
    from tempriv.collect.device.answers import OwnedData
    from tempriv.collect.protocol.campaign import Campaign

SMALL_GROUP_DEVIATIONS = 5.0
"""Standard deviations that a group drawn by assignment hash may fall short of its size."""
MAX_SIMULATED_READINGS = 4096
MAX_CODE_BITS = 63


def _plan_of(campaign: Campaign) -> ShapesPlan:
    assert isinstance(campaign.plan, ShapesPlan)
    return campaign.plan


@dataclass(frozen=True)
class ShapesState(ProtocolState):
    """Rounds of a shapes campaign; each is for the next devices by assignment hash."""

    protocol: ShapesProtocol
    asked_share: float = 0.0
    """The share of all devices that earlier rounds were for."""
    rounds: tuple[Round, ...] = ()

    @property
    def _round_share(self) -> float:
        return self.protocol.wanted / self.protocol.plan.people

    @property
    def question(self) -> ProtocolQuestion | None:
        message = self.protocol.question
        if message is None:
            return None
        low, high = range_of(self.asked_share, self._round_share)
        levels = message.levels if message.kind == "bigram" else 1
        return ProtocolQuestion(
            id=f"{self.campaign.id}/{message.round}",
            kind=message.kind,
            body=json.loads(message.to_json()),
            head=roles.head_of(message),
            report_bytes=message.report_bytes,
            cells=message.cells * levels,
            fits=lambda rows: roles.fits(message, rows),
            support=lambda rows: roles.support_of(message, rows),
            low=low,
            high=high,
        )

    def after(self, support: Integers, people: int) -> ShapesState:
        """Return the state after a round in which ``people`` answered with this ``support``."""
        return replace(
            self,
            protocol=self.protocol.after(support, people),
            asked_share=min(1.0, self.asked_share + self._round_share),
            rounds=(*self.rounds, describe_round(self.protocol, people)),
        )

    @property
    def is_over(self) -> bool:
        return self.protocol.question is None

    @property
    def fewest_answers(self) -> int:
        return min((row.people for row in self.rounds if row.people), default=0)

    @property
    def outcome(self) -> Outcome:
        """What was found, once it is over."""
        require(self.is_over, "the campaign is not over")
        plan, state = self.protocol.plan, self.protocol
        return Outcome(
            plan, self.campaign.id, state.method, state.shapes, self.rounds, plan.guarantee
        )

    def to_dict(self) -> dict[str, Any]:
        rounds = [asdict(row) for row in self.rounds]
        return {"course": self.protocol.to_dict(), "begun": self.asked_share, "rounds": rounds}


class ShapesKind(CampaignKind[ShapesPlan]):
    """The shapes that many series have in common; each device answers one question."""

    name = "shapes"
    title = "Shapes"
    summary = (
        "Which curves are common? Each device turns its series into a few letters, low to high, "
        "and answers one noisy question."
    )
    position = 1
    questions: ClassVar[Mapping[str, str]] = {
        "length": "How long is your sequence?",
        "bigram": "Which two letters follow each other, at a place drawn at random?",
        "level": "Which of these beginnings is yours most like?",
        "refine": "Which of these sequences is yours most like?",
        "whole": "Which sequence is yours, of all that are possible?",
    }
    assigned_by_hash = True
    asks = "Which shape does the curve on your device have?"
    id_column = "shape"
    text_columns = ("label", "sure", "ends")
    result_view = ResultView(
        view="sequences",
        caption="Shapes with their shares",
        rows="shapes",
        name="shape",
        symbols="plan.sax.symbols",
        columns=(
            ResultColumn(head="Shape", field="shape", format="code"),
            ResultColumn(head="Label", field="label", optional=True),
            ResultColumn(head="Share", field="share", format="share"),
            ResultColumn(head="95\u00a0% interval", field="low", format="interval"),
            ResultColumn(head="Devices, about", field="count", format="count"),
            ResultColumn(head="Standard error", field="standard_error", format="count"),
            ResultColumn(head="Surely there", field="sure", format="yes_no", optional=True),
        ),
        notes=(
            ResultNote(
                text="How long a letter lasted is left out, so each has an equal share of the "
                "width.",
                when=Condition(field="plan.sax.compressed", equals=True),
            ),
            ResultNote(
                text="Each letter stands for {plan.sax.segment|count} readings.",
                when=Condition(field="plan.sax.compressed", equals=False),
            ),
        ),
    )

    def read_plan(self, document: Any, epsilon: float, people: int) -> ShapesPlan:
        """Read the ``document`` of a plan; ``epsilon`` and ``people`` must be those of the
        campaign.
        """
        plan = ShapesPlan.from_dict(document)
        require(
            plan.epsilon == epsilon and plan.people == people,
            "plan: epsilon and people must be those of the campaign",
            MessageError,
        )
        return plan

    def check_plan(self, plan: ShapesPlan) -> None:
        """Refuse a ``plan`` with labels on several lines."""
        require(
            all(label.isprintable() for label in plan.labels),
            "labels: must each be on one line",
            MessageError,
        )

    def start(self, campaign: Campaign, first_step: int = 0) -> ShapesState:
        """Return the first state of a ``campaign``; there is no ``first_step``."""
        return ShapesState(campaign, ShapesProtocol(_plan_of(campaign), campaign.id))

    def load(self, campaign: Campaign, document: dict[str, Any]) -> ShapesState:
        """Return the state of a ``campaign`` that ``to_dict`` gave as ``document``."""
        return ShapesState(
            campaign,
            ShapesProtocol.from_dict(_plan_of(campaign), document["course"]),
            document["begun"],
            tuple(Round(**row) for row in document["rounds"]),
        )

    def consent(self, plan: ShapesPlan) -> list[str]:
        """Return what a device does with its series under this ``plan``."""
        sax = plan.sax
        question = "which of some shapes its own is most like, how long it is, or two letters of it"
        if plan.method in ("automatic", "one-shot"):
            question += ", or the whole word"
        label = f" and one of {len(plan.labels)} labels" if plan.labels else ""
        return [
            f"The device turns its series of at most {plan.readings:,} readings into a word: every "
            f"{sax.segment} readings become one of {sax.symbols} letters, from low to high"
            + (", and letters that repeat are written once." if sax.compressed else "."),
            f"It answers one question of the campaign and no other: {question}{label}.",
            "It answers through noise of its own: it may name something else than it holds, and "
            "nobody can tell whether it did.",
            "The series never leaves the device. Which question a device gets is drawn by lot; the "
            "guarantee is the same for each of them.",
        ]

    def warnings(self, plan: ShapesPlan) -> list[str]:
        """Warn if the ``plan`` has too few devices for its method."""
        needed = least_people(plan)
        if plan.people >= needed:
            return []
        return [
            f"{plan.people:,} devices are too few for method {plan.method}: each answers one "
            f"question, and {needed:,} would be needed."
        ]

    def smallest_group(self, plan: ShapesPlan) -> int:
        """Return a size that no round of the ``plan`` falls below but by rare chance."""
        planned = smallest_round(plan)
        return math.floor(planned - SMALL_GROUP_DEVIATIONS * math.sqrt(planned))

    def can_answer(self, plan: ShapesPlan, data: OwnedData) -> bool:
        """Whether ``data`` has a series, whatever the ``plan``."""
        return data.series is not None

    def relevant_data(self, plan: ShapesPlan, data: OwnedData) -> tuple[Floats | None, str | None]:
        """Return the readings of ``data`` that the ``plan`` is for, and the label."""
        return data.readings(plan.readings), data.label

    def answer(self, request: AnswerRequest) -> bytes:
        """Return the answer that a ``request`` asks for."""
        message, ledgers = request.question.message, request.ledgers
        assert isinstance(message, ShapesQuestion)
        series = request.data.readings(message.readings)
        device = roles.ShapesDevice(
            series, request.data.label, ledgers.once, ledgers.limits.most_epsilon
        )
        return device.answer(message, request.key).to_bytes()

    def verify_question(
        self, campaign: Campaign, body: dict[str, Any], now: datetime
    ) -> VerifiedQuestion:
        """Verify that the question ``body`` of a ``campaign`` follows from its plan, whatever is
        ``now``.
        """
        message = ShapesQuestion.from_json(json.dumps(body))
        require(
            message in _planned_questions(_plan_of(campaign), campaign.id, message),
            "the question does not follow from the plan of its campaign",
            MessageError,
        )
        return VerifiedQuestion(f"{campaign.id}/{message.round}", message)

    def result(self, state: ProtocolState, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Return shapes at the end, in ``state``; this kind has no ``steps``."""
        assert isinstance(state, ShapesState)
        facts = describe_outcome(state.outcome)
        names = ("shapes", "rounds", "counted", "method")
        people = sum(row.people for row in state.rounds)
        return {**{name: facts[name] for name in names}, "people": people}

    def check_rows(self, campaign: Campaign, about: dict[str, Any], rows: Rows) -> list[Check]:
        """Return whether ``rows`` of the release ``about`` a ``campaign`` follow from counts."""
        plan = _plan_of(campaign)
        rounds = tuple(Round(**fields) for fields in about["rounds"])
        outcome = Outcome(plan, campaign.id, plan.method, (), rounds, plan.guarantee)
        return counts_checks(outcome, rows)

    def simulate(
        self, campaign: Campaign, body: dict[str, Any], devices: SimulatedDevices
    ) -> tuple[bytes, Reports]:
        """Let ``devices`` answer the question ``body`` of a ``campaign``."""
        message = ShapesQuestion.from_json(json.dumps(body))
        sax = message.sax
        pool = series_pool(min(message.readings, sax.segment * sax.longest, MAX_SIMULATED_READINGS))
        # devices with one series have one thing to say, before noise
        sequences, which = sequences_of(sax, message.readings, pool).grouped()
        texts, labels = sequences.texts(), None
        if message.labels:
            pairs, labels, which = group_with_labels(
                which, np.arange(POOL_SERIES) % len(message.labels)
            )
            texts = [texts[i] for i in pairs]
        answers = local_answers(message, texts, labels)
        answer_index: Integers = np.asarray(which, dtype=np.int64)

        def reports(numbers: Integers, keystreams: DeviceKeystreams) -> Bytes:
            """The reports of the devices with these ``numbers``, by their ``keystreams``."""
            series = devices.choices("series", falling_weights(POOL_SERIES), numbers)
            rows: Bytes = answers.reports(answer_index[series], keystreams)  # type: ignore[arg-type]
            return rows

        return roles.head_of(message), reports

    def form_groups(self) -> tuple[FormGroup, ...]:
        return _QUESTION_FIELDS, _MORE_FIELDS

    def form_problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return what does not fit together in the ``values`` of the form, by field."""
        problems = {}
        symbols, longest, edges = values["symbols"], values["longest"], values["values"]
        longest_fitting = MAX_CODE_BITS // math.ceil(math.log2(symbols))
        if longest > longest_fitting:
            problems["longest"] = f"With {symbols} letters, at most {longest_fitting} fit."
        if values["low"] > longest:
            problems["low"] = "Must be at most the longest sequence."
        if abs(sum(values["shares"]) - 100) > 1e-6 or min(values["shares"]) <= 0:
            problems["shares"] = "Must be four parts above 0, together 100 %."
        if edges and len(edges) != symbols - 1:
            problems["values"] = f"Must be {symbols - 1} edges for {symbols} letters, or none."
        if any(after <= before for before, after in itertools.pairwise(edges)):
            problems["values"] = "Must be in ascending order."
        return problems

    def plan_of_form(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan that ``values`` of the form stand for."""
        names = ("epsilon", "shapes", "people", "distance", "method", "labels", "low")
        sax = ("symbols", "segment", "compressed", "partial", "longest")
        return {
            **{name: values[name] for name in (*names, "breadth", "least", "readings")},
            "sax": {**{name: values[name] for name in sax}, "values": values["values"] or None},
            "shares": [share / 100 for share in values["shares"]],
        }


def smallest_round(plan: ShapesPlan) -> int:
    """Return how many devices the smallest round is for, whatever answers come.

    Parameters:
        plan: the plan of a campaign.
    """
    first = ShapesProtocol(plan, "0" * 32)
    methods = ("one-shot", "nearest") if plan.method == "automatic" else (plan.method,)
    sizes = [first.wanted]
    for method in methods:
        for length in range(1, plan.sax.longest + 1):
            for stage in STAGES[method]:
                if stage != "done":
                    sizes.append(replace(first, method=method, stage=stage, length=length).wanted)
    return min(sizes)


def _planned_questions(
    plan: ShapesPlan, campaign: str, message: ShapesQuestion
) -> list[ShapesQuestion | None]:
    """What the plan asks where its protocol may stand so; only candidates come from answers."""
    if message.kind == "length":
        return [ShapesProtocol(plan, campaign).question]
    methods = AUTOMATIC_METHODS if plan.method == "automatic" else (plan.method,)
    questions = []
    for method in methods:
        if message.kind not in STAGES[method]:
            continue
        state = ShapesProtocol(
            plan,
            campaign,
            round=message.round,
            stage=message.kind,
            method=method,
            length=message.high,
            candidates=message.candidates,
        )
        try:
            questions.append(state.question)
        except TemprivError:
            continue
    return questions


_QUESTION_FIELDS = form_group(
    "Question and privacy",
    [
        epsilon_field(2, "the one answer of a device, about its whole series,"),
        integer("shapes", "Number of shapes", 3, "shapes", 1, 256),
        integer("symbols", "Letters", 4, "letters", 2, 26),
        integer("segment", "Readings per letter", 10, "readings", 1, 2**31),
        integer("longest", "Longest sequence", 15, "letters", 1, 63),
        integer("readings", "Longest series", 1000, "readings", 1, MAX_FORM_DEVICES),
        choice(
            "method",
            "Method",
            {
                "automatic": "Automatic",
                "one-shot": "One-shot: ask for whole sequences at once",
                "nearest": "Nearest: candidates grow letter by letter",
                "published": "Published: PrivShape (Mao et al. 2024, Algorithm 2)",
                "baseline": "Baseline (Mao et al. 2024, Algorithm 1)",
            },
        ),
        choice(
            "distance",
            "Distance",
            {
                "levenshtein": "Levenshtein: letters put in, left out, exchanged",
                "dtw": "Dynamic time warping",
                "euclidean": "Euclidean: position by position",
            },
        ),
        FormField(
            name="labels", label="Labels (optional)", type="lines", value=[], rows=3, most=1024
        ),
    ],
    {
        "shapes": "How many of the most common shapes to find. Fewer are found more surely.",
        "symbols": "Levels from low (a) to high. More letters see finer differences and need more "
        "devices.",
        "segment": "The mean of so many readings becomes one letter. For readings every 10 "
        "minutes, 6 make an hour.",
        "longest": "Only the first so many letters of a series count.",
        "readings": "The guarantee is for whole series of up to so many readings; of a longer one "
        "only the beginning counts.",
        "method": "How shapes are found. Automatic takes one-shot where that is possible, else "
        "nearest.",
        "distance": "How a device judges which candidate is nearest to its own sequence.",
        "labels": "One on each line, if devices also know a label and you want the shapes of each. "
        "None: leave it empty.",
    },
)
_MORE_FIELDS = form_group(
    MORE_SETTINGS,
    [
        FormField(name="compressed", label="Merge repeated letters", type="check", value=True),
        choice(
            "partial",
            "A last segment that is cut short",
            {"keep": "Counts, by the mean of what is there", "drop": "Does not count"},
        ),
        FormField(
            name="values",
            label="Edges between letters (optional)",
            type="numbers",
            value=[],
            unit="standard deviations",
        ),
        integer("low", "Shortest sequence", 1, "letters", 1, 64),
        integer("breadth", "Candidates followed per shape", 3, "candidates", 1, 64),
        integer("least", "Fewest reports of a candidate", 100, "reports", 0, MAX_FORM_DEVICES),
        FormField(
            name="shares",
            label="Devices for lengths, pairs, tree, last round",
            type="numbers",
            many=4,
            value=[2, 8, 70, 20],
            unit="% each",
        ),
    ],
    {
        "compressed": "Then only the order of rises and falls counts, not how fast they came.",
        "partial": "Where the number of readings is no multiple of the readings per letter.",
        "values": "In ascending order, one fewer than there are letters. Empty: equally likely "
        "cells of the normal distribution.",
        "low": "Lengths below this are not asked about.",
        "breadth": "More candidates lose fewer shapes on the way and divide the answers further.",
        "least": "Of the baseline method only: candidates with fewer are dropped.",
        "shares": "Four percentages, together 100. Methods that need less of one take it for the "
        "rest.",
    },
    folded=True,
)
