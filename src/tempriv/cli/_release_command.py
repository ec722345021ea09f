"""What commands that release have in common: the ledger, the output, its reports and a summary."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempriv.cli import _options
from tempriv.cli._options import (
    About,
    AcceptWeak,
    Dataset,
    DryRun,
    Force,
    Json,
    KeySeed,
    LedgerOption,
    NoLedger,
    NotPrivate,
    OtherData,
    Output,
    PrivateReport,
    Report,
    Sign,
    Source,
    TargetError,
)
from tempriv.errors import DataError, TemprivError, require

if TYPE_CHECKING:
    from tempriv.cli.mechanism_options import MechanismOptions
    from tempriv.leakage.leakage import Correlation
    from tempriv.mechanisms.base import Mechanism
    from tempriv.releases.run import ReleaseRun
    from tempriv.sampling.keys import Key


@dataclass(frozen=True, kw_only=True)
class ReleaseCommand:
    """One release to a file: the options that commands which release have in common."""

    source: Source
    output: Output
    target_error: TargetError = None
    dataset: Dataset = None
    other_data: OtherData = None
    ledger: LedgerOption = None
    no_ledger: NoLedger = False
    report: Report = None
    private_report: PrivateReport = None
    about: About = None
    sign: Sign = None
    dry_run: DryRun = False
    force: Force = False
    accept_weak: AcceptWeak = False
    key_seed: KeySeed = None
    not_private: NotPrivate = False
    as_json: Json = False

    @functools.cached_property
    def name(self) -> str:
        """Of the dataset that is charged."""
        return _options.dataset_of(self.source, self.dataset, self.ledger, self.no_ledger)

    def preview(self, columns: tuple[str, ...], chosen: Mechanism) -> None:
        """Cost, expected error and what would be left, without a look at any value.

        Parameters:
            columns: the value columns.
            chosen: the mechanism.
        """
        from tempriv.privacy import serialization
        from tempriv.privacy.guarantees import Guarantee
        from tempriv.releases.meaning import meaning_of
        from tempriv.releases.run import check_early

        standing: list[str] = []
        book = _options.existing_ledger(self.ledger, self.no_ledger)
        if book is not None and self.name in book.datasets():
            standing = _options.standing(book.show(self.name))
            check_early(book, self.name, chosen.guarantee, chosen)
        errors = [
            {"column": column, "error": error, "measure": chosen.error_name}
            for column, error in zip(columns, chosen.errors, strict=True)
        ]
        meaning = meaning_of(chosen, chosen.guarantee, None)
        better = chosen.less_noisy()
        if self.as_json:
            plan: dict[str, Any] = {
                "mechanism": serialization.encode(chosen),
                "expected_error": errors,
                "guarantee": serialization.encode(chosen.guarantee),
                "meaning": meaning,
                "budget": standing,
            }
            if better is not None:
                plan["less_noisy"] = {
                    "mechanism": serialization.encode(better),
                    "expected_error": list(better.errors),
                }
            print(json.dumps(plan))
            return
        guarantee = chosen.guarantee
        print("Nothing was released; it would")
        if isinstance(guarantee, Guarantee):
            print(f"  cost      {guarantee.loss}, for {guarantee.unit.sentence}")
        print_guarantee(meaning)
        if guarantee.protects_little and self.key_seed is None and not self.accept_weak:
            _alarm("  needs     --accept-weak: without it this is refused")
        _print_errors(errors)
        if better is not None:
            few = ", ".join(f"{error:.4g}" for error in better.errors)
            epsilon = serialization.encode(better)["epsilon"]
            print(
                f"  less      --mechanism {better.command.name} --epsilon {epsilon:.15g} keeps the "
                f"same with an error of {few}"
            )
        for line in standing or ["no budget is kept for this dataset yet"]:
            print(f"  budget    {line}")

    def run(
        self,
        chosen: Mechanism,
        settings: dict[str, Any],
        open_run: Callable[[Key | None, Any], ReleaseRun],
        correlation: Correlation | None = None,
    ) -> None:
        """Release, charge and report.

        Parameters:
            chosen: the mechanism.
            settings: whatever else a second run would have to repeat to be the same.
            open_run: makes the run of a key, which shows a watcher its blocks.
            correlation: what the reports say of correlated readings is computed from this.
        """
        from tempriv.releases.to_file import release_file, request_of
        from tempriv.sampling.keys import Key

        _options.refuse_weak(chosen.guarantee, self.key_seed, self.accept_weak)
        _options.refuse_pages(self.report, self.private_report, self.force)
        statements = _options.statements(self.about)
        signing_key = _options.signing_key(self.sign)
        settings = {**settings, "dataset": self.name, "seed": self.key_seed}
        unnamed = self.dataset is None
        with _options.charging(self.ledger, self.no_ledger, self.name, unnamed) as book:
            samples = _samples(self.report, self.private_report, chosen)
            key = None if self.key_seed is None else Key.from_seed(self.key_seed)
            run = open_run(key, _watching(samples))
            with _rows_released() as advance:
                about = release_file(
                    run,
                    self.output,
                    ledger=book,
                    dataset=None if book is None else self.name,
                    request=request_of(self.source, chosen, settings),
                    note=str(self.output),
                    force=self.force,
                    statements=statements,
                    signing_key=signing_key,
                    progress=advance,
                    other_data=self.other_data or (),
                )
            if about.get("finished_interrupted"):
                # this run saw no rows: the public report comes from the output, the private one
                # cannot
                from tempriv.releases.release import read
                from tempriv.report.excerpt import PublicSample

                pages = [page for page in (self.report,) if page]
                samples = [(page, PublicSample.of(read(self.output))) for page in pages]
            for page, sample in samples:
                _write_page(page, about, sample, self.output, correlation)
            _options.tell_findings(book, about["release"])
            budget_left = None if book is None else book.show(self.name)
        pages = [page for page, _ in samples]
        _print_release(about, self.output, pages, budget_left, self.as_json)


def print_guarantee(meaning: dict[str, Any]) -> None:
    """Print what is guaranteed, in red if it protects practically nothing.

    Parameters:
        meaning: of the guarantee, as ``meaning_of`` gives it.
    """
    line = f"  guarantee {meaning['headline']}"
    if meaning["protects_little"]:
        _alarm(line)
    else:
        print(line)


def _alarm(sentence: str) -> None:
    if not sys.stdout.isatty():
        print(sentence)
        return
    from tempriv.cli._output import alarm

    alarm(sentence, to_errors=False)


def _print_errors(errors: list[dict[str, Any]]) -> None:
    for error in errors:
        print(f"  error     {error['column']}: {error['error']:.4g} ({error['measure']})")


def _write_page(
    page: Path,
    about: dict[str, Any],
    sample: Any,
    output: Path,
    correlation: Correlation | None,
) -> None:
    from tempriv.report.excerpt import PrivateSample
    from tempriv.report.page import write_report

    private = isinstance(sample, PrivateSample)
    try:
        leakage = None if correlation is None else correlation.of(output, private)
        write_report(page, about, sample, force=True, leakage=leakage)
    except (OSError, TemprivError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem.message
        raise TemprivError(
            f"{page}: {why}; the release itself is complete in {output}, and tempriv report makes "
            "its page"
        ) from None


def _samples(
    report: Path | None, private_report: Path | None, chosen: Any
) -> list[tuple[Path, Any]]:
    if report is None and private_report is None:
        return []
    from tempriv.report.excerpt import PrivateSample, PublicSample

    samples: list[tuple[Path, Any]] = []
    if report is not None:
        samples.append((report, PublicSample()))
    if private_report is not None:
        samples.append((private_report, PrivateSample(chosen)))
    return samples


def _watching(samples: list[tuple[Path, Any]]) -> Any:
    if not samples:
        return None

    def watch(private: Any, released: Any) -> None:
        for _, sample in samples:
            sample.watch(private, released)

    return watch


@contextmanager
def _rows_released() -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from tempriv.cli._output import progress

    done = 0
    with progress("reading and sorting", spinner=True) as update:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            update(description=f"{done:,} rows released")

        yield advance


def _print_release(
    about: dict[str, Any], output: Path, pages: list[Path], budget: Any, as_json: bool
) -> None:
    from tempriv.releases.description import SIGNATURE, owner_evidence_path, owner_path
    from tempriv.releases.meaning import meaning_in

    if as_json:
        print(json.dumps(about))
        return
    if about.get("finished_interrupted"):
        print("An earlier run was interrupted after it had paid; its output is now in place.")
        print("(No private report of it can be made any more.)")
    if about.get("counted"):
        print(f"Released counts of {about['rows']:,} time steps to {output}")
    else:
        print(f"Released {about['rows']:,} rows of {about['series']:,} series to {output}")
    print_guarantee(meaning_in(about))
    _print_errors(about["expected_error"])
    print("  not protected: " + "; ".join(about["not_protected"]))
    for line in _options.standing(budget):
        print(f"  budget    {line}")
    for page in pages:
        print(f"  report    {page}")
    if "over" in about["mechanism"]:
        print(f"  for you   {owner_path(output)}: landmarks, and what each reading spent")
    if owner_evidence_path(output).exists():
        print(f"  for you   {owner_evidence_path(output)}: how well known series are found in it")
    if SIGNATURE in about:
        print(f"  signed by {about[SIGNATURE]['public_key']}")
    print(f"  check it  tempriv verify {output}")


def admit_looking(choice: MechanismOptions, source: Path) -> None:
    """Where it is written that released values decided on the landmarks, the guarantee is gone.

    Parameters:
        choice: the mechanism, whose options then say so.
        source: the table, beside which it is written.
    """
    column = choice.own.get("landmarks")
    if column is None:
        return
    from tempriv.landmarks.provenance import provenance_of

    note = provenance_of(source).get(column)
    if note is not None and set(note.looked_at) & set(choice.value):
        choice.own["landmarks_from_values"] = True


def require_known_landmarks(choice: MechanismOptions, source: Path, given: bool) -> None:
    """Refuse marks that nobody vouches for: where values decided, the guarantee does not hold.

    Parameters:
        choice: the mechanism.
        source: the table, beside which it is written how the landmarks were chosen.
        given: whether the owner says that no released value decided.
    """
    column = choice.own.get("landmarks")
    if column is None or choice.mechanism == "count-bound-landmarks":
        require(not given, "--landmarks-given: goes with landmarks that are given")
        return
    looked = choice.own.get("landmarks_from_values")
    require(
        not (given and looked),
        "--landmarks-given: values decided on the landmarks, or it is written that they did",
    )
    if given or looked:
        return
    from tempriv.landmarks.provenance import provenance_of, provenance_path

    require(
        column in provenance_of(source),
        f"{source}: nothing says how the landmarks of column {column!r} were chosen (a copy by "
        f"tempriv landmarks has {provenance_path(source).name} beside it, which goes with it); "
        f"if {' and '.join(choice.value)} did not decide which they are, say so by "
        "[[landmarks_given]]; if it did, by [[landmarks_from_values]]",
        DataError,
    )


def remind_of_looking(choice: MechanismOptions) -> None:
    """Beside a stream nothing is written about its landmarks: the guarantee rests on their owner.

    Parameters:
        choice: the mechanism.
    """
    column = choice.own.get("landmarks")
    if column is None or choice.mechanism == "count-bound-landmarks":
        return
    if not choice.own.get("landmarks_from_values"):
        values = " and ".join(choice.value)
        print(
            f"tempriv: how {column} was chosen is written nowhere; the guarantee holds "
            f"if it was not by looking at {values}",
            file=sys.stderr,
        )


def correlation_of(
    chain: Path | None,
    across: float | None,
    mechanism: Mechanism,
    report: Path | None,
    private_report: Path | None,
) -> Correlation | None:
    """The chain that reports of a release are to speak of, checked before anything is paid for.

    Parameters:
        chain: its file, if there is one.
        across: how far apart two places of it can be, in meters.
        mechanism: that of the release.
        report: the file of the public report.
        private_report: that of the private one.
    """
    if chain is None:
        require(across is None, "--across: goes with --chain")
        return None
    from tempriv.correlation.chain import read_chain
    from tempriv.leakage.budgets import require_budgets
    from tempriv.leakage.leakage import Correlation

    require(chain.exists(), f"{chain}: no such file", DataError)
    correlation = Correlation(chain=read_chain(chain), across=across)
    require_budgets(mechanism, across)
    require(
        report is not None or private_report is not None,
        "--chain: goes with --report or --private-report, which speak of it",
    )
    why = (
        "it was estimated from private data"
        if correlation.chain.private
        else "what readings spend shows their landmarks"
    )
    require(
        private_report is not None or correlation.suits_public_pages(mechanism),
        f"--chain {chain}: {why}, so it is for a --private-report only",
    )
    return correlation
