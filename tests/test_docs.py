"""The documentation says what is so: paths exist, functions run in the order told, tables agree."""

from __future__ import annotations

import doctest
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import DOCS, ROOT
from tests.support.tracing import PATHS, SOURCE
from tests.test_architecture import LAYERS

PAGE = (DOCS / "architecture.md").read_text()
MODULES_AT_MOST = 60


def between(marker: str, end: str) -> str:
    """The part of the page between two comments."""
    return PAGE.partition(f"<!-- {marker} -->")[2].partition(f"<!-- {end} -->")[0]


def tree_paths() -> list[Path]:
    """What the tree of packages names, by indentation: files and folders before the description."""
    block = re.search(r"## Packages\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    parents: list[tuple[int, Path]] = [(-1, ROOT)]
    found = []
    for line in block[1].splitlines():
        indentation = len(line) - len(line.lstrip())
        while parents[-1][0] >= indentation:
            parents.pop()
        names = re.findall(r"(?:^|\s)([\w/]+(?:/|\.\w+))(?=\s|$)", line)
        first, *others = [parents[-1][1] / name for name in names]
        inside = [first / path.name for path in others]
        found += [first, *(b if b.exists() else a for a, b in zip(others, inside, strict=True))]
        parents.append((indentation, first))
    return found


def steps_of(path: str) -> list[tuple[str, str]]:
    """The files and functions of one path."""
    return re.findall(r"^\| `([\w/.]+)` \| `([\w.]+)` \|", between(f"path: {path}", "/path"), re.M)


def traced(what: str, folder: Path) -> str:
    """What the tracing script prints at its end."""
    command = [sys.executable, "-m", "tests.support.tracing", what, str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_the_tree_names_what_exists():
    paths = tree_paths()
    assert len(paths) > 60
    assert not [str(path) for path in paths if not path.exists()]


def test_the_tree_names_every_package():
    packages = {path.parent for path in SOURCE.glob("*/__init__.py")}
    assert not {path.name for path in packages - set(tree_paths())}


def test_every_file_in_the_text_exists():
    named = set(re.findall(r"`([\w/]+\.(?:py|toml|md))`", PAGE))
    assert not {
        name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()
    }


def test_the_layers_are_those_of_the_contract():
    assert tuple(re.findall(r"`(\w+)`", between("layers", "/layers"))) == LAYERS


@pytest.mark.parametrize("path", PATHS)
def test_a_path_names_functions_in_the_order_of_their_first_calls(path, tmp_path):
    calls = [tuple(call) for call in json.loads(traced(path, tmp_path))]
    steps = steps_of(path)
    assert len(steps) > 15
    assert not [step for step in steps if step not in calls]
    assert steps == sorted(steps, key=calls.index)


PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("[!_]*/*.md")]
# these name what was and what walkthroughs add; further below, what is made
ELSEWHERE = {"CHANGELOG.md", "CONTRIBUTING.md"}
MADE = re.compile(r"docs/(_build|reference)/.*|benchmarks/results\.json")


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_modules_and_files_that_exist(page):
    if page.name in ELSEWHERE or page.parent.name == "reference":
        return
    text = page.read_text()
    dotted = {name.replace("tp.", "tempriv.", 1) for name in re.findall(r"\btp(?:\.\w+)+", text)}
    dotted |= set(re.findall(r"\btempriv(?:\.[a-z_]+)+(?:\.[A-Z]\w+)?(?=[`\s(;,])", text))
    files = set(re.findall(r"\b(?:src|tests|docs|benchmarks|examples|tools)/[\w/.-]+\.\w+", text))
    missing = {name for name in files if not MADE.fullmatch(name) and not (ROOT / name).exists()}
    assert not missing | {name for name in dotted if not resolves(name)}


def test_the_example_of_errors_runs():
    section = (DOCS / "python.md").read_text().partition("## Errors\n")[2]
    (example,) = re.findall(r"```python\n(>>> .*?)```", section, re.DOTALL)
    test = doctest.DocTestParser().get_doctest(example, {}, "python.md", None, None)
    assert test.examples and not doctest.DocTestRunner().run(test).failed


def test_a_laplace_release_loads_few_modules(tmp_path):
    count = int(traced("modules", tmp_path))
    stated = re.search(r"loads (\d+) modules\s+of\s+the\s+package", PAGE)
    assert stated is not None
    assert count <= MODULES_AT_MOST
    assert abs(count - int(stated[1])) <= 3, f"docs/architecture.md says {stated[1]}"


def test_each_line_of_the_threat_model_names_a_test_that_exists():
    page = (DOCS / "threat-model.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    missing = [f"{f}::{t}" for f, t in named if f"def {t}(" not in (ROOT / f).read_text()]
    assert len(named) > 25 and not missing
    rows = [
        row for row in page.splitlines() if row.startswith("| ") and "supported by |" not in row
    ]
    assert [row for row in rows if not re.search(r"tests/|\]\([\w#]", row.split("|")[-2])] == []
