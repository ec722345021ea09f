"""What is said of Spark where it is not installed, or not meant."""

from __future__ import annotations

import sys

import pytest

from tempriv.errors import UsageError
from tempriv.integrations import spark as tempriv_spark
from tempriv.mechanisms.value.laplace import Laplace

LAPLACE = ("--mechanism", "laplace", "--epsilon", 1, "--bounds", 0, 5, "--time", "day")


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)


def test_the_function_says_how_to_install_it(without):
    with pytest.raises(UsageError, match=r"pip install 'tempriv\[spark\]'"):
        tempriv_spark.release(None, Laplace(epsilon=1.0, bounds=(0, 5)), time="day", values="kwh")


def test_the_command_says_how_to_install_it(without, run, tmp_path):
    (tmp_path / "in.csv").write_text("day,kwh\n0,1\n1,2\n")
    words = ("release", "in.csv", "out.csv", *LAPLACE, "--value", "kwh", "--no-ledger")
    status, _, err = run(*words, "--engine", "spark")
    assert status == 2 and "pip install" in err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--engine", "flink"), "--engine flink: must be embedded or spark"),
        (("--master", "local[2]"), "--master: goes with --engine spark"),
        (("--engine", "spark", "--report", "out.html"), "with tempriv report"),
    ],
    ids=("engine", "master", "report"),
)
def test_options_that_cannot_be_meant_are_refused(run, tmp_path, words, sentence):
    (tmp_path / "in.csv").write_text("day,kwh\n0,1\n1,2\n")
    status, _, err = run("release", "in.csv", "out.csv", *LAPLACE, "--value", "kwh", *words)
    assert status == 2 and sentence in " ".join(err.split())
