"""Releases of Spark frames, and of streams of them: ``release``, ``stream``, ``write``.

Needs the 'spark' extra. The bits are those of ``tempriv.release``, or of a ``Stream``, for the same
rows, mechanism and key. ``SETTINGS`` are those that a session needs for ``stream``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempriv.integrations.spark.streams import SETTINGS, stream, write

if TYPE_CHECKING:
    from tempriv.integrations.spark.frames import Released
    from tempriv.ledger.ledger import Ledger
    from tempriv.mechanisms.base import Mechanism
    from tempriv.sampling.keys import Key

__all__ = ["SETTINGS", "release", "released", "stream", "write"]


def release(
    frame: Any,
    mechanism: Mechanism,
    *,
    time: str,
    values: str | tuple[str, ...] | list[str],
    series: str | None = None,
    key: Key | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    pseudonyms: bool = False,
    partitions: int | None = None,
    accept_weak: bool = False,
    **layout: Any,
) -> Any:
    """Release a private Spark frame through a mechanism, as a Spark frame.

    ``layout`` says how untidy the table may be, as in ``Series``: person, max_series_per_person,
    grid, calendar, step, gaps, clip. Rows are divided by series into ``partitions``, as many as
    Spark sees fit by default.

    Parameters:
        frame: with a row for each reading.
        mechanism: that every series passes through.
        time: the column of times, or two joined by ``+``.
        values: the columns that are released.
        series: the column of ids; all rows are one series without it.
        key: of the noise; a fresh one by default.
        ledger: that is charged.
        dataset: its name in the ledger.
        pseudonyms: whether ids are replaced by pseudonyms.
        partitions: by how many parts series are divided; as many as Spark sees fit by default.
        accept_weak: say that an epsilon above 10, which protects practically nothing, is meant;
            otherwise there is a ``WeakGuaranteeWarning``.

    Guarantees:
        - what is returned satisfies ``mechanism.guarantee`` (no guarantee under a seeded key);
        - with a ledger, the charge is durable before anything is returned, or nothing is; and what
          is returned is durable before the charge, in the session's checkpoint directory, which a
          session on several machines must have;
        - the frame is computed once: reading it, however often, runs nothing again;
        - no plan, event log or checkpoint holds a key, and a session that does not encrypt what it
          writes aside (``spark.io.encryption.enabled``) is refused.
    """
    return released(
        frame,
        mechanism,
        time=time,
        values=values,
        series=series,
        key=key,
        ledger=ledger,
        dataset=dataset,
        pseudonyms=pseudonyms,
        partitions=partitions,
        accept_weak=accept_weak,
        **layout,
    ).frame


def released(
    frame: Any,
    mechanism: Mechanism,
    *,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    accept_weak: bool = False,
    **settings: Any,
) -> Released:
    """Release a frame as ``release`` does, with the description of it.

    Parameters:
        frame, mechanism, ledger, dataset, accept_weak: as for ``release``.
        settings: the other parameters of ``release``.

    Returns:
        ``.frame``, ``.about`` and ``.guarantee``.
    """
    from tempriv.integrations.spark import session

    session.require_spark()
    from tempriv.integrations.spark import frames
    from tempriv.releases.run import warn_if_weak

    warn_if_weak(mechanism, settings.get("key"), accept_weak)
    return frames.released(frames.run_of(frame, mechanism, **settings), ledger, dataset)
