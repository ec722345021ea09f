"""What readings spend where some of them are landmarks, as a release hands it to a ledger.

A landmark release guarantees epsilon for all landmarks of a series and any one other reading. Each
reading by itself spends less, and a landmark another part than the rest. So such a charge is kept
in parts: for single readings one on the landmarks and one on all others, for other units what each
reading costs at most, and for limits on landmarks what all of them spend together.

Which readings are landmarks the ledger knows as digests under its own secret: enough to see that
two releases mean the same moments, and nothing to read them off without the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from tempriv.ledger.resolution import Statements
from tempriv.ledger.scope import (
    EVERY,
    LANDMARKS,
    LONGER,
    MARKS,
    SINGLE,
    Ids,
    Integers,
    Scope,
    ids_from_bytes,
    ids_to_bytes,
)
from tempriv.privacy import units
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units.landmarks import ScatteredUnit

MAX_GROUPS = 32
"""Series that spend alike are charged together; of more kinds than this all count as the worst."""

ANY_LENGTH = 2**62  # what the readings of a release spend together, however long its series


@dataclass(frozen=True)
class SeriesSpending:
    """What the readings of some series spend, of the epsilon of a release.

    Parameters:
        landmark: the most that a landmark spends.
        other: the most that any other reading spends.
        together: the most that all landmarks of a series spend together.
        landmarks: the most landmarks of a series; None: unknown.
        others: the most other readings of a series; None: unknown.
        members: the ids of the series; None: all of the release.
    """

    landmark: float
    other: float
    together: float
    landmarks: int | None = None
    others: int | None = None
    members: tuple[str, ...] | None = None

    @property
    def reading(self) -> float:
        """The most that any reading spends."""
        return max(self.landmark, self.other)

    def or_worse(self, other: SeriesSpending) -> SeriesSpending:
        """What covers these series and the ``other`` ones."""

        def most(a: int | None, b: int | None) -> int | None:
            return None if a is None or b is None else max(a, b)

        return SeriesSpending(
            landmark=max(self.landmark, other.landmark),
            other=max(self.other, other.other),
            together=max(self.together, other.together),
            landmarks=most(self.landmarks, other.landmarks),
            others=most(self.others, other.others),
        )


@dataclass(frozen=True)
class MarksDrawn:
    """What is guaranteed for which moments are landmarks, and of which draw.

    Parameters:
        guarantee: of one draw: a guarantee for ``MarkedMoment``, or none.
        draw: its name, where further releases may show the same draw; None: of this release alone.
    """

    guarantee: Guarantee | NoGuarantee
    draw: str | None = None


@dataclass(frozen=True)
class LandmarkSpending:
    """What a landmark release spends on each reading, beside its guarantee.

    Parameters:
        series: what it spends, for series that spend alike.
        landmarks: for each series the ticks of its landmarks; None: unknown, as of a stream.
        others: the ticks of its other readings, where these spend more; None: unknown.
        marks: what the release tells of which moments are landmarks; None: it does not look.
    """

    series: tuple[SeriesSpending, ...]
    landmarks: Mapping[str, Integers] | None = None
    others: Mapping[str, Integers] | None = None
    marks: MarksDrawn | None = None

    @property
    def worst(self) -> SeriesSpending:
        """What covers all series."""
        most = self.series[0]
        for one in self.series[1:]:
            most = most.or_worse(one)
        return most


class Moments(NamedTuple):
    """Landmarks as a ledger keeps them: digests of the readings, series after series.

    Parameters:
        members: digests of the series that have landmarks, sorted.
        counts: how many landmarks each of them has.
        moments: digests of the landmarks, sorted within each series.
    """

    members: Ids
    counts: Integers
    moments: Ids

    @property
    def digest(self) -> bytes:
        """Names the set."""
        parts = (ids_to_bytes(self.members), self.counts.astype("<i8").tobytes())
        return blake2b(b"".join((*parts, ids_to_bytes(self.moments))), digest_size=32).digest()

    @property
    def owners(self) -> Ids:
        """The series of each landmark."""
        return np.repeat(self.members, self.counts)


def naming_of(scope: Scope) -> str:
    """How ids and times of a ``scope`` are named: digests of unlike ones cannot be compared."""
    return f"{scope.kind}|{scope.clock}|{scope.members is None}"


def moments_of(secret: bytes, scope: Scope, moments: Mapping[str, Integers]) -> Moments:
    """The landmarks of a release as digests.

    Of a million landmarks two have the same digest with probability 3e-8: then one counts as the
    other. Without the secret nobody can aim at that.

    Parameters:
        secret: of the ledger.
        scope: of the release.
        moments: for each series the ticks of its landmarks.
    """
    naming = naming_of(scope).encode()
    kept = {}
    for name, ticks in moments.items():
        text = str(name).encode(errors="surrogatepass")
        # the digest of a series is the one by which a scope knows it
        member = int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
        own = blake2b(naming + b"\0" + text, key=secret, digest_size=32).digest()
        hashes = [
            blake2b(tick, key=own, digest_size=8).digest()
            for tick in map(bytes, np.asarray(ticks).astype("<i8").reshape(-1, 1))
        ]
        if hashes:
            kept[member] = np.unique(ids_from_bytes(b"".join(hashes)))
    members = sorted(kept)
    return Moments(
        np.array(members, dtype=np.uint64),
        np.array([len(kept[member]) for member in members], dtype=np.int64),
        np.concatenate([np.zeros(0, dtype=np.uint64), *(kept[member] for member in members)]),
    )


@dataclass(frozen=True)
class MarkedScope(Scope):
    """The landmarks of a scope, or all of it but them.

    Parameters:
        marks: the digest of the set of landmarks.
        inside: whether it is them.
    """

    marks: bytes = b""
    inside: bool = True

    @property
    def marked(self) -> tuple[bytes | None, bool | None]:
        return self.marks, self.inside

    @classmethod
    def within(cls, scope: Scope, marks: bytes, inside: bool) -> MarkedScope:
        """The part of a ``scope`` that is in the set named ``marks``, or is not (``inside``)."""
        fields = {name: getattr(scope, name) for name in Scope.__dataclass_fields__}
        return cls(**fields, marks=marks, inside=inside)


class ChargePart(NamedTuple):
    """A part of a charge.

    Parameters:
        scope: what it touches.
        role: for which limits it counts.
        statements: what is guaranteed, each of them true.
        draw: names the draw of marks that it pays for.
        spent: for limits on landmarks, what all series spend at most.
        marks: for these, the digest of the landmarks; None: unknown.
    """

    scope: Scope
    role: str
    statements: Statements
    draw: str | None = None
    spent: SeriesSpending | None = None
    marks: bytes | None = None


class ChargeParts(NamedTuple):
    """A charge in parts.

    Parameters:
        parts: of the charge.
        sets: the sets of readings that they name.
    """

    parts: tuple[ChargePart, ...]
    sets: tuple[Moments, ...]

    @property
    def unsplit(self) -> ChargeParts:
        """The same for a release at steps of its own, whose readings are not those of others."""
        parts = []
        for part in self.parts:
            if part.role != SINGLE:
                every = EVERY if part.role == LONGER else part.role
                parts.append(part._replace(role=every))
        return ChargeParts(tuple(parts), self.sets)


def parts_of(
    guarantee: Guarantee, scope: Scope, spending: LandmarkSpending, secret: bytes
) -> ChargeParts:
    """What a landmark charge adds to each kind of limit.

    For a reading x of a series, every release r spends a fixed part on x, whatever the values: p(r)
    if x is a landmark of r, and q(r) if not. Noise of releases is independent, so what they tell of
    x together is at most the sum of p(r) over those that have x as a landmark and of q(r) over the
    others. With the same landmarks everywhere that is max(sum of p, sum of q); with unlike ones,
    readings that are in the same sets have a sum each. Of landmarks and others the set with fewer
    readings is kept.

    Parameters:
        guarantee: of the release.
        scope: of the release.
        spending: what its readings spend.
        secret: of the ledger.
    """
    groups = spending.series
    if not scope.kind.startswith("series") or len(groups) > MAX_GROUPS:
        # a person may have series of several groups
        groups = (spending.worst,)
    parts, sets = [], []
    for group in groups:
        whose = scope
        if group.members is not None and len(groups) > 1:
            whose = replace(scope, members=group.members, longest=scope.most_readings, even=False)
        statements = _statements(guarantee, group)
        fewer = _fewer(group, spending, whose)
        parts.append(ChargePart(whose, LONGER if fewer else EVERY, statements))
        if fewer is not None:
            kept = moments_of(secret, scope, fewer.moments)
            sets.append(kept)
            for inside, part in ((True, fewer.inside), (False, fewer.outside)):
                single = Guarantee(Pure(part), statements[0].unit, guarantee.model)
                place = MarkedScope.within(whose, kept.digest, inside)
                parts.append(ChargePart(place, SINGLE, (single,)))
    known = None
    if guarantee.unit.names_landmarks and spending.landmarks is not None:
        sets.append(moments_of(secret, scope, spending.landmarks))
        known = sets[-1].digest
    worst = spending.worst
    whole = (guarantee, _statements(guarantee, worst)[0])
    parts.append(ChargePart(scope, LANDMARKS, whole, None, replace(worst, members=None), known))
    if spending.marks is not None:
        # one draw may be behind releases of other times and series, too
        anyone = scope
        if spending.marks.draw is not None:
            anyone = replace(scope, members=None, start=None, end=None, longest=None, even=None)
        said = (spending.marks.guarantee,)
        parts.append(ChargePart(anyone, MARKS, said, spending.marks.draw))
    return ChargeParts(tuple(parts), tuple(sets))


class _Fewer(NamedTuple):
    """The readings of the smaller side, and what those in it and outside spend."""

    moments: Mapping[str, Integers]
    inside: float
    outside: float


def _fewer(group: SeriesSpending, spending: LandmarkSpending, whose: Scope) -> _Fewer | None:
    """Landmarks or the others, whichever are fewer; None where all spend alike or it is unknown."""
    if spending.landmarks is None or group.landmark >= group.other:
        return None
    names = spending.landmarks if whose.members is None else {str(name) for name in whose.members}

    def of(moments: Mapping[str, Integers]) -> dict[str, Integers]:
        return {name: ticks for name, ticks in moments.items() if name in names}

    landmarks = of(spending.landmarks)
    marked = sum(map(len, landmarks.values()))
    if spending.others is not None:
        others = of(spending.others)
        if sum(map(len, others.values())) < marked:
            return _Fewer(others, group.other, group.landmark)
    return _Fewer(landmarks, group.landmark, group.other) if marked else None


def _statements(guarantee: Guarantee, group: SeriesSpending) -> tuple[Guarantee, ...]:
    """What is true of single readings, and of all readings of a series together."""
    assert isinstance(guarantee.unit, ScatteredUnit)
    single = guarantee.unit.single
    each = Guarantee(Pure(group.reading), single, guarantee.model)
    if group.others is None or single != units.Event():
        return (each,)
    all_readings = Pure(group.together + group.others * group.other)
    return each, Guarantee(all_readings, units.WholeSeries(ANY_LENGTH), guarantee.model)
