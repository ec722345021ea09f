"""The walkthroughs of CONTRIBUTING.md work, in a copy of the repository."""

from __future__ import annotations

import re

import pytest

from tests.support.walkthroughs import Scratch, Walkthrough

AT_MOST = 4  # files to write by hand for a mechanism
LAPLACE = (
    "tempriv release src/tempriv/datasets/meters.csv laplace.csv --mechanism laplace --epsilon 4 "
    "--bounds 0 5 --time time --value energy_kWh --series home --report laplace.html"
)


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path / "copy")


def columns(page: str) -> list[str]:
    """The heads of all tables of a report."""
    return re.findall(r"<th[^>]*>(.*?)</th>", page, re.DOTALL)


def test_a_mechanism_takes_four_files_and_everything_knows_it(scratch):
    walkthrough = Walkthrough.read("A mechanism")
    assert len(walkthrough.files) <= AT_MOST
    printed = {c.partition(" -")[0]: text for c, text in scratch.carry_out(walkthrough).items()}

    scratch.run("python -m ruff check " + " ".join(f for f in walkthrough.files if f[-1] == "y"))
    scratch.run("python tools/generate.py --check")
    assert scratch.run("python -c 'import tempriv as tp; print(tp.Staircase.__name__)'")
    stub = (scratch.folder / "src" / "tempriv" / "__init__.pyi").read_text()
    assert "Staircase as Staircase" in stub
    assert re.search(r"^  staircase +numbers", scratch.run("tempriv mechanisms"), re.MULTILINE)
    table = (scratch.folder / "docs" / "mechanisms" / "index.md").read_text()
    assert "| [staircase](staircase.md) | numbers" in table

    assert "--inner" in printed["tempriv mechanisms staircase"]
    assert "--inner" in scratch.run("tempriv release --mechanism staircase --help")
    assert "--inner" not in scratch.run("tempriv release --mechanism laplace --help")
    assert "verdict   holds" in printed["tempriv audit staircase"]
    verified = printed["tempriv verify private.csv"].splitlines()
    assert verified[0].startswith("ok ") and " 0 wrong" in verified[-1]
    assert len((scratch.folder / "stream.csv").read_text().splitlines()) == 4033

    scratch.run(LAPLACE)
    pages = [(scratch.folder / f"{name}.html").read_text() for name in ("private", "laplace")]
    assert columns(pages[0]) == columns(pages[1])
    assert "average over 168" in pages[0]


def test_a_unit_takes_a_file_and_ledgers_and_audits_know_it(scratch):
    walkthrough = Walkthrough.read("A unit")
    assert sorted(name.partition("/")[0] for name in walkthrough.files) == ["src", "tests"]
    scratch.carry_out(walkthrough)
    assert scratch.run("python -c 'import tempriv as tp; print(tp.Habit(24, 7))'")
    scratch.run("python tools/generate.py --check")
    scratch.run(f"python -m ruff check {' '.join(walkthrough.files)}")


def test_a_kind_of_campaign_takes_a_file_and_server_and_devices_know_it(scratch):
    walkthrough = Walkthrough.read("A kind of campaign")
    assert sorted(name.partition("/")[0] for name in walkthrough.files) == ["src", "tests"]
    printed = scratch.carry_out(walkthrough)
    assert all("." in text for text in printed.values())
    listed = "from tempriv.collect.protocol.kinds import campaign_kinds; print(*campaign_kinds())"
    assert "exceedance" in scratch.run(f'python -c "{listed}"').split()
    scratch.run(f"python -m ruff check {' '.join(walkthrough.files)}")
