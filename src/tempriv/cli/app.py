"""The command line: arguments to one call, and what it gave to the screen or a file."""

from __future__ import annotations

import copy
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from tempriv._version import VERSION
from tempriv.cli._options import join_pairs, typed_option
from tempriv.cli.mechanism_options import offer_options
from tempriv.errors import WEAK, TemprivError, TemprivWarning

PANELS = {
    "Begin": ("demo", "datasets", "mechanisms", "advise"),
    "Release": ("summarize", "release", "count", "stream", "shapes", "landmarks", "after"),
    "Account for it and check it": (
        "budget",
        "keys",
        "verify",
        "report",
        "leakage",
        "audit",
        "attack",
    ),
    "Collect from devices": ("serve", "simulate"),
    "Research": ("reproduce",),
}
"""The commands, as help lists them."""
# the modules that define a command, where there are more than the one of its name
MODULES = {"budget": ("budget", "budget_plan"), "stream": ("stream", "stream_admin")}

app = typer.Typer(
    name="tempriv",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Hand out time series about people, with a privacy guarantee that can be checked.",
)
budget = typer.Typer(
    no_args_is_help=True, help="Limit the privacy loss of a dataset, and see what was spent."
)
app.add_typer(budget, name="budget")
keys = typer.Typer(no_args_is_help=True, help="Sign releases, so that a forged one shows.")
app.add_typer(keys, name="keys")


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


def _commands_for(asked: str) -> typer.Typer:
    """Return the app with the command that was asked for alone; with all, for help, if it is none.

    Typer builds the parser of every command of an app, which takes longer than most commands.
    """
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    wanted = [asked] if asked in panels else list(panels)
    for command in wanted:
        for module in MODULES.get(command, (command,)):
            import_module(f"tempriv.cli.{module}")
    registered: list[Any] = [*app.registered_commands, *app.registered_groups]
    names = {id(info): info.name or getattr(info.callback, "__name__", "") for info in registered}
    for info in registered:
        info.rich_help_panel = panels[names[id(info)]]
    chosen = copy.copy(app)
    chosen.registered_commands = [i for i in app.registered_commands if names[id(i)] in wanted]
    chosen.registered_groups = [i for i in app.registered_groups if names[id(i)] in wanted]
    return chosen


def _alarm(sentence: str) -> None:
    from tempriv.cli._output import alarm

    alarm(sentence)


def main() -> None:
    """Run a command; every refusal is a sentence and a status, never a stack trace."""
    commands = _commands_for(sys.argv[1] if len(sys.argv) > 1 else "")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    sys.argv[1:] = join_pairs(sys.argv[1:])
    try:
        offer_options(sys.argv[1:])
        with _warnings_in_red():
            commands()
    except TemprivError as refusal:
        sentence = refusal.for_command_line(typed_option(sys.argv[1:]))
        if refusal.code == WEAK:
            _alarm(f"tempriv: {sentence}")
        else:
            _say(sentence)
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


@contextmanager
def _warnings_in_red() -> Iterator[None]:
    """Show what this package warns of as one line, every time, in red on a terminal."""
    with warnings.catch_warnings():
        shown_otherwise = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **other: Any) -> None:
            if issubclass(category, TemprivWarning):
                _alarm(f"tempriv: WARNING: {message}")
            else:
                shown_otherwise(message, category, *where, **other)

        warnings.simplefilter("always", TemprivWarning)
        warnings.showwarning = show
        yield


def _say(text: str) -> None:
    print(f"tempriv: {text}", file=sys.stderr)
