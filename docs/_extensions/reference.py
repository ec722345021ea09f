"""Writes the pages of the API reference: the public names first, then a page for each package.

The pages are written before every build and are not tracked. What they hold comes from docstrings,
so a new module or a new public name is in the reference without a line being added here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tempriv

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Sections of the page of public names, with the packages whose names they hold.
SECTIONS = {
    "Releases": ("releases",),
    "Statistics of people": ("summaries",),
    "Tables": ("data",),
    "Mechanisms": ("mechanisms",),
    "Units": ("privacy.units",),
    "Guarantees": ("privacy.guarantees", "privacy.sensitivity"),
    "Keys": ("sampling",),
    "Ledger": ("ledger",),
    "Errors": ("errors",),
}
# Not for import by users: what the command line, the pages and the studies are made of.
INTERNAL = {"cli", "datasets", "studies", "ui"}

INDEX = """# API reference

```python
import tempriv as tp
```

The names on this page are the public interface: they follow semantic versioning. The pages of the
packages below describe what they are built on, for those who extend the library or carry a value
further than `tp.*` does; names there may change with a minor version.
"""


def public_section(title: str, packages: tuple[str, ...]) -> str:
    """The part of the page of public names that holds the names of some packages.

    Parameters:
        title: the heading.
        packages: dotted names of packages or modules, without ``tempriv``.
    """
    names = [
        name
        for name, module in tempriv._MODULES.items()
        if any(f"{module}.".startswith(f"tempriv.{package}.") for package in packages)
    ]
    names.sort(key=lambda name: (isinstance(getattr(tempriv, name), type), name))
    lines = [f"## {title}", "", "```{eval-rst}"]
    for name in names:
        kind = "autoclass" if isinstance(getattr(tempriv, name), type) else "autofunction"
        lines += [f".. {kind}:: tempriv.{name}"]
        lines += ["   :members:"] if kind == "autoclass" else []
        lines += [""]
    return "\n".join([*lines, "```", ""])


def packages() -> list[str]:
    """The packages that have a page of their own."""
    found = pkgutil.iter_modules(tempriv.__path__)
    return sorted(each.name for each in found if each.ispkg and each.name not in INTERNAL)


def package_page(package: str) -> str:
    """The page of one package: its modules in alphabetical order.

    Parameters:
        package: its name, without ``tempriv``.
    """
    top = importlib.import_module(f"tempriv.{package}")
    walked = pkgutil.walk_packages(top.__path__, f"{top.__name__}.")
    modules = sorted(
        each.name for each in walked if not any(p.startswith("_") for p in each.name.split("."))
    )
    lines = [f"# tempriv.{package}", "", "```{eval-rst}", f".. automodule:: {top.__name__}"]
    lines += ["   :members:", "", "```", ""]
    for name in modules:
        lines += [f"## {name}", "", "```{eval-rst}", f".. automodule:: {name}", "   :members:"]
        lines += ["   :no-index:"] if hidden_by_function(name) else []
        lines += ["", "```", ""]
    return "\n".join(lines)


def hidden_by_function(name: str) -> bool:
    """Whether a package has a function under the name of one of its modules.

    Parameters:
        name: the dotted name of the module.
    """
    module = importlib.import_module(name)
    parent, _, leaf = name.rpartition(".")
    return getattr(importlib.import_module(parent), leaf) is not module


def write_pages(app: Sphinx) -> None:
    """Write all pages below ``reference/``; those that are the same as before are left alone."""
    missing = {
        name
        for name, module in tempriv._MODULES.items()
        if not any(module.startswith(f"tempriv.{p}") for group in SECTIONS.values() for p in group)
    }
    assert not missing, f"public names in no section of the reference: {sorted(missing)}"
    pages = {package: package_page(package) for package in packages()}
    toctree = ["## Packages", "", "```{toctree}", ":maxdepth: 1", "", *pages, "```", ""]
    sections = [public_section(title, names) for title, names in SECTIONS.items()]
    pages["index"] = "\n".join([INDEX, *sections, *toctree])
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def skip_member(
    app: Sphinx, what: str, name: str, value: object, skip: bool, options: Any
) -> bool | None:
    """Leave out what is documented elsewhere.

    A public name stands as ``tp.NAME`` and not on the page of its package. Methods that other
    libraries add to our classes are theirs to document.
    """
    if what == "module" and name in tempriv._MODULES and getattr(tempriv, name) is value:
        return True
    foreign = inspect.isfunction(value) and not value.__module__.startswith("tempriv")
    return True if foreign else None


# What reStructuredText would take for markup, though docstrings mean it literally: |x|, a*b, x_.
MARKUP = re.compile(r"(``.*?``)|([|*]|(?<=\w)_(?=\W|$))")


def _literal_or_escaped(match: re.Match[str]) -> str:
    # a literal must not begin or end with a space
    return f"``{match[1].strip('` ')}``" if match[1] else "\\" + match[2]


def escape_markup(
    app: Sphinx, what: str, name: str, value: object, options: Any, lines: list[str]
) -> None:
    """Escape formulas in docstrings, so that they can be written as one reads them."""
    doctest = False
    literal: int | None = None  # the indentation of the paragraph that opened a literal block
    for index, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip())
        if line.strip():
            doctest = doctest or line.lstrip().startswith(">>>")
            literal = None if literal is not None and indentation <= literal else literal
        else:
            doctest = False
        if not doctest and literal is None:
            lines[index] = MARKUP.sub(_literal_or_escaped, line)
            literal = indentation if line.rstrip().endswith("::") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", escape_markup, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
