"""``tempriv stream``: readings released as they come."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import AcceptWeak, Dataset, KeySeed, LedgerOption, NoLedger, NotPrivate
from tempriv.cli._output import progress
from tempriv.cli._release_command import remind_of_looking
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions, with_mechanism_options
from tempriv.errors import DataError, require

if TYPE_CHECKING:
    from tempriv.ledger.scope import Scope
    from tempriv.streaming.pipeline import StreamPipeline
    from tempriv.streaming.records import RecordFormat
    from tempriv.streaming.sinks import Sink
    from tempriv.streaming.sources import Source

EXAMPLE = """
[bold]Example[/bold]: go on after a crash or a restart, each output written once

  producer | tempriv stream --mechanism laplace --epsilon 1 --bounds 0 5 --time time --value kwh
  --series home --state meters.state >> private.csv

[bold]Example[/bold]: follow a file that grows, and look after the stream from another terminal

  tempriv stream --mechanism laplace --epsilon 1 --bounds 0 5 --time time --value kwh --series home
  --input meters.csv --follow --output private.csv --state meters.state

  tempriv stream status meters.state
"""


class RunByDefault(typer.core.TyperGroup):
    """``tempriv stream --mechanism ...`` runs a stream; other words name what to do with one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``args`` that begin with an option for those of ``run``, in the context ``ctx``."""
        if args and args[0].startswith("-") and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


stream = typer.Typer(
    cls=RunByDefault,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Release readings as they come, for as long as they come; all options: "
    "tempriv stream run --help",
    epilog=EXAMPLE,
)
app.add_typer(stream, name="stream")


@stream.command(epilog=EXAMPLE)
@with_mechanism_options("stream")
def run(
    choice: MechanismOptions,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|jsonl", help="CSV with a header, or JSON lines.")
    ] = "csv",
    source: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="FILE|redis://HOST:PORT/DB?stream=NAME",
            help="Where readings come from; standard input if not given.",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for more lines at the end of the input file.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FILE|redis://HOST:PORT/DB?stream=NAME",
            help="Where released readings go, added at its end; standard output if not given.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to keep the state; keep it as private as the data."
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Readings are for steps such as 15min, 1h or 24h, for dates 1d, for whole numbers "
            "60, counted from midnight, 1970-01-01 or 0; those at other times are put aside. Lets "
            "a ledger add the stream up with tables.",
        ),
    ] = None,
    aside: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Private file for readings that cannot be released, and why; beside the state if "
            "not given.",
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Serve counts for Prometheus on 127.0.0.1 at this port."),
    ] = None,
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    accept_weak: AcceptWeak = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
) -> None:
    """Release readings of any number of interleaved series as they come.

    Values outside the bounds count as the nearest bound: refusing one would tell. A reading that is
    not later than all of its series, or that cannot be read, is put aside and never released. With
    --state, a stream that was killed goes on where it was.
    """
    from tempriv.integrations import connector
    from tempriv.mechanisms.landmarks.domain import WithLandmarks
    from tempriv.mechanisms.perturb import guarantee_of_run
    from tempriv.sampling.keys import Key
    from tempriv.streaming.pipeline import StreamPipeline
    from tempriv.streaming.records import RecordFormat
    from tempriv.streaming.sinks import DeadLetterFile
    from tempriv.streaming.state_file import StateFile

    require(form in ("csv", "jsonl"), f"--format {form}: must be csv or jsonl")
    require(
        state is None or choice.time is not None,
        "--state needs --time: readings that are sent again are recognized by their times",
    )
    require(
        step is None or choice.time is not None,
        "--step needs --time: it is for the times of readings",
    )
    for option, file in (("state", state), ("aside", aside)):
        require(file is None or file.parent.is_dir(), f"{file}: no such directory")
        require(
            file is None or not file.is_dir(),
            f"--{option} {file}: is a directory; name a file, in it if you like",
        )
    require(
        not follow or (source is not None and connector(source) is None),
        "--follow: goes with --input FILE; other inputs are waited for anyway",
    )
    require(
        source is None or source != output,
        f"--output {output}: is the input; released readings go elsewhere",
    )
    _refuse_one_file_for_two(source, output, state, aside, ledger)
    chosen = choice.make()
    _options.refuse_unprotected(chosen, key_seed, not_private)
    _options.refuse_weak(chosen.guarantee, key_seed, accept_weak)
    remind_of_looking(choice)
    name = dataset or _charged_before(state) or _shown(source)
    name = name or ("standard input" if state is None else state.name)
    record_format = RecordFormat(
        cast(Any, form),
        list(choice.columns),
        choice.time,
        choice.series,
        chosen.domain.categories,
        chosen.has_status,
        isinstance(chosen.domain, WithLandmarks),
    )
    put_aside = None if aside is None else DeadLetterFile(aside)
    store = None if state is None else StateFile(state)
    everyone = _times_of(step, record_format)
    key = Key.generate() if key_seed is None else Key.from_seed(key_seed)
    with contextlib.ExitStack() as stack:
        where = _output(output, record_format, stack)
        pipeline = StreamPipeline(
            chosen, record_format, where, store, key_seed, put_aside, everyone.step, dataset=name
        )
        reading = _input(source, follow, record_format, state)
        book = stack.enter_context(_options.charging(ledger, no_ledger, name, dataset is None))

        def charge() -> None:
            # once for the whole stream, whoever and whenever: the same id spends nothing again
            assert book is not None
            spending = None
            if chosen.domain.marked:
                from tempriv.releases.spending import stated_spending

                spending = stated_spending(chosen)
            guarantee = guarantee_of_run(chosen, key)
            what = name, guarantee, everyone, pipeline.release_id
            book.warn_of_repetition(*what, spending=spending)
            book.charge(*what, note="stream", spending=spending)

        pipeline.charge = None if book is None else charge
        stack.enter_context(pipeline.locked())
        _run(pipeline, reading, metrics)
    _tell(pipeline)
    require(
        not getattr(reading, "moved", False),
        f"{source}: was moved away or replaced, and has been read to its end. Read the new file as "
        "a new stream, with another --state and --output; files that are replaced regularly are "
        f"followed by: tail -F {source} | tempriv stream ... without --input",
        DataError,
    )


def _times_of(step: str | None, record_format: RecordFormat) -> Scope:
    """All times at which a stream may have readings, and whose they are: anyone's."""
    from tempriv.data.clock import Clock
    from tempriv.ledger.scope import Scope
    from tempriv.streaming.records import LARGEST_TICK

    if step is None:
        return Scope(clock="index")
    kind = "datetime"
    if len(record_format.time) == 1 and not step.strip().isdigit():
        kind = "date" if step.strip().lower().endswith("d") else "datetime"
    elif len(record_format.time) == 1:
        kind = "integer"
    clock = Clock(tuple(record_format.time), cast(Any, kind), "", kind)
    ticks = clock.parse_step(step)
    return Scope(start=-LARGEST_TICK // ticks * ticks, step=ticks, clock=clock.name)


def _refuse_one_file_for_two(
    source: str | None,
    output: str | None,
    state: Path | None,
    aside: Path | None,
    ledger: Path | None,
) -> None:
    """No file of a stream may be another one too: private readings would get out, or be lost."""
    from tempriv.integrations import connector
    from tempriv.streaming.admin import ENDINGS
    from tempriv.streaming.state_file import companion

    used: list[tuple[str, Path | int]] = []
    for what, where, descriptor in (("input", source, sys.stdin), ("output", output, sys.stdout)):
        if where is None:
            with contextlib.suppress(OSError, ValueError):  # no file at all
                used.append((f"the standard {what}", descriptor.fileno()))
        elif connector(where) is None:
            used.append((f"--{what}", Path(where)))
    if state is not None:
        used += [
            (f"the state's {companion(state, end).name}", companion(state, end)) for end in ENDINGS
        ]
    own = None if state is None else companion(state, ".aside.jsonl").resolve()
    if aside is not None and aside.resolve() != own:
        used.append(("--aside", aside))
    if ledger is not None:
        used.append(("--ledger", ledger))
    known: dict[Any, str] = {}
    for what, file in used:
        identity = _identity(file)
        if identity is not None:
            require(
                identity not in known,
                f"{known.get(identity)} and {what} are the same file; give each a file of its own",
            )
            known[identity] = what


def _identity(file: Path | int) -> Any:
    """What tells a file from others, whatever it is called; None of what holds nothing."""
    try:
        status = os.fstat(file) if isinstance(file, int) else file.stat()
    except FileNotFoundError:
        return Path(str(file)).resolve()
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _charged_before(state: Path | None) -> str | None:
    """What the ledger charged when a stream started, or one that it was restored from."""
    from tempriv.streaming.state_file import open_readonly, read_about

    if state is None or not state.exists() or not state.stat().st_size:
        return None
    with open_readonly(state) as db:
        return cast("str | None", read_about(db, state).get("dataset"))


def _shown(source: str | None) -> str | None:
    """The name of an input, without a password that may stand in its address."""
    from tempriv.integrations import connector

    server = connector(source)
    return source if source is None or server is None else server.public_address(source)


def _say(sentence: str) -> None:
    print(f"tempriv: {sentence}", file=sys.stderr)


def _input(
    source: str | None, follow: bool, record_format: RecordFormat, state: Path | None
) -> Source:
    from tempriv.integrations import connector
    from tempriv.streaming.sources import FileSource, PipeSource

    if source is None:
        return PipeSource(sys.stdin.fileno(), record_format)
    server = connector(source)
    if server is None:
        return FileSource(Path(source), record_format, follow)
    reading = server.open_source(source, record_format, _say)
    scheme = source.partition("://")[0]
    require(
        state is not None or not reading.needs_state,
        f"--input {scheme}://: needs --state, to know what was consumed",
    )
    return reading


def _output(output: str | None, record_format: RecordFormat, stack: contextlib.ExitStack) -> Sink:
    from tempriv.integrations import connector
    from tempriv.streaming.sinks import DescriptorSink

    if output is None:
        return DescriptorSink(sys.stdout.fileno())
    server = connector(output)
    if server is not None:
        return server.open_sink(output, record_format, _say)
    require(Path(output).parent.is_dir(), f"{Path(output).parent}: no such directory")
    require(not Path(output).is_dir(), f"--output {output}: is a directory; name a file")
    made = not Path(output).exists()
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(output, flags, 0o666)

    def close(kind: Any, *more: object) -> None:
        if made and kind is not None and not os.fstat(descriptor).st_size:
            Path(output).unlink(missing_ok=True)  # of a stream that was not allowed to start
        os.close(descriptor)

    stack.push(close)
    return DescriptorSink(descriptor)


def _run(pipeline: StreamPipeline, reading: Source, metrics: int | None) -> None:
    """Release until the input ends or someone wants the stream to stop."""
    from tempriv.streaming.metrics import serve_metrics

    with (
        _stop_by_signal() as stopping,
        serve_metrics(pipeline, metrics) as port,
        progress("waiting for readings", spinner=True) as update,
    ):
        if port is not None:
            print(f"tempriv: counts at http://127.0.0.1:{port}/metrics", file=sys.stderr)
        pipeline.sink.stop_waiting_when(stopping)
        reading.resume(pipeline.position)
        pipeline.deliver_pending()
        for batch, position in reading.batches(stopping):
            pipeline.push(batch, position)
            reading.acknowledge(position)
            counts = pipeline.counts
            update(
                description=f"{counts.released:,} released, {counts.put_aside:,} put aside, "
                f"{len(pipeline.series):,} series"
            )
        pipeline.finish()


@contextlib.contextmanager
def _stop_by_signal() -> Iterator[Any]:
    """A signal ends the stream after the block at hand; a second one ends it at once."""
    asked: list[int] = []
    before: dict[int, Any] = {}

    def ask(number: int, frame: Any) -> None:
        asked.append(number)
        if len(asked) > 1:
            before[number](number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, ask)
    try:
        yield lambda: bool(asked)
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)


def _tell(pipeline: StreamPipeline) -> None:
    """What became of lines that were not released, and what to know of the others."""
    from tempriv.releases.blocks import hides_times
    from tempriv.streaming.counts import REASONS

    counts = pipeline.counts
    notes = [
        (counts.again, "sent again after a restart, and passed over"),
        *((getattr(counts, name), f"not released: {why}") for name, why in REASONS.items()),
        (counts.waiting, "held back in the state; they come out as more come in"),
    ]
    for count, what in notes:
        if count:
            print(f"tempriv: {count} {what}", file=sys.stderr)
    if counts.put_aside and pipeline.dead_letters is not None:
        print(
            f"tempriv: what was not released is in {pipeline.dead_letters.path}, for you",
            file=sys.stderr,
        )
    if hides_times(pipeline.mechanism):
        print(
            "tempriv: a line came out as its reading came in, which tells the pace to who sees "
            "when lines come, or the lines of several series in turn; hand out what was written, "
            "sorted by series",
            file=sys.stderr,
        )
    if pipeline.may_repeat:
        print(
            "tempriv: the last lines of the run before were written again, the same bits, because "
            "a pipe cannot tell what has arrived; append to a file (>>) to have each once",
            file=sys.stderr,
        )
