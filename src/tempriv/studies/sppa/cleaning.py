"""Figure 1 of the paper on sampling periods: places in the order of their distance from the start.

A trip that only leads away tells its own order, so sorting undoes what Threshold did. How many
trips do, and how much comes back?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks.order import guess_origins, known_of, monotone_share
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.studies.common import ResultTable, Row, Section, Tables, run_mechanism
from tempriv.studies.sppa.data import SppaDataset, SppaInputs
from tempriv.studies.sppa.experiment import WINDOW, SppaSize, protects
from tempriv.utility.monitoring import squared_error

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EPSILON = 1.0  # as in Sections 5.3.1 and 5.3.2; the paper names none for its Figure 1
LEADS_AWAY = 0.95  # of pairs of readings within the window


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A released trip, sorted as the paper does, and placed as by one who knows the noise."""

    released: Any
    sorted: Any
    placed: Any
    origins: Integers
    sorted_origins: Integers
    guessed: Integers


def displacements(trip: Any, start: Floats) -> Any:
    """How far each place of a ``trip`` is from its ``start``."""
    present = ~np.ma.getmaskarray(trip)[:, 0]
    return np.ma.array(np.linalg.norm(np.ma.getdata(trip) - start, axis=1), mask=~present)


def clean(mechanism: Threshold, trip: Floats, seed: int) -> Cleaned:
    """Release a trip and put it in order of distance, in the slots that hold a place.

    The start is known, as it is to whoever saw the person get in.

    Parameters:
        mechanism: that moves the places.
        trip: places in meters.
        seed: of the random numbers.
    """
    numbered = np.column_stack([trip, np.arange(len(trip))])
    moved = run_mechanism(mechanism, [numbered], seed)[0]
    filled = np.flatnonzero(~np.ma.getmaskarray(moved)[:, 0])
    rows, origins = moved.data[filled, :2], moved.data[filled, 2].astype(np.int64)
    far = np.linalg.norm(rows - trip[0], axis=1)
    order = np.argsort(far, kind="stable")

    def laid(slots: Integers, places: Floats) -> Any:
        """A trip with ``places`` in some ``slots``, and the others empty."""
        out: Any = np.ma.array(np.zeros_like(trip), mask=True)
        out[slots] = places
        return out

    released = laid(filled, rows)
    guessed = guess_origins(displacements(released, trip[0]), known_of(mechanism), rising=True)
    guessed = guessed[filled]
    named = guessed >= 0
    return Cleaned(
        released,
        laid(filled, rows[order]),
        laid(guessed[named], rows[named]),
        origins,
        origins[order],
        guessed,
    )


def in_order(origins: Integers) -> float:
    """Of released values next to each other, the share that stand in the order of reading.

    Parameters:
        origins: the step of each released value.

    >>> in_order(np.array([0, 2, 1]))
    0.5
    """
    return float(np.mean(np.diff(origins) > 0)) if len(origins) > 1 else 0.0


TRIPS = (
    *("data", "trip", "steps", "leads_away", "rises", "order_released", "order_sorted"),
    *("in_place", "named", "error_released", "error_sorted", "error_placed"),
)


def trips(data: SppaDataset, mechanism: Threshold) -> Iterator[tuple[Any, ...]]:
    """A line for each trip of ``data``: how much of it sorting restores from a ``mechanism``."""
    for number, trip in enumerate(data.series):
        cleaned = clean(mechanism, trip, number)
        far = displacements(trip, trip[0]).data
        slots = np.flatnonzero(~np.ma.getmaskarray(cleaned.released)[:, 0])
        errors = [
            squared_error(trip, restored, first=1, last=-1).mean ** 0.5
            for restored in (cleaned.released, cleaned.sorted, cleaned.placed)
        ]
        yield (
            *(data.name, number, len(trip), monotone_share(far, WINDOW), monotone_share(far)),
            *(in_order(cleaned.origins), in_order(cleaned.sorted_origins)),
            *(
                float(np.mean(slots == cleaned.origins)),
                float(np.mean(cleaned.guessed == cleaned.origins)),
            ),
            *errors,
        )


def typical(table: ResultTable, data: SppaDataset) -> dict[str, int]:
    """Two trips to look at: the one that leads away most, and one in the middle of all.

    Parameters:
        table: of all trips.
        data: the data set.
    """
    lines = table.where(data=data.name)
    lines.sort(key=lambda line: float(line["leads_away"]))
    return {"leads away": lines[-1]["trip"], "typical": lines[len(lines) // 2]["trip"]}


def paths(data: SppaDataset, mechanism: Threshold, chosen: dict[str, int]) -> ResultTable:
    """Distances from the start, step by step.

    Parameters:
        data: the data set.
        mechanism: that moves the places.
        chosen: the numbers of two trips, by kind.
    """
    lines = []
    for kind, number in chosen.items():
        trip = data.series[number]
        cleaned = clean(mechanism, trip, number)
        far = displacements(trip, trip[0]).data
        others = (cleaned.released, cleaned.sorted, cleaned.placed)
        shown = [displacements(restored, trip[0]).filled(np.nan) for restored in others]
        for step in range(len(trip)):
            lines.append(
                (data.name, kind, step, *(float(distances[step]) for distances in (far, *shown)))
            )
    columns = ("data", "trip", "step", "original", "released", "sorted", "placed")
    title = f"Distance from the start in meters, Threshold with epsilon 1 and a window of {WINDOW}"
    return ResultTable("figure-1", title, columns, tuple(lines))


def tables(inputs: SppaInputs, size: SppaSize) -> Iterator[ResultTable]:
    """The tables of Figure 1, from ``inputs``, in a ``size``."""
    mechanism = Threshold(epsilon=EPSILON, window=WINDOW)
    both = [inputs.porto.some(size.cleaned), inputs.shenzhen.some(size.cleaned // 4)]
    lines = [(*line, protects(mechanism)) for data in both for line in trips(data, mechanism)]
    title = "What sorting by distance from the start restores, trip by trip"
    trip_table = ResultTable("figure-1-trips", title, (*TRIPS, "protects"), tuple(lines))
    yield paths(both[0], mechanism, typical(trip_table, both[0]))
    yield trip_table


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of sorting, from ``tables``."""
    section = Section("Sorting by distance from the start (Section 2.4, Fig. 1)")
    table, how = tables["figure-1-trips"], "figure-1-trips.csv"

    def median(lines: list[dict[str, Any]], column: str) -> float:
        """The median of a ``column`` over ``lines``."""
        return float(np.median([line[column] for line in lines]))

    for name in table.unique("data"):
        lines = table.where(data=name)
        # the dependency that the paper finds is "for all t"
        what = f"{name}: share of steps that lead further away"
        yield section.fails(what, 1, median(lines, "rises"), "the median trip")
        away = [line for line in lines if line["leads_away"] >= LEADS_AWAY]
        what = f"{name}: share of trips that lead away"
        yield section.ours(what, len(away) / len(lines), "95 % of pairs of readings within 8 do")
        for part, kind in ((away, "trips that lead away"), (lines, "all trips")):
            if not part:
                continue
            for what, column in (
                ("neighbors in order as released", "order_released"),
                ("neighbors in order when sorted", "order_sorted"),
                ("slots whose step is their own, as released", "in_place"),
                ("slots whose step is named by who knows the noise", "named"),
                ("meters off as released", "error_released"),
                ("meters off when sorted", "error_sorted"),
                ("meters off when placed by who knows the noise", "error_placed"),
            ):
                of = f"{name}, {kind}: {what}"
                yield section.ours(of, median(part, column), "the median trip")
            nearer = np.mean([line["error_sorted"] < line["error_released"] for line in part])
            what = f"{name}, {kind}: share that sorting brings nearer to the truth"
            yield section.ours(what, float(nearer), how)
