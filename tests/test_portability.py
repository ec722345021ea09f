"""Nothing needs what Windows lacks, and the core needs no extra: the same bits come out."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tests.support.paths import ROOT
from tests.test_behavior import GOLDEN

WITHOUT = {
    "posix": (
        *("release/laplace/event", "release/gaussian/event"),
        *("stream/laplace/event", "stream/block-shuffle/rows"),
        *("collect/upload/laplace/event", "collect/frequency/grr", "collect/device"),
    ),
    "extras": (
        *("release/laplace/event", "release/sparse-vector/series", "after/smooth", "after/round"),
        *("stream/laplace/event", "stream/laplace/jsonl"),
        *("count/laplace", "budget/ledger", "landmarks/", "leakage/budgets"),
    ),
}


def run_without(what: str, module: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.without", what, module, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("what", WITHOUT)
def test_the_same_bits_come_out_without(what):
    """In one process for all cases, which begins without what is left out."""
    cases = WITHOUT[what]
    only = [word for name in cases for word in ("--only", name)]
    ended = run_without(what, "tests.support.behavior", "--compare", GOLDEN, *only)
    assert ended.returncode == 0, ended
    assert int(ended.stdout.split()[0]) >= len(cases)
    assert ended.stdout.endswith("all as they were\n")


@pytest.mark.parametrize(("what", "module"), [("posix", "fcntl"), ("extras", "scipy")])
def test_what_is_left_out_is_really_missing(what, module):
    """Blind tests would pass."""
    ended = run_without(what, module)
    assert f"No module named {module}" in ended.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("budget", "plan", "--epsilon", "1", "--releases", "10", "--delta", "1e-6"), "analysis"),
        (("release", "--engine", "spark"), "spark"),
        (("serve",), "collect"),
    ],
)
def test_who_lacks_an_extra_is_told_its_name(words, extra, tmp_path):
    (tmp_path / "a.csv").write_text("t,v\n1,2\n2,3\n")
    if words[0] == "release":
        files = (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
        given = ("--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5")
        words = (words[0], *files, *given, "--time", "t", "--value", "v", *words[1:])
    ended = run_without("extras", "tempriv", *words)
    assert ended.returncode == 2, ended
    assert f"pip install 'tempriv[{extra}]'" in ended.stderr


def test_every_extra_that_a_sentence_names_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        for part in path.read_text().split("tempriv[")[1:]:
            for extra in part.partition("]")[0].split(","):
                assert extra in extras["optional-dependencies"] or "{" in extra, (path, extra)
