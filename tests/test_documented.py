"""Every public name says what its parameters are, and shows an example that runs.

So does every public function of the packages in ``DESCRIBED``, but for the example.

The examples run because ``pytest`` collects the doctests of the package.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tempriv
from tests.test_architecture import FILES, name_of, package_of, tree

PUBLIC = sorted(set(tempriv.__all__) - {"__version__"})

# packages whose functions all describe their parameters
DESCRIBED = (
    *("errors", "privacy", "data", "sampling", "accounting", "ledger", "correlation", "mechanisms"),
    *("landmarks", "releases", "local", "streaming", "audit", "utility", "leakage", "report", "ui"),
    *("integrations", "collect", "studies", "datasets", "cli"),
)


def undescribed(names: list[str], text: str | None) -> list[str]:
    """The parameters that a docstring has no line for and does not mention as such."""
    text = text or ""
    lines = text.partition("Parameters:")[2]
    return [
        name
        for name in names
        if not re.search(rf"^ +{name}: \S", lines, re.MULTILINE) and f"``{name}``" not in text
    ]


def arguments(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters
    return [name for name in parameters if name not in ("self", "cls")]


def of_class(kind: type[Any]) -> list[str]:
    """What its docstring, or that of a class it inherits them from, does not describe."""
    if dataclasses.is_dataclass(kind):
        texts = [base.__doc__ or "" for base in kind.__mro__]
        return undescribed([field.name for field in dataclasses.fields(kind)], "\n".join(texts))
    if kind.__init__ is object.__init__:
        return []
    maker = next(base for base in kind.__mro__ if "__init__" in vars(base))
    return undescribed(arguments(maker.__init__), maker.__doc__)


def members(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that are of this package."""
    for name, member in inspect.getmembers(kind):
        module = getattr(member, "__module__", None) or ""
        method = inspect.isroutine(member) and module.startswith("tempriv.")
        if not name.startswith("_") and (method or isinstance(member, property)):
            yield name, member


def doc_of(kind: type[Any], name: str) -> str | None:
    """The docstring of a member, or of that of a base which it overrides."""
    texts = (getattr(vars(base).get(name), "__doc__", None) for base in kind.__mro__)
    return next((text for text in texts if text), None)


def problems(name: str) -> list[str]:
    """What is missing from the documentation of a public name."""
    public = getattr(tempriv, name)
    missing = [] if ">>>" in (public.__doc__ or "") else ["an example"]
    if not inspect.isclass(public):
        missing += undescribed(arguments(public), public.__doc__)
        return missing if "Returns:" in public.__doc__ else [*missing, "what it returns"]
    missing += of_class(public)
    for method, member in members(public):
        text = doc_of(public, method) or inspect.getdoc(member)
        if not text:
            missing.append(method)
        elif not isinstance(member, property):
            missing += [f"{method}({name})" for name in undescribed(arguments(member), text)]
    return missing


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented(name):
    assert not problems(name)


def test_what_is_missing_is_seen(monkeypatch):
    def silent(epsilon: float, unit: str) -> None:
        """Something about ``epsilon``.

        Parameters:
            other: not its own.
        """

    class Silent:
        """No example."""

        def __init__(self, epsilon: float):
            self.epsilon = epsilon

        def restated(self, unit: str) -> None:
            """For another unit."""

        @property
        def loss(self) -> float:
            return self.epsilon

    Silent.restated.__module__ = "tempriv.example"
    monkeypatch.setattr(tempriv, "silent", silent, raising=False)
    monkeypatch.setattr(tempriv, "Silent", Silent, raising=False)
    assert problems("silent") == ["an example", "unit", "what it returns"]
    assert problems("Silent") == ["an example", "epsilon", "loss", "restated(unit)"]


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Public functions and methods, but those within a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not child.name.startswith("_"):
                yield child
        else:
            yield from functions(child)


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a command, whose options describe themselves for help."""
    parameters = [*function.args.args, *function.args.kwonlyargs]
    described = [each for each in parameters if "typer." in ast.unparse(each.annotation or each)]
    return bool(described) or "command" in " ".join(map(ast.unparse, function.decorator_list))


def without_text(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters that its docstring does not name."""
    text = ast.get_docstring(function) or ""
    parameters = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    return [name for name in parameters if name not in ("self", "cls") and name not in text]


@pytest.mark.parametrize("package", DESCRIBED)
def test_functions_of_a_package_describe_their_parameters(package):
    missing = [
        f"{name_of(path)}.{function.name}: {', '.join(names)}"
        for path in FILES
        if package_of(name_of(path)) == package
        for function in functions(tree(path))
        if not is_command(function) and (names := without_text(function))
    ]
    assert not missing, "\n".join(missing)
