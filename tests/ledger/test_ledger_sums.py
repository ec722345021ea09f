"""Running sums: the same as the whole history, found without reading it, also in older files."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tempriv.accounting.composition import optimal
from tempriv.accounting.filters import Total
from tempriv.ledger import running_totals
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.running_totals import SMALL_SET_MEMBERS
from tempriv.ledger.scope import Scope
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Event, Person, Unit, WholeSeries, Window
from tests.support.ledgers import EVERYONE, HALF, span

SMALL_CHARGE = Guarantee(loss=Pure(0.001), unit=Event())


def measures(total: Total) -> list[float]:
    values = (total.by_sum, total.by_zcdp, total.spent, total.remaining)
    return [math.inf if value is None else value for value in values]


def random_scope(generator: np.random.Generator) -> Scope:
    start = int(generator.integers(0, 40))
    names: tuple[str, ...] | None = tuple(
        f"home-{number}" for number in generator.integers(0, 30, generator.integers(1, 4))
    )
    if generator.random() < 0.2:
        names = tuple(
            f"home-{number}" for number in range(SMALL_SET_MEMBERS + int(generator.integers(0, 3)))
        )
    if generator.random() < 0.1:
        names = None
    kind = "person" if generator.random() < 0.15 else "series"
    return Scope(kind, names, start, start + int(generator.integers(0, 9)), 1, longest=9)


@pytest.mark.parametrize("small", [0, 2, SMALL_SET_MEMBERS])
@pytest.mark.parametrize("unit", [Event(), Window(3), WholeSeries(9), Person(2, Event())])
def test_running_sums_are_those_of_the_whole_history(ledger, monkeypatch, small, unit):
    """Sets of up to ``small`` members are found by name; the result must not depend on it."""
    monkeypatch.setattr(running_totals, "SMALL_SET_MEMBERS", small)
    generator = np.random.default_rng(11)
    losses = [Pure(0.01), Pure(0.2), Approximate(0.1, 1e-9), Concentrated(1e-4)]
    ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-3)
    for number in range(60):
        loss = losses[generator.integers(0, len(losses))]
        promise = Guarantee(loss=loss, unit=WholeSeries(9))
        ledger.charge("meters", promise, random_scope(generator), str(number))
    (running,) = ledger.show("meters").totals
    whole = ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-3, replace=True)
    assert measures(running) == pytest.approx(measures(whole), rel=1e-9)


def daily(number: int, *members: str, days: int = 1) -> Scope:
    return span(24 * number, 24 * (number + days) - 1, *members)


PATTERNS: dict[str, tuple[Unit, Callable[[int], Scope]]] = {
    "the same readings again": (Event(), lambda number: EVERYONE),
    "all times, as a stream": (Event(), lambda number: Scope()),
    "a day each": (Event(), daily),
    "a day each, limited by windows": (Window(24), daily),
    "a day each, limited by whole series": (WholeSeries(10**6), daily),
    "the last thirty days": (Event(), lambda number: daily(number, days=30)),
    "a day of the same homes each": (Event(), lambda number: daily(number, "a", "b")),
    "a home each": (Event(), lambda number: span(0, 9, f"home-{number}")),
    "a home each, limited by whole series": (
        WholeSeries(10),
        lambda number: span(0, 9, f"home-{number}"),
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_charge_takes_no_more_work_after_many_than_after_few(ledger, pattern):
    """Counted in instructions of SQLite and rows read; a scan would make them grow six times."""
    unit, scope = PATTERNS[pattern]
    ledger._file.execute("PRAGMA synchronous = OFF")
    ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-6)
    promise = Guarantee(loss=Pure(0.001), unit=unit)
    work = {}
    for number in range(301):
        counted = [0]

        def count(counted: list[int] = counted) -> int:
            counted[0] += 1
            return 0

        if number in (50, 300):
            ledger._file.connection.set_progress_handler(count, 1)
        ledger.charge("meters", promise, scope(number), str(number))
        ledger._file.connection.set_progress_handler(None, 1)
        work[number] = counted[0]
    assert 0 < work[300] <= 1.3 * work[50] + 50


def test_the_work_is_counted(ledger):
    """Ranges that all overlap and all differ have to be read: the count must show it."""
    ledger.create_dataset("meters", epsilon=1e6, delta=1e-6)
    work = []
    for number in range(120):
        counted = [0]
        handler = lambda counted=counted: counted.append(1)  # noqa: E731
        ledger._file.connection.set_progress_handler(handler, 1)
        ledger.charge("meters", SMALL_CHARGE, span(0, number), str(number))
        ledger._file.connection.set_progress_handler(None, 1)
        work.append(len(counted))
    assert work[-1] > 1.5 * work[20]


# files of older versions


def as_version_3(ledger: Ledger) -> None:
    """Take away what version 4 brought: a secret, charges in parts, and what is known of rows."""
    tables = ("also", "merged", "apart", "records", "forgotten", "sketches", "parts", "marks")
    for statement in (
        "DROP INDEX parted_charges",
        "ALTER TABLE charges DROP COLUMN parted",
        "ALTER TABLE scopes DROP COLUMN marks",
        "ALTER TABLE scopes DROP COLUMN inside",
        *(f"DROP TABLE {table}" for table in (*tables, "meta")),
        "PRAGMA user_version = 3",
    ):
        ledger._file.execute(statement)


def as_version_2(ledger: Ledger) -> None:
    """Take away what version 3 brought, too: the extents of scopes."""
    as_version_3(ledger)
    for statement in (
        "DROP INDEX scopes_by_number",
        "DROP INDEX scope_grids",
        "DROP INDEX scopes_until",
        "ALTER TABLE scopes DROP COLUMN until",
        "ALTER TABLE scopes DROP COLUMN grid",
        "PRAGMA user_version = 2",
    ):
        ledger._file.execute(statement)


def as_version_1(ledger: Ledger) -> None:
    """Take away what version 2 brought, too: groups."""
    as_version_2(ledger)
    for statement in (
        "DROP INDEX scopes_in_time",
        "DROP TABLE groups",
        "DROP TABLE small_sets",
        "ALTER TABLE scopes DROP COLUMN first",
        "DELETE FROM sums",
        "PRAGMA user_version = 1",
    ):
        ledger._file.execute(statement)


def filled(ledger: Ledger) -> None:
    ledger.create_dataset("meters", epsilon=50.0, delta=1e-6)
    ledger.create_dataset("meters", unit=WholeSeries(10), epsilon=500.0, delta=1e-6)
    ledger.create_dataset("meters", unit=Window(3), epsilon=500.0, delta=1e-6)
    ledger.ensure_dataset("others")
    for number in range(6):
        ledger.charge("meters", HALF, span(0, 9, "a", f"home-{number}"), f"one {number}")
        ledger.charge("meters", SMALL_CHARGE, span(number, number + 3), f"two {number}")
    ledger.charge("others", NoGuarantee("a test"), EVERYONE, "three")


@pytest.mark.parametrize("as_before", [as_version_1, as_version_2, as_version_3])
def test_an_older_file_is_brought_up_to_date_with_the_same_totals(ledger, as_before):
    filled(ledger)
    before = ledger.show("meters")
    as_before(ledger)
    with Ledger.open(ledger.path) as opened:
        assert opened._file.value("PRAGMA user_version") == 4
        assert len(opened._file.secret) == 32
        after = opened.show("meters")
        for one, other in zip(before.totals, after.totals, strict=True):
            assert measures(one) == pytest.approx(measures(other), rel=1e-12)
        assert opened.show("others").no_guarantee == "a test"
        # new charges meet old ones
        scope = span(5, 5, "home-3")
        expected = [total.spent for total in opened.check("meters", HALF, scope)]
        opened.charge("meters", HALF, scope, "later")
        renewed = [
            opened.create_dataset(
                "meters", unit=total.unit, epsilon=total.limit, delta=1e-6, replace=True
            ).spent
            for total in after.totals
        ]
        assert expected == pytest.approx(renewed, rel=1e-12)


def test_two_processes_may_open_an_older_file_at_once(ledger):
    filled(ledger)
    as_version_1(ledger)
    with Ledger.open(ledger.path) as one, Ledger.open(ledger.path) as other:
        assert one.show("meters") == other.show("meters")


# what it would be, had all of it been fixed in advance


def test_equal_charges_show_what_optimal_composition_says(ledger):
    ledger.create_dataset("meters", epsilon=50.0, delta=1e-6)
    promise = Guarantee(loss=Pure(0.05), unit=Event())
    for number in range(100):
        ledger.charge("meters", promise, span(0, 9, "a"), f"a {number}")
        ledger.charge("meters", promise, span(number, number, "b"), f"b {number}")
    shown = ledger.show("meters")
    # a hundred on any reading of a, one on any of b
    assert shown.in_advance == (optimal(0.05, 0.0, 100, 1e-6).epsilon,)
    assert shown.totals[0].spent is not None
    assert shown.in_advance[0] < shown.totals[0].spent


def test_charges_that_differ_or_have_no_epsilon_show_none(ledger):
    ledger.create_dataset("meters", epsilon=50.0, delta=1e-6)
    ledger.charge("meters", HALF, EVERYONE, "one")
    assert ledger.show("meters").in_advance == (pytest.approx(0.5, abs=1e-4),)
    ledger.charge("meters", SMALL_CHARGE, EVERYONE, "two")
    assert ledger.show("meters").in_advance == (None,)
    ledger.create_dataset("gaussian", epsilon=50.0, delta=1e-6)
    ledger.charge("gaussian", Guarantee(Concentrated(0.1), Event()), EVERYONE, "three")
    ledger.create_dataset("pure", epsilon=50.0)
    ledger.charge("pure", HALF, EVERYONE, "four")
    for name in ("gaussian", "pure"):
        assert ledger.show(name).in_advance == (None,)
