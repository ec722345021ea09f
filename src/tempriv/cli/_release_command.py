"""What commands that release have in common: the ledger, the output, its reports and a summary."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempriv.cli import _options
from tempriv.cli._options import (
    Dataset,
    DryRun,
    Force,
    Json,
    KeySeed,
    LedgerOption,
    NoLedger,
    NotPrivate,
    Output,
    PrivateReport,
    Report,
    Source,
    TargetError,
)
from tempriv.cli._output import progress
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
    ledger: LedgerOption = None
    no_ledger: NoLedger = False
    report: Report = None
    private_report: PrivateReport = None
    dry_run: DryRun = False
    force: Force = False
    key_seed: KeySeed = None
    not_private: NotPrivate = False
    as_json: Json = False

    @property
    def name(self) -> str:
        """Of the dataset that is charged."""
        return self.dataset or self.source.name

    def preview(self, columns: tuple[str, ...], chosen: Mechanism) -> None:
        """Cost, expected error and what would be left, without a look at any value.

        Parameters:
            columns: the value columns.
            chosen: the mechanism.
        """
        from tempriv.privacy import serialization
        from tempriv.privacy.guarantees import Guarantee
        from tempriv.releases.run import check_early

        standing: list[str] = []
        book = _options.existing_ledger(self.ledger, self.no_ledger)
        if book is not None and self.name in book.datasets():
            standing = _options.standing(book.show(self.name))
            check_early(book, self.name, chosen.guarantee)
        errors = [
            {"column": column, "error": error, "measure": chosen.error_name}
            for column, error in zip(columns, chosen.errors, strict=True)
        ]
        better = chosen.less_noisy()
        if self.as_json:
            plan: dict[str, Any] = {
                "mechanism": serialization.encode(chosen),
                "expected_error": errors,
                "guarantee": serialization.encode(chosen.guarantee),
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
        else:
            print(f"  cost      {guarantee.sentence}")
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

        _options.refuse_pages(self.report, self.private_report, self.force)
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
                    progress=advance,
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
            budget_left = None if book is None else book.show(self.name)
        pages = [page for page, _ in samples]
        _print_release(about, self.output, pages, budget_left, self.as_json)


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
    from tempriv.releases.owner_file import owner_path

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
    print(f"  guarantee {about['sentence']}")
    _print_errors(about["expected_error"])
    print("  not protected: " + "; ".join(about["not_protected"]))
    for line in _options.standing(budget):
        print(f"  budget    {line}")
    for page in pages:
        print(f"  report    {page}")
    if "over" in about["mechanism"]:
        print(f"  for you   {owner_path(output)}: landmarks, and what each reading spent")
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


def remind_of_looking(choice: MechanismOptions, source: Path | None = None) -> None:
    """Where nothing is written down about the landmarks, the guarantee rests on their owner.

    Parameters:
        choice: the mechanism.
        source: the table, beside which it would be written; None: a stream.
    """
    column = choice.own.get("landmarks")
    if column is None or choice.mechanism == "count-bound-landmarks":
        return
    from tempriv.landmarks.provenance import provenance_of

    known = {} if source is None else provenance_of(source)
    if column not in known and not choice.own.get("landmarks_from_values"):
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
