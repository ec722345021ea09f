"""``tempriv keys``: the key that releases are signed with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import _options
from tempriv.cli.app import keys
from tempriv.errors import require

KeyFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="File of the key; your own by default."),
]

CREATE = """
[bold]Example[/bold]: a key, once; releases are signed with it from then on

  tempriv keys create

  tempriv release meters.csv private.csv --mechanism laplace --epsilon 1 --bounds 0 5 ...

Give the line that it prints to whoever gets your releases, by another way than the releases:

  tempriv verify private.csv --key ed25519:...
"""


def _place(file: Path | None) -> Path:
    from tempriv.releases.description import default_key_path

    return file or default_key_path()


@keys.command(epilog=CREATE)
def create(file: KeyFile = None) -> None:
    """Make a key for signatures, in a file that only you can read; prints the public key."""
    from tempriv.releases.signature import SigningKey

    path = _place(file)
    key = SigningKey.create(path)
    print(key.public)
    print(f"  secret    {path}; whoever has this file can sign in your name, so keep a copy safe")
    print("  public    the first line; recipients need it: tempriv verify FILE --key ed25519:...")


@keys.command()
def show(
    file: KeyFile = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pem", help="Write the public key as PEM, for other programs."),
    ] = None,
    force: _options.Force = False,
) -> None:
    """Print the public key, which whoever verifies your releases needs."""
    from tempriv.releases.signature import SigningKey

    path = _place(file)
    require(path.exists(), f"{path}: there is no key yet; tempriv keys create makes one")
    if export is not None:
        _options.refuse_file(export, (".pem", ".pub"), force, "a public key ends in")
    key = SigningKey.load(path)
    print(key.public)
    if export is not None:
        key.export_public(export)
