"""The same data under other names, from the command line."""

from __future__ import annotations

import json

import pytest

from tests.support.lookalikes import COLUMNS, meters, renamed

WORDS = (
    *("--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "10", "--value", "value"),
    *("--time", "time", "--series", "home"),
)


@pytest.fixture
def files(run, tmp_path):
    rows = meters(3, series=3, length=100)
    for name, some in (("meters.csv", rows), ("copy.csv", rows), ("other.csv", renamed(rows))):
        lines = [",".join(map(str, row)) for row in (COLUMNS, *some)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    run("budget", "create", "meters", "--epsilon", "2")

    def release(name, *more):
        return run("release", name, f"out-{name}", *WORDS, "--force", *more)

    return release


def spent(run, name):
    _, out, _ = run("budget", "show", name, "--json")
    return json.loads(out)[0]["totals"][0]["spent"]


def test_a_limit_on_weather_holds_for_a_release_of_its_file_and_of_copies(run, files):
    assert files("meters.csv")[0] == 0
    assert spent(run, "meters") == 1.0
    status, out, err = files("copy.csv")
    assert status == 0 and "counts for dataset 'meters' as well: about 100 %" in err
    assert "tempriv budget forget meters copy.csv" in err and "--other-data meters" in err
    assert "meters" not in out  # what is handed out does not name it
    status, _, err = files("other.csv")
    assert status == 3 and "--other-data meters" in err
    assert spent(run, "meters") == 2.0
    assert files("other.csv", "--other-data", "meters", "--other-data", "copy.csv")[0] == 0
    assert spent(run, "meters") == 2.0
    _, out, _ = run("budget", "show")
    assert "told apart" in out


def test_what_is_merged_and_forgotten_stands_in_the_log(run, files):
    files("meters.csv")
    files("copy.csv", "--other-data", "meters")
    status, out, _ = run("budget", "merge", "meters", "copy.csv", "--because", "a backup")
    assert status == 0 and "copy.csv: epsilon 2" in out and "meters: epsilon 2 of 2" in out
    status, _, err = run("budget", "forget", "meters", "copy.csv")
    assert status == 2 and "--because" in err
    status, out, _ = run("budget", "forget", "meters", "copy.csv", "--because", "no backup")
    assert status == 0 and "2 charges are forgotten" in out
    _, log, _ = run("budget", "log", "--json")
    entries = json.loads(log)
    assert sorted(one["state"] for one in entries) == ["done"] * 2 + ["forgotten"] * 2
    first = next(one for one in entries if one["state"] == "done")
    status, out, _ = run("budget", "forget", str(first["charge"]), "--because", "deleted")
    assert status == 0 and first["release_id"] in out
    assert spent(run, "meters") == 0.0
    _, shown, _ = run("budget", "show", "meters")
    assert "deleted" in shown and "a backup" in shown


def test_a_release_that_is_released_again_goes_by_its_table(run, files, tmp_path):
    files("meters.csv")
    run("after", "out-meters.csv", "calm.csv", "--non-negative")
    assert run("release", "calm.csv", "again.csv", *WORDS, "--clip")[0] == 0
    assert spent(run, "meters") == 2.0
    about = json.loads((tmp_path / "again.csv.release.json").read_text())
    assert about["ledger"]["dataset"] == "meters"
