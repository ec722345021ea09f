"""What a campaign may ask for, beside shapes: a category, a category over time, a whole series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from tempriv import mechanisms
from tempriv.errors import TemprivError, require
from tempriv.local.frequency.oracles import ORACLES, choose, name_of
from tempriv.local.streams.messages import is_epsilon
from tempriv.local.streams.protocol import METHODS, StreamPlan
from tempriv.local.wire import (
    MessageError,
    finite,
    members,
    refuse_damage,
    unique_texts,
    whole_number,
)
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import Numbers
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Concentrated, Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries

MOST_CATEGORIES = 4096
MOST_READINGS = 1 << 14
MOST_STEPS = 1 << 20
MOST_DIVIDED = 1 << 21  # devices of a stream whose method draws some of them at each step
LEAST_EVERY = 1.0  # seconds
LONGEST_NAME = 200
DELTA = 1e-6  # at which what has no epsilon of its own is told as one
AUTOMATIC = "automatic"
Oracle = Literal["automatic", "grr", "oue", "olh", "hadamard"]


def _names(categories: tuple[str, ...]) -> None:
    require(
        2 <= len(categories) <= MOST_CATEGORIES
        and all(isinstance(one, str) and 0 < len(one) <= LONGEST_NAME for one in categories)
        and all(one.isprintable() for one in categories)
        and len(set(categories)) == len(categories),
        f"categories: must be 2 to {MOST_CATEGORIES:,} different names of at most {LONGEST_NAME} "
        "characters on one line",
    )


@dataclass(frozen=True, kw_only=True)
class FrequencyCampaignPlan:
    """Each device reports which one of some categories it has, once."""

    epsilon: float
    people: int
    categories: tuple[str, ...]
    oracle: str = AUTOMATIC

    def __post_init__(self) -> None:
        require(is_epsilon(self.epsilon), f"epsilon={self.epsilon}: must be > 0 and at most 100")
        _names(self.categories)
        known = (AUTOMATIC, *ORACLES)
        require(self.oracle in known, f"oracle={self.oracle}: must be one of {', '.join(known)}")

    @property
    def asked(self) -> str:
        """The oracle that reports go through."""
        if self.oracle != AUTOMATIC:
            return self.oracle
        return name_of(choose(self.epsilon, len(self.categories)))

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(float(self.epsilon)), Event())

    @property
    def published(self) -> Published:
        source = {
            "grr": "Kairouz, Bonawitz and Ramage 2016",
            "oue": "Wang, Blocki, Li and Jha 2017",
            "olh": "Wang, Blocki, Li and Jha 2017",
            "hadamard": "Acharya, Sun and Zhang 2019",
        }
        return Published(
            claim="A report satisfies epsilon-local differential privacy",
            source=source[self.asked],
            holds=True,
            remark="For one report of each device; a device here gives no second one.",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"categories": list(self.categories), "oracle": self.oracle}

    @classmethod
    def from_dict(cls, given: Any, epsilon: float, people: int) -> FrequencyCampaignPlan:
        with refuse_damage():
            found = members(given, ("categories", "oracle"))
            names = unique_texts(found["categories"])
        return cls(epsilon=epsilon, people=people, categories=names, oracle=found["oracle"])


@dataclass(frozen=True, kw_only=True)
class StreamCampaignPlan:
    """Each device has one of some categories at every step; the shares are told step by step.

    A step lasts ``every`` seconds, counted from when the campaign opens.
    """

    epsilon: float
    people: int
    categories: tuple[str, ...]
    method: str
    window: int
    every: float
    steps: int
    oracle: str = AUTOMATIC

    def __post_init__(self) -> None:
        _names(self.categories)
        require(self.method in METHODS, f"method={self.method}: must be of {', '.join(METHODS)}")
        require(
            isinstance(self.every, (int, float)) and LEAST_EVERY <= self.every <= 366 * 86_400,
            f"every={self.every}: must be at least {LEAST_EVERY:g} seconds, and at most a year",
        )
        require(
            isinstance(self.steps, int) and 1 <= self.steps <= MOST_STEPS,
            f"steps={self.steps}: must be a whole number from 1 to {MOST_STEPS:,}",
        )
        require(
            not self.stream.divides_people or self.people <= MOST_DIVIDED,
            f"people={self.people}: {self.method} keeps account of each device, for at most "
            f"{MOST_DIVIDED:,}; take a method that asks everybody, or several campaigns",
        )

    @property
    def stream(self) -> StreamPlan:
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
        return self.stream.guarantee

    @property
    def published(self) -> Published:
        return self.stream.published

    def to_dict(self) -> dict[str, Any]:
        return {
            "categories": list(self.categories),
            "method": self.method,
            "window": self.window,
            "every": self.every,
            "steps": self.steps,
            "oracle": self.oracle,
        }

    @classmethod
    def from_dict(cls, given: Any, epsilon: float, people: int) -> StreamCampaignPlan:
        names = ("categories", "method", "window", "every", "steps", "oracle")
        with refuse_damage():
            found = members(given, names)
            found["categories"] = unique_texts(found["categories"])
            found["window"], found["steps"] = map(whole_number, (found["window"], found["steps"]))
            found["every"] = finite(found["every"])
        return cls(epsilon=epsilon, people=people, **found)


@dataclass(frozen=True, kw_only=True)
class UploadCampaignPlan:
    """Each device sends its series after a mechanism has protected it, on the device."""

    epsilon: float
    people: int
    mechanism: Mechanism
    readings: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.readings, int) and 1 <= self.readings <= MOST_READINGS,
            f"readings={self.readings}: must be a whole number from 1 to {MOST_READINGS:,}",
        )
        form, promise = self.mechanism.domain, self.mechanism.guarantee
        name = type(self.mechanism).__name__
        require(
            isinstance(form, Numbers) and form.columns == 1,
            f"{name}: an upload is one column of numbers; take a mechanism for one, such as "
            "Laplace with one pair of bounds",
        )
        require(
            isinstance(promise, Guarantee) and promise.model == "local",
            f"{name}: guarantees nothing on a device by itself; take one that does, like Laplace",
        )
        assert isinstance(promise, Guarantee)
        require(
            not isinstance(promise.unit, (Person, Contribution)),
            f"{name}: protects people in a table of many; a device has one series",
        )
        most = promise.unit.length if isinstance(promise.unit, WholeSeries) else self.readings
        require(
            most >= self.readings,
            f"readings={self.readings}: the mechanism is for series of at most {most}",
        )
        loss = promise.loss
        told = loss.epsilon_at(DELTA) if isinstance(loss, Concentrated) else loss.epsilon
        require(
            math.isclose(told, self.epsilon, rel_tol=1e-6),
            f"epsilon={self.epsilon:g}: the mechanism has {told:.7g}"
            + (f" at delta {DELTA:g}" if isinstance(loss, Concentrated) else "")
            + "; they must be the same",
        )

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        return self.mechanism.guarantee

    @property
    def published(self) -> Published:
        return self.mechanism.published

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": serialization.encode(self.mechanism), "readings": self.readings}

    @classmethod
    def from_dict(cls, given: Any, epsilon: float, people: int) -> UploadCampaignPlan:
        with refuse_damage():
            found = members(given, ("mechanism", "readings"))
            readings = whole_number(found["readings"])
        try:
            mechanism = mechanisms.decode(found["mechanism"])
        except TemprivError as reason:
            raise MessageError(f"mechanism: {reason}") from None
        return cls(epsilon=epsilon, people=people, mechanism=mechanism, readings=readings)
