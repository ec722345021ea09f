"""The page about adding up: its examples run, and its table is what the command prints."""

from __future__ import annotations

import doctest
import re
import sys

import pytest

from tempriv.cli.app import main
from tests.support.paths import DOCS

PAGE = (DOCS / "accounting.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_example_of_the_page_runs_as_printed():
    examples = "\n".join(blocks("pycon"))
    test = doctest.DocTestParser().get_doctest(examples, {}, "accounting.md", "accounting.md", 0)
    assert len(test.examples) > 25
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_table_of_the_page_is_what_the_command_prints(monkeypatch, capfd):
    (typed,), table = blocks("console"), blocks("text")[0]
    assert typed.startswith("$ tempriv budget plan ")
    monkeypatch.setattr(sys, "argv", typed[2:].split())
    with pytest.raises(SystemExit):
        main()
    printed = [line.strip() for line in capfd.readouterr().out.splitlines() if line.strip()]
    shown = [line.strip() for line in table.splitlines() if line.strip()]
    assert printed == shown
