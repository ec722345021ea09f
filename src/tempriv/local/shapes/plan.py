"""A shapes campaign before it begins: what is public, and what is guaranteed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from tempriv.errors import require
from tempriv.local.shapes.distance import DistanceKind as Distance
from tempriv.local.shapes.domain import WholeSequences
from tempriv.local.shapes.messages import DISTANCES, MOST_LABELS, MOST_TEXT_CHARACTERS
from tempriv.local.shapes.sax import Sax
from tempriv.local.wire import finite, members, refuse_damage, unique_texts
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import WholeSeries

Method = Literal["automatic", "baseline", "published", "nearest", "one-shot"]
METHODS = ("automatic", "baseline", "published", "nearest", "one-shot")

MOST_SHAPES = 256
MOST_WHOLE_CELLS = 16_384
"""Cells of a one-shot question: what a server estimates in a moment."""


@dataclass(frozen=True, kw_only=True)
class ShapesPlan:
    """A campaign before it begins; all of it is public.

    Parameters:
        epsilon: what one answer may cost, at most 100.
        shapes: how many shapes are looked for.
        people: about how many devices will be asked.
        sax: how a device makes a sequence of its series.
        distance: how sequences are compared.
        method: how shapes are found (see ``tempriv.local.shapes.protocol``).
        labels: none, or at least two different ones.
        low: the least length that is asked about, in symbols.
        breadth: times ``shapes`` candidates are followed from level to level.
        least: of the baseline: candidates with fewer reports are dropped.
        shares: of the devices, for lengths, pairs of symbols, the tree and the last round
            (Section V-B of the paper); ours takes what it does not need of these for the rest.
        readings: how many a series has at most; the guarantee is for that many.

    Guarantees:
        - every device answers one question with epsilon for its whole series, against anyone.

    >>> plan = ShapesPlan(epsilon=4.0, shapes=3, people=40_000, sax=Sax(longest=10))
    >>> plan.guarantee.loss
    Pure(epsilon=4.0)
    """

    epsilon: float
    shapes: int
    people: int
    sax: Sax
    distance: Distance = "levenshtein"
    method: Method = "automatic"
    labels: tuple[str, ...] = ()
    low: int = 1
    breadth: int = 3
    least: int = 100
    shares: tuple[float, float, float, float] = (0.02, 0.08, 0.70, 0.20)
    readings: int = 1_000_000

    def __post_init__(self) -> None:
        require(
            isinstance(self.epsilon, (int, float))
            and not isinstance(self.epsilon, bool)
            and 0 < self.epsilon <= 100,
            f"epsilon={self.epsilon}: must be > 0 and at most 100",
        )
        for name, least, most in (
            ("shapes", 1, MOST_SHAPES),
            ("people", 1, 1 << 40),
            ("breadth", 1, 64),
            ("least", 0, 1 << 40),
            ("low", 1, 64),
            ("readings", 1, 1 << 40),
        ):
            value = getattr(self, name)
            require(
                isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
                f"{name}={value}: must be a whole number from {least} to {most}",
            )
        require(isinstance(self.sax, Sax), "sax: must be a Sax(...)")
        require(self.low <= self.sax.longest, f"low={self.low}: must be at most sax.longest")
        require(self.distance in DISTANCES, f"distance={self.distance}: must be of {DISTANCES}")
        require(self.method in METHODS, f"method={self.method}: must be one of {METHODS}")
        object.__setattr__(self, "labels", tuple(str(one) for one in self.labels))
        self._check_labels()
        shares = tuple(float(one) for one in self.shares)
        require(
            len(shares) == 4 and min(shares) > 0 and abs(sum(shares) - 1) < 1e-9,
            f"shares={self.shares}: must be four parts of the devices, together 1",
        )
        object.__setattr__(self, "shares", shares)

    def _check_labels(self) -> None:
        count = len(self.labels)
        require(
            count != 1 and len(set(self.labels)) == count,
            "labels: must be none, or at least two different ones",
        )
        require(count <= MOST_LABELS, f"{count:,} labels: must be at most {MOST_LABELS:,}")
        longest = max(map(len, self.labels), default=0)
        require(
            longest <= MOST_TEXT_CHARACTERS,
            f"a label of {longest:,} characters: must have at most {MOST_TEXT_CHARACTERS}; take "
            "short names for labels",
        )
        # the least that is ever asked for at once: one symbol, that ends or goes on
        require(
            self.method != "one-shot" or self.whole_cells(1) <= MOST_WHOLE_CELLS,
            f"{self.sax.symbols} symbols and {count} labels: too many to ask for whole sequences; "
            "take method nearest",
        )

    def whole_cells(self, length: int) -> int:
        """How many sequences of up to ``length`` symbols there are, with each of the labels."""
        domain = WholeSequences(self.sax.symbols, length, self.sax.compressed)
        return domain.size * max(1, len(self.labels))

    @property
    def guarantee(self) -> Guarantee:
        """Of every device, towards anyone who sees its answer."""
        return Guarantee(Pure(float(self.epsilon)), WholeSeries(self.readings))

    @property
    def published(self) -> Published | None:
        """Of the methods that are the paper's; the others claim nothing from it."""
        if self.method not in ("published", "baseline"):
            return None
        return Published(
            claim="Each user answers once with epsilon, so the mechanism satisfies epsilon-LDP "
            "under user-level privacy",
            source="Mao, Ye, Hu, Wang and Huang 2024, Theorems 1 and 3",
            holds=True,
            remark="If the level of a pair of symbols is drawn without a look at the sequence, a "
            "padded position has an answer like any other, and nobody is asked twice; the paper "
            "does not say how, and its published code does otherwise.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {"labels": list(self.labels), "shares": list(self.shares)}
        return values | plain | {"sax": self.sax.to_dict()}

    @classmethod
    def from_dict(cls, state: Any) -> ShapesPlan:
        """The plan that ``to_dict`` gave as ``state``; anything else is refused.

        >>> plan = ShapesPlan(epsilon=4.0, shapes=3, people=40_000, sax=Sax(longest=10))
        >>> ShapesPlan.from_dict(plan.to_dict()) == plan
        True
        """
        with refuse_damage():
            values = members(state, (field.name for field in fields(cls)))
            values["sax"] = Sax.from_dict(values["sax"])
            values["labels"] = unique_texts(values["labels"])
            values["shares"] = tuple(map(finite, values["shares"]))
            return cls(**values)
