"""Write the generated files of the package: ``make generate``.

``src/tempriv/mechanisms/index.json`` says where each mechanism is, ``src/tempriv/__init__.pyi``
names the public names for type checkers. ``--check`` writes nothing and exits with 1 when a file is
not what would be written.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import tempriv
from tempriv.mechanisms import registry

SOURCE = Path(tempriv.__file__).parent
HEAD = "# written by make generate; do not edit\n"


def index() -> str:
    """Where each mechanism is defined."""
    return json.dumps([asdict(entry) for entry in registry.discover()], indent=1) + "\n"


def stub() -> str:
    """The public names as imports."""
    modules: dict[str, list[str]] = {}
    for entry in registry.discover():
        modules.setdefault(entry.module.removeprefix("tempriv."), []).append(entry.kind)
    for module, names in tempriv._PUBLIC.items():
        modules.setdefault(module, []).extend(names)
    lines = []
    for module in sorted(modules):
        names = ", ".join(f"{name} as {name}" for name in sorted(modules[module]))
        lines.append(f"from tempriv.{module} import {names}")
    return HEAD + "\n".join([*lines, "", "__version__: str", ""])


FILES = {SOURCE / "mechanisms" / "index.json": index, SOURCE / "__init__.pyi": stub}


def main() -> int:
    """Write the files, or check them."""
    stale = {path: text for path, make in FILES.items() if (text := make()) != _read(path)}
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is not current: run make generate")
        return bool(stale)
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path.name}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
