"""Copies of tables with a column of landmarks: whole, private, and honest about how they came."""

from __future__ import annotations

import csv
import json
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.landmarks.annotate import Rule, mark_table
from tempriv.landmarks.provenance import provenance_of, provenance_path
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.releases.run import release

ROWS = [
    ("b", "2026-01-02 00:00:00", "0.50", "no", "7"),
    ("a", "2026-01-01 00:00:00", "3.25", "yes", "7"),
    ("a", "2026-01-01 01:00:00", "", "no", "007"),
    ("b", "2026-01-02 01:00:00", "9", "yes", '5"x, y'),
]
NAMES = ("who", "time", "kwh", "home", "met")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *ROWS])
    return path


def marks_of(path, name="landmark"):
    with path.open(newline="") as file:
        return [int(row[name]) for row in csv.DictReader(file)]


def rows_of(path):
    with path.open(newline="") as file:
        return [tuple(row[name] for name in NAMES) for row in csv.DictReader(file)]


RULES = {
    "column": (Rule(column="home"), [0, 1, 0, 1], ()),
    "below": (Rule(below=1.0, of="kwh"), [1, 0, 0, 0], ("kwh",)),
    "above": (Rule(above=1.0, of="kwh"), [0, 1, 0, 1], ("kwh",)),
    "among": (Rule(among=("7", '5"x, y'), of="met"), [1, 1, 0, 1], ("met",)),
}


@pytest.mark.parametrize("name", RULES)
def test_rows_stay_as_they_are_and_marks_are_right(table, tmp_path, name):
    rule, wanted, looked = RULES[name]
    out = tmp_path / "out.csv"
    done = mark_table(table, out, rule, time="time", series="who")
    assert rows_of(out) == ROWS
    assert marks_of(out) == wanted
    assert (done.rows, done.series, done.landmarks) == (4, 2, sum(wanted))
    assert done.looked_at == looked == provenance_of(out)["landmark"].looked_at
    for path in (out, provenance_path(out)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_times_are_those_of_each_series(table, tmp_path):
    listed = tmp_path / "list.csv"
    listed.write_text("who,time\na,2026-01-01 01:00:00\nb,2026-01-02 00:00:00\n")
    out = tmp_path / "out.csv"
    mark_table(table, out, Rule(times=listed), time="time", series="who")
    assert marks_of(out) == [1, 0, 1, 0]
    for text, said in (
        ("who,time\nc,2026-01-01 01:00:00\n", "are not in the table"),
        ("who,time\na,2026-01-01 02:00:00\n", "is no time of this series"),
    ):
        listed.write_text(text)
        with pytest.raises(DataError, match=said):
            mark_table(table, tmp_path / "no.csv", Rule(times=listed), time="time", series="who")
    assert not (tmp_path / "no.csv").exists()


def test_stays_in_a_parquet_file(tmp_path):
    north = [39.9, 39.9, 39.9, 40.5]
    times = np.array([0, 20, 40, 60], dtype="timedelta64[m]") + np.datetime64("2026-01-01T00:00:00")
    table = pa.table({"t": times[::-1].copy(), "lat": north[::-1], "lon": [116.0] * 4})
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pyarrow.parquet.write_table(table, source)
    mark_table(source, out, Rule(stays=(100, 30), places=("lat", "lon")), time="t")
    found = pyarrow.parquet.read_table(out)
    assert found.column("landmark").to_pylist() == [0, 1, 1, 1]
    assert found.drop_columns("landmark").equals(pyarrow.parquet.read_table(source))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "say in one way"),
        ({"column": "home", "below": 1.0, "of": "kwh"}, "say in one way"),
        ({"below": 1.0}, "below needs of"),
        ({"column": "home", "of": "kwh"}, "goes without of"),
        ({"stays": (1.0, 1.0)}, "latitude and longitude"),
    ],
    ids=["none", "two", "no column", "a column too many", "no places"],
)
def test_rules_that_say_nothing_are_refused(given, said):
    with pytest.raises(TemprivError, match=said):
        Rule(**given)


def test_refusals_quote_nothing_and_leave_nothing(table, tmp_path):
    cases = [
        (Rule(column="kwh"), "out.csv", DataError),
        (Rule(below=1.0, of="met"), "out.csv", DataError),
        (Rule(column="home"), "out.parquet", UsageError),
        (Rule(column="home"), "in.csv", TemprivError),
        (Rule(column="nowhere"), "out.csv", DataError),
    ]
    for rule, name, kind in cases:
        with pytest.raises(kind) as refusal:
            mark_table(table, tmp_path / name, rule, time="time", series="who")
        assert not any(cell in str(refusal.value) for cell in ("3.25", '5"x'))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    with pytest.raises(TemprivError, match="another name with name"):
        mark_table(table, tmp_path / "out.csv", Rule(column="home"), name="kwh")
    with pytest.raises(TemprivError, match="need time"):
        mark_table(table, tmp_path / "out.csv", Rule(times=table))


def test_an_existing_copy_is_replaced_only_if_told_to(table, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(TemprivError, match="force=True"):
        mark_table(table, out, Rule(column="home"))
    assert out.read_text() == "mine"
    mark_table(table, out, Rule(column="home"), force=True)
    assert marks_of(out) == [0, 1, 0, 1]


IDS = ("--time", "time", "--series", "who")
RELEASE = (
    *("--epsilon", "1", "--bounds", "0", "10", "--landmarks", "landmark", "--value", "kwh"),
    *("--time", "time", "--series", "who", "--no-ledger"),
)


def test_a_release_knows_that_its_values_decided(run, table, tmp_path):
    """The column that decided cannot be released with fixed landmarks; others can."""
    words = ("--above", "1", "--of", "kwh", "--time", "time", "--series", "who")
    status, out, _ = run("landmarks", table, "m.csv", *words)
    assert status == 0 and "looking at kwh" in out
    release = ("release", "m.csv", "out.csv", *RELEASE, "--mechanism")
    status, _, err = run(*release, "uniform-landmarks")
    assert status and "looking at the values" in err
    status, _, err = run(*release, "count-bound-landmarks", "--count", "3")
    assert (status, err) == (0, "")
    about = json.loads((tmp_path / "out.csv.release.json").read_text())
    assert about["guarantee"]["unit"] == {"is": "Readings", "count": 4, "metres": None}
    assert about["mechanism"]["chosen_from_values"] and "looked_at" not in about
    # what cannot be read is not taken for an all-clear
    provenance_path(tmp_path / "m.csv").write_text("{")
    status, _, err = run(*release, "uniform-landmarks", "--force")
    assert status and "tempriv landmarks" in err


def test_commands_with_dummies(run, table, tmp_path):
    given = ("landmarks", table, "m.csv", "--column", "home", "--series", "who", "--time", "time")
    _, out, _ = run(*given, "--dummies", "randomized", "--dummy-epsilon", "1", "--recall", "0.9")
    assert "whether any one moment is a landmark: epsilon = 1; about 10 % of landmarks" in out
    _, out, _ = run(*given, "--dummies", "partitioned", "--dummy-epsilon", "0.1", "--force")
    assert "is not hidden" in out
    marks = marks_of(tmp_path / "m.csv")
    assert marks[1] == marks[3] == 1
    for more, said in (
        (("--dummies", "randomized", "--dummy-epsilon", "1"), "--recall"),
        (("--dummies", "partitioned"), "--dummy-epsilon"),
        (("--recall", "0.5"), "goes with --dummies"),
        (("--dummies", "some", "--dummy-epsilon", "1"), "must be randomized"),
    ):
        status, _, err = run(*given, "--force", *more)
        assert status and said in err


def test_marks_of_marks_are_as_they_were_made(run, table, tmp_path):
    """The natural way to add dummies does not wash off who chose."""
    words = ("--time", "time", "--series", "who")
    run("landmarks", table, "m.csv", "--above", "1", "--of", "kwh", *words)
    run("landmarks", "m.csv", "m2.csv", "--column", "landmark", "--mark", "again", *words)
    notes = provenance_of(tmp_path / "m2.csv")
    assert notes["again"].looked_at == notes["landmark"].looked_at == ("kwh",)
    for name in ("again", "landmark"):
        given = [name if word == "landmark" else word for word in RELEASE]
        status, _, err = run(
            "release", "m2.csv", "out.csv", *given, "--mechanism", "split-landmarks"
        )
        assert status and "looking at the values" in err


def test_python_reads_what_is_written_beside_a_table(run, table, tmp_path):
    words = ("--time", "time", "--series", "who")
    run("landmarks", table, "m.csv", "--above", "1", "--of", "kwh", *words)
    scheme = SkipLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 10)))
    out = release(tmp_path / "m.csv", scheme, values=("kwh", "landmark"), time="time", series="who")
    assert out.guarantee.sentence.startswith("Protects nothing")


def test_a_note_belongs_to_one_table(table, tmp_path):
    """A table that was changed, or one whose note is of another, is not released by that note."""
    out = tmp_path / "out.csv"
    mark_table(table, out, Rule(column="home"), time="time", series="who")
    out.write_text(out.read_text().replace("3.25", "3.26"))
    with pytest.raises(DataError, match="does not belong"):
        provenance_of(out)


@pytest.mark.parametrize("force", [False, True], ids=["new", "over another"])
def test_no_marks_are_in_place_without_their_note(table, tmp_path, monkeypatch, force):
    out = tmp_path / "out.csv"
    if force:
        mark_table(table, out, Rule(column="home"), time="time", series="who")
        kept = out.read_bytes()

    def fails(*given):
        raise OSError("the disk is full")

    monkeypatch.setattr("tempriv.landmarks.annotate.write_provenance", fails)
    with pytest.raises(OSError, match="disk"):
        mark_table(table, out, Rule(above=1.0, of="kwh"), time="time", series="who", force=force)
    assert out.read_bytes() == kept if force else not out.exists()
    assert not list(tmp_path.glob(".*partial"))


def test_what_a_killed_run_left_is_removed(table, tmp_path):
    left = tmp_path / ".out.csv.999999999.marking.partial"
    left.write_text("private")
    mark_table(table, tmp_path / "out.csv", Rule(column="home"), time="time", series="who")
    assert not left.exists()


def test_a_release_of_drawn_marks_says_so(run, table, tmp_path):
    words = ("--column", "home", "--time", "time", "--series", "who")
    dummies = ("--dummies", "randomized", "--dummy-epsilon", "1", "--recall", "0.5")
    run("landmarks", table, "m.csv", *words, *dummies)
    run("release", "m.csv", "out.csv", *RELEASE, "--mechanism", "uniform-landmarks")
    about = json.loads((tmp_path / "out.csv.release.json").read_text())
    assert any("about 50 % of those that the owner named" in one for one in about["treatment"])
    # a seed hides nothing
    status, _, err = run("landmarks", table, "n.csv", *words, *dummies, "--key-seed", "3")
    assert status and "--not-private" in err
    _, out, _ = run(
        "landmarks", table, "n.csv", *words, *dummies, "--key-seed", "3", "--not-private"
    )
    assert "is not hidden" in out
    status, _, err = run("landmarks", table, "o.csv", *words, "--key-seed", "3")
    assert status and "--dummies" in err


def test_marks_without_a_note_are_refused_unless_the_owner_vouches_for_them(run, tmp_path, table):
    head, *lines = table.read_text().splitlines()
    plain = [f"{head},landmark", *(f"{line},{i % 2}" for i, line in enumerate(lines))]
    (tmp_path / "p.csv").write_text("\n".join(plain) + "\n")
    words = ("release", "p.csv", "out.csv", *RELEASE, "--mechanism", "skip-landmarks")
    status, _, err = run(*words)
    assert status == 1 and "--landmarks-given" in err and "--landmarks-from-values" in err
    assert not (tmp_path / "out.csv").exists()
    status, _, err = run(*words, "--landmarks-given")
    assert status == 0


def test_a_copy_without_the_note_gets_no_guarantee_for_landmarks_that_values_decided(
    run, tmp_path, table
):
    run("landmarks", table, "m.csv", "--of", "kwh", "--below", "1", *IDS)
    (tmp_path / "lost.csv").write_bytes((tmp_path / "m.csv").read_bytes())
    words = (*RELEASE, "--mechanism", "skip-landmarks")
    assert run("release", "lost.csv", "out.csv", *words)[0] == 1
    assert run("release", "m.csv", "out.csv", *words, "--landmarks-given")[0] != 0


def test_a_marked_copy_is_charged_to_the_dataset_of_its_table(run, tmp_path, table):
    ledger = ("--ledger", tmp_path / "ledger.sqlite")
    run("budget", "create", table.stem, "--epsilon", "1", *ledger)
    run("landmarks", table, "m.csv", "--column", "home", *IDS)
    words = [word for word in RELEASE if word != "--no-ledger"]
    spend = (*words, "--mechanism", "skip-landmarks", *ledger)
    assert run("release", "m.csv", "out.csv", *spend)[0] == 0
    _, shown, _ = run("budget", "show", table.stem, "--json", *ledger)
    assert json.loads(shown)[0]["charges"] == 1
    assert run("release", "m.csv", "again.csv", *spend)[0] == 3
