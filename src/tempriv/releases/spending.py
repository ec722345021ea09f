"""What a landmark release spends on each reading, counted as it runs, for its ledger.

What is counted depends on which readings are landmarks, on where readings are missing and on drawn
bounds, never on values: so whether a ledger refuses a release tells nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tempriv.ledger.scope import Flags, Integers
from tempriv.ledger.spending import LandmarkSpending, MarksDrawn, SeriesSpending
from tempriv.mechanisms.landmarks.base import LandmarkMechanism
from tempriv.mechanisms.landmarks.budget import WHOLE
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units.landmarks import MarkedMoment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempriv.data.series import Block
    from tempriv.landmarks.provenance import LandmarkProvenance
    from tempriv.mechanisms.base import Mechanism


@dataclass
class _Seen:
    """The readings of one series: how many, the most that was spent, and when they were."""

    landmarks: int = 0
    others: int = 0
    at_landmark: float = 0.0
    at_other: float = 0.0
    marked: list[Integers] = field(default_factory=list)
    rest: list[Integers] = field(default_factory=list)


class SpendingRecord:
    """Counts what the readings of each series spend as they are released.

    Parameters:
        mechanism: of the release.
    """

    def __init__(self, mechanism: LandmarkMechanism):
        self.mechanism = mechanism
        self._seen: dict[str, _Seen] = {}
        # where all readings spend alike it is no matter for them which are landmarks
        self._keeps_others = not mechanism.equal_noise

    def see(self, block: Block, released: Block) -> None:
        """Count the readings of a ``block`` and what its ``released`` rows spent."""
        spent_by_row = np.full(len(block.values), self.mechanism.epsilon)
        if released.spent is not None:
            spent_by_row = released.spent
        there: Flags = ~np.asarray(block.missing[:, :-1].all(axis=1))
        landmark = there & (block.values[:, -1] != 0)
        ends = np.cumsum(block.counts)
        for i, name in enumerate(block.ids):
            rows = slice(int(ends[i] - block.counts[i]), int(ends[i]))
            ticks = block.starts[i] + np.arange(block.counts[i])
            if block.times is not None:
                ticks = block.times[rows]
            own, rest = landmark[rows], there[rows] & ~landmark[rows]
            spent, seen = spent_by_row[rows], self._seen.setdefault(name, _Seen())
            seen.landmarks += int(np.count_nonzero(own))
            seen.others += int(np.count_nonzero(rest))
            seen.at_landmark = max(seen.at_landmark, float(spent[own].max(initial=0.0)))
            seen.at_other = max(seen.at_other, float(spent[rest].max(initial=0.0)))
            seen.marked.append(ticks[own])
            if self._keeps_others:
                seen.rest.append(ticks[rest])

    def spending(
        self, ids: Mapping[str, str], note: LandmarkProvenance | None = None
    ) -> LandmarkSpending | None:
        """What was spent, once everything has passed; None if there was nothing.

        Parameters:
            ids: the ids of series by those that were released.
            note: how the landmarks were marked.
        """
        stated = stated_spending(self.mechanism, note)
        if stated is not None and stated.marks is None:
            return stated  # marks are not looked at, so what they are is no matter
        if not self._seen:
            return stated
        alike: dict[SeriesSpending, list[str]] = {}
        for name, seen in self._seen.items():
            alike.setdefault(self._of_series(seen), []).append(ids.get(name, name))
        return LandmarkSpending(
            series=tuple(
                SeriesSpending(**{**vars(group), "members": tuple(members)})
                for group, members in alike.items()
            ),
            landmarks=self._moments(ids, marked=True),
            others=self._moments(ids, marked=False) if self._keeps_others else None,
            marks=_marks_drawn(self.mechanism, note),
        )

    def _of_series(self, seen: _Seen) -> SeriesSpending:
        each = self.mechanism.epsilon / WHOLE
        units = round(seen.at_landmark / each), round(seen.at_other / each)
        most = self.mechanism.most_units(seen.landmarks, seen.others, units)
        landmark, other = (part * each for part in most)
        return SeriesSpending(
            landmark=landmark,
            other=other,
            together=min(self.mechanism.epsilon, seen.landmarks * landmark),
            landmarks=seen.landmarks,
            others=seen.others,
        )

    def _moments(self, ids: Mapping[str, str], marked: bool) -> dict[str, Integers]:
        return {
            ids.get(name, name): np.concatenate(seen.marked if marked else seen.rest)
            for name, seen in self._seen.items()
        }


def record_for(mechanism: Mechanism) -> SpendingRecord | None:
    """Counts what a landmark ``mechanism`` spends; None for any other."""
    return SpendingRecord(mechanism) if isinstance(mechanism, LandmarkMechanism) else None


def _marks_drawn(
    mechanism: LandmarkMechanism, note: LandmarkProvenance | None
) -> MarksDrawn | None:
    """What a release tells of which moments are landmarks."""
    guarantee = mechanism.marks_guarantee
    if guarantee is None or note is None or note.draw is None:
        return None if guarantee is None else MarksDrawn(guarantee)
    # all that is released of the marks is made from one draw of them
    if note.epsilon is None:
        return MarksDrawn(NoGuarantee("dummies as published do not hide which are landmarks"))
    return MarksDrawn(Guarantee(Pure(note.epsilon), MarkedMoment()), note.draw)


def stated_spending(
    mechanism: Mechanism, note: LandmarkProvenance | None = None
) -> LandmarkSpending | None:
    """The most that a release spends by its settings alone, as of a stream; None: not known.

    Parameters:
        mechanism: of the release.
        note: how the landmarks were marked.
    """
    if not isinstance(mechanism, LandmarkMechanism) or mechanism.takes_whole:
        return None
    landmark, other = (part * (mechanism.epsilon / WHOLE) for part in mechanism.stated_parts)
    most, together = mechanism.most_landmarks, mechanism.epsilon
    if landmark == 0 or most is not None:
        together = min(together, (most or 0) * landmark)
    spent = SeriesSpending(landmark=landmark, other=other, together=together, landmarks=most)
    return LandmarkSpending(series=(spent,), marks=_marks_drawn(mechanism, note))


def least_charge(
    mechanism: Mechanism, guarantee: Guarantee | NoGuarantee
) -> tuple[Guarantee | NoGuarantee, LandmarkSpending | None]:
    """What a release costs at least, to be refused early: it is counted as it runs.

    Parameters:
        mechanism: of the release.
        guarantee: of the release.
    """
    stated = stated_spending(mechanism)
    if stated is not None and stated.marks is None:
        return guarantee, stated
    if isinstance(mechanism, LandmarkMechanism) and isinstance(guarantee, Guarantee):
        return Guarantee(Pure(0.0), guarantee.unit, guarantee.model), None
    return guarantee, None
