"""What the two roles of a stream over a population say to each other.

A question is public: it names a time step and how to report the value of that step. An answer is
one report behind a fixed head; it carries nothing else about its device. Both are small values with
a JSON form and a form in bytes, and whatever is not just so is refused with a reason.
"""

from __future__ import annotations

import base64
import functools
import json
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
    require_bytes,
    require_campaign,
    require_version,
    require_whole,
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
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= MOST_EPSILON


def _check(what: str, message: StreamQuestion | StreamAnswer) -> None:
    require_version(message.version, VERSION, f"{what}s about a stream")
    require_campaign(message.campaign)
    require_whole("step", message.step, 0, MOST_STEPS)
    require(message.part in PARTS, f"part: must be one of {', '.join(PARTS)}", MessageError)


@functools.lru_cache(maxsize=64)
def oracle_of(name: str, epsilon: float, size: int) -> FrequencyOracle:
    """The same one again and again: its probabilities take a while to work out."""
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
        fields = {name: getattr(self, name) for name in QUESTION_FIELDS}
        return json.dumps({"tempriv": "stream question", **fields}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> StreamQuestion:
        return cls(
            **json_object(text, "stream question", set(QUESTION_FIELDS), ABOUT, MOST_MESSAGE_BYTES)
        )

    def to_bytes(self) -> bytes:
        body = BODY.pack(self.epsilon, self.size, NAMES.index(self.oracle))
        return _head(QUESTION, self, NO_TOKEN) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> StreamQuestion:
        where, token, body = _headed(data, QUESTION)
        require(
            token == NO_TOKEN and len(body) == BODY.size,
            f"a question has no token and {HEAD.size + BODY.size} bytes",
            MessageError,
        )
        epsilon, size, oracle = BODY.unpack(body)
        require(oracle < len(NAMES), "oracle: there is none of that number", MessageError)
        return cls(epsilon=epsilon, size=size, oracle=NAMES[oracle], **where)


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
        fields = {name: getattr(self, name) for name in ("campaign", "step", "part", "version")}
        for name in ("token", "report"):
            fields[name] = base64.b64encode(getattr(self, name)).decode()
        return json.dumps({"tempriv": "stream answer", **fields}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> StreamAnswer:
        names = {"campaign", "step", "part", "version", "token", "report"}
        given = json_object(text, "stream answer", names, ABOUT, MOST_MESSAGE_BYTES)
        for name in ("token", "report"):
            given[name] = from_base64(name, given[name])
        return cls(**given)

    def to_bytes(self) -> bytes:
        return _head(ANSWER, self, self.token) + self.report

    @classmethod
    def from_bytes(cls, data: bytes) -> StreamAnswer:
        where, token, report = _headed(data, ANSWER)
        return cls(token=token, report=report, **where)


def refuse_report(question: StreamQuestion, report: bytes) -> None:
    """Refuse what no device can have sent to this question."""
    try:
        question.frequency.refuse(report)
    except DataError as reason:
        raise MessageError(str(reason)) from None


def head_of(question: StreamQuestion) -> bytes:
    """Of every answer to it, up to the token."""
    return _head(ANSWER, question, NO_TOKEN)[:-TOKEN_BYTES]


def _head(kind: int, message: StreamQuestion | StreamAnswer, token: bytes) -> bytes:
    campaign = bytes.fromhex(message.campaign)
    part = PARTS.index(message.part)
    return HEAD.pack(MAGIC, kind, VERSION, campaign, message.step, part, token)


def _headed(data: Any, kind: int) -> tuple[dict[str, Any], bytes, bytes]:
    require(
        isinstance(data, (bytes, bytearray)) and HEAD.size < len(data) <= MOST_MESSAGE_BYTES,
        "not a message about a stream: it is too short, or too long",
        MessageError,
    )
    magic, found, version, campaign, step, part, token = HEAD.unpack_from(data)
    require(magic == MAGIC and found == kind, "not a message of this kind", MessageError)
    require(part < len(PARTS), "part: there is none of that number", MessageError)
    where = {"version": version, "campaign": campaign.hex(), "step": step, "part": PARTS[part]}
    return where, token, bytes(data[HEAD.size :])
