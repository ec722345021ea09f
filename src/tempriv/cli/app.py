"""The command line: arguments to one call, and what it gave to the screen or a file."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from tempriv._version import VERSION
from tempriv.cli._parsing import join_pairs, typed_option
from tempriv.cli.mechanism_options import offer_options
from tempriv.errors import TemprivError

# the modules that define the commands; most are named like theirs
COMMANDS = {
    **{name: (name,) for name in ("advise", "after", "attack", "audit", "count", "demo")},
    **{name: (name,) for name in ("landmarks", "leakage", "mechanisms", "release", "report")},
    **{name: (name,) for name in ("reproduce", "serve", "shapes", "simulate", "verify")},
    "budget": ("budget", "budget_plan"),
    "stream": ("stream", "stream_admin"),
}

app = typer.Typer(
    name="tempriv",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Hand out time series about people, with a privacy guarantee that can be checked.",
)
budget = typer.Typer(no_args_is_help=True, help="Limits on what may be spent, and what was.")
app.add_typer(budget, name="budget")


class Interrupted(BaseException):
    """Someone wants the command to stop; not an Exception, so that nothing takes it for a fault."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tempriv {VERSION}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _interrupt(number: int, frame: Any) -> None:
    raise Interrupted


def main() -> None:
    """Run a command; every refusal is a sentence and a status, never a stack trace."""
    # only what was asked for is loaded; for help on all commands, all of them
    asked = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in COMMANDS else None
    for command in COMMANDS if asked is None else [asked]:
        for name in COMMANDS[command]:
            import_module(f"tempriv.cli.{name}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.argv[1:] = join_pairs(sys.argv[1:])
    try:
        offer_options(sys.argv[1:])
        app()
    except TemprivError as refusal:
        _say(refusal.for_command_line(typed_option(sys.argv[1:])))
        status = refusal.exit_status
    except Interrupted:
        _say("interrupted: nothing was left half-written")
        status = 1
    except BrokenPipeError:
        # whoever read our output has gone; there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        _say(f"{where}{problem.strerror or problem}; nothing was left half-written")
        status = 1
    except Exception as problem:
        if os.environ.get("TEMPRIV_DEBUG"):
            raise
        # a message of a library could quote private data, so only the kind of problem is shown
        _say(
            f"a {type(problem).__name__} that should not happen; nothing was left half-written. "
            "Set TEMPRIV_DEBUG=1 to see where it came from"
        )
        status = 1
    else:
        status = 0
    sys.exit(status)


def _say(text: str) -> None:
    print(f"tempriv: {text}", file=sys.stderr)
