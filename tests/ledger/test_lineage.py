"""The same rows under another name: charged to the same total, explained, and taken back."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv.errors import BudgetError, LedgerError, UsageError
from tempriv.ledger import identity, lineage
from tempriv.ledger.ledger import Ledger
from tempriv.privacy.units import Window
from tests.ledger.test_ledger_sums import as_version_3
from tests.support.ledgers import EVERYONE, HALF, span
from tests.support.lookalikes import disguises, meters, rows_of, sketch, table, unlike, walk

ROWS = meters(1, series=4, length=200)
LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 10))
COLUMNS = {"values": "value", "time": "time", "series": "home", "grid": "index"}


def released(ledger, dataset, rows, **more):
    ledger.ensure_dataset(dataset)
    return tp.release(table(rows), LAPLACE, ledger=ledger, dataset=dataset, **COLUMNS, **more)


def spent(ledger, dataset):
    (total,) = ledger.show(dataset).totals
    return total.spent


@pytest.mark.filterwarnings("ignore:this release")
@pytest.mark.parametrize("name", disguises(ROWS))
def test_every_disguise_counts_for_the_limit_of_the_dataset(ledger, name):
    ledger.create_dataset("meters", epsilon=2.0)
    released(ledger, "meters", ROWS)
    released(ledger, "other", disguises(ROWS)[name])
    assert spent(ledger, "meters") == pytest.approx(2.0)
    # and for the other dataset, what was spent before
    assert spent(ledger, "other") == pytest.approx(2.0)
    with pytest.raises(BudgetError, match="other_data='meters'"):
        released(ledger, "third", disguises(ROWS)[name])
    # the refusal recorded nothing
    assert spent(ledger, "meters") == pytest.approx(2.0)
    assert ledger.show("third").charges == 0


@pytest.mark.filterwarnings("ignore:this release")
@pytest.mark.parametrize("name", ["other ids", "milliseconds", "other ids and milliseconds"])
def test_a_disguise_within_its_own_dataset_adds_up_too(ledger, name):
    """Ids and times alone would say that these are other series, or other times."""
    ledger.create_dataset("meters", epsilon=5.0)
    released(ledger, "meters", ROWS)
    released(ledger, "meters", disguises(ROWS)[name])
    assert spent(ledger, "meters") == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore:this release")
def test_formats_do_not_matter(ledger, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    ledger.create_dataset("meters", epsilon=10.0)
    whole = table(ROWS)
    pyarrow.csv.write_csv(whole, tmp_path / "a.csv")
    pyarrow.parquet.write_table(whole, tmp_path / "b.parquet")
    moments = (whole["time"].to_numpy() * 1_000_000).astype("datetime64[us]")
    datetimes = whole.set_column(1, "time", pa.array(moments))
    frame = whole.to_pandas().rename(columns={"home": "id", "value": "load"})
    tp.release(tmp_path / "a.csv", LAPLACE, ledger=ledger, dataset="meters", **COLUMNS)
    ledger.ensure_dataset("rest")
    for number, (data, columns) in enumerate(
        (
            (tmp_path / "b.parquet", COLUMNS),
            (datetimes, COLUMNS),
            (frame, {**COLUMNS, "series": "id", "values": "load"}),
        )
    ):
        tp.release(data, LAPLACE, ledger=ledger, dataset="rest", **columns)
        assert spent(ledger, "meters") == pytest.approx(2.0 + number)


def test_other_columns_of_the_same_rows_are_a_warning_that_names_the_dataset(ledger):
    released(ledger, "meters", ROWS)
    random = np.random.default_rng(4)
    others = rows_of({f"home{i}": walk(random, 200) for i in range(4)})
    with pytest.warns(UserWarning, match="may be made from the data of dataset 'meters'"):
        release = released(ledger, "others", others)
    assert spent(ledger, "meters") == pytest.approx(1.0)
    (finding,) = ledger.findings(release.about["release"])
    assert (finding.dataset, finding.certain) == ("meters", False)


def test_the_owner_says_that_these_are_other_data_and_it_is_recorded(ledger):
    ledger.create_dataset("meters", epsilon=1.0)
    released(ledger, "meters", ROWS)
    released(ledger, "other", ROWS, other_data=["meters"])
    assert spent(ledger, "meters") == pytest.approx(1.0)
    assert any("told apart" in line for line in ledger.show("meters").records)
    released(ledger, "other", ROWS)  # once is enough
    assert spent(ledger, "meters") == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:this release")
def test_a_false_merge_is_explained_and_undone(ledger):
    ledger.create_dataset("meters", epsilon=3.0)
    released(ledger, "meters", ROWS)
    with pytest.warns(UserWarning, match="tempriv budget forget meters other"):
        released(ledger, "other", ROWS)
    assert ledger.separate("meters", "other", reason="made up alike") == 2
    assert spent(ledger, "meters") == spent(ledger, "other") == pytest.approx(1.0)
    assert any("made up alike" in line for line in ledger.show("meters").records)
    kept = [entry for entry in ledger.log("meters") if entry.state == "forgotten"]
    assert len(kept) == 1 and "made up alike" in kept[0].remark
    released(ledger, "other", ROWS)
    assert spent(ledger, "meters") == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:this release")
def test_a_release_counts_for_every_dataset_that_holds_its_rows(ledger):
    halves = [
        [row for row in ROWS if row[0] in homes]
        for homes in (("home0", "home1"), ("home2", "home3"))
    ]
    for name, rows in zip(("first", "second"), halves, strict=True):
        ledger.create_dataset(name, epsilon=2.0)
        released(ledger, name, rows)
    released(ledger, "all", ROWS)
    assert spent(ledger, "first") == spent(ledger, "second") == pytest.approx(2.0)
    # each of its rows was released twice, none three times
    assert spent(ledger, "all") == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore:this release")
def test_windows_and_later_releases_are_counted_together(ledger):
    ledger.create_dataset("meters", unit=Window(24), epsilon=200.0)
    released(ledger, "meters", ROWS)
    released(ledger, "copy", disguises(ROWS)["other ids and milliseconds"])
    assert spent(ledger, "meters") == pytest.approx(48.0)
    released(ledger, "meters", ROWS)
    assert spent(ledger, "meters") == pytest.approx(72.0)
    # the copy has the rows of the last one as well
    assert spent(ledger, "copy") == pytest.approx(3.0)


def test_merged_datasets_share_their_charges_from_then_on(ledger):
    for name in ("a", "b"):
        ledger.create_dataset(name, epsilon=2.0)
        ledger.charge(name, HALF, span(0, 9, f"{name}-1"), f"before {name}")
    ledger.merge("a", "b", reason="one export each")
    assert spent(ledger, "a") == spent(ledger, "b") == pytest.approx(1.0)
    ledger.charge("b", HALF, span(0, 9, "b-1"), "later")
    assert spent(ledger, "a") == spent(ledger, "b") == pytest.approx(1.5)
    assert "one export each" in ledger.show("a").records[-1]
    ledger.merge("b", "a")  # once more changes nothing
    assert spent(ledger, "a") == pytest.approx(1.5)
    ledger.charge("a", HALF, span(0, 9, "a-1"), "the last")
    with pytest.raises(BudgetError, match="above the limit"):
        ledger.charge("b", HALF, span(0, 9, "b-1"), "too much")


def test_merged_as_spelled_alike_other_series_do_not_add_up(ledger):
    for name in ("a", "b"):
        ledger.create_dataset(name, epsilon=2.0)
        ledger.charge(name, HALF, span(0, 9, f"{name}-1"), f"before {name}")
    ledger.merge("a", "b", spelled_alike=True)
    assert spent(ledger, "a") == pytest.approx(0.5)


def test_a_charge_is_forgotten_only_with_a_reason_and_stays_in_the_log(ledger):
    ledger.create_dataset("meters", epsilon=2.0)
    first = ledger.charge("meters", HALF, EVERYONE, "one")
    ledger.charge("meters", HALF, EVERYONE, "two")
    with pytest.raises(UsageError, match="reason"):
        ledger.forget(first.charge, " ")
    with pytest.raises(LedgerError, match="not in this ledger"):
        ledger.forget(99, "why not")
    assert ledger.forget(first.charge, "never handed out") == "one"
    assert spent(ledger, "meters") == pytest.approx(0.5)
    states = [entry.state for entry in ledger.log("meters")]
    assert states == ["forgotten", "done"]
    assert "never handed out" in ledger.show("meters").records[-1]
    with Ledger.open(ledger.path) as again:
        assert again.show("meters") == ledger.show("meters")


@pytest.mark.filterwarnings("ignore:this release")
def test_a_ledger_without_sketches_gets_them_from_new_charges(ledger):
    ledger.create_dataset("meters", epsilon=9.0)
    released(ledger, "meters", ROWS)
    as_version_3(ledger)
    with Ledger.open(ledger.path) as opened:
        released(opened, "copy", ROWS)
        assert spent(opened, "meters") == pytest.approx(1.0)  # nothing was known of its rows
        released(opened, "meters", ROWS)
        assert spent(opened, "copy") == pytest.approx(2.0)
        assert spent(opened, "meters") == pytest.approx(3.0)


@pytest.mark.filterwarnings("ignore:this release may be")
def test_unlike_tables_do_not_meet_in_one_ledger(ledger):
    names = []
    for number, (_, rows) in enumerate(unlike(13, seed=3)):
        names.append(f"table {number}")
        ledger.ensure_dataset(names[-1])
        wide = tp.Laplace(epsilon=1.0, bounds=(0, 1000))
        tp.release(table(rows), wide, ledger=ledger, dataset=names[-1], **COLUMNS)
    assert [ledger.show(name).charges for name in names] == [1] * len(names)


def test_pseudonyms_and_moved_values_are_known_too(ledger):
    ledger.create_dataset("meters", epsilon=9.0)
    released(ledger, "meters", ROWS, pseudonyms=True)
    with pytest.warns(UserWarning, match="counts for dataset 'meters'"):
        released(ledger, "copy", ROWS, pseudonyms=True)
    assert spent(ledger, "meters") == pytest.approx(2.0)
    ledger.ensure_dataset("moved")
    shuffle = tp.BlockShuffle(epsilon=1.0, block=10)
    whole = {**COLUMNS, "grid": "regular"}
    with pytest.raises(BudgetError, match="'meters'"):  # a limit on readings, and exact values
        tp.release(table(ROWS), shuffle, ledger=ledger, dataset="moved", **whole)


# broken ways of recognizing rows, which the tests above notice


@pytest.mark.filterwarnings("ignore:this release")
def test_ids_that_are_taken_as_written_are_noticed(ledger, monkeypatch):
    """Other ids look like other series, which do not add up."""

    def as_written(fresh, known):
        found = identity.match(fresh, known)
        return found and dataclasses.replace(found, spelled_alike=True)

    monkeypatch.setattr(lineage, "match", as_written)
    ledger.create_dataset("meters", epsilon=5.0)
    released(ledger, "meters", ROWS)
    released(ledger, "other", disguises(ROWS)["other ids"])
    assert spent(ledger, "meters") == pytest.approx(1.0)


def test_matches_without_regard_to_chance_are_noticed(monkeypatch):
    sketches = [sketch(rows) for _, rows in unlike(39, seed=7)]
    pairs = list(combinations(sketches, 2))
    assert not any((m := identity.match(*pair)) and m.certain for pair in pairs)
    monkeypatch.setattr(identity, "chance_of", lambda draws, rate, hits: -99.0 if hits else 0.0)
    assert any((m := identity.match(*pair)) and m.certain for pair in pairs)


# links between datasets, receipts and numbers


def release(ledger, dataset, rows, epsilon):
    ledger.ensure_dataset(dataset)
    made = tp.Laplace(epsilon=epsilon, bounds=(0, 10))
    return tp.release(table(rows), made, ledger=ledger, dataset=dataset, **COLUMNS)


@pytest.mark.filterwarnings("ignore")
def test_what_was_spent_after_two_datasets_met_is_counted_when_they_meet_again(ledger):
    """A link that was made earlier hid all later charges of the other dataset."""
    later = meters(2, series=4, length=200)
    ledger.create_dataset("limited", epsilon=1.3)
    for dataset in ("free", "limited"):
        release(ledger, dataset, ROWS, 0.1)
    for _ in range(3):
        release(ledger, "free", later, 1.0)
    with pytest.raises(BudgetError):
        release(ledger, "limited", later, 0.5)


def test_empty_datasets_that_are_merged_do_not_compare_ids_unless_they_are_alike(ledger):
    for name in ("limited", "other"):
        ledger.create_dataset(name, epsilon=1.0)
    ledger.merge("limited", "other")
    ledger.charge("other", HALF, span(0, 9, "s1"), "first")
    ledger.charge("limited", HALF, span(0, 9, "x1"), "second")
    assert spent(ledger, "limited") == pytest.approx(1.0)


def test_a_chain_of_merged_datasets_is_alike_only_if_all_of_it_is(ledger):
    for name in ("limited", "hub", "third"):
        ledger.create_dataset(name, epsilon=5.0)
    ledger.merge("hub", "limited")
    ledger.merge("hub", "third", spelled_alike=True)
    ledger.charge("third", HALF, span(0, 9, "s1"), "first")
    ledger.charge("limited", HALF, span(0, 9, "x1"), "second")
    assert spent(ledger, "limited") == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore")
def test_a_receipt_is_the_same_whether_or_not_rows_were_recognized(tmp_path):
    receipts = []
    for number, rows in enumerate((ROWS, meters(3, series=4, length=200))):
        with Ledger.create(tmp_path / f"{number}.sqlite") as ledger:
            release(ledger, "before", ROWS, 0.5)
            ledger.create_dataset("limited", epsilon=5.0)
            release(ledger, "limited", rows, 0.5)
            receipt = release(ledger, "limited", rows, 0.5).about["ledger"]
            receipts.append({k: receipt[k] for k in ("charge", "dataset", "totals")})
    assert receipts[0] == receipts[1]


def test_the_number_of_a_forgotten_charge_is_not_given_again(ledger):
    ledger.ensure_dataset("meters")
    for name in ("first", "second", "third"):
        receipt = ledger.charge("meters", HALF, span(0, 9, "a"), name)
        ledger.forget(receipt.charge, "never handed out")
    assert [entry.charge for entry in ledger.log("meters")] == [1, 2, 3]


def test_a_charge_by_its_own_epsilon_and_delta_needs_untouched_readings(ledger):
    approximate = tp.Guarantee(tp.Approximate(0.0, 5e-7), tp.Event())
    calibrated = tp.Gaussian(epsilon=1.0, delta=1e-6, bounds=(0, 5)).guarantee
    ledger.create_dataset("meters", epsilon=1.0, delta=1e-6)
    ledger.charge("meters", approximate, span(0, 9, "a"), "first")
    with pytest.raises(BudgetError):
        ledger.charge("meters", calibrated, span(0, 9, "a"), "second")
    ledger.charge("meters", calibrated, span(0, 9, "b"), "third")
