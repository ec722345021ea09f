"""``tempriv stream status|stop|backup|restore``: looking after a stream."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempriv.cli._options import Json
from tempriv.cli.stream import stream

if TYPE_CHECKING:
    from tempriv.streaming.admin import StreamStatus

State = Annotated[Path, typer.Argument(metavar="STATE", help="The file given as --state.")]

STATUS = """
[bold]Example[/bold]: how a stream stands, also while it runs

  tempriv stream status meters.state
"""
STOP = """
[bold]Example[/bold]: stop a stream before the machine is switched off, and go on later

  tempriv stream stop meters.state

  tempriv stream ... --state meters.state
"""
BACKUP = """
[bold]Example[/bold]: a copy every night, on another disk, while the stream runs

  tempriv stream backup meters.state /mnt/other/meters-monday.copy
"""
RESTORE = """
[bold]Example[/bold]: the disk with the state is gone; go on after the last copy, into a new file

  tempriv stream restore /mnt/other/meters-monday.copy meters-2.state

  tempriv stream ... --state meters-2.state --output private-2.csv
"""

ASIDE = {
    "late": "too late",
    "repeated": "at a time that was there already",
    "beyond": "past the guaranteed length",
    "unpromised": "landmarks past their number",
    "unreadable": "not readable",
}


@stream.command(epilog=STATUS)
def status(state: State, as_json: Json = False) -> None:
    """Say how a stream stands: whether it runs, what it guarantees, how far it has come.

    Only looks: a stream that is running does not notice.
    """
    from tempriv.streaming.admin import status as look

    stream_status = look(state)
    if as_json:
        print(
            json.dumps(
                {"state": str(state), **asdict(stream_status), "age": round(stream_status.age, 3)}
            )
        )
        return
    print(f"{state}: {_running(stream_status)}")
    for name, what in _lines(stream_status):
        print(f"  {name:<12}{what}")


@stream.command(epilog=STOP)
def stop(
    state: State,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait until it has stopped.")
    ] = 60.0,
) -> None:
    """Ask a running stream to stop: it finishes the block at hand and saves everything.

    A stream that nobody reads from may be stuck in writing; asked twice, it stops at once and loses
    nothing either.
    """
    from tempriv.streaming.admin import stop as stop_stream

    stopped = stop_stream(state, wait)
    look = stopped.status
    print(
        f"Stopped {state}: process {stopped.process} ended after {stopped.seconds:.1f} s, with "
        f"{look.counts.get('released', 0):,} readings released"
    )
    if look.everything_out:
        print("  everything that was saved is out; the same command goes on from here")
    else:
        print("  its last block is saved and may not be out; the same command hands it out first")


@stream.command(epilog=BACKUP)
def backup(
    state: State,
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="A new file, as private.")],
) -> None:
    """Write a copy from which a stream can begin again if its state is lost.

    It works while the stream runs. The copy holds the names of series and their last times, no key,
    no reading and no noise, so that nothing old can be used again.
    """
    from tempriv.streaming.admin import back_up

    copied = back_up(state, copy)
    print(f"Copied {state} to {copy}: {copied.series:,} series, as saved {_moment(copied.saved)}")
    print(f"  if the state is lost: tempriv stream restore {copy} NEW.state")


@stream.command(epilog=RESTORE)
def restore(
    copy: Annotated[
        Path, typer.Argument(metavar="COPY", help="Made by tempriv stream backup, or an old state.")
    ],
    state: Annotated[Path, typer.Argument(metavar="NEW_STATE", help="A new file.")],
) -> None:
    """Begin again after a loss, as a new release with new noise.

    No time is released again that was released before the copy was made. What came after it is, if
    it is sent again: twice, with different noise. So the stream is charged a second time.
    """
    from tempriv.streaming.admin import restore as restore_stream

    copied = restore_stream(copy, state)
    print(f"Made {state} from {copy}: {copied.series:,} series, as saved {_moment(copied.saved)}")
    print("  up to the copy      nothing of it is released again")
    print("  after the copy      readings that are sent again are released a second time, with new")
    print("                      noise: both releases together tell more than one")
    print("  so it is charged    once more, when it starts; your budget must have room for it")
    if copied.held_back:
        print(
            f"  held back           {copied.held_back:,} readings waited in the stream when it was "
            "copied; they are not released"
        )
    print(f"  go on with          the same options, --state {state} and a new output")


def _running(status: StreamStatus) -> str:
    if status.process is not None:
        return f"running, process {status.process}"
    if not status.everything_out:
        return "not running; its last block may not be out yet, the next run hands it out"
    return "not running"


def _lines(status: StreamStatus) -> list[tuple[str, str]]:
    counts = status.counts
    aside = {words: counts.get(name, 0) for name, words in ASIDE.items()}
    reasons = ", ".join(f"{count:,} {words}" for words, count in aside.items() if count)
    lines = [
        ("guarantee", f"{status.guarantee} ({status.mechanism})"),
        ("series", f"{status.series:,}"),
        ("released", _readings(counts.get("released", 0))),
        ("put aside", _readings(sum(aside.values())) + (f": {reasons}" if reasons else "")),
        ("held back", _held_back(counts.get("waiting", 0))),
        ("input", _place(status.input, "offset", "read up to byte {:,}")),
        ("output", _place(status.output, "size", "at byte {:,}")),
        ("saved", f"{_ago(status.age)} (commit {status.commit:,})"),
        ("files", ", ".join(f"{name} {_size(size)}" for name, size in status.files.items())),
    ]
    if counts.get("again"):
        again = f"{_readings(counts['again'])} after a restart, passed over"
        lines.insert(5, ("sent again", again))
    if status.dataset is not None:
        lines.insert(1, ("charged to", status.dataset))
    if status.copied is not None:
        lines.append(("restored", f"from a copy as saved {_moment(status.copied)}"))
    return lines


def _readings(count: int) -> str:
    return f"{count:,} reading" + "s" * (count != 1)


def _held_back(count: int) -> str:
    return _readings(count) + (", until more come" if count else "")


def _place(position: Any, name: str, words: str) -> str:
    """Where an input or output stands."""
    if position is None:
        return "from the start, or sent by a pipe"
    if isinstance(position, dict) and isinstance(position.get(name), int):
        return words.format(position[name])
    if isinstance(position, dict):
        return ", ".join(f"{key} {value}" for key, value in position.items())
    return str(position)


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _moment(at: float) -> str:
    return datetime.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _size(size: int) -> str:
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= length:
            return f"{size / length:.3g} {unit}"
    return f"{size} bytes"
