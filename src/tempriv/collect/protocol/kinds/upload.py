"""Campaigns of kind ``upload``: whole series, protected by a mechanism on each device."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.collect.protocol.forms import (
    Condition,
    FormField,
    FormGroup,
    ResultView,
    choice,
    form_group,
    integer,
    number,
)
from tempriv.collect.protocol.kinds.base import (
    AnswerRequest,
    CampaignKind,
    Floats,
    ProtocolQuestion,
    ProtocolState,
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
from tempriv.data.series import Block
from tempriv.errors import TemprivError, require
from tempriv.local.frequency.base import Bytes, Flags, Integers
from tempriv.local.wire import MessageError, members, new_token, refuse_damage, whole_number
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import NOT_PROTECTED, Mechanism
from tempriv.mechanisms.checks import COLUMNS_AGREE, Check, Rows
from tempriv.mechanisms.domains import Numbers
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Concentrated, Guarantee, NoGuarantee, Published
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window
from tempriv.releases.run import release
from tempriv.sampling.keys import Key, SeriesKey
from tempriv.sampling.keystream import StepRange

if TYPE_CHECKING:
    from tempriv.collect.device.answers import OwnedData
    from tempriv.collect.device.limits import DeviceLimits
    from tempriv.collect.protocol.campaign import Campaign

MAX_READINGS = 1 << 14
STATED_DELTA = 1e-6
"""At which a loss that has no epsilon of its own is stated as one."""
HEAD = b"tu\x02\x01"
EXAMPLE_MECHANISM = Laplace(epsilon=1.0, bounds=((0.0, 5.0),), unit=Window(24))


@dataclass(frozen=True, kw_only=True)
class UploadCampaignPlan:
    """Each device sends its series after a mechanism has protected it, on the device.

    Parameters:
        epsilon: loss of the mechanism; at delta 1e-6 if it has no epsilon of its own.
        people: devices that the campaign announces.
        mechanism: what changes each series; for one column of numbers, in the local model.
        readings: length of a series.
    """

    epsilon: float
    people: int
    mechanism: Mechanism
    readings: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.readings, int) and 1 <= self.readings <= MAX_READINGS,
            f"readings={self.readings}: must be a whole number from 1 to {MAX_READINGS:,}",
        )
        domain, guarantee = self.mechanism.domain, self.mechanism.guarantee
        name = type(self.mechanism).__name__
        require(
            isinstance(domain, Numbers) and domain.columns == 1,
            f"{name}: an upload is one column of numbers; take a mechanism for one, such as "
            "Laplace with one pair of bounds",
        )
        require(
            isinstance(guarantee, Guarantee) and guarantee.model == "local",
            f"{name}: guarantees nothing on a device by itself; take one that does, like Laplace",
        )
        assert isinstance(guarantee, Guarantee)
        unit, loss = guarantee.unit, guarantee.loss
        require(
            not isinstance(unit, (Person, Contribution)),
            f"{name}: protects people in a table of many; a device has one series",
        )
        longest = unit.length if isinstance(unit, WholeSeries) else self.readings
        require(
            longest >= self.readings,
            f"readings={self.readings}: the mechanism is for series of at most {longest}",
        )
        has_delta = isinstance(loss, Concentrated)
        stated = loss.epsilon_at(STATED_DELTA) if isinstance(loss, Concentrated) else loss.epsilon
        require(
            math.isclose(stated, self.epsilon, rel_tol=1e-6),
            f"epsilon={self.epsilon:g}: the mechanism has {stated:.7g}"
            + (f" at delta {STATED_DELTA:g}" if has_delta else "")
            + "; they must be the same",
        )

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """The guarantee of the mechanism."""
        return self.mechanism.guarantee

    @property
    def published(self) -> Published:
        """The published claim about the mechanism."""
        return self.mechanism.published

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of a reading."""
        low, high = self.mechanism.domain.bounds[0]  # type: ignore[index]
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"mechanism": serialization.encode(self.mechanism), "readings": self.readings}


@dataclass(frozen=True)
class UploadState(ProtocolState):
    """Series that come in until the campaign is closed."""

    people: int | None = None

    @property
    def question(self) -> ProtocolQuestion | None:
        return None if self.is_over else self.campaign.definition.only_question(self.campaign)

    def after(self, support: Integers, people: int) -> UploadState:
        """Return the state after ``people`` sent their series; there is no ``support``."""
        return replace(self, people=people)

    @property
    def is_over(self) -> bool:
        return self.people is not None

    def to_dict(self) -> dict[str, Any]:
        return {"people": self.people}


def _plan_of(campaign: Campaign) -> UploadCampaignPlan:
    assert isinstance(campaign.plan, UploadCampaignPlan)
    return campaign.plan


def _head_of(campaign: Campaign) -> bytes:
    return HEAD + bytes.fromhex(campaign.id)


def _are_readings(rows: Bytes) -> Flags:
    """Missing ones are NaN; an infinite one is none that a mechanism gives."""
    values: npt.NDArray[np.float64] = np.ascontiguousarray(rows).view("<f8")
    return np.asarray(~np.isinf(values).any(axis=1))


class UploadKind(CampaignKind[UploadCampaignPlan]):
    """A series of each device, changed by a mechanism before it leaves the device."""

    name = "upload"
    title = "Upload of protected series"
    summary = (
        "Each device adds noise to its own series and sends that. You get a table of protected "
        "series."
    )
    position = 4
    questions: ClassVar[Mapping[str, str]] = {"upload": "Send your protected series."}
    agreed_by_default = False
    not_protected = NOT_PROTECTED
    asks = "Your readings, with noise that is added on your device."
    releases_series = True
    id_column = "device"
    time_column = "reading"
    result_view = ResultView(
        view="text",
        text="{series|count} protected series were sent. Download them: what they show is as "
        "private as the guarantee says.",
    )

    def readings_of(self, plan: UploadCampaignPlan) -> int:
        """Return how many readings of a device the ``plan`` asks for."""
        return plan.readings

    def read_plan(self, document: Any, epsilon: float, people: int) -> UploadCampaignPlan:
        """Read the ``document`` of a plan with the campaign's ``epsilon`` and ``people``."""
        with refuse_damage():
            values = members(document, ("mechanism", "readings"))
            readings = whole_number(values["readings"])
        try:
            mechanism = registry.decode(values["mechanism"])
        except TemprivError as reason:
            raise MessageError(f"mechanism: {reason}") from None
        return UploadCampaignPlan(
            epsilon=epsilon, people=people, mechanism=mechanism, readings=readings
        )

    def start(self, campaign: Campaign, first_step: int = 0) -> UploadState:
        """Return the first state of a ``campaign``; there is no ``first_step``."""
        return UploadState(campaign)

    def load(self, campaign: Campaign, document: dict[str, Any]) -> UploadState:
        """Return the state of a ``campaign`` that ``to_dict`` gave as ``document``."""
        return UploadState(campaign, document["people"])

    def only_question(self, campaign: Campaign) -> ProtocolQuestion:
        """Return the question of a ``campaign``: the protected series."""
        plan = _plan_of(campaign)
        body = {
            "tempriv": "upload question",
            "campaign": campaign.id,
            "readings": plan.readings,
            "mechanism": serialization.encode(plan.mechanism),
        }
        return ProtocolQuestion(
            id=f"{campaign.id}/0",
            kind="upload",
            body=body,
            head=_head_of(campaign),
            report_bytes=8 * plan.readings,
            cells=0,
            fits=_are_readings,
            support=lambda rows: np.zeros(0, dtype=np.int64),
            keeps_reports=True,
        )

    def consent(self, plan: UploadCampaignPlan) -> list[str]:
        """Return what a device sends under this ``plan``."""
        name = type(plan.mechanism).__name__
        return [
            f"The device sends a series of {plan.readings:,} readings, once, after {name} has "
            "changed every one of them on the device.",
            "The organization keeps the changed series. It never sees the true one.",
        ]

    def odds_sentence(self, plan: UploadCampaignPlan) -> str:
        """Return the guarantee of the mechanism of a ``plan`` in plain words."""
        return plan.guarantee.plain

    def can_answer(self, plan: UploadCampaignPlan, data: OwnedData) -> bool:
        """Whether ``data`` has a series, whatever the ``plan``."""
        return data.series is not None

    def relevant_data(
        self, plan: UploadCampaignPlan, data: OwnedData
    ) -> tuple[Floats | None, str | None]:
        """Return the readings of ``data`` that the ``plan`` is for."""
        return data.readings(plan.readings), None

    def answer(self, request: AnswerRequest) -> bytes:
        """Return the answer that a ``request`` asks for."""
        plan, campaign, ledgers = _plan_of(request.campaign), request.campaign, request.ledgers
        low, high = plan.bounds
        series = np.full(plan.readings, (low + high) / 2)
        # with nothing of the owner in it: what a mechanism refuses, it refuses to everyone
        try:
            released = release(series, plan.mechanism, key=Key.generate()).values
        except TemprivError as reason:
            raise MessageError(f"the mechanism of this campaign cannot run: {reason}") from None
        require(
            released.shape == (plan.readings,),
            "the mechanism of this campaign gives another number of readings",
            MessageError,
        )
        ledgers.once.spend(campaign.id, ledgers.limits.cost(campaign))
        readings = request.data.readings(plan.readings)
        series[: len(readings)] = np.clip(readings, low, high)
        key = Key(request.key.cipher_key("upload"), campaign.id)
        report = release(series, plan.mechanism, key=key).values.astype("<f8")
        return _head_of(campaign) + new_token() + report.tobytes()

    def cost(self, plan: UploadCampaignPlan, limits: DeviceLimits) -> float:
        """Return the loss under a ``plan`` for the unit in the owner's ``limits``, or for the whole
        series.
        """
        restated = plan.guarantee.for_unit(limits.upload_unit or WholeSeries(plan.readings))
        if not isinstance(restated, Guarantee):
            return math.inf
        return restated.loss.epsilon_at(limits.most_delta)

    def result(self, state: ProtocolState, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Return how many series came, of the ``state`` at the end; this kind has no ``steps``."""
        assert isinstance(state, UploadState)
        return {"series": state.people, "people": state.people}

    def table(
        self, plan: UploadCampaignPlan, result: dict[str, Any], uploads: list[tuple[int, bytes]]
    ) -> pa.Table:
        """Return a row for each reading of all ``uploads`` under a ``plan``; nothing else is in the
        ``result``.
        """
        values = np.frombuffer(b"".join(row for _, row in uploads), dtype="<f8").astype(np.float64)
        devices = pa.array([str(number) for number, _ in uploads], pa.string())
        rows = pa.array(np.repeat(np.arange(len(devices)), plan.readings))
        return pa.table(
            {
                "device": devices.take(rows),
                "reading": pa.array(np.tile(np.arange(plan.readings), len(devices))),
                "value": pa.array(values, mask=np.isnan(values)),
            }
        )

    def check_rows(self, campaign: Campaign, about: dict[str, Any], rows: Rows) -> list[Check]:
        """Return whether the ``rows`` of the release ``about`` a ``campaign`` can come out of its
        mechanism.
        """
        plan = _plan_of(campaign)
        sent = Counter(row["device"] for row in rows)
        whole = all(count == plan.readings for count in sent.values())
        values = [float(row["value"]) for row in rows if row["value"]]
        domain = plan.mechanism.domain.released
        on_grid = domain.check_values([pa.chunked_array([pa.array(values, pa.float64())])])
        told = f"{len(sent):,} devices, {plan.readings:,} readings each"
        return [
            Check("every device has as many rows as the plan has readings", whole, told),
            *([] if on_grid is None else [on_grid]),
            Check(COLUMNS_AGREE, None, "no column of this release follows from others"),
        ]

    def simulate(
        self, campaign: Campaign, body: dict[str, Any], devices: SimulatedDevices
    ) -> tuple[bytes, Reports]:
        """Let ``devices`` answer the question ``body`` of a ``campaign``."""
        plan = _plan_of(campaign)
        low, high = plan.bounds
        pool = low + (high - low) * (0.5 + 0.4 * series_pool(plan.readings))

        def reports(numbers: Integers, keystreams: DeviceKeystreams) -> Bytes:
            """Protected series of the devices with these ``numbers``, by their ``keystreams``."""
            count = len(numbers)
            which = devices.choices("series", falling_weights(POOL_SERIES), numbers)
            block = Block(
                values=pool[which].reshape(-1, 1),
                missing=np.zeros((count * plan.readings, 1), bool),
                ids=tuple(map(str, numbers.tolist())),
                counts=np.full(count, plan.readings),
                starts=np.zeros(count, dtype=np.int64),
            )
            keys = [keystreams.chain.cipher_key(f"device {number}") for number in numbers.tolist()]
            steps = [StepRange(SeriesKey(key, 0), 0, plan.readings) for key in keys]
            released = perturb_block(plan.mechanism, block, steps, ending=True)
            values = np.where(released.missing, np.nan, released.values).astype("<f8")
            return np.ascontiguousarray(values.reshape(count, plan.readings)).view(np.uint8)

        return _head_of(campaign), reports

    def form_groups(self) -> tuple[FormGroup, ...]:
        question = form_group(
            "Question and privacy",
            [
                integer("readings", "Readings of a series", 24, "readings", 1, MAX_READINGS),
                choice(
                    "mechanism",
                    "How readings are protected",
                    {
                        "laplace": "Laplace noise on bounded readings",
                        "other": "Another one, as JSON",
                    },
                ),
            ],
            {
                "readings": "Every device sends exactly so many; missing ones stay missing.",
                "mechanism": "What a device does to its series before it sends it.",
            },
        )
        laplace = form_group(
            "Laplace noise",
            [
                epsilon_field(1, "the series that a device sends"),
                number("low", "Lowest reading", 0, "your unit"),
                number("high", "Highest reading", 5, "your unit"),
                choice(
                    "unit",
                    "What epsilon is for",
                    {"series": "The whole series", "event": "Any single reading"},
                ),
            ],
            {
                "low": "Lower readings are sent as this one. Choose it by what you know, never "
                "from data.",
                "high": "Higher readings are sent as this one. A narrower range means less noise.",
                "unit": "The whole series is the stronger guarantee and needs more noise: as many "
                "times as there are readings.",
            },
            when=Condition(field="mechanism", equals="laplace"),
        )
        example = json.dumps(serialization.encode(EXAMPLE_MECHANISM), indent=1)
        other = form_group(
            "Another mechanism",
            [
                FormField(name="pasted", label="Mechanism as JSON", type="json", value=example),
                epsilon_field(
                    1,
                    "the series that a device sends",
                    name="announced",
                    label="Epsilon, if the mechanism has none of its own",
                ),
            ],
            {
                "pasted": "As tempriv.privacy.serialization.encode(mechanism) gives it in Python, "
                "for one column of numbers."
            },
            when=Condition(field="mechanism", equals="other"),
        )
        return question, laplace, other

    def form_problems(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return what does not fit together in the ``values`` of the form, by field."""
        if values["mechanism"] == "laplace" and values["low"] >= values["high"]:
            return {"high": "Must be above the lowest reading."}
        if values["mechanism"] == "other" and not isinstance(
            values["pasted"].get("epsilon", 1.0), (int, float)
        ):
            return {"pasted": "Its epsilon must be a number."}
        return {}

    def form_epsilon(self, values: Mapping[str, Any]) -> float:
        """Return the epsilon of the campaign that ``values`` of the form stand for."""
        if values["mechanism"] == "laplace":
            return float(values["epsilon"])
        return float(values["pasted"].get("epsilon", values["announced"]))

    def plan_of_form(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan that ``values`` of the form stand for."""
        readings = values["readings"]
        if values["mechanism"] == "other":
            return {"readings": readings, "mechanism": values["pasted"]}
        mechanism = Laplace(
            epsilon=values["epsilon"],
            bounds=((values["low"], values["high"]),),
            unit=Event() if values["unit"] == "event" else WholeSeries(readings),
        )
        return {"readings": readings, "mechanism": serialization.encode(mechanism)}
