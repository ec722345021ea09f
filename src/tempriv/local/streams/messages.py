"""What the two roles of a stream over a population say to each other.

A question is public: it names a time step and how to report the value of that step. An answer is
one report behind a fixed head; it carries nothing else about its device. Both are small values with
a JSON form and a form in bytes, and whatever is not just so is refused with a reason.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any, Literal

from tempriv.errors import DataError, require
from tempriv.local.frequency.base import FrequencyOracle
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.wire import (
    TOKEN_BYTES,
    MessageError,
    from_base64,
    json_object,
    json_text,
    require_bytes,
    require_campaign,
    require_version,
    require_whole,
    split_head,
)

VERSION = 1
Part = Literal["compare", "publish"]
PARTS: tuple[Part, ...] = ("compare", "publish")
NAMES = tuple(ORACLES)

MOST_VALUES = 1 << 20
MOST_STEPS = 1 << 62
MOST_EPSILON = 100
MOST_REPORT_BYTES = MOST_VALUES // 8 + 16  # of a report
MOST_MESSAGE_BYTES = 1 << 20  # bytes of a message
ABOUT = "a stream"

HEAD = struct.Struct(">2sBB16sQB16s")  # magic, kind, version, campaign, step, part, token
BODY = struct.Struct(">dIB")  # of a question: epsilon, size, oracle
MAGIC = b"tp"
QUESTION, ANSWER = 1, 2
NO_TOKEN = bytes(TOKEN_BYTES)


def is_epsilon(value: Any) -> bool:
    """Whether ``value`` is an epsilon that can be asked for."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= MOST_EPSILON


def _check(what: str, message: StreamQuestion | StreamAnswer) -> None:
    require_version(message.version, VERSION, f"{what}s about a stream")
    require_campaign(message.campaign)
    require_whole("step", message.step, 0, MOST_STEPS)
    require(message.part in PARTS, f"part: must be one of {', '.join(PARTS)}", MessageError)


@functools.lru_cache(maxsize=64)
def oracle_of(name: str, epsilon: float, size: int) -> FrequencyOracle:
    """The oracle of a name, kept: its probabilities take a while to work out.

    Parameters:
        name: in messages.
        epsilon: what a report may cost.
        size: how many values there are.
    """
    return ORACLES[name](epsilon=epsilon, size=size)


@dataclass(frozen=True, kw_only=True)
class StreamQuestion:
    """How a device reports its value at one step.

    ``part`` says what for: to ``compare`` with what was published last, or to ``publish``.
    """

    campaign: str
    step: int
    part: Part
    epsilon: float
    size: int
    oracle: str = "grr"
    version: int = VERSION

    def __post_init__(self) -> None:
        _check("question", self)
        require(
            is_epsilon(self.epsilon),
            f"epsilon: must be > 0 and at most {MOST_EPSILON}",
            MessageError,
        )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        require_whole("size", self.size, 2, MOST_VALUES)
        require(
            isinstance(self.oracle, str) and self.oracle in ORACLES,
            f"oracle: must be one of {', '.join(ORACLES)}",
            MessageError,
        )

    @functools.cached_property
    def frequency(self) -> FrequencyOracle:
        """The oracle that reports go through."""
        return oracle_of(self.oracle, self.epsilon, self.size)

    def to_json(self) -> str:
        return json_text("stream question", {name: getattr(self, name) for name in QUESTION_FIELDS})

    @classmethod
    def from_json(cls, text: str | bytes) -> StreamQuestion:
        """The question in a JSON ``text``."""
        return cls(
            **json_object(text, "stream question", set(QUESTION_FIELDS), ABOUT, MOST_MESSAGE_BYTES)
        )

    def to_bytes(self) -> bytes:
        body = BODY.pack(self.epsilon, self.size, NAMES.index(self.oracle))
        return _head(QUESTION, self, NO_TOKEN) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> StreamQuestion:
        """The question in ``data``, a message in bytes."""
        place, token, body = _split(data, QUESTION)
        require(
            token == NO_TOKEN and len(body) == BODY.size,
            f"a question has no token and {HEAD.size + BODY.size} bytes",
            MessageError,
        )
        epsilon, size, oracle = BODY.unpack(body)
        require(oracle < len(NAMES), "oracle: there is none of that number", MessageError)
        return cls(epsilon=epsilon, size=size, oracle=NAMES[oracle], **place)


QUESTION_FIELDS = ("campaign", "step", "part", "epsilon", "size", "oracle", "version")


@dataclass(frozen=True, kw_only=True)
class StreamAnswer:
    """One report, to one question; the token is drawn anew for it."""

    campaign: str
    step: int
    part: Part
    token: bytes
    report: bytes
    version: int = VERSION

    def __post_init__(self) -> None:
        _check("answer", self)
        require_bytes("token", self.token, TOKEN_BYTES, TOKEN_BYTES)
        require_bytes("report", self.report, 1, MOST_REPORT_BYTES)

    def to_json(self) -> str:
        return json_text("stream answer", vars(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> StreamAnswer:
        """The answer in a JSON ``text``."""
        names = {"campaign", "step", "part", "version", "token", "report"}
        fields = json_object(text, "stream answer", names, ABOUT, MOST_MESSAGE_BYTES)
        for name in ("token", "report"):
            fields[name] = from_base64(name, fields[name])
        return cls(**fields)

    def to_bytes(self) -> bytes:
        return _head(ANSWER, self, self.token) + self.report

    @classmethod
    def from_bytes(cls, data: bytes) -> StreamAnswer:
        """The answer in ``data``, a message in bytes."""
        place, token, report = _split(data, ANSWER)
        return cls(token=token, report=report, **place)


def refuse_report(question: StreamQuestion, report: bytes) -> None:
    """Refuse a ``report`` that no device can have sent to a ``question``."""
    try:
        question.frequency.refuse(report)
    except DataError as reason:
        raise MessageError(str(reason)) from None


def head_of(question: StreamQuestion) -> bytes:
    """The head of every answer to a ``question``, up to the token."""
    return _head(ANSWER, question, NO_TOKEN)[:-TOKEN_BYTES]


def _head(kind: int, message: StreamQuestion | StreamAnswer, token: bytes) -> bytes:
    campaign = bytes.fromhex(message.campaign)
    part = PARTS.index(message.part)
    return HEAD.pack(MAGIC, kind, VERSION, campaign, message.step, part, token)


def _split(data: Any, kind: int) -> tuple[dict[str, Any], bytes, bytes]:
    fields, body = split_head(data, HEAD, MAGIC, kind, ABOUT, MOST_MESSAGE_BYTES)
    version, campaign, step, part, token = fields
    require(part < len(PARTS), "part: there is none of that number", MessageError)
    place = {"version": version, "campaign": campaign.hex(), "step": step, "part": PARTS[part]}
    return place, token, body
