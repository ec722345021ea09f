"""``tempriv stream``."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from tempriv.cli import app, options
from tempriv.cli.choosing import Choice, with_choice
from tempriv.cli.marking import remind_of_looking
from tempriv.cli.options import Dataset, KeySeed, LedgerOption, NoLedger, NotPrivate
from tempriv.errors import require

CHUNK = 1 << 20
PAUSE = 0.02  # seconds without input after which what has come is released

EXAMPLE = """
[bold]Example[/bold]: go on after a crash or a restart, each output written once

  producer | tempriv stream --mechanism laplace --epsilon 1 --bounds 0 5 --time time --value kwh
  --series home --state meters.state >> private.csv
"""


@app.command(epilog=EXAMPLE)
@with_choice
def stream(
    choice: Choice,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|jsonl", help="CSV with a header, or JSON lines.")
    ] = "csv",
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to keep the state; keep it as private as the data."
        ),
    ] = None,
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
) -> None:
    """Release readings as they come, from standard input to standard output.

    Values outside the bounds count as the nearest bound: refusing one would tell. A reading that is
    not later than all of its series is passed over. With --state, a stream that was killed goes on
    where it was.
    """
    from tempriv.ledger import Scope
    from tempriv.lines import Lines
    from tempriv.mechanisms.fitting import hides_times
    from tempriv.mechanisms.forms_marked import Marked
    from tempriv.mechanisms.protocol import promise
    from tempriv.randomness import Key
    from tempriv.stream_files import Sink
    from tempriv.streaming import LineStream

    require(form in ("csv", "jsonl"), f"--format {form}: must be csv or jsonl")
    require(
        state is None or choice.time is not None,
        "--state needs --time: readings that are sent again are recognised by their times",
    )
    require(state is None or state.parent.is_dir(), f"{state}: no such directory")
    chosen = choice.make()
    options.refuse_unprotected(chosen, key_seed, not_private)
    remind_of_looking(choice)
    name = dataset or ("standard input" if state is None else state.name)
    lines = Lines(
        cast(Any, form),
        list(choice.columns),
        choice.time,
        choice.series,
        chosen.form.categories,
        chosen.has_status,
        isinstance(chosen.form, Marked),
    )
    flow = LineStream(chosen, lines, Sink(sys.stdout.fileno()), state, key_seed)
    key = Key.generate() if key_seed is None else Key.from_seed(key_seed)
    with options.charging(ledger, no_ledger, name, dataset is None) as book, flow.locked():
        if book is not None:
            # once for the whole stream, whoever and whenever: the same id spends nothing again
            everyone = Scope(
                kind="series", members=None, start=None, end=None, step=None, clock="index"
            )
            try:
                book.charge(name, promise(chosen, key), everyone, flow.release_id, note="stream")
            except BaseException:
                flow.forget_if_new()
                raise
        flow.deliver_pending()
        for text in _whole_lines(sys.stdin.fileno()):
            flow.push(text)
        flow.finish()
    counts = flow.counts
    notes = [
        (counts.passed_over, "were not later than their series and were passed over"),
        (counts.beyond, "were past the length that is promised and were passed over"),
        (counts.unpromised, "were landmarks past the number that was given and were passed over"),
        (counts.unreadable, "could not be read as a reading and were passed over"),
        (counts.waiting, "are held back in the state, and come out as more come in"),
    ]
    for count, what in notes:
        if count:
            print(f"tempriv: {count} lines {what}", file=sys.stderr)
    if hides_times(chosen):
        print(
            "tempriv: a line came out as its reading came in, which tells the pace to who sees "
            "when lines come, or the lines of several series in turn; hand out what was written, "
            "sorted by series",
            file=sys.stderr,
        )
    if flow.repeated:
        print(
            "tempriv: the last lines of the run before were written again, the same bits, because "
            "a pipe cannot tell what has arrived; append to a file (>>) to have each once",
            file=sys.stderr,
        )


def _whole_lines(descriptor: int) -> Iterator[bytes]:
    """Whole lines as they arrive: at once when the source pauses, else in large pieces."""
    held = b""
    while True:
        piece = os.read(descriptor, CHUNK)
        if not piece:
            break
        held += piece
        while len(held) < CHUNK and select.select([descriptor], [], [], PAUSE)[0]:
            piece = os.read(descriptor, CHUNK)
            if not piece:
                break
            held += piece
        cut = held.rfind(b"\n") + 1
        if cut:
            yield held[:cut]
            held = held[cut:]
        if not piece:
            break
    if held.strip():
        yield held + b"\n"
