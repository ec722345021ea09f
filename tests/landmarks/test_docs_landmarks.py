"""The pages on landmarks: their examples run, their tables are what the functions give."""

from __future__ import annotations

import doctest
import importlib.util
import re
import sys
from typing import Any

import pytest

from tests.support.paths import DOCS


@pytest.fixture(scope="module")
def pictures() -> Any:
    """The script of the pages, which asks the one beside it for axes."""
    sys.path.insert(0, str(DOCS / "pictures"))
    try:
        found = importlib.util.spec_from_file_location(
            "pictures_landmarks", DOCS / "pictures" / "landmarks.py"
        )
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS / "pictures"))
    return module


@pytest.mark.parametrize(("name", "least"), [("landmarks.md", 15), ("mechanisms/landmarks.md", 8)])
def test_every_example_of_a_page_runs_as_printed(name: str, least: int) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    assert len(test.examples) >= least
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize(
    ("name", "of"), [("landmarks.md", "shown"), ("mechanisms/landmarks.md", "error")]
)
def test_a_table_of_a_page_is_what_is_computed(pictures: Any, name: str, of: str) -> None:
    (table,) = re.findall(
        rf"<!-- {of}s? -->\n(.*?)\n<!-- /{of}s? -->", (DOCS / name).read_text(), flags=re.DOTALL
    )
    assert table.splitlines() == getattr(pictures, f"{of}_table")()
