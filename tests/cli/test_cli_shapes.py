"""``tempriv shapes`` as typed: tables of both forms, files, the ledger, refusals."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tempriv.errors import TemprivError
from tempriv.local.shapes.from_table import from_long, from_wide
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.report.shapes import page

FORMS = ["--symbols", "3", "--longest", "6"]
FREE = ["--no-ledger", *FORMS]
SEED = ["--key-seed", "1", "--not-private", *FREE]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One population in three forms."""
    folder = tmp_path_factory.mktemp("tables")
    rows, long = [], []
    for i in range(240):
        length = 60 if i % 2 else 90
        turned = i % 3 == 0
        wave = np.repeat([2.0, 0.0, 1.0] if turned else [0.0, 2.0, 1.0], length // 3).tolist()
        name = "early" if turned else "late"
        rows.append([f"p{i}", name, *wave, *[""] * (90 - length)])
        long += [[f"p{i}", name, t, value] for t, value in enumerate(wave)]
    order = np.random.default_rng(1).permutation(len(long))
    long = [long[i] for i in order]
    names = ["who", "kind", "hour", "kWh"]
    for file, head, body in (
        ("wide.csv", ["who", "kind", *(f"t{i}" for i in range(90))], rows),
        ("long.csv", names, long),
    ):
        with (folder / file).open("w", newline="") as out:
            csv.writer(out).writerows([head, *body])
    columns = dict(zip(names, map(list, zip(*long, strict=True)), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "long.parquet")
    return folder


@pytest.fixture
def run(run, tables):
    """A command beside these tables."""
    for table in tables.iterdir():
        Path(table.name).symlink_to(table)
    return run


LONG = ["--series", "who", "--time", "hour", "--value", "kWh"]


def test_shapes_with_a_promise_and_a_page(run):
    status, out, err = run(
        "shapes",
        "wide.csv",
        "--epsilon",
        "4",
        "--shapes",
        "2",
        *FORMS,
        "--series",
        "who",
        "--report",
        "shapes.html",
    )
    assert (status, err) == (0, "")
    assert "Shapes of 240 series, each asked one question in one of 2 rounds (one-shot)" in out
    assert "Protects a whole series of up to 1000000 readings: epsilon = 4." in out
    assert "epsilon 4 spent so far" in out and "all series were there" in out
    text = Path("shapes.html").read_text()
    assert "<script" not in text and "http" not in text
    assert (
        "What was asked" in text and "<td>235</td>" in text and "of all that are possible" in text
    )
    assert text.count("<figure>") == 3  # shares, and two shapes


def test_both_forms_are_the_same_people(run):
    found = []
    for words in (["wide.csv", "--series", "who"], ["long.csv", *LONG], ["long.parquet", *LONG]):
        status, out, err = run(
            "shapes", *words, "--epsilon", "8", "--label", "kind", "--json", *FREE
        )
        assert (status, err) == (0, "")
        found.append(json.loads(out))
    for one in found:
        assert one["series"] == 240 and one["settings"]["labels"] == ["early", "late"]
        best = {shape["label"]: shape["shape"] for shape in reversed(one["shapes"])}
        assert best == {"early": "cab", "late": "acb"}
    wide = from_wide(Path("wide.csv"), series="who", label="kind")
    long = from_long(Path("long.csv"), series="who", time="hour", value="kWh", label="kind")
    order = {name: i for i, name in enumerate(long.scope.members)}
    assert wide.labels == [long.labels[order[name]] for name in wide.scope.members]
    for name, one in zip(wide.scope.members, wide.series, strict=True):
        assert np.array_equal(one, long.series[order[name]])


def test_files_and_machines(run):
    status, out, _ = run(
        "shapes",
        "wide.csv",
        "--epsilon",
        "8",
        "--label",
        "kind",
        "--json",
        *FREE,
        "--output",
        "shapes.csv",
        "--plot",
        "shapes.svg",
    )
    assert status == 0
    told = json.loads(out)
    with Path("shapes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["shape"] for row in rows] == [one["shape"] for one in told["shapes"]]
    assert float(rows[0]["count"]) == told["shapes"][0]["count"]
    assert "not surely there" in Path("shapes.svg").read_text() or all(
        one["sure"] for one in told["shapes"]
    )
    assert run("shapes", "wide.csv", "--epsilon", "8", *FREE, "--output", "shapes.csv")[0] == 1
    again = run("shapes", "wide.csv", "--epsilon", "8", *FREE, "--output", "shapes.json", "--force")
    assert again[0] == 0 and json.loads(Path("shapes.json").read_text())["series"] == 240


def test_the_ledger_decides(run):
    create = ["budget", "create", "people", "--epsilon", "5", "--unit", "series"]
    assert run(*create, "--length", "1000000")[0] == 0
    ask = ["shapes", "wide.csv", "--epsilon", "4", "--dataset", "people", "--series", "who", *FORMS]
    status, out, _ = run(*ask)
    assert status == 0 and "epsilon 4 of 5 spent" in out
    status, out, err = run(*ask, "--output", "again.csv")
    assert status == 3 and "above the limit" in err and "cdabc" not in out
    assert not Path("again.csv").exists()
    # nobody said whose rows these are: they may be the same people
    assert run(*ask[:6], *FORMS)[0] == 3


def test_it_is_paid_before_anyone_answers(run, monkeypatch):
    """Whatever happens while they answer, or after: nobody sees an answer that was not paid."""
    ask = ["shapes", "wide.csv", "--epsilon", "4", "--series", "who", *FORMS]

    def stops(*given, **named):
        raise TemprivError("the power failed")

    for what in ("simulate", "describe_outcome"):
        monkeypatch.setattr(f"tempriv.local.shapes.simulate.{what}", stops)
        assert run(*ask)[0] == 1
    (budget,) = json.loads(run("budget", "show", "wide.csv", "--json")[1])
    assert budget["charges"] == 2 and budget["totals"][0]["spent"] == 8.0


def test_what_cannot_be_played_is_not_paid(run):
    for words in (["--readings", "80"], ["--method", "published", "--longest", "20"]):
        lines = Path("wide.csv").read_text().splitlines()
        Path("some.csv").write_text("\n".join(lines[:6]))
        status, _, err = run("shapes", "some.csv", "--epsilon", "4", "--symbols", "2", *words)
        assert status == 1, err
    assert json.loads(run("budget", "show", "some.csv", "--json")[1])[0]["charges"] == 0


def test_the_declared_readings_are_what_is_promised(run):
    status, out, _ = run("shapes", "wide.csv", "--epsilon", "4", "--readings", "90", *FREE)
    assert status == 0 and "Protects a whole series of up to 90 readings: epsilon = 4." in out


def test_people_who_run_out_are_not_told_apart(run):
    """Few series with many symbols: the campaign ends, whatever they would have answered."""
    for name, wave in (("flat", [1] * 200), ("zigzag", [i // 10 % 2 for i in range(200)])):
        head = ",".join(f"t{i}" for i in range(200))
        rows = "\n".join([head, *[",".join(map(str, wave))] * 10])
        Path(f"{name}.csv").write_text(rows)
        for _ in range(5):
            status, out, err = run("shapes", f"{name}.csv", "--epsilon", "4", "--no-ledger")
            assert (status, err) == (0, ""), err
            assert "share " in out


def test_nothing_is_said_of_sureness_where_nothing_can_be(run):
    words = [
        "shapes",
        "wide.csv",
        "--epsilon",
        "8",
        *SEED,
        "--report",
        "page.html",
        "--force",
        "--plot",
        "page.svg",
    ]
    for method in ("nearest", "published"):
        status, out, _ = run(*words, "--method", method)
        assert status == 0 and "surely" not in out
        assert re.search(r"nearest to about \d+ people of 48", out)
        assert "surely" not in Path("page.html").read_text().lower()
        assert "surely" not in Path("page.svg").read_text()
    status, out, _ = run(*words, "--method", "one-shot")
    assert status == 0 and "surely there" in out and "nearest to about" not in out


def test_other_people_are_charged_apart(run):
    assert (
        run(
            "budget",
            "create",
            "people",
            "--epsilon",
            "5",
            "--unit",
            "series",
            "--length",
            "1000000",
        )[0]
        == 0
    )
    lines = Path("wide.csv").read_text().splitlines()
    Path("first.csv").write_text("\n".join(lines[:121]))
    Path("rest.csv").write_text("\n".join([lines[0], *lines[121:]]))
    for file in ("first.csv", "rest.csv"):
        ask = ["shapes", file, "--epsilon", "4", "--dataset", "people", "--series", "who"]
        assert run(*ask, *FORMS)[0] == 0


def test_a_seed_protects_nothing_and_says_so(run):
    found = [run("shapes", "wide.csv", "--epsilon", "4", "--json", *SEED) for _ in range(2)]
    told = [json.loads(out) for _, out, _ in found]
    assert told[0]["shapes"] == told[1]["shapes"]
    assert isinstance(guarantees.decode(told[0]["guarantee"]), NoGuarantee)
    assert "No privacy guarantee" in page(told[0]) and "The guarantee" not in page(told[0])
    status, _, err = run("shapes", "wide.csv", "--epsilon", "4", "--key-seed", "1")
    assert status == 2 and "--not-private" in err


@pytest.mark.parametrize("method", ["baseline", "published", "nearest", "one-shot"])
def test_a_page_for_every_method(run, method):
    status, out, err = run(
        "shapes",
        "wide.csv",
        "--epsilon",
        "4",
        "--method",
        method,
        *SEED,
        "--report",
        "page.html",
        "--json",
    )
    assert (status, err) == (0, "")
    text = Path("page.html").read_text()
    asked = json.loads(out)["rounds"]
    # equal questions share a row, and every round is in one
    rows = re.findall(r'normal">(\d+)(?: to (\d+))?\. (?:How|Which)', text)
    numbers = [n for first, last in rows for n in range(int(first), int(last or first) + 1)]
    assert f"{method}: " in text and numbers == list(range(1, len(asked) + 1))


def test_labels_may_be_declared(run):
    words = ["shapes", "wide.csv", "--epsilon", "8", "--label", "kind", *SEED]
    assert "taken from the table" in run(*words)[1]
    status, out, _ = run(*words, "--labels", "early,late,never")
    assert status == 0 and "taken from the table" not in out
    status, _, err = run(*words, "--labels", "early,never")
    assert status == 1 and "160 series have none of the declared" in err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["none.csv"], 1, "no such file"),
        (["long.csv"], 1, "no column is called t0"),
        (["wide.csv", "--prefix", "x"], 1, "no column is called x0"),
        (["wide.csv", "--time", "t0"], 2, "--time: goes with --value"),
        (["long.csv", "--value", "kWh"], 2, "needs --series"),
        (["long.csv", *LONG, "--prefix", "t"], 2, "--prefix: is for a row for each person"),
        (["long.csv", "--series", "kind", *LONG[2:]], 1, "several readings at one time"),
        (["wide.csv", "--readings", "89"], 1, "--readings 89: a series has 90 readings"),
        (["wide.csv", "--readings", "0"], 2, "--readings 0: "),
        (["wide.csv", "--label", "kind", "--labels", "[1]"], 2, "--labels [1]: must be names"),
        (["wide.csv", "--label", "kind", "--labels", "a," + 201 * "b"], 2, "201 characters"),
        (["few.csv", "--method", "nearest"], 1, "too few for method nearest"),
        (["few.csv", "--method", "one-shot"], 1, "too few for method one-shot"),
        (["long.csv", "--series", "who", "--time", "hour", "--value", "kind"], 1, "not numbers"),
        (["many.csv", "--label", "who"], 1, "300 entries"),
        (["wide.csv", "--labels", "a,b"], 2, "goes with --label"),
        (["wide.csv", "--series", "kind"], 1, "stands in several rows"),
        (["wide.csv", "--method", "best"], 2, "--method best: "),
        (["wide.csv", "--symbols", "1"], 2, "--symbols 1: "),
        (["wide.csv", "--shapes", "0"], 2, "--shapes 0: "),
        (["wide.csv", "--report", "page.txt"], 2, "ends in .html"),
        (["wide.csv", "--output", "page.txt"], 2, "must end in .csv or .json"),
        (["gap.csv"], 1, "before the end of its row"),
        (["empty.csv"], 1, "no rows"),
    ],
    ids=lambda given: None,
)
def test_refusals_in_one_sentence(run, words, status, said):
    Path("gap.csv").write_text("t0,t1,t2\n1,,2\n1,2,3\n")
    Path("empty.csv").write_text("t0,t1,t2\n")
    Path("few.csv").write_text("t0,t1,t2\n1,2,3\n")
    Path("many.csv").write_text("who,t0,t1\n" + "".join(f"p{i},{i},1\n" for i in range(300)))
    ended, out, err = run("shapes", *words, "--epsilon", "4", "--no-ledger")
    assert (ended, out) == (status, "") and said in err, err
    assert err.count("\n") == 1 and err.startswith("tempriv: ")
    # it names no option that this command has not, and does not recommend what was tried
    offered = set(re.findall(r"--[a-z-]+", run("shapes", "--help")[1]))
    assert set(re.findall(r"--[a-z-]+", err)) <= offered
    assert f"take method {words[-1]}" not in err


def test_help_has_an_example(run):
    status, out, _ = run("shapes", "--help")
    assert status == 0 and "--report shapes.html" in out
    # a row for each person is what a table has by default: there is nothing to choose
    assert "--wide" not in out and "--readings" in out
    assert run("shapes", "wide.csv", "--epsilon", "4", "--wide", *FREE)[0] == 2
