"""The data of the study on landmarks: a meter, a taxi and a telephone that meets others.

The data sets are not part of this package. ``data`` names a folder with the three files below. Of
each the first 1,000 entries are taken, as in the paper, and marked for shares of 0 to 100 %. All
marks are worked out from the very values that are to be protected, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.landmarks.choose import Chosen, among, below, most_frequent, stay_points
from tempriv.mechanisms.domains import Locations
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units.distance import WithinDistance
from tempriv.studies.common import (
    ResultTable,
    Row,
    Section,
    Tables,
    read_columns,
    require_files,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

CONTACTS = Path("copenhagen") / "bt_contacts_5min.csv"
METER = Path("hue") / "Residential_1.csv"
TAXI = Path("tdrive") / "taxi_2.csv"
FILES = (CONTACTS, METER, TAXI)

COPENHAGEN, HUE, TDRIVE = "Copenhagen", "HUE", "T-Drive"
BOUNDED, FARTHER = "HUE, any change within 5 kWh", "T-Drive, places within 200 m"
NAMES = (COPENHAGEN, HUE, TDRIVE)
ENTRIES = 1000
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
INSIDE = SHARES[1:-1]  # where there are landmarks and other entries
MAX_KWH = 5.0  # kWh in an hour: what the meter of a home can show
CENTER = (39.9042, 116.4074)  # of Beijing, latitude and longitude
WALK_METERS = 200.0  # meters
STAY_MINUTES = 30.0
# Section 4.1.2. "below a threshold", which rises with the share; the middle four are printed in
# the opposite order
PRINTED_THRESHOLDS = (0.28, 0.54, 0.68, 0.88, 1.12, 4.45)
PRINTED_STAYS = ((0.0, 1000.0), *((far, STAY_MINUTES) for far in (2095.0, 2790, 3590, 4825, 10350)))

CHOSEN = ("data", "share", "printed", "share_as_printed", "used", "share_used")


def percent(share: float) -> str:
    """A ``share`` in whole percent."""
    return f"{100 * share:.0f} %"


@dataclass(frozen=True, eq=False)
class LandmarkDataset:
    """One series: readings and marks for each share of landmarks, and how it is released.

    ``over(epsilon)`` is the mechanism for one reading; ``error`` says how far off a release is, a
    number for each row, in ``unit``. ``clamp`` puts noise beyond public bounds on them.
    """

    name: str
    unit: str
    values: dict[float, Floats]
    marks: dict[float, Flags]
    over: Callable[[float], Any]
    error: Callable[[Floats, Floats], Floats]
    clamp: Callable[[Floats], Floats] = lambda released: released

    @property
    def length(self) -> int:
        return len(self.marks[SHARES[0]])

    def rows(self, share: float, marks: Flags | None = None) -> Floats:
        """Readings with the mark behind each, as the schemes take them; or with other marks.

        Parameters:
            share: the part of steps that are landmarks.
            marks: other marks than those of the share.
        """
        chosen = self.marks[share] if marks is None else marks
        return np.column_stack([self.values[share], chosen.astype(np.float64)])


@dataclass(frozen=True, eq=False)
class LandmarkInputs:
    """What the study runs on: the paper's three as it runs them, and two with honest neighbors."""

    copenhagen: LandmarkDataset
    hue: LandmarkDataset
    tdrive: LandmarkDataset
    bounded: LandmarkDataset
    farther: LandmarkDataset
    readings: ResultTable
    landmarks: ResultTable

    @property
    def theirs(self) -> tuple[LandmarkDataset, ...]:
        return self.copenhagen, self.hue, self.tdrive

    @property
    def honest(self) -> tuple[LandmarkDataset, ...]:
        return self.bounded, self.farther


# errors


def _percent_wrong(true: Floats, released: Floats) -> Floats:
    return 100.0 * np.abs(released - true)[:, 0]


def _absolute(true: Floats, released: Floats) -> Floats:
    return np.asarray(np.abs(released - true)[:, 0])


def meters(true: Floats, released: Floats) -> Floats:
    """Between two columns of places, on the plane in which they are moved.

    Parameters:
        true: latitudes and longitudes in degrees.
        released: those to compare them with.
    """
    plane = Locations(CENTER, 1.0)
    apart = (released - true) / (plane.degrees(np.ones(2)) - np.array(CENTER))
    return np.asarray(np.hypot(*apart.T))


# the three series


def _contacts(entries: npt.NDArray[Any]) -> LandmarkDataset:
    """Each entry is whom the telephone met; released is whether that is one of those that matter.

    So reading and mark are the same bit: 1 at every landmark, 0 everywhere else.
    """
    marks = {share: among(entries, most_frequent(entries, share)).marks for share in SHARES}
    values = {share: marks[share].astype(np.float64)[:, None] for share in SHARES}
    return LandmarkDataset(
        COPENHAGEN,
        "%",
        values,
        marks,
        lambda epsilon: RandomizedResponse(epsilon=epsilon, categories=(("no", "yes"),)),
        _percent_wrong,
    )


def _meter(energy: Floats, name: str, change: float) -> LandmarkDataset:
    """Laplace noise of scale ``change`` / epsilon, on readings within public bounds.

    Noise of scale 1 / epsilon on readings from 0 to 5 is what Laplace(bounds=(0, 5)) gives for five
    times that epsilon, which is what it guarantees for readings that may change by 5.
    """
    thresholds = np.array(PRINTED_THRESHOLDS)
    marks = {
        share: below(energy, float(at)).marks for share, at in zip(SHARES, thresholds, strict=True)
    }
    marks[1.0] = np.ones(len(energy), dtype=np.bool_)  # 4.452 is printed as 4.45
    return LandmarkDataset(
        name,
        "kWh",
        dict.fromkeys(SHARES, energy[:, None]),
        marks,
        lambda epsilon: Laplace(epsilon=epsilon * MAX_KWH / change, bounds=((0.0, MAX_KWH),)),
        _absolute,
        lambda released: np.clip(released, 0.0, MAX_KWH),
    )


def _stays(places: Floats, seconds: Floats, far: float, minutes: float) -> Chosen:
    return stay_points(places[:, 0], places[:, 1], seconds, meters=far, minutes=minutes)


def stays_of(places: Floats, seconds: Floats, share: float) -> tuple[float, Chosen]:
    """Stays of half an hour or more within the distance that comes nearest to the share.

    The share does not rise with the distance everywhere, so all on a ladder of 1 % are looked at.

    Parameters:
        places: latitudes and longitudes in degrees.
        seconds: when they were reported.
        share: the part of steps that are landmarks.
    """
    ladder = [0.0, *np.geomspace(100.0, 200_000.0, 764).round().tolist()]
    if share == 0:
        return 0.0, _stays(places, seconds, *PRINTED_STAYS[0])
    tried = [_stays(places, seconds, far, STAY_MINUTES) for far in ladder]
    best = int(np.argmin([abs(stay.share - share) for stay in tried]))
    return ladder[best], tried[best]


def _taxi(places: Floats, marks: dict[float, Flags], name: str, near: float) -> LandmarkDataset:
    return LandmarkDataset(
        name,
        "m",
        dict.fromkeys(SHARES, places),
        marks,
        lambda epsilon: PlanarLaplace(epsilon=epsilon, unit=WithinDistance(near), origin=CENTER),
        meters,
    )


def inputs_of(
    contacts: npt.NDArray[Any],
    energy: Floats,
    places: Floats,
    seconds: Floats,
) -> LandmarkInputs:
    """Everything from the columns that files hold.

    Parameters:
        contacts: whom the telephone met.
        energy: of each hour, in kWh.
        places: latitudes and longitudes in degrees.
        seconds: when they were reported.
    """
    stays = {share: stays_of(places, seconds, share) for share in SHARES}
    marks = {share: chosen.marks for share, (_, chosen) in stays.items()}
    copenhagen, hue = _contacts(contacts), _meter(energy, HUE, 1.0)
    choices = []
    for share, at, (far, minutes) in zip(SHARES, PRINTED_THRESHOLDS, PRINTED_STAYS, strict=True):
        printed = _stays(places, seconds, far, minutes)
        contacted = len(most_frequent(contacts, share))
        choices += [
            (COPENHAGEN, share, None, None, f"{contacted} contacts", _share(copenhagen, share)),
            (HUE, share, f"{at:g} kWh", below(energy, at).share, f"{at:g} kWh", _share(hue, share)),
            (
                TDRIVE,
                share,
                f"{far:g} m",
                printed.share,
                f"{stays[share][0]:g} m",
                stays[share][1].share,
            ),
        ]
    facts = (
        (HUE, "mean, kWh", 0.88, float(energy.mean())),
        (HUE, "least, kWh", 0.28, float(energy.min())),
        (HUE, "greatest, kWh", 4.45, float(energy.max())),
        (
            TDRIVE,
            "mean distance between two entries, m",
            623.0,
            float(meters(places[:-1], places[1:]).mean()),
        ),
        (TDRIVE, "mean time between two entries, s", 177.0, float(np.diff(seconds).mean())),
    )
    return LandmarkInputs(
        copenhagen,
        hue,
        _taxi(places, marks, TDRIVE, 1.0),
        _meter(energy, BOUNDED, MAX_KWH),
        _taxi(places, marks, FARTHER, WALK_METERS),
        ResultTable("readings", "the first entries", ("data", "what", "published", "ours"), facts),
        ResultTable("landmarks", "how landmarks are chosen", CHOSEN, tuple(choices)),
    )


def _share(data: LandmarkDataset, share: float) -> float:
    return float(data.marks[share].mean())


# the real ones


def read(folder: Path) -> LandmarkInputs:
    """The real data from their folder, or one sentence that says what is missing."""
    require_files(folder, FILES)
    places, seconds = read_taxi(folder / TAXI)
    return inputs_of(read_contacts(folder / CONTACTS), read_meter(folder / METER), places, seconds)


def _first(path: Path, *columns: Any) -> list[Any]:
    require(len(columns[0]) >= ENTRIES, f"{path}: must have {ENTRIES} entries or more", DataError)
    return [column[:ENTRIES] for column in columns]


def read_contacts(path: Path) -> Integers:
    """Whom the telephone with most entries met, in the order of time, from the file at ``path``.

    People are numbered anew in the copy of the data at hand, so the paper's telephone 449 and its
    lists of contacts are not to be found in it.
    """
    slot, first, second = read_columns(path, ("slot", "user_a", "user_b"))
    busiest = int(np.argmax(np.bincount(np.concatenate([first, second]))))
    met = np.where(first == busiest, second, first)[(first == busiest) | (second == busiest)]
    when = slot[(first == busiest) | (second == busiest)]
    (entries,) = _first(path, met[np.argsort(when, kind="stable")])
    return np.asarray(entries, dtype=np.int64)


def read_meter(path: Path) -> Floats:
    """Hourly energy; hours of exactly 0 are gaps, which the paper's range leaves out too.

    Parameters:
        path: the file.
    """
    (energy,) = read_columns(path, ("energy_kWh",))
    (readings,) = _first(path, energy[energy > 0])
    return np.asarray(readings, dtype=np.float64)


def read_taxi(path: Path) -> tuple[Floats, Floats]:
    """Places in degrees, latitude first, and the seconds at which they were reported.

    Parameters:
        path: the file.
    """
    when, longitude, latitude = read_columns(path, ("datetime", "longitude", "latitude"))
    seconds = when.astype("datetime64[s]").astype(np.float64)
    east, north, seconds = _first(path, longitude, latitude, seconds)
    return np.column_stack([north, east]), seconds


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of its data, from ``tables``."""
    section = Section("The first 1,000 entries (Section 4.1)")
    for fact in tables["readings"].where(data=HUE):
        yield section.holds(
            f"HUE: {fact['what']}",
            fact["published"],
            fact["ours"],
            "readings.csv; an hour of exactly 0 is a gap",
            0.01,
        )
    for fact in tables["readings"].where(data=TDRIVE):
        how = f"not comparable: {fact['published']:g} is the mean of all taxis"
        yield section.ours(f"T-Drive: {fact['what']}", fact["ours"], how)
    for line in tables["landmarks"].where(data=HUE)[1:-1]:
        # the threshold that is printed for this share is the one of the opposite share
        (other,) = tables["landmarks"].where(data=HUE, share=round(1 - line["share"], 1))
        what = f"HUE: share below {other['printed']}, printed for {percent(line['share'])}"
        yield section.fails(
            what,
            line["share"],
            other["share_as_printed"],
            "the middle four thresholds are printed in the opposite order",
            0.1,
        )
    for line in tables["landmarks"].where(data=TDRIVE)[1:-1]:
        what = f"T-Drive: share of stays of 30 minutes within {line['printed']}"
        how = f"Li et al. 2008 as cited; {line['used']} give {percent(line['share_used'])}"
        yield section.fails(what, line["share"], line["share_as_printed"], how, 0.05)
