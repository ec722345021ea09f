"""Write the generated files of the package: ``make generate``.

The ``index.json`` of mechanisms and of units say where each is, the ``__init__.pyi`` of the package
and of units name the public names for type checkers, and docs/mechanisms/index.md has a table of
mechanisms.
``--check`` writes nothing and exits with 1 when a file is not what would be written.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import tempriv
from tempriv.cli.mechanisms import TITLES
from tempriv.mechanisms import registry
from tempriv.privacy import units
from tempriv.privacy.serialization import IndexEntry
from tempriv.privacy.units import base

SOURCE = Path(tempriv.__file__).parent
ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "mechanisms"
TABLE = re.compile(r"(?<=<!-- mechanisms -->\n).*?(?=<!-- /mechanisms -->)", re.DOTALL)
HEAD = "# written by make generate; do not edit\n"


def index(entries: Iterable[IndexEntry]) -> str:
    """Where mechanisms, or units, are defined."""
    return json.dumps([asdict(entry) for entry in entries], indent=1) + "\n"


def imports(public: Mapping[str, Iterable[str]], *entries: IndexEntry) -> str:
    """Names, by module and those of an index, as imports for type checkers."""
    modules = {f"tempriv.{module}": list(names) for module, names in public.items()}
    for entry in entries:
        modules.setdefault(entry.module, []).append(entry.kind)
    lines = []
    for module in sorted(modules):
        names = ", ".join(f"{name} as {name}" for name in sorted(modules[module]))
        lines.append(f"from {module} import {names}\n")
    return HEAD + "".join(lines)


def public_names() -> str:
    """The names of the package as ``tp.X``."""
    entries = (*registry.discover(), *base.discover_units())
    return imports(tempriv._PUBLIC, *entries) + "\n__version__: str\n"


def page_of(name: str) -> str:
    """The page that describes a mechanism: of its own name, or one that lists it at its top."""
    if (PAGES / f"{name}.md").exists():
        return f"{name}.md"
    pages = (path for path in sorted(PAGES.glob("*.md")) if name in _listed(path))
    page = next(pages, None)
    if page is None:
        sys.exit(f"docs/mechanisms/{name}.md is missing: every mechanism has a page")
    return page.name


def _listed(page: Path) -> list[str]:
    """The mechanisms that the first lines of a page name, as ``mechanisms: a, b``."""
    match = re.match(r"---\nmechanisms: (.*)\n---\n", page.read_text())
    return match[1].split(", ") if match else []


def table() -> str:
    """The page about all mechanisms, with the table between its two comments written anew."""
    lines = []
    kinds = [entry.load() for entry in registry.discover()]
    for hides, group in itertools.groupby(kinds, key=lambda kind: kind.command.hides):
        lines += ["", f"### {TITLES[hides]}", "", "| mechanism | what for | in Python |"]
        lines += ["|---|---|---|"]
        for kind in group:
            name = kind.command.name
            link = f"[{name}]({page_of(name)})"
            lines.append(f"| {link} | {kind.command.purpose} | `tp.{kind.__name__}` |")
    text = "\n".join([*lines, "", ""])
    return TABLE.sub(lambda _: text, (PAGES / "index.md").read_text())


FILES = {
    SOURCE / "mechanisms" / "index.json": lambda: index(registry.discover()),
    SOURCE / "privacy" / "units" / "index.json": lambda: index(base.discover_units()),
    SOURCE / "privacy" / "units" / "__init__.pyi": lambda: imports(
        {"privacy.units.base": [name for name in units.__all__ if hasattr(base, name)]},
        *base.discover_units(),
    ),
    SOURCE / "__init__.pyi": public_names,
    PAGES / "index.md": table,
}


def main() -> int:
    """Write the files, or check them."""
    stale = {path: text for path, make in FILES.items() if (text := make()) != _read(path)}
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current: run make generate")
        return bool(stale)
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
