"""The file of a ledger: private, durable, and refused in one sentence when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from tempriv.errors import LedgerError
from tempriv.ledger.database import default_path
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tests.support.ledgers import EVERYONE, HALF


def test_it_is_private_from_the_first_byte_and_so_are_its_side_files(tmp_path):
    before = os.umask(0)
    try:
        with Ledger.create(tmp_path / "new" / "folder" / "ledger.sqlite") as ledger:
            ledger.ensure_dataset("meters")
            files = sorted(ledger.path.parent.iterdir())
            assert [one.suffix for one in files] == [".sqlite", ".sqlite-shm", ".sqlite-wal"]
            for one in (*files, ledger.path.parent):
                assert stat.S_IMODE(one.stat().st_mode) & 0o077 == 0
    finally:
        os.umask(before)


def test_it_survives_closing_and_creating_again_keeps_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.create_dataset("meters", epsilon=1.0)
        ledger.charge("meters", HALF, EVERYONE, "one")
    with Ledger.create(path) as again, Ledger.open(path) as beside:
        assert again.show("meters") == beside.show("meters")
        assert again.show("meters").charges == 1


def test_its_place_follows_the_xdg_rules(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_DATA_HOME", "relative is ignored")
    assert default_path() == Path("/home/ada/.local/share/tempriv/ledger.sqlite")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_path() == Path("/data/tempriv/ledger.sqlite")


def test_every_commit_is_synced(ledger):
    settings = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
    for name, value in settings.items():
        assert ledger._file.value(f"PRAGMA {name}") == value


def test_a_missing_one_is_not_made_by_opening(tmp_path):
    with pytest.raises(LedgerError, match="tempriv budget create"):
        Ledger.open(tmp_path / "ledger.sqlite")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"x", b"name,value\n" * 500, b"\0" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    for way in (Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match="not a tempriv ledger"):
            way(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (address TEXT)")
    other.close()
    content = path.read_bytes()
    for way in (Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match="not a tempriv ledger"):
            way(path)
    assert path.read_bytes() == content


def test_a_ledger_of_a_newer_tempriv_is_refused(ledger):
    ledger._file.execute("PRAGMA user_version = 99")
    with pytest.raises(LedgerError, match=r"newer tempriv.*upgrade"):
        Ledger.open(ledger.path)


def test_a_damaged_ledger_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.create_dataset("meters", epsilon=1.0)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    with pytest.raises(LedgerError, match="damaged"), Ledger.open(path) as ledger:
        ledger.charge("meters", HALF, EVERYONE, "one")


def test_a_ledger_held_by_another_process_is_waited_for_and_then_refused(ledger):
    ledger.ensure_dataset("meters")
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger.open(ledger.path, busy_seconds=0.05) as hasty:
        with pytest.raises(LedgerError, match="another process holds it; try again"):
            hasty.charge("meters", HALF, EVERYONE, "one")
        assert hasty.log() == (), "reading needs no lock"
        holder.execute("ROLLBACK")
        holder.close()
        assert hasty.charge("meters", HALF, EVERYONE, "one").charge == 1


def test_a_full_disk_is_refused_and_records_nothing(ledger):
    ledger.create_dataset("meters", epsilon=1e6)
    ledger._file.execute(f"PRAGMA max_page_count = {ledger._file.value('PRAGMA page_count')}")
    many = Scope(members=tuple(range(10_000)), start=0, end=9, step=1)
    with pytest.raises(LedgerError, match="disk is full, so nothing was recorded"):
        ledger.charge("meters", HALF, many, "one")
    ledger._file.execute("PRAGMA max_page_count = 1000000")
    assert ledger.show("meters").charges == 0
    assert ledger.charge("meters", HALF, many, "one").totals[0].spent == 0.5


def test_a_connection_that_may_not_write_is_refused(ledger):
    ledger.ensure_dataset("meters")
    ledger._file.execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerError, match="read-only"):
        ledger.charge("meters", HALF, EVERYONE, "one")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.ensure_dataset("meters")
    path.chmod(0o400)
    with pytest.raises(LedgerError, match="read-only"), Ledger.open(path) as ledger:
        ledger.charge("meters", HALF, EVERYONE, "one")


def test_a_closed_ledger_says_so(ledger):
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.datasets()


def test_ids_are_kept_as_digests_only(ledger):
    ledger.create_dataset("meters", epsilon=1.0)
    ledger.charge("meters", HALF, Scope(members=("alice-0123456789",)), "one")
    for one in ledger.path.parent.iterdir():
        assert b"alice" not in one.read_bytes()
