"""The walkthroughs of CONTRIBUTING.md, carried out in a scratch copy of the repository.

A walkthrough is a section. In it, a path alone in its paragraph, followed by a code block, is a
file to write; the lines of a ``console`` block that begin with ``$`` are commands to run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
COPIED = ("src", "tests", "docs", "tools", "Makefile", "pyproject.toml", "CONTRIBUTING.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "_build", "reference.html", "golden", "*.egg-info")
FILE = re.compile(r"^`([\w/.-]+)`:?\n\n(`{3,})\w+\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# what make runs, with the interpreter at hand instead of .venv
PYTHON = sys.executable
PROGRAMS = {
    "tempriv": [PYTHON, "-m", "tempriv"],
    "pytest": [PYTHON, "-m", "pytest", "-p", "no:cacheprovider"],
    "python": [PYTHON],
}
TARGETS = {"generate": [PYTHON, "tools/generate.py"]}


@dataclass(frozen=True)
class Walkthrough:
    """What one section of the page asks for.

    Parameters:
        files: contents by path, below the root of the repository.
        commands: what is typed, in order.
    """

    files: dict[str, str]
    commands: list[str]

    @classmethod
    def read(cls, title: str) -> Walkthrough:
        """The walkthrough under a heading of the page."""
        text = PAGE.read_text().partition(f"\n### {title}\n")[2]
        assert text, f"CONTRIBUTING.md has no section {title!r}"
        text = re.split(r"^#{2,3} ", text, maxsplit=1, flags=re.MULTILINE)[0]
        files = {path: content for path, _, content in FILE.findall(text)}
        lines = "\n".join(CONSOLE.findall(FILE.sub("", text))).replace("\\\n", " ").splitlines()
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        assert files and commands
        return cls(files, commands)


class Scratch:
    """A copy of the repository that commands run in.

    Parameters:
        folder: where the copy is made; it must not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=LEFT_OUT)
            else:
                shutil.copy(source, folder / name)

    def carry_out(self, walkthrough: Walkthrough) -> dict[str, str]:
        """Write the files, run the commands; what each command printed."""
        for name, content in walkthrough.files.items():
            path = self.folder / name
            assert not path.exists(), f"{name} is there already: a walkthrough adds files"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return {command: self.run(command) for command in walkthrough.commands}

    def run(self, command: str) -> str:
        """What a command prints; it must not fail."""
        program, *arguments = shlex.split(command, comments=True)
        if program == "make":
            (target,) = arguments
            arguments, start = [], TARGETS[target]
        else:
            start = PROGRAMS.get(program, [program])
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}",
            "XDG_DATA_HOME": str(self.folder / "home"),
            # nothing of the copy is in the cache, and compiling takes longer than running
            "NUMBA_DISABLE_JIT": "1",
            "COLUMNS": "200",
        }
        ran = subprocess.run(
            [*start, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"$ {command}\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}"
        return ran.stdout
