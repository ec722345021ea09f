"""The ledger: check, record durably, then release."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from tempriv.accounting import renyi
from tempriv.accounting.filters import Total
from tempriv.cli.app import main
from tempriv.errors import BudgetError, LedgerError, UsageError
from tempriv.ledger.ledger import Ledger, OutputRecord, Receipt
from tempriv.ledger.running_totals import exact_and_single
from tempriv.ledger.scope import Scope
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Event, WholeSeries, Window, WithinDistance
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tests.support.ledgers import EVERYONE, HALF, span
from tests.support.paths import ROOT


class TestDatasets:
    def test_an_unknown_one_is_refused_with_the_names_of_the_known(self, ledger):
        with pytest.raises(LedgerError, match=r"'meters'.*known: none so far"):
            ledger.charge("meters", HALF, EVERYONE, "one")
        ledger.ensure_dataset("taxis")
        with pytest.raises(LedgerError, match=r"'meters'.*known: 'taxis'.*budget create"):
            ledger.show("meters")

    def test_a_second_limit_for_the_same_unit_must_replace_the_first(self, ledger):
        ledger.create_dataset("meters", epsilon=1.0)
        ledger.create_dataset("meters", unit=Window(24), epsilon=5.0)
        with pytest.raises(BudgetError, match=r"limit of epsilon = 1.0.*replace"):
            ledger.create_dataset("meters", epsilon=2.0)
        ledger.create_dataset("meters", epsilon=2.0, replace=True)
        limits = [(total.unit, total.limit) for total in ledger.show("meters").totals]
        assert limits == [(Event(), 2.0), (Window(24), 5.0)]

    def test_a_new_limit_counts_the_history_and_reports_if_it_is_above(self, ledger):
        ledger.ensure_dataset("meters")
        ledger.charge("meters", HALF, EVERYONE, "one")
        ledger.charge("meters", HALF, EVERYONE, "two")
        total = ledger.create_dataset("meters", epsilon=0.6)
        assert total.spent == 1.0
        assert total.exceeded
        assert not ledger.create_dataset("meters", epsilon=2.0, replace=True).exceeded

    def test_charges_on_other_data_go_on_below_a_limit_that_some_data_are_above(self, ledger):
        ledger.ensure_dataset("meters")
        nine = Guarantee(loss=Pure(9.0), unit=Event())
        ledger.charge("meters", nine, span(0, 9, "a"), "one")
        ledger.charge("meters", HALF, span(5, 100, "a"), "two")
        ledger.create_dataset("meters", epsilon=1.0)
        with pytest.raises(BudgetError):
            ledger.charge("meters", HALF, span(0, 9, "a", "b"), "three")
        ledger.charge("meters", HALF, span(0, 9, "b"), "three")
        ledger.charge("meters", HALF, span(10, 19, "a"), "four")

    @pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": 1, "delta": 1}])
    def test_an_impossible_limit_is_refused(self, ledger, wrong):
        with pytest.raises(UsageError):
            ledger.create_dataset("meters", **wrong)
        assert ledger.datasets() == ()

    def test_names_must_be_printable(self, ledger):
        for name in ("", "  ", "two\nlines"):
            with pytest.raises(UsageError, match="printable"):
                ledger.ensure_dataset(name)


class TestCharges:
    def test_a_receipt_says_what_each_limit_stood_at_and_survives_json(self, ledger):
        ledger.create_dataset("meters", epsilon=2.0)
        ledger.create_dataset("meters", unit=Window(3), epsilon=2.0, delta=1e-6)
        receipt = ledger.charge("meters", HALF, EVERYONE, "one")
        assert (receipt.charge, receipt.release_id, receipt.dataset) == (1, "one", "meters")
        assert time.strptime(receipt.recorded, "%Y-%m-%dT%H:%M:%SZ")
        assert [total.spent for total in receipt.totals] == [0.5, 1.5]
        assert [total.remaining for total in receipt.totals] == [1.5, 0.5]
        text = json.dumps(serialization.encode(receipt), allow_nan=False)
        kinds = (Receipt, Total, *guarantees.ALL, *units.all_units())
        assert serialization.decode(json.loads(text), kinds) == receipt

    def test_one_above_the_limit_is_refused_in_one_sentence_and_spends_nothing(self, ledger):
        ledger.create_dataset("meters", epsilon=0.8)
        ledger.charge("meters", HALF, EVERYONE, "one")
        with pytest.raises(BudgetError) as refusal:
            ledger.charge("meters", HALF, EVERYONE, "two")
        assert str(refusal.value) == (
            "dataset 'meters': this release costs epsilon = 0.5 and would bring what is spent on "
            "any single reading of a series from epsilon = 0.5 to epsilon = 1, above the limit of "
            "epsilon = 0.8; epsilon = 0.3 remains, so release with less or raise the limit"
        )
        assert ledger.state_of("two") is None
        assert ledger.show("meters").charges == 1

    def test_a_limit_on_whole_series_is_for_series_of_that_length(self, ledger):
        ledger.create_dataset("meters", unit=WholeSeries(10), epsilon=9.0)
        for scope in (Scope(longest=11), Scope(), span(0, 10, "a")):
            with pytest.raises(BudgetError, match="set a limit for series of that length"):
                ledger.charge("meters", HALF, scope, "one")
        ledger.charge("meters", HALF, Scope(longest=10), "two")
        whole = Guarantee(loss=Pure(0.5), unit=WholeSeries(4))
        ledger.charge("meters", whole, Scope(), "three")

    def test_all_limits_must_agree(self, ledger):
        ledger.create_dataset("meters", epsilon=100.0)
        ledger.create_dataset("meters", unit=WholeSeries(10), epsilon=6.0)
        ledger.charge("meters", HALF, EVERYONE, "one")
        with pytest.raises(BudgetError, match="whole series"):
            ledger.charge("meters", HALF, EVERYONE, "two")
        event, _ = ledger.show("meters").totals
        assert event.spent == 0.5

    def test_the_same_release_again_gets_the_same_receipt_and_spends_nothing(self, ledger):
        ledger.create_dataset("meters", epsilon=0.5)
        first = ledger.charge("meters", HALF, span(0, 9, "a", "b"), "one", note="for Ada")
        again = ledger.charge("meters", HALF, span(0, 9, "b", "a", "a"), "one", note="for Ada")
        assert again == first
        assert ledger.show("meters").charges == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"dataset": "taxis"},
            {"guarantee": Guarantee(loss=Pure(0.1), unit=Event())},
            {"scope": span(0, 8)},
            {"note": "another"},
            {"output": OutputRecord("a", "b", "c", "d")},
        ],
    )
    def test_a_release_id_with_other_content_is_refused(self, ledger, other):
        ledger.create_dataset("meters", epsilon=5.0)
        ledger.create_dataset("taxis", epsilon=5.0)
        same = {"dataset": "meters", "guarantee": HALF, "scope": EVERYONE, "release_id": "one"}
        ledger.charge(**same)
        with pytest.raises(LedgerError, match="charged before with other content"):
            ledger.charge(**same | other)

    def test_one_whose_unit_says_nothing_about_the_limit_is_refused(self, ledger):
        ledger.create_dataset("taxis", epsilon=5.0)
        near = Guarantee(loss=Pure(0.1), unit=WithinDistance(100.0))
        with pytest.raises(BudgetError, match="within 100 meters of it says nothing"):
            ledger.charge("taxis", near, EVERYONE, "one")
        ledger.ensure_dataset("places")
        ledger.charge("places", near, EVERYONE, "one")
        assert ledger.create_dataset("places", epsilon=5.0).spent is None

    def test_one_without_guarantee_is_refused_where_there_is_a_limit(self, ledger):
        ledger.create_dataset("meters", epsilon=5.0)
        with pytest.raises(BudgetError, match="guarantees nothing"):
            ledger.charge("meters", NoGuarantee("seeded key"), EVERYONE, "one")

    def test_one_without_guarantee_poisons_the_totals_where_there_is_none(self, ledger):
        ledger.ensure_dataset("meters")
        ledger.charge("meters", HALF, EVERYONE, "one")
        ledger.charge("meters", NoGuarantee("seeded key"), EVERYONE, "two")
        shown = ledger.show("meters")
        assert shown.no_guarantee == "seeded key"
        assert [total.spent for total in shown.totals] == [None]
        assert ledger.create_dataset("meters", epsilon=5.0).exceeded
        with pytest.raises(BudgetError, match="from an unbounded epsilon"):
            ledger.charge("meters", HALF, EVERYONE, "three")

    def test_checking_decides_the_same_and_records_nothing(self, ledger):
        ledger.create_dataset("meters", unit=Window(2), epsilon=1.5)
        (total,) = ledger.check("meters", HALF, EVERYONE)
        assert (total.spent, total.remaining) == (1.0, 0.5)
        assert ledger.charge("meters", HALF, EVERYONE, "one").totals == (total,)
        with pytest.raises(BudgetError):
            ledger.check("meters", HALF, EVERYONE)
        assert len(ledger.log()) == 1

    def test_checking_for_nobody_asks_for_data_never_released(self, ledger):
        ledger.create_dataset("meters", epsilon=0.7)
        ledger.charge("meters", HALF, Scope(), "one")
        nobody = Scope(members=(), start=0, end=0, step=1, clock="index")
        ledger.check("meters", HALF, nobody)
        with pytest.raises(BudgetError):
            ledger.check("meters", Guarantee(loss=Pure(0.8), unit=Event()), nobody)
        with pytest.raises(UsageError, match="None for anyone"):
            ledger.charge("meters", HALF, nobody, "two")

    @pytest.mark.parametrize(
        ("loss", "fits"),
        [
            (Pure(0.2), 5),
            (Approximate(0.1, 1e-7), 5),
            (Concentrated(renyi.rho_budget(1.0, 5e-7)[0] / 7), 7),
        ],
    )
    def test_as_many_are_accepted_as_fit_by_either_method(self, ledger, loss, fits):
        ledger.create_dataset("meters", epsilon=1.0, delta=1e-6)
        promise = Guarantee(loss=loss, unit=Event())
        for number in range(fits):
            ledger.charge("meters", promise, EVERYONE, f"release {number}")
        with pytest.raises(BudgetError):
            ledger.charge("meters", promise, EVERYONE, "one too many")

    def test_gaussian_releases_on_some_series_leave_room_for_others_on_the_rest(self, ledger):
        ledger.create_dataset("meters", epsilon=2.0, delta=1e-5)
        gaussian = Guarantee(loss=Concentrated(0.02), unit=Event())
        approximate = Guarantee(loss=Approximate(1.0, 1e-6), unit=Event())
        ledger.charge("meters", gaussian, span(0, 9, "a"), "one")
        ledger.charge("meters", approximate, span(0, 9, "b"), "two")
        # by sum it has no epsilon, and by zCDP both together are too much
        with pytest.raises(BudgetError, match="above the limit of epsilon = 2 at delta = 1e-05"):
            ledger.charge("meters", gaussian, span(0, 9, "b"), "three")


class TestOutputs:
    def test_a_charge_with_an_output_stays_open_until_it_is_in_place(self, ledger, tmp_path):
        ledger.create_dataset("meters", epsilon=5.0)
        output = OutputRecord(
            str(tmp_path / "out.csv"), str(tmp_path / ".part"), "c0ffee", "request"
        )
        receipt = ledger.charge("meters", HALF, EVERYONE, "one", output=output)
        assert ledger.state_of("one") == "prepared"
        found = ledger.prepared(tmp_path / "out.csv", "request")
        assert found is not None
        assert (found.receipt, found.output) == (receipt, output)
        assert ledger.partials(tmp_path / "out.csv") == [tmp_path / ".part"]
        assert ledger.prepared(tmp_path / "out.csv", "another request") is None
        assert ledger.prepared(tmp_path / "other.csv", "request") is None
        ledger.finish("one")
        ledger.finish("one")
        assert ledger.state_of("one") == "done"
        assert ledger.prepared(tmp_path / "out.csv", "request") is None
        assert ledger.charge("meters", HALF, EVERYONE, "one", output=output) == receipt

    def test_one_without_is_done_at_once(self, ledger):
        ledger.ensure_dataset("meters")
        ledger.charge("meters", HALF, EVERYONE, "one")
        assert ledger.state_of("one") == "done"
        with pytest.raises(LedgerError, match="'two' is not in ledger"):
            ledger.finish("two")


class TestShowing:
    def test_a_limit_shows_both_methods_and_what_remains(self, ledger):
        ledger.create_dataset("meters", epsilon=5.0, delta=1e-6)
        for number in range(100):
            promise = Guarantee(loss=Pure(0.05), unit=Event())
            ledger.charge("meters", promise, EVERYONE, f"release {number}")
        shown = ledger.show("meters")
        (total,) = shown.totals
        assert (shown.limited, shown.charges) == (True, 100)
        assert total.by_sum == pytest.approx(5.0)
        assert total.by_zcdp == total.spent == pytest.approx(2.471, abs=1e-3)
        assert total.remaining is not None
        ledger.check("meters", Guarantee(loss=Pure(total.remaining), unit=Event()), EVERYONE)

    def test_a_dataset_without_limit_shows_a_total_for_each_unit_charged(self, ledger):
        ledger.ensure_dataset("meters")
        ledger.charge("meters", HALF, EVERYONE, "one")
        ledger.charge("meters", Guarantee(loss=Pure(1.0), unit=Window(3)), EVERYONE, "two")
        shown = ledger.show("meters")
        assert [(one.unit, one.spent, one.limit) for one in shown.totals] == [
            (Event(), 1.5, None),
            (Window(3), 2.5, None),
        ]
        assert not shown.limited

    def test_the_log_is_newest_last(self, ledger):
        ledger.ensure_dataset("taxis")
        ledger.ensure_dataset("meters")
        ledger.charge("taxis", HALF, span(0, 9, "a", "b"), "one", note="for Ada")
        ledger.charge("meters", NoGuarantee("seeded key"), Scope(clock="date"), "two")
        first, last = ledger.log()
        assert (first.release_id, first.members, first.start, first.end) == ("one", 2, 0, 9)
        assert (first.guarantee, first.note, first.state) == (HALF, "for Ada", "done")
        assert (last.guarantee, last.members, last.clock) == (
            NoGuarantee("seeded key"),
            None,
            "date",
        )
        assert ledger.log("meters") == (last,)
        assert ledger.datasets() == ("meters", "taxis")


def start(ledger: Ledger, prefix: object, count: int, epsilon: float) -> subprocess.Popen[str]:
    script = ROOT / "tests" / "support" / "charge_process.py"
    command = [sys.executable, str(script), str(ledger.path), str(prefix), str(count), str(epsilon)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def assert_sound(ledger: Ledger, receipts: set[str]) -> None:
    """Nothing is lost, nothing is damaged, and the sums are those of the charges."""
    assert ledger._file.value("PRAGMA integrity_check") == "ok"
    recorded = [entry.release_id for entry in ledger.log()]
    assert len(recorded) == len(set(recorded))
    assert receipts <= set(recorded)
    (running,) = ledger.show("meters").totals
    assert running.limit is not None
    whole = ledger.create_dataset("meters", epsilon=running.limit, replace=True)
    assert running.spent == pytest.approx(whole.spent, rel=1e-9)
    assert whole.spent == pytest.approx(0.1 * len(recorded))


@pytest.mark.parametrize("each", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_eight_processes_at_once_spend_exactly_the_limit(ledger, each):
    fits = 5 * each
    ledger.create_dataset("meters", epsilon=0.1 * fits)
    began = time.monotonic()
    processes = [start(ledger, number, each, 0.1) for number in range(8)]
    lines = [line for one in processes for line in one.communicate(timeout=240)[0].splitlines()]
    assert [one.returncode for one in processes] == [0] * 8
    assert len(lines) == 8 * each
    receipts = [line for line in lines if line != "refused"]
    assert len(receipts) == len(set(receipts)) == fits
    assert ledger.show("meters").totals[0].remaining == pytest.approx(0.0, abs=1e-6)
    assert_sound(ledger, {line.removeprefix("charged ") for line in receipts})
    assert time.monotonic() - began < 100


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_a_charge_whose_receipt_is_out_survives_a_kill_at_any_moment(ledger, kills):
    ledger.create_dataset("meters", epsilon=1e6)
    moments = random.Random("test_a_charge_whose_receipt_is_out_survives_a_kill_at_any_moment")
    receipts: set[str] = set()
    for group in range(0, kills, 5):
        processes = [start(ledger, number, 0, 0.1) for number in range(group, group + 5)]
        for one in processes:
            assert one.stdout is not None
            first = one.stdout.readline()
            time.sleep(moments.uniform(0, 0.02))
            one.kill()
            # the last line may be cut: what was not wholly flushed was not handed out
            whole = (first + one.communicate()[0]).rpartition("\n")[0]
            receipts |= {line.removeprefix("charged ") for line in whole.splitlines()}
    assert len(receipts) >= kills
    assert_sound(ledger, receipts)


@pytest.mark.long
def test_a_million_series_are_charged_in_a_few_seconds(ledger):
    ledger.create_dataset("meters", unit=Window(24), epsilon=1e6)
    began = time.process_time()
    for number in range(3):
        members = np.arange(number * 300_000, number * 300_000 + 1_000_000).astype(str)
        ledger.charge("meters", HALF, Scope(members=members, start=0, end=9, step=1), str(number))
    assert time.process_time() - began < 3 * 4
    assert ledger.show("meters").totals[0].spent == 36.0


def test_one_person_may_be_counted_in_every_room(tmp_path):
    """Counts of unlike series add up for a limit on what one person adds to them."""
    unit = units.Contribution(units.WholeSeries(2))
    promise = Guarantee(Pure(1.0), unit, "central")
    with Ledger.create(tmp_path / "ledger") as ledger:
        ledger.create_dataset("rooms", unit=unit, epsilon=1.0)
        ledger.charge("rooms", promise, span(0, 1, "room A"), "one")
        with pytest.raises(BudgetError, match="would bring"):
            ledger.charge("rooms", promise, span(0, 1, "room B"), "two")


SORTED = Guarantee(loss=Pure(0.5), unit=Swap(10))
GLIMPSED = Guarantee(loss=Pure(0.5), unit=SlotOrigin(10))


class TestExactReadings:
    """Values that are kept and moved in time: see test_scopes_order for what adds up."""

    def refusal(self, ledger: Ledger, promise: Guarantee, scope: Scope) -> str:
        before = ledger.show("meters")
        with pytest.raises(BudgetError) as refused:
            ledger.charge("meters", promise, scope, "refused")
        assert ledger.show("meters") == before
        return str(refused.value)

    def test_another_stretch_of_a_series_is_refused_in_one_sentence(self, ledger):
        ledger.create_dataset("meters", unit=Swap(10), epsilon=5.0)
        ledger.charge("meters", SORTED, EVERYONE, "one")
        assert self.refusal(ledger, SORTED, span(10, 19)) == (
            "dataset 'meters': with this release nothing could be guaranteed about whether any two "
            "readings up to 9 time steps apart traded places: values are kept exact, and this "
            "release and those before it are not known to be of the same readings, so what traded "
            "places with a reading outside one of them shows; release the series in one piece, or "
            "as one stream, with times at a regular step"
        )
        assert "release the series in one piece" in self.refusal(ledger, HALF, span(10, 19))
        # the same readings again are only a matter of the sum
        ledger.charge("meters", SORTED, EVERYONE, "two")
        high = Guarantee(loss=Pure(4.5), unit=Swap(10))
        assert "from epsilon = 1 to epsilon = 5.5" in self.refusal(ledger, high, EVERYONE)

    def test_a_second_release_by_single_rows_is_refused_in_one_sentence(self, ledger):
        ledger.create_dataset("meters", unit=SlotOrigin(10), epsilon=5.0)
        ledger.charge("meters", GLIMPSED, EVERYONE, "one")
        assert self.refusal(ledger, GLIMPSED, EVERYONE) == (
            "dataset 'meters': with this release nothing could be guaranteed about whether the "
            "values in any one output row, seen by themselves, came from one or another of the "
            "last 10 time steps: some of these readings were released before with a guarantee "
            "about single output rows only, and two such outputs side by side can show for certain "
            "where a reading came from; release a series that way once"
        )
        assert "in one piece" in self.refusal(ledger, GLIMPSED, span(10, 19))

    def test_a_limit_on_values_refuses_what_publishes_them(self, ledger):
        ledger.create_dataset("meters", unit=Event(), epsilon=5.0)
        for promise in (SORTED, GLIMPSED, Guarantee(Pure(0.0), BlockSwap(24))):
            assert self.refusal(ledger, promise, EVERYONE) == (
                "dataset 'meters' limits the loss of any single reading of a series, and this "
                "release publishes the readings themselves and hides only when they were taken, "
                "so nothing is guaranteed about them; use a mechanism that changes values, or "
                "limit the order of readings instead"
            )

    def test_a_limit_on_swaps_refuses_what_hides_no_swap(self, ledger):
        ledger.create_dataset("meters", unit=Swap(2), epsilon=5.0)
        for promise in (GLIMPSED, Guarantee(Pure(0.0), BlockSwap(24))):
            assert "says nothing" in self.refusal(ledger, promise, EVERYONE)

    def test_one_stream_is_charged_once_and_goes_with_nothing_else(self, ledger):
        stream = Scope(clock="index")
        ledger.create_dataset("meters", unit=Swap(10), epsilon=5.0)
        receipt = ledger.charge("meters", SORTED, stream, "a stream")
        assert ledger.charge("meters", SORTED, stream, "a stream") == receipt
        for promise, scope in ((SORTED, stream), (SORTED, EVERYONE), (HALF, EVERYONE)):
            assert "as one stream" in self.refusal(ledger, promise, scope)

    def test_data_never_released_can_be_asked_for(self, ledger):
        ledger.create_dataset("meters", unit=Swap(10), epsilon=0.5)
        ledger.charge("meters", SORTED, EVERYONE, "one")
        nobody = Scope(members=(), start=0, end=0, step=1, clock="index")
        ledger.check("meters", SORTED, nobody)
        with pytest.raises(BudgetError, match="above the limit"):
            ledger.check("meters", HALF, nobody)

    def test_a_limit_that_comes_later_says_that_there_is_no_bound(self, ledger):
        ledger.ensure_dataset("meters")
        ledger.charge("meters", SORTED, span(0, 9, "a"), "one")
        ledger.charge("meters", SORTED, span(5, 14, "a"), "two")
        total = ledger.create_dataset("meters", unit=Swap(10), epsilon=5.0)
        assert total.exceeded and total.spent is None and total.remaining == 0
        assert ledger.show("meters").in_advance == (None,)
        assert "in one piece" in self.refusal(ledger, HALF, span(0, 9, "a"))
        # other series go on
        ledger.charge("meters", SORTED, span(0, 9, "b"), "three")

    def test_ledgers_without_such_limits_stay_as_they_were(self, ledger):
        def indexes() -> list[str]:
            query = "SELECT name FROM sqlite_schema WHERE name = 'exact_charges'"
            return [name for (name,) in ledger._file.rows(query)]

        ledger.create_dataset("meters", epsilon=5.0)
        ledger.charge("meters", HALF, EVERYONE, "one")
        ledger.ensure_dataset("others")
        ledger.charge("others", SORTED, EVERYONE, "two")
        assert indexes() == []
        # and one that was filled before counts what is in it
        assert ledger.create_dataset("others", unit=Swap(10), epsilon=5.0).spent == 0.5
        assert indexes() == ["exact_charges"]
        ledger.create_dataset("others", unit=SlotOrigin(10), epsilon=5.0)

    def test_exact_charges_are_known_by_the_text_of_their_promise(self, ledger):
        ledger.ensure_dataset("meters")
        told = 'not {"is":"Swap"}'
        promises = [HALF, SORTED, GLIMPSED, Guarantee(Pure(0.1), BlockSwap(3)), NoGuarantee(told)]
        for number, promise in enumerate(promises):
            ledger.charge("meters", promise, EVERYONE, str(number))
        found = ledger._file.rows(f"SELECT release FROM charges WHERE {exact_and_single()[0]}")
        assert [name for (name,) in found] == ["1", "2", "3"]

    @pytest.mark.parametrize(
        ("unit", "promise", "scope"),
        [
            (Swap(10), HALF, lambda number: EVERYONE),
            (Swap(10), HALF, lambda number: span(24 * number, 24 * number + 23)),
            (Swap(10), SORTED, lambda number: EVERYONE),
            (Swap(10), SORTED, lambda number: span(40 * number, 40 * number + 23)),
            (BlockSwap(24), BlockSwap(24), lambda number: span(24 * number, 24 * number + 23)),
            (SlotOrigin(10), GLIMPSED, lambda number: span(0, 9, f"home {number}")),
        ],
    )
    def test_a_charge_takes_no_more_work_after_many_than_after_few(
        self, ledger, unit, promise, scope
    ):
        """In instructions of SQLite and rows read, as in test_ledger_sums."""
        if isinstance(promise, BlockSwap):
            promise = Guarantee(Pure(0.5), promise)
        ledger._file.execute("PRAGMA synchronous = OFF")
        ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-6)
        work = {}
        for number in range(301):
            counted: list[int] = []
            handler = lambda counted=counted: counted.append(1)  # noqa: E731
            if number in (50, 300):
                ledger._file.connection.set_progress_handler(handler, 1)
            ledger.charge("meters", promise, scope(number), str(number))
            ledger._file.connection.set_progress_handler(None, 1)
            work[number] = len(counted)
        assert 0 < work[300] <= 1.3 * work[50] + 50


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        (["swap", "--window", "10"], Swap(10)),
        (["origin", "--window", "10"], SlotOrigin(10)),
        (["block", "--block", "24"], BlockSwap(24)),
        (["block", "--block", "24", "--offset", "5"], BlockSwap(24, 5)),
        (["swap"], "--unit swap needs --window"),
        (["origin"], "--unit origin needs --window"),
        (["block"], "--unit block needs --block"),
        (["block", "--block", "24", "--window", "3"], "--unit block needs --block, and no"),
        (["swap", "--window", "3", "--block", "3"], "--block goes with --unit block"),
        (["origin", "--window", "3", "--offset", "3"], "--offset goes with --unit block"),
        (["swap", "--window", "3", "--length", "3"], "goes without --length"),
        (["swap", "--window", "3", "--max-series-per-person", "3"], "goes without --length"),
        (["swap", "--window", "1"], "--window 1: must be"),
        (["block", "--block", "3", "--offset", "3"], "--offset 3: must be"),
    ],
)
def test_limits_on_the_order_of_readings_are_set_and_shown(
    tmp_path, monkeypatch, capfd, words, unit
):
    path = tmp_path / "ledger.sqlite"

    def run(*command: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tempriv", "budget", *command, "--ledger", str(path)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capfd.readouterr()

    status, out, err = run("create", "trades", "--epsilon", "2", "--unit", *words)
    if isinstance(unit, str):
        assert status == 2 and unit in err
        return
    assert status == 0
    assert f"epsilon 0 of 2 spent on {unit.sentence}, 2 left" in out
    with Ledger.open(path) as book:
        assert [(total.unit, total.limit) for total in book.show("trades").totals] == [(unit, 2.0)]
    status, out, _ = run("show", "--json")
    assert status == 0 and json.loads(out)[0]["totals"][0]["unit"] == serialization.encode(unit)
