"""What all mechanisms have that keep rows as they are and move them in time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tempriv.data.series import EMPTY, REPEATED
from tempriv.mechanisms.base import Description, Mechanism
from tempriv.mechanisms.checks import ReleasedRows, codes_of
from tempriv.mechanisms.domains import Floats, Integers, OpaqueRows
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.privacy.guarantees import Approximate
from tempriv.privacy.units.order import OrderUnit, SlotOrigin, Swap

ON_TIMES = "moves readings in time and keeps their values as they are"
ALL_ONCE = "Every reading came out once, and no row is empty."

ONLY_ONE_ORDER = (
    "some outputs can come from one of two orders only and show for certain which it was; delta is "
    "the probability of such an output"
)
NOT_PROTECTED_OF_MOVED = (
    "all values: they are published exactly as they are, and at most when each was read is hidden",
    "the order of values that give it away themselves, such as those of a meter that only rises",
    "which series there are (their ids, or as many pseudonyms), and how many",
    "the time steps of each series",
    "how many readings are missing, but not which: they are moved like all others",
)


@dataclass(frozen=True, kw_only=True)
class ReorderMechanism(Mechanism):
    """Moves rows in time and keeps what is in them.

    Defaults are those of a mechanism that releases readings up to ``window`` - 1 steps late, where
    ``probabilities`` says how likely each delay is.

    Parameters:
        epsilon: the budget for the order of readings.
    """

    epsilon: float

    has_status: ClassVar[bool] = True
    moves_both_ways: ClassVar[bool] = False
    """Whether every reading comes out once, and some earlier than they were read."""
    may_repeat: ClassVar[bool] = False
    """Whether a reading can come out again."""
    move_name: ClassVar[str] = "late by"
    """What is said before the number of rows that readings are moved by."""
    move_title: ClassVar[str] = "How many rows later readings come out"
    """The title of a picture of ``move_distribution``."""

    if TYPE_CHECKING:  # of most

        @property
        def window(self) -> int:
            """How many time steps a reading may be moved, and one."""

        @property
        def probabilities(self) -> Floats:
            """The probability of each delay, from none on."""

        @property
        def unit(self) -> OrderUnit:
            """What is protected."""

    @property
    def domain(self) -> OpaqueRows:
        return OpaqueRows(self.window - 1)

    @property
    def causal(self) -> bool:
        return not self.moves_both_ways

    @property
    def fate(self) -> str:
        """What became of readings that did not come out once, as a sentence."""
        return ALL_ONCE

    @abstractmethod
    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings that trade places.

        Parameters:
            distance: how many steps they are apart.
        """

    def rows_together(self) -> Mapping[int, Approximate]:
        """By distance: next to each other, two apart, half of the window, and all of it."""
        if not self.unit.single_rows:
            return {}
        span = self.unit.span
        distances = sorted({1, min(2, span), max(1, span // 2), span})
        return {distance: self.loss_at(distance) for distance in distances}

    @property
    def delta_reason(self) -> str | None:
        """Where two orders are compared: an output that only one of them can give."""
        return ONLY_ONE_ORDER if self.unit.single_rows else super().delta_reason

    @abstractmethod
    def expected_shares(self) -> Shares:
        """How many readings are missing, repeated or late in a stream, in a long series."""

    def move_distribution(self) -> tuple[Integers, Floats]:
        """How many rows readings are moved, and how often; the rarest moves are left out."""
        return np.arange(self.window), np.asarray(self.probabilities)

    @property
    def empty_rows(self) -> tuple[int | None, int | None]:
        """In how many rows at the start of a series empty ones can be, and how many there are then.

        They are those of readings from before the series, as if it had begun long ago. None where
        that is not certain: a reading that is dropped, or overwritten, leaves an empty row
        anywhere.
        """
        return (0, 0) if self.moves_both_ways else (None, None)

    def known_origins(self) -> list[str]:
        """What remains known of when a value was read, as far as that is certain."""
        return [f"that each value was read where it stands or up to {self.window - 1} steps before"]

    def not_protected(self, about: Description) -> list[str]:
        """What remains known of the order, by the guarantee that a release is ``about``."""
        origins = self.known_origins()
        guaranteed = about["guarantee"].get("unit") is not None
        if guaranteed and isinstance(self.unit, SlotOrigin):
            origins.append(
                "what several rows together tell of the order: each by itself is protected"
            )
        elif guaranteed and isinstance(self.unit, Swap):
            origins.append(f"the order of values read {self.window} or more time steps apart")
        return [NOT_PROTECTED_OF_MOVED[0], *origins, *NOT_PROTECTED_OF_MOVED[1:]]

    def status_fits(self, rows: ReleasedRows) -> bool:
        """Whether empty ``rows`` hold nothing, and others repeat only where they may."""
        empty, series = rows.status == EMPTY, rows.series
        if any(not np.asarray(column.is_null())[empty].all() for column in rows.columns):
            return False
        order = np.argsort(series, kind="stable")
        counts = np.bincount(series)
        step = np.empty(len(series), dtype=np.int64)  # within its series
        step[order] = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
        first_rows, exactly = self.empty_rows
        if first_rows is not None:
            seen = np.bincount(series[empty], minlength=len(counts))
            least, most = (0, first_rows) if exactly is None else (exactly, exactly)
            if (step[empty] >= first_rows).any() or (seen > most).any():
                return False
            if (seen[counts >= first_rows] < least).any():
                return False
        if not self.may_repeat:
            return not (rows.status == REPEATED).any()
        return self._repeats_recent(rows, step)

    def _repeats_recent(self, rows: ReleasedRows, step: Integers) -> bool:
        """A repeated row is like one that came out before, less than a window ago."""
        alike = rows.series
        for column in rows.columns:
            codes = codes_of(column)
            alike = np.unique(alike * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
        full = np.flatnonzero(rows.status != EMPTY)
        full = full[np.lexsort((step[full], alike[full]))]
        same = np.diff(alike[full], prepend=-1) == 0
        near = np.diff(step[full], prepend=-self.window) < self.window
        return bool((same & near)[rows.status[full] == REPEATED].all())
