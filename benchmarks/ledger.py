"""The ledger after ten thousand charges: a further one, and showing the total."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event, Unit, WholeSeries, Window

MANY, FEW = 10_000, 100
EACH = Pure(1e-4)


def daily(number: int) -> Scope:
    return Scope(start=24 * number, end=24 * number + 23, step=1)


PATTERNS: dict[str, tuple[Unit, Callable[[int], Scope]]] = {
    "the same readings each time": (Event(), lambda number: daily(0)),
    "a day each": (Window(24), daily),
    "a day each, limit on whole series": (WholeSeries(10**6), daily),
    "a home each": (Event(), lambda number: Scope(members=(number,), start=0, end=23, step=1)),
}
OVERLAPPING: dict[str, tuple[Unit, Callable[[int], Scope]]] = {
    "everything since the start": (
        Event(),
        lambda number: Scope(start=0, end=24 * number + 23, step=1),
    ),
}


def typical(ledger: Ledger, unit: Unit, scope: Callable[[int], Scope], first: int) -> float:
    """The median milliseconds of a durable charge."""
    ledger._file.execute("PRAGMA synchronous = FULL")
    taken = []
    for number in range(first, first + 50):
        one = scope(number)
        began = time.perf_counter()
        ledger.charge("meters", Guarantee(loss=EACH, unit=unit), one, str(number))
        taken.append(time.perf_counter() - began)
    # what comes between is not measured and need not be durable
    ledger._file.execute("PRAGMA synchronous = OFF")
    return 1000 * statistics.median(taken)


def rows(many: int = MANY) -> list[Row]:
    found, shown = [], 0.0
    for name, (unit, scope) in (PATTERNS | OVERLAPPING).items():
        # what all overlaps is read anew each time, so fewer of it
        held = many if name in PATTERNS else many // 5
        with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder, "ledger")) as book:
            book.create_dataset("meters", unit=unit, epsilon=1e3, delta=1e-6)
            book._file.execute("PRAGMA synchronous = OFF")
            promise = Guarantee(loss=EACH, unit=unit)
            for number in range(FEW):
                book.charge("meters", promise, scope(number), str(number))
            few = typical(book, unit, scope, FEW)
            for number in range(FEW + 50, held):
                book.charge("meters", promise, scope(number), str(number))
            last = typical(book, unit, scope, held)
            began = time.perf_counter()
            book.show("meters")
            shown = max(shown, time.perf_counter() - began)
        found.append(
            Row(
                f"charge after {held:,} others: {name}",
                f"{last:.2f} ms",
                f"after {FEW} others: {few:.2f} ms",
                last / few,
                "at most 1.5 times" if name in PATTERNS else "",
                last <= 1.5 * few if name in PATTERNS else None,
            )
        )
    work = f"total of {many:,} charges, slowest of these"
    found.append(Row(work, f"{1000 * shown:.0f} ms", "", None, "under 1 s", shown < 1))
    return [*found, unlimited(many)]


def unlimited(many: int) -> Row:
    """Where nothing is limited, no sums are kept: the total is made from the charges."""
    with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder, "ledger")) as book:
        book.ensure_dataset("meters")
        book._file.execute("PRAGMA synchronous = OFF")
        for number in range(many):
            promise = Guarantee(loss=EACH, unit=Window(24))
            book.charge("meters", promise, daily(number), str(number))
        began = time.perf_counter()
        book.show("meters")
        seconds = time.perf_counter() - began
    work = f"total of {many:,} charges, a day each, no limit set"
    return Row(work, f"{1000 * seconds:.0f} ms", "", None, "under 1 s", seconds < 1)
