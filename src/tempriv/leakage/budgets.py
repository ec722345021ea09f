"""What each reading of a release spends, for what it tells when readings are correlated.

Budgets come from a release (from its mechanism, or for landmarks from the file that stays with its
owner) or from a file of numbers. What comes from landmarks is as private as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tempriv.correlation.growth import shown
from tempriv.data.series import ONLY_SERIES
from tempriv.errors import DataError, TemprivError, require
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.privacy.serialization import KIND
from tempriv.privacy.units import Event, WithinDistance
from tempriv.releases.description import owner_path, read_about
from tempriv.releases.owner_file import LANDMARK, RELEASE, SPENT
from tempriv.releases.release import read_table

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
About = dict[str, Any]

SERIES_COLUMN = "series"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Spending:
    """What each reading of one series spends, and which are landmarks, if any can be."""

    series: str
    budgets: Floats
    landmarks: Flags | None = None
    times: pa.Array | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReadingBudgets:
    """What some series spend. ``constant`` if every reading of every series spends the same."""

    spending: tuple[Spending, ...]
    guarantee: str
    private: bool = False
    constant: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def longest(self) -> int:
        """The most readings of a series."""
        return max(len(series.budgets) for series in self.spending)

    @property
    def have_landmarks(self) -> bool:
        """Whether any series has a landmark."""
        return any(
            series.landmarks is not None and series.landmarks.any() for series in self.spending
        )


def rounded_down(budget: float, digits: int = 4) -> str:
    """A ``budget`` as text of so many ``digits``: what is read is never more than may be spent.

    >>> rounded_down(0.515379), rounded_down(1.0)
    ('0.5153', '1')
    """
    exactly = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(budget)))
    return f"{exactly.normalize():f}"


# where budgets come from


def distance_factor(mechanism: Mechanism, across: float | None) -> float:
    """How many times its epsilon a mechanism loses between any two states of a chain.

    That of places holds within so many meters and grows with the distance, so how far states can be
    apart must be known. All others hold between any two readings.

    Parameters:
        mechanism: of a release.
        across: how many meters two places of the chain can be apart; None for other values.

    Raises:
        UsageError: if ``across`` is missing for places, or given for anything else.
    """
    unit = getattr(mechanism, "over", mechanism).unit
    if not isinstance(unit, WithinDistance):
        require(across is None, "[[across]]: is for places, and these values are none")
        return 1.0
    require(
        across is not None,
        "[[across]]: needed for places, whose epsilon grows with the distance; give how many "
        "meters two places of the chain can be apart",
    )
    assert across is not None
    fine = math.isfinite(across) and across > 0
    require(fine, f"across={across:g}: must be a number of meters above 0")
    return max(1.0, across / unit.meters)


def reading_epsilon(mechanism: Mechanism, across: float | None = None) -> float | None:
    """The epsilon that every reading spends, if that is public and the same for all of them.

    Parameters:
        mechanism: of a release.
        across: how many meters two places of the chain can be apart; None for other values.
    """
    factor, epsilon = distance_factor(mechanism, across), mechanism.reading_epsilon()
    return None if epsilon is None else epsilon * factor


def require_budgets(mechanism: Mechanism, across: float | None = None) -> None:
    """Refuse mechanisms of which it is not known what each reading spends.

    Parameters:
        mechanism: what is audited.
        across: how many meters two places of the chain can be apart; None for other values.
    """
    known = reading_epsilon(mechanism, across) is not None or isinstance(
        mechanism.domain, WithLandmarks
    )
    name = type(mechanism).__name__
    require(
        known,
        f"{name}: what it spends is not a pure epsilon at each reading by itself; work out the "
        "epsilon of each step, and give them with [[budgets=FILE]]",
    )


def budgets_of_release(
    path: Path, across: float | None = None, public: bool = False
) -> ReadingBudgets:
    """What the readings of a released file spent.

    Else, with landmarks, by the file of its owner.

    Parameters:
        path: the released file.
        across: how many meters two places of the chain can be apart, for mechanisms of places.
        public: count only what everyone may know, not the owner's file.
    """
    about = read_about(path)
    mechanism = registry.decode(about["mechanism"])
    require_budgets(mechanism, across)
    each = reading_epsilon(mechanism, across)
    owned = None
    if isinstance(mechanism.domain, WithLandmarks) and not public:
        owned = _owned(path, about) if each is None or owner_path(path).exists() else None
    require(
        each is not None or owned is not None,
        f"{path}: its budgets tell which moments are landmarks, and stay with its owner",
    )
    known, when = about["columns"]["series"], about["columns"]["time"]
    rows: Any = read_table(path, about) if known or when else None
    ids = rows.column(known) if known else None
    times = _joined(rows, when) if when else None
    if owned is None:
        assert each is not None
        budgets, marks = np.full(about["rows"], each), None
    else:
        budgets = _numbers(owned, SPENT) * distance_factor(mechanism, across)
        marks = _numbers(owned, LANDMARK) > 0
    remarks = []
    if isinstance(mechanism.domain, WithLandmarks) and owned is None and not public:
        remarks.append(
            f"{owner_path(path).name} is not there, so it is not known which readings "
            "are landmarks, and what they lose together"
        )
    if about["guarantee"][KIND] == NoGuarantee.__name__:
        remarks.append(f"this release guarantees nothing: {about['guarantee']['reason']}")
    constant = each if marks is None else _same(budgets)
    return ReadingBudgets(
        spending=_split(budgets, marks, ids, times),
        guarantee=_guarantee_text(mechanism, budgets, constant, across),
        private=owned is not None,
        constant=constant,
        remarks=tuple(remarks),
    )


def _owned(path: Path, about: About) -> pa.Table:
    beside = owner_path(path)
    require(
        beside.exists(),
        f"{beside}: missing; what each reading spent lies there where landmarks are protected. "
        "Give the budgets with [[budgets=FILE]]",
        TemprivError,
    )
    table = _read_csv(beside)
    fine = {LANDMARK, SPENT, RELEASE} <= set(table.column_names)
    fine = fine and table.num_rows == about["rows"]
    fine = fine and table.column(RELEASE).unique().to_pylist() == [about["release"]]
    require(fine, f"{beside}: does not belong to {path.name}; make the release again", TemprivError)
    return table


def _guarantee_text(
    mechanism: Mechanism, budgets: Floats, constant: float | None, across: float | None
) -> str:
    guarantee = mechanism.guarantee
    readings = _readings(budgets, constant)
    if isinstance(guarantee, NoGuarantee):
        return readings
    if isinstance(guarantee.unit, Event):
        return readings
    sentence = f"{guarantee.loss} for {guarantee.unit.sentence}, that is {readings}"
    return sentence if across is None else f"{sentence}, between places {across:g} meters apart"


def _readings(budgets: Floats, constant: float | None) -> str:
    if constant is not None:
        return f"epsilon = {shown(constant)} at every reading"
    return f"epsilon = {shown(budgets.min())} to {shown(budgets.max())} at a reading"


def _same(budgets: Floats) -> float | None:
    return float(budgets[0]) if bool(np.all(budgets == budgets[0])) else None


def read_budgets(path: Path) -> ReadingBudgets:
    """Budgets from the CSV at ``path``: numbers, or columns epsilon, landmark and series."""
    require(path.exists(), f"{path}: no such file", DataError)
    with path.open("rb") as file:
        first = file.readline().decode("utf-8", "replace").strip().strip('"')
    headless = _is_number(first)
    table = _read_csv(path, [SPENT] if headless else None)
    known = (SERIES_COLUMN, SPENT, LANDMARK)
    unknown = [name for name in table.column_names if name not in known]
    if table.num_columns == 1 and SPENT not in table.column_names:
        table, unknown = table.rename_columns([SPENT]), []
    release = ", or give the release that this file lies beside" * path.name.endswith(".owner.csv")
    require(
        SPENT in table.column_names,
        f"{path}: has no column {SPENT!r}; give one with the epsilon of each reading",
        DataError,
    )
    require(
        not unknown,
        f"{path}: {', '.join(map(repr, unknown))} is not known; keep {', '.join(known)}{release}",
        DataError,
    )
    budgets = _numbers(table, SPENT, path)
    fine = len(budgets) > 0 and bool(np.all(np.isfinite(budgets) & (budgets >= 0)))
    require(fine, f"{path}: must hold numbers >= 0, one for each reading", DataError)
    marks = None
    if LANDMARK in table.column_names:
        numbers = _numbers(table, LANDMARK, path)
        fine = bool(np.all((numbers == 0) | (numbers == 1)))
        require(fine, f"{path}: {LANDMARK} must be 1 at landmarks and 0 elsewhere", DataError)
        marks = numbers > 0
    constant = _same(budgets)
    ids = table.column(SERIES_COLUMN) if SERIES_COLUMN in table.column_names else None
    return ReadingBudgets(
        spending=_split(budgets, marks, ids, None),
        guarantee=_readings(budgets, constant),
        # where they are unequal they may tell which readings are landmarks
        private=marks is not None or constant is None,
        constant=constant,
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_csv(path: Path, names: list[str] | None = None) -> pa.Table:
    try:
        how = pa.csv.ReadOptions(column_names=names)
        # a line left out would give what is spent to another reading
        lines = pa.csv.ParseOptions(ignore_empty_lines=False)
        return pa.csv.read_csv(path, read_options=how, parse_options=lines)
    except pa.ArrowException:
        raise DataError(f"{path}: cannot be read as a table; give CSV") from None


def _numbers(table: pa.Table, name: str, path: Path | None = None) -> Floats:
    column = table.column(name)
    kind = column.type
    fine = column.null_count == 0 and (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )
    require(fine, f"{path or 'budgets'}: {name!r} must hold a number in each row", DataError)
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(), np.float64)


def _joined(table: pa.Table, names: list[str]) -> pa.Array:
    """Times as text, of two columns together."""
    texts = [pc.cast(table.column(name), pa.string()) for name in names]
    joined: Any = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, " ")
    return joined.combine_chunks()


def _split(
    budgets: Floats, marks: Flags | None, ids: Any, times: pa.Array | None
) -> tuple[Spending, ...]:
    """One for each series, its readings in the order that they are in."""
    if ids is None:
        return (Spending(series=ONLY_SERIES, budgets=budgets, landmarks=marks, times=times),)
    coded = pc.cast(ids, pa.string()).combine_chunks().dictionary_encode()
    require(coded.null_count == 0, "series: an id is missing; give each row one", DataError)
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return tuple(
        Spending(
            series=str(name),
            budgets=budgets[rows],
            landmarks=None if marks is None else marks[rows],
            times=None if times is None else times.take(pa.array(rows)),
        )
        for name, rows in zip(coded.dictionary.to_pylist(), parts, strict=True)
    )
