"""The commands as typed: what they write, what they say, and how they end."""

import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet
import pytest

from tempriv import read as read_release
from tempriv.datasets import METERS
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms import registry
from tempriv.releases.description import METADATA_KEY, sidecar_path

LAPLACE = ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5"]
METER = ["--time", "time", "--value", "energy_kWh", "--series", "home"]
UNTIDY = """date,hour,kwh
2026-01-01,1,0.5
2026-01-01,2,0.75
2026-01-01,2,0.25
2026-01-01,3,7.0
2026-01-01,5,1.0
"""


def test_a_release_writes_the_table_its_promise_and_a_report(run, tmp_path):
    status, out, err = run("release", METERS, "out.csv", *LAPLACE, *METER, "--report", "out.html")
    assert (status, err) == (0, "")
    assert "Protects any single reading of a series: epsilon = 1" in out
    before, after = pl.read_csv(METERS), pl.read_csv("out.csv")
    assert after.columns == before.columns
    assert after.select("home", "time").rows() == sorted(before.select("home", "time").rows())
    about = json.loads(Path("out.csv.release.json").read_text())
    assert about["rows"] == 4032
    assert about["ledger"]["dataset"] == METERS.name
    assert "<html" in Path("out.html").read_text()
    assert run("verify", "out.csv")[0] == 0


def test_the_public_files_follow_the_umask_and_private_ones_do_not(run, tmp_path):
    run("release", METERS, "out.csv", *LAPLACE, *METER, "--private-report", "mine.html")
    mode = {name: stat.S_IMODE(Path(name).stat().st_mode) for name in ("out.csv", "mine.html")}
    mask = os.umask(0)
    os.umask(mask)
    assert mode == {"out.csv": 0o666 & ~mask, "mine.html": 0o600}
    ledger = tmp_path / "home" / "tempriv" / "ledger.sqlite"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_an_untidy_table_is_refused_with_every_remedy_and_then_released(run):
    Path("u.csv").write_text(UNTIDY)
    options = [*LAPLACE, "--time", "date+hour", "--value", "kwh"]
    status, _, err = run("release", "u.csv", "out.csv", *options)
    assert status == 1
    for sentence in (
        "1 reading stands",
        "--duplicates first",
        "1 gap",
        "--gaps null",
        "1 value outside the bounds",
        "--clip",
    ):
        assert sentence in err
    assert sorted(p.name for p in Path().iterdir() if p.name != "home") == ["u.csv"]
    remedies = ["--clip", "--gaps", "null", "--duplicates", "first"]
    assert run("release", "u.csv", "out.csv", *options, *remedies)[0] == 0
    lines = Path("out.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == [
        "date,hour",
        "2026-01-01,1",
        "2026-01-01,2",
        "2026-01-01,3",
        "2026-01-01,4",
        "2026-01-01,5",
    ]
    assert lines[4] == "2026-01-01,4,"


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["--mechanism", "magic", "--epsilon", "1"], 2, "--mechanism magic: must be one of"),
        (["--mechanism", "laplace", "--epsilon", "1"], 2, "--mechanism laplace needs --bounds"),
        (["--mechanism", "laplace", "--bounds", "0", "5"], 2, "give one of --epsilon"),
        ([*LAPLACE, "--target-error", "1"], 2, "give one of --epsilon, --target-error"),
        (["--mechanism", "laplace", "--epsilon", "-1", "--bounds", "0", "5"], 2, "--epsilon -1: m"),
        (["--mechanism", "laplace", "--epsilon", "nan", "--bounds", "0", "5"], 2, "must be > 0"),
        (["--mechanism", "laplace", "--epsilon", "1", "--bounds", "5", "0"], 2, "the lower first"),
        ([*LAPLACE, "--unit", "window"], 2, "--unit window needs --window"),
        ([*LAPLACE, "--unit", "window", "--window", "0"], 2, "--window 0: must be"),
        ([*LAPLACE, "--unit", "series"], 2, "--unit series needs --length"),
        ([*LAPLACE, "--unit", "day"], 2, "--unit day: must be event, window or series"),
        ([*LAPLACE, "--window", "3"], 2, "--window 3: goes with --unit window only"),
        ([*LAPLACE, "--categories", "a,b"], 2, "--categories: not for --mechanism laplace"),
        ([*LAPLACE, "--resolution", "0.3"], 2, "--resolution 0.3: must be a power of two"),
        ([*LAPLACE, "--key-seed", "1"], 2, "--not-private"),
        ([*LAPLACE, "--not-private"], 2, "goes with --key-seed"),
        ([*LAPLACE, "--person", "home"], 2, "give both person and max_series_per_person"),
        ([*LAPLACE, "--gaps", "maybe"], 2, "--gaps maybe: must be one of refuse, null"),
        ([*LAPLACE, "--dataset", "unknown"], 1, "unknown"),
        ([*LAPLACE, "--ledger", "none.sqlite"], 1, "tempriv budget create"),
        (["--mechanism", "gaussian", "--epsilon", "1", "--bounds", "0", "5"], 2, "needs --delta"),
        (
            [
                "--mechanism",
                "planar-laplace",
                "--epsilon",
                "1",
                "--meters",
                "9",
                "--origin",
                "0",
                "0",
            ],
            2,
            "takes two value columns",
        ),
    ],
)
def test_options_that_cannot_be_meant_end_with_a_sentence(run, words, status, sentence):
    ended, _, err = run("release", METERS, "out.csv", *words, *METER)
    assert (ended, sentence in err) == (status, True), err
    assert not Path("out.csv").exists()


def test_a_missing_column_or_file_names_what_exists(run):
    options = [*LAPLACE, "--time", "time", "--value", "power"]
    status, _, err = run("release", METERS, "out.csv", *options)
    assert (status, "no column 'power'; the columns are home, time, energy_kWh" in err) == (1, True)
    assert run("release", "nothing.csv", "out.csv", *LAPLACE, *METER)[2].endswith("no such file\n")
    assert run("release", METERS, "out.txt", *LAPLACE, *METER)[0] == 2
    assert "no such directory" in run("release", METERS, "no/out.csv", *LAPLACE, *METER)[2]


def test_an_output_that_exists_is_replaced_only_by_force(run):
    assert run("release", METERS, "out.csv", *LAPLACE, *METER)[0] == 0
    first = Path("out.csv").read_bytes()
    status, _, err = run("release", METERS, "out.csv", *LAPLACE, *METER)
    assert (status, "--force" in err) == (1, True)
    assert Path("out.csv").read_bytes() == first
    assert run("release", METERS, "out.csv", *LAPLACE, *METER, "--force")[0] == 0
    assert Path("out.csv").read_bytes() != first


def test_yes_and_no_are_categories_as_they_stand(run):
    Path("yn.csv").write_text("p,t,s\na,0,yes\na,1,no\nb,0,no\nb,1,\n")
    status, _, err = run(
        "release",
        "yn.csv",
        "out.csv",
        "--mechanism",
        "randomized-response",
        "--epsilon",
        "50",
        "--accept-weak",
        "--categories",
        "no,yes",
        "--value",
        "s",
        "--time",
        "t",
        "--series",
        "p",
        "--no-ledger",
    )
    assert (status, err) == (0, "")
    assert Path("out.csv").read_text() == "p,t,s\na,0,yes\na,1,no\nb,0,no\nb,1,\n"
    assert run("verify", "out.csv")[0] == 0


def test_a_budget_is_kept_and_then_refused_with_status_3(run):
    assert run("budget", "create", "meters", "--epsilon", "1.5")[0] == 0
    charged = [*LAPLACE, *METER, "--dataset", "meters"]
    assert run("release", METERS, "one.csv", *charged)[0] == 0
    status, _, err = run("release", METERS, "two.csv", *charged)
    assert (status, "above the limit" in err) == (3, True)
    assert not Path("two.csv").exists()
    status, out, _ = run("budget", "show", "meters", "--json")
    (budget,) = json.loads(out)
    assert budget["totals"][0]["spent"] == 1.0
    assert len(json.loads(run("budget", "log", "--json")[1])) == 1
    assert "meters" in run("budget", "show")[1]
    assert "one.csv" in run("budget", "log")[1]


def test_a_seeded_release_promises_nothing_and_says_so(run):
    seeded = [*LAPLACE, *METER, "--key-seed", "7", "--not-private", "--no-ledger"]
    assert run("release", METERS, "a.csv", *seeded)[0] == 0
    assert run("release", METERS, "b.csv", *seeded)[0] == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    status, out, _ = run("verify", "a.csv")
    assert status == 1
    assert "anyone can take it off again" in out
    run("budget", "create", "meters", "--epsilon", "9")
    seeded = [*seeded[:-1], "--dataset", "meters"]
    assert run("release", METERS, "c.csv", *seeded)[0] == 3


def test_a_dry_run_says_when_other_noise_would_be_less(run):
    Path("h.csv").write_text("time,kwh\n")
    table = ["--time", "time", "--value", "kwh", "--bounds", "0 5", "--dry-run"]
    gaussian = ["--mechanism", "gaussian", "--epsilon", "1", "--delta", "1e-6"]
    status, out, _ = run("release", "h.csv", "out.csv", *gaussian, *table)
    assert status == 0
    assert "less      --mechanism laplace --epsilon 1 keeps the same with an error of 5\n" in out
    status, out, _ = run("release", "h.csv", "out.csv", *gaussian, *table, "--json")
    assert json.loads(out)["less_noisy"]["mechanism"]["is"] == "Laplace"
    # over a window of 24 it is the other way round
    window = ["--unit", "window", "--window", "24"]
    assert "less " not in run("release", "h.csv", "out.csv", *gaussian, *table, *window)[1]
    rho = ["--mechanism", "gaussian", "--rho", "0.5"]
    assert "less " not in run("release", "h.csv", "out.csv", *rho, *table)[1]
    assert "less " not in run("release", "h.csv", "out.csv", *LAPLACE, *table[:4], "--dry-run")[1]


def test_a_dry_run_costs_nothing_and_reads_the_header_alone(run):
    Path("h.csv").write_text("time,kwh\nthis is no reading at all\n")
    options = ["--time", "time", "--value", "kwh", "--dry-run"]
    status, out, _ = run("release", "h.csv", "out.csv", *LAPLACE, *options)
    assert status == 0
    assert "epsilon = 1" in out
    assert "kwh: 5 (mean absolute error)" in out
    status, out, _ = run(
        "release",
        "h.csv",
        "out.csv",
        "--mechanism",
        "laplace",
        "--target-error",
        "0.5",
        "--bounds",
        "0",
        "5",
        *options,
        "--json",
    )
    assert json.loads(out)["mechanism"]["epsilon"] == pytest.approx(10, rel=1e-3)
    assert not Path("out.csv").exists()


def test_a_changed_file_or_promise_does_not_verify(run):
    run("release", METERS, "out.parquet", *LAPLACE, *METER, "--no-ledger")
    assert run("verify", "out.parquet")[0] == 0
    inside = pyarrow.parquet.read_schema("out.parquet").metadata[METADATA_KEY]
    assert json.loads(inside)["sentence"].startswith("Protects")
    beside = sidecar_path(Path("out.parquet"))
    about = json.loads(beside.read_text())
    about["guarantee"]["loss"]["epsilon"] = 0.1
    beside.write_text(json.dumps(about))
    status, out, _ = run("verify", "out.parquet")
    assert (status, "WRONG       the guarantee follows from the mechanism" in out) == (1, True)
    run("release", METERS, "out.csv", *LAPLACE, *METER, "--no-ledger")
    Path("out.csv").write_text(Path("out.csv").read_text().replace("home-1", "home-9", 1))
    assert "WRONG       the file has the checksum of its description" in run("verify", "out.csv")[1]
    beside = sidecar_path(Path("out.csv"))
    beside.write_text("{}")
    assert "not the description of a release" in run("verify", "out.csv")[2]


def test_categories_places_windows_persons_and_pseudonyms(run):
    rows = [
        (f"{w}{i}", w, t, "in" if t % 2 else "out", 39.9, 116.4)
        for w in "ab"
        for i in (1, 2)
        for t in range(4)
    ]
    pl.DataFrame(rows, schema=["id", "who", "t", "room", "lat", "lon"], orient="row").write_csv(
        "t.csv"
    )
    base = ["--time", "t", "--series", "id", "--no-ledger"]
    assert (
        run(
            "release",
            "t.csv",
            "rr.csv",
            "--mechanism",
            "randomized-response",
            "--epsilon",
            "1",
            "--categories",
            "in,out",
            "--value",
            "room",
            *base,
        )[0]
        == 0
    )
    assert set(pl.read_csv("rr.csv")["room"]) <= {"in", "out"}
    assert (
        run(
            "release",
            "t.csv",
            "pl.csv",
            "--mechanism",
            "planar-laplace",
            "--epsilon",
            "1",
            "--meters",
            "100",
            "--origin",
            "39.9",
            "116.4",
            "--value",
            "lat",
            "--value",
            "lon",
            *base,
        )[0]
        == 0
    )
    assert (
        run(
            "release",
            "t.csv",
            "p.csv",
            "--mechanism",
            "laplace",
            "--epsilon",
            "1",
            "--bounds",
            "0",
            "90",
            "--value",
            "lat",
            "--unit",
            "window",
            "--window",
            "2",
            "--person",
            "who",
            "--max-series-per-person",
            "2",
            "--pseudonyms",
            *base,
        )[0]
        == 0
    )
    about = json.loads(Path("p.csv.release.json").read_text())
    assert about["guarantee"]["unit"] == {
        "is": "Person",
        "max_series": 2,
        "each": {"is": "Window", "length": 2},
    }
    assert not set(pl.read_csv("p.csv")["id"]) & {"a1", "a2", "b1", "b2"}
    for name in ("rr.csv", "pl.csv", "p.csv"):
        assert run("verify", name)[0] == 0


def test_several_columns_share_the_budget_or_each_have_it(run):
    pl.DataFrame({"t": [0, 1], "x": [1.0, 2.0], "y": [10.0, 20.0]}).write_csv("xy.csv")
    base = ["--time", "t", "--value", "x", "--value", "y", "--no-ledger"]
    both = ["--bounds", "0", "5", "--bounds", "0", "50"]
    words = ["--mechanism", "laplace", "--epsilon", "1", *both, *base]
    out = json.loads(run("release", "xy.csv", "s.csv", *words, "--json")[1])
    assert out["guarantee"]["loss"]["epsilon"] == 1.0
    assert [e["error"] for e in out["expected_error"]] == pytest.approx([10, 100], rel=1e-5)
    out = json.loads(run("release", "xy.csv", "p.csv", *words, "--per-column", "--json")[1])
    assert out["guarantee"]["loss"]["epsilon"] == 2.0
    assert [e["error"] for e in out["expected_error"]] == pytest.approx([5, 50], rel=1e-5)


def test_a_full_disk_leaves_nothing_behind(run, monkeypatch):
    from tempriv.releases import to_file

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(to_file._HashedFile, "write", full)
    status, _, err = run("release", METERS, "out.csv", *LAPLACE, *METER)
    assert (status, "No space left on device; nothing was left half-written" in err) == (1, True)
    assert [p.name for p in Path().iterdir() if "out" in p.name] == []
    with Ledger.open(Path("home/tempriv/ledger.sqlite")) as ledger:
        assert ledger.log() == ()


def test_an_interrupted_release_leaves_nothing_behind(run, monkeypatch):
    from tempriv.releases import run as running

    def interrupt(*_, **__):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(running, "perturb_block", interrupt)
    status, _, err = run("release", METERS, "out.csv", *LAPLACE, *METER)
    assert (status, "interrupted" in err) == (1, True)
    assert [p.name for p in Path().iterdir() if "out" in p.name] == []


def test_a_surprise_shows_its_kind_and_never_its_content(run, monkeypatch):
    from tempriv.releases import run as running

    def surprise(*_, **__):
        raise RuntimeError("reading 42.17 of home-1")

    monkeypatch.setattr(running, "perturb_block", surprise)
    status, out, err = run("release", METERS, "out.csv", *LAPLACE, *METER)
    assert (status, "RuntimeError" in err, "42.17" in out + err) == (1, True, False)


def test_the_demo_ends_with_reports(run):
    status, out, _ = run("demo")
    assert status == 0
    assert "tempriv-demo/report.html" in out
    assert Path("tempriv-demo/report.html").exists()
    assert run("verify", "tempriv-demo/visits_private.csv")[0] == 0
    page = Path("tempriv-demo/reading_noise.html")
    assert "Contains private data" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    # little of the noise is left in an average over all homes; one home, and whole ones, are lost
    said = out.replace("\N{NO-BREAK SPACE}", " ").replace(",", "")
    off = [float(share) for share in re.findall(r"hour is off by ([\d.]+) %", said)]
    assert len(off) == 4 and 5 < off[1] < 30 and off[2] > 100 and off[3] > 2000
    # statistics of all homes, each protected whole, are better than noise on single readings
    assert off[0] < 15 and "Statistics of 600 homes" in page.read_text()
    assert run("verify", "tempriv-demo/homes_summary.csv")[0] == 0
    assert run("demo")[0] == 0, "and can be run again"


def test_the_demo_needs_no_command_that_was_loaded_before(tmp_path):
    command = [sys.executable, "-m", "tempriv", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tempriv-demo" / "report.html").exists()


def test_mechanisms_are_listed_and_shown_with_both_claims(run):
    listed = run("mechanisms")[1]
    assert "Hide values" in listed and "laplace                numbers" in listed
    out = run("mechanisms", "planar-laplace")[1]
    assert "guarantee" in out
    assert "published" in out
    assert set(json.loads(run("mechanisms", "--json")[1])) == set(registry.names())
    assert run("mechanisms", "magic")[0] == 2


@pytest.mark.parametrize(
    "command", ["release", "count", "stream", "verify", "mechanisms", "demo", "datasets", "budget"]
)
def test_every_command_has_help(run, command):
    status, out, _ = run(command, "--help")
    assert (status, "Usage" in out) == (0, True)


def test_a_release_reads_back_as_it_was(run):
    run("release", METERS, "out.parquet", *LAPLACE, *METER)
    release = read_release("out.parquet")
    assert release.guarantee.loss.epsilon == 1
    assert release.values.shape == (4032,)
    assert np.isfinite(release.values).all()
    assert release.frame.column_names == ["home", "time", "energy_kWh"]


def test_module_and_command_are_the_same():
    out = subprocess.run(
        [sys.executable, "-m", "tempriv", "mechanisms"], capture_output=True, text=True, check=True
    )
    assert "laplace" in out.stdout


def test_words_that_belong_together_are_joined():
    from tempriv.cli._options import join_pairs

    words = ["release", "a", "b", "--bounds", "-1", "5", "--grid", "calendar", "d.csv", "--clip"]
    assert join_pairs(words) == [
        "release",
        "a",
        "b",
        "--bounds=-1,5",
        "--grid=calendar",
        "--calendar=d.csv",
        "--clip",
    ]
    assert join_pairs(["--grid", "index", "--bounds", "x"]) == ["--grid", "index", "--bounds", "x"]


def stream(run, monkeypatch, text, *words):
    """Run ``tempriv stream`` on text."""
    Path("sent.txt").write_text(text)
    with Path("sent.txt").open() as sent:
        monkeypatch.setattr(sys, "stdin", sent)
        return run("stream", *LAPLACE, *words)


def test_a_stream_gives_the_same_bits_as_a_release(run, monkeypatch):
    seed = ["--key-seed", "3", "--not-private", "--no-ledger"]
    run("release", METERS, "batch.csv", *LAPLACE, *METER, "--grid", "index", *seed)
    status, out, _ = stream(run, monkeypatch, METERS.read_text(), *METER, *seed)
    assert status == 0
    batch = pl.read_csv("batch.csv").sort("home", "time")
    assert pl.read_csv(io.StringIO(out)).sort("home", "time").equals(batch)


def test_a_stream_clips_skips_and_counts_but_never_stops_over_a_value(run, monkeypatch):
    text = "t,v\n1,2\n2,999\n2,3\n1,1\nx,1\n3,\n4,abc\n5,inf\n6,1,1\n"
    status, out, err = stream(run, monkeypatch, text, "--time", "t", "--value", "v", "--no-ledger")
    rows = [line.split(",") for line in out.splitlines()]
    assert status == 0
    assert [row[0] for row in rows] == ["t", "1", "2", "3", "4", "5"]
    assert [row[1] == "" for row in rows] == [False, False, False, True, True, False]
    assert "1 not released: not later than all readings of its series" in err
    assert "1 not released: at a time that its series already has" in err
    assert "2 not released: not a reading" in err


def test_json_lines_keep_their_names_and_times(run, monkeypatch):
    text = (
        '{"id": 7, "t": "2026-01-01 00:00:00", "v": 1}\n[]\n{"id": 7, "t": "2026-01-02 00:00:00"}\n'
    )
    words = ["--time", "t", "--value", "v", "--series", "id", "--format", "jsonl", "--no-ledger"]
    _status, out, _err = stream(run, monkeypatch, text, *words)
    first, second = map(json.loads, out.splitlines())
    assert (first["id"], first["t"]) == (7, "2026-01-01 00:00:00")
    assert isinstance(first["v"], float)
    assert second["v"] is None


def test_a_stream_with_a_state_needs_times_and_the_right_header(run, monkeypatch):
    words = ["--value", "v", "--state", "s"]
    assert stream(run, monkeypatch, "v\n1\n", *words)[0] == 2
    status, _, err = stream(run, monkeypatch, "t,w\n1,1\n", "--time", "t", *words)
    assert (status, "no column 'v'; the columns are t, w" in err) == (1, True)


def test_a_stream_refused_by_the_budget_leaves_no_state(run, monkeypatch):
    run("budget", "create", "meters", "--epsilon", "0.5")
    words = ["--time", "t", "--value", "v", "--dataset", "meters", "--state", "s"]
    status, out, _err = stream(run, monkeypatch, "t,v\n1,1\n", *words)
    assert (status, out) == (3, "")
    assert not Path("s").exists()
