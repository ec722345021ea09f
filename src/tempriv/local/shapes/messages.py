"""What the two roles of a shapes campaign say to each other: small, versioned, checked values.

A question goes to everyone and is public. An answer is one report behind a fixed head; it carries
nothing else about its device. Both have a JSON form and a form in bytes, and whatever is not just
so is refused with a reason.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tempriv.errors import TemprivError, require
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes.distance import DistanceKind as Distance
from tempriv.local.shapes.domain import Bigrams, WholeSequences
from tempriv.local.shapes.sax import Sax
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
KINDS = ("length", "bigram", "level", "refine", "whole")
EXPONENTIAL = "exponential"
DISTANCES = get_args(Distance)

MOST_CANDIDATES = 4096
MOST_LABELS = 1024
MOST_CELLS = 1 << 20
MOST_ROUNDS = 1 << 16
MOST_MESSAGE_BYTES = 1 << 22  # bytes; the most candidates and labels, spelt out, have room
MOST_TEXT_CHARACTERS = 200
ABOUT = "shapes"
END = "."
"""Follows a candidate that ends there: the shape is no longer."""

HEAD = struct.Struct(">2sBB16sH16s")  # magic, kind, version, campaign, round, token
MAGIC = b"ts"
QUESTION, ANSWER = 1, 2
INDEX = struct.Struct(">H")


Kind = Literal["length", "bigram", "level", "refine", "whole"]


def _texts(name: str, values: Any, most: int) -> None:
    require(
        isinstance(values, tuple)
        and len(values) <= most
        and all(isinstance(value, str) and len(value) <= MOST_TEXT_CHARACTERS for value in values)
        and len(set(values)) == len(values),
        f"{name}: must be at most {most} different texts",
        MessageError,
    )


@dataclass(frozen=True, kw_only=True)
class ShapesQuestion:
    """What one device is asked, once.

    ``kind`` says what about: the length of its sequence; two symbols in a row at some level; which
    of the candidates of a ``level`` its beginning is nearest to; which of all, with a label if
    there are ``labels`` (``refine``); or the whole sequence.
    """

    campaign: str
    round: int
    kind: Kind
    epsilon: float
    sax: Sax
    oracle: str
    distance: Distance = "levenshtein"
    low: int = 1
    high: int = 10
    candidates: tuple[str, ...] = ()
    ends: bool = False
    labels: tuple[str, ...] = ()
    readings: int = 1_000_000
    version: int = VERSION

    def __post_init__(self) -> None:
        require_version(self.version, VERSION, "questions about shapes")
        require_campaign(self.campaign)
        require_whole("round", self.round, 0, MOST_ROUNDS - 1)
        require(self.kind in KINDS, f"kind: must be one of {', '.join(KINDS)}", MessageError)
        require(
            isinstance(self.epsilon, (int, float))
            and not isinstance(self.epsilon, bool)
            and 0 < self.epsilon <= 100,
            "epsilon: must be > 0 and at most 100",
            MessageError,
        )
        require(isinstance(self.sax, Sax), "sax: must be a Sax", MessageError)
        require(
            self.oracle in tuple(ORACLES) or (self.oracle == EXPONENTIAL and self.kind == "level"),
            f"oracle: must be one of {', '.join(ORACLES)}; or {EXPONENTIAL}, for a level",
            MessageError,
        )
        require(
            self.distance in DISTANCES,
            f"distance: must be one of {', '.join(DISTANCES)}",
            MessageError,
        )
        require_whole("low", self.low, 1, self.sax.longest)
        require_whole("high", self.high, self.low, self.sax.longest)
        require_whole("readings", self.readings, 1, 1 << 40)
        require(isinstance(self.ends, bool), "ends: must be true or false", MessageError)
        _texts("candidates", self.candidates, MOST_CANDIDATES)
        _texts("labels", self.labels, MOST_LABELS)
        self._check_candidates()
        require(
            2 <= self.cells <= MOST_CELLS,
            f"{self.cells} cells to answer from: must be from 2 to {MOST_CELLS}",
            MessageError,
        )

    def _check_candidates(self) -> None:
        has_candidates = self.kind in ("level", "refine")
        require(
            has_candidates == bool(self.candidates),
            "candidates: belong to a level or a refinement, and only there",
            MessageError,
        )
        require(
            not self.labels or self.kind in ("refine", "whole"),
            "labels: belong to a refinement or to whole sequences",
            MessageError,
        )
        letters = set(self.sax.alphabet)
        for candidate in self.candidates:
            body = candidate.removesuffix(END) if self.ends else candidate
            require(
                0 < len(body) <= self.sax.longest and set(body) <= letters,
                f"candidates: each must have 1 to {self.sax.longest} of the letters "
                f"{self.sax.alphabet}",
                MessageError,
            )

    @functools.cached_property
    def bigrams(self) -> Bigrams:
        return Bigrams(self.sax.symbols, self.sax.compressed, self.ends)

    @functools.cached_property
    def domain(self) -> WholeSequences:
        return WholeSequences(self.sax.symbols, self.high, self.sax.compressed)

    @property
    def levels(self) -> int:
        """How many pairs of neighbors a sequence of length ``high`` has, ends included."""
        return max(1, self.high - 1 + int(self.ends))

    @property
    def cells(self) -> int:
        """How many answers there are, before any noise."""
        if self.kind == "length":
            return max(2, self.high - self.low + 1)
        if self.kind == "bigram":
            return self.bigrams.size
        if self.kind == "whole":
            return self.domain.size * max(1, len(self.labels))
        return max(2, len(self.candidates) * max(1, len(self.labels)))

    @functools.cached_property
    def frequency(self) -> Any:
        """The oracle that reports go through; None for the exponential mechanism."""
        if self.oracle == EXPONENTIAL:
            return None
        return ORACLES[self.oracle](epsilon=self.epsilon, size=self.cells)

    @property
    def report_bytes(self) -> int:
        """Of every answer."""
        body = INDEX.size if self.frequency is None else int(self.frequency.report_bytes)
        return body + (1 if self.kind == "bigram" else 0)

    # forms

    def to_json(self) -> str:
        fields: dict[str, Any] = {name: getattr(self, name) for name in PLAIN_FIELDS}
        lists = {"candidates": list(self.candidates), "labels": list(self.labels)}
        return json_text("shapes question", fields | lists | {"sax": self.sax.to_dict()})

    @classmethod
    def from_json(cls, text: str | bytes) -> ShapesQuestion:
        """The question in a JSON ``text``."""
        names = {*PLAIN_FIELDS, "candidates", "labels", "sax"}
        fields = json_object(text, "shapes question", names, ABOUT, MOST_MESSAGE_BYTES)
        for name in ("candidates", "labels"):
            require(isinstance(fields[name], list), f"{name}: must be a list", MessageError)
            fields[name] = tuple(fields[name])
        try:
            fields["sax"] = Sax.from_dict(fields["sax"])
        except TemprivError as reason:
            raise MessageError(str(reason)[:200]) from None
        return cls(**fields)

    def to_bytes(self) -> bytes:
        head = HEAD.pack(
            MAGIC, QUESTION, VERSION, bytes.fromhex(self.campaign), self.round, b"\0" * 16
        )
        return head + self.to_json().encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ShapesQuestion:
        """The question in ``data``, a message in bytes."""
        campaign, number, token, body = _split(data, QUESTION)
        question = cls.from_json(body)
        require(
            question.campaign == campaign and question.round == number and token == b"\0" * 16,
            "the head of the question and its body do not agree",
            MessageError,
        )
        return question


PLAIN_FIELDS = (
    *("campaign", "round", "kind", "epsilon", "oracle", "distance", "low", "high", "ends"),
    *("readings", "version"),
)


@dataclass(frozen=True, kw_only=True)
class ShapesAnswer:
    """One report, to one question; the token is drawn anew for it."""

    campaign: str
    round: int
    token: bytes
    report: bytes
    version: int = VERSION

    def __post_init__(self) -> None:
        require_version(self.version, VERSION, "answers about shapes")
        require_campaign(self.campaign)
        require_whole("round", self.round, 0, MOST_ROUNDS - 1)
        require_bytes("token", self.token, TOKEN_BYTES, TOKEN_BYTES)
        require_bytes("report", self.report, 1, MOST_CELLS // 8 + 16)

    def to_bytes(self) -> bytes:
        campaign = bytes.fromhex(self.campaign)
        head = HEAD.pack(MAGIC, ANSWER, VERSION, campaign, self.round, self.token)
        return head + self.report

    @classmethod
    def from_bytes(cls, data: bytes) -> ShapesAnswer:
        """The answer in ``data``, a message in bytes."""
        campaign, number, token, report = _split(data, ANSWER)
        return cls(campaign=campaign, round=number, token=token, report=report)

    def to_json(self) -> str:
        return json_text("shapes answer", vars(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> ShapesAnswer:
        """The answer in a JSON ``text``."""
        names = {"version", "campaign", "round", "token", "report"}
        fields = json_object(text, "shapes answer", names, ABOUT, MOST_MESSAGE_BYTES)
        for name in ("token", "report"):
            fields[name] = from_base64(name, fields[name])
        return cls(**fields)


def _split(data: Any, kind: int) -> tuple[str, int, bytes, bytes]:
    fields, body = split_head(data, HEAD, MAGIC, kind, ABOUT, MOST_MESSAGE_BYTES)
    version, campaign, number, token = fields
    require_version(version, VERSION, "messages about shapes")
    return campaign.hex(), number, token, body
