"""Files of a stream that are not as they were, a disk that is full, and what is put aside."""

import contextlib
import json
import os
import random
import resource
import sqlite3
from pathlib import Path

import pytest

from tempriv import TemprivError
from tempriv.errors import StateError
from tempriv.streaming import admin
from tests.support.kept_streams import (
    FILES,
    HEADER,
    LAPLACE,
    Run,
    keep,
    mode,
    places,
    put_back,
    readings,
)

# damage


def into_one_file(folder):
    with contextlib.closing(sqlite3.connect(folder / "state")) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def crashed(folder, series=300):
    """The files of a stream that was killed with its last block in the log of its state.

    That block is of the last series only. Also the files two blocks earlier.
    """
    many = [f"s{i:04d}" for i in range(series)]
    one = Run(folder)
    with one.pipeline.locked():
        one.pipeline.deliver_pending()
        one.pipeline.push_text((HEADER + readings(0, 2, many)).encode())
        into_one_file(folder)
        early = keep(folder)
        one.pipeline.push_text(readings(2, 3, many).encode())
        into_one_file(folder)
        one.pipeline.push_text((readings(3, 4, many[-44:]) + f"{many[-1]},0,1\n").encode())
        files = keep(folder)
    os.close(one.out)
    return many, early, files


def test_a_state_of_two_moments_is_refused(tmp_path):
    """An old state put back under a log that was left of a crash: each part of it is sound."""
    _, early, files = crashed(tmp_path, 3000)  # over several pages
    assert len(files["state-wal"]) > 0
    out = (tmp_path / "out.csv").read_bytes()
    put_back(tmp_path, {**files, "state": early["state"]})
    with pytest.raises(StateError, match="some of it is of another moment"):
        Run(tmp_path).send(readings(9, 10))
    assert (tmp_path / "out.csv").read_bytes() == out


def test_a_shard_of_another_moment_is_refused(tmp_path):
    many = [f"s{i:03d}" for i in range(300)]
    Run(tmp_path).send(readings(0, 2, many))
    with contextlib.closing(sqlite3.connect(tmp_path / "state")) as db:
        old = db.execute("SELECT data FROM shards WHERE number = 0").fetchone()[0]
    Run(tmp_path).send(readings(2, 4, many))
    with contextlib.closing(sqlite3.connect(tmp_path / "state")) as db, db:
        db.execute("UPDATE shards SET data = ? WHERE number = 0", (old,))
    for use in (
        lambda: Run(tmp_path).send(readings(9, 10)),
        lambda: admin.back_up(tmp_path / "state", tmp_path / "copy"),
    ):
        with pytest.raises(StateError, match="some of it is of another moment"):
            use()


def damaged(data, dice):
    """One to four bytes that are other bytes, or an end that is missing."""
    changed = bytearray(data)
    if dice.random() < 0.15:
        return bytes(changed[: dice.randrange(len(changed))])
    for _ in range(dice.randint(1, 4)):
        changed[dice.randrange(len(changed))] ^= dice.randint(1, 255)
    return bytes(changed)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("times", [15, pytest.param(600, marks=pytest.mark.long)])
def test_damage_is_refused_with_a_sentence_or_does_no_harm(tmp_path, name, times):
    """After any change of a file a stream goes on as it would have, or not at all."""
    many, _, files = crashed(tmp_path)
    out = (tmp_path / "out.csv").read_bytes()
    put_back(tmp_path, files)
    Run(tmp_path).send(readings(4, 5, many))
    expected = (tmp_path / "out.csv").read_bytes()
    assert len(places(expected.decode())) == 1 + 300 * 3 + 44 + 300
    dice = random.Random(f"{name} {times}")
    refused = 0
    for _ in range(times):
        put_back(tmp_path, {**files, name: damaged(files[name], dice)})
        (tmp_path / "state-shm").unlink(missing_ok=True)
        (tmp_path / "out.csv").write_bytes(out)
        with contextlib.suppress(TemprivError):
            admin.status(tmp_path / "state")
        try:
            Run(tmp_path).send(readings(4, 5, many))
        except TemprivError as refusal:
            refused += 1
            assert str(tmp_path) in str(refusal) or "damaged" in str(refusal) or name == "state-wal"
            assert expected.startswith((tmp_path / "out.csv").read_bytes())
        else:
            assert (tmp_path / "out.csv").read_bytes() == expected
    assert refused or name in ("state.aside.jsonl", "state.lock")


# the disk


def test_a_full_disk_under_the_output_loses_nothing(run):
    Path("in.csv").write_text(HEADER + readings(0, 50))
    words = [*LAPLACE, "--input", "in.csv", "--state", "s.state"]
    status, _, err = run("stream", *words, "--output", "/dev/full")
    assert (status, "No space left on device" in err) == (1, True)
    assert "may not be out yet" in run("stream", "status", "s.state")[1]
    assert run("stream", *words, "--output", "out.csv")[0] == 0
    assert places(Path("out.csv").read_text()) == places(Path("in.csv").read_text())


@pytest.mark.parametrize("what", ["state", "keys"])
def test_a_full_disk_under_the_state_is_a_sentence_and_loses_nothing(run, what):
    # the output of a large block comes first into the state; keys of many series into their file
    more = {
        "state": (readings(2, 20_000), "s.state: cannot be written"),
        "keys": (readings(2, 3, [f"s{i:04d}" for i in range(2000)]), "File too large"),
    }[what]
    Path("in.csv").write_text(HEADER + readings(0, 2))
    words = [*LAPLACE, "--input", "in.csv", "--state", "s.state", "--output", "out.csv"]
    assert run("stream", *words)[0] == 0
    with Path("in.csv").open("a") as file:
        file.write(more[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        status, _, err = run("stream", *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (status, more[1] in err) == (1, True), err
    assert places(Path("out.csv").read_text()) == places(HEADER + readings(0, 2))
    assert run("stream", *words)[0] == 0
    assert places(Path("out.csv").read_text()) == places(Path("in.csv").read_text())


# put aside


def test_what_is_put_aside_is_private_and_only_that(run, tmp_path):
    lines = [
        "who,t,v",
        "a,1,1.0625",
        "a,2,2.0625",
        "a,1,3.4375",
        "a,2,4.4375",
        "no reading at all",
        "a,x,4.5625",
        "a,3,3.0625",
        "a,4,4.8125",
    ]
    Path("in.csv").write_text("\n".join(lines) + "\n")
    whole = ["--unit", "series", "--length", "3"]
    words = [*LAPLACE, *whole, "--input", "in.csv", "--output", "out.csv", "--state", "s.state"]
    os.umask(old := os.umask(0))
    try:
        os.umask(0)
        status, _, err = run("stream", *words)
    finally:
        os.umask(old)
    assert (status, "what was not released is in s.state.aside.jsonl" in err) == (0, True)
    aside = Path("s.state.aside.jsonl")
    assert mode(aside) == 0o600
    told = [json.loads(line) for line in aside.read_text().splitlines()]
    assert sorted(
        (one["why"].split(" ")[0], one["reading"])
        for one in told
        if isinstance(one["reading"], str)
    ) == [("not", "a,x,4.5625"), ("not", "no reading at all")]
    assert {
        (one["why"], *one["reading"].values()) for one in told if isinstance(one["reading"], dict)
    } == {
        ("not later than all readings of its series", "a", "1", 3.4375),
        ("at a time that its series already has", "a", "2", 4.4375),
        ("past the length that is guaranteed", "a", "4", 4.8125),
    }
    assert places(Path("out.csv").read_text()) == ["who,t", "a,1", "a,2", "a,3"]
    for value in ("1.0625", "2.0625", "3.0625"):
        assert value not in aside.read_text(), "of a reading that was released"
    assert json.loads(run("stream", "status", "s.state", "--json")[1])["counts"] == {
        "released": 3,
        "again": 0,
        "late": 1,
        "repeated": 1,
        "beyond": 1,
        "unpromised": 0,
        "unreadable": 2,
        "waiting": 0,
    }


def test_readings_sent_again_are_not_put_aside_and_a_file_elsewhere_is_as_private(tmp_path):
    Run(tmp_path).send(readings(0, 6))
    pipeline = Run(tmp_path).send(readings(0, 8))
    assert (pipeline.counts.again, pipeline.counts.released, pipeline.counts.put_aside) == (
        12,
        4,
        0,
    )
    assert (tmp_path / "state.aside.jsonl").read_bytes() == b""


def test_what_is_put_aside_is_there_once_after_a_crash(tmp_path):
    first = Run(tmp_path)
    with first.pipeline.locked():
        first.pipeline.deliver_pending()
        first.pipeline.push_text((HEADER + readings(0, 3)).encode())
        first.pipeline.dead_letters.write = lambda data: None  # it goes down before the write
        first.pipeline.push_text(b"a,1,4\n")
    os.close(first.out)
    aside = tmp_path / "state.aside.jsonl"
    aside.write_bytes(b'{"why": "no')  # of which some had got through
    Run(tmp_path).send("a,1,2\n")
    told = [json.loads(line)["reading"] for line in aside.read_text().splitlines()]
    assert [(one["t"], one["v"]) for one in told] == [("1", 4.0), ("1", 2.0)]
