"""``tempriv serve``: a server that collects what devices have protected themselves."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli.app import app
from tempriv.errors import UsageError, require

EXAMPLE = """
[bold]Example[/bold]: a server on this machine, and ten thousand made-up devices that answer it

  tempriv serve --port 8000

  tempriv simulate --url http://127.0.0.1:8000 --devices 10000

Open http://127.0.0.1:8000 in a browser and sign in with the token in admin.token.
"""
REQUIRED_PACKAGES = ("fastapi", "uvicorn", "msgspec", "sqlalchemy", "httpx")
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


@app.command(epilog=EXAMPLE)
def serve(
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where everything is kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
        ),
    ] = "sqlite:///tempriv-collect.db",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of admin.token, the first admin's, and of signing.key, which results are "
            "signed with; beside the store, or here, if not given.",
        ),
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="What results say of themselves: curator, contact, license and more. tempriv "
            "budget about --template prints all.",
        ),
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A proxy in front whose word is taken for who is calling (X-Forwarded-For).",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request.")] = False,
) -> None:
    """Run the server that collects answers of devices: campaigns, their page, their results.

    No raw value ever gets here: devices protect their answers themselves.
    """
    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    require(not missing, "tempriv serve needs more packages: pip install 'tempriv[collect]'")
    require(
        store.startswith("sqlite") or find_spec("psycopg") is not None,
        "PostgreSQL needs one more package: pip install 'tempriv[collect]'",
    )
    from tempriv.collect.server.launch import run

    place = home or _beside(store)
    require(place.is_dir(), f"{place}: no such directory")
    if host not in LOCAL_HOSTS:
        print(
            f"tempriv: listening on {host} without TLS; put a proxy with TLS in front (see the "
            "page on collecting)",
            file=sys.stderr,
        )

    statements = None
    if about is not None:
        from tempriv.releases.evidence import read_statements

        statements = read_statements(about)

    def tell(address: str, token: Path | None, public: str) -> None:
        print(f"Collecting at {address}")
        print(f"  store     {_shown(store)}")
        print(f"  signs as  {public}")
        if token is not None:
            print(f"  sign in   with the token in {token}")
        print("  stop      with Ctrl-C", flush=True)

    run(store, place, host, port, proxy=proxy, quiet=quiet, statements=statements, tell=tell)


def _beside(store: str) -> Path:
    if store.startswith("sqlite:///"):
        return Path(store.removeprefix("sqlite:///")).parent
    return Path()


def _shown(store: str) -> str:
    """Without a password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        address = make_url(store).difference_update_query(["password"])
        return address.render_as_string(hide_password=True)
    except ArgumentError:
        raise UsageError("--store: not an address; such as sqlite:///FILE") from None
