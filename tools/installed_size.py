"""Measure what the core and every extra cost on disk, each in a fresh virtual environment.

    python tools/installed_size.py                  # the table of docs/install.md
    python tools/installed_size.py collect spark    # only these

Counted are the bytes of all files in site-packages, compiled files included, without pip itself.
An extra is counted as what it adds to the core.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
NOT_COUNTED = ("pip", "setuptools", "_distutils_hack", "__pycache__")


def installed_bytes(extras: str) -> dict[str, int]:
    """Bytes of every entry of site-packages after installing the project.

    Parameters:
        extras: names of extras with commas between; empty for the core alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        pip = [str(Path(folder, scripts, "python")), "-m", "pip", "install", "--quiet"]
        asked = f"{ROOT}[{extras}]" if extras else str(ROOT)
        subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), asked], check=True)
        packages = next(Path(folder).rglob("site-packages"))
        return {
            entry.name: size_of(entry)
            for entry in packages.iterdir()
            if not entry.name.startswith(NOT_COUNTED)
        }


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def largest(sizes: dict[str, int], count: int = 5) -> str:
    """The largest packages with their megabytes; a folder of libraries belongs to its package."""
    whole: dict[str, int] = {}
    for name, size in sizes.items():
        package = name.removesuffix(".libs").split("-")[0].split(".")[0].lstrip("_")
        whole[package] = whole.get(package, 0) + size
    ordered = sorted(whole.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{name} {size / MEGABYTE:.0f}" for name, size in ordered if size >= MEGABYTE)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parser = argparse.ArgumentParser(description="What the core and every extra cost on disk.")
    parser.add_argument("extras", nargs="*", default=sorted(project["optional-dependencies"]))
    core = installed_bytes("")
    total = sum(core.values()) / MEGABYTE
    print("| | MB | of which |\n|---|---:|---|")
    print(f"| core | {total:.0f} | {largest(core, 8)} |", flush=True)
    for extra in parser.parse_args().extras:
        sizes = installed_bytes(extra)
        added = {name: size - core.get(name, 0) for name, size in sizes.items()}
        total = sum(added.values()) / MEGABYTE
        print(f"| `{extra}` | +{total:.0f} | {largest(added)} |", flush=True)


if __name__ == "__main__":
    main()
