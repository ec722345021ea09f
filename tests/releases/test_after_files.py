"""What a release says of the steps after it: in its description, its file, and the command."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tempriv as tp
from tempriv.errors import DataError, TemprivError
from tempriv.privacy import serialization
from tempriv.releases import postprocess
from tempriv.releases.description import sidecar_path
from tempriv.releases.postprocess.consistency import ColumnTotals, SeriesTotals, WindowTotals
from tempriv.releases.postprocess.steps import NonNegative, RoundTo, Smooth
from tempriv.releases.release import Release, read
from tempriv.releases.verify import verify
from tempriv.report.excerpt import PublicSample
from tempriv.report.page import page
from tests.releases.test_after import ALL, column, released

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5))


# what a release says of them


@pytest.mark.parametrize("step", ALL, ids=repr)
def test_the_promise_the_id_and_the_receipt_stay(step, tmp_path):
    with tp.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("d", unit=tp.Event(), epsilon=5.0)
        before = tp.release(np.arange(20) % 5, LAPLACE, ledger=ledger, dataset="d")
        out = postprocess.apply(before, [step])
        for key in before.about:
            assert out.about[key] == before.about[key], key
        assert out.guarantee == before.guarantee
        assert out.about["ledger"] is not None
        path = out.write(tmp_path / "out.csv")
        assert not any(check.wrong for check in verify(path, ledger))
        assert ledger.show("d").charges == 1


def test_the_release_before_is_not_touched():
    before = released([3.3, -1.2, 2.0])
    kept, about = column(before).copy(), json.dumps(before.about)
    postprocess.apply(before, ALL)
    np.testing.assert_array_equal(column(before), kept)
    assert json.dumps(before.about) == about


def test_steps_are_listed_in_order_with_the_sentence_on_budgets():
    out = postprocess.round_to(
        postprocess.non_negative(postprocess.smooth(released([1.0, 2, 3]), window=3)), 0.5
    )
    kinds = [entry["step"]["is"] for entry in out.about["after"]]
    assert kinds == ["Smooth", "NonNegative", "RoundTo"]
    assert "no budget is won back" in out.about["after_note"]
    assert postprocess.steps_of(out.about) == [Smooth(window=3), NonNegative(), RoundTo(step=0.5)]
    together = postprocess.apply(released([1.0, 2, 3]), postprocess.steps_of(out.about))
    np.testing.assert_array_equal(column(together), column(out))


@pytest.mark.parametrize(
    "step",
    [
        *ALL,
        Smooth(window=3, columns=["a"]),
        ColumnTotals(total="a", parts=["b", "c"]),
        SeriesTotals(total="all", columns=["a"]),
        WindowTotals(total="day", part="hour", window=24),
    ],
    ids=repr,
)
def test_a_step_survives_json(step):
    assert (
        serialization.decode(json.loads(json.dumps(serialization.encode(step))), postprocess.STEPS)
        == step
    )


def test_functions_take_nothing_but_a_release_and_public_settings():
    """What is private cannot be handed in: no table, no series, no mechanism, no key."""
    for function in (
        postprocess.smooth,
        postprocess.round_to,
        postprocess.non_negative,
        postprocess.monotone,
        postprocess.consistent_totals,
    ):
        first, *others = inspect.signature(function).parameters.values()
        assert (first.name, first.annotation) == ("release", "Release")
        simple = "int float bool str None Sequence[str] |"
        assert all(set(str(p.annotation).split()) <= set(simple.split()) for p in others)


def test_the_same_release_gives_the_same_bits_whatever_was_private():
    """Two private tables, one release: what comes after cannot tell them apart."""
    outs = []
    for private in (np.zeros(30), np.full(30, 5.0)):
        made = tp.release(private, LAPLACE)
        same = released(np.arange(30.0)).table
        out = postprocess.apply(Release(made.about, same), ALL[:4])
        outs.append(out.table)
    assert outs[0].equals(outs[1])


@pytest.mark.parametrize("kind", ["categories", "places"])
def test_only_numbers_are_worked_on(kind):
    if kind == "categories":
        mechanism = tp.RandomizedResponse(epsilon=1.0, categories=("a", "b"))
        release = tp.release(pl.DataFrame({"x": ["a", "b"]}), mechanism, values="x")
    else:
        mechanism = tp.PlanarLaplace(epsilon=1.0, unit=tp.WithinDistance(200), origin=(39.9, 116.4))
        table = pl.DataFrame({"lat": [39.9], "lon": [116.4]})
        release = tp.release(table, mechanism, values=("lat", "lon"))
    with pytest.raises(DataError, match="only releases of numbers"):
        postprocess.smooth(release, window=3)


@pytest.mark.parametrize("column", [["a", "b", "c"], [1, 2, 3]], ids=["text", "numbers"])
def test_exact_values_have_no_noise_to_work_on(column):
    mechanism = tp.BlockShuffle(epsilon=1.0, block=3)
    release = tp.release(pl.DataFrame({"x": column}), mechanism, values="x")
    with pytest.raises(DataError, match="hold exact values"):
        postprocess.smooth(release, window=3)


# files


@pytest.fixture
def files(tmp_path):
    """A release of two series, and what was made of it."""
    hours = np.datetime64("2024-01-01", "us") + np.arange(12) * np.timedelta64(1, "h")
    frame = pl.DataFrame(
        {
            "who": np.repeat(["007", "8"], 12),
            "at": np.tile(hours, 2),
            "kwh": [None if i % 7 == 3 else i % 5 for i in range(24)],
        }
    )
    before = tp.release(frame, LAPLACE, values="kwh", time="at", series="who")
    first = before.write(tmp_path / "before.csv")
    out = postprocess.apply(read(first), [Smooth(window=3), NonNegative(), RoundTo(step=0.1)])
    return first, out.write(tmp_path / "after.csv"), out.write(tmp_path / "after.parquet")


AFTERWARDS, AGAIN = "what was done afterwards is told right", "doing it again gives the same values"


def found_of(checks, what):
    return next(check.found for check in checks if check.what == what)


def test_a_file_is_verified_by_doing_the_steps_again(files):
    for path in files[1:]:
        checks = verify(path)
        assert not any(check.wrong for check in checks)
        assert found_of(checks, AFTERWARDS) == "3 steps"
        assert found_of(checks, AGAIN) == "the same"


def test_without_the_file_before_nothing_is_repeated_and_that_is_said(files):
    first, path, _ = files
    first.write_text(first.read_text() + "x")  # another file than the one that it was made of
    told = next(check for check in verify(path) if check.what == AGAIN)
    assert told.state == "not checked" and "not at hand" in told.found


def test_everything_but_the_values_stays_as_it_was(files):
    first, path, _ = files
    rows = [[line.split(",")[:2] for line in p.read_text().splitlines()] for p in (first, path)]
    assert rows[0] == rows[1]
    missing = [[line.endswith(",") for line in p.read_text().splitlines()] for p in (first, path)]
    assert missing[0] == missing[1] and sum(missing[0]) == 3


def rewrite(path, change):
    """Change the description, as someone would who wants it to say something else."""
    beside = sidecar_path(path)
    about = json.loads(beside.read_text())
    change(about)
    beside.write_text(json.dumps(about))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["after"].pop(),
        lambda about: about["after"].clear(),
        lambda about: about["after"][0].update(sentence="nothing was done"),
        lambda about: about["after"][0]["step"].update(window=5),
        lambda about: about["after"][0]["step"].update({"is": "Sharpen"}),
        lambda about: about["after"][0].pop("step"),
        lambda about: about.update(after="smoothed"),
        lambda about: about.update(after_note="budget was won back"),
        lambda about: about.pop("after"),
        lambda about: about.update(expected_error=[]),
    ],
)
def test_a_description_that_tells_something_else_fails(files, change):
    _, path, _ = files
    rewrite(path, change)
    try:
        checks = verify(path)
    except TemprivError:
        return
    assert any(check.wrong for check in checks)


def test_values_that_the_steps_do_not_give_fail(files):
    """Even where whoever changed them wrote a fitting checksum."""
    from tempriv.data.files import checksum

    _, path, _ = files
    path.write_text(re.sub(r",([\d.]+)$", r",9\1", path.read_text(), count=1, flags=re.MULTILINE))
    rewrite(path, lambda about: about["output"].update(blake2b=checksum(path)))
    told = next(check for check in verify(path) if check.what == AGAIN)
    assert told.wrong and "OTHER values" in told.found


def test_steps_on_steps_are_repeated_from_the_first_file(files, tmp_path):
    again = postprocess.monotone(read(files[1])).write(tmp_path / "again.csv")
    checks = verify(again)
    assert found_of(checks, AFTERWARDS) == "4 steps"
    assert found_of(checks, AGAIN) == "the same"


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        (pl.Date, pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 6), eager=True)),
        (pl.Int64, pl.Series(range(6))),
        (
            pl.Datetime("us", "UTC"),
            pl.datetime_range(
                pl.datetime(2024, 1, 1),
                pl.datetime(2024, 1, 1, 5),
                "1h",
                time_zone="UTC",
                eager=True,
            ),
        ),
    ],
)
def test_times_of_every_kind_come_through(tmp_path, column_type, values):
    frame = pl.DataFrame({"at": values.cast(column_type), "v": np.ones(6)})
    first = tp.release(frame, LAPLACE, values="v", time="at").write(tmp_path / "before.csv")
    path = postprocess.smooth(read(first), window=2).write(tmp_path / "after.csv")
    times = [[line.split(",")[0] for line in p.read_text().splitlines()] for p in (first, path)]
    assert times[0] == times[1]
    assert not any(check.wrong for check in verify(path))


def test_the_report_lists_what_was_done(files):
    release = read(files[1])
    text = page(release.about, PublicSample.of(release))
    for entry in release.about["after"]:
        assert entry["sentence"][1:] in text
    assert "no budget is won back" in text and "errors of the noise alone" in text
    before = read(files[0])
    plain = page(before.about, PublicSample.of(before))
    assert "afterwards" not in plain and "errors of the noise alone" not in plain


# the command


@pytest.fixture
def run(run, files):
    """A command beside the releases that it is given."""
    return run


def test_the_command_does_its_steps_in_the_order_of_its_options(run, tmp_path):
    status, out, err = run(
        "after",
        "before.csv",
        "calm.csv",
        "--round",
        "0.5",
        "--non-negative",
        "--smooth",
        "3",
        "--monotone",
    )
    assert (status, err) == (0, "")
    assert "epsilon = 1" in out and "no budget is won back" in out
    about = json.loads(Path("calm.csv.release.json").read_text())
    kinds = [entry["step"]["is"] for entry in about["after"]]
    assert kinds == ["Smooth", "Monotone", "NonNegative", "RoundTo"]
    assert run("verify", "calm.csv")[0] == 0
    expected = postprocess.apply(read("before.csv"), postprocess.steps_of(about))
    np.testing.assert_array_equal(read("calm.csv").values, expected.values)
    status, out, _ = run("after", "calm.csv", "more.csv", "--smooth-weight", "0.5", "--json")
    assert (status, len(json.loads(out)["after"])) == (0, 5)


def test_the_command_makes_totals_add_up(run):
    status, _, _ = run("after", "before.csv", "sum.csv", "--total", "8")
    assert status == 0
    values = pl.read_csv("sum.csv", schema_overrides={"who": pl.String}).pivot("who", index="at")
    full = values.drop_nulls()
    np.testing.assert_allclose(full["007"], full["8"])


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["before.csv", "out.csv"], 2, "nothing to do: give --smooth"),
        (["before.csv", "before.csv", "--monotone"], 2, "is the input"),
        (["before.csv", "after.csv", "--monotone"], 1, "exists already"),
        (["before.csv", "out.txt", "--monotone"], 2, "must end in .csv or .parquet"),
        (["none.csv", "out.csv", "--monotone"], 1, "no such file"),
        (["bare.csv", "out.csv", "--monotone"], 1, "missing; a release is a file with this one"),
        (["edited.csv", "out.csv", "--monotone"], 1, "was changed since it was released"),
        (["before.csv", "out.csv", "--part", "x"], 2, "go with --total"),
        (["before.csv", "out.csv", "--smooth", "1"], 2, "--smooth 1: must be"),
        (["before.csv", "out.csv", "--smooth", "3", "--smooth-weight", "0.5"], 2, "one of them"),
        (["before.csv", "out.csv", "--monotone", "--column", "x"], 1, "no value column 'x'"),
        (["before.csv", "out.csv", "--total", "x", "--part", "kwh"], 1, "no value column 'x'"),
    ],
)
def test_what_the_command_refuses(run, words, status, sentence):
    Path("bare.csv").write_text("at,v\n0,1\n")
    edited = Path("before.csv").read_text().replace(".", ".0", 1)
    Path("edited.csv").write_text(edited)
    Path("edited.csv.release.json").write_bytes(Path("before.csv.release.json").read_bytes())
    ended, _, err = run("after", *words)
    assert (ended, sentence in err) == (status, True), err
    assert not Path("out.csv").exists()


def test_an_existing_output_is_replaced_by_force(run):
    assert run("after", "before.csv", "after.csv", "--monotone", "--force")[0] == 0
    assert run("verify", "after.csv")[0] == 0
