"""``tempriv simulate``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.cli._options import Json
from tempriv.cli._output import progress, table
from tempriv.cli.app import Interrupted, app
from tempriv.errors import DataError, TemprivError, require

if TYPE_CHECKING:
    from tempriv.collect.simulation.faults import Faults
    from tempriv.collect.simulation.traffic import Summary, Traffic

HELP = (
    "Answer a server's campaigns with made-up devices, through a network that fails.\n\n"
    "Devices are enrolled with an admin's token and answer as real ones do: each with its own "
    "secret and its own noise, in batches, again and again until the server has said what became "
    "of an answer. They go on until no campaign runs. Which devices there are is kept in a file, "
    "so that the next run goes on with them."
)
EXAMPLE = """
[bold]Examples[/bold]: ten thousand devices, beside the server's admin.token

  tempriv simulate --url http://127.0.0.1:8000 --devices 10000

A bad network, and one device in a hundred that never answers

  tempriv simulate --devices 10000 --loss 0.05 --duplicate 0.05 --reorder --delay --gone 0.01
  --close-questions --seed 7
"""
TOKEN = "TEMPRIV_TOKEN"
TOKEN_FILE = Path("admin.token")


@app.command("simulate", help=HELP, epilog=EXAMPLE)
def simulate(
    url: Annotated[str, typer.Option(help="The server.")] = "http://127.0.0.1:8000",
    devices: Annotated[int, typer.Option(metavar="N", min=1, help="So many devices.")] = 1000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"An admin's token; that in {TOKEN}, or in ./{TOKEN_FILE}, by default.",
        ),
    ] = None,
    fleet: Annotated[
        Path, typer.Option(metavar="FILE", help="Which devices there are; made if it is not there.")
    ] = Path("fleet.json"),
    campaign: Annotated[
        str | None, typer.Option(metavar="ID", help="Answer this campaign and no other.")
    ] = None,
    loss: Annotated[
        float, typer.Option(help="Part of requests, and of replies, that get lost.")
    ] = 0,
    duplicate: Annotated[float, typer.Option(help="Part of requests that arrive twice.")] = 0,
    gone: Annotated[float, typer.Option(help="Part of devices that never answer.")] = 0,
    reorder: Annotated[bool, typer.Option("--reorder", help="Requests overtake others.")] = False,
    delay: Annotated[
        bool,
        typer.Option(
            "--delay", help="One request in ten leaves after up to 128 others, in good time."
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="The same devices, and for a campaign the same noise and faults.",
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(metavar="N", min=1, max=4096, help="Answers in a request.")
    ] = 1000,
    close_questions: Annotated[
        bool,
        typer.Option(
            "--close-questions", help="Close a question when all that will answer have answered."
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Answer what is asked now, and nothing that follows.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for further campaigns, until interrupted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Answer a server's campaigns with made-up devices."""
    missing = [name for name in ("httpx", "msgspec") if find_spec(name) is None]
    require(not missing, "tempriv simulate needs more packages: pip install 'tempriv[collect]'")
    require(not (once and follow), "--once and --follow contradict each other")
    from tempriv.collect.device.http import origin_of
    from tempriv.collect.simulation.faults import Faults
    from tempriv.collect.simulation.fleet import keep_fleet, open_fleet
    from tempriv.collect.simulation.traffic import Traffic

    require(
        campaign is None or bool(re.fullmatch("[0-9a-f]{32}", campaign)),
        f"--campaign {campaign!r:.100}: must be an id, 32 of 0-9 and a-f",
    )
    server = origin_of(url, plain=True)
    faults = Faults(
        seed=0 if seed is None else seed,
        loss=loss,
        duplicate=duplicate,
        gone=gone,
        reorder=reorder,
        delay=delay,
    )
    token = _token(token_file)
    known = open_fleet(fleet, server, seed)
    with (
        _progress() as watch,
        Traffic(known, server, token, faults=faults, batch=batch, watch=watch) as traffic,
    ):
        _sign_in(traffic, devices, fleet)
        if devices > len(known):
            traffic.enroll(devices - len(known), lambda made: keep_fleet(fleet, server, made))
        traffic.fleet = known.first(devices)
        try:
            traffic.run(campaign, once=once, follow=follow, close_questions=close_questions)
        except Interrupted:
            _show(traffic.summary, faults, devices, as_json)
            raise
    _show(traffic.summary, faults, devices, as_json)


def _token(named: Path | None) -> str:
    """As named, or from the environment, or beside the server."""
    if named is None and os.environ.get(TOKEN):
        return _token_in(TOKEN, os.environ[TOKEN].encode(errors="surrogateescape"))
    path = named or TOKEN_FILE
    require(
        path.is_file(),
        f"{path}: no such file; name the file that tempriv serve wrote with --token-file, or set "
        f"{TOKEN}",
        DataError,
    )
    return _token_in(str(path), path.read_bytes())


def _token_in(where: str, data: bytes) -> str:
    text = data.strip()
    require(
        text.isascii() and text.decode("ascii", "replace").isprintable() and len(text.split()) == 1,
        f"{where}: holds no token, which is one word such as admin-1 with its secret",
        DataError,
    )
    return text.decode()


def _sign_in(traffic: Traffic, devices: int, fleet: Path) -> None:
    """What would keep devices from answering, said before anything is begun."""
    from tempriv.collect.device.http import UnreachableError

    try:
        role = traffic.role()
    except UnreachableError as reason:
        raise TemprivError(f"{reason}; is it running? tempriv serve starts one") from None
    known = len(traffic.fleet)
    require(
        role == "admin" or (role == "analyst" and devices <= known),
        f"the token is of role {role or 'unknown'}: to enroll devices, an admin's is needed",
        TemprivError,
    )
    enrolled = traffic.enrolled()
    require(
        enrolled >= known,
        f"{fleet}: tells of {known:,} devices, and the server has {enrolled:,}; its store is "
        "another one: remove the file, or name another with --fleet",
        TemprivError,
    )
    if enrolled > known:
        print(
            f"tempriv: the server has {enrolled - known:,} devices that {fleet} does not tell "
            "of: they do not answer here, and questions may wait for them; --close-questions goes "
            "on without",
            file=sys.stderr,
        )


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Which question is asked, and how many have answered."""
    with progress("signing in", counted=True) as update:

        def watch(doing: str, done: int, total: int) -> None:
            campaign, _, question = doing.partition("/")
            name = f"campaign {campaign[:8]} question {question}" if question else doing
            update(description=name, completed=done, total=total or None)

        yield watch


def _show(summary: Summary, faults: Faults, devices: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(summary)))
        return
    names = ("taken", "there_already", "late", "refused", "unsent")
    campaigns: dict[str, list[int]] = {}
    for tally in summary.tallies:
        counts = campaigns.setdefault(tally.question.partition("/")[0], [0] * (1 + len(names)))
        counts[0] += 1
        for place, name in enumerate(names, 1):
            counts[place] += getattr(tally, name)
    if not campaigns:
        print(f"{devices:,} devices are there, and no campaign asked them anything.")
        return
    head = ["campaign", "questions", *(name.replace("_", " ") for name in names)]
    table(head, [[name, *(f"{n:,}" for n in counts)] for name, counts in campaigns.items()])
    done = sum(tally.acknowledged for tally in summary.tallies)
    print(
        f"{devices:,} devices, {done:,} answers acknowledged; {summary.requests:,} requests in "
        f"{summary.seconds:.1f} s"
    )
    print(f"faults: {faults.sentence}; the server was away {summary.waits:,} times")
