"""The commands of the README and of pages on the made-up tables, as typed, and what they print."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.paths import DOCS, ROOT

PAGES = [
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in ("index", "datasets", "counting-people")),
    *(DOCS / "mechanisms" / f"{name}.md" for name in ("pegasus", "fast", "sparse-vector")),
]
ANOTHER_SHELL = ("make ", "pip install ")  # sets up what the test runs in


def typed(text: str) -> list[tuple[str, str]]:
    """The commands of a page in order, each with what the page says it prints."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def prints(said: str, out: str) -> bool:
    """Whether the output is as said; a line of three dots stands for any lines."""
    pieces = [re.escape(piece) for piece in re.split(r"^\.\.\.\n", said, flags=re.MULTILINE)]
    return not said or re.fullmatch("(?s:.*)".join(pieces), out) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_in_order_in_an_empty_folder(page, run):
    text = page.read_text()
    commands = [each for each in typed(text) if not each[0].startswith(ANOTHER_SHELL)]
    assert commands
    if not any(command.startswith("tempriv datasets") for command, _ in commands):
        assert "[made-up tables](../datasets.md)" in text, "the page says where its files are from"
        assert run("datasets")[0] == 0
    for command, said in commands:
        program, *words = shlex.split(command, comments=True)
        assert program == "tempriv"
        status, out, err = run(*words)
        assert (status, err) == (0, ""), command
        assert prints(said, out), (command, out)


def test_what_is_not_printed_is_noticed():
    assert prints("a\n...\nz\n", "a\nb\nc\nz\n") and prints("", "anything\n")
    assert not prints("a\n...\n", "b\n") and not prints("a\n", "a\nb\n")
